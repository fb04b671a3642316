"""From what is given as ``players`` to a kind of players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gstarx._internal.suggestions import unknown
from gstarx.players.kinds import Edges, Features, Groups, Nodes, PlayerKind, listed
from gstarx.players.makers import MAKERS


def as_players(
    players: Any,
    *,
    directed: bool = False,
    rest: str = "players",
    reference: Any = "zero",
    draws: int = 16,
    feature_groups: Mapping[str, Sequence[int]] | None = None,
    player_types: Sequence[str] | None = None,
    relations: Sequence[Any] | None = None,
) -> PlayerKind:
    """The requested kind of players, or an error that names what is valid.

    >>> as_players("edges", directed=True)
    Edges(directed=True, touched=False)
    >>> as_players([{0, 1}, {2}]).sets
    ((0, 1), (2,))
    """
    if isinstance(players, str):
        kind = _by_name(players)
    elif isinstance(players, Nodes | Groups | Edges | Features) or callable(players):
        kind = players
    else:
        kind = _as_groups(players, rest)
    if directed:
        kind = replace(_only(kind, Edges, "directed=True", "players='edges'"), directed=True)
    if rest != "players" and (isinstance(kind, Nodes | Edges | Features)):
        raise ValueError(f"rest is for groups of nodes (got rest={rest!r})")
    if isinstance(kind, Groups) and rest != "players":
        kind = replace(kind, rest=rest)
    for option, given_types in (("player_types", player_types), ("relations", relations)):
        if given_types is not None:
            field = "types" if option == "player_types" else option
            kind = replace(_only(kind, Nodes, option, "players='nodes'"), **{field: given_types})
    given = {"reference": reference, "draws": draws, "groups": feature_groups}
    default = {"reference": "zero", "draws": 16, "groups": None}
    changed = {name: given[name] for name in given if given[name] is not default[name]}
    changed = {name: new for name, new in changed.items() if not _equal(new, default[name])}
    if changed:
        first = next(iter(changed)).replace("groups", "feature_groups")
        kind = replace(_only(kind, Features, first, "players='features'"), **changed)
    return kind


def _equal(given: Any, default: Any) -> bool:
    return isinstance(given, int | str) and bool(given == default)


def _by_name(name: str) -> PlayerKind:
    known: dict[str, PlayerKind] = {
        "nodes": Nodes(),
        "edges": Edges(),
        "features": Features(),
        "edge_features": Features(field="edge_attr"),
        **MAKERS,
    }
    plain = name.replace("-", "_")
    if plain not in known:
        raise ValueError(
            f"{unknown('kind of players', name, known)}, groups of nodes, or a function that "
            "makes them"
        )
    return known[plain]


def _only(kind: Any, wanted: type, option: str, valid: str) -> Any:
    if not isinstance(kind, wanted):
        what = type(kind).__name__.lower() if isinstance(kind, Nodes | Groups | Edges) else kind
        raise ValueError(f"{option} is an option of {valid} (got it with players={what!r})")
    return kind


def _as_groups(players: Any, rest: str) -> Groups:
    """Groups from a mapping of names to nodes, sets of nodes, or a label per node."""
    if isinstance(players, Mapping):
        return Groups(tuple(players.values()), tuple(map(str, players)), rest)
    try:
        sets = listed(players)
    except TypeError:
        raise TypeError(
            "players must be a name, sets of nodes, a label per node, or a function from a graph "
            f"to groups (got {type(players).__name__})"
        ) from None
    if not sets:
        raise ValueError("players must be at least one group of nodes (got none)")
    if all(label is None or (np.ndim(label) == 0 and not _is_set(label)) for label in sets):
        return Groups.from_labels(sets, rest=rest)
    return Groups(tuple(sets), (), rest)


def _is_set(value: Any) -> bool:
    return isinstance(value, set | frozenset | list | tuple | range)
