"""SVG as text: elements with escaped attributes and texts, and the colors of all pictures."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.messages import printable

#: Common system fonts; a PNG falls back on one that is always available.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#1b1f24"
MUTED = "#5c6670"
LINE = "#d5dae0"
CARD = "#ffffff"
#: For what the reader must not overlook; neither of the colors of scores.
WARNING = "#8f1d5b"
#: Attributes of shapes drawn by other programs that are kept.
_KEPT = re.compile(
    "d|c[xy]|r[xy]?|[xy][12]?|width|height|points|transform|opacity|fill(-rule)?|"
    "stroke(-width|-linecap|-linejoin|-dasharray)?|font-(size|weight)|text-anchor|patternUnits|href"
)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
#: Light enough for letters above it.
_HATCH = "#98a2ac"

#: Widths of letters as shares of the font size, for a sans-serif of ordinary width.
_NARROW = dict.fromkeys("ijl|!.,;:'`", 0.3) | dict.fromkeys('ftrI()[]{}"-/\\ *', 0.38)
_WIDE = dict.fromkeys("mwMW@%—", 0.88) | dict.fromkeys("ABCDGHKNOQRUVXY&=+<>~^→", 0.72)
_WIDTHS = _NARROW | _WIDE
#: Ends of the scale: orange supports the prediction, blue opposes it. Both are light enough for
#: black letters, and differ in blue and yellow, which nearly everyone can tell apart.
POSITIVE = "#ee7326"
NEGATIVE = "#4a90e2"
#: From linear red, green and blue to the cones of the eye, and from their cube roots to OKLab.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
#: Colors for lines that are distinct with any kind of color vision (Okabe and Ito, 2008), in the
#: order of use, without yellow, which is hard to see on white.
LINES = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)


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


def score_color(score: float, limit: float) -> str:
    """The color of a score: white at 0, and full at ``limit`` and beyond, either way.

    Steps look even because colors are interpolated linearly in the OKLab space.

    Examples
    --------
    >>> score_color(0.0, 1.0), score_color(1.0, 1.0), score_color(-3.0, 1.0)
    ('#ffffff', '#ee7326', '#4a90e2')
    """
    share = min(1.0, abs(score) / limit)
    white, full = map(_to_oklab, (CARD, POSITIVE if score > 0 else NEGATIVE))
    cones = np.linalg.solve(_LAB, (1 - share) * white + share * full) ** 3
    linear = np.linalg.solve(_CONES, cones).clip(0.0, 1.0)
    seen = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in seen.tolist())


def _to_oklab(color: str) -> NDArray[np.float64]:
    encoded = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    lab: NDArray[np.float64] = _LAB @ np.cbrt(_CONES @ linear)
    return lab


def plain(part: Element, digits: int = 2) -> dict[str, str]:
    """Attributes of a shape that another program drew, with short numbers.

    Its style becomes attributes, because pages may forbid styles.
    """
    settings = (setting.partition(":") for setting in part.get("style", "").split(";"))
    found = {name.strip(): value.strip().removesuffix("px") for name, _, value in settings}
    found |= {name.rpartition("}")[2]: value for name, value in part.attrib.items()}
    return {
        name: _NUMBER.sub(lambda match: number(round(float(match[0]), digits)), value)
        for name, value in found.items()
        if _KEPT.fullmatch(name)
    }
