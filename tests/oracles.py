"""Slow and obvious answers, by networkx or by trying everything, to hold the package against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import CommunicationGraph

Nodes = frozenset[int]


def as_networkx(graph: CommunicationGraph) -> nx.Graph:
    """The same graph in networkx."""
    other = nx.empty_graph(graph.num_nodes)
    other.add_edges_from(graph.edges.tolist())
    return other


def subsets(nodes: Iterable[int]) -> Iterator[Nodes]:
    """Every subset, by size, the empty one first."""
    pool = list(nodes)
    sizes = range(len(pool) + 1)
    return map(frozenset, chain.from_iterable(combinations(pool, size) for size in sizes))


def connected_sets(graph: CommunicationGraph) -> list[Nodes]:
    """Every non-empty connected coalition, by size."""
    other = as_networkx(graph)
    return [s for s in subsets(range(graph.num_nodes)) if s and nx.is_connected(other.subgraph(s))]


def parts(graph: CommunicationGraph, coalition: Nodes) -> list[Nodes]:
    """The components of a coalition."""
    inside = as_networkx(graph).subgraph(coalition)
    return [frozenset(part) for part in nx.connected_components(inside)]


def partitions(nodes: Sequence[int]) -> Iterator[list[Nodes]]:
    """Every way to split nodes into non-empty disjoint parts."""
    if not nodes:
        yield []
        return
    first, rest = nodes[0], nodes[1:]
    for partition in partitions(rest):
        yield [frozenset({first}), *partition]
        for i, part in enumerate(partition):
            yield [*partition[:i], part | {first}, *partition[i + 1 :]]


def as_rows(sets: Iterable[Iterable[int]], n: int) -> NDArray[np.bool_]:
    """Sets of nodes as boolean coalitions (k, n)."""
    listed = [list(nodes) for nodes in sets]
    rows = np.zeros((len(listed), n), dtype=np.bool_)
    for row, nodes in zip(rows, listed, strict=True):
        row[nodes] = True
    return rows


def as_sets(rows: NDArray[np.bool_]) -> list[Nodes]:
    """Boolean coalitions (k, n) as sets of nodes."""
    return [frozenset(np.flatnonzero(row).tolist()) for row in rows]


def as_integer(nodes: Iterable[int]) -> int:
    """The bitmask of a set, a Python integer of any size."""
    return sum(1 << node for node in nodes)
