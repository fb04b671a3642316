"""Nodes of coalitions that have the same embedding, found before the model is run.

After ``L`` rounds of message passing the embedding of node ``v`` in coalition ``S`` depends on
nothing but its *state*:

    state_0(v, S) = what v is
    state_l(v, S) = state_{l-1}(v, S) with every (edge u -> v inside S, state_{l-1}(u, S))

What a node or an edge is are its fields. Thousands of coalitions hold nodes of the same state. A
:class:`Block` is a graph with one node for every state of some coalitions, and the edges of the
first coalition in which the state was met: message passing over it gives every state its embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.cached import cached_property
from gstarx.gnn.sharing_order import proper_coloring
from gstarx.graphs import WORD, Masks, compiled, pack, words_for

_ONE = np.uint64(1)
#: A block does without lookups of what it has met if too many of so many of them were in vain:
#: random coalitions hardly ever agree around a node, and a lookup costs half as much as a state.
_PATIENCE, _MOST_MISSED = 8192, 0.3
_ZERO = np.uint64(0)
#: Bytes for looking up nodes by the coalition around them; larger graphs do without.
_MOST_REMEMBERED = 1 << 26
#: Bits of a state that are compared; a test takes fewer, so that different states look the same.
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


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
            _grow(reached.copy(), self.first, self.source, reach, reached)
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
        k, states, edges = _fill(
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
    _number(kinds.reshape(-1).astype(np.uint64), np.uint64(salt), numbers)
    return numbers.reshape(*kinds.shape, 2)


@compiled
def _mix(x):  # type: ignore[no-untyped-def]
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def _number(kinds, salt, numbers):  # type: ignore[no-untyped-def]
    for i in range(len(kinds)):
        base = kinds[i] * np.uint64(2) + salt
        numbers[i, 0] = _mix(_mix(base + np.uint64(0x9E3779B97F4A7C15)))
        numbers[i, 1] = _mix(_mix(base + np.uint64(0xD1342543DE82EF95)))


@compiled
def _grow(before, first, source, reach, grown):  # type: ignore[no-untyped-def]
    """Add to the nodes of every row those of the nodes that send it messages."""
    for v in range(len(grown)):
        if reach[v]:
            for e in range(first[v], first[v + 1]):
                for w in range(grown.shape[1]):
                    grown[v, w] |= before[source[e], w]


@compiled
def _has(mask, node):  # type: ignore[no-untyped-def]
    return (mask[node // WORD] >> np.uint64(node % WORD)) & _ONE != _ZERO


@compiled
def _fill(masks, around, rules, how, marks, known, out, wanted, work):  # type: ignore[no-untyped-def]
    present, linked, region = around
    counted, by_edges, remembers, far = how
    first, source, edge = rules[2:5]
    bits, stamp, patience = marks
    members, begins, nodes, absent, ends, edges = out
    targets, states_of_targets = wanted
    n = len(rules[0])
    work, changing = work
    here, own, joined = np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n, np.bool_)
    seen, slots = np.empty(n, np.int64), np.empty(n, np.int64)
    kept = np.empty(len(edge), np.bool_)
    depth, reach = np.empty(n, np.int64), np.empty(n, np.int64)
    heard = np.empty((2, len(edge) + 1), np.int64)
    # whose states have to be found; states of far nodes, by type, once they were met
    looked, met = np.empty(n, np.int64), np.full(far.max() + 2, -1)
    looks, misses = 0, 0
    total, states, count, row = 0, 0, 0, 0
    begins[0] = 0
    while row < len(masks):
        m = n
        if not by_edges:
            m, some = 0, 0
            for v in range(n):
                own[v] = _has(masks[row], v)
                joined[v] = own[v] or _has(linked, v)
                seen[v] = met[far[v]]
                if own[v] or _has(present, v):
                    here[m] = v
                    m += 1
                    looked[some] = v
                    some += seen[v] < 0
        elif row == 0:
            some = n
            for v in range(n):
                here[v], own[v], joined[v], looked[v] = v, True, True, v
        else:
            # nodes that receive no messages keep the state of the first coalition
            some = len(changing)
            looked[:some] = changing
        full = states + some > len(nodes) or total + m > len(members)
        if row and (full or count + len(edge) > len(edges)):
            break
        fresh = states
        hits = 0
        if remembers:
            hits = _remembered(masks[row], region, looked[:some], stamp, known, slots, seen)
            looks, misses = looks + some, misses + some - hits
            if looks >= patience:
                remembers = misses < _MOST_MISSED * looks
                looks, misses = 0, 0
        if hits < some:
            for i in range(some):
                v = looked[i]
                for e in range(first[v], first[v + 1]):
                    if by_edges:
                        kept[e] = _has(masks[row], edge[e])
                    else:
                        kept[e] = joined[v] and joined[source[e]]
            near = reach[: _needed(looked[:some], seen, hits, kept, rules, depth, reach)]
            _settle(near, own, kept, rules, depth, counted, heard, work)
            for i in range(len(near)):
                v = near[i]
                if hits and seen[v] >= 0:
                    continue
                level = np.uint64(rules[1][v])
                one, two = (work[0, v, 0] + level) & bits, (work[0, v, 1] ^ level) & bits
                seen[v] = _find_or_add(one, two, stamp, known[0], known[1], states)
                if seen[v] == states:
                    nodes[states] = v
                    absent[states] = not own[v]
                    states += 1
                if far[v] >= 0:
                    met[far[v]] = seen[v]
                if remembers:
                    _remember(masks[row], region, v, slots[v], stamp, known, seen[v])
        for i in range(m):
            members[total + i] = seen[here[i]]
        for at in range(len(targets)):
            states_of_targets[row, at] = seen[targets[at]]
        for target in range(fresh, states):
            v = nodes[target]
            for e in range(first[v], first[v + 1]):
                if kept[e]:
                    ends[0, count] = seen[source[e]]
                    ends[1, count] = target
                    edges[count] = edge[e]
                    count += 1
        total += m
        row += 1
        begins[row] = total
    return row, states, count


@compiled
def _remembered(mask, region, here, stamp, known, slots, seen):  # type: ignore[no-untyped-def]
    """Look up every node by the coalition around it; how many were found."""
    marks, parts, owners = known[2:5]
    last = np.uint64(len(marks) - 1)
    hits = 0
    for i in range(len(here)):
        v = here[i]
        key = np.uint64(v)
        for w in range(len(mask)):
            key = (key ^ (mask[w] & region[v, w])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(32)
        s = (key * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(20)) & last
        tries = 0
        hit = False
        while marks[s] >> 32 == stamp and tries < 8:
            hit = owners[s] == v
            for w in range(len(mask)):
                hit &= parts[s, w] == mask[w] & region[v, w]
            if hit:
                break
            s = (s + _ONE) & last
            tries += 1
        slots[v] = np.int64(s)
        if hit:
            seen[v] = marks[s] & 0xFFFFFFFF
            hits += 1
    return hits


@compiled
def _remember(mask, region, v, slot, stamp, known, state):  # type: ignore[no-untyped-def]
    """Note the state of a node by the coalition around it, in place of an older note if need be."""
    marks, parts, owners = known[2:5]
    marks[slot] = stamp << 32 | state
    owners[slot] = v
    for w in range(len(mask)):
        parts[slot, w] = mask[w] & region[v, w]


@compiled
def _needed(looked, seen, hits, kept, rules, depth, reach):  # type: ignore[no-untyped-def]
    """Nodes whose states have to be computed, into ``reach``; how many they are.

    They are those without a state in ``seen``, all where there were no ``hits``, and those they
    hear of, with the number of rounds that matter in ``depth``.
    """
    level, first, source = rules[1:4]
    near, rounds = 0, 0
    for i in range(len(looked)):
        v = looked[i]
        depth[v] = -1
        if not hits or seen[v] < 0:
            depth[v] = level[v]
            rounds = max(rounds, level[v])
            reach[near] = v
            near += 1
    if not hits:
        return near
    for r in range(rounds, 0, -1):
        for i in range(near):
            v = reach[i]
            if depth[v] == r:
                for e in range(first[v], first[v + 1]):
                    u = source[e]
                    if kept[e] and depth[u] < r - 1:
                        if depth[u] < 0:
                            reach[near] = u
                            near += 1
                        depth[u] = r - 1
    return near


@compiled
def _settle(here, own, kept, rules, depth, counted, heard, work):  # type: ignore[no-untyped-def]
    """The states of nodes of one coalition after ``depth`` rounds, into ``work[0]``."""
    start, _, first, source, _, key = rules
    state, sent, sums = work[0], work[1], work[2]
    rounds, links = 0, 0
    for i in range(len(here)):
        v = here[i]
        rounds = max(rounds, depth[v])
        at = 0 if own[v] else 2
        state[v, 0], state[v, 1] = start[v, at], start[v, at + 1]
        sums[v, 0], sums[v, 1] = _ZERO, _ZERO
        if depth[v] > 0:
            # a list of edges: loops over it have no branches
            for e in range(first[v], first[v + 1]):
                heard[0, links], heard[1, links] = e, v
                links += kept[e]
        elif counted:
            for e in range(first[v], first[v + 1]):
                if kept[e]:
                    sums[v, 0] += key[e, 0]
                    sums[v, 1] += key[e, 1]
    if counted:
        for i in range(links):
            e, v = heard[0, i], heard[1, i]
            sums[v, 0] += key[e, 0]
            sums[v, 1] += key[e, 1]
        for i in range(len(here)):
            v = here[i]
            state[v, 0] = _mix(state[v, 0] + sums[v, 0] * np.uint64(0x9E3779B97F4A7C15))
            state[v, 1] = _mix(state[v, 1] + sums[v, 1] * np.uint64(0xD6E8FEB86659FD93))
    for r in range(1, rounds + 1):
        for i in range(len(here)):
            v = here[i]
            sent[v, 0] = _mix(state[v, 0])
            sent[v, 1] = _mix(state[v, 1] + np.uint64(0xA0761D6478BD642F))
            sums[v, 0], sums[v, 1] = _ZERO, _ZERO
        for i in range(links):
            e, v = heard[0, i], heard[1, i]
            sums[v, 0] += sent[source[e], 0] * key[e, 0]
            sums[v, 1] += sent[source[e], 1] * key[e, 1]
        for i in range(len(here)):
            v = here[i]
            if depth[v] >= r:
                state[v, 0] = _mix(state[v, 0] * np.uint64(0x9E3779B97F4A7C15) + sums[v, 0])
                state[v, 1] = _mix(state[v, 1] * np.uint64(0xD6E8FEB86659FD93) + sums[v, 1])


@compiled
def _find_or_add(one, two, stamp, slot, known, count):  # type: ignore[no-untyped-def]
    """The number of a state of this block, ``count`` where it is new."""
    last = np.uint64(len(slot) - 1)
    s = one & last
    # a slot holds the number of a state behind that of the block it was met in
    while slot[s] >> 32 == stamp:
        at = slot[s] & 0xFFFFFFFF
        if known[at, 0] == one and known[at, 1] == two:
            return at
        s = (s + _ONE) & last
    slot[s] = stamp << 32 | count
    known[count, 0] = one
    known[count, 1] = two
    return count
