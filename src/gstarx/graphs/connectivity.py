"""Connected components, and the connected coalitions of a graph, listed and counted.

A connected coalition is grown from its smallest node, the root. A coalition ``S`` on the way has a
set ``opened`` of neighbors it may still take and a set ``closed`` of nodes that are next to it or
not above the root. Taking ``w`` out of ``opened`` gives the child ``S + w``, whose own ``opened``
is what remains plus the neighbors of ``w`` that were not closed (the scheme of Wernicke 2006,
"Efficient detection of network motifs"). Every state visited is one coalition: no dead ends.

All masks have shape (rows, words), so that one kernel serves graphs of any number of nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.bitmasks import Masks
from gstarx.graphs.compilation import WORD, bit_count, compiled, trailing_zeros

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: Kernel steps between two checks for signals, so that Ctrl-C takes effect within a second.
_STEPS_PER_CALL = 50_000_000
#: Counts stop here: beyond it they no longer fit a signed 64-bit word.
MAX_COUNT = 2**62
_BINOMIALS = np.array(
    [[math.comb(n, k) for k in range(WORD)] for n in range(WORD - 2)], dtype=np.int64
)


@dataclass(frozen=True)
class Walk:
    """The explicit stack of one walk over all connected coalitions, so that it can pause."""

    taken: Masks
    opened: Masks
    closed: Masks
    #: [next root, depth of the stack's top (-1: empty)]
    position: NDArray[np.int64]

    @classmethod
    def start(cls, adjacency: Masks) -> Walk:
        """A walk at its beginning over the graph with these neighbor masks."""
        stack = [np.zeros((len(adjacency) + 1, adjacency.shape[1]), np.uint64) for _ in range(3)]
        return cls(stack[0], stack[1], stack[2], np.array([0, -1], dtype=np.int64))


@compiled
def _enter_root(adjacency, root, taken, opened, closed):  # type: ignore[no-untyped-def]
    """Put the coalition ``{root}`` at the bottom of the stack."""
    home = root // WORD
    bit = _ONE << np.uint64(root % WORD)
    for word in range(adjacency.shape[1]):
        not_above = _ZERO
        if word < home:
            not_above = ~_ZERO
        elif word == home:
            not_above = bit | (bit - _ONE)
        taken[0, word] = bit if word == home else _ZERO
        opened[0, word] = adjacency[root, word] & ~not_above
        closed[0, word] = adjacency[root, word] | not_above


@compiled
def _first_word(masks, row):  # type: ignore[no-untyped-def]
    """First word of ``masks[row]`` with a bit set, or the number of words if there is none."""
    word = 0
    while word < masks.shape[1] and masks[row, word] == _ZERO:
        word += 1
    return word


@compiled
def _descend(adjacency, depth, word, taken, opened, closed):  # type: ignore[no-untyped-def]
    """Take the lowest opened node of ``word`` and write the child at ``depth + 1``.

    Returns whether the child can grow further.
    """
    child = depth + 1
    bits = opened[depth, word]
    node = word * WORD + np.int64(trailing_zeros(bits))
    bit = bits & (~bits + _ONE)
    opened[depth, word] = bits ^ bit
    grows = _ZERO
    for w in range(adjacency.shape[1]):
        taken[child, w] = taken[depth, w]
        more = opened[depth, w] | (adjacency[node, w] & ~closed[depth, w])
        opened[child, w] = more
        closed[child, w] = closed[depth, w] | adjacency[node, w]
        grows |= more
    taken[child, word] |= bit
    return grows != _ZERO


@compiled
def _free_choices(adjacency, depth, opened, closed):  # type: ignore[no-untyped-def]
    """Number of opened nodes if none of them opens another (then every subset counts), else -1."""
    choices = np.int64(0)
    for word in range(adjacency.shape[1]):
        bits = opened[depth, word]
        choices += np.int64(bit_count(bits))
        while bits != _ZERO:
            node = word * WORD + np.int64(trailing_zeros(bits))
            bits &= bits - _ONE
            for w in range(adjacency.shape[1]):
                if adjacency[node, w] & ~closed[depth, w] != _ZERO:
                    return -1
    return choices


@compiled
def _count(adjacency, taken, opened, closed, position, by_size, binomials, limit, steps):  # type: ignore[no-untyped-def]
    """Count on from ``position`` for at most ``steps`` steps; returns whether the walk goes on."""
    total = by_size.sum()
    for _ in range(steps):
        if total > limit:
            return False
        depth = position[1]
        if depth < 0:
            root = position[0]
            if root == len(adjacency):
                return False
            _enter_root(adjacency, root, taken, opened, closed)
            position[0], position[1] = root + 1, 0
            by_size[1] += 1
            total += 1
            continue
        choices = _free_choices(adjacency, depth, opened, closed)
        if choices >= 0:
            if choices >= len(binomials):
                by_size[depth + 1] += limit + 1 - total
                return False
            for k in range(1, choices + 1):
                by_size[depth + 1 + k] += binomials[choices, k]
                total += binomials[choices, k]
            position[1] = depth - 1
            continue
        word = _first_word(opened, depth)
        grows = _descend(adjacency, depth, word, taken, opened, closed)
        by_size[depth + 2] += 1
        total += 1
        if grows:
            position[1] = depth + 1
    return True


@compiled
def _fill(adjacency, taken, opened, closed, cursor, masks):  # type: ignore[no-untyped-def]
    """Write every connected coalition to ``masks[cursor[size]]`` and advance that cursor."""
    words = adjacency.shape[1]
    for root in range(len(adjacency)):
        _enter_root(adjacency, root, taken, opened, closed)
        for w in range(words):
            masks[cursor[1], w] = taken[0, w]
        cursor[1] += 1
        depth = 0
        while depth >= 0:
            word = _first_word(opened, depth)
            if word == words:
                depth -= 1
                continue
            grows = _descend(adjacency, depth, word, taken, opened, closed)
            at = cursor[depth + 2]
            cursor[depth + 2] += 1
            for w in range(words):
                masks[at, w] = taken[depth + 1, w]
            if grows:
                depth += 1


def count_by_size(adjacency: Masks, limit: int) -> NDArray[np.int64]:
    """Number of connected coalitions of every size 0..n; stops once the sum exceeds ``limit``.

    Cost: far below one step per coalition where many neighbors are interchangeable (a complete
    graph of any size takes one step), about 10 ns per coalition otherwise. Ctrl-C interrupts it.
    """
    by_size = np.zeros(len(adjacency) + 2, dtype=np.int64)
    walk = Walk.start(adjacency)
    while _count(
        adjacency,
        walk.taken,
        walk.opened,
        walk.closed,
        walk.position,
        by_size,
        _BINOMIALS,
        min(limit, MAX_COUNT),
        _STEPS_PER_CALL,
    ):
        pass
    return by_size[: len(adjacency) + 1]


def list_by_size(adjacency: Masks, by_size: NDArray[np.int64]) -> Masks:
    """All connected coalitions as bitmasks (k, words), ordered by size, singletons by node.

    ``by_size`` is the complete result of :func:`count_by_size`.
    """
    masks = np.empty((int(by_size.sum()), adjacency.shape[1]), dtype=np.uint64)
    cursor = np.cumsum(by_size) - by_size
    walk = Walk.start(adjacency)
    _fill(adjacency, walk.taken, walk.opened, walk.closed, cursor, masks)
    return masks


@compiled
def _find(parent, node):  # type: ignore[no-untyped-def]
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@compiled
def _join(parent, edges, present):  # type: ignore[no-untyped-def]
    """Union-find over the edges whose ends are both present; the smallest node is the root."""
    for e in range(len(edges)):
        if present[edges[e, 0]] and present[edges[e, 1]]:
            a, b = _find(parent, edges[e, 0]), _find(parent, edges[e, 1])
            if a < b:
                parent[b] = a
            else:
                parent[a] = b


@compiled
def _label(edges, coalitions, labels):  # type: ignore[no-untyped-def]
    n = coalitions.shape[1]
    parent = np.empty(n, np.int64)
    for k in range(len(coalitions)):
        for i in range(n):
            parent[i] = i
        _join(parent, edges, coalitions[k])
        for i in range(n):
            labels[k, i] = _find(parent, i) if coalitions[k, i] else -1


def label_parts(edges: NDArray[np.int64], coalitions: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Label the components of every coalition (k, n) by their smallest node; -1 outside.

    >>> label_parts(np.array([[0, 1], [1, 2]]), np.array([[True, False, True]]))
    array([[ 0, -1,  2]])
    """
    labels = np.empty(coalitions.shape, dtype=np.int64)
    _label(np.ascontiguousarray(edges), np.ascontiguousarray(coalitions), labels)
    return labels


def label_components(num_nodes: int, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label every node of a graph by the smallest node of its component.

    >>> label_components(4, np.array([[1, 2]]))
    array([0, 1, 1, 3])
    """
    everyone = np.ones((1, num_nodes), dtype=np.bool_)
    labels: NDArray[np.int64] = label_parts(edges, everyone)[0]
    return labels
