"""The connected coalitions of a graph, and how each grows by one neighbor.

Every exact value in the package is a sum over this structure. A coalition ``T`` has a successor
``T + j`` for every node ``j`` of its boundary, and all successors live one size above it, which is
why values can be computed size by size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.bitmasks import Coalitions, Masks, same_mask, slot_of, unpack
from gstarx.graphs.communication import CommunicationGraph
from gstarx.graphs.compilation import WORD, bit_count, compiled, trailing_zeros

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@dataclass(frozen=True)
class CoalitionLattice:
    """All connected coalitions of a graph, linked to those one node larger.

    Coalitions are ordered by size; the first ``n`` are the singletons in node order. A coalition
    without a boundary is a whole component.

    Attributes
    ----------
    num_nodes
        ``n``.
    masks
        Bitmasks (k, words).
    starts
        ``starts[s - 1] : starts[s]`` are the rows of size ``s``; shape (n + 1,).
    boundary_sizes
        ``b(T)``, the number of neighbors outside ``T``; shape (k,).
    links
        ``links[r] : links[r + 1]`` are the places of row ``r`` in ``successors``; shape (k + 1,).
    successors
        Row of ``T + j`` for every ``j`` in the boundary of ``T``, by ascending ``j``.
    """

    num_nodes: int
    masks: Masks
    starts: NDArray[np.int64]
    boundary_sizes: NDArray[np.int32]
    links: NDArray[np.int64]
    successors: NDArray[np.int32]

    @classmethod
    def of(cls, graph: CommunicationGraph, limit: int | None = None) -> CoalitionLattice:
        """List and link the connected coalitions of a graph.

        Raises :class:`~gstarx.graphs.TooManyCoalitions` when there are more than ``limit``.
        Cost: about 0.1 microseconds per link on one core; memory ``8 words + 4 b(T)`` bytes each.
        """
        masks, by_size = graph.connected_masks(limit)
        starts = np.cumsum(by_size)
        sizes = np.empty(len(masks), dtype=np.int32)
        _boundary_sizes(graph.adjacency, masks, sizes)
        links = np.zeros(len(masks) + 1, dtype=np.int64)
        np.cumsum(sizes, dtype=np.int64, out=links[1:])
        successors = np.empty(links[-1], dtype=np.int32)
        capacity = 1 << (2 * int(by_size.max(initial=1)) - 1).bit_length()
        table = np.empty(capacity, dtype=np.int32)
        _link(graph.adjacency, masks, starts, links, successors, table)
        return cls(graph.num_nodes, masks, starts, sizes, links, successors)

    def __len__(self) -> int:
        return len(self.masks)

    def coalitions(self, rows: slice | NDArray[np.int64] = slice(None)) -> Coalitions:
        """The coalitions of some rows as a boolean array (k, n)."""
        return unpack(self.masks[rows], self.num_nodes)

    def joining_nodes(self) -> NDArray[np.int32]:
        """The node that every link adds, aligned with ``successors``."""
        nodes = np.empty(len(self.successors), dtype=np.int32)
        _joining_nodes(self.masks, self.links, self.successors, nodes)
        return nodes

    @property
    def tops(self) -> NDArray[np.int64]:
        """Rows of the whole components, which cannot grow."""
        return np.flatnonzero(self.boundary_sizes == 0)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``|T|`` of every row."""
        return np.repeat(np.arange(1, self.num_nodes + 1), np.diff(self.starts))


@compiled
def boundary_of(adjacency, mask, border):  # type: ignore[no-untyped-def]
    """Write the boundary of ``mask`` to ``border``; returns its size."""
    words = adjacency.shape[1]
    for w in range(words):
        border[w] = _ZERO
    for word in range(words):
        bits = mask[word]
        while bits != _ZERO:
            node = word * WORD + np.int64(trailing_zeros(bits))
            bits &= bits - _ONE
            for w in range(words):
                border[w] |= adjacency[node, w]
    size = np.int64(0)
    for w in range(words):
        border[w] &= ~mask[w]
        size += np.int64(bit_count(border[w]))
    return size


@compiled
def _boundary_sizes(adjacency, masks, sizes):  # type: ignore[no-untyped-def]
    border = np.empty(adjacency.shape[1], np.uint64)
    for row in range(len(masks)):
        sizes[row] = boundary_of(adjacency, masks[row], border)


@compiled
def _link(adjacency, masks, starts, links, successors, table):  # type: ignore[no-untyped-def]
    """Fill ``successors``, one size at a time, by hashing the coalitions of the next size."""
    words = adjacency.shape[1]
    border = np.empty(words, np.uint64)
    grown = np.empty(words, np.uint64)
    for size in range(1, len(starts) - 1):
        first, last = starts[size], starts[size + 1]
        slots = 2
        while slots < 2 * (last - first):
            slots *= 2
        for s in range(slots):
            table[s] = -1
        for row in range(first, last):
            s = slot_of(masks[row], slots)
            while table[s] >= 0:
                s = (s + 1) & (slots - 1)
            table[s] = row
        for row in range(starts[size - 1], first):
            boundary_of(adjacency, masks[row], border)
            at = links[row]
            for w in range(words):
                grown[w] = masks[row, w]
            for word in range(words):
                bits = border[word]
                while bits != _ZERO:
                    bit = bits & (~bits + _ONE)
                    bits ^= bit
                    grown[word] |= bit
                    s = slot_of(grown, slots)
                    while not same_mask(masks[table[s]], grown):
                        s = (s + 1) & (slots - 1)
                    successors[at] = table[s]
                    at += 1
                    grown[word] ^= bit


@compiled
def _joining_nodes(masks, links, successors, nodes):  # type: ignore[no-untyped-def]
    for row in range(len(masks)):
        for at in range(links[row], links[row + 1]):
            for word in range(masks.shape[1]):
                bits = masks[row, word] ^ masks[successors[at], word]
                if bits != _ZERO:
                    nodes[at] = word * WORD + np.int64(trailing_zeros(bits))
