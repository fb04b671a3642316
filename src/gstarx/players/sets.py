"""The players of one graph: which of its nodes, edges or columns belong to which of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.cached import cached_property
from gstarx.games import coalition_phrase
from gstarx.graphs import CommunicationGraph
from gstarx.players.kinds import Edges, Features, Groups, Nodes, PlayerKind

log = logging.getLogger("gstarx")


class NoPlayersError(ValueError):
    """No part of the graph can be a player, as if edges are asked for and there are none."""


@runtime_checkable
class TypedGraph(Protocol):
    """What the view of a heterogeneous graph says of types, see :class:`gstarx.gnn.HeteroGraph`."""

    @property
    def node_types(self) -> tuple[str, ...]:
        """The types of nodes."""

    @property
    def type_of(self) -> NDArray[np.int64]:
        """The position of its type, for every node."""

    @property
    def relation_of(self) -> NDArray[np.int64]:
        """The position of its relation, for every edge."""

    def name(self, number: int) -> str:
        """What a node is called."""

    def require_type(self, name: Any, parameter: str) -> None:
        """Raise unless there are nodes of a type."""

    def relations_named(self, relations: Any) -> list[int]:
        """Positions of relations."""


@dataclass(frozen=True)
class PlayerSet:
    """The players of one graph.

    Attributes
    ----------
    kind
        ``"nodes"``, ``"groups"``, ``"edges"``, ``"features"`` or ``"edge_features"``.
    player_of
        The player of every unit, -1 for one that is always there. Units are the nodes, the columns
        of ``edge_index``, or the columns of the features.
    ids
        What results call the players, (P,): nodes by their numbers in the graph, others by their
        positions in ``names`` or ``edges``.
    names
        Names of groups of nodes, of features, and of the nodes of a heterogeneous graph.
    edges
        The two ends of every player that is an edge, (P, 2).
    links
        Pairs of nodes of the graph, along which players communicate.
    pair
        The ends of the link that is explained: what is around one communicates with what is around
        the other, because the model brings them together.
    spec
        The kind of players that was requested.
    anchored
        Whether a node or pair is explained, which is always present.
    kept
        Whether some nodes were never meant to play, and are always present.
    """

    kind: str
    player_of: NDArray[np.int64]
    ids: NDArray[np.int64]
    links: NDArray[np.int64]
    spec: Any
    names: tuple[str, ...] = ()
    edges: NDArray[np.int64] | None = None
    communication: CommunicationGraph | None = None
    pair: tuple[int, int] | None = None
    anchored: bool = False
    kept: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def of_nodes(self) -> bool:
        """Whether players are nodes or groups of them, so that nodes can be absent."""
        return self.kind in ("nodes", "groups")

    @property
    def without_baseline(self) -> bool:
        """Whether the output with no player present is the only baseline."""
        return not self.of_nodes and (self.anchored or not self.touched)

    @property
    def touched(self) -> bool:
        """Whether players are edges that bring the nodes they touch."""
        return isinstance(self.spec, Edges) and self.spec.touched

    @property
    def some_always_present(self) -> bool:
        """Whether something is present even without any player, so that its output is known."""
        return self.without_baseline or self.kept

    @cached_property
    def graph(self) -> CommunicationGraph:
        """Who communicates with whom.

        Nodes along edges, groups where an edge joins them, edges where they share a node; features
        all with all. The two ends of a link that is explained count as joined.
        """
        if self.communication is not None:
            return self.communication
        if self.edges is not None:
            first, second = self.pair or (-1, -1)
            return CommunicationGraph.line_graph(np.where(self.edges == second, first, self.edges))
        if not self.of_nodes:
            return CommunicationGraph.complete(len(self))
        links = self.links if self.pair is None else np.vstack([self.links, self.pair])
        ends = self.player_of[links]
        return CommunicationGraph(len(self), ends[(ends >= 0).all(axis=1)])

    def restricted(self, units: NDArray[np.bool_]) -> PlayerSet:
        """Only the players with one of these units; all others are always there."""
        playing = np.unique(self.player_of[units])
        playing = playing[playing >= 0]
        place = np.full(len(self) + 1, -1)
        place[playing] = np.arange(len(playing))
        return replace(
            self,
            # the last entry is for those that do not play
            player_of=place[self.player_of],
            ids=self.ids[playing] if self.kind == "nodes" else np.arange(len(playing)),
            names=tuple(self.names[at] for at in playing) if self.names else (),
            edges=None if self.edges is None else self.edges[playing],
            communication=None
            if self.communication is None
            else self.communication.subgraph(playing),
        )

    def describe(self, inside: NDArray[np.bool_]) -> str:
        """A coalition in words, by who is in it or who is not."""
        everything = bool((self.player_of >= 0).all())
        noun = self.kind.replace("_", " ") if everything else "players"
        return coalition_phrase(inside, self._name, noun)

    def _name(self, player: int) -> str:
        if self.edges is not None:
            a, b = self.edges[player].tolist()
            return f"{a}-{b}{parallel_mark(self.edges, player)}"
        return self.names[player] if self.names else str(self.ids[player])

    def spread(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the units from those of players; 0 for a unit that is always there."""
        everywhere = np.zeros((len(self.player_of), *scores.shape[1:]))
        playing = self.player_of >= 0
        everywhere[playing] = scores[self.player_of[playing]]
        return everywhere


