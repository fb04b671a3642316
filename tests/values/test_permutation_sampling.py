"""Myerson and Shapley values from random orders of arrival.

What these estimates share with the HN sampler is in ``tests/values/test_samplers.py``.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, airport_game, random_game
from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import unpack
from gstarx.graphs.index import distinct_rows
from gstarx.values import (
    budget,
    myerson_value,
    myerson_value_sampled,
    shapley_value,
    shapley_value_sampled,
)
from gstarx.values.permutation_sampling import _complete, _cross_fitted, _orders_within
from tests.oracles import parts
from tests.strategies import graphs, wide_graphs
from tests.values.definitions import (
    Counting,
    molecule,
    path,
    relabelled,
    renamed,
    ring,
    smooth_game,
    tree,
)


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coalitions are never listed: random orders decide."""
    monkeypatch.setattr(budget, "_LISTED_PER_EVALUATION", 0)


def completed_by(graph: CommunicationGraph, orders: np.ndarray) -> np.ndarray:
    """The component that each arrival completes, (orders, arrivals, n)."""
    masks = np.empty((orders.size, graph.adjacency.shape[1]), dtype=np.uint64)
    _complete(graph.adjacency, np.ascontiguousarray(orders), masks)
    return unpack(masks, graph.num_nodes).reshape(*orders.shape, graph.num_nodes)


# orders of arrival


def check_arrivals(graph: CommunicationGraph, order: list[int]) -> None:
    (rows,) = completed_by(graph, np.array([order], dtype=np.int64))
    for place, (node, row) in enumerate(zip(order, rows, strict=True)):
        here = [part for part in parts(graph, frozenset(order[: place + 1])) if node in part]
        assert [frozenset(np.flatnonzero(row).tolist())] == here


@settings(max_examples=50)
@given(graphs(min_nodes=1, max_nodes=8), st.data())
def test_an_arrival_completes_the_component_it_stands_in(
    graph: CommunicationGraph, data: st.DataObject
) -> None:
    check_arrivals(graph, list(data.draw(st.permutations(range(graph.num_nodes)))))


@settings(max_examples=10)
@given(wide_graphs(max_nodes=6, max_width=70), st.integers(0, 99))
def test_arrivals_in_a_graph_of_many_words(
    drawn: tuple[CommunicationGraph, CommunicationGraph, list[int]], seed: int
) -> None:
    wide = drawn[1]
    check_arrivals(wide, np.random.default_rng(seed).permutation(wide.num_nodes).tolist())


@pytest.mark.parametrize(
    "graph", [path(5), ring(5), CommunicationGraph(5, [(0, 1), (1, 2), (0, 2)])]
)
def test_all_orders_together_are_the_myerson_value(graph: CommunicationGraph) -> None:
    game = random_game(5, seed=0)
    orders = np.array(list(permutations(range(5))), dtype=np.int64)
    rows = completed_by(graph, orders).reshape(-1, 5)
    border = graph.boundary(rows)
    shares = rows / rows.sum(axis=1, keepdims=True)
    shares = shares - border / np.maximum(border.sum(axis=1, keepdims=True), 1)
    mean = shares.T @ game(rows) / len(orders)
    np.testing.assert_allclose(mean, myerson_value(game, graph).values, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=9), st.integers(0, 99), st.data())
