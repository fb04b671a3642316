"""Communication graphs: what goes in, what can be asked, what is refused."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.graphs.communication import as_coalitions, as_nodes, as_size
from tests.oracles import as_networkx, as_rows, as_sets
from tests.pairs import for_each
from tests.strategies import coalition_matrices, edge_lists, graphs, wide_graphs

PATH = CommunicationGraph(3, [(0, 1), (1, 2)])


# construction


@given(edge_lists())
def test_direction_repeats_and_loops_are_dropped(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = drawn
    expected = sorted({(min(e), max(e)) for e in edges if e[0] != e[1]})
    graph = CommunicationGraph(n, edges)
    assert graph.num_nodes == n
    assert graph.edges.shape == (len(expected), 2)
    assert graph.edges.dtype == np.int64
    assert list(map(tuple, graph.edges.tolist())) == expected
    assert repr(graph) == f"CommunicationGraph(num_nodes={n}, num_edges={len(expected)})"


@given(edge_lists())
def test_edges_in_any_container(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = drawn
    graph = CommunicationGraph(n, edges)
    array = np.array(edges, dtype=np.int32).reshape(-1, 2)
    assert CommunicationGraph(n, array) == graph
    assert CommunicationGraph(n, array.astype(np.uint64)) == graph
    assert CommunicationGraph(np.int64(n), (list(e) for e in edges)) == graph
    assert CommunicationGraph(n, set(edges)) == graph


def test_without_edges() -> None:
    for nothing in ((), [], np.zeros((0, 2), dtype=int), iter(())):
        assert CommunicationGraph(2, nothing).edges.shape == (0, 2)
    assert CommunicationGraph(0).num_nodes == 0


@for_each(
    ("num_nodes", "error", "message"),
    [
        (-1, ValueError, r"num_nodes must be at least 0 \(got -1\)"),
        (2.0, TypeError, r"num_nodes must be an integer \(got 2.0\)"),
        (True, TypeError, r"num_nodes must be an integer \(got True\)"),
        ("3", TypeError, r"num_nodes must be an integer \(got '3'\)"),
        (None, TypeError, r"num_nodes must be an integer \(got None\)"),
    ],
)
def test_a_bad_number_of_nodes(num_nodes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CommunicationGraph(num_nodes, [])
    with pytest.raises(error, match=message):
        CommunicationGraph.complete(num_nodes)


@for_each(
    ("edges", "error", "message"),
    [
        (
            [(0, 1), (1, 3)],
            ValueError,
            r"edge \(1, 3\) names a node outside 0\.\.2 of a graph with 3 nodes",
        ),
        ([(0, 1), (-1, 2), (1, -2)], ValueError, r"edge \(-1, 2\) names a node outside 0\.\.2"),
        ([(7, 7)], ValueError, r"edge \(7, 7\) names a node outside 0\.\.2"),
        ([(0, 1, 2)], ValueError, r"edges must be pairs of nodes, shape \(m, 2\) \(got \(1, 3\)\)"),
        ([0, 1], ValueError, r"edges must be pairs of nodes, shape \(m, 2\) \(got \(2,\)\)"),
        (
            [(0, 1), (2,)],
            ValueError,
            r"edges must have shape \(m, 2\) \(got rows of unequal length\)",
        ),
        ([(0.0, 1.0)], TypeError, r"edges must be integers \(got dtype float64\)"),
        ([(True, False)], TypeError, r"edges must be integers \(got dtype bool\)"),
        ([("a", "b")], TypeError, r"edges must be integers \(got dtype <U1\)"),
    ],
)
def test_bad_edges(edges: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CommunicationGraph(3, edges)


def test_the_callers_edges_are_neither_kept_nor_changed() -> None:
    edges = np.array([[1, 0], [1, 2]])
    graph = CommunicationGraph(3, edges)
    edges[:] = 0
    assert graph == PATH
    assert edges.flags.writeable


@pytest.mark.parametrize("name", ["edges", "degrees", "adjacency"])
def test_what_a_graph_hands_out_cannot_be_written_to(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(CommunicationGraph(3, [(0, 1)]), name)[0] = 2


# other ways in


@given(edge_lists())
def test_from_edge_index(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = drawn
    edge_index = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = CommunicationGraph(n, edges)
    assert CommunicationGraph.from_edge_index(edge_index, num_nodes=n) == graph
    assert CommunicationGraph.from_edge_index(edge_index.tolist(), n) == graph
    guessed = CommunicationGraph.from_edge_index(edge_index)
    assert guessed.num_nodes == max((max(e) for e in edges), default=-1) + 1
    np.testing.assert_array_equal(guessed.edges, graph.edges)


def test_from_edge_index_given_a_tensor() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 2, 1]])
    before = edge_index.clone()
    graph = CommunicationGraph.from_edge_index(edge_index, num_nodes=4)
    assert graph == CommunicationGraph(4, [(0, 1), (1, 2)])
    assert CommunicationGraph.from_edge_index(edge_index).num_nodes == 3
    assert torch.equal(edge_index, before)
    # not contiguous in memory, another integer type, and no edge at all
    turned = torch.tensor([[0, 1], [1, 2]], dtype=torch.int32).t()
    assert CommunicationGraph.from_edge_index(turned) == PATH
    none = torch.empty((2, 0), dtype=torch.long)
    assert CommunicationGraph.from_edge_index(none) == CommunicationGraph(0)
    assert CommunicationGraph.from_edge_index(none, num_nodes=2) == CommunicationGraph(2)
    with pytest.raises(TypeError, match=r"edge_index must be integers \(got dtype float32\)"):
        CommunicationGraph.from_edge_index(edge_index.float())


@for_each("nothing", [[], [[], []], np.zeros((2, 0)), np.zeros((0, 2))])
def test_from_edge_index_without_edges(nothing: Any) -> None:
    assert CommunicationGraph.from_edge_index(nothing) == CommunicationGraph(0)
    assert CommunicationGraph.from_edge_index(nothing, num_nodes=3) == CommunicationGraph(3)


@for_each(
    ("edge_index", "error", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], ValueError, r"edge_index must have shape \(2, E\) \(got \(3, 2"),
        ([0, 1], ValueError, r"edge_index must have shape \(2, E\) \(got \(2,\)\)"),
        ([[0, 1], [1]], ValueError, r"edge_index must have shape \(2, E\) \(got rows of unequal"),
        ([[0.5], [1.0]], TypeError, r"edge_index must be integers \(got dtype float64\)"),
        ([[np.nan], [1.0]], TypeError, r"edge_index must be integers \(got dtype float64\)"),
        ([[-3], [-2]], ValueError, r"edge \(-3, -2\) names a node outside"),
        ([[0], [-1]], ValueError, r"edge \(0, -1\) names a node outside 0\.\.0"),
    ],
)
def test_a_bad_edge_index(edge_index: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CommunicationGraph.from_edge_index(edge_index)


def test_an_edge_index_that_does_not_fit_the_nodes() -> None:
    with pytest.raises(ValueError, match=r"edge \(0, 1\) names a node outside 0\.\.0"):
        CommunicationGraph.from_edge_index([[0], [1]], num_nodes=1)


@given(graphs())
def test_from_networkx(graph: CommunicationGraph) -> None:
    assert CommunicationGraph.from_networkx(as_networkx(graph)) == graph


def test_from_networkx_numbers_nodes_in_their_order() -> None:
    other = nx.Graph([("b", "a"), ("a", "c")])
    other.add_node("alone")
    assert CommunicationGraph.from_networkx(other) == CommunicationGraph(4, [(0, 1), (1, 2)])


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_from_networkx_of_another_kind(kind: type[nx.Graph]) -> None:
    other = kind([(0, 1), (1, 0), (1, 2), (1, 2), (2, 2)])
    assert CommunicationGraph.from_networkx(other) == PATH


@for_each("n", [0, 1, 2, 5, 70])
def test_complete(n: int) -> None:
    assert CommunicationGraph.complete(n) == CommunicationGraph.from_networkx(nx.complete_graph(n))


# equality


@given(edge_lists(), st.randoms())
def test_equal_graphs_are_equal_and_hash_alike(
    drawn: tuple[int, list[tuple[int, int]]], random: Any
) -> None:
    n, edges = drawn
    graph = CommunicationGraph(n, edges)
    shuffled = [(j, i) if random.random() < 0.5 else (i, j) for i, j in edges + edges[:2]]
    random.shuffle(shuffled)
    same = CommunicationGraph(n, shuffled)
    assert same == graph
    assert hash(same) == hash(graph)
    assert len({same, graph}) == 1


@given(graphs(), graphs())
def test_unequal_graphs_are_unequal(one: CommunicationGraph, other: CommunicationGraph) -> None:
    as_data = [(g.num_nodes, g.edges.tolist()) for g in (one, other)]
    assert (one == other) == (as_data[0] == as_data[1])


def test_isolated_nodes_tell_graphs_apart() -> None:
    assert CommunicationGraph(3, [(0, 1)]) != CommunicationGraph(2, [(0, 1)])
    assert hash(CommunicationGraph(3, [(0, 1)])) != hash(CommunicationGraph(2, [(0, 1)]))
    assert PATH != "path"


@given(graphs())
def test_a_graph_survives_a_trip_to_another_process(graph: CommunicationGraph) -> None:
    assert graph.components is graph.components
    back = pickle.loads(pickle.dumps(graph))
    assert back == graph
    assert hash(back) == hash(graph)
    assert not back.edges.flags.writeable


def test_so_does_its_error() -> None:
    error = TooManyCoalitions(1_001, 1_000, "sample instead")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is TooManyCoalitions
    assert str(back) == str(error)
    assert str(back).endswith("1,001 connected coalitions and the limit is 1,000: sample instead")
    assert (back.at_least, back.limit) == (1_001, 1_000)


# neighbors


@given(graphs(max_nodes=12) | wide_graphs().map(lambda drawn: drawn[1]))
def test_degrees_and_adjacency(graph: CommunicationGraph) -> None:
    other = as_networkx(graph)
    assert graph.degrees.dtype == np.int64
    assert graph.degrees.tolist() == [other.degree(i) for i in range(graph.num_nodes)]
    assert graph.adjacency.dtype == np.uint64
    for node in range(graph.num_nodes):
        mask = sum(int(word) << (64 * w) for w, word in enumerate(graph.adjacency[node]))
        assert mask == sum(1 << there for there in other[node])


@given(st.data())
def test_boundary(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    coalitions = data.draw(coalition_matrices(graph.num_nodes))
    other = as_networkx(graph)
    found = graph.boundary(coalitions)
    assert found.dtype == np.bool_
    assert found.shape == coalitions.shape
    assert as_sets(found) == [nx.node_boundary(other, nodes) for nodes in as_sets(coalitions)]
    for coalition, border in zip(coalitions, found, strict=True):
        np.testing.assert_array_equal(graph.boundary(coalition), border, strict=True)


@given(wide_graphs(), st.data())
def test_boundary_in_a_graph_of_many_words(drawn: Any, data: st.DataObject) -> None:
    _, wide, places = drawn
    inside = data.draw(st.sets(st.sampled_from(places)))
    mask = as_rows([inside], wide.num_nodes)[0]
    expected = nx.node_boundary(as_networkx(wide), inside)
    assert set(np.flatnonzero(wide.boundary(mask))) == expected


def test_the_mask_may_be_a_list() -> None:
    assert PATH.boundary([False, True, False]).tolist() == [True, False, True]
    assert PATH.component_labels([[True, False, True]]).tolist() == [[0, -1, 2]]


@given(st.data())
def test_component_labels_of_one_and_of_many(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    coalitions = data.draw(coalition_matrices(graph.num_nodes))
    labels = graph.component_labels(coalitions)
    assert labels.shape == coalitions.shape
    for coalition, row in zip(coalitions, labels, strict=True):
        np.testing.assert_array_equal(graph.component_labels(coalition), row, strict=True)


@for_each("ask", ["boundary", "component_labels"])
@for_each(
    ("mask", "error", "message"),
    [
        ([1, 0, 1], TypeError, r"mask must be boolean \(got dtype int\d+\)"),
        ([0.5, 0, 1], TypeError, r"mask must be boolean \(got dtype float64\)"),
        ([True], ValueError, r"mask must have shape \(3,\) or \(k, 3\) \(got \(1,\)\)"),
        ([[True] * 4], ValueError, r"mask must have shape \(3,\) or \(k, 3\) \(got \(1, 4\)\)"),
        (np.ones((1, 1, 3), bool), ValueError, r"mask must have shape .* \(got \(1, 1, 3\)\)"),
        (np.bool_(True), ValueError, r"mask must have shape .* \(got \(\)\)"),
    ],
)
def test_a_bad_mask(ask: str, mask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(PATH, ask)(mask)


# subgraphs


@given(st.data())
def test_subgraph(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    nodes = data.draw(st.permutations(range(graph.num_nodes)))
    nodes = nodes[: data.draw(st.integers(0, graph.num_nodes))]
    found = graph.subgraph(nodes)
    expected = as_networkx(graph).subgraph(nodes)
    assert found.num_nodes == len(nodes)
    edges = {frozenset({nodes[i], nodes[j]}) for i, j in found.edges.tolist()}
    assert edges == set(map(frozenset, expected.edges))


@for_each(
    ("nodes", "error", "message"),
    [
        ([0, 3], ValueError, r"nodes must lie in 0\.\.2 \(got \[0, 3\]\)"),
        ([-1], ValueError, r"nodes must lie in 0\.\.2 \(got \[-1\]\)"),
        ([1, 0, 1], ValueError, r"nodes must not repeat a node \(got \[1, 0, 1\]\)"),
        ([0.0], TypeError, r"nodes must be a list of node ids \(got \[0\.0\]\)"),
        ([[0, 1]], TypeError, r"nodes must be a list of node ids \(got \[\[0, 1\]\]\)"),
        ([True, False, True], TypeError, r"nodes must be a list of node ids"),
        (1, TypeError, r"nodes must be a list of node ids \(got 1\)"),
    ],
)
def test_bad_nodes(nodes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PATH.subgraph(nodes)


# the checks that other modules use


def test_as_nodes_gives_integers_in_the_given_order() -> None:
    nodes = as_nodes((2, 0), 3, name="nodes")
    assert nodes.dtype == np.int64
    assert nodes.tolist() == [2, 0]
    assert as_nodes([], 3, name="nodes").dtype == np.int64
    with pytest.raises(ValueError, match=r"^carrier must lie in 0\.\.2"):
        as_nodes([3], 3, name="carrier")


def test_as_coalitions_gives_rows() -> None:
    assert as_coalitions([True, False], 2, name="mask").shape == (1, 2)
    assert as_coalitions(np.zeros((0, 2), dtype=bool), 2, name="mask").shape == (0, 2)
    with pytest.raises(TypeError, match=r"^coalitions must be boolean"):
        as_coalitions([1, 0], 2, name="coalitions")


def test_as_size_gives_a_python_integer() -> None:
    assert type(as_size(np.int32(3), name="n")) is int
    assert as_size(0, name="n") == 0