def player_set(
    data: Data, players: PlayerKind, communication: Any = None, *, one_way: bool = False
) -> PlayerSet:
    """The players of a graph, or an error that says what is wrong with them.

    ``one_way`` says that edges may lack one of their directions.
    """
    spec = players.of(data) if isinstance(players, Groups) else players
    links = data.edge_index.cpu().numpy().T
    count = int(data.num_nodes or 0)
    graph = data.get("hetero")
    if isinstance(graph, TypedGraph):
        everyone = _of_types(spec, graph, data, links)
    elif isinstance(spec, Nodes):
        _refuse_types(spec)
        everyone = PlayerSet("nodes", np.arange(count), np.arange(count), links, spec)
    elif isinstance(spec, Groups):
        everyone = _of_groups(spec, count, links)
    elif isinstance(spec, Edges):
        everyone = _of_edges(spec, links, one_way)
    elif isinstance(spec, Features):
        everyone = _of_features(spec, data, links)
    else:
        raise TypeError(
            f"players must be nodes, groups of nodes, edges or features (got {type(spec).__name__})"
        )
    if communication is not None:
        everyone = replace(everyone, communication=_as_communication(communication, len(everyone)))
    return everyone


def _refuse_types(nodes: Nodes) -> None:
    for option, given in (("types", nodes.types), ("relations", nodes.relations)):
        if given is not None:
            raise ValueError(
                f"{option} of Nodes are those of heterogeneous graphs, and the data is a "
                f"homogeneous one (got {option}={list(given)!r})"
            )


def _of_types(spec: Any, graph: TypedGraph, data: Data, links: NDArray[np.int64]) -> PlayerSet:
    """The nodes of some types of a heterogeneous graph, linked along some of its relations."""
    if not isinstance(spec, Nodes):
        raise ValueError(
            "players of a heterogeneous graph are its nodes, of all types or of Nodes(types=[...]) "
            f"(got players={type(spec).__name__.lower()!r})"
        )
    numbers = data.node_id.cpu().numpy()
    if spec.relations is not None:
        chosen = graph.relations_named(spec.relations)
        relation = graph.relation_of[data.edge_id.cpu().numpy()]
        links = links[np.isin(relation, chosen)]
    count = np.arange(len(numbers))
    names = tuple(graph.name(number) for number in numbers.tolist())
    everyone = PlayerSet("nodes", count, count, links, spec, names)
    if spec.types is None:
        return everyone
    for name in spec.types:
        graph.require_type(name, "types")
    playing = [graph.node_types.index(name) for name in spec.types]
    players = everyone.restricted(np.isin(graph.type_of[numbers], playing))
    players = replace(players, kept=len(players) < len(everyone))
    if not len(players):
        raise ValueError(
            f"Nodes(types={list(spec.types)!r}): there are no nodes of these types, or none near "
            "enough to change the output"
        )
    return players


def _as_communication(given: Any, count: int) -> CommunicationGraph:
    known = isinstance(given, CommunicationGraph)
    graph: CommunicationGraph = given if known else CommunicationGraph(count, given)
    if graph.num_nodes != count:
        raise ValueError(
            f"communication must be a graph of the {count} players (got {graph.num_nodes} nodes)"
        )
    return graph


