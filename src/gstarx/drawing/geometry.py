"""The layout of a picture as data, for our drawings and for pages that draw it themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing.svg import element, number

#: Corners of every shape and the angle of the first, in degrees; 0 corners is a circle. Shapes of
#: one picture have about the same area.
_SHAPES = ((0, 0), (4, 45), (3, -90), (4, 0), (6, 0), (5, -90), (3, 90), (8, 22.5))
#: Room around the circles of a picture.
MARGIN = 4.0


@dataclass(frozen=True)
class NodePlace:
    """A node: the label written on it, its name, its center, its size, and the type of node.

    Discs have a ``radius``; the boxes of words have a ``width`` and a ``height``.
    """

    label: str
    name: str
    x: float
    y: float
    radius: float | None = None
    width: float | None = None
    height: float | None = None
    kind: int = 0

    def shape(self, grown: float = 0.0, **style: Any) -> str:
        """A disc, the polygon of its type or a box, larger by ``grown`` at every side."""
        if self.radius is not None:
            return shape(self.kind, self.x, self.y, self.radius + grown, **style)
        width, height = (self.width or 0.0) + 2 * grown, (self.height or 0.0) + 2 * grown
        left, top = self.x - width / 2, self.y - height / 2
        return element("rect", x=left, y=top, width=width, height=height, rx=5, **style)


@dataclass(frozen=True)
class Mark:
    """A path of SVG that lies above the nodes: a bond, a letter, an arc between words.

    ``ends`` are the words that an arc joins.
    """

    d: str
    fill: str | None = None
    stroke: str | None = None
    width: float = 0.0
    ends: tuple[int, int] | None = None


@dataclass(frozen=True)
class Geometry:
    """A picture without scores.

    Attributes
    ----------
    kind
        ``"molecule"``, ``"sentence"`` or ``"graph"``.
    title
        What it is, in words.
    width, height
        Its size; everything lies inside.
    nodes
        The nodes in order.
    edges
        Pairs of joined nodes, each once.
    marks
        What lies above the nodes.
    written
        Whether labels are to be written on nodes. The letters of a molecule are marks already.
    types
        The types of nodes of a heterogeneous graph, each with a shape of its own.
    """

    kind: str
    title: str
    width: float
    height: float
    nodes: tuple[NodePlace, ...]
    edges: tuple[tuple[int, int], ...]
    marks: tuple[Mark, ...] = ()
    written: bool = True
    types: tuple[str, ...] = ()

    @property
    def places(self) -> NDArray[np.float64]:
        """The middle of every node, (n, 2)."""
        return np.array([[node.x, node.y] for node in self.nodes]).reshape(-1, 2)


def shape(kind: int, x: float, y: float, radius: float, **style: Any) -> str:
    """A circle, or a polygon of about the same area that stays inside the picture."""
    corners, turn = _SHAPES[kind % len(_SHAPES)]
    if not corners:
        return element("circle", cx=x, cy=y, r=radius, **style)
    reach = radius * math.sqrt(2 * math.pi / (corners * math.sin(2 * math.pi / corners)))
    reach = min(reach, radius + MARGIN)
    angles = [math.radians(turn + 360 * at / corners) for at in range(corners)]
    points = [(x + reach * math.cos(a), y + reach * math.sin(a)) for a in angles]
    listed = " ".join(f"{number(a)},{number(b)}" for a, b in points)
    return element("polygon", points=listed, stroke_linejoin="round", **style)


def as_pairs(edges: Any, count: int) -> list[tuple[int, int]]:
    """Joined nodes as pairs, smaller first, each once."""
    index = np.asarray(edges.detach().cpu() if hasattr(edges, "detach") else edges)
    if not index.size:
        return []
    if index.ndim != 2 or 2 not in index.shape or index.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be whole numbers of shape (2, E) or (E, 2) (got {index.dtype} of "
            f"{index.shape})"
        )
    ends = index if index.shape[0] == 2 else index.T
    if ends.min() < 0 or ends.max() >= count:
        raise ValueError(
            f"edges must join nodes in 0..{count - 1} (got {ends.min()}..{ends.max()})"
        )
    pairs = {(min(a, b), max(a, b)) for a, b in ends.T.tolist() if a != b}
    return sorted(pairs)
