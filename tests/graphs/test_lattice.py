"""Connected coalitions and their links, against the definitions on boolean rows."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from gstarx.graphs import CoalitionLattice, CommunicationGraph, TooManyCoalitions
from tests.oracles import as_networkx, as_sets, connected_sets
from tests.strategies import connected_graphs, graphs, wide_graphs


def check_links(graph: CommunicationGraph, lattice: CoalitionLattice) -> None:
    """Boundaries, successors and joining nodes of every coalition, one by one."""
    other = as_networkx(graph)
    coalitions = as_sets(lattice.coalitions())
    nodes = lattice.joining_nodes()
    assert lattice.links[0] == 0
    assert lattice.links[-1] == len(lattice.successors) == len(nodes)
    for row, coalition in enumerate(coalitions):
        boundary = sorted(nx.node_boundary(other, coalition))
        here = slice(lattice.links[row], lattice.links[row + 1])
        assert lattice.boundary_sizes[row] == len(boundary)
        assert nodes[here].tolist() == boundary
        grown = [coalition | {node} for node in boundary]
        assert [coalitions[successor] for successor in lattice.successors[here]] == grown


@given(graphs(max_nodes=7))
def test_rows_are_the_connected_coalitions(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    expected = connected_sets(graph)
    found = as_sets(lattice.coalitions())
    assert lattice.num_nodes == graph.num_nodes
    assert len(lattice) == len(found) == len(expected)
    assert set(found) == set(expected)
    assert lattice.sizes.tolist() == [len(nodes) for nodes in found]
    assert lattice.starts.tolist() == [
        sum(len(nodes) <= size for nodes in expected) for size in range(graph.num_nodes + 1)
    ]
    assert found[: graph.num_nodes] == [frozenset({node}) for node in range(graph.num_nodes)]


@given(graphs(max_nodes=7))
def test_links(graph: CommunicationGraph) -> None:
    check_links(graph, CoalitionLattice.of(graph))


@given(wide_graphs(max_nodes=5))
def test_links_of_a_graph_of_many_words(drawn: tuple[Any, CommunicationGraph, Any]) -> None:
    check_links(drawn[1], CoalitionLattice.of(drawn[1]))


@given(connected_graphs())
def test_the_grand_coalition_comes_last(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    assert lattice.coalitions(slice(-1, None)).all()
    assert lattice.tops.tolist() == [len(lattice) - 1]


@given(graphs())
def test_components_are_the_coalitions_without_a_boundary(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    tops = as_sets(lattice.coalitions(lattice.tops))
    assert sorted(map(sorted, tops)) == [list(part) for part in graph.components]


def test_a_path_of_200_nodes() -> None:
    graph = CommunicationGraph(200, [(i, i + 1) for i in range(199)])
    lattice = CoalitionLattice.of(graph)
    coalitions = lattice.coalitions()
    np.testing.assert_array_equal(lattice.boundary_sizes, graph.boundary(coalitions).sum(axis=1))
    owner = np.repeat(np.arange(len(lattice)), np.diff(lattice.links))
    grown = coalitions[owner]
    nodes = lattice.joining_nodes()
    assert not grown[np.arange(len(grown)), nodes].any()
    grown[np.arange(len(grown)), nodes] = True
    np.testing.assert_array_equal(coalitions[lattice.successors], grown)
    assert ((np.diff(nodes) > 0) | (np.diff(owner) > 0)).all()


def test_a_clique_in_the_last_bits_of_a_word() -> None:
    # coalitions that differ only here must not pile up in the hash table
    graph = CommunicationGraph(64, CommunicationGraph.complete(14).edges + 50)
    lattice = CoalitionLattice.of(graph)
    assert len(lattice) == 50 + 2**14 - 1
    coalitions = lattice.coalitions()
    np.testing.assert_array_equal(lattice.boundary_sizes, graph.boundary(coalitions).sum(axis=1))
    owner = np.repeat(np.arange(len(lattice)), np.diff(lattice.links))
    added = coalitions[lattice.successors] & ~coalitions[owner]
    np.testing.assert_array_equal(added.sum(axis=1), 1)
    assert not (coalitions[owner] & ~coalitions[lattice.successors]).any()


def test_no_node_and_one_node() -> None:
    nothing = CoalitionLattice.of(CommunicationGraph(0))
    assert len(nothing) == 0
    assert nothing.coalitions().shape == (0, 0)
    assert nothing.sizes.shape == (0,)
    alone = CoalitionLattice.of(CommunicationGraph(1))
    assert alone.coalitions().tolist() == [[True]]
    assert alone.boundary_sizes.tolist() == [0]
    assert alone.successors.shape == (0,)


def test_rows_may_be_chosen() -> None:
    lattice = CoalitionLattice.of(CommunicationGraph(3, [(0, 1), (1, 2)]))
    every = lattice.coalitions()
    np.testing.assert_array_equal(lattice.coalitions(slice(1, 4)), every[1:4])
    np.testing.assert_array_equal(lattice.coalitions(np.array([5, 0])), every[[5, 0]])


def test_limit() -> None:
    graph = CommunicationGraph.complete(5)
    assert len(CoalitionLattice.of(graph, limit=31)) == 31
    with pytest.raises(TooManyCoalitions, match=r"at least 31 .* the limit is 30: raise the limit"):
        CoalitionLattice.of(graph, limit=30)