def test_as_many_orders_as_the_budget_allows(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    n = graph.num_nodes
    spend = data.draw(st.integers(n, 20 * n))
    masks, unit = _orders_within(graph, spend, np.random.default_rng(seed))
    assert unit in (n, 2 * n)
    assert (unit == 2 * n) == (spend >= 8 * n)
    assert len(masks) % unit == 0
    assert len(masks) >= unit
    assert len(np.unique(masks, axis=0)) <= spend
    rows = unpack(masks, n).reshape(-1, n, n)
    # an order starts with one node and ends in a component; its reverse starts where it ends
    assert (rows[:, 0].sum(axis=1) == 1).all()
    labels = graph.component_labels(rows[:, -1])
    components = {frozenset(component) for component in graph.components}
    for last in rows[:, -1]:
        assert frozenset(np.flatnonzero(last).tolist()) in components
    assert (labels.max(axis=1) >= 0).all()
    if unit == 2 * n:
        for one, reverse in zip(rows[::2], rows[1::2], strict=True):
            assert one[-1][reverse[0]].all()
            assert reverse[-1][one[0]].all()


def test_a_budget_is_used_up() -> None:
    # another order has at most n coalitions that are new
    graph = molecule(20, seed=1)
    for spend in (100, 300, 1000):
        masks, unit = _orders_within(graph, spend, np.random.default_rng(0))
        assert spend - unit < len(np.unique(masks, axis=0)) <= spend


def test_a_surrogate_never_saw_the_orders_it_corrects() -> None:
    graph = molecule(12, seed=1)
    completed, unit = _orders_within(graph, 60, np.random.default_rng(0))
    first, where = distinct_rows(completed)
    masks, units = completed[first], where.reshape(-1, unit)
    members = unpack(masks, 12)
    border = graph.boundary(members)
    shares = members / members.sum(axis=1, keepdims=True)
    shares = shares - border / np.maximum(border.sum(axis=1, keepdims=True), 1)
    worths = random_game(12, seed=0, q=1)(members)
    before = _cross_fitted(graph, masks, worths, shares, units)
    # a coalition of one order only: its worth moves that order's estimate as itself, nothing more
    seen_by = [set(np.flatnonzero((units == row).any(axis=1))) for row in range(len(masks))]
    row = next(r for r, orders in enumerate(seen_by) if len(orders) == 1 and members[r].sum() > 2)
    (order,) = seen_by[row]
    worths[row] += 10.0
    after = _cross_fitted(graph, masks, worths, shares, units)
    times = (units[order] == row).sum() / (unit // 12)
    np.testing.assert_allclose(
        (after - before)[order, :, 0], 10.0 * times * shares[row], rtol=0, atol=1e-9
    )
    assert np.abs(np.delete(after - before, order, axis=0)).max() > 1e-3


# where nothing is listed


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(tree(60, seed=2), id="tree of 60"),
        pytest.param(molecule(70, seed=1, chords=6), id="molecule of 70"),
        pytest.param(
            CommunicationGraph(
                90, [*tree(60, seed=2).edges.tolist(), *(60 + ring(28).edges).tolist()]
            ),
            id="two components and isolated nodes",
        ),
    ],
)
def test_a_graph_nobody_can_list(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    assert graph.count_connected_coalitions(10**6) > 10**6
    for spend in (n, 10 * n):
        counting = Counting(smooth_game(n, seed=1, q=2))
        found = myerson_value_sampled(counting, graph, budget=spend, seed=0)
        assert found.evaluations == counting.distinct <= spend
        assert found.values.shape == found.std_error.shape == (n, 2)
        assert found.residual < 1e-9
        assert np.isfinite(found.values).all()
        assert np.isfinite(found.std_error).all() == (spend > n)


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("graph", [path(120), ring(110)])
def test_more_than_a_hundred_nodes(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    game = smooth_game(n, seed=1)
    found = myerson_value_sampled(game, graph, budget=10 * n, seed=0)
    exact = myerson_value(game, graph).values
    assert found.evaluations <= 10 * n
    assert found.residual < 1e-9
    assert (np.abs(found.values - exact) <= 4 * found.std_error + 1e-9).mean() > 0.9


def test_many_players_without_a_graph() -> None:
    # Littlechild and Owen know the answer where nobody lists 2^40 coalitions
    costs = np.sort(np.random.default_rng(0).uniform(1, 10, 40))
    steps = np.diff(costs, prepend=0.0) / np.arange(40, 0, -1)
    counting = Counting(airport_game(costs))
    found = shapley_value_sampled(counting, 40, budget=2000, seed=0)
    assert found.evaluations == counting.distinct <= 2000
    assert found.residual < 1e-9
    errors = np.abs(found.values - np.cumsum(steps))
    assert (errors <= 4 * found.std_error).mean() > 0.95
    assert np.corrcoef(found.values, np.cumsum(steps))[0, 1] > 0


@pytest.mark.usefixtures("unlisted")
def test_a_single_order_is_fitted_to_itself_and_admits_it() -> None:
    game = smooth_game(12, seed=0)
    exact = myerson_value(game, ring(12)).values
    found = [myerson_value_sampled(game, ring(12), budget=12, seed=s) for s in range(30)]
    assert all(np.isnan(one.std_error).all() for one in found)
    assert all(one.evaluations == 12 for one in found)
    assert np.sqrt(np.mean([(one.values - exact) ** 2 for one in found])) < 3 * exact.std()


# the two values


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_shapley_is_myerson_where_everybody_talks(seed: int) -> None:
    game = random_game(10, seed=seed)
    one = shapley_value_sampled(game, 10, budget=100, seed=seed)
    other = myerson_value_sampled(game, CommunicationGraph.complete(10), budget=100, seed=seed)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.std_error, other.std_error)


def test_an_edge_makes_a_difference() -> None:
    game = smooth_game(10, seed=0)
    one, other = (
        myerson_value_sampled(game, graph, budget=50, seed=0).values
        for graph in (path(10), ring(10))
    )
    assert not np.allclose(one, other)
    assert np.abs(myerson_value(game, path(10)).values - one).max() < 0.5


def test_names_of_nodes_do_not_matter_on_average() -> None:
    graph, game = molecule(12, seed=3), smooth_game(12, seed=5)
    label = np.random.default_rng(0).permutation(12).tolist()
    one, other = (
        np.mean([myerson_value_sampled(v, g, budget=80, seed=s).values for s in range(40)], axis=0)
        for v, g in ((game, graph), (renamed(game, label), relabelled(graph, label)))
    )
    np.testing.assert_allclose(one, other[label], rtol=0, atol=0.05)


# bad input


def test_a_negative_number_of_players() -> None:
    with pytest.raises(ValueError, match=r"n must be at least 0 \(got -2\)"):
        shapley_value_sampled(random_game(3, seed=0), -2, budget=10)


def test_the_exact_value_when_everything_is_affordable() -> None:
    game = TableGame(3, [0, 1, 2, 4, 8, 16, 32, 64])
    found = shapley_value_sampled(game, 3, budget=7)
    np.testing.assert_array_equal(found.values, shapley_value(game, 3).values)
    assert found.exact
