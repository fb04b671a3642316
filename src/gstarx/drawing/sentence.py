"""The layout of sentences: words in reading order, with dependencies as arcs above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gstarx.drawing.geometry import Geometry, Mark, NodePlace
from gstarx.drawing.svg import fitted, number, text_width

FONT_SIZE = 15.0
#: Height of the box around a word.
BOX = 26.0
_PADDING = 6.0
_SPACE = 7.0
_LEVEL = 11.0
_HIGHEST = 7
_BETWEEN_LINES = 12.0
_SPREAD = 4.0
#: Color of arcs.
ARC = "#8a94a0"


@dataclass(frozen=True)
class _Word:
    """The place of a word: its line, its left edge, its width, and the text shown."""

    line: int
    left: float
    width: float
    shown: str

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True)
class _Arc:
    """One arc on one line, from ``start`` to ``end``; open where it continues on another line."""

    line: int
    start: float
    end: float
    words: tuple[int, int]
    opens_right: bool = False
    opens_left: bool = False


def sentence_geometry(
    words: Sequence[str], pairs: Sequence[tuple[int, int]], title: str, *, width: float = 760
) -> Geometry:
    """Where the words of a sentence go, and the arcs between them as marks, high ones first."""
    placed = _placed(words, width)
    lines = placed[-1].line + 1
    full = max(word.left + word.width for word in placed)
    arcs = _arcs(placed, pairs, full)
    levels = _levels(arcs)
    heights = [
        max((min(levels[i], _HIGHEST) for i, a in enumerate(arcs) if a.line == line), default=0)
        * _LEVEL
        + 6
        for line in range(lines)
    ]
    tops = [sum(heights[:i]) + i * (BOX + _BETWEEN_LINES) + heights[i] for i in range(lines)]
    marks = [
        Mark(_arc_path(arc, level, tops[arc.line]), stroke=ARC, width=1.1, ends=arc.words)
        for arc, level in sorted(zip(arcs, levels, strict=True), key=lambda pair: -pair[1])
    ]
    nodes = [
        NodePlace(
            word.shown, name, word.middle, tops[word.line] + BOX / 2, width=word.width, height=BOX
        )
        for name, word in zip(words, placed, strict=True)
    ]
    height = tops[-1] + BOX + 2
    return Geometry("sentence", title, full, height, tuple(nodes), tuple(pairs), tuple(marks))


def _placed(words: Sequence[str], width: float) -> list[_Word]:
    """Words line by line, as many in each as fit."""
    placed: list[_Word] = []
    line, x = 0, 2.0
    for word in words:
        shown = fitted(word, FONT_SIZE, width - 2 * _PADDING - 4)
        wide = text_width(shown, FONT_SIZE) + 2 * _PADDING
        if placed and x + wide > width - 2:
            line, x = line + 1, 2.0
        placed.append(_Word(line, x, wide, shown))
        x += wide + _SPACE
    # lines of similar length read better than a last line with a single word
    if line and x < width / 2 and width > 200:
        narrower = max(width - (width - x) / (line + 1) + 40, width / 2)
        again = _placed(words, narrower) if narrower < width - 20 else placed
        return again if again[-1].line == line else placed
    return placed


def _arcs(words: Sequence[_Word], pairs: Sequence[tuple[int, int]], full: float) -> list[_Arc]:
    """Every arc once, or in two parts where its words are on two lines."""
    offsets = _offsets(words, pairs)
    arcs: list[_Arc] = []
    for pair in pairs:
        a, b = pair
        start, end = words[a].middle + offsets[a, b], words[b].middle + offsets[b, a]
        if words[a].line == words[b].line:
            arcs.append(_Arc(words[a].line, start, end, pair))
        else:
            arcs.append(_Arc(words[a].line, start, full, pair, opens_right=True))
            arcs.append(_Arc(words[b].line, 0.0, end, pair, opens_left=True))
    return arcs


def _offsets(
    words: Sequence[_Word], pairs: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """How far from the middle of a word its arc to another begins, so that arcs do not cross."""
    offsets: dict[tuple[int, int], float] = {}
    for word in range(len(words)):
        others = sorted({a + b - word for a, b in pairs if word in (a, b)})
        left = [other for other in others if other < word]
        right = [other for other in others if other > word][::-1]
        # from left to right: the nearest on the left first, the nearest on the right last
        order = [*left[::-1], *right]
        available = max(0.0, words[word].width - 2 * _PADDING)
        step = min(_SPREAD, available / max(1, len(order) - 1)) if len(order) > 1 else 0.0
        for place, other in enumerate(order):
            offsets[word, other] = (place - (len(order) - 1) / 2) * step
    return offsets


def _levels(arcs: Sequence[_Arc]) -> list[int]:
    """How high each arc goes: one above the highest of those below it."""
    order = sorted(range(len(arcs)), key=lambda i: arcs[i].end - arcs[i].start)
    levels = [0] * len(arcs)
    for place, i in enumerate(order):
        under = [
            levels[j]
            for j in order[:place]
            if arcs[j].line == arcs[i].line
            and arcs[j].start < arcs[i].end
            and arcs[j].end > arcs[i].start
        ]
        levels[i] = 1 + max(under, default=0)
    return levels


def _arc_path(arc: _Arc, level: int, base: float) -> str:
    top = base - min(level, _HIGHEST) * _LEVEL
    bend = min(12.0, (arc.end - arc.start) / 2)
    path = f"M{number(arc.start)} {number(base - 1)}"
    if arc.opens_left:
        path = f"M{number(arc.start)} {number(top)}"
    else:
        path += f"Q{number(arc.start)} {number(top)} {number(arc.start + bend)} {number(top)}"
    if arc.opens_right:
        path += f"H{number(arc.end)}"
    else:
        path += (
            f"H{number(arc.end - bend)}Q{number(arc.end)} {number(top)} "
            f"{number(arc.end)} {number(base - 1)}"
        )
    return path