def _of_groups(groups: Groups, count: int, links: NDArray[np.int64]) -> PlayerSet:
    if groups.num_nodes not in (None, count):
        raise ValueError(
            f"players must have a label for each of {count} nodes (got {groups.num_nodes} labels)"
        )
    player_of = np.full(count, -1)
    for at, (name, nodes) in enumerate(zip(groups.names, groups.sets, strict=True)):
        unknown = [node for node in nodes if not 0 <= node < count]
        if unknown:
            raise ValueError(
                f"groups must be of nodes in 0..{count - 1} (got {unknown[0]} in group {name!r})"
            )
        player_of[list(nodes)] = at
    names = list(groups.names)
    rest = np.flatnonzero(player_of < 0)
    if groups.rest == "players":
        player_of[rest] = np.arange(len(names), len(names) + len(rest))
        names += [str(node) for node in rest]
    graph = CommunicationGraph(count, links)
    for name, nodes in zip(groups.names, groups.sets, strict=True):
        parts = len(graph.subgraph(nodes).components)
        if parts > 1:
            log.info("group %r is not connected: its %d parts are one player", name, parts)
    kept = bool((player_of < 0).any())
    ids = np.arange(len(names))
    return PlayerSet("groups", player_of, ids, links, groups, tuple(names), kept=kept)


def _of_edges(spec: Edges, links: NDArray[np.int64], one_way: bool) -> PlayerSet:
    joining = links[:, 0] != links[:, 1]
    if not joining.any():
        raise NoPlayersError("the graph has no edges between nodes: there are no players")
    if not spec.directed and not one_way:
        _require_both_directions(links[joining])
    edges, player_of = edge_players(links, directed=spec.directed)
    return PlayerSet("edges", player_of, np.arange(len(edges)), links, spec, (), edges)


