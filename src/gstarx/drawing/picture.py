"""The picture that every drawing function returns, and the card around a drawing."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gstarx._internal.files import write_atomically
from gstarx._internal.imports import require
from gstarx.drawing.svg import (
    CARD,
    INK,
    LINE,
    MUTED,
    element,
    escaped,
    fitted,
    group,
    hatched_disc,
    label,
    moved,
    number,
    score_color,
    signed,
    text_width,
    wrapped,
)

_SUFFIXES = (".svg", ".png", ".pdf")
#: The most pixels of a PNG, four bytes each: more is a mistake in ``scale``.
_MOST_PIXELS = 1 << 27
_PADDING = 16.0
_TITLE = 15.0
#: How much wider bold letters are, and how wide a title makes a picture before it is truncated.
_BOLD, _WIDEST_TITLE = 1.13, 480.0
_BAR_WIDTH, _BAR_HEIGHT, _BAR_STEPS = 132.0, 10.0, 33
_SMALL = 11.0
_CAPTION = 13.0
#: What the marks of nodes mean.
MARKS = {"selected": "selected", "tie": "tie at the cut", "uncertain": "interval includes 0"}
_LINE_WIDTH = 260.0
#: Of the outlines of nodes that are tied at the cut.
TIE_DASHES = "3.5 2.5"


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture as SVG, which notebooks display automatically.

    Attributes
    ----------
    svg
        The whole SVG document. It has its own light background, a title and a description for
        screen readers, and neither external resources nor scripts.
    title
        Its title, unescaped.
    """

    svg: str
    title: str = ""

    def __repr__(self) -> str:
        width, height = self.size
        return f"Picture({self.title!r}, {width:g} x {height:g})"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, in units of the SVG."""
        match = re.match(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"', self.svg)
        if match is None:
            raise ValueError(f"svg must have a width and height (got {self.svg[:80]!r})")
        return float(match[1]), float(match[2])

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG.

        Parameters
        ----------
        scale
            Pixels for each unit of the SVG.

        Notes
        -----
        Needs ``pip install 'gstarx[drawing]'``. The font is the system's, or one that comes with
        RDKit if the system has none.
        """
        if not scale > 0:
            raise ValueError(f"scale must be a number above 0 (got {scale!r})")
        width, height = self.size
        if not width * height * scale**2 <= _MOST_PIXELS:
            most = (_MOST_PIXELS / (width * height)) ** 0.5
            raise ValueError(f"scale must be at most {most:.3g} for this picture (got {scale!r})")
        resvg = require("resvg_py", extra="drawing")
        made: bytes = resvg.svg_to_bytes(svg_string=self.svg, zoom=float(scale), **_fonts())
        return bytes(made)

    def pdf(self, scale: float = 4.0) -> bytes:
        """The picture as a PDF page of its size, which holds it as pixels like :meth:`png`.

        Parameters
        ----------
        scale
            Pixels for each unit of the SVG, which is printed as a point: 4 is 288 per inch.
        """
        image = require("PIL.Image", extra="drawing")
        page = io.BytesIO()
        with image.open(io.BytesIO(self.png(scale))) as pixels:
            paper = image.new("RGB", pixels.size, "white")
            paper.paste(pixels, mask=pixels.getchannel("A") if pixels.mode == "RGBA" else None)
        paper.save(page, "PDF", resolution=72.0 * scale, title=self.title)
        return page.getvalue()

    def save(self, path: str | os.PathLike[str], *, scale: float | None = None) -> Path:
        """Write the picture to a file, completely or not at all.

        Parameters
        ----------
        path
            The file; its suffix ``.svg``, ``.png`` or ``.pdf`` sets the format. Missing directories
            are created.
        scale
            Pixels for each unit of the SVG: by default 2 in a PNG and 4 in a PDF.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.suffix.lower() not in _SUFFIXES:
            valid = ", ".join(map(repr, _SUFFIXES[:-1])) + f" or {_SUFFIXES[-1]!r}"
            raise ValueError(f"the name of a picture must end in {valid} (got {target.name!r})")
        pixels = {} if scale is None else {"scale": scale}
        make = {".png": self.png, ".pdf": self.pdf}.get(target.suffix.lower())
        write_file(target, self.svg.encode() if make is None else make(**pixels))
        return target

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The picture for notebooks, and its title where no picture can be shown."""
        return {"image/svg+xml": self.svg, "text/plain": self.title or "Picture"}


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise an error that says why it cannot be written."""
    try:
        write_atomically(path, content)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(error.errno, f"cannot write {path}: {why}") from error


@cache
def _fonts() -> dict[str, object]:
    """A font that is always available, for systems that have none."""
    folder = Path(require("rdkit.RDConfig", extra="drawing").RDDataDir) / "Fonts"
    files = [str(path) for path in (folder / "Telex-Regular.ttf",) if path.is_file()]
    return {"font_files": files, "sans_serif_family": "Telex"} if files else {}


@dataclass(frozen=True)
class Scene:
    """A drawing before its card: markup in a box from the origin to (width, height)."""

    width: float
    height: float
    body: str


def card(
    scene: Scene,
    *,
    title: str | None,
    alternative: str,
    description: str,
    caption: str | None = None,
    notes: Sequence[str] = (),
    legend: Scene | None = None,
    paper: bool = True,
) -> Picture:
    """A drawing on its light card.

    Parameters
    ----------
    scene
        The drawing.
    title
        Printed above it, truncated if it is too long.
    alternative
        The name of the picture if there is no title.
    description
        The picture in words.
    caption
        Printed below the title, in as many lines as it needs: what was predicted.
    notes
        Printed below the legend, each on a line of its own.
    legend
        What goes below.
    paper
        Whether it has its own background.
    """
    least = _LINE_WIDTH if caption or notes else 120.0
    wanted = min(text_width(title or "", _BOLD * _TITLE), _WIDEST_TITLE)
    inner = max(scene.width, legend.width if legend else 0.0, least, wanted)
    width, top = inner + 2 * _PADDING, _PADDING
    parts = []
    if title:
        shown = fitted(title, _BOLD * _TITLE, inner)
        parts.append(label(_PADDING, top + _TITLE - 2, shown, size=_TITLE, font_weight=600))
        top += _TITLE + (6 if caption else 10)
    if caption:
        lines = wrapped(caption, _CAPTION, inner)
        parts += _lines(lines, top, size=_CAPTION)
        top += len(lines) * _CAPTION * 1.35 + 8
    parts.append(moved(scene.body, _PADDING + (inner - scene.width) / 2, top))
    top += scene.height
    if legend:
        top += 12
        parts.append(moved(legend.body, _PADDING + (inner - legend.width) / 2, top))
        top += legend.height
    remarks = [line for note in notes for line in wrapped(note, _SMALL, inner)]
    if remarks:
        parts += _lines(remarks, top + 8, size=_SMALL, fill=MUTED)
        top += 8 + len(remarks) * _SMALL * 1.35
    alternative_text = f"{caption}. {description}" if caption else description
    background = _paper(width, top + _PADDING) if paper else ""
    return _document(
        background + "".join(parts), width, top + _PADDING, title or alternative, alternative_text
    )


def _lines(lines: Sequence[str], top: float, *, size: float, **attributes: object) -> list[str]:
    return [
        label(_PADDING, top + size * (0.85 + 1.35 * i), line, size=size, **attributes)
        for i, line in enumerate(lines)
    ]


def _paper(width: float, height: float) -> str:
    return element(
        "rect",
        x=0.5,
        y=0.5,
        width=width - 1,
        height=height - 1,
        rx=10,
        fill=CARD,
        stroke=LINE,
    )


def _document(body: str, width: float, height: float, name: str, description: str) -> Picture:
    content = element("title", escaped(name)) + element("desc", escaped(description))
    svg = element(
        "svg",
        content + body,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=f"{name}. {description}",
    )
    return Picture(svg, name)


def color_bar(
    limit: float, *, marks: Sequence[str] = (), numbers: bool = True, regression: bool = False
) -> Scene:
    """The legend: the meaning and range of colors, and what marks nodes.

    Parameters
    ----------
    limit
        The score at which colors end.
    marks
        Which of ``"selected"``, ``"tie"`` and ``"uncertain"`` to explain.
    numbers
        Whether the ends carry numbers, rather than ``max``.
    regression
        Whether scores raise and lower a value, rather than being for and against a class.
    """
    down, up = ("lowers", "raises") if regression else ("against", "for")
    ends = (signed(-limit), signed(limit)) if numbers else ("−max", "+max")
    margin = max(text_width(end, _SMALL) for end in (*ends, down, up)) + 8
    step = _BAR_WIDTH / _BAR_STEPS
    half = _BAR_STEPS // 2
    box: dict[str, Any] = {"y": 2.0, "height": _BAR_HEIGHT}
    parts = []
    for i in range(_BAR_STEPS):
        # a little wider than a step, or thin gaps show between them
        wide = step + (0.4 if i < _BAR_STEPS - 1 else 0.0)
        color = score_color(i - half, half)
        parts.append(element("rect", x=margin + i * step, width=wide, fill=color, **box))
    rim: dict[str, Any] = {"fill": "none", "stroke": MUTED, "stroke_width": 0.6}
    right, middle = margin + _BAR_WIDTH, margin + _BAR_WIDTH / 2
    parts += [
        element("rect", x=margin, width=_BAR_WIDTH, **box, **rim),
        _small(margin - 6, 11, ends[0], text_anchor="end"),
        _small(right + 6, 11, ends[1]),
        _small(middle, 25, "0", text_anchor="middle"),
        _small(margin, 25, down),
        _small(right, 25, up, text_anchor="end"),
    ]
    bar = Scene(right + margin, 28, group(*parts))
    if not marks:
        return bar
    explained = keys([(_SAMPLES[mark], MARKS[mark]) for mark in marks])
    width = max(bar.width, explained.width)
    placed = [
        moved(each.body, (width - each.width) / 2, top) for each, top in ((bar, 0), (explained, 34))
    ]
    return Scene(width, 48, group(*placed))


def keys(samples: Sequence[tuple[str, str]], width: float = math.inf) -> Scene:
    """Samples 16 wide and 14 high with what they mean, in rows of at most ``width``."""
    parts, x, y, widest = [], 0.0, 0.0, 0.0
    for sample, text in samples:
        wide = 20 + text_width(text, _SMALL)
        if x and x + wide > width:
            x, y = 0.0, y + 20
        parts.append(moved(sample + _small(20, 11, text), x, y))
        widest, x = max(widest, x + wide), x + wide + 16
    return Scene(widest, y + 14, group(*parts))


def _small(x: float, y: float, text: str, **attributes: object) -> str:
    return label(x, y, text, size=_SMALL, fill=MUTED, **attributes)


_SAMPLE: dict[str, Any] = {"cx": 8.0, "cy": 7.0, "r": 6.0, "fill": CARD}
_OUTLINED: dict[str, Any] = {"stroke": INK, "stroke_width": 2.2}
#: Samples of the marks of nodes.
_SAMPLES = {
    "selected": element("circle", **_SAMPLE, **_OUTLINED),
    "tie": element("circle", **_SAMPLE, **_OUTLINED, stroke_dasharray=TIE_DASHES),
    "uncertain": element("circle", **_SAMPLE, stroke=MUTED, stroke_width=0.8)
    + hatched_disc(8.0, 7.0, 6.0, step=4.0),
}
