"""Walks and colors of a graph: the order in which coalitions share most, and who looks alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Masks, compiled, renumber

#: Graphs up to this many nodes get an order of coalitions that shares well.
_MOST_ORDERED = 1024


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
    _color(*_neighbors(edge_index, n), color)
    return color


def _walk(edge_index: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """All nodes depth first, from the middle on, always to the neighbor nearest to all others."""
    if n > _MOST_ORDERED:
        return np.arange(n)
    first, heads = _neighbors(edge_index, n)
    near = _distances(first, heads)
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


@compiled
def _distances(first, heads):  # type: ignore[no-untyped-def]
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


@compiled
def _color(first, heads, color):  # type: ignore[no-untyped-def]
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
