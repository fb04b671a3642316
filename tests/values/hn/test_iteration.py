"""The paper's truncated iteration, against the dense matrix that the paper squares."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, additive_game, random_game, unanimity_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph, TooManyCoalitions
from gstarx.values import (
    Allocation,
    ConvergenceWarning,
    associated_game,
    hn_value,
    hn_value_iterated,
)
from gstarx.values.hn import iteration
from gstarx.values.hn.iteration import iterate
from tests.strategies import connected_graphs, graphs
from tests.values.definitions import (
    Counting,
    associated_matrix,
    own_worths,
    path,
    relabeled,
    renamed,
    ring,
    smooth_game,
    squared_until_settled,
)


def quietly(*arguments: Any, **options: Any) -> Allocation:
    """The iterated value without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hn_value_iterated(*arguments, **options)


def random_table(n: int, seed: int, q: int | None = None) -> TableGame:
    shape = (2**n,) if q is None else (2**n, q)
    return TableGame(n, np.random.default_rng(seed).uniform(-1, 1, shape))


# against the matrix over all coalitions


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=8), st.integers(0, 2**32), st.sampled_from([None, 2]))
def test_the_published_settings(graph: CommunicationGraph, seed: int, q: int | None) -> None:
    game = random_table(graph.num_nodes, seed, q)
    power, settled = squared_until_settled(associated_matrix(graph, 0.01))
    found = quietly(game, graph)
    assert found.converged == settled
    assert not found.exact
    assert not found.std_error.any()
    np.testing.assert_allclose(found.values, own_worths(power, game), rtol=0, atol=1e-10)


@settings(max_examples=60)
@given(
    graphs(min_nodes=1, max_nodes=6),
    st.sampled_from([0.001, 0.05, 0.1, 0.3]),
    st.sampled_from([1e-9, 1e-6, 1e-3, 0.05, 0.3, 1.0, 5.0]),
    st.sampled_from([0, 1, 2, 5, 7, 9, 13]),
    st.integers(0, 2**32),
)
def test_other_settings_stop_where_the_matrix_does(
    graph: CommunicationGraph, tau: float, tol: float, max_squarings: int, seed: int
) -> None:
    game = random_table(graph.num_nodes, seed)
    power, settled = squared_until_settled(
        associated_matrix(graph, tau), tol=tol, max_squarings=max_squarings
    )
    found = quietly(game, graph, tau=tau, tol=tol, max_squarings=max_squarings)
    assert found.converged == settled
    np.testing.assert_allclose(found.values, own_worths(power, game), rtol=0, atol=1e-10)


@pytest.mark.parametrize("tol", [3.0, 1.0, 0.3, 0.1, 0.01])
def test_worths_that_have_settled_do_not_end_it_before_the_matrix_has(tol: float) -> None:
    # an additive game does not move at all, so that the matrix alone decides
    graph = ring(6)
    counted = []
    for squarings in range(1, 12):
        _, settled = squared_until_settled(
            associated_matrix(graph, 0.02), tol=tol, max_squarings=squarings
        )
        found = quietly(
            additive_game([1.0, -2, 3, -4, 5, -6]),
            graph,
            tau=0.02,
            tol=tol,
            max_squarings=squarings,
        )
        counted.append(found.converged == settled)
    assert all(counted)


def test_powers_far_beyond_a_thousand() -> None:
    graph = path(5)
    game = random_table(5, seed=3)
    power, settled = squared_until_settled(
        associated_matrix(graph, 0.0005), tol=1e-12, max_squarings=14
    )
    assert not settled
    found = quietly(game, graph, tau=0.0005, tol=1e-12, max_squarings=14)
    np.testing.assert_allclose(found.values, own_worths(power, game), rtol=0, atol=1e-10)
    assert found.residual > 1e-8


# towards the limit


@settings(max_examples=30)
@given(connected_graphs(min_nodes=2, max_nodes=8), st.integers(0, 2**32))
def test_no_squaring_is_the_associated_game(graph: CommunicationGraph, seed: int) -> None:
    game = random_game(graph.num_nodes, seed=seed)
    once = quietly(game, graph, tau=0.2, max_squarings=0)
    star = associated_game(game, graph, tau=0.2)
    np.testing.assert_allclose(
        once.values, star(np.eye(graph.num_nodes, dtype=bool)), rtol=0, atol=1e-13
    )
    assert not once.converged


@settings(max_examples=30)
@given(connected_graphs(min_nodes=2, max_nodes=7), st.integers(0, 2**32), st.data())
def test_the_limit_does_not_know_tau(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    n = graph.num_nodes
    tau = data.draw(st.floats(0.01, 1.8 / n))
    game = random_game(n, seed=seed)
    found = hn_value_iterated(game, graph, tau=tau, max_squarings=40, tol=1e-8)
    np.testing.assert_allclose(found.values, hn_value(game, graph).values, rtol=0, atol=1e-10)
    assert found.residual < 1e-9


@settings(max_examples=25)
@given(graphs(min_nodes=1, max_nodes=6), st.integers(0, 2**32), st.data())
def test_names_of_nodes_do_not_matter(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    label = data.draw(st.permutations(range(graph.num_nodes)))
    game = random_game(graph.num_nodes, seed=seed)
    other = quietly(renamed(game, label), relabeled(graph, label)).values
    np.testing.assert_allclose(other[label], quietly(game, graph).values, rtol=0, atol=1e-12)


@settings(max_examples=25)
@given(graphs(max_nodes=6), st.data())
def test_additive_games_stay_as_they_are(graph: CommunicationGraph, data: st.DataObject) -> None:
    n = graph.num_nodes
    own = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=n, max_size=n)))
    found = quietly(additive_game(own), graph, max_squarings=data.draw(st.integers(0, 12)))
    np.testing.assert_allclose(found.values, own, rtol=0, atol=1e-9)


