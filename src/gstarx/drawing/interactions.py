"""Interactions between nodes: bows over the picture of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.drawing.dispatch import Subject
from gstarx.drawing.geometry import geometry
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import Picture, Scene, card, color_bar
from gstarx.drawing.svg import element, group, number, score_color, signed, tip
from gstarx.metrics import as_scores

#: How far a bow bends, as a share of its length, and its widths.
_BEND = 0.32
_WIDTHS = (1.5, 6.0)
_MARGIN = 6.0


def draw_interactions(
    data: Data | str,
    interactions: Mapping[tuple[int, ...], float],
    scores: ArrayLike | None = None,
    *,
    strongest: int = 5,
    title: str | None = None,
    caption: str | None = None,
    legend: bool = True,
    seed: int = 0,
) -> Picture:
    """Draw interactions between nodes as arcs, wider for stronger interactions.

    Parameters
    ----------
    data
        A graph or a SMILES, as for :func:`draw`.
    interactions
        Values of sets of two or more nodes. Orange arcs join nodes that are worth more together
        than apart, and blue arcs nodes that are worth less. A set of three nodes has three arcs.
    scores
        A score per node, its color; by default none has any.
    strongest
        How many interactions to draw, those of the largest absolute value.
    title, caption, legend, seed
        As for :func:`draw`.

    Examples
    --------
    >>> picture = draw_interactions("CC(=O)O", {(1, 2): 0.4, (2, 3): -0.2})
    >>> picture.title
    'Molecule CC(=O)O'
    """
    if strongest < 0:
        raise ValueError(f"strongest must be 0 or more (got {strongest!r})")
    subject = Subject.of(data, seed=seed)
    count = len(subject.names)
    wrong = [
        nodes for nodes in interactions if len(nodes) < 2 or not set(nodes) <= set(range(count))
    ]
    if wrong:
        raise ValueError(
            f"interactions are of two or more nodes in 0..{count - 1} (got {wrong[0]})"
        )
    order = sorted(interactions, key=lambda nodes: -abs(interactions[nodes]))[:strongest]
    values = {nodes: float(interactions[nodes]) for nodes in order if interactions[nodes]}
    given = np.zeros(count) if scores is None else as_scores(scores, count)
    # one scale for nodes and bows, so that the legend holds for both
    limit = max(map(abs, (*values.values(), *given.tolist())), default=0.0) or 1.0
    painted = Painted.of(given, None, limit, subject.names)
    drawn = subject.scene(painted)
    place = geometry(data, seed=seed)
    places = np.array([[node.x, node.y] for node in place.nodes]).reshape(-1, 2)
    bows = [
        _bow(places, pair, value, limit, f"{_named(nodes, subject.names)} {signed(value)}")
        for nodes, value in reversed(values.items())
        for pair in combinations(nodes, 2)
    ]
    said = ", ".join(
        f"{_named(nodes, subject.names)} {signed(value)}" for nodes, value in values.items()
    )
    return card(
        _around(drawn, bows),
        title=title,
        caption=caption,
        alternative=subject.title,
        description=f"Strongest interactions: {said or 'none'}. {subject.described(painted)}",
        legend=color_bar(limit) if legend else None,
    )


def _named(nodes: tuple[int, ...], names: tuple[str, ...]) -> str:
    return " and ".join(names[node] for node in nodes)


def _bow(
    places: NDArray[np.float64], pair: tuple[int, ...], value: float, limit: float, words: str
) -> tuple[str, NDArray[np.float64]]:
    """A bow away from the middle of the picture, and the point that it bends to."""
    one, two = places[pair[0]], places[pair[1]]
    along, middle = two - one, (one + two) / 2
    across = np.array([-along[1], along[0]])
    if float(across @ (middle - places.mean(axis=0))) < 0:
        across = -across
    control = middle + 2 * _BEND * across
    strength = abs(value) / limit
    path = " ".join(number(float(at)) for at in (*control, *two))
    shape = element(
        "path",
        tip(words),
        d=f"M{number(float(one[0]))} {number(float(one[1]))}Q{path}",
        fill="none",
        stroke=score_color(np.sign(value) * max(strength, 0.35) * limit, limit),
        stroke_width=_WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength,
        stroke_linecap="round",
        stroke_opacity=0.6,
    )
    return shape, (middle + control) / 2


def _around(drawn: Scene, bows: list[tuple[str, NDArray[np.float64]]]) -> Scene:
    """The drawing with the bows over it, in a box that holds both."""
    tops = np.array([top for _, top in bows]).reshape(-1, 2)
    low = np.minimum(tops.min(axis=0, initial=0.0) - _MARGIN * bool(bows), 0.0)
    size = np.array([drawn.width, drawn.height])
    high = np.maximum(tops.max(axis=0, initial=0.0) + _MARGIN * bool(bows), size)
    body = group(
        drawn.body,
        *(shape for shape, _ in bows),
        transform=f"translate({number(float(-low[0]))} {number(float(-low[1]))})",
    )
    return Scene(float(high[0] - low[0]), float(high[1] - low[1]), body)
