"""Myerson values from random orders of arrival.

What these estimates share with others is in ``tests/values/test_samplers.py``.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interactions import interaction_game
from gstarx.games import airport_game, random_game
from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import pack, unpack
from gstarx.values import (
    PrecisionWarning,
    myerson_value,
    myerson_value_sampled,
    shapley_value_sampled,
)
from gstarx.values.coalition_sampling import small_sample_factor, student_factor
from gstarx.values.permutation_sampling import (
    _Arrivals,
    _complete,
    _cross_fitted,
    _orders_within,
    mean_of_units,
)
from tests.oracles import parts
from tests.pairs import for_each
from tests.strategies import graphs, wide_graphs
from tests.values.definitions import (
    Counting,
    first_players_game,
    molecule,
    path,
    peak_memory,
    relabeled,
    renamed,
    ring,
    smooth_game,
    tree,
)

ignoring_noise = pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coalitions are never listed: random orders decide."""
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 0)


def completed_by(graph: CommunicationGraph, orders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The component that each arrival completes, (orders, arrivals, n), and who merges it."""
    masks = np.empty((orders.size, graph.adjacency.shape[1]), dtype=np.uint64)
    merged = np.full(orders.size, -1)
    _complete(graph.adjacency, np.ascontiguousarray(orders), masks, merged)
    rows = unpack(masks, graph.num_nodes).reshape(*orders.shape, graph.num_nodes)
    return rows, merged.reshape(orders.shape)


# orders of arrival


def check_arrivals(graph: CommunicationGraph, order: list[int]) -> None:
    (rows,), (merged,) = completed_by(graph, np.array([order], dtype=np.int64))
    for place, (node, row) in enumerate(zip(order, rows, strict=True)):
        here = [part for part in parts(graph, frozenset(order[: place + 1])) if node in part]
        assert [frozenset(np.flatnonzero(row).tolist())] == here
        # the first of its neighbors to come later, if there is one
        border = graph.boundary(row)
        later = [other for other in order[place + 1 :] if border[other]]
        assert merged[place] == (later[0] if later else -1)


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
    rows, merged = completed_by(graph, orders)
    worths = game(rows.reshape(-1, 5))[:, None]
    everything = _Arrivals(
        pack(rows.reshape(-1, 5)),
        np.arange(len(worths)).reshape(1, -1),
        orders.reshape(1, -1),
        merged.reshape(1, -1),
    )
    mean = everything.marginals(worths, 0)[:, 0]
    np.testing.assert_allclose(mean, myerson_value(game, graph).values, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=9), st.integers(0, 99), st.data())
def test_as_many_orders_as_the_budget_allows(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    n = graph.num_nodes
    spend = data.draw(st.integers(n, 20 * n))
    found = _orders_within(graph, spend, np.random.default_rng(seed))
    unit = found.completed.shape[1]
    assert found.completed.shape == found.arrived.shape == found.merged.shape
    assert unit in (n, 2 * n)
    assert (unit == 2 * n) == (spend >= 4 * n)
    assert len(found.completed) >= 1
    assert len(np.unique(found.masks, axis=0)) == len(found.masks) <= spend
    assert set(found.completed.ravel()) == set(range(len(found.masks)))
    rows = unpack(found.masks, n)[found.completed].reshape(-1, n, n)
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
    # every order is one of all players, and whoever arrives is in what it completes
    orders = found.arrived.reshape(-1, n)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    assert np.take_along_axis(rows, orders[:, :, None], axis=2).all()


def test_a_budget_is_used_up() -> None:
    # another order has at most n coalitions that are new
    graph = molecule(20, seed=1)
    for spend in (70, 100, 300, 1000):
        found = _orders_within(graph, spend, np.random.default_rng(0))
        assert spend - found.completed.shape[1] < len(found.masks) <= spend


def test_a_surrogate_never_saw_the_orders_it_corrects() -> None:
    graph = molecule(12, seed=1)
    arrivals = _orders_within(graph, 320, np.random.default_rng(0))
    members = unpack(arrivals.masks, 12)
    worths = random_game(12, seed=0, q=1)(members)
    plain = np.array([arrivals.marginals(worths, u) for u in range(len(arrivals.completed))])
    before = _cross_fitted(graph, arrivals, worths)
    assert np.abs(before - plain).max() > 0.01, "there was no surrogate"
    # a coalition of one unit only: its worth moves that unit's estimate as itself, nothing more
    seen_by = [
        set(np.flatnonzero((arrivals.completed == row).any(axis=1))) for row in range(len(worths))
    ]
    row = next(r for r, units in enumerate(seen_by) if len(units) == 1 and members[r].sum() > 2)
    (unit,) = seen_by[row]
    worths[row] += 10.0
    after = _cross_fitted(graph, arrivals, worths)
    moved = arrivals.marginals(worths, unit) - plain[unit]
    assert np.abs(moved).max() > 1
    np.testing.assert_allclose((after - before)[unit], moved, rtol=0, atol=1e-9)
    assert np.abs(np.delete(after - before, unit, axis=0)).max() > 1e-3


@ignoring_noise
@pytest.mark.usefixtures("unlisted")
def test_interactions_of_two_cancel_between_an_order_and_its_reverse() -> None:
    graph = molecule(40, seed=2)
    for triples in (0, 10):
        game, exact = interaction_game(40, seed=0, graph=graph, triples=triples)
        found = myerson_value_sampled(game, graph, budget=160, seed=0)
        errors = np.abs(found.values - exact.shapley)
        assert (errors.max() < 1e-9) == (triples == 0)
        assert (found.std_error.max() < 1e-9) == (triples == 0)


def test_players_without_a_spread_borrow_one() -> None:
    per_unit = np.zeros((4, 3, 1))
    per_unit[:, 0, 0] = [1, 2, 3, 4]
    values, std_error = mean_of_units(per_unit)
    assert values[:, 0].tolist() == [2.5, 0.0, 0.0]
    own = 5 / 3
    borrowed = own / 3
    variance = np.array([3 * own + 2 * borrowed, 2 * borrowed, 2 * borrowed]) / 5
    expected = np.sqrt(variance / 4) * small_sample_factor(6)
    np.testing.assert_allclose(std_error[:, 0], expected)
    assert np.isnan(mean_of_units(per_unit[:1])[1]).all()


def test_players_borrow_more_the_less_they_differ() -> None:
    alike = np.zeros((3, 5, 1))
    alike[:, :, 0] = np.array([[-1.0], [0.0], [1.0]])
    _, std_error = mean_of_units(alike)
    np.testing.assert_allclose(std_error, np.sqrt(1 / 3) * student_factor(np.array(2 + 6.0)))

    # two degrees of freedom: 2 / 2 of the coefficient of variation is chance
    variances = np.array([1.0, 1.0, 1.0, 9.0])
    _, std_error = mean_of_units(alike[:, :4] * np.sqrt(variances)[:, None])
    differing = (16 / 9 - 1) / (1 + 1)
    borrowed = 2 / differing
    assert 2 < borrowed < 6
    pooled = (2 * variances + 3 * borrowed) / (2 + borrowed)
    expected = np.sqrt(pooled / 3) * student_factor(np.array(2 + borrowed))
    np.testing.assert_allclose(std_error[:, 0], expected)


@for_each("units", [2, 3, 5, 10])
@for_each("freedom", [3, 8, 30])
def test_two_standard_errors_of_few_units_cover(units: int, freedom: int) -> None:
    """Players whose variances differ greatly, or hardly: inverse chi-squared."""
    generator = np.random.default_rng(units)
    variances = freedom / generator.chisquare(freedom, size=(40, 1, 50, 1))
    per_unit = generator.normal(scale=np.sqrt(variances), size=(40, units, 50, 1))
    inside = []
    for one in per_unit:
        values, std_error = mean_of_units(one)
        inside.append(np.abs(values) <= 2 * std_error)
    assert 0.94 <= np.mean(inside) <= 0.985


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
@ignoring_noise
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


@ignoring_noise
@pytest.mark.usefixtures("unlisted")
def test_a_single_order_admits_that_it_knows_no_error() -> None:
    game = smooth_game(12, seed=0)
    exact = myerson_value(game, ring(12)).values
    found = [myerson_value_sampled(game, ring(12), budget=12, seed=s) for s in range(30)]
    assert all(np.isnan(one.std_error).all() for one in found)
    assert all(one.evaluations == 12 for one in found)
    assert np.sqrt(np.mean([(one.values - exact) ** 2 for one in found])) < 3 * exact.std()


@pytest.mark.usefixtures("unlisted")
def test_unknown_and_large_errors_are_reported() -> None:
    game = smooth_game(12, seed=0)
    with pytest.warns(PrecisionWarning, match=r"myerson: .* from budget=24 on they are known"):
        myerson_value_sampled(game, ring(12), budget=12, seed=0)
    with pytest.warns(PrecisionWarning, match=r"evaluations instead of \d+; value='banzhaf'"):
        known = myerson_value_sampled(game, ring(12), budget=24, seed=0)
    assert np.isfinite(known.std_error).all()


@ignoring_noise
def test_unknown_errors_are_reported_where_coalitions_are_listed() -> None:
    graph = CommunicationGraph(8, [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (4, 5), (5, 6), (6, 4)])
    game = smooth_game(8, seed=0)
    with pytest.warns(PrecisionWarning, match=r"from budget=12 on they are known"):
        myerson_value_sampled(game, graph, budget=11, seed=0)
    known = myerson_value_sampled(game, graph, budget=12, seed=0)
    assert np.isfinite(known.std_error).all()


def test_many_nodes_cost_little_memory() -> None:
    graph = tree(1500, seed=0)
    with peak_memory() as peak, pytest.warns(PrecisionWarning):
        found = myerson_value_sampled(first_players_game, graph, budget=2_000, seed=0)
    assert found.evaluations <= 2_000
    assert peak[0] < 20e6


# the two values


@ignoring_noise
@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_shapley_is_myerson_where_everybody_talks(seed: int) -> None:
    game = random_game(10, seed=seed)
    one = shapley_value_sampled(game, 10, budget=100, seed=seed)
    other = myerson_value_sampled(game, CommunicationGraph.complete(10), budget=100, seed=seed)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.std_error, other.std_error)


@ignoring_noise
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
        for v, g in ((game, graph), (renamed(game, label), relabeled(graph, label)))
    )
    np.testing.assert_allclose(one, other[label], rtol=0, atol=0.05)


def test_on_a_complete_graph_it_is_the_shapley_value() -> None:
    costs = [1 + 7 * i / 39 for i in range(40)]
    game, graph = airport_game(costs), CommunicationGraph.complete(40)
    found = myerson_value_sampled(game, graph, budget=2_000, seed=3)
    np.testing.assert_array_equal(
        found.values, shapley_value_sampled(game, 40, budget=2_000, seed=3).values
    )
    steps = np.diff(costs, prepend=0.0) / np.arange(40, 0, -1)
    exact = np.cumsum(steps)
    assert np.abs(found.values - exact).max() < 0.1 * np.ptp(exact)
    assert (np.abs(found.values - exact) <= 2 * found.std_error + 1e-9).mean() >= 0.9
