"""Any graph, laid out by networkx."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.drawing.frame import Scene, card, color_bar
from gstarx.drawing.layout import layout
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import Picture
from gstarx.drawing.sentence import as_pairs
from gstarx.drawing.svg import INK, element, group, label, text_width, tip

_EDGE = "#a7b0ba"
_RIM = "#7b858f"
_MARGIN = 4.0
_LARGEST, _SMALLEST = 12.0, 3.0
#: Radius from which nodes have room for their names.
TEXT_FROM = 8.0


def draw_graph(
    data: Data,
    scores: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    seed: int = 0,
    limit: float | None = None,
    title: str | None = None,
    legend: bool = True,
    labels: Sequence[str] | None = None,
    width: float = 460,
) -> Picture:
    """A graph with the score of a node as its color, and the selected nodes outlined.

    Edges between selected nodes are heavy. Directions are not drawn.

    Parameters
    ----------
    data
        A graph with ``edge_index``.
    scores
        A score per node.
    selected
        Nodes to outline: ids, or a boolean mask.
    seed
        Of the layout: the same seed gives the same picture.
    limit, title, legend
        As for :func:`draw_molecule`.
    labels
        What to call the nodes; their numbers by default. They are written on nodes where there is
        room.
    width
        Width of the drawing.

    Examples
    --------
    >>> import torch
    >>> ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    >>> draw_graph(ring, [0.5, -0.1, 0.0]).title
    'Graph of 3 nodes and 3 edges'
    """
    count = int(data.num_nodes or 0)
    names = [str(i) for i in range(count)] if labels is None else [str(name) for name in labels]
    if len(names) != count:
        raise ValueError(f"labels must be one for each of {count} nodes (got {len(names)})")
    painted = Painted.of(scores, selected, limit, names)
    pairs = as_pairs(data.edge_index, count)
    return card(
        graph_scene(painted, pairs, seed=seed, width=width),
        title=title,
        alternative=graph_name(count, len(pairs)),
        description=painted.described(),
        legend=color_bar(painted.limit, selected=bool(painted.selected.any())) if legend else None,
    )


def graph_name(nodes: int, edges: int) -> str:
    """A graph by its size."""
    return f"Graph of {nodes} node{'s' * (nodes != 1)} and {edges} edge{'s' * (edges != 1)}"


def graph_scene(
    painted: Painted, pairs: Sequence[tuple[int, int]], *, seed: int = 0, width: float = 460
) -> Scene:
    """The drawing alone."""
    places, radius, size = laid_out(pairs, len(painted.scores), seed=seed, width=width)
    chosen = painted.selected
    parts = []
    for heavy in (False, True):
        parts += [
            element(
                "line",
                x1=float(places[a][0]),
                y1=float(places[a][1]),
                x2=float(places[b][0]),
                y2=float(places[b][1]),
                stroke=INK if heavy else _EDGE,
                stroke_width=min(2.6, radius / 3) if heavy else max(0.7, min(1.4, radius / 6)),
            )
            for a, b in pairs
            if bool(chosen[a] and chosen[b]) == heavy
        ]
    # strong scores and selected nodes lie on top where nodes are close
    order = np.lexsort((np.abs(painted.scores), chosen))
    parts += [_drawn_node(int(i), places[i], radius, painted) for i in order]
    return Scene(width, size, group(*parts))


def laid_out(
    pairs: Sequence[tuple[int, int]], count: int, *, seed: int = 0, width: float = 460
) -> tuple[NDArray[np.float64], float, float]:
    """Places of nodes in units of the SVG, their radius, and the height."""
    return _fitted(layout(pairs, count, seed=seed), pairs, width)


def _fitted(
    places: NDArray[np.float64], pairs: Sequence[tuple[int, int]], width: float
) -> tuple[NDArray[np.float64], float, float]:
    """Places in units of the SVG, the radius of nodes, and the height."""
    spread = np.maximum(np.ptp(places, axis=0), 1e-9)
    room = width - 2 * (_LARGEST + _MARGIN)
    # neither a needle nor a tower: no higher than wide
    scale = min(room / spread[0], room / spread[1])
    if len(places) == 1 or not pairs:
        scale = min(scale, 60.0)
    scale = min(scale, 70.0)
    found = (places - places.min(axis=0)) * scale
    nearest = _nearest(found)
    radius = float(np.clip(0.42 * nearest, _SMALLEST, _LARGEST))
    edge = radius + _MARGIN
    height = float(np.ptp(found, axis=0)[1]) + 2 * edge
    left = (width - float(np.ptp(found, axis=0)[0])) / 2
    return found + np.array([left, edge]), radius, height


def _nearest(places: NDArray[np.float64]) -> float:
    """A distance that nearly all nodes keep from their nearest one."""
    if len(places) == 1:
        return np.inf
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.quantile(apart.min(axis=1), 0.25))


def _drawn_node(node: int, place: NDArray[np.float64], radius: float, painted: Painted) -> str:
    x, y = (float(c) for c in place)
    chosen = bool(painted.selected[node])
    parts = [
        tip(painted.said(node)),
        element(
            "circle",
            cx=x,
            cy=y,
            r=radius,
            fill=painted.color(node),
            stroke=INK if chosen else _RIM,
            stroke_width=max(1.4, min(2.4, radius / 3.2)) if chosen else 0.8,
        ),
    ]
    name, size = painted.names[node], min(10.0, radius * 0.95)
    if radius >= TEXT_FROM and text_width(name, size) <= 2 * radius:
        parts.append(label(x, y + size * 0.35, name, size=size, text_anchor="middle"))
    return group(*parts)
