"""Who can play: nodes, groups of nodes, edges, or columns of features; and what names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gstarx._internal.arguments import as_flag, one_of
from gstarx._internal.messages import unknown
from gstarx.registry import PLAYERS, group_makers, resolve

#: What becomes of nodes that are in no group.
RESTS = ("players", "present")
#: What a missing feature is replaced by, besides data or values of your own.
REFERENCES = ("zero", "mean")


@dataclass(frozen=True)
class Nodes:
    """Every node is a player.

    Attributes
    ----------
    types
        For heterogeneous graphs: the types whose nodes are players; all others are always present.
    relations
        For heterogeneous graphs: the relations along which nodes communicate, as triples or by the
        name in the middle. By default all of them; direction does not matter.
    """

    types: tuple[str, ...] | None = None
    relations: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("types", "relations"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f"Nodes: {name} must be a list (got {given!r}); pass [{given!r}]")
            if given is not None:
                object.__setattr__(self, name, tuple(given))
        if self.types is not None and not self.types:
            raise ValueError("Nodes: types must name at least one type of nodes (got none)")


@dataclass(frozen=True)
class Groups:
    """Sets of nodes as players: a coalition of groups is the union of their nodes.

    It is a sequence of sets of nodes, unless they follow from the graph.

    Attributes
    ----------
    sets
        The nodes of every group; a mapping from names to them; the name of a kind of groups, such
        as ``"brics"``; or a function that makes groups of a graph.
    names
        A name for every group; by default their numbers.
    rest
        Nodes in no group: each of them is a separate player (``"players"``), or they are always
        present (``"present"``).
    num_nodes
        How many nodes the graph must have, if the groups come from a label for each of them.

    Examples
    --------
    >>> groups = Groups([{0, 1, 2}, {4}], names=["ring", "tail"])
    >>> len(groups), groups[0], groups.names
    (2, (0, 1, 2), ('ring', 'tail'))
    >>> Groups([{0, 1}, {1, 2}])
    Traceback (most recent call last):
    ...
    ValueError: groups must not overlap: node 1 is in groups '0' and '1'
    """

    sets: Any
    names: tuple[str, ...] = ()
    rest: str = "players"
    num_nodes: int | None = None

    def __post_init__(self) -> None:
        one_of(self.rest, RESTS, name="rest")
        if isinstance(self.sets, str):
            object.__setattr__(self, "sets", _maker(self.sets))
        if callable(self.sets):
            return
        if isinstance(self.sets, Mapping):
            object.__setattr__(self, "names", tuple(map(str, self.sets)))
            object.__setattr__(self, "sets", tuple(self.sets.values()))
        sets = tuple(_nodes_of(nodes, at) for at, nodes in enumerate(self.sets))
        names = tuple(str(name) for name in self.names) or tuple(map(str, range(len(sets))))
        if len(names) != len(sets):
            raise ValueError(
                f"names must be one for each of {len(sets)} groups (got {len(names)} names)"
            )
        owner: dict[int, str] = {}
        for name, nodes in zip(names, sets, strict=True):
            if not nodes:
                raise ValueError(f"groups must not be empty: group {name!r} has no nodes")
            for node in nodes:
                if node in owner:
                    both = f"{owner[node]!r} and {name!r}"
                    raise ValueError(f"groups must not overlap: node {node} is in groups {both}")
                owner[node] = name
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "names", names)

    @classmethod
    def from_labels(cls, labels: Any, *, rest: str = "players") -> Groups:
        """Groups from a label per node, ordered by their first node; -1 or ``None`` is no group.

        >>> Groups.from_labels(["head", "tail", "head", None]).sets
        ((0, 2), (1,))
        """
        members: dict[Any, list[int]] = {}
        every = listed(labels)
        for node, label in enumerate(every):
            if label is not None and not (isinstance(label, int | float) and label == -1):
                members.setdefault(label, []).append(node)
        sets = tuple(tuple(nodes) for nodes in members.values())
        return cls(sets, tuple(map(str, members)), rest, len(every))

    def of(self, graph: Any) -> Groups | Nodes:
        """The groups of a graph, where they follow from it."""
        if not callable(self.sets):
            return self
        made = self.sets(graph)
        kind = made if isinstance(made, Groups | Nodes) else _as_groups(made)
        if self.rest != "players" and isinstance(kind, Groups):
            return replace(kind, rest=self.rest)
        return kind

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, at: int) -> tuple[int, ...]:
        return self.sets[at]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.sets)


@dataclass(frozen=True)
class Edges:
    """Every edge is a player, and all nodes are always present.

    Attributes
    ----------
    directed
        Whether every column of ``edge_index`` is a player of its own. By default, an edge is all
        columns between two nodes: both directions, and parallel edges.
    touched
        Whether nodes that no present edge touches are absent, as the position value has it.
    """

    directed: bool = False
    touched: bool = False

    def __post_init__(self) -> None:
        as_flag(self.directed, name="directed")


@dataclass(frozen=True)
class Features:
    """Columns of features as players, for all nodes together.

    Attributes
    ----------
    groups
        Columns that are present or absent together by name, for instance a one-hot block; columns
        in no group are players of their own. By default every column is a player.
    reference
        What absent columns are replaced by: ``"zero"``; ``"mean"``, the mean over the nodes of the
        graph; a row of values of your own (F,); or data to draw from, a graph, several graphs or
        rows (R, F): payoffs are averaged over ``draws``.
    draws
        How many times rows are drawn from reference data, one for every node each time.
    field
        The features: ``"x"``, or ``"edge_attr"`` for those of edges.
    """

    groups: Mapping[str, Sequence[int]] | None = None
    reference: Any = "zero"
    draws: int = 16
    field: str = "x"

    def __post_init__(self) -> None:
        if isinstance(self.reference, str) and self.reference not in REFERENCES:
            valid = ", ".join(map(repr, REFERENCES))
            raise ValueError(
                f"reference must be one of {valid}, or data to draw from (got {self.reference!r})"
            )
        if type(self.draws) is not int or self.draws < 1:
            raise ValueError(f"draws must be an integer of at least 1 (got {self.draws!r})")
        if self.groups is not None and not isinstance(self.groups, Mapping):
            raise TypeError(
                "feature groups must be a mapping from names to columns "
                f"(got {type(self.groups).__name__})"
            )


#: Players of a graph.
PlayerKind = Nodes | Groups | Edges | Features
#: What can be given as ``players``: an object, a name, groups in any form, or a function that makes
#: groups of a graph.
PlayersLike = str | Sequence[Any] | Mapping[str, Any] | PlayerKind | Callable[[Any], Any]


def listed(values: Any) -> list[Any]:
    """Values of any sequence, array or tensor as a list."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _nodes_of(nodes: Any, at: int) -> tuple[int, ...]:
    """The nodes of a group as ascending integers, each once."""
    members = listed(nodes) if not isinstance(nodes, str) and np.iterable(nodes) else [nodes]
    wrong = [n for n in members if isinstance(n, bool) or not isinstance(n, int | np.integer)]
    if wrong:
        raise TypeError(f"groups must be sets of nodes, integers (got {wrong[0]!r} in group {at})")
    return tuple(sorted({int(node) for node in members}))


