"""Any graph, laid out by networkx, with a shape for every type of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import TIE_DASHES, Picture, Scene, card, color_bar
from gstarx.drawing.sentence import as_pairs
from gstarx.drawing.svg import (
    INK,
    MUTED,
    element,
    group,
    hatched_disc,
    label,
    line,
    number,
    text_width,
    tip,
)

_EDGE = "#a7b0ba"
_RIM = "#7b858f"
#: Room around the circles of a picture.
_MARGIN = 4.0
_LARGEST, _SMALLEST = 12.0, 3.0
#: Radius from which nodes are large enough for their names.
TEXT_FROM = 8.0
_ROUNDS, _ROUNDS_IF_LARGE = 300, 40
#: From this size on, networkx would need SciPy for its spring layout.
_LARGE = 500
#: Beyond this a matrix of all distances is slow, and a picture is unreadable.
_MOST = 2_000
#: Corners of every shape and the angle of the first, in degrees; 0 corners is a circle. Shapes of
#: one picture have about the same area.
_SHAPES = ((0, 0), (4, 45), (3, -90), (4, 0), (6, 0), (5, -90), (3, 90), (8, 22.5))
_LEGEND_TEXT = 11.0
_LEGEND_ROW = 20.0


def draw_graph(
    data: Data,
    scores: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    seed: int = 0,
    std_errors: ArrayLike | None = None,
    limit: float | None = None,
    title: str | None = None,
    caption: str | None = None,
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
    std_errors, limit, title, caption, legend
        As for :func:`draw_molecule`.
    labels
        Names of the nodes; by default their numbers. They are written on the nodes if they
        fit.
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
    painted = Painted.of(scores, selected, limit, names, std_errors=std_errors)
    pairs = as_pairs(data.edge_index, count)
    return card(
        graph_scene(painted, pairs, seed=seed, width=width),
        title=title,
        caption=caption,
        alternative=graph_name(count, len(pairs)),
        description=painted.described(),
        legend=color_bar(painted.limit, marks=painted.marks) if legend else None,
    )


def graph_name(nodes: int, edges: int) -> str:
    """A graph by its size."""
    return f"Graph of {nodes} node{'s' * (nodes != 1)} and {edges} edge{'s' * (edges != 1)}"


def graph_scene(
    painted: Painted,
    pairs: Sequence[tuple[int, int]],
    *,
    seed: int = 0,
    width: float = 460,
    types: NodeTypes | None = None,
) -> Scene:
    """The drawing alone, with the legend of shapes where nodes have types."""
    places, radius, size = laid_out(pairs, len(painted.scores), seed=seed, width=width)
    selected = painted.selected
    parts = []
    for heavy in (False, True):
        parts += [
            line(
                places,
                a,
                b,
                stroke=INK if heavy else _EDGE,
                stroke_width=min(2.6, radius / 3) if heavy else max(0.7, min(1.4, radius / 6)),
            )
            for a, b in pairs
            if bool(selected[a] and selected[b]) == heavy
        ]
    # strong scores and selected nodes lie on top where nodes are close
    order = np.lexsort((np.abs(painted.scores), selected | painted.tied))
    parts += [_drawn_node(int(i), places[i], radius, painted, types) for i in order]
    if types is not None:
        legend, height = types.legend(width, size)
        parts.append(legend)
        size += height
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
    available = width - 2 * (_LARGEST + _MARGIN)
    # no higher than wide
    scale = min(available / spread[0], available / spread[1])
    if len(places) == 1 or not pairs:
        scale = min(scale, 60.0)
    scale = min(scale, 70.0)
    scaled = (places - places.min(axis=0)) * scale
    nearest = _nearest(scaled)
    radius = float(np.clip(0.42 * nearest, _SMALLEST, _LARGEST))
    edge = radius + _MARGIN
    height = float(np.ptp(scaled, axis=0)[1]) + 2 * edge
    left = (width - float(np.ptp(scaled, axis=0)[0])) / 2
    return scaled + np.array([left, edge]), radius, height


def _nearest(places: NDArray[np.float64]) -> float:
    """A distance that nearly all nodes keep from their nearest one."""
    if len(places) == 1:
        return np.inf
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.quantile(apart.min(axis=1), 0.25))


def _drawn_node(
    node: int,
    place: NDArray[np.float64],
    radius: float,
    painted: Painted,
    types: NodeTypes | None = None,
) -> str:
    x, y = (float(c) for c in place)
    tied = bool(painted.tied[node])
    outlined = bool(painted.selected[node]) or tied
    style: dict[str, Any] = {
        "fill": painted.color(node),
        "stroke": INK if outlined else _RIM,
        "stroke_width": max(1.4, min(2.4, radius / 3.2)) if outlined else 0.8,
        "stroke_dasharray": TIE_DASHES if tied else None,
    }
    kind = 0 if types is None else int(types.of[node])
    parts = [tip(painted.caption(node)), shape(kind, x, y, radius, **style)]
    if painted.uncertain[node]:
        parts.append(hatched_disc(x, y, radius, step=max(2.5, radius / 2.5)))
    name = painted.names[node] if types is None else types.labels[node]
    size = min(10.0, radius * 0.95)
    if radius >= TEXT_FROM and text_width(name, size) <= 2 * radius:
        parts.append(label(x, y + size * 0.35, name, size=size, text_anchor="middle"))
    return group(*parts)


def layout(edges: Sequence[tuple[int, int]], count: int, *, seed: int) -> NDArray[np.float64]:
    """A place for every node, (n, 2); neighbors are about 1 apart.

    Every connected component is laid out by networkx's spring layout and then by stress
    majorization (Gansner, Koren and North, 2004), so that distances match those in the graph.
    A component of 500 nodes or more starts from its two main coordinates instead of springs.
    Components are placed side by side, largest first. The same seed gives the same places.
    """
    if count > _MOST:
        raise ValueError(
            f"a graph to draw may have at most {_MOST:,} nodes (got {count:,}): draw a part of it"
        )
    networkx = require("networkx", extra="drawing")
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    parts = sorted(map(sorted, networkx.connected_components(graph)), key=lambda p: (-len(p), p))
    placed = [_component(networkx, graph.subgraph(part), part, seed) for part in parts]
    coordinates = np.zeros((count, 2))
    for part, places in zip(parts, _packed(placed), strict=True):
        coordinates[part] = places
    return coordinates


def _component(networkx: Any, graph: Any, nodes: list[int], seed: int) -> NDArray[np.float64]:
    if len(nodes) == 1:
        return np.zeros((1, 2))
    index = {node: place for place, node in enumerate(nodes)}
    distances = np.zeros((len(nodes), len(nodes)))
    for node, reached in networkx.all_pairs_shortest_path_length(graph):
        for other, steps in reached.items():
            distances[index[node], index[other]] = steps
    if len(nodes) >= _LARGE:
        return _lying(_stressed(_main_coordinates(distances), distances, _ROUNDS_IF_LARGE))
    springs = networkx.spring_layout(_in_order(networkx, graph, nodes), seed=seed)
    start = np.array([springs[node] for node in nodes])
    return _lying(_stressed(start, distances, _ROUNDS))


def _main_coordinates(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The plane that preserves distances best (classical multidimensional scaling)."""
    squared = distances**2
    means = squared.mean(axis=0)
    values, vectors = np.linalg.eigh(-(squared - means - means[:, None] + means.mean()) / 2)
    coordinates: NDArray[np.float64] = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    return coordinates


