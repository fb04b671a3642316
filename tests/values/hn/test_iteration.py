"""The paper's truncated iteration, against the dense matrix that the paper squares."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, additive_game, random_game, restricted_game, unanimity_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph, TooManyCoalitions
from gstarx.values import (
    Allocation,
    ConvergenceWarning,
    associated_game,
    hn_value,
    hn_value_iterated,
    limit_game,
    surplus,
)
from gstarx.values.hn import iteration
from gstarx.values.hn.iteration import iterate
from tests.oracles import as_integer, as_rows, subsets
from tests.pairs import for_each
from tests.strategies import REAL, connected_graphs, graph_games, graphs, table_games
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


@for_each("tol", [3.0, 1.0, 0.3, 0.1, 0.01])
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


@for_each(
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


columns = st.sampled_from([None, 1, 3])


def everything(n: int) -> np.ndarray:
    """Every coalition but nobody, row ``mask - 1``."""
    rows = as_rows(subsets(range(n)), n)
    return rows[np.argsort([as_integer(np.flatnonzero(row).tolist()) for row in rows])][1:]


# surplus


@given(columns, st.data())
def test_surplus_is_what_joining_adds(q: int | None, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    game = data.draw(table_games(n, q=q))
    j = data.draw(st.integers(0, n - 1))
    S = data.draw(st.sets(st.integers(0, n - 1).filter(lambda i: i != j)))
    table = game.worths
    expected = table[as_integer(S) | 1 << j] - table[as_integer(S)] - table[1 << j]
    found = surplus(game, j, S)
    np.testing.assert_array_equal(found, expected)
    assert isinstance(found, float) == (q is None)


def test_joining_nobody_adds_nothing_and_the_empty_coalition_is_not_evaluated() -> None:
    counting = Counting(random_game(4, seed=0))
    assert surplus(counting, 2, [], n=4) == 0.0
    assert not any(set(row) == {0} for row in counting.asked)


def test_the_number_of_players() -> None:
    seen = []

    def game(coalitions: np.ndarray) -> np.ndarray:
        seen.append(coalitions.shape[1])
        return np.zeros(len(coalitions))

    surplus(game, 2, [0])
    surplus(game, 0, [4])
    surplus(game, 2, [0], n=9)
    assert seen == [3, 5, 9]
    # a game that knows how many play is asked for all of them
    assert surplus(TableGame(5, np.arange(32.0)), 1, [0]) == 0.0


@for_each(
    ("j", "S", "error", "message"),
    [
        (1, [0, 1], ValueError, r"j must not be in S \(got j=1 and S=\[0, 1\]\)"),
        (3, [0], ValueError, r"j must lie in 0\.\.2 \(got \[3\]\)"),
        (1, [3], ValueError, r"S must lie in 0\.\.2 \(got \[3\]\)"),
        (1, [0, 0], ValueError, r"S must not repeat a node \(got \[0, 0\]\)"),
        (-1, [0], ValueError, r"j must lie in 0\.\.2 \(got \[-1\]\)"),
    ],
)
def test_bad_players(j: Any, S: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        surplus(TableGame(3, np.zeros(8)), j, S)


# the associated game


@settings(max_examples=40)
@given(columns, st.floats(0, 1), st.data())
def test_it_is_the_game_of_definition_4_2(q: int | None, tau: float, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=6, q=q, elements=REAL))
    star = associated_game(game, graph, tau=tau)
    expected = associated_matrix(graph, tau) @ game.worths[1:]
    np.testing.assert_allclose(star(everything(graph.num_nodes)), expected, rtol=0, atol=1e-9)


@settings(max_examples=25)
@given(graph_games(max_nodes=6))
def test_tau_nought_is_the_restricted_game(drawn: tuple[TableGame, CommunicationGraph]) -> None:
    game, graph = drawn
    if graph.num_nodes:
        asked = everything(graph.num_nodes)
        np.testing.assert_array_equal(
            associated_game(game, graph, tau=0)(asked), restricted_game(game, graph)(asked)
        )


@settings(max_examples=25)
@given(columns, st.floats(0.01, 1), st.data())
def test_hn_does_not_notice_the_associated_game(
    q: int | None, tau: float, data: st.DataObject
) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=6, q=q, elements=REAL))
    star = associated_game(game, graph, tau=tau)
    np.testing.assert_allclose(
        hn_value(star, graph).values, hn_value(game, graph).values, rtol=0, atol=1e-9
    )


def test_the_surplus_of_every_neighbor_is_in_it() -> None:
    game = TableGame(4, np.random.default_rng(0).normal(size=16))
    graph = ring(4)
    star = associated_game(game, graph, tau=0.3)
    both = float(game(as_rows([{0, 1}], 4))[0])
    expected = both + 0.3 * (surplus(game, 2, [0, 1]) + surplus(game, 3, [0, 1]))
    assert star(as_rows([{0, 1}], 4))[0] == pytest.approx(expected)


@pytest.mark.parametrize("tau", [-0.1, 1.1, float("nan")])
def test_tau_out_of_range(tau: float) -> None:
    with pytest.raises(ValueError, match=rf"tau must lie in \[0, 1\] \(got {tau}\)"):
        associated_game(random_game(3, seed=0), path(3), tau=tau)


# the limit


@settings(max_examples=25)
@given(graph_games(min_nodes=1, max_nodes=5, elements=REAL))
def test_the_limit_is_additive_and_does_not_move(
    drawn: tuple[TableGame, CommunicationGraph],
) -> None:
    game, graph = drawn
    limit = limit_game(game, graph)
    asked = everything(graph.num_nodes)
    values = hn_value(game, graph).values
    np.testing.assert_allclose(limit(asked), asked @ values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        associated_game(limit, graph, tau=0.5)(asked), limit(asked), rtol=0, atol=1e-8
    )


def test_repeating_the_associated_game_leads_there() -> None:
    game = random_game(4, seed=3, q=2)
    graph = ring(4)
    asked = everything(4)
    table = np.concatenate([np.zeros((1, 2)), game(asked)])
    for _ in range(200):
        star = associated_game(TableGame(4, table), graph, tau=0.3)
        table = np.concatenate([np.zeros((1, 2)), star(asked)])
    np.testing.assert_allclose(limit_game(game, graph)(asked), table[1:], rtol=0, atol=1e-10)


def test_the_limit_of_too_many_coalitions() -> None:
    with pytest.raises(TooManyCoalitions, match="the limit is 5"):
        limit_game(unanimity_game(3, [0]), path(3), max_coalitions=5)
