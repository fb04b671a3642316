"""Explanations whose players are not nodes: tinted edges, outlined groups, bars of features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing import graph as graphs
from gstarx.drawing import molecule as molecules
from gstarx.drawing import sentence as sentences
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import TIE_DASHES, Scene
from gstarx.drawing.sentence import ARC
from gstarx.drawing.svg import (
    CARD,
    INK,
    LINE,
    element,
    fitted,
    group,
    label,
    line,
    moved,
    number,
    signed,
    text_width,
    tip,
)
from gstarx.players import named_edges, named_groups

#: Colors of groups that color-blind readers can distinguish (Okabe and Ito), in pale and in full.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8000", "#5f5f5f")
_EDGE_WIDTH, _SELECTED = 11.0, 3.0
#: The outline of an edge that is tied at the cut: round ends would close the gaps.
_DASHED: dict[str, object] = {"stroke_dasharray": TIE_DASHES, "stroke_linecap": "butt"}
#: The part of a bond that a bar leaves free at each end, for the letters of atoms.
_SHORTER = 0.2
_ROW, _TEXT, _BAR = 19.0, 11.0, 130.0
#: Rows of a list of players below a picture, and of bars.
_LISTED, _BARS = 12, 30
_WIDTH, _SENTENCE = 460.0, 760.0


@dataclass(frozen=True)
class Layout:
    """Where the nodes of a graph are drawn, and what is drawn over the scores.

    Attributes
    ----------
    places
        The middle of every node, (n, 2).
    radius
        Of a node.
    width, height
        Of the drawing.
    lines
        What goes over the colors: RDKit's lines and letters, or the nodes.
    shorter
        The part of an edge that is left free at each of its ends.
    """

    places: NDArray[np.float64]
    radius: float
    width: float
    height: float
    lines: str
    shorter: float = 0.0

    @classmethod
    def of(cls, kind: str, source: Any, names: Sequence[str], seed: int, wide: float) -> Layout:
        """The layout of a molecule, or of nodes and edges with their names."""
        if kind == "molecule":
            shapes, places, low, high = molecules.laid_out(source)
            drawn = group(*(element(s.tag, **s.attributes) for s in shapes), pointer_events="none")
            shifted = group(drawn, transform=f"translate({number(-low[0])} {number(-low[1])})")
            width, height = (float(side) for side in high - low)
            return cls(places - low, molecules.RADIUS, width, height, shifted, _SHORTER)
        places, radius, height = graphs.laid_out(source, len(names), seed=seed, width=wide)
        nodes = [
            _plain_node(float(x), float(y), radius, name)
            for (x, y), name in zip(places, names, strict=True)
        ]
        return cls(places, radius, wide, height, group(*nodes, pointer_events="none"))


def players_scene(
    explanation: Any,
    painted: Painted,
    kind: str,
    source: Any,
    names: Sequence[str],
    *,
    seed: int = 0,
    width: float | None = None,
) -> Scene:
    """The drawing of an explanation by its players; ``width`` is of graphs and sentences."""
    if explanation.player_kind.endswith("features"):
        return feature_bars(painted)
    if kind == "sentence":
        drawn = _sentence(explanation, painted, source, names, width or _SENTENCE)
    else:
        pairs = molecules.bonds_of(source) if kind == "molecule" else source
        layout = Layout.of(kind, source, names, seed, width or _WIDTH)
        if explanation.player_kind == "edges":
            shapes = _edges(layout, explanation.player_edges.numpy(), painted, pairs)
        else:
            shapes = [*_groups(layout, explanation.groups, painted, pairs), layout.lines]
        drawn = Scene(layout.width, layout.height, group(*shapes))
    if explanation.player_kind == "edges":
        return drawn
    rows = _list_of_groups(painted, min(drawn.width, _WIDTH))
    below = drawn.height + 10
    return Scene(
        max(drawn.width, rows.width),
        below + rows.height,
        group(drawn.body, moved(rows.body, 0, below)),
    )


def _sentence(
    explanation: Any, painted: Painted, pairs: Any, names: Sequence[str], width: float
) -> Scene:
    """Words in lines: tinted arcs where edges play, joined boxes where phrases do."""
    placed = sentences.laid_out(names, pairs, width=width)
    if explanation.player_kind == "edges":
        arcs, player_of = _arcs(explanation.player_edges.tolist(), painted, placed), {}
    else:
        arcs = [_arc(path, ARC, 1.1) for path, _ in placed.arcs]
        player_of = {n: at for at, nodes in enumerate(explanation.groups) for n in nodes}
    boxes = [_joint(at, placed.boxes, player_of, painted) for at in range(len(placed.boxes) - 1)]
    boxes += [_word(box, player_of.get(at), painted) for at, box in enumerate(placed.boxes)]
    return Scene(placed.width, placed.height, group(*arcs, *boxes))


def _arc(path: str, color: str, width: float, content: str = "", **attributes: object) -> str:
    shape = {"fill": "none", "stroke_linecap": "round", **attributes}
    return element("path", content, d=path, stroke=color, stroke_width=width, **shape)


def _arcs(ends: list[list[int]], painted: Painted, placed: sentences.LaidOut) -> list[str]:
    """Arcs in the color of their score; of two directions the second lies above the first."""
    parts = []
    for path, pair in placed.arcs:
        playing = [at for at, edge in enumerate(ends) if sorted(edge) == sorted(pair)]
        if not playing:
            parts.append(_arc(path, ARC, 1.1))
        for above, player in enumerate(playing):
            outlined = bool(painted.selected[player] or painted.tied[player])
            moved_up = f"translate(0 {number(-4.5 * above)})" if above else None
            said = tip(painted.caption(player))
            rim, wide = (INK, 6.4) if outlined else ("#9a9a9a", 5.0)
            dashes = _DASHED if painted.tied[player] else {}
            parts.append(_arc(path, rim, wide, said, transform=moved_up, **dashes))
            parts.append(_arc(path, painted.color(player), 3.8, said, transform=moved_up))
    return parts


def _joint(
    at: int, boxes: Sequence[sentences.Box], player_of: dict[int, int], painted: Painted
) -> str:
    """What joins two words of a group that follow each other on a line."""
    here, there = boxes[at], boxes[at + 1]
    player = player_of.get(at)
    if player is None or player != player_of.get(at + 1) or here.top != there.top:
        return ""
    start, end = here.left + here.width - 6, there.left + 6
    rim = _rim_of(player, painted)
    return "".join(
        element(
            "rect",
            x=start,
            y=here.top - grown,
            width=end - start,
            height=sentences.BOX + 2 * grown,
            fill=color,
        )
        for color, grown in ((_own_color(player), rim), (painted.color(player), 0.0))
    )


def _word(box: sentences.Box, player: int | None, painted: Painted) -> str:
    """A word in the color of its group, with the outline of the group; white if it has none."""
    layers = [(LINE, 0.7), (CARD, 0.0)]
    if player is not None:
        rim = _rim_of(player, painted)
        layers = [(_own_color(player), rim), (painted.color(player), 0.0)]
    boxes = [
        element(
            "rect",
            x=box.left - grown,
            y=box.top - grown,
            width=box.width + 2 * grown,
            height=sentences.BOX + 2 * grown,
            rx=5,
            fill=color,
        )
        for color, grown in layers
    ]
    size = sentences.FONT_SIZE
    x, y = box.left + box.width / 2, box.top + sentences.BOX / 2 + size * 0.35
    said = "" if player is None else tip(painted.caption(player))
    return group(said, *boxes, label(x, y, box.shown, size=size, text_anchor="middle"))


def _own_color(player: int) -> str:
    return _PALETTE[player % len(_PALETTE)]


def _rim_of(player: int, painted: Painted) -> float:
    return 3.2 if painted.selected[player] or painted.tied[player] else 1.6


def player_names(explanation: Any, names: Sequence[str]) -> list[str]:
    """What the players of an explanation are called, given the names of the nodes."""
    if explanation.player_edges is None:
        return named_groups(explanation.player_names, explanation.groups, names)
    return named_edges(explanation.player_edges.tolist(), names, symmetric=explanation.symmetric)


def feature_bars(painted: Painted) -> Scene:
    """A bar for every feature, the strongest first."""
    order = np.argsort(-np.abs(painted.scores), kind="stable")[:_BARS]
    wide = min(200.0, max(text_width(painted.names[i], _TEXT) for i in order) + 6)
    middle = wide + 10 + _BAR
    parts = []
    for row, player in enumerate(order.tolist()):
        top = row * _ROW
        length = _BAR * min(1.0, abs(float(painted.scores[player])) / (painted.limit or 1.0))
        left = middle - length if painted.scores[player] < 0 else middle
        chosen = bool(painted.selected[player])
        bar = element(
            "rect",
            tip(painted.caption(player)),
            x=left,
            y=top + 3,
            width=max(length, 0.8),
            height=_ROW - 6,
            fill=painted.color(player),
            stroke=INK if chosen else "#9a9a9a",
            stroke_width=1.6 if chosen else 0.6,
        )
        shown = fitted(painted.names[player], _TEXT, wide)
        weight = {"font_weight": 600} if chosen else {}
        parts += [
            label(wide, top + 13, shown, size=_TEXT, text_anchor="end", **weight),
            bar,
            label(middle + _BAR + 8, top + 13, signed(float(painted.scores[player])), size=_TEXT),
        ]
    height = len(order) * _ROW + 4
    parts.append(element("line", x1=middle, x2=middle, y1=0, y2=height, stroke=INK))
    left_out = len(painted.scores) - len(order)
    if left_out:
        parts.append(label(0, height + 12, f"and {left_out} more, with smaller scores", size=10))
        height += 18
    return Scene(middle + _BAR + 62, height, group(*parts))


def _edges(
    layout: Layout,
    ends: NDArray[np.int64],
    painted: Painted,
    pairs: Sequence[tuple[int, int]],
) -> list[str]:
    """Edges as bars in the color of their score, selected ones outlined; nodes over them."""
    wide = min(_EDGE_WIDTH, 1.1 * layout.radius)
    played = {tuple(sorted(pair)) for pair in ends.tolist()}
    parts = [
        line(layout.places, a, b, stroke="#b9b9b9", stroke_width=1.0)
        for a, b in pairs
        if tuple(sorted((a, b))) not in played
    ]
    beside = Counter(tuple(sorted(pair)) for pair in ends.tolist())
    lanes: Counter[tuple[int, int]] = Counter()
    order = np.argsort(np.abs(painted.scores), kind="stable")
    for player in order.tolist():
        a, b = ends[player].tolist()
        places = layout.places
        if beside[min(a, b), max(a, b)] > 1:  # directions lie beside each other
            along = places[b] - places[a]
            aside = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9)
            # those of one direction too, and alone they stay in the middle between both
            places = places + aside * wide * (0.55 + 1.1 * lanes[a, b])
            lanes[a, b] += 1
        start, end = places[a], places[b]
        inset = layout.shorter * (end - start)
        places = np.stack([start + inset, end - inset])
        outlined = bool(painted.selected[player] or painted.tied[player])
        under = [(INK if outlined else "#9a9a9a", wide + (_SELECTED if outlined else 1.0))]
        for color, width in [*under, (painted.color(player), wide)]:
            tied = bool(painted.tied[player]) and color == INK
            ends_of_line = _DASHED if tied else {"stroke_linecap": "round"}
            parts.append(
                line(
                    places,
                    0,
                    1,
                    tip(painted.caption(player)),
                    stroke=color,
                    stroke_width=width,
                    **ends_of_line,
                )
            )
    return [*parts, layout.lines]


def _groups(
    layout: Layout,
    sets: Sequence[Sequence[int]],
    painted: Painted,
    pairs: Sequence[tuple[int, int]],
) -> list[str]:
    """Every group as a soft shape: its score inside, its own color around it."""
    parts = [line(layout.places, a, b, stroke="#b9b9b9", stroke_width=1.0) for a, b in pairs]
    inner = min(layout.radius, 13.0)
    for at, nodes in enumerate(sets):
        rim = 4.2 if painted.selected[at] or painted.tied[at] else 2.2
        inside = set(nodes)
        bars = [(a, b) for a, b in pairs if a in inside and b in inside]
        shape = []
        for color, grown in ((_own_color(at), inner + rim), (CARD, inner)):
            shape += _blob(layout.places, nodes, bars, color, grown)
        shape += _blob(layout.places, nodes, bars, painted.color(at), inner)
        parts.append(group(tip(painted.caption(at)), *shape))
    return parts


def _blob(
    places: NDArray[np.float64],
    nodes: Sequence[int],
    bars: list[tuple[int, int]],
    color: str,
    radius: float,
) -> list[str]:
    """Discs around nodes and bars between them, of one color."""
    return [
        *(line(places, a, b, stroke=color, stroke_width=2 * radius) for a, b in bars),
        *(
            element("circle", cx=float(places[n][0]), cy=float(places[n][1]), r=radius, fill=color)
            for n in nodes
        ),
    ]


def _list_of_groups(painted: Painted, width: float) -> Scene:
    """The groups with their colors and scores, highest first."""
    wide = max(width, 300.0)
    order = np.argsort(-painted.scores, kind="stable")
    several = len(order) > _LISTED
    shown = order[: _LISTED - 1] if several else order
    parts = []
    for row, at in enumerate(shown.tolist()):
        top = row * _ROW
        name = fitted(painted.names[at], _TEXT, wide - 90)
        weight = {"font_weight": 600} if painted.selected[at] else {}
        parts += [
            element(
                "circle",
                cx=8.0,
                cy=top + 9,
                r=5.0,
                fill=painted.color(at),
                stroke=_own_color(at),
                stroke_width=2.6,
            ),
            label(20, top + 13, name, size=_TEXT, **weight),
            label(
                wide,
                top + 13,
                signed(float(painted.scores[at])),
                size=_TEXT,
                text_anchor="end",
                **weight,
            ),
        ]
    if several:
        rest = len(order) - len(shown)
        parts.append(label(20, len(shown) * _ROW + 13, f"and {rest} more", size=_TEXT))
    return Scene(wide, (len(shown) + several) * _ROW, group(*parts))


def _plain_node(x: float, y: float, radius: float, name: str) -> str:
    small = min(radius, 9.0)
    size = min(10.0, small * 0.95)
    parts = [element("circle", cx=x, cy=y, r=small, fill=CARD, stroke=INK, stroke_width=1.0)]
    if text_width(name, size) <= 2 * small and size >= 5:
        parts.append(label(x, y + size * 0.35, name, size=size, text_anchor="middle"))
    elif len(name) > 2 and size >= 5:
        parts.append(label(x, y - small - 2, name, size=9, text_anchor="middle"))
    return group(*parts)


def player_noun(explanation: Any) -> str:
    """What one of the players is."""
    return str(explanation.player_kind).removesuffix("s").replace("_", " ")


def painted_players(
    explanation: Any,
    names: Sequence[str],
    selected: Any,
    limit: float | None,
    *,
    by_score: bool,
    at_stake: float | None = None,
) -> Painted:
    """Scores, colors and outlines of the players of an explanation."""
    errors = explanation.std_errors
    known = None if errors is None or bool(errors.isnan().all()) else errors.numpy()
    painted = Painted.of(
        explanation.scores,
        selected,
        limit,
        player_names(explanation, names),
        std_errors=known,
        by_score=by_score,
        at_stake=at_stake,
    )
    # bars and shapes are not hatched
    return replace(painted, uncertain=np.zeros_like(painted.uncertain))
