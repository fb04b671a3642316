"""The card around a drawing: title, color bar, and a description for screen readers."""

from __future__ import annotations

from dataclasses import dataclass

from gstarx.drawing.colors import score_color
from gstarx.drawing.picture import Picture
from gstarx.drawing.svg import (
    CARD,
    INK,
    LINE,
    MUTED,
    element,
    escaped,
    fitted,
    group,
    label,
    moved,
    number,
    signed,
    text_width,
)

_PADDING = 16.0
_TITLE = 15.0
_BAR_WIDTH, _BAR_HEIGHT, _BAR_STEPS = 132.0, 10.0, 33
_SMALL = 11.0


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
    legend
        What goes below.
    paper
        Whether it has its own background.
    """
    inner = max(scene.width, legend.width if legend else 0.0, 120.0)
    width, top = inner + 2 * _PADDING, _PADDING
    parts = [
        element(
            "rect",
            x=0.5,
            y=0.5,
            width=width - 1,
            height="HEIGHT",
            rx=10,
            fill=CARD,
            stroke=LINE,
        )
    ]
    if title:
        shown = fitted(title, _TITLE, inner)
        parts.append(label(_PADDING, top + _TITLE - 2, shown, size=_TITLE, font_weight=600))
        top += _TITLE + 10
    parts.append(moved(scene.body, _PADDING + (inner - scene.width) / 2, top))
    top += scene.height
    if legend:
        top += 12
        parts.append(moved(legend.body, _PADDING + (inner - legend.width) / 2, top))
        top += legend.height
    height = top + _PADDING
    parts[0] = parts[0].replace("HEIGHT", number(height - 1)) if paper else ""
    name = title or alternative
    content = element("title", escaped(name)) + element("desc", escaped(description))
    svg = element(
        "svg",
        content + "".join(parts),
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=f"{name}. {description}",
    )
    return Picture(svg, name)


def color_bar(limit: float, *, selected: bool, numbers: bool = True) -> Scene:
    """The legend: the meaning and range of colors, and the outline of selected nodes.

    Parameters
    ----------
    limit
        The score at which colors end.
    selected
        Whether anything is outlined.
    numbers
        Whether the ends carry numbers, rather than ``max``.
    """
    ends = (signed(-limit), signed(limit)) if numbers else ("−max", "+max")
    margin = max(text_width(end, _SMALL) for end in (*ends, "against", "for")) + 8
    step = _BAR_WIDTH / _BAR_STEPS
    half = _BAR_STEPS // 2
    parts = [
        # a little wider than a step, or thin gaps show between them
        element(
            "rect",
            x=margin + i * step,
            y=2.0,
            width=step + (0.4 if i < _BAR_STEPS - 1 else 0.0),
            height=_BAR_HEIGHT,
            fill=score_color(i - half, half),
        )
        for i in range(_BAR_STEPS)
    ]
    parts.append(
        element(
            "rect",
            x=margin,
            y=2.0,
            width=_BAR_WIDTH,
            height=_BAR_HEIGHT,
            fill="none",
            stroke=MUTED,
            stroke_width=0.6,
        )
    )
    right = margin + _BAR_WIDTH
    parts += [
        _small(margin - 6, 11, ends[0], text_anchor="end"),
        _small(right + 6, 11, ends[1]),
        _small(margin + _BAR_WIDTH / 2, 25, "0", text_anchor="middle"),
        _small(margin, 25, "against"),
        _small(right, 25, "for", text_anchor="end"),
    ]
    width = right + margin
    if selected:
        parts.append(
            element("circle", cx=width + 16, cy=7.0, r=6.0, fill=CARD, stroke=INK, stroke_width=2.2)
        )
        parts.append(_small(width + 28, 11, "selected"))
        width += 28 + text_width("selected", _SMALL)
    return Scene(width, 28, group(*parts))


def _small(x: float, y: float, text: str, **attributes: object) -> str:
    return label(x, y, text, size=_SMALL, fill=MUTED, **attributes)
