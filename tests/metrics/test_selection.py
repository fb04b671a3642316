"""From scores to nodes: sizes, order, ties, connection; from scores of edges to scores of nodes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gstarx.graphs import CommunicationGraph
from gstarx.metrics import SPARSITIES, largest_gap, node_scores_from_edges, select_nodes
from gstarx.metrics.selection import (
    above_noise,
    as_mask,
    as_scores,
    select_best,
    selection_size,
    ties_at_cut,
    uncertain,
)
from tests.oracles import as_networkx
from tests.strategies import edge_lists, graphs

SCORE = st.integers(-3, 3).map(float)
SHARE = st.integers(0, 20).map(lambda twentieths: twentieths / 20)


def scores(min_size: int = 1, max_size: int = 12) -> st.SearchStrategy[list[float]]:
    return st.lists(SCORE, min_size=min_size, max_size=max_size)


def test_sizes_are_those_of_exact_arithmetic() -> None:
    for n in range(61):
        for twentieths in range(21):
            exact = (1 - Fraction(twentieths, 20)) * n
            for sparsity in (twentieths / 20, twentieths * 0.05):
                assert selection_size(n, sparsity) == exact.numerator // exact.denominator


def test_the_papers_sparsities() -> None:
    assert SPARSITIES == (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85)


@given(scores(), SHARE)
def test_the_best_nodes_and_ties_by_id(given_scores: list[float], sparsity: float) -> None:
    n = len(given_scores)
    found = select_nodes(given_scores, sparsity)
    best_first = sorted(range(n), key=lambda node: (-given_scores[node], node))
    assert found.tolist() == best_first[: selection_size(n, sparsity)]
    assert found.dtype == np.int64


@given(scores(), SHARE, SHARE, st.booleans())
def test_selections_are_nested(
    given_scores: list[float], one: float, other: float, positive_only: bool
) -> None:
    few, many = (
        select_nodes(given_scores, sparsity, positive_only=positive_only)
        for sparsity in sorted((one, other), reverse=True)
    )
    assert many[: len(few)].tolist() == few.tolist()


@given(scores(), SHARE)
def test_no_more_nodes_than_are_positive(given_scores: list[float], sparsity: float) -> None:
    found = select_nodes(given_scores, sparsity, positive_only=True)
    plain = select_nodes(given_scores, sparsity)
    assert found.tolist() == [node for node in plain.tolist() if given_scores[node] > 0]


@given(st.data(), SHARE, st.booleans())
def test_connected_selections_are_grown_by_the_best_neighbor(
    data: st.DataObject, sparsity: float, positive_only: bool
) -> None:
    graph = data.draw(graphs(min_nodes=1))
    own = data.draw(scores(graph.num_nodes, graph.num_nodes))
    options: dict[str, Any] = {"positive_only": positive_only}
    found = select_nodes(own, sparsity, connected=graph, **options).tolist()
    size = len(select_nodes(own, sparsity, **options))
    net = as_networkx(graph)
    best_first = sorted(range(graph.num_nodes), key=lambda node: (-own[node], node))
    for place, node in enumerate(found):
        around = nx.node_boundary(net, found[:place]) if place else set(net)
        assert node == next(other for other in best_first if other in around)
    if found:
        assert nx.is_connected(net.subgraph(found))
    whole = len(nx.node_connected_component(net, best_first[0]))
    assert len(found) == min(size, whole)


def test_connected_takes_a_graph_in_many_ways() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    for connected in (
        Data(edge_index=edges, num_nodes=4),
        edges,
        [[0, 1], [1, 2]],
        np.array([[0, 1], [1, 2]]),
    ):
        found = select_nodes([3, 1, 2, 9], 0.25, connected=connected)
        assert found.tolist() == [3]
        assert select_nodes([3, 1, 2, 0], 0.25, connected=connected).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"a graph of 4 nodes.*\(got 5\)"):
        select_nodes([1, 2, 3, 4], 0.5, connected=CommunicationGraph(5, []))


def test_scores_come_in_many_ways() -> None:
    for given_scores in (
        [0.5, 2, -1],
        np.array([[0.5], [2], [-1]]),
        torch.tensor([[0.5], [2.0], [-1.0]], requires_grad=True),
    ):
        assert select_nodes(given_scores, 0.3).tolist() == [1, 0]
    assert select_nodes([], 0.5).tolist() == []
    assert select_nodes([4.0], 0.0).tolist() == [0]
    assert select_nodes([4.0], 0.1).tolist() == []


def test_bad_scores_and_sparsities() -> None:
    for given_scores, sparsity, error, words in (
        ([1, 2], 1.01, ValueError, r"sparsity must lie in \[0, 1\] \(got 1.01\)"),
        ([1, 2], -0.01, ValueError, "sparsity must lie in"),
        ([1, 2], float("nan"), ValueError, "sparsity must lie in"),
        ([1, 2], "half", TypeError, r"sparsity must be a number \(got 'half'\)"),
        ([1, 2], True, TypeError, "sparsity must be a number"),
        ([1, float("nan")], 0.5, ValueError, r"scores must be finite \(got nan at 1\)"),
        ([float("inf"), 2], 0.5, ValueError, r"finite \(got inf at 0\)"),
        (["high", "low"], 0.5, TypeError, "scores must be numbers"),
        ([[1, 2], [3, 4]], 0.5, ValueError, r"shape \(n,\) \(got \(2, 2\)\)"),
        (1.0, 0.5, ValueError, r"shape \(n,\) \(got \(\)\)"),
    ):
        with pytest.raises(error, match=words):
            select_nodes(given_scores, sparsity)

    for values, edges, options, words in (
        ([1], [[0, 1], [1, 2]], {}, r"one number for each column.*\(got \(1,\) for \(2, 2\)\)"),
        ([1, 2], [[0, 1, 2], [1, 2, 0]], {}, "one number for each column"),
        ([1, 2], [[0, 1], [1, 3]], {}, r"nodes in 0\.\.2 \(got 0\.\.3\)"),
        ([1, 2], [[0, -1], [1, 2]], {}, r"nodes in 0\.\.2"),
        ([1, float("nan")], [[0, 1], [1, 2]], {}, r"edge_scores must be finite \(got nan at 1\)"),
        ([1, 2], [[0, 1], [1, 2]], {"reduce": "min"}, "reduce must be one of 'max', 'mean', 'sum'"),
    ):
        with pytest.raises(ValueError, match=words):
            node_scores_from_edges(values, edges, 3, **options)


def test_scores_of_the_wrong_number_of_nodes() -> None:
    assert as_scores([1, 2], 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"shape \(3,\) \(got \(2,\)\)"):
        as_scores([1, 2], 3)


def test_masks() -> None:
    assert as_mask([], 2).tolist() == [False, False]
    assert as_mask({1}, 2).tolist() == [False, True]
    assert as_mask([False, True], 2).tolist() == [False, True]


REDUCED = {"max": max, "mean": lambda own: sum(own) / len(own), "sum": sum}


@given(st.data(), st.sampled_from(sorted(REDUCED)))
def test_scores_of_edges_become_scores_of_nodes(data: st.DataObject, reduce: str) -> None:
    n, edges = data.draw(edge_lists())
    values = data.draw(st.lists(SCORE, min_size=len(edges), max_size=len(edges)))
    found = node_scores_from_edges(
        values, np.array(edges, dtype=np.int64).reshape(-1, 2).T, n, reduce=reduce
    )
    pairs: dict[frozenset[int], list[float]] = {}
    for (a, b), value in zip(edges, values, strict=True):
        pairs.setdefault(frozenset({a, b}), []).append(value)
    for node in range(n):
        own = [sum(both) / len(both) for pair, both in pairs.items() if node in pair]
        assert found[node] == pytest.approx(REDUCED[reduce](own) if own else 0)


@given(st.data())
def test_nodes_by_their_best_edge_are_the_ends_of_the_best_edges(data: st.DataObject) -> None:
    graph = data.draw(graphs(min_nodes=2))
    count = len(graph.edges)
    values = data.draw(st.permutations(range(1, count + 1)))
    found = node_scores_from_edges(values, graph.edges.T, graph.num_nodes)
    strongest = np.argsort(-np.array(values))
    ends: set[int] = set()
    for edge in strongest:
        ends |= set(graph.edges[edge].tolist())
        sparsity = 1 - len(ends) / graph.num_nodes
        assert set(select_nodes(found, sparsity).tolist()) == ends


def test_scores_of_no_edges() -> None:
    assert node_scores_from_edges([], [[], []], 2).tolist() == [0, 0]
    edges = torch.tensor([[0, 1], [1, 0]])
    assert node_scores_from_edges(torch.tensor([-1.0, -3.0]), edges, 3).tolist() == [-2, -2, 0]


@given(st.lists(SCORE, min_size=1, max_size=12))
def test_the_largest_gap_is_the_largest_drop_of_positive_scores(scores: list[float]) -> None:
    size = largest_gap(scores)
    positive = [*sorted((s for s in scores if s > 1e-6 * max(map(abs, scores))), reverse=True), 0.0]
    drops = [a - b for a, b in itertools.pairwise(positive)]
    if not drops:
        assert size == 0
    else:
        assert drops[size - 1] == pytest.approx(max(drops), abs=2e-6 * positive[0])
        earlier = max(drops[: size - 1], default=-1.0)
        assert earlier < max(drops)


def test_a_negative_score_makes_no_gap() -> None:
    assert largest_gap([0.5, 0.2, -9.0]) == 1
    assert largest_gap([0.3, 0.3, 0.3]) == 3
    assert largest_gap([]) == 0


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=8), st.data())
def test_a_tie_is_cut_where_the_choice_is_arbitrary(
    scores: list[float], data: st.DataObject
) -> None:
    size = data.draw(st.integers(0, len(scores)))
    selected = select_best(np.array(scores), size)
    tied = ties_at_cut(scores, selected)
    lowest = min((scores[i] for i in selected), default=None)
    outside = [s for i, s in enumerate(scores) if i not in set(selected.tolist())]
    if lowest in outside:
        assert tied.tolist() == [s == lowest for s in scores]
    else:
        assert not tied.any()


def test_noise_is_within_the_interval() -> None:
    errors = [0.1, 0.3, float("nan"), 0.0, 0.1]
    scores = [0.2, 0.5, 0.5, 1e-9, -0.1]
    assert above_noise(scores, errors).tolist() == [True, False, True, False, False]
    assert uncertain(scores, errors).tolist() == [False, True, False, False, True]
    assert not uncertain(scores, None).any()
    with pytest.raises(ValueError, match=r"one for each of 5 scores \(got shape \(1,\)\)"):
        above_noise(scores, [0.1])
    with pytest.raises(ValueError, match="must not be negative"):
        uncertain([1.0], [-0.1])


def test_estimated_scores_tie_within_their_intervals() -> None:
    scores, selected = [0.9, 0.5, 0.45, 0.1], [0, 1]
    assert not ties_at_cut(scores, selected).any()
    assert ties_at_cut(scores, selected, [0.01] * 4).tolist() == [False] * 4
    assert ties_at_cut(scores, selected, [0.02] * 4).tolist() == [False, True, True, False]
