"""Axes, curves over sparsities, and means with their intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gstarx._internal import rounding
from gstarx.drawing.picture import Picture, Scene, card
from gstarx.drawing.svg import (
    CARD,
    INK,
    LINE,
    LINES,
    MUTED,
    element,
    fitted,
    group,
    label,
    number,
    text_width,
    tip,
)
from gstarx.metrics import METRICS, FidelityCurve, paired_bootstrap

#: What the metrics are called on an axis.
NAMES = {
    "fidelity": "fidelity",
    "inverse_fidelity": "inverse fidelity",
    "sparsity": "sparsity",
    "normalized_fidelity": "normalized fidelity",
    "normalized_inverse_fidelity": "normalized inverse fidelity",
    "harmonic_fidelity": "H-fidelity",
}
_SMALL = 12.0
_DASHES = (None, "7 3", "2 3", "9 3 2 3")
_MARKERS = ("circle", "square", "triangle", "diamond")
_ROW = 26.0
_BELOW = 44.0


def plot_curves(
    curves: Mapping[str, Any],
    *,
    metric: str = "harmonic_fidelity",
    title: str | None = None,
    muted: Collection[str] = (),
    width: float = 640,
    height: float = 400,
) -> Picture:
    """A metric against achieved sparsity, a line for each explainer.

    Lines differ in color, marker and dashes. The legend lists them as they end, highest first.

    Parameters
    ----------
    curves
        By name, a :class:`gstarx.metrics.FidelityCurve`, or a pair of arrays: sparsities and
        values.
    metric
        Which of :data:`gstarx.metrics.METRICS` to take from curves; for arrays, what to call the
        values.
    title
        What to print above.
    muted
        Names of reference curves, drawn in gray.
    width, height
        Of the drawing.

    Examples
    --------
    >>> picture = plot_curves(
    ...     {"ours": ([0.5, 0.7], [0.6, 0.65]), "random": ([0.5, 0.7], [0.5, 0.5])}
    ... )
    >>> picture.title
    'H-fidelity against sparsity'
    """
    lines = curve_lines(curves, metric)
    described = "; ".join(
        f"{name} from {ys[0]:.4f} at {xs[0]:.2f} to {ys[-1]:.4f} at {xs[-1]:.2f}"
        for name, (xs, ys) in lines.items()
    )
    return card(
        _curves_scene(lines, NAMES[metric], frozenset(muted), width, height),
        title=title,
        alternative=f"{NAMES[metric]} against sparsity",
        description=f"{NAMES[metric]} against achieved sparsity: {described}.",
    )


def plot_intervals(
    values: Mapping[str, ArrayLike],
    *,
    references: Mapping[str, float] | None = None,
    quantity: str = "H-fidelity",
    title: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    width: float = 640,
    height: float | None = None,
) -> Picture:
    """Means with their bootstrap intervals, a row for each explainer, highest first.

    Parameters
    ----------
    values
        By name, a number per graph.
    references
        By name, numbers to draw a vertical line at: a random selection, the best one.
    quantity
        What the numbers are.
    title
        What to print above.
    confidence
        Of the percentile interval.
    seed
        Of the resampling.
    width, height
        Of the drawing; by default as high as the rows need.

    Examples
    --------
    >>> plot_intervals({"ours": [0.6, 0.7, 0.65]}, references={"random": 0.5}).title
    'H-fidelity: means and 95% intervals'
    """
    rows = mean_intervals(values, confidence=confidence, seed=seed)
    lines = {str(name): float(value) for name, value in (references or {}).items()}
    descriptions = [
        f"{n} {mean:.4f} ({low:.4f} to {high:.4f})" for n, (mean, low, high) in rows.items()
    ]
    descriptions += [f"{name} {value:.4f}" for name, value in lines.items()]
    heading = f"{quantity}: means and {confidence:.0%} intervals"
    return card(
        _intervals_scene(rows, lines, quantity, width, height),
        title=title,
        alternative=heading,
        description=f"{heading}: {'; '.join(descriptions)}.",
    )


def check_metric(metric: str) -> None:
    """Raise unless it is one of :data:`gstarx.metrics.METRICS`."""
    if metric not in METRICS:
        valid = ", ".join(map(repr, METRICS))
        raise ValueError(f"metric must be one of {valid} (got {metric!r})")


def curve_lines(
    curves: Mapping[str, Any], metric: str
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """By name, achieved sparsities ascending and the values there."""
    check_metric(metric)
    if not curves:
        raise ValueError("curves must name at least one explainer (got none)")
    return {str(name): _points(str(name), curve, metric) for name, curve in curves.items()}


def mean_intervals(
    values: Mapping[str, ArrayLike], *, confidence: float, seed: int
) -> dict[str, tuple[float, float, float]]:
    """By name, a mean and the ends of its bootstrap interval, highest mean first."""
    if not values:
        raise ValueError("values must name at least one explainer (got none)")
    rows = {}
    for name, column in values.items():
        numbers = np.asarray(column, dtype=np.float64)
        interval = paired_bootstrap(
            numbers, np.zeros_like(numbers), confidence=confidence, seed=seed
        )
        rows[str(name)] = (interval.mean, interval.low, interval.high)
    return dict(sorted(rows.items(), key=lambda row: -row[1][0]))


def _points(name: str, curve: Any, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sparsities ascending, and the values there."""
    if isinstance(curve, FidelityCurve):
        xs, ys = curve["sparsity"], curve[metric]
    else:
        try:
            xs, ys = (np.asarray(part, dtype=np.float64) for part in curve)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"curve {name!r} must be a FidelityCurve or a pair of arrays (got {curve!r})"
            ) from error
    if xs.ndim != 1 or xs.shape != ys.shape or not len(xs):
        raise ValueError(
            f"curve {name!r} must have as many values as sparsities, at least one "
            f"(got {ys.shape} and {xs.shape})"
        )
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise ValueError(f"curve {name!r} must be finite numbers")
    order = np.argsort(xs, kind="stable")
    return xs[order], ys[order]


