"""Axes: ticks at round numbers, coordinates, grid lines and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing.svg import LINE, MUTED, element, label

_SMALL = 11.0


@dataclass(frozen=True)
class Axis:
    """A range of numbers mapped to a range of coordinates.

    Attributes
    ----------
    low, high
        The numbers at its ends.
    start, end
        Their coordinates in the drawing.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The coordinate of a number."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers on the axis, about ``about`` of them.

        >>> Axis(0.0, 1.0, 0, 100).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        step = _round_step((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def wide_enough(values: NDArray[np.float64], *, margin: float = 0.06) -> tuple[float, float]:
    """Ends of an axis that contains all values, with a margin and a positive width."""
    low, high = float(values.min()), float(values.max())
    span = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-6)
    return low - margin * span, high + margin * span


def horizontal(axis: Axis, top: float, bottom: float, name: str, *, grid: bool = True) -> list[str]:
    """Labels below, and lines from top to bottom."""
    parts = []
    for tick in axis.ticks():
        x = axis(tick)
        if grid:
            parts.append(_line(x, top, x, bottom))
        parts.append(
            label(x, bottom + 16, tick_text(tick), size=_SMALL, fill=MUTED, text_anchor="middle")
        )
    middle = (axis.start + axis.end) / 2
    parts.append(label(middle, bottom + 36, name, size=12, text_anchor="middle"))
    return parts


def vertical(axis: Axis, left: float, right: float, name: str) -> list[str]:
    """Labels to the left, lines across, and the name above."""
    parts = []
    for tick in axis.ticks():
        y = axis(tick)
        parts.append(_line(left, y, right, y))
        parts.append(
            label(left - 8, y + 4, tick_text(tick), size=_SMALL, fill=MUTED, text_anchor="end")
        )
    parts.append(label(0, axis.end - 12, name, size=12))
    return parts


def tick_text(value: float) -> str:
    """A round number as it is printed.

    >>> tick_text(0.30000000000000004), tick_text(-1.0)
    ('0.3', '−1')
    """
    return f"{value:.6g}".replace("-", "−")


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=LINE)


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted - 1e-12)
