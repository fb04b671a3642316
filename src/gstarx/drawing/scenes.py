"""Drawings without their cards: a layout with the scores of nodes, edges, groups or features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing.charts import feature_bars
from gstarx.drawing.geometry import Geometry, NodePlace, shape
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import TIE_DASHES, Scene, keys
from gstarx.drawing.svg import (
    CARD,
    INK,
    LINE,
    MUTED,
    element,
    fitted,
    group,
    hatched_box,
    hatched_disc,
    label,
    line,
    moved,
    number,
    score_color,
    signed,
    text_width,
    tip,
)

#: Colors of groups that color-blind readers can distinguish (Okabe and Ito), in pale and in full.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8000", "#5f5f5f")
_EDGE, _RIM, _THIN = "#a7b0ba", "#7b858f", "#9a9a9a"
#: Around selected atoms: the gap, the outline, and the width of a bridge along a bond.
_GAP, _OUTLINE, _BRIDGE = 1.4, 2.2, 15.0
_WORD = 15.0
#: The outline of an edge that is tied at the cut: round ends would close the gaps.
_DASHED: dict[str, object] = {"stroke_dasharray": TIE_DASHES, "stroke_linecap": "butt"}
#: The part of a bond that a bar leaves free at each end, for the letters of atoms.
_SHORTER = 0.2
_ROW, _TEXT = 19.0, 11.0
#: Rows of a list of players below a picture, and its width.
_LISTED, _WIDTH = 12, 460.0
#: How far a bow bends, as a share of its length, its widths, and the room around it.
_BEND, _WIDTHS, _AROUND = 0.32, (1.5, 6.0), 6.0


def nodes_scene(drawn: Geometry, painted: Painted) -> Scene:
    """Nodes in the colors of their scores, with the legend of shapes where nodes have types."""
    if drawn.kind == "molecule":
        return _scene(drawn, [*_atoms(drawn, painted), _over(drawn)])
    chosen = painted.selected
    heavy = [bool(chosen[a] and chosen[b]) for a, b in drawn.edges]
    joins = [_join(drawn, *pair, strong) for pair, strong in zip(drawn.edges, heavy, strict=True)]
    if drawn.kind == "sentence":
        return _scene(drawn, [*joins, *(_node(drawn, at, painted) for at in range(len(chosen)))])
    joins = [
        join
        for strong in (False, True)
        for join, own in zip(joins, heavy, strict=True)
        if own == strong
    ]
    # strong scores and selected nodes lie on top where nodes are close
    order = np.lexsort((np.abs(painted.scores), chosen | painted.tied)).tolist()
    scene = _scene(drawn, [*joins, *(_node(drawn, at, painted) for at in order)])
    if not drawn.types:
        return scene
    samples = [
        (shape(kind, 8.0, 7.0, 6.0, fill="none", stroke=MUTED, stroke_width=1.2), name)
        for kind, name in enumerate(drawn.types)
    ]
    return _above(scene, keys(samples, drawn.width), 6.0)


def players_scene(explanation: Any, painted: Painted, drawn: Geometry) -> Scene:
    """The drawing of an explanation by its players: edges, groups of nodes, or features."""
    if explanation.player_kind.endswith("features"):
        return feature_bars(painted)
    if explanation.player_kind == "edges":
        return _scene(drawn, _edges(drawn, explanation.player_edges.numpy(), painted))
    shapes = [*_under(drawn), *_groups(drawn, explanation.groups, painted), _over(drawn)]
    rows = _list_of_groups(painted, min(drawn.width, _WIDTH))
    return _above(_scene(drawn, shapes), rows, 10.0)


def interactions_scene(
    drawn: Geometry,
    painted: Painted,
    values: Mapping[tuple[int, ...], float],
    said: Mapping[tuple[int, ...], str],
) -> Scene:
    """Nodes with bows between those that interact, in a box that holds both."""
    places = drawn.places
    bows = [
        _bow(places, pair, value, painted.limit, said[nodes])
        for nodes, value in reversed(list(values.items()))
        for pair in combinations(nodes, 2)
    ]
    scene = nodes_scene(drawn, painted)
    tops = np.array([top for _, top in bows]).reshape(-1, 2)
    room = _AROUND * bool(bows)
    low = np.minimum(tops.min(axis=0, initial=0.0) - room, 0.0)
    high = np.maximum(tops.max(axis=0, initial=0.0) + room, [scene.width, scene.height])
    width, height = (high - low).tolist()
    body = group(scene.body, *(bow for bow, _ in bows))
    return Scene(width, height, moved(body, *(-low).tolist()))


def _scene(drawn: Geometry, parts: Sequence[str]) -> Scene:
    return Scene(drawn.width, drawn.height, group(*parts))


def _above(upper: Scene, lower: Scene, gap: float) -> Scene:
    """Two drawings, one above the other."""
    top = upper.height + gap
    body = group(upper.body, moved(lower.body, 0, top))
    return Scene(max(upper.width, lower.width), top + lower.height, body)


def _atoms(drawn: Geometry, painted: Painted) -> list[str]:
    """Discs, with one line around all selected atoms that are bonded to each other.

    Dark discs and bars with slightly smaller white ones over them leave the outline of their union.
    """
    selected = np.flatnonzero(painted.selected).tolist()
    parts = []
    for color, grown in ((INK, _GAP + _OUTLINE), (CARD, _GAP)):
        parts += _blob(drawn, selected, color, grown, _BRIDGE + 2 * grown)
    for at, node in enumerate(drawn.nodes):
        parts.append(
            element(
                "circle",
                tip(painted.caption(at)),
                cx=node.x,
                cy=node.y,
                r=node.radius,
                fill=painted.color(at),
            )
        )
        if painted.tied[at]:
            style = {"stroke": INK, "stroke_width": _OUTLINE, "stroke_dasharray": TIE_DASHES}
            parts.append(
                node.shape(_GAP + _OUTLINE / 2, fill="none", pointer_events="none", **style)
            )
    return [*parts, *(_hatching(drawn.nodes[at]) for at in np.flatnonzero(painted.uncertain))]


def _hatching(node: NodePlace) -> str:
    if node.radius is not None:
        return hatched_disc(node.x, node.y, node.radius, step=min(5.0, max(2.5, node.radius / 2.5)))
    width, height = node.width or 0.0, node.height or 0.0
    return hatched_box(node.x - width / 2, node.y - height / 2, width, height)


def _join(drawn: Geometry, a: int, b: int, heavy: bool) -> str:
    """An edge or an arc between two nodes; heavy ones lie within the selection."""
    radius = drawn.nodes[a].radius
    if radius is None:
        width = 1.8 if heavy else 1.1
    else:
        width = min(2.6, radius / 3) if heavy else max(0.7, min(1.4, radius / 6))
    return _joined(drawn, a, b, stroke=INK if heavy else _EDGE, stroke_width=width)


def _joined(drawn: Geometry, a: int, b: int, content: str = "", **style: object) -> str:
    """A line between two nodes, or the arc of a sentence in its parts."""
    if drawn.kind != "sentence":
        start, end = drawn.places[[a, b]]
        inset = (_SHORTER * (end - start)) if style.pop("shorter", False) else 0.0
        return line(np.stack([start + inset, end - inset]), 0, 1, content, **style)
    style = {"fill": "none", "stroke_linecap": "round", **style}
    ends = (min(a, b), max(a, b))
    arcs = (mark.d for mark in drawn.marks if mark.ends == ends)
    return "".join(element("path", content, d=path, **style) for path in arcs)


def _node(drawn: Geometry, at: int, painted: Painted) -> str:
    """A node or a word in the color of its score, and what is written on it."""
    node, tied = drawn.nodes[at], bool(painted.tied[at])
    outlined = bool(painted.selected[at]) or tied
    if node.radius is None:
        rim, thin, thick = LINE, 0.7, 2.0
    else:
        rim, thin, thick = _RIM, 0.8, max(1.4, min(2.4, node.radius / 3.2))
    parts = [
        tip(painted.caption(at)),
        node.shape(
            fill=painted.color(at),
            stroke=INK if outlined else rim,
            stroke_width=thick if outlined else thin,
            stroke_dasharray=TIE_DASHES if tied else None,
        ),
    ]
    if painted.uncertain[at]:
        parts.append(_hatching(node))
    return group(*parts, _letters(drawn, node))


def _letters(drawn: Geometry, node: NodePlace) -> str:
    """The label of a node if there is room for it; words always have it."""
    size = _WORD if node.radius is None else min(10.0, node.radius * 0.95)
    fits = node.radius is None or text_width(node.label, size) <= 2 * node.radius
    if not (drawn.written and fits):
        return ""
    return label(node.x, node.y + size * 0.35, node.label, size=size, text_anchor="middle")


def _under(drawn: Geometry, played: Collection[tuple[int, int]] = ()) -> list[str]:
    """What lies below players that are not nodes: edges that do not play, and empty words."""
    thin: dict[str, Any] = {"stroke": "#b9b9b9", "stroke_width": 1.0}
    joins = [_joined(drawn, *pair, **thin) for pair in drawn.edges if pair not in played]
    if drawn.kind == "sentence":
        joins += [node.shape(fill=CARD, stroke=LINE, stroke_width=0.7) for node in drawn.nodes]
    return joins


def _over(drawn: Geometry) -> str:
    """What lies above the colors, where the pointer does not see it: bonds, letters, nodes."""
    if drawn.kind == "molecule":
        parts = [
            element(
                "path",
                d=mark.d,
                fill=mark.fill or "none",
                stroke=mark.stroke,
                stroke_width=mark.width if mark.stroke else None,
            )
            for mark in drawn.marks
        ]
    elif drawn.kind == "sentence":
        parts = [_letters(drawn, node) for node in drawn.nodes]
    else:
        parts = [_plain_node(node) for node in drawn.nodes]
    return group(*parts, pointer_events="none")


def _plain_node(node: NodePlace) -> str:
    small = min(node.radius or 0.0, 9.0)
    size = min(10.0, small * 0.95)
    parts = [shape(node.kind, node.x, node.y, small, fill=CARD, stroke=INK, stroke_width=1.0)]
    if text_width(node.label, size) <= 2 * small and size >= 5:
        y = node.y + size * 0.35
        parts.append(label(node.x, y, node.label, size=size, text_anchor="middle"))
    elif len(node.label) > 2 and size >= 5:
        parts.append(label(node.x, node.y - small - 2, node.label, size=9, text_anchor="middle"))
    return group(*parts)


def _edges(drawn: Geometry, ends: NDArray[np.int64], painted: Painted) -> list[str]:
    """Edges as bars in the color of their score, selected ones outlined; nodes over them."""
    radius = drawn.nodes[0].radius
    wide = 3.8 if radius is None else min(11.0, 1.1 * radius)
    rims = (1.2, 2.6) if radius is None else (1.0, 3.0)
    beside = Counter(tuple(sorted(pair)) for pair in ends.tolist())
    lanes: Counter[tuple[int, int]] = Counter()
    parts = _under(drawn, beside)
    for player in np.argsort(np.abs(painted.scores), kind="stable").tolist():
        a, b = ends[player].tolist()
        pair = (min(a, b), max(a, b))
        style: dict[str, object] = {"shorter": drawn.kind == "molecule"}
        if beside[pair] > 1:  # directions lie beside each other
            lane = pair if radius is None else (a, b)
            style["transform"] = _aside(drawn, a, b, wide, lanes[lane])
            # those of one direction too, and alone they stay in the middle between both
            lanes[lane] += 1
        tied = bool(painted.tied[player])
        outlined = bool(painted.selected[player]) or tied
        rim = {"stroke": INK if outlined else _THIN, "stroke_width": wide + rims[outlined]}
        for layer in (rim, {"stroke": painted.color(player), "stroke_width": wide}):
            dashed = _DASHED if tied and layer is rim else {"stroke_linecap": "round"}
            said = tip(painted.caption(player))
            parts.append(_joined(drawn, a, b, said, **style, **layer, **dashed))
    return [*parts, _over(drawn)]


def _aside(drawn: Geometry, a: int, b: int, wide: float, lane: int) -> str:
    """Where one of several edges between two nodes lies: arcs above each other."""
    if drawn.kind == "sentence":
        return f"translate(0 {number(-4.5 * lane)})"
    along = drawn.places[b] - drawn.places[a]
    aside = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9)
    x, y = (aside * wide * (0.55 + 1.1 * lane)).tolist()
    return f"translate({number(x)} {number(y)})"


def _groups(drawn: Geometry, sets: Sequence[Sequence[int]], painted: Painted) -> list[str]:
    """Every group as a soft shape: its score inside, its own color around it."""
    first = drawn.nodes[0]
    thick = first.height if first.radius is None else 2 * first.radius
    parts = []
    for at, nodes in enumerate(sets):
        rim = 4.2 if painted.selected[at] or painted.tied[at] else 2.2
        layers = ((_own_color(at), rim), (CARD, 0.0), (painted.color(at), 0.0))
        shapes = (
            part
            for color, grown in layers
            for part in _blob(drawn, nodes, color, grown, (thick or 0.0) + 2 * grown)
        )
        parts.append(group(tip(painted.caption(at)), *shapes))
    return parts


def _blob(
    drawn: Geometry, nodes: Sequence[int], color: str, grown: float, thick: float
) -> list[str]:
    """Nodes of one color, and bars between those that are joined or follow each other as words."""
    inside = set(nodes)
    pairs: Sequence[tuple[int, int]] = drawn.edges
    if drawn.kind == "sentence":
        rows = [node.y for node in drawn.nodes]
        pairs = [(a, b) for a, b in pairwise(range(len(rows))) if rows[a] == rows[b]]
    style: dict[str, Any] = {"stroke": color, "stroke_width": thick}
    bars = [line(drawn.places, a, b, **style) for a, b in pairs if a in inside and b in inside]
    return [*bars, *(drawn.nodes[node].shape(grown, fill=color) for node in nodes)]


def _own_color(player: int) -> str:
    return _PALETTE[player % len(_PALETTE)]


def _list_of_groups(painted: Painted, width: float) -> Scene:
    """The groups with their colors and scores, highest first."""
    wide = max(width, 300.0)
    order = np.argsort(-painted.scores, kind="stable")
    several = len(order) > _LISTED
    shown = order[: _LISTED - 1] if several else order
    parts = []
    for row, at in enumerate(shown.tolist()):
        y = row * _ROW + 13
        style: dict[str, Any] = {
            "font_weight": 600 if painted.selected[at] else None,
            "size": _TEXT,
        }
        sample: dict[str, Any] = {
            "fill": painted.color(at),
            "stroke": _own_color(at),
            "stroke_width": 2.6,
        }
        parts += [
            element("circle", cx=8.0, cy=y - 4, r=5.0, **sample),
            label(20, y, fitted(painted.names[at], _TEXT, wide - 90), **style),
            label(wide, y, signed(float(painted.scores[at])), text_anchor="end", **style),
        ]
    if several:
        rest = len(order) - len(shown)
        parts.append(label(20, len(shown) * _ROW + 13, f"and {rest} more", size=_TEXT))
    return Scene(wide, (len(shown) + several) * _ROW, group(*parts))


def _bow(
    places: NDArray[np.float64], pair: tuple[int, ...], value: float, limit: float, words: str
) -> tuple[str, NDArray[np.float64]]:
    """A bow away from the middle of the picture, and the point that it bends to."""
    one, two = places[pair[0]], places[pair[1]]
    along, middle = two - one, (one + two) / 2
    across = np.array([-along[1], along[0]])
    if float(across @ (middle - places.mean(axis=0))) < 0:
        across = -across
    control = middle + 2 * _BEND * across
    strength = abs(value) / limit
    start, bend = (" ".join(map(number, ends)) for ends in (one.tolist(), [*control, *two]))
    bow = element(
        "path",
        tip(words),
        d=f"M{start}Q{bend}",
        fill="none",
        stroke=score_color(np.sign(value) * max(strength, 0.35) * limit, limit),
        stroke_width=_WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * strength,
        stroke_linecap="round",
        stroke_opacity=0.6,
    )
    return bow, (middle + control) / 2