def _curves_scene(
    lines: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    name: str,
    muted: frozenset[str],
    width: float,
    height: float,
) -> Scene:
    side = min(0.4 * width, 44 + max(text_width(line, _SMALL) for line in lines))
    left, right, top, bottom = 48.0, width - side - 16, 28.0, height - 44
    xs = np.concatenate([x for x, _ in lines.values()])
    ys = np.concatenate([y for _, y in lines.values()])
    across = Axis(*wide_enough(xs, margin=0.03), left, right)
    up = Axis(*wide_enough(ys), bottom, top)
    parts = [
        *vertical(up, left, right, name),
        *horizontal(across, top, bottom, "sparsity", grid=False),
    ]
    looks = looks_of(list(lines), muted)
    for line, (x, y) in lines.items():
        points = [(across(a), up(b)) for a, b in zip(x, y, strict=True)]
        parts.append(_line(line, points, looks[line]))
    # in the order of their last values, so that they are easy to find
    order = sorted(range(len(lines)), key=lambda i: -list(lines.values())[i][1][-1])
    spacing = min(24.0, (bottom - top) / max(1, len(lines)))
    names = list(lines)
    for row, place in enumerate(order):
        level = top + 10 + row * spacing
        sample = [(right + shift, level) for shift in (16, 30, 44)]
        parts.append(_line(names[place], sample, looks[names[place]], marks=(1,)))
        parts.append(
            label(right + 52, level + 4, fitted(names[place], _SMALL, side - 40), size=_SMALL)
        )
    return Scene(width, height, group(*parts))


@dataclass(frozen=True)
class Look:
    """The style that distinguishes a curve."""

    color: str
    dashes: str | None
    marker: str


def looks_of(names: Sequence[str], muted: frozenset[str]) -> dict[str, Look]:
    """A style for each name; reference curves are gray."""
    looks = {}
    bright = [name for name in names if name not in muted]
    for place, name in enumerate(bright):
        dashes = _DASHES[place // len(LINES) % len(_DASHES)]
        marker = _MARKERS[place % len(_MARKERS)]
        looks[name] = Look(LINES[place % len(LINES)], dashes, marker)
    for place, name in enumerate(name for name in names if name in muted):
        dashes = _DASHES[1 + place % (len(_DASHES) - 1)]
        looks[name] = Look(MUTED, dashes, _MARKERS[place % len(_MARKERS)])
    return looks


def _line(
    name: str,
    points: list[tuple[float, float]],
    look: Look,
    marks: tuple[int, ...] | None = None,
) -> str:
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    drawn = element(
        "path",
        d=path,
        fill="none",
        stroke=look.color,
        stroke_width=2.0,
        stroke_dasharray=look.dashes,
        stroke_linejoin="round",
    )
    marked_points = range(len(points)) if marks is None else marks
    marked = [_marker(look.marker, *points[i], look.color) for i in marked_points]
    return group(tip(name), drawn, *marked)


def _marker(kind: str, x: float, y: float, color: str) -> str:
    r = 3.6
    if kind == "circle":
        return element("circle", cx=x, cy=y, r=r, fill=color, stroke=CARD)
    shapes = {
        "square": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "triangle": [(0, -r * 1.25), (r * 1.15, r), (-r * 1.15, r)],
        "diamond": [(0, -r * 1.35), (r * 1.35, 0), (0, r * 1.35), (-r * 1.35, 0)],
    }
    points = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in shapes[kind])
    return element("polygon", points=points, fill=color, stroke=CARD)