def as_players(players: Any) -> PlayerKind:
    """The requested kind of players, or an error that names what is valid.

    >>> as_players("edges")
    Edges(directed=False, touched=False)
    >>> as_players([{0, 1}, {2}]).sets
    ((0, 1), (2,))
    """
    if isinstance(players, Nodes | Groups | Edges | Features):
        return players
    if isinstance(players, type):
        raise TypeError(f"players must be an object, {players.__name__}(...) (got the class)")
    if callable(players):
        return Groups(players)
    return _by_name(players) if isinstance(players, str) else _as_groups(players)


#: The field behind the names of features.
_FIELDS = {"features": "x", "edge_features": "edge_attr"}


def _by_name(name: str) -> PlayerKind:
    plain = name.replace("-", "_")
    if plain not in PLAYERS:
        raise ValueError(
            f"{unknown('kind of players', name, PLAYERS)}, groups of nodes, or a function that "
            "makes them"
        )
    if plain in group_makers():
        return Groups(plain)
    if plain == "nodes":
        return Nodes()
    return Edges() if plain == "edges" else Features(field=_FIELDS[plain])


def _maker(name: str) -> Callable[[Any], Any]:
    """The function that makes a kind of groups."""
    makers, plain = group_makers(), name.replace("-", "_")
    if plain not in makers:
        raise ValueError(unknown("kind of groups", name, makers))
    maker: Callable[[Any], Any] = resolve(makers[plain])
    return maker


def _as_groups(players: Any) -> Groups:
    """Groups from a mapping of names to nodes, sets of nodes, or a label per node."""
    if isinstance(players, Mapping):
        return Groups(players)
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
        return Groups.from_labels(sets)
    return Groups(tuple(sets))


def _is_set(value: Any) -> bool:
    return isinstance(value, set | frozenset | list | tuple | range)
