"""Hypothesis strategies that the tests share: graphs and games, small but of every kind."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from gstarx.games import TableGame
from gstarx.graphs import CommunicationGraph

#: Worths that float arithmetic adds and subtracts exactly, so that tests may ask for equality.
WHOLE = st.integers(-20, 20).map(float)
#: Worths of no particular kind.
REAL = st.floats(-100, 100, allow_subnormal=False)


@st.composite
def graphs(
    draw: st.DrawFn, *, min_nodes: int = 0, max_nodes: int = 8, connected: bool = False
) -> CommunicationGraph:
    """Graphs from no edge to all of them: disconnected, with isolated nodes, of one or no node.

    ``connected`` draws connected graphs only, which have at least one node. A graph shrinks towards
    few nodes and few edges.
    """
    n = draw(st.integers(max(min_nodes, 1 if connected else 0), max_nodes))
    edges: list[tuple[int, int]] = []
    if connected:
        edges += [(draw(st.integers(0, node - 1)), node) for node in range(1, n)]
    pairs = list(combinations(range(n), 2))
    if pairs:
        edges += draw(st.lists(st.sampled_from(pairs), unique=True, max_size=len(pairs)))
    label = draw(st.permutations(range(n)))
    return CommunicationGraph(n, [(label[i], label[j]) for i, j in edges])


def connected_graphs(*, min_nodes: int = 1, max_nodes: int = 8) -> st.SearchStrategy[Any]:
    """Connected graphs of at least one node."""
    return graphs(min_nodes=min_nodes, max_nodes=max_nodes, connected=True)


@st.composite
def wide_graphs(
    draw: st.DrawFn, *, max_nodes: int = 6, max_width: int = 200
) -> tuple[CommunicationGraph, CommunicationGraph, list[int]]:
    """A small graph, and the same graph inside one of more than 64 nodes, the others isolated.

    The third part of the answer is where: node ``i`` of the small graph is ``places[i]`` of the
    wide one, in no particular order.
    """
    small = draw(graphs(min_nodes=1, max_nodes=max_nodes))
    width = draw(st.integers(65, max_width))
    near_word_ends = st.sampled_from([i for i in range(width) if i % 64 in (0, 1, 62, 63)])
    place = st.integers(0, width - 1) | near_word_ends
    n = small.num_nodes
    places = draw(st.lists(place, unique=True, min_size=n, max_size=n))
    wide = CommunicationGraph(width, np.array(places)[small.edges])
    return small, wide, places


@st.composite
def edge_lists(draw: st.DrawFn, *, max_nodes: int = 8) -> tuple[int, list[tuple[int, int]]]:
    """A number of nodes and edges as they come: directed, repeated, with self-loops."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=3 * n))


def coalition_matrices(n: int, *, max_rows: int = 8) -> st.SearchStrategy[NDArray[np.bool_]]:
    """Boolean coalitions (k, n), among them none at all, the empty one, and repeated ones."""
    return st.integers(0, max_rows).flatmap(lambda k: arrays(np.bool_, (k, n)))


def worth_tables(
    n: int, *, q: int | None = None, elements: st.SearchStrategy[float] = WHOLE
) -> st.SearchStrategy[NDArray[np.float64]]:
    """Worths indexed by bitmask, (2^n,) or (2^n, q), nought for the empty coalition."""

    def without_the_empty(table: NDArray[np.float64]) -> NDArray[np.float64]:
        table[0] = 0.0
        return table

    shape = (2**n,) if q is None else (2**n, q)
    return arrays(np.float64, shape, elements=elements).map(without_the_empty)


def table_games(
    n: int, *, q: int | None = None, elements: st.SearchStrategy[float] = WHOLE
) -> st.SearchStrategy[TableGame]:
    """Games of ``n`` players given by their worths."""
    return worth_tables(n, q=q, elements=elements).map(lambda table: TableGame(n, table))


@st.composite
def graph_games(
    draw: st.DrawFn,
    *,
    min_nodes: int = 0,
    max_nodes: int = 6,
    connected: bool = False,
    q: int | None = None,
    elements: st.SearchStrategy[float] = WHOLE,
) -> tuple[TableGame, CommunicationGraph]:
    """A game, and a graph on its players."""
    graph = draw(graphs(min_nodes=min_nodes, max_nodes=max_nodes, connected=connected))
    return draw(table_games(graph.num_nodes, q=q, elements=elements)), graph