def edge_players(
    links: NDArray[np.int64], *, directed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two ends of every player (P, 2), ascending, and the player of every link (E, 2).

    All links between two nodes are one player, or if ``directed`` every link is. Self-loops are
    always there, which is -1.

    >>> edges, player_of = edge_players(np.array([[1, 2], [0, 1], [1, 0], [0, 1]]), directed=True)
    >>> edges.tolist(), player_of.tolist()
    ([[0, 1], [0, 1], [1, 0], [1, 2]], [3, 0, 2, 1])
    """
    joining = links[:, 0] != links[:, 1]
    player_of = np.full(len(links), -1)
    if not directed:
        ends = np.sort(links[joining], axis=1)
        edges, place = np.unique(ends, axis=0, return_inverse=True)
        player_of[joining] = place.reshape(-1)
        return edges, player_of
    columns = np.flatnonzero(joining)
    columns = columns[np.lexsort(links[columns].T[::-1])]
    player_of[columns] = np.arange(len(columns))
    return links[columns], player_of


def parallel_mark(edges: NDArray[np.int64], player: int) -> str:
    """What tells a player that is an edge apart from those before it with the same two ends.

    >>> [parallel_mark(np.array([[0, 1], [0, 1], [1, 0]]), player) for player in range(3)]
    ['', ' (2)', '']
    """
    before = int((edges[:player] == edges[player]).all(axis=1).sum())
    return f" ({before + 1})" if before else ""


def _require_both_directions(links: NDArray[np.int64]) -> None:
    directed = np.unique(links, axis=0)
    low_first = directed[:, 0] < directed[:, 1]
    there, back = directed[low_first], directed[~low_first][:, ::-1]
    pairs, counts = np.unique(np.concatenate([there, back]), axis=0, return_counts=True)
    alone = pairs[counts < 2]
    if len(alone):
        a, b = alone[0].tolist()
        more = f" and {len(alone) - 1} others" if len(alone) > 1 else ""
        raise ValueError(
            f"edge_index has only one direction of the edge between {a} and {b}{more}: "
            "an undirected edge needs both, as torch_geometric.utils.to_undirected gives them; "
            "pass players=Edges(directed=True) to make every direction a player"
        )


def _of_features(spec: Features, data: Data, links: NDArray[np.int64]) -> PlayerSet:
    features = data.get(spec.field)
    if not isinstance(features, Tensor) or features.dim() != 2:
        got = "none" if features is None else f"shape {tuple(getattr(features, 'shape', ()))}"
        raise ValueError(
            f"players of features need data.{spec.field} with a column per feature (got {got})"
        )
    columns = features.shape[1]
    player_of = np.full(columns, -1)
    names: list[str] = []
    for name, listed in (spec.groups or {}).items():
        for column in _columns(name, listed, columns):
            if player_of[column] >= 0:
                other = names[player_of[column]] if player_of[column] < len(names) else name
                raise ValueError(
                    f"feature groups must not overlap: column {column} is in {other!r} and {name!r}"
                )
            player_of[column] = len(names)
        names.append(str(name))
    rest = np.flatnonzero(player_of < 0)
    player_of[rest] = np.arange(len(names), len(names) + len(rest))
    names += [str(column) for column in rest]
    kind = "features" if spec.field == "x" else "edge_features"
    return PlayerSet(kind, player_of, np.arange(len(names)), links, spec, tuple(names))


def _columns(name: Any, listed: Sequence[int], columns: int) -> list[int]:
    chosen = [listed] if isinstance(listed, int | np.integer) else list(listed)
    if not chosen:
        raise ValueError(f"feature groups must not be empty: {name!r} has no columns")
    for column in chosen:
        if isinstance(column, bool) or not isinstance(column, int | np.integer):
            raise TypeError(f"columns of feature group {name!r} must be integers (got {column!r})")
        if not 0 <= column < columns:
            raise ValueError(
                f"feature group {name!r} names column {column}, and the features have columns "
                f"0..{columns - 1}"
            )
    return [int(column) for column in chosen]


def reference_rows(spec: Features, data: Data) -> Tensor:
    """What absent columns are replaced by, for every draw and row: (draws, rows, F).

    The rows are those of the nodes, or of the edges for features of edges.
    """
    own: Tensor = data[spec.field]
    reference = spec.reference
    if isinstance(reference, str):
        row = torch.zeros_like(own[:1]) if reference == "zero" else own.mean(dim=0, keepdim=True)
        return row.expand(own.shape)[None]
    rows = _rows_of(reference, spec.field)
    if rows.dim() not in (1, 2) or rows.shape[-1] != own.shape[1]:
        raise ValueError(
            f"reference must have {own.shape[1]} columns, as data.{spec.field} has "
            f"(got shape {tuple(rows.shape)})"
        )
    if not rows.isfinite().all():
        raise ValueError("reference must be finite")
    rows = rows.to(own)
    if rows.dim() == 1:
        return rows.expand(own.shape)[None]
    if not len(rows):
        raise ValueError("reference must have at least one row to draw (got none)")
    drawn = np.random.default_rng(0).integers(len(rows), size=(spec.draws, len(own)))
    return rows[torch.from_numpy(drawn).to(own.device)]


def _rows_of(reference: Any, field: str) -> Tensor:
    """Rows of features from a tensor, an array, a graph or several graphs."""
    if isinstance(reference, Data):
        reference = [reference]
    if isinstance(reference, Tensor | np.ndarray):
        return torch.as_tensor(reference)
    if isinstance(reference, Mapping) or not np.iterable(reference):
        raise TypeError(
            "reference must be 'zero', 'mean', a row of features, or data to draw from "
            f"(got {type(reference).__name__})"
        )
    listed = list(reference)
    if listed and all(isinstance(graph, Data) for graph in listed):
        missing = [
            at for at, graph in enumerate(listed) if not isinstance(graph.get(field), Tensor)
        ]
        if missing:
            raise ValueError(f"reference graph {missing[0]} has no {field}")
        return torch.cat([graph[field] for graph in listed])
    try:
        return torch.as_tensor(np.asarray(listed, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(
            "reference must be 'zero', 'mean', a row of features, or data to draw from "
            f"(got a list of {type(listed[0]).__name__ if listed else 'nothing'})"
        ) from None


def named_edges(
    ends: Sequence[Sequence[int]], names: Sequence[str], *, symmetric: bool = True
) -> list[str]:
    """What edges are called, given the names of the nodes.

    >>> named_edges([[0, 1]], ["C0", "N1"])
    ['C0-N1']
    """
    between, edges = "-" if symmetric else " to ", np.asarray(ends).reshape(-1, 2)
    return [
        f"{names[a]}{between}{names[b]}{parallel_mark(edges, at)}" for at, (a, b) in enumerate(ends)
    ]


def named_groups(
    groups: Sequence[str], sets: Sequence[Sequence[int]] | None, names: Sequence[str]
) -> list[str]:
    """What groups or features are called: a node in no group is called what it is.

    >>> named_groups(["ring", "2"], [[0, 1], [2]], ["C0", "C1", "O2"])
    ['ring', 'O2']
    """
    return [
        names[nodes[0]] if [name] == list(map(str, nodes)) else str(name)
        for name, nodes in zip(groups, sets or [()] * len(groups), strict=True)
    ]
