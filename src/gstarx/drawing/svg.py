"""SVG as text: elements with escaped attributes and texts."""

from __future__ import annotations

import unicodedata
from html import escape

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.markup import printable

#: Common system fonts; a PNG falls back on one that is always available.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#1b1f24"
MUTED = "#5c6670"
LINE = "#d5dae0"
CARD = "#ffffff"
#: For what the reader must not overlook; neither of the colors of scores.
WARNING = "#8f1d5b"
#: Light enough for letters above it.
_HATCH = "#98a2ac"

#: Widths of letters as shares of the font size, for a sans-serif of ordinary width.
_NARROW = dict.fromkeys("ijl|!.,;:'`", 0.3) | dict.fromkeys('ftrI()[]{}"-/\\ *', 0.38)
_WIDE = dict.fromkeys("mwMW@%—", 0.88) | dict.fromkeys("ABCDGHKNOQRUVXY&=+<>~^→", 0.72)
_WIDTHS = _NARROW | _WIDE


def escaped(text: object) -> str:
    r"""Text for SVG, inside elements and attributes; what XML forbids becomes U+FFFD.

    >>> escaped('<b title="x">\x00')
    '&lt;b title=&quot;x&quot;&gt;�'
    """
    return escape(printable(str(text)), quote=True)


def number(value: float) -> str:
    """A coordinate with at most two digits after the point.

    >>> number(3.14159), number(2.0), number(-0.001)
    ('3.14', '2', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def signed(value: float) -> str:
    """A score as it is printed: with its sign, three digits.

    >>> signed(0.12345), signed(-2.0), signed(0.0), signed(1.5e-6)
    ('+0.123', '−2', '0', '+1.5e-06')
    """
    if value == 0:
        return "0"
    return f"{value:+.3g}".replace("-", "−", 1) if value < 0 else f"{value:+.3g}"


def element(tag: str, content: str = "", **attributes: object) -> str:
    """An element; ``content`` is markup already.

    Underscores in the names of attributes become hyphens, ``None`` leaves one out, and floats are
    rounded.

    >>> element("circle", r=2.0, stroke_width=None, fill="#fff")
    '<circle r="2" fill="#fff"/>'
    """
    parts = [tag]
    for name, value in attributes.items():
        if value is None:
            continue
        text = number(value) if isinstance(value, float) else str(value)
        parts.append(f'{name.rstrip("_").replace("_", "-")}="{escaped(text)}"')
    opened = " ".join(parts)
    return f"<{opened}>{content}</{tag}>" if content else f"<{opened}/>"


def label(x: float, y: float, text: str, *, size: float = 12, **attributes: object) -> str:
    """A line of text, by default in the font and color of the picture."""
    style = {"fill": INK, "font_family": FONT, **attributes}
    return element("text", escaped(text), x=float(x), y=float(y), font_size=float(size), **style)


def line(
    places: NDArray[np.float64], a: int, b: int, content: str = "", **attributes: object
) -> str:
    """A line between two of the places (n, 2)."""
    (x1, y1), (x2, y2) = places[a].tolist(), places[b].tolist()
    return element("line", content, x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def group(*parts: str, **attributes: object) -> str:
    """Elements together."""
    return element("g", "".join(parts), **attributes)


def moved(content: str, x: float, y: float) -> str:
    """Elements shifted."""
    return group(content, transform=f"translate({number(x)} {number(y)})")


def tip(text: str) -> str:
    """What a browser shows when the pointer rests on the element around it."""
    return element("title", escaped(text))


def text_width(text: str, size: float) -> float:
    """The approximate width of a text, more often too wide than too narrow.

    >>> text_width("iii", 10) < text_width("nnn", 10) < text_width("mmm", 10)
    True
    """
    total = 0.0
    for character in text:
        if unicodedata.combining(character):
            continue
        wide = unicodedata.east_asian_width(character) in "WF"
        total += 1.0 if wide else _WIDTHS.get(character, 0.6)
    return total * size


def fitted(text: str, size: float, width: float) -> str:
    """A text, truncated with an ellipsis if it is wider than ``width``.

    >>> fitted("a long title", 10, 40)
    'a long…'
    """
    if text_width(text, size) <= width:
        return text
    shortened = text
    while shortened and text_width(shortened + "…", size) > width:
        shortened = shortened[:-1]
    return shortened.rstrip() + "…"


def wrapped(text: str, size: float, width: float) -> list[str]:
    """A text in lines of at most ``width``; a word that is wider is truncated.

    >>> wrapped("predicted: a nitro compound", 10, 90)
    ['predicted: a nitro', 'compound']
    """
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fitted(word, size, width))
    return lines


def hatched_disc(x: float, y: float, radius: float, *, step: float = 5.0) -> str:
    """Slanted lines across a disc."""
    lines = []
    for at in range(-int(radius // step), int(radius // step) + 1):
        shift = at * step / 2**0.5
        half = (max(radius**2 - (at * step) ** 2, 0.0) / 2) ** 0.5
        if half > 1:
            a, b = x + shift, y + shift
            lines.append((a - half, b + half, a + half, b - half))
    return _hatching(lines)


def hatched_box(left: float, top: float, width: float, height: float, *, step: float = 8.0) -> str:
    """Slanted lines across a box."""
    lines = []
    for at in range(1, int((width + height) // step) + 1):
        reach = at * step
        down, across = min(reach, height), min(reach, width)
        lines.append((left + reach - down, top + down, left + across, top + reach - across))
    return _hatching(lines)


def _hatching(lines: list[tuple[float, float, float, float]]) -> str:
    path = "".join(f"M{number(a)} {number(b)}L{number(c)} {number(d)}" for a, b, c, d in lines)
    return element("path", d=path, stroke=_HATCH, stroke_width=0.9, pointer_events="none")
