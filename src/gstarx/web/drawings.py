"""Graphs as the page draws and lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import Data

from gstarx.drawing import geometry
from gstarx.players import groups_of

#: Thumbnails that are kept, and the nodes of the largest graph that has one.
_MAX_KEPT, _MAX_NODES = 512, 150
_kept: dict[int, tuple[Data, dict[str, Any] | None]] = {}


def picture_entry(data: Data) -> dict[str, Any]:
    """The drawing of a graph, without colors."""
    picture = geometry(data)
    return {
        "kind": picture.kind,
        "width": _round(picture.width),
        "height": _round(picture.height),
        "nodes": [
            {
                "label": node.label,
                "name": node.name,
                "x": _round(node.x),
                "y": _round(node.y),
                **({"r": _round(node.radius)} if node.radius is not None else {}),
                **({"w": _round(node.width)} if node.width is not None else {}),
                **({"h": _round(node.height)} if node.height is not None else {}),
            }
            for node in picture.nodes
        ],
        "edges": [list(edge) for edge in picture.edges],
        "shapes": [
            {"d": mark.d, "fill": mark.fill, "stroke": mark.stroke, "width": mark.width}
            for mark in picture.marks
        ],
        "text": picture.written,
    }


def group_entries(data: Data) -> list[dict[str, Any]]:
    """The functional groups of a molecule with their atoms; none for other graphs."""
    if not isinstance(data.get("smiles"), str):
        return []
    try:
        return [
            {"name": name, "nodes": list(nodes)}
            for name, nodes in groups_of(data, "functional_groups")
        ]
    except ValueError:
        return []  # it is drawn as a graph as well


def thumbnail(data: Data) -> dict[str, Any] | None:
    """The drawing of a graph for a list; ``None`` for sentences and for large graphs."""
    if data.get("words") or (data.num_nodes or 0) > _MAX_NODES:
        return None
    kept = _kept.get(id(data))
    if kept is None or kept[0] is not data:
        while len(_kept) >= _MAX_KEPT:
            del _kept[next(iter(_kept))]
        try:
            kept = (data, picture_entry(data))
        except ValueError:
            kept = (data, None)
        _kept[id(data)] = kept
    return kept[1]


def matches(search: str, position: int, entry: Mapping[str, Any]) -> bool:
    """Whether the name, the SMILES or the number of a graph is what a user looks for.

    >>> matches("ETH", 3, {"title": "ethanol", "smiles": "CCO"})
    True
    >>> matches("4", 3, {"title": "ethanol", "smiles": "CCO"})
    False
    """
    text = search.strip()
    if text == str(position) or text.lower() in str(entry["title"]).lower():
        return True
    # upper and lower case are different atoms
    return text in (entry["smiles"] or "")


def _round(value: float) -> float:
    return round(value, 2)  # finer than a screen shows
