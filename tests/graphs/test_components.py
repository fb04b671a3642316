"""Components of graphs and of coalitions, against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gstarx.graphs import CommunicationGraph
from gstarx.graphs.components import label_components, label_parts
from tests.oracles import as_networkx, as_sets, parts
from tests.strategies import coalition_matrices, graphs, wide_graphs


def expected_labels(graph: CommunicationGraph, coalition: frozenset[int]) -> list[int]:
    labels = [-1] * graph.num_nodes
    for part in parts(graph, coalition):
        for node in part:
            labels[node] = min(part)
    return labels


@given(st.data())
def test_parts_of_coalitions(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    coalitions = data.draw(coalition_matrices(graph.num_nodes))
    labels = label_parts(graph.edges, coalitions)
    assert labels.shape == coalitions.shape
    assert labels.tolist() == [expected_labels(graph, nodes) for nodes in as_sets(coalitions)]


@given(graphs(max_nodes=12))
def test_labels_of_all_nodes(graph: CommunicationGraph) -> None:
    everyone = frozenset(range(graph.num_nodes))
    labels = label_components(graph.num_nodes, graph.edges)
    assert labels.tolist() == expected_labels(graph, everyone)


@given(graphs(max_nodes=12))
def test_components(graph: CommunicationGraph) -> None:
    expected = sorted(sorted(part) for part in nx.connected_components(as_networkx(graph)))
    assert graph.components == tuple(map(tuple, expected))
    assert all(type(node) is int for part in graph.components for node in part)


@given(wide_graphs())
def test_components_of_a_graph_of_many_words(wide_graph: tuple[CommunicationGraph, ...]) -> None:
    graph = wide_graph[1]
    expected = sorted(sorted(part) for part in nx.connected_components(as_networkx(graph)))
    assert graph.components == tuple(map(tuple, expected))


def test_no_node_has_no_component() -> None:
    assert CommunicationGraph(0).components == ()


def test_a_long_path_in_any_order_is_one_component() -> None:
    order = np.random.default_rng(0).permutation(5_000)
    graph = CommunicationGraph(5_000, np.stack([order[:-1], order[1:]], axis=1))
    assert graph.components == (tuple(range(5_000)),)


def test_a_coalition_with_a_gap_falls_apart() -> None:
    path = CommunicationGraph(200, [(i, i + 1) for i in range(199)])
    mask = np.ones(200, dtype=np.bool_)
    mask[[70, 150]] = False
    labels = path.component_labels(mask)
    assert labels.tolist() == [0] * 70 + [-1] + [71] * 79 + [-1] + [151] * 49
