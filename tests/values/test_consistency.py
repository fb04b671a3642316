"""Surplus, associated game and limit game, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, random_game, restricted_game, unanimity_game
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.values import associated_game, hn_value, limit_game, surplus
from tests.oracles import as_integer, as_rows, subsets
from tests.strategies import REAL, graph_games, table_games
from tests.values.definitions import Counting, associated_matrix, path, ring

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


@pytest.mark.parametrize(
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
