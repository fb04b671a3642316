"""The compiled loops of :mod:`gstarx.graphs.color_refinement`."""

from __future__ import annotations

import numpy as np

from gstarx.graphs.compilation import WORD, compiled

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: A block does without lookups of what it has met if this share of them was in vain: random
#: coalitions hardly ever agree around a node, and a lookup costs half as much as a state.
MOST_MISSED = 0.3


@compiled
def _mix(x):  # type: ignore[no-untyped-def]
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def number(kinds, salt, numbers):  # type: ignore[no-untyped-def]
    """Two numbers for every kind."""
    for i in range(len(kinds)):
        base = kinds[i] * np.uint64(2) + salt
        numbers[i, 0] = _mix(_mix(base + np.uint64(0x9E3779B97F4A7C15)))
        numbers[i, 1] = _mix(_mix(base + np.uint64(0xD1342543DE82EF95)))


@compiled
def grow(before, first, source, reach, grown):  # type: ignore[no-untyped-def]
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
def fill(masks, around, rules, how, marks, known, out, wanted, work):  # type: ignore[no-untyped-def]
    """States of the first coalitions until a block is full; how many coalitions, states, edges."""
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
                remembers = misses < MOST_MISSED * looks
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


@compiled
def color_properly(first, heads, color):  # type: ignore[no-untyped-def]
    """Give every node a color that none of its neighbors has."""
    n = len(color)
    waiting = np.empty(n, np.int64)
    for root in range(n):
        if color[root] >= 0:
            continue
        color[root] = 0
        waiting[0] = root
        here, top = 0, 1
        # outwards from the root, so that two colors do where two are enough
        while here < top:
            node = waiting[here]
            here += 1
            for at in range(first[node], first[node + 1]):
                other = heads[at]
                if color[other] < 0:
                    color[other] = _free_color(first, heads, color, other)
                    waiting[top] = other
                    top += 1


@compiled
def _free_color(first, heads, color, node):  # type: ignore[no-untyped-def]
    free = 0
    while True:
        taken = False
        for at in range(first[node], first[node + 1]):
            taken |= color[heads[at]] == free and heads[at] != node
        if not taken:
            return free
        free += 1


@compiled
def distances(first, heads):  # type: ignore[no-untyped-def]
    """The number of edges between all pairs of nodes, 0 where there is no path."""
    n = len(first) - 1
    near = np.zeros((n, n), np.int64)
    waiting = np.empty(n, np.int64)
    for start in range(n):
        near[start, :] = -1
        near[start, start] = 0
        waiting[0] = start
        here, top = 0, 1
        while here < top:
            node = waiting[here]
            here += 1
            for at in range(first[node], first[node + 1]):
                if near[start, heads[at]] < 0:
                    near[start, heads[at]] = near[start, node] + 1
                    waiting[top] = heads[at]
                    top += 1
        for node in range(n):
            near[start, node] = max(near[start, node], 0)
    return near