def test_every_connected_coalition_is_evaluated_once() -> None:
    counting = Counting(random_game(7, seed=0))
    assert quietly(counting, ring(7)).evaluations == counting.distinct == 43


def test_the_residual_is_what_efficiency_misses() -> None:
    game = random_game(8, seed=1, q=2)
    found = quietly(game, ring(8))
    gap = np.abs(found.values.sum(axis=0) - game(np.ones((1, 8), bool))[0]).max()
    assert found.residual == pytest.approx(gap, rel=1e-12)
    assert found.residual > 0.01


def test_one_node_and_no_node() -> None:
    alone = hn_value_iterated(TableGame(1, [0, 5]), CommunicationGraph(1))
    assert alone.values.tolist() == [5.0]
    assert alone.converged
    assert hn_value_iterated(TableGame(0, [0]), CommunicationGraph(0)).values.shape == (0,)


# where the matrix is out of reach


def test_without_the_matrix_the_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lattice = CoalitionLattice.of(ring(7))
    worths = random_game(7, seed=0, q=2)(lattice.coalitions())
    small, _ = iterate(lattice, worths, 0.05, 12, 0.0)
    monkeypatch.setattr(iteration, "_DENSE_COALITIONS", 0)
    large, settled = iterate(lattice, worths, 0.05, 12, 0.0)
    assert not settled
    np.testing.assert_allclose(large, small, rtol=0, atol=1e-11)


def test_a_long_path_settles_by_its_worths() -> None:
    # 1,830 coalitions: a matrix of that size is not squared any more
    game = smooth_game(60, seed=1)
    found = quietly(game, path(60), tau=0.4, max_squarings=25, tol=1e-7)
    assert found.converged
    np.testing.assert_allclose(found.values, hn_value(game, path(60)).values, rtol=0, atol=1e-4)
    early = quietly(game, path(60), tau=0.4, max_squarings=25, tol=0.5)
    assert early.converged
    assert early.residual > found.residual


def test_worths_are_watched_relative_to_their_norm() -> None:
    game = smooth_game(60, seed=1)
    found = quietly(game, path(60), tau=0.4, max_squarings=12, tol=1e-2)
    scaled = quietly(lambda c: 1e6 * game(c), path(60), tau=0.4, max_squarings=12, tol=1e-2)
    assert found.converged
    assert scaled.converged
    np.testing.assert_allclose(scaled.values, 1e6 * found.values, rtol=1e-9)


# warnings


def test_truncation_warns_and_says_what_it_costs() -> None:
    message = (
        r"not converged to tol=0\.001 after 7 squarings: component efficiency is missed by "
        r"0\.\d+; hn_value gives the limit"
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        found = hn_value_iterated(unanimity_game(8, range(8)), path(8))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not found.converged


def test_a_large_tau_warns_and_may_converge_all_the_same() -> None:
    game = random_game(6, seed=0)
    message = r"tau=0\.5 is not below 2/n=0\.333333 for the largest component"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        found = hn_value_iterated(game, path(6), tau=0.5, max_squarings=20, tol=1e-8)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found.converged
    np.testing.assert_allclose(found.values, hn_value(game, path(6)).values, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("tau", "warns"), [(0.49, False), (0.5, True), (0.51, True)])
def test_the_bound_on_tau_is_that_of_the_largest_component(tau: float, warns: bool) -> None:
    # components of four and two nodes: the bound is 2/4
    graph = CommunicationGraph(6, [(0, 1), (1, 2), (2, 3), (4, 5)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hn_value_iterated(additive_game(range(6)), graph, tau=tau, max_squarings=30, tol=1e-6)
    assert any("is not below 2/n=0.5" in str(w.message) for w in caught) == warns


def test_divergence_is_an_error() -> None:
    message = r"the iteration diverged after \d+ squarings: tau=1 is too large for this graph"
    with (
        pytest.warns(ConvergenceWarning, match="is not below 2/n"),
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(FloatingPointError, match=message),
    ):
        hn_value_iterated(
            random_game(8, seed=0), CommunicationGraph.complete(8), tau=1.0, max_squarings=12
        )


# bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": 0}, r"tau must lie in \(0, 1\] \(got 0\)"),
        ({"tau": -0.1}, r"tau must lie in \(0, 1\] \(got -0\.1\)"),
        ({"tau": 1.5}, r"tau must lie in \(0, 1\] \(got 1\.5\)"),
        ({"tau": float("nan")}, r"tau must lie in \(0, 1\] \(got nan\)"),
        ({"max_squarings": -1}, r"max_squarings must lie in 0\.\.60 \(got -1\)"),
        ({"max_squarings": 61}, r"max_squarings must lie in 0\.\.60 \(got 61\)"),
        ({"tol": -1e-9}, r"tol must be at least 0 \(got -1e-09\)"),
        ({"tol": float("nan")}, r"tol must be at least 0 \(got nan\)"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hn_value_iterated(random_game(3, seed=0), path(3), **options)


def test_too_many_coalitions() -> None:
    with pytest.raises(TooManyCoalitions, match=r"the limit is 5: .*hn_value_growth_sampled"):
        hn_value_iterated(random_game(3, seed=0), path(3), max_coalitions=5)


def test_tau_is_looked_at_before_the_game() -> None:
    counting = Counting(random_game(3, seed=0))
    with pytest.raises(ValueError, match="tau"):
        hn_value_iterated(counting, path(3), tau=2.0)
    assert counting.asked == []