@dataclass(frozen=True)
class _Reference:
    """A vertical line: its place, and the left edge and level of its name."""

    name: str
    at: float
    left: float
    level: int


def _reference_places(references: dict[str, float], axis: Axis, width: float) -> list[_Reference]:
    """Place names above their lines, stacked where they would overlap."""
    placed: list[_Reference] = []
    ends: list[float] = []
    for name, value in sorted(references.items(), key=lambda reference: reference[1]):
        at, wide = axis(value), text_width(name, 11)
        left = min(max(0.0, at - wide / 2), width - wide)
        level = next((i for i, end in enumerate(ends) if left > end + 6), len(ends))
        ends[level : level + 1] = [left + wide]
        placed.append(_Reference(name, at, left, level))
    return placed


def _intervals_scene(
    rows: dict[str, tuple[float, float, float]],
    references: dict[str, float],
    name: str,
    width: float,
    height: float | None,
) -> Scene:
    side = min(0.4 * width, max(text_width(row, _SMALL) for row in rows) + 12)
    figures = 58.0
    left, right = side, width - figures
    numbers = np.array([*(n for row in rows.values() for n in row), *references.values()])
    axis = Axis(*wide_enough(numbers), left, right)
    placed = _reference_places(references, axis, width)
    top = 8.0 + 14.0 * (1 + max((place.level for place in placed), default=-1))
    step = _ROW if height is None else max(_ROW, (height - top - _BELOW) / len(rows))
    bottom = top + step * len(rows)
    parts = horizontal(axis, top, bottom, name)
    for place in placed:
        y = top - 9 - 14.0 * place.level
        path = f"M{number(place.at)} {number(y + 3)}V{number(bottom)}"
        parts.append(element("path", d=path, stroke=INK, stroke_dasharray="4 3"))
        parts.append(label(place.left, y, place.name, size=11))
    for row, (explainer, (mean, low, high)) in enumerate(rows.items()):
        y = top + step * (row + 0.5)
        where = tip(f"{explainer}: {mean:.4f}, {low:.4f} to {high:.4f}")
        color = LINES[1]
        parts += [
            label(
                left - 10, y + 4, fitted(explainer, _SMALL, side), size=_SMALL, text_anchor="end"
            ),
            group(
                where,
                element(
                    "line", x1=axis(low), y1=y, x2=axis(high), y2=y, stroke=color, stroke_width=3.0
                ),
                _marker("circle", axis(mean), y, color),
            ),
            label(right + 12, y + 4, rounding.metric(mean), size=_SMALL, fill=MUTED),
        ]
    return Scene(width, bottom + _BELOW, group(*parts))


_TICK_SIZE = 11.0


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
            parts.append(_grid_line(x, top, x, bottom))
        parts.append(
            label(
                x, bottom + 16, tick_text(tick), size=_TICK_SIZE, fill=MUTED, text_anchor="middle"
            )
        )
    middle = (axis.start + axis.end) / 2
    parts.append(label(middle, bottom + 36, name, size=12, text_anchor="middle"))
    return parts


def vertical(axis: Axis, left: float, right: float, name: str) -> list[str]:
    """Labels to the left, lines across, and the name above."""
    parts = []
    for tick in axis.ticks():
        y = axis(tick)
        parts.append(_grid_line(left, y, right, y))
        parts.append(
            label(left - 8, y + 4, tick_text(tick), size=_TICK_SIZE, fill=MUTED, text_anchor="end")
        )
    parts.append(label(0, axis.end - 12, name, size=12))
    return parts


def tick_text(value: float) -> str:
    """A round number as it is printed.

    >>> tick_text(0.30000000000000004), tick_text(-1.0)
    ('0.3', '−1')
    """
    return f"{value:.6g}".replace("-", "−")


def _grid_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), stroke=LINE)


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted - 1e-12)