def _in_order(networkx: Any, graph: Any, nodes: list[int]) -> Any:
    """A copy with its nodes in order, which the spring layout depends on."""
    ordered = networkx.Graph()
    ordered.add_nodes_from(nodes)
    ordered.add_edges_from(sorted(tuple(sorted(edge)) for edge in graph.edges))
    return ordered


def _stressed(
    start: NDArray[np.float64], distances: NDArray[np.float64], rounds: int
) -> NDArray[np.float64]:
    """Places whose distances approximate ``distances``, short ones weighted most."""
    count = len(start)
    weights = 1 / np.where(distances > 0, distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    places: NDArray[np.float64] = start * distances.max() / max(np.ptp(start, axis=0).max(), 1e-9)
    pull = weights * distances
    for _ in range(rounds):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = -pull / np.maximum(apart, 1e-9)
        np.fill_diagonal(ratio, 0.0)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        following = inverse @ (ratio @ places)
        moved = float(np.abs(following - places).max())
        places = following
        if moved < 1e-4 * count:
            break
    return places


def _lying(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate the places so that the longest axis is horizontal, starting at the origin."""
    centered = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    # the sign of an axis is arbitrary: fix it, or pictures flip between machines
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)]) if len(places) > 1 else 1.0
    turned = centered @ (axes * np.reshape(signs, (-1, 1))).T
    shifted: NDArray[np.float64] = turned - turned.min(axis=0)
    return shifted


def _packed(parts: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Components in rows, about as wide as high."""
    gap = 1.0
    sizes = [np.ptp(part, axis=0) + gap for part in parts]
    widest = max(float(sizes[0][0]), 1.5 * math.sqrt(float(sum(s[0] * s[1] for s in sizes))))
    packed = []
    x = y = row = 0.0
    for part, (width, height) in zip(parts, sizes, strict=True):
        if x and x + width > widest + gap:
            x, y, row = 0.0, y + row, 0.0
        packed.append(part + np.array([x, y]))
        x, row = x + width, max(row, height)
    return packed


@dataclass(frozen=True)
class NodeTypes:
    """The types of the nodes of a picture.

    Attributes
    ----------
    names
        All types of the graph.
    of
        The position of every node's type among them.
    labels
        What is written on a node, if there is room.
    """

    names: tuple[str, ...]
    of: NDArray[np.int64]
    labels: tuple[str, ...]

    def shape(self, node: int, x: float, y: float, radius: float, **style: Any) -> str:
        """The shape of a node."""
        return shape(int(self.of[node]), x, y, radius, **style)

    def legend(self, width: float, top: float) -> tuple[str, float]:
        """Which type has which shape, in rows below a picture, and the height that they take."""
        parts, x, y = [], 8.0, top + _LEGEND_ROW / 2
        for at, name in enumerate(self.names):
            wide = 24 + text_width(name, _LEGEND_TEXT)
            if x + wide > width and x > 8.0:
                x, y = 8.0, y + _LEGEND_ROW
            parts.append(shape(at, x + 6, y, 6.0, fill="none", stroke=MUTED, stroke_width=1.2))
            parts.append(
                label(x + 17, y + _LEGEND_TEXT * 0.35, name, size=_LEGEND_TEXT, fill=MUTED)
            )
            x += wide + 10
        return group(*parts), y + _LEGEND_ROW / 2 + 4 - top


def shape(kind: int, x: float, y: float, radius: float, **style: Any) -> str:
    """A circle, or a polygon of about the same area that stays inside the picture."""
    corners, turn = _SHAPES[kind % len(_SHAPES)]
    if not corners:
        return element("circle", cx=x, cy=y, r=radius, **style)
    reach = radius * math.sqrt(2 * math.pi / (corners * math.sin(2 * math.pi / corners)))
    reach = min(reach, radius + _MARGIN)
    angles = [math.radians(turn + 360 * at / corners) for at in range(corners)]
    points = [(x + reach * math.cos(a), y + reach * math.sin(a)) for a in angles]
    listed = " ".join(f"{number(a)},{number(b)}" for a, b in points)
    return element("polygon", points=listed, stroke_linejoin="round", **style)
