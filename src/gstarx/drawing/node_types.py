"""A shape for every type of nodes of a heterogeneous graph, and their legend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing.svg import MUTED, element, group, label, number, text_width

#: Corners of every shape and the angle of the first, in degrees; 0 corners is a circle. Shapes of
#: one picture have about the same area.
_SHAPES = ((0, 0), (4, 45), (3, -90), (4, 0), (6, 0), (5, -90), (3, 90), (8, 22.5))
#: Room around the circles of a picture.
_MARGIN = 4.0
_TEXT = 11.0
_ROW = 20.0


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
        parts, x, y = [], 8.0, top + _ROW / 2
        for at, name in enumerate(self.names):
            wide = 24 + text_width(name, _TEXT)
            if x + wide > width and x > 8.0:
                x, y = 8.0, y + _ROW
            parts.append(shape(at, x + 6, y, 6.0, fill="none", stroke=MUTED, stroke_width=1.2))
            parts.append(label(x + 17, y + _TEXT * 0.35, name, size=_TEXT, fill=MUTED))
            x += wide + 10
        return group(*parts), y + _ROW / 2 + 4 - top


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
