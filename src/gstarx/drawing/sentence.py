"""Sentences: words in reading order, tinted by their scores, with dependencies as arcs above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import TIE_DASHES, Picture, Scene, card, color_bar
from gstarx.drawing.svg import (
    INK,
    LINE,
    element,
    fitted,
    group,
    hatched_box,
    label,
    number,
    text_width,
    tip,
)

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


def draw_sentence(
    words: Sequence[str],
    edges: Any,
    scores: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    std_errors: ArrayLike | None = None,
    limit: float | None = None,
    title: str | None = None,
    caption: str | None = None,
    legend: bool = True,
    width: float = 760,
) -> Picture:
    """Words tinted by their scores in reading order, with dependencies as arcs above them.

    Long sentences wrap. An arc between two lines leaves the first on the right and enters the
    second from the left.

    Parameters
    ----------
    words
        The words.
    edges
        Which words are joined: an ``edge_index`` (2, E), in one direction or both, or pairs of
        positions (E, 2). Two edges are read as an ``edge_index``, (2, 2).
    scores
        A score per word.
    selected
        Words to outline: ids, or a boolean mask.
    std_errors, limit, title, caption, legend
        As for :func:`draw_molecule`.
    width
        The largest width of a line.

    Examples
    --------
    >>> picture = draw_sentence(["not", "bad"], [[0], [1]], [0.6, 0.3], [0, 1])
    >>> picture.title
    'Sentence: not bad'
    """
    if isinstance(words, str):
        raise TypeError("words must be a list of words (got one string)")
    listed = [str(word) for word in words]
    painted = Painted.of(scores, selected, limit, listed, std_errors=std_errors)
    return card(
        sentence_scene(painted, as_pairs(edges, len(listed)), width=width),
        title=title,
        caption=caption,
        alternative=f"Sentence: {' '.join(listed)}",
        description=painted.described("word"),
        legend=color_bar(painted.limit, marks=painted.marks) if legend else None,
    )


def as_pairs(edges: Any, count: int) -> list[tuple[int, int]]:
    """Joined words as pairs, smaller first, each once."""
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


def sentence_scene(
    painted: Painted, pairs: Sequence[tuple[int, int]], *, width: float = 760
) -> Scene:
    """The drawing alone."""
    words = laid_out(painted.names, pairs, width=width)
    parts = [_drawn_arc(path, ends, painted) for path, ends in words.arcs]
    parts += [_drawn_word(i, word, painted) for i, word in enumerate(words.boxes)]
    return Scene(words.width, words.height, group(*parts))


@dataclass(frozen=True)
class Box:
    """The box of a word: its upper left corner, its width, and the text shown."""

    left: float
    top: float
    width: float
    shown: str


@dataclass(frozen=True)
class LaidOut:
    """The layout of a sentence: boxes, arcs as SVG paths with the words they join, and size."""

    boxes: tuple[Box, ...]
    arcs: tuple[tuple[str, tuple[int, int]], ...]
    width: float
    height: float


def laid_out(
    words: Sequence[str], pairs: Sequence[tuple[int, int]], *, width: float = 760
) -> LaidOut:
    """Where the words of a sentence go, and the arcs between them, high ones first."""
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
    paths = [
        (_arc_path(arc, level, tops[arc.line]), arc.words)
        for arc, level in sorted(zip(arcs, levels, strict=True), key=lambda pair: -pair[1])
    ]
    boxes = [Box(word.left, tops[word.line], word.width, word.shown) for word in placed]
    return LaidOut(tuple(boxes), tuple(paths), full, tops[-1] + BOX + 2)


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


def _drawn_arc(path: str, ends: tuple[int, int], painted: Painted) -> str:
    selected = bool(painted.selected[list(ends)].all())
    return element(
        "path",
        d=path,
        fill="none",
        stroke=INK if selected else ARC,
        stroke_width=1.8 if selected else 1.1,
        stroke_linecap="round",
    )


def _drawn_word(place: int, word: Box, painted: Painted) -> str:
    tied = bool(painted.tied[place])
    outlined = bool(painted.selected[place]) or tied
    box = element(
        "rect",
        x=word.left,
        y=word.top,
        width=word.width,
        height=BOX,
        rx=5,
        fill=painted.color(place),
        stroke=INK if outlined else LINE,
        stroke_width=2.0 if outlined else 0.7,
        stroke_dasharray=TIE_DASHES if tied else None,
    )
    if painted.uncertain[place]:
        box += hatched_box(word.left, word.top, word.width, BOX)
    x, y = word.left + word.width / 2, word.top + BOX / 2 + FONT_SIZE * 0.35
    text = label(x, y, word.shown, size=FONT_SIZE, text_anchor="middle")
    return group(tip(painted.caption(place)), box, text)
