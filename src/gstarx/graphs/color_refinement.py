"""Color refinement (Weisfeiler and Leman, 1968): which nodes message passing cannot tell apart.

Every node has a color at the start. In each round its new color stands for its color and those of
its neighbors, as often as they occur. After ``L`` rounds, nodes of one color are what ``L`` layers
of message passing give the same embedding.

:func:`color_refinement` numbers the colors of one graph. What coalitions share is the same on
parts of a graph, for thousands of them at once: after ``L`` rounds of message passing the embedding
of node ``v`` in coalition ``S`` depends on nothing but its *state*, which is its color in ``S``:

    state_0(v, S) = what v is
    state_l(v, S) = state_{l-1}(v, S) with every (edge u -> v inside S, state_{l-1}(u, S))

What a node or an edge is are its fields. Thousands of coalitions hold nodes of the same state. A
:class:`Block` is a graph with one node for every state of some coalitions, and the edges of the
first coalition in which the state was met: message passing over it gives every state its embedding.
States are compared by two hashes of 64 bits, so that no color has to be looked up by its name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gstarx._internal.cached import cached_property
from gstarx.graphs.bitmasks import Masks, pack, renumber, words_for
from gstarx.graphs.refinement_kernels import color_properly, distances, fill, grow, number

_ONE = np.uint64(1)
#: Lookups after which a block decides whether to go on with them.
_PATIENCE = 8192
#: Bytes for looking up nodes by the coalition around them; larger graphs do without.
_MOST_REMEMBERED = 1 << 26
#: Bits of a state that are compared; a test takes fewer, so that different states look the same.
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Graphs up to this many nodes get an order of coalitions that shares well.
_MOST_ORDERED = 1024


def color_refinement(
    edge_index: NDArray[np.int64],
    num_nodes: int,
    *,
    start: ArrayLike | None = None,
    max_rounds: int = 100,
) -> NDArray[np.int64]:
    """Colors of the nodes of one graph, from 1 on, after some rounds or when nothing changes.

    A new color is the rank of a node's color and the sorted colors of its neighbors, so that equal
    graphs have equal colors. Directions, repetitions and self-loops of edges are ignored. ``start``
    has the colors at the start, by default the same for all.

    >>> color_refinement(np.array([[0, 1, 2], [1, 2, 3]]), 4)
    array([1, 2, 2, 1])
    """
    around: list[set[int]] = [set() for _ in range(num_nodes)]
    for a, b in edge_index.T.tolist():
        if a != b:
            around[a].add(b)
            around[b].add(a)
    colors = [1] * num_nodes if start is None else np.asarray(start).tolist()
    for _ in range(max_rounds):
        seen = [
            (color, tuple(sorted(colors[u] for u in near)))
            for color, near in zip(colors, around, strict=True)
        ]
        ranks = {view: rank for rank, view in enumerate(sorted(set(seen)), start=1)}
        renamed = [ranks[view] for view in seen]
        if renamed == colors:
            break
        colors = renamed
    return np.array(colors, dtype=np.int64)


@dataclass(frozen=True)
class StateRules:
    """What decides the states of the nodes of one graph.

    Attributes
    ----------
    start
        Numbers that say what every node is, (n, 4): two for a node of the coalition, two for one
        that is not in it but present.
    level
        Rounds of messages that count for every node, (n,); -1 for a node that is too far away for
        any message of it to count.
    far
        The type of every node that is too far away, -1 for all others, (n,).
    first, source, edge
        Edges by the node that hears: those of node ``v`` are ``first[v] : first[v + 1]``, each with
        the node it comes from and its number in the graph. Nobody needs what far nodes hear.
    key
        Two odd numbers that say what an edge is, (E, 2).
    counted
        Whether the kinds of the edges to a node are part of what it is from the start, as is needed
        where messages are scaled by the degree of the node they come from.
    by_edges
        Whether coalitions are of edges, so that all nodes are present.
    """

    start: NDArray[np.uint64]
    level: NDArray[np.int64]
    far: NDArray[np.int64]
    first: NDArray[np.int64]
    source: NDArray[np.int64]
    edge: NDArray[np.int64]
    key: NDArray[np.uint64]
    counted: bool
    by_edges: bool = False

    @classmethod
    def of(
        cls,
        edge_index: NDArray[np.int64],
        node_kind: NDArray[np.int64],
        edge_kind: NDArray[np.int64],
        level: NDArray[np.int64],
        *,
        counted: bool,
        by_edges: bool = False,
        types: NDArray[np.int64] | None = None,
    ) -> StateRules:
        """Rules for edges (2, E) from where messages come to where they go.

        Of nodes that are too far away nothing counts but that there is an edge from them: those of
        the same one of the ``types`` (n,), by default all, have one state.
        """
        n = len(node_kind)
        far = np.where(level < 0, 0 if types is None else types, -1)
        order = np.argsort(edge_index[1], kind="stable")
        order = order[level[edge_index[1][order]] >= 0]
        # a self-loop is another kind of edge: layers that add missing loops do not count it
        edge_kind = 2 * edge_kind + (edge_index[0] == edge_index[1])
        # neighbors never look the same: an edge of a block from a state to itself would be taken
        # for a self-loop
        kinds = 2 * (node_kind * n + proper_coloring(edge_index, n))
        kinds = np.where(far < 0, kinds, 2 * far)
        return cls(
            _numbers(np.stack([kinds, kinds + (far < 0)], axis=1), 0).reshape(n, 4),
            level.astype(np.int64),
            far.astype(np.int64),
            np.searchsorted(edge_index[1][order], np.arange(n + 1)).astype(np.int64),
            np.ascontiguousarray(edge_index[0][order]),
            order.astype(np.int64),
            _numbers(edge_kind[order], 1) | _ONE,
            counted,
            by_edges,
        )

    @cached_property
    def region(self) -> Masks:
        """The nodes that decide the state of every node, packed (n, words).

        Empty for coalitions of edges, where those around a node are hardly ever met again, and for
        graphs so large that it would take too much memory.
        """
        n = len(self.level)
        if self.by_edges or n * words_for(n) * 8 > _MOST_REMEMBERED:
            return np.zeros((n, 0), dtype=np.uint64)
        reached = pack(np.eye(n, dtype=np.bool_))
        for step in range(int(self.level.max(initial=0)) + self.counted):
            reach = self.level + self.counted > step
            grow(reached.copy(), self.first, self.source, reach, reached)
        return reached


@dataclass(frozen=True)
class Block:
    """Some consecutive coalitions, and the graph of their states.

    Attributes
    ----------
    coalitions
        How many they are.
    members
        State of every node of every coalition, coalition by coalition, (M,).
    begins
        The members of coalition ``c`` are ``begins[c] : begins[c + 1]``.
    nodes
        Node of the graph at which every state was first met, (S,).
    absent
        Whether that node is present without being in the coalition, (S,).
    ends
        Edges between states (2, E), from where messages come to where they go.
    edges
        Edge of the graph behind each, (E,).
    asked
        States of the wanted nodes in every coalition, (k, asked).
    """

    coalitions: int
    members: NDArray[np.int32]
    begins: NDArray[np.int64]
    nodes: NDArray[np.int64]
    absent: NDArray[np.bool_]
    ends: NDArray[np.int64]
    edges: NDArray[np.int64]
    asked: NDArray[np.int64]


class StateTable:
    """Finds the states of coalitions, block by block, in memory that is used again."""

    def __init__(self, rules: StateRules, states: int, members: int) -> None:
        """Allocate blocks of at most ``states`` states and ``members`` nodes of coalitions."""
        n, words = rules.region.shape
        self.rules, self.states, self.members = rules, max(states, n), max(members, n)
        # coalitions of edges have nodes of many edges, each in many states
        per_state = 48 if rules.by_edges else 3
        edge_room = per_state * self.states + len(rules.source)
        slots = 1 << (2 * self.states - 1).bit_length()
        #: Whether nodes are looked up by the part of a coalition around them.
        self._remembers = words > 0 and slots * words * 8 <= _MOST_REMEMBERED
        remembered = slots if self._remembers else 0
        self._known = (
            np.zeros(slots, dtype=np.int64),
            np.empty((self.states, 2), dtype=np.uint64),
            # what was found for a node and the part of a coalition around it
            np.zeros(remembered, dtype=np.int64),
            np.empty((remembered, words), dtype=np.uint64),
            np.empty(remembered, dtype=np.int32),
        )
        self._members = np.empty(self.members, dtype=np.int32)
        self._nodes = np.empty(self.states, dtype=np.int64)
        self._absent = np.empty(self.states, dtype=np.bool_)
        self._ends = np.empty((2, edge_room), dtype=np.int64)
        self._edges = np.empty(edge_room, dtype=np.int64)
        self._work = np.empty((3, n, 2), dtype=np.uint64)
        bare = np.diff(rules.first) == 0
        #: Nodes whose state may differ between the coalitions of a block.
        self._open = np.flatnonzero(~(rules.by_edges & bare & (rules.level <= 0)))
        self._blocks = 0
        #: Lookups after which a block decides whether to go on with them.
        self.patience = _PATIENCE

    def block(
        self,
        masks: Masks,
        present: Masks,
        linked: Masks,
        wanted: NDArray[np.int64],
        bits: np.uint64 = ALL_BITS,
    ) -> Block:
        """The first coalitions of packed ``masks`` (k, words) that fill a block, at least one.

        A coalition's nodes are its own and those ``present`` (1, words); its edges those with both
        ends among its own nodes and those ``linked`` (1, words). If they are of edges, all nodes
        are there, and the edges of the coalition. ``wanted`` are nodes whose states are returned.

        The arrays of a block are overwritten by the next one.
        """
        rules = self.rules
        most = min(len(masks), self.members)
        begins = np.empty(most + 1, dtype=np.int64)
        places = np.empty((most, len(wanted)), dtype=np.int64)
        self._blocks += 1
        k, states, edges = fill(
            masks[:most],
            (present[0], linked[0], rules.region),
            (rules.start, rules.level, rules.first, rules.source, rules.edge, rules.key),
            (rules.counted, rules.by_edges, self._remembers, rules.far),
            (bits, np.int64(self._blocks), self.patience),
            self._known,
            (self._members, begins, self._nodes, self._absent, self._ends, self._edges),
            (wanted, places),
            (self._work, self._open),
        )
        return Block(
            int(k),
            self._members[: begins[k]],
            begins[: k + 1],
            self._nodes[:states],
            self._absent[:states],
            self._ends[:, :edges],
            self._edges[:edges],
            places[:k],
        )


def _numbers(kinds: NDArray[np.int64], salt: int) -> NDArray[np.uint64]:
    """Two numbers for every kind, (..., 2), as good as random but always the same."""
    numbers = np.empty((kinds.size, 2), dtype=np.uint64)
    number(kinds.reshape(-1).astype(np.uint64), np.uint64(salt), numbers)
    return numbers.reshape(*kinds.shape, 2)


def sharing_order(masks: Masks, edge_index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """An order of packed coalitions in which neighbors hold many states together.

    Those with a node in the middle of the graph come first, and so on with every next one of a walk
    through it, depth first. Consecutive ones then agree everywhere but in one part. Everybody is at
    the very front.
    """
    rank = np.empty(n, dtype=np.int64)
    # the first node decides most: it becomes the highest bit
    rank[_walk(edge_index, n)] = np.arange(n)[::-1]
    keys = ~renumber(masks, rank, n)
    return np.lexsort(keys.T) if keys.shape[1] > 1 else np.argsort(keys[:, 0], kind="stable")


def proper_coloring(edge_index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """A small number for every node, another one than those of its neighbors."""
    color = np.full(n, -1, dtype=np.int64)
    color_properly(*_neighbors(edge_index, n), color)
    return color


def _walk(edge_index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """All nodes depth first, from the middle on, always to the neighbor nearest to all others."""
    if n > _MOST_ORDERED:
        return np.arange(n)
    first, heads = _neighbors(edge_index, n)
    near = distances(first, heads)
    total, furthest = near.sum(axis=1), near.max(axis=1)
    seen = np.zeros(n, dtype=np.bool_)
    order: list[int] = []
    for start in np.lexsort((total, furthest)).tolist():
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if not seen[node]:
                seen[node] = True
                order.append(node)
                others = heads[first[node] : first[node + 1]]
                waiting += others[np.argsort(-total[others], kind="stable")].tolist()
    return np.array(order, dtype=np.int64)


def _neighbors(
    edge_index: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the neighbors of every node begin, and the neighbors, edges read both ways."""
    tails, heads = np.concatenate([edge_index, edge_index[::-1]], axis=1)
    order = np.argsort(tails, kind="stable")
    return np.searchsorted(tails[order], np.arange(n + 1)), heads[order]
