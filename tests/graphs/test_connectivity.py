"""Components against networkx, and connected coalitions against brute force."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx.graphs import CommunicationGraph, TooManyCoalitions, connectivity
from gstarx.graphs.connectivity import (
    MAX_COUNT,
    count_by_size,
    label_components,
    label_parts,
    list_by_size,
)
from tests.oracles import as_networkx, as_sets, connected_sets, parts
from tests.pairs import for_each
from tests.strategies import coalition_matrices, graphs, wide_graphs


def path(n: int) -> CommunicationGraph:
    return CommunicationGraph(n, [(i, i + 1) for i in range(n - 1)])


def star(leaves: int, *, center: int = 0) -> CommunicationGraph:
    return CommunicationGraph(leaves + 1, [(center, i) for i in range(leaves + 1) if i != center])


def relabeled(graph: CommunicationGraph, seed: int, width: int) -> CommunicationGraph:
    """The graph at random places among ``width`` nodes."""
    places = np.random.default_rng(seed).permutation(width)
    return CommunicationGraph(width, places[graph.edges])


# every coalition once, in order


@given(graphs())
def test_every_coalition_once_ordered_by_size(graph: CommunicationGraph) -> None:
    coalitions = graph.connected_coalitions()
    expected = connected_sets(graph)
    found = as_sets(coalitions)
    assert coalitions.dtype == np.bool_
    assert coalitions.shape == (len(expected), graph.num_nodes)
    assert Counter(found) == Counter(expected)
    assert [len(nodes) for nodes in found] == [len(nodes) for nodes in expected]
    assert found[: graph.num_nodes] == [frozenset({node}) for node in range(graph.num_nodes)]


@given(graphs())
def test_counted_by_size(graph: CommunicationGraph) -> None:
    sizes = Counter(map(len, connected_sets(graph)))
    expected = [sizes[size] for size in range(graph.num_nodes + 1)]
    by_size = count_by_size(graph.adjacency, MAX_COUNT)
    assert by_size.tolist() == expected
    masks, again = graph.connected_masks()
    assert again.tolist() == expected
    np.testing.assert_array_equal(masks, list_by_size(graph.adjacency, by_size))


@given(wide_graphs())
def test_coalitions_of_many_words(
    wide_graph: tuple[CommunicationGraph, CommunicationGraph, list[int]],
) -> None:
    small, wide, places = wide_graph
    alone = {frozenset({node}) for node in range(wide.num_nodes)}
    together = {frozenset(places[i] for i in nodes) for nodes in connected_sets(small)}
    found = as_sets(wide.connected_coalitions())
    assert len(found) == len(set(found))
    assert set(found) == alone | together
    assert [len(nodes) for nodes in found] == sorted(len(nodes) for nodes in found)
    assert found[: wide.num_nodes] == [frozenset({node}) for node in range(wide.num_nodes)]
    assert wide.count_connected_coalitions() == len(found)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_a_count_that_pauses_goes_on_where_it_was(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connectivity, "_STEPS_PER_CALL", steps)
    graph = CommunicationGraph.from_networkx(nx.petersen_graph())
    assert graph.count_connected_coalitions() == len(connected_sets(graph))
    assert graph.count_connected_coalitions(limit=100) == 101


@for_each("steps", [1, 3, 50_000_000])
@for_each("limit", [0, 1, 150, 1_000])
def test_a_count_stops_as_soon_as_there_are_more(
    limit: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connectivity, "_STEPS_PER_CALL", steps)
    # on a path every step of the count meets one coalition, so that it never overshoots
    assert count_by_size(path(200).adjacency, limit).sum() == limit + 1


# counts that are known


@for_each(
    ("graph", "count"),
    [
        (CommunicationGraph(0), 0),
        (CommunicationGraph(1), 1),
        (CommunicationGraph(130), 130),
        (path(200), 20_100),
        (relabeled(path(200), 0, 200), 20_100),
        (CommunicationGraph.from_networkx(nx.cycle_graph(150)), 150 * 149 + 1),
        (star(20), 2**20 + 20),
        (star(20, center=20), 2**20 + 20),
        (star(61), 2**61 + 61),
        (CommunicationGraph.complete(20), 2**20 - 1),
        (CommunicationGraph.complete(62), 2**62 - 1),
        (
            CommunicationGraph.from_networkx(nx.complete_bipartite_graph(8, 9)),
            (2**8 - 1) * (2**9 - 1) + 8 + 9,
        ),
        (CommunicationGraph.from_networkx(nx.grid_2d_graph(5, 5)), 2_301_877),
    ],
)
def test_known_counts(graph: CommunicationGraph, count: int) -> None:
    assert graph.count_connected_coalitions() == count
    assert graph.count_connected_coalitions(limit=count) == count
    if count:
        assert graph.count_connected_coalitions(limit=count - 1) == count


@for_each("seed", range(5))
def test_labels_over_several_words_do_not_change_the_count(seed: int) -> None:
    graph = CommunicationGraph.from_networkx(nx.gnp_random_graph(18, 0.2, seed=seed))
    count = graph.count_connected_coalitions()
    wide = relabeled(graph, seed, 180)
    assert wide.adjacency.shape == (180, 3)
    assert wide.count_connected_coalitions() == count + 180 - 18
    by_size = graph.connected_masks()[1]
    by_size[1] += 180 - 18
    np.testing.assert_array_equal(wide.connected_masks()[1][:19], by_size)


def test_coalitions_of_a_long_path_are_its_stretches() -> None:
    coalitions = path(200).connected_coalitions()
    first, size = coalitions.argmax(axis=1), coalitions.sum(axis=1)
    stretches = {(int(start), int(long)) for start, long in zip(first, size, strict=True)}
    assert stretches == {(i, j - i) for i in range(200) for j in range(i + 1, 201)}
    inside = np.arange(200) - first[:, None]
    np.testing.assert_array_equal(coalitions, (inside >= 0) & (inside < size[:, None]))
    assert (np.diff(size) >= 0).all()


# limits


@given(graphs(max_nodes=6), st.data())
def test_a_count_stops_one_above_the_limit(graph: CommunicationGraph, data: st.DataObject) -> None:
    total = len(connected_sets(graph))
    limit = data.draw(st.integers(0, total + 2))
    expected = total if total <= limit else limit + 1
    assert graph.count_connected_coalitions(limit) == expected
    reached = int(count_by_size(graph.adjacency, limit).sum())
    assert reached == total if total <= limit else limit < reached <= total


@given(graphs(max_nodes=6), st.data())
def test_a_list_has_at_most_limit_coalitions(
    graph: CommunicationGraph, data: st.DataObject
) -> None:
    total = len(connected_sets(graph))
    limit = data.draw(st.integers(0, total + 2))
    if total <= limit:
        assert len(graph.connected_coalitions(limit)) == total
        assert len(graph.connected_masks(limit)[0]) == total
        return
    with pytest.raises(TooManyCoalitions) as raised:
        graph.connected_coalitions(limit)
    assert limit < raised.value.at_least <= total
    assert raised.value.limit == limit


@for_each("limit", [0, 1, 299, 300, 1_000, 2**40, 2**62])
@for_each(
    "graph",
    [
        CommunicationGraph.complete(300),
        star(100),
        star(100, center=100),
        star(100, center=64),
        star(62),
    ],
)
def test_far_too_many(graph: CommunicationGraph, limit: int) -> None:
    assert graph.count_connected_coalitions(limit=limit) == limit + 1
    with pytest.raises(TooManyCoalitions):
        graph.connected_coalitions(limit=limit)


def test_the_error_says_how_many_and_what_to_do() -> None:
    with pytest.raises(
        TooManyCoalitions,
        match=r"^the graph has at least 20,100 connected coalitions and the limit is 20,099: "
        r"raise the limit$",
    ):
        path(200).connected_coalitions(limit=20_099)
    assert issubclass(TooManyCoalitions, ValueError)


def test_listing_has_a_limit_unless_it_is_set() -> None:
    with pytest.raises(TooManyCoalitions, match=r"the limit is 10,000,000"):
        CommunicationGraph.complete(30).connected_coalitions()
    assert len(CommunicationGraph.complete(4).connected_coalitions(limit=None)) == 15


def test_counts_reach_exactly_the_largest_that_fits() -> None:
    largest = CommunicationGraph(63, CommunicationGraph.complete(62).edges)
    assert largest.count_connected_coalitions() == MAX_COUNT
    assert largest.count_connected_coalitions(limit=2**70) == MAX_COUNT
    beyond = CommunicationGraph(64, CommunicationGraph.complete(62).edges)
    assert beyond.count_connected_coalitions(limit=MAX_COUNT) == MAX_COUNT + 1


@for_each("limit", [None, MAX_COUNT + 1, 2**64, 2**70])
@for_each(
    "graph",
    [
        CommunicationGraph(64, CommunicationGraph.complete(62).edges),
        star(62),
        CommunicationGraph.complete(63),
        CommunicationGraph.complete(300),
    ],
)
def test_more_than_can_be_counted(graph: CommunicationGraph, limit: int | None) -> None:
    with pytest.raises(
        OverflowError,
        match=r"more than 2\^62 connected coalitions.*give a limit of at most 2\^62",
    ):
        graph.count_connected_coalitions(limit)


@pytest.mark.parametrize("limit", [-1, -(2**70)])
def test_a_negative_limit(limit: int) -> None:
    for ask in (path(3).count_connected_coalitions, path(3).connected_coalitions):
        with pytest.raises(ValueError, match=rf"limit must be at least 0 \(got {limit}\)"):
            ask(limit)


@pytest.mark.parametrize("limit", [1e6, "10", True])
def test_a_limit_that_is_no_integer(limit: object) -> None:
    for ask in (path(3).count_connected_coalitions, path(3).connected_coalitions):
        with pytest.raises(TypeError, match=r"limit must be an integer \(got "):
            ask(limit)  # type: ignore[arg-type]


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
