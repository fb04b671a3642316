"""What drives a model over a whole dataset: bars with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from gstarx._internal import rounding
from gstarx.drawing.picture import Picture, Scene, card
from gstarx.drawing.plots import Axis, horizontal, wide_enough
from gstarx.drawing.svg import (
    INK,
    LINE,
    MUTED,
    NEGATIVE,
    POSITIVE,
    element,
    fitted,
    group,
    hatched_box,
    label,
    number,
    text_width,
    tip,
)

_ROW, _BAR, _HEADING, _BELOW = 24.0, 12.0, 30.0, 44.0
_SMALL = 12.0
_FIGURES = 142.0
_UNCLEAR = "interval includes 0, or too few graphs"
_COLORS = {
    "for": POSITIVE,
    "raises": POSITIVE,
    "against": NEGATIVE,
    "lowers": NEGATIVE,
    "unclear": LINE,
}


class SummaryLike(Protocol):
    """What the chart needs to know about a group, as in a summary."""

    @property
    def name(self) -> str:
        """The group."""

    @property
    def explained(self) -> str:
        """The class or output that was explained."""

    @property
    def mean(self) -> float:
        """Its mean score."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""

    @property
    def high(self) -> float:
        """The upper end of the interval."""

    @property
    def graphs(self) -> int:
        """How many graphs contain it."""

    @property
    def sign(self) -> str:
        """``"for"`` or ``"against"``, ``"raises"`` or ``"lowers"``, or ``"unclear"``."""


def summary_chart(
    rows: Sequence[SummaryLike],
    *,
    title: str | None = None,
    most: int = 12,
    width: float = 640,
) -> Picture:
    """The mean scores of groups over a dataset as bars with their 95% intervals.

    Bars of groups that support the explained class, or raise the value, are orange, those of groups
    that count against it, or lower it, blue, and gray and hatched if the interval includes 0. Each
    explained class has its own part.

    Parameters
    ----------
    rows
        The rows of a summary.
    title
        What to print above.
    most
        The largest number of groups for each class: those with the largest means, either way, of
        which something is known, and then the others.
    width
        Of the drawing.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> row = SimpleNamespace(
    ...     name="nitro", explained="active", mean=0.4, low=0.3, high=0.5, graphs=20, sign="for"
    ... )
    >>> summary_chart([row]).title
    'Mean scores of groups'
    """
    if not rows:
        raise ValueError("rows must hold at least one group (got none)")
    parts = [(name, list(part)) for name, part in groupby(rows, key=lambda row: row.explained)]
    shown = [(name, _largest(part, most), len(part)) for name, part in parts]
    described = "; ".join(
        f"{row.name} {rounding.metric(row.mean)} ({rounding.metric(row.low)} to "
        f"{rounding.metric(row.high)}), {row.graphs} graphs, {row.sign} {name}"
        for name, part, _ in shown
        for row in part
    )
    return card(
        _scene(shown, width),
        title=title,
        alternative="Mean scores of groups",
        description=f"Mean scores of groups with 95% intervals: {described}.",
        legend=_legend({row.sign for row in rows}),
    )


def _largest(rows: Sequence[Any], most: int) -> list[Any]:
    order = sorted(rows, key=lambda row: (row.sign == "unclear", -abs(row.mean)))
    shown = {id(row) for row in order[:most]}
    return [row for row in rows if id(row) in shown]


def _scene(parts: Sequence[tuple[str, list[Any], int]], width: float) -> Scene:
    rows = [row for _, part, _ in parts for row in part]
    side = min(0.36 * width, max(text_width(row.name, _SMALL) for row in rows) + 12)
    numbers = np.array([0.0, *(n for row in rows for n in (row.mean, row.low, row.high))])
    axis = Axis(*wide_enough(numbers), side, width - _FIGURES)
    bottom = sum(_HEADING + _ROW * len(part) for _, part, _ in parts)
    drawn = horizontal(axis, 4.0, bottom, "mean score: the sum over a group")
    zero = f"M{number(axis(0.0))} 4V{number(bottom)}"
    drawn.append(element("path", d=zero, stroke=INK, stroke_width=1.0))
    top = 0.0
    for name, part, count in parts:
        more = f" ({len(part)} of {count} groups)" if len(part) < count else ""
        heading = fitted(f"{name}{more}", 13, width)
        drawn.append(_on_paper(0.0, top + 20, heading, width=text_width(heading, 13)))
        top += _HEADING
        for row in part:
            drawn.append(_bar(row, axis, top + _ROW / 2, side, width))
            top += _ROW
    return Scene(width, bottom + _BELOW, group(*drawn))


def _legend(signs: set[str]) -> Scene:
    """What the colors of bars mean."""
    parts, x = [], 0.0
    # of rows that are all unclear, nobody knows whether a class or a value was explained
    words = ("raises", "lowers") if signs & {"raises", "lowers"} else ("for", "against")
    for sign in (*words, "unclear") if signs & {*words} else ("unclear",):
        meaning = _UNCLEAR if sign == "unclear" else sign
        parts.append(_filled(sign, x, 1.0, 18.0))
        parts.append(label(x + 24, 11, meaning, size=11, fill=MUTED))
        x += 24 + text_width(meaning, 11) + 16
    return Scene(x - 16, 14, group(*parts))


def _filled(sign: str, left: float, top: float, width: float) -> str:
    bar = element(
        "rect",
        x=left,
        y=top,
        width=width,
        height=_BAR,
        fill=_COLORS[sign],
        stroke=MUTED,
        stroke_width=0.6,
    )
    hatched = sign == "unclear" and width > 4
    return bar + (hatched_box(left, top, width, _BAR, step=5.0) if hatched else "")


def _on_paper(x: float, y: float, text: str, *, width: float) -> str:
    """A heading that no line of the grid crosses."""
    paper = element("rect", x=x, y=y - 13, width=width + 6, height=18.0, fill="#ffffff")
    return paper + label(x, y, text, size=13, font_weight=600)


def _bar(row: Any, axis: Axis, y: float, side: float, width: float) -> str:
    left, right = sorted((axis(0.0), axis(row.mean)))
    bar = _filled(row.sign, left, y - _BAR / 2, max(right - left, 0.8))
    low, high = axis(row.low), axis(row.high)
    caps = "".join(f"M{number(x)} {number(y - 4)}v8" for x in (low, high))
    interval = f"M{number(low)} {number(y)}H{number(high)}{caps}"
    graphs = f"{row.graphs} graph{'s' * (row.graphs != 1)}"
    description = (
        f"{row.name}: {rounding.metric(row.mean)}, {rounding.metric(row.low)} to "
        f"{rounding.metric(row.high)}, {graphs}, {row.sign}"
    )
    name = fitted(row.name, _SMALL, side - 12)
    return group(
        tip(description),
        label(side - 10, y + 4, name, size=_SMALL, text_anchor="end"),
        bar,
        element("path", d=interval, stroke=INK, stroke_width=1.4, fill="none")
        if row.graphs > 1
        else "",
        label(width - _FIGURES + 10, y + 4, rounding.metric(row.mean), size=_SMALL),
        label(width, y + 4, graphs, size=11, fill=MUTED, text_anchor="end"),
    )
