"""Color-blind safe colors: a diverging scale for scores, a palette for lines."""

from __future__ import annotations

#: Ends of the scale: orange supports the prediction, blue opposes it. Both are light enough for
#: black letters, and differ in blue and yellow, which nearly everyone can tell apart.
POSITIVE = "#ee7326"
NEGATIVE = "#4a90e2"
_WHITE = "#ffffff"

#: Colors for lines that are distinct with any kind of color vision (Okabe and Ito, 2008), in the
#: order of use, without yellow, which is hard to see on white.
LINES = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


def score_color(score: float, limit: float) -> str:
    """The color of a score: white at 0, and full at ``limit`` and beyond, either way.

    Steps look even because colors are interpolated linearly in the OKLab space.

    Examples
    --------
    >>> score_color(0.0, 1.0), score_color(1.0, 1.0), score_color(-3.0, 1.0)
    ('#ffffff', '#ee7326', '#4a90e2')
    """
    share = min(1.0, abs(score) / limit)
    end = POSITIVE if score > 0 else NEGATIVE
    white, full = _to_oklab(_WHITE), _to_oklab(end)
    return _from_oklab([(1 - share) * a + share * b for a, b in zip(white, full, strict=True)])


def _channels(color: str) -> list[float]:
    """Linear red, green and blue."""
    encoded = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in encoded]


def _to_oklab(color: str) -> list[float]:
    r, g, b = _channels(color)
    lms = (
        0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
        0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
        0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
    )
    long, medium, short = (value ** (1 / 3) for value in lms)
    return [
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    ]


def _from_oklab(lab: list[float]) -> str:
    lightness, a, b = lab
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    clipped = [min(1.0, max(0.0, c)) for c in linear]
    seen = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in clipped]
    return "#" + "".join(f"{round(255 * c):02x}" for c in seen)
