"""Connected components: of a graph, and of many coalitions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.compilation import compiled


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
