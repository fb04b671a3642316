"""The smallest coalitions of a graph, all of them, with their exact growth weights.

The recursion ``w_k(T) = sum over j of w_k(T - j) / b(T)`` carries the growth weights of all start
nodes from every size to the next, as long as all coalitions of that size fit the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import CommunicationGraph, Masks, boundary_of, compiled, same_mask, slot_of

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@dataclass(frozen=True)
class SmallCoalitions:
    """All coalitions of a connected graph up to some size, the whole graph not among them."""

    #: Packed coalitions (k, words) by size, and their growth weights (k, n).
    masks: Masks
    weights: NDArray[np.float64]
    #: The first row of the largest size.
    last: int
    #: The largest size.
    size: int

    @classmethod
    def within(cls, graph: CommunicationGraph, limit: int) -> SmallCoalitions:
        """As many complete sizes as fit ``limit`` coalitions, and always the single nodes."""
        n = graph.num_nodes
        masks = np.zeros((n, graph.adjacency.shape[1]), dtype=np.uint64)
        masks[np.arange(n), np.arange(n) // 64] = _ONE << (np.arange(n) % 64).astype(np.uint64)
        levels = [(masks, np.eye(n))]
        remaining = limit - n
        while len(levels) < n - 1:
            grown = _grow(graph.adjacency, *levels[-1], remaining)
            if grown is None:
                break
            levels.append(grown)
            remaining -= len(grown[0])
        total = sum(len(masks) for masks, _ in levels)
        return cls(
            np.concatenate([masks for masks, _ in levels]),
            np.concatenate([weights for _, weights in levels]),
            total - len(levels[-1][0]),
            len(levels),
        )


def _grow(
    adjacency: Masks, masks: Masks, weights: NDArray[np.float64], remaining: int
) -> tuple[Masks, NDArray[np.float64]] | None:
    """All coalitions one size up, and their weights; nothing if there are too many."""
    links = int(_boundary_total(adjacency, masks))
    most = min(remaining, links)
    if most < 1:
        return None
    table = np.full(1 << (2 * most).bit_length(), -1, dtype=np.int64)
    grown = np.empty((most + 1, masks.shape[1]), dtype=np.uint64)
    into = np.empty(links, dtype=np.int32)
    count = _find_grown(adjacency, masks, table, grown, into)
    if count > most:
        return None
    carried = np.zeros((count, weights.shape[1]))
    _carry(adjacency, masks, weights, grown, into, carried)
    return grown[:count].copy(), carried


@compiled
def _boundary_total(adjacency, masks):  # type: ignore[no-untyped-def]
    border = np.empty(adjacency.shape[1], np.uint64)
    total = 0
    for row in range(len(masks)):
        total += boundary_of(adjacency, masks[row], border)
    return total


@compiled
def _find_grown(adjacency, masks, table, grown, into):  # type: ignore[no-untyped-def]
    """Fill ``grown``, and where every link leads; stops as soon as the last row is needed."""
    words = adjacency.shape[1]
    slots = len(table)
    border = np.empty(words, np.uint64)
    count = 0
    link = 0
    for row in range(len(masks)):
        boundary_of(adjacency, masks[row], border)
        for word in range(words):
            bits = border[word]
            while bits != _ZERO:
                bit = bits & (~bits + _ONE)
                bits ^= bit
                # written to the next free place, which it keeps if it is new
                for w in range(words):
                    grown[count, w] = masks[row, w]
                grown[count, word] |= bit
                s = slot_of(grown[count], slots)
                while table[s] >= 0 and not same_mask(grown[table[s]], grown[count]):
                    s = (s + 1) & (slots - 1)
                if table[s] < 0:
                    table[s] = count
                    count += 1
                    if count == len(grown):
                        return count
                into[link] = table[s]
                link += 1
    return count


@compiled
def _carry(adjacency, masks, weights, grown, into, carried):  # type: ignore[no-untyped-def]
    """Every coalition's weights go to each coalition it can grow into."""
    n = weights.shape[1]
    border = np.empty(adjacency.shape[1], np.uint64)
    link = 0
    for row in range(len(masks)):
        for _ in range(boundary_of(adjacency, masks[row], border)):
            for k in range(n):
                carried[into[link], k] += weights[row, k]
            link += 1
    for row in range(len(carried)):
        size = boundary_of(adjacency, grown[row], border)
        for k in range(n):
            carried[row, k] /= size
