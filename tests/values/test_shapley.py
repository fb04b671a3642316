"""The Shapley value, against its definition and textbook games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import (
    TableGame,
    additive_game,
    airport_game,
    glove_game,
    random_game,
    unanimity_game,
    voting_game,
)
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.values import banzhaf_value, hn_value, myerson_value, shapley_value
from tests.pairs import for_each
from tests.strategies import REAL, worth_tables
from tests.values.definitions import Counting, renamed, shapley_by_orders

# textbook games


def test_gloves() -> None:
    # one left glove, two right ones: the scarce glove takes two thirds
    np.testing.assert_allclose(shapley_value(glove_game(3, [0]), 3).values, [2 / 3, 1 / 6, 1 / 6])
    # two of each: everybody the same
    np.testing.assert_allclose(shapley_value(glove_game(4, [0, 1]), 4).values, 0.5)


@settings(max_examples=30)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=9))
def test_airports_by_littlechild_and_owen(costs: list[float]) -> None:
    # every stretch of the runway is paid for by those who need it, in equal parts
    order = np.argsort(costs, kind="stable")
    steps = np.diff(np.array(costs)[order], prepend=0.0)
    users = np.arange(len(costs), 0, -1)
    expected = np.empty(len(costs))
    expected[order] = np.cumsum(steps / users)
    found = shapley_value(airport_game(costs), len(costs)).values
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_the_runway_of_three() -> None:
    found = shapley_value(airport_game([1, 3, 7]), 3).values
    np.testing.assert_allclose(found, [1 / 3, 1 / 3 + 1, 1 / 3 + 1 + 4])


@for_each(
    ("weights", "quota", "power"),
    [
        # three of which any two win
        ([1, 1, 1], 2, [1 / 3, 1 / 3, 1 / 3]),
        # nobody without the large one
        ([3, 1, 1, 1], 4, [3 / 4, 1 / 12, 1 / 12, 1 / 12]),
        # a chair with a casting vote among four
        ([2, 1, 1, 1], 3, [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
        # the six of 1958, of whom the smallest had a vote that never counted
        ([4, 4, 4, 2, 2, 1], 12, [7 / 30, 7 / 30, 7 / 30, 3 / 20, 3 / 20, 0]),
    ],
)
def test_power_in_committees(weights: list[int], quota: int, power: list[float]) -> None:
    found = shapley_value(voting_game(weights, quota), len(weights)).values
    expected = shapley_by_orders(
        np.array(
            [
                float(sum(w for i, w in enumerate(weights) if mask >> i & 1) >= quota)
                for mask in range(2 ** len(weights))
            ]
        ),
        len(weights),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found, power, rtol=0, atol=1e-14)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))
    )
)
def test_unanimity_shares_among_the_carrier(drawn: tuple[int, set[int]]) -> None:
    n, carrier = drawn
    expected = [1 / len(carrier) if i in carrier else 0.0 for i in range(n)]
    found = shapley_value(unanimity_game(n, carrier), n).values
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


# the definition


@settings(max_examples=40)
@given(st.integers(0, 5), st.sampled_from([None, 1, 3]), st.data())
def test_it_is_the_mean_over_orders_of_arrival(n: int, q: int | None, data: st.DataObject) -> None:
    table = data.draw(worth_tables(n, q=q, elements=REAL))
    result = shapley_value(TableGame(n, table), n)
    assert result.values.shape == ((n,) if q is None or n == 0 else (n, q))
    if n:
        np.testing.assert_allclose(result.values, shapley_by_orders(table, n), rtol=0, atol=1e-10)
    assert result.exact
    assert result.residual < 1e-10
    assert not result.std_error.any()
    assert result.evaluations == 2**n - 1


@settings(max_examples=30)
@given(st.integers(1, 8), st.integers(0, 2**32), st.sampled_from([None, 2]))
def test_all_values_agree_where_everybody_talks(n: int, seed: int, q: int | None) -> None:
    game = random_game(n, seed=seed, q=q)
    complete = CommunicationGraph.complete(n)
    expected = shapley_value(game, n).values
    np.testing.assert_allclose(hn_value(game, complete).values, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(myerson_value(game, complete).values, expected, rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(0, 2**32), st.data())
def test_names_of_players_do_not_matter(n: int, seed: int, data: st.DataObject) -> None:
    label = data.draw(st.permutations(range(n)))
    game = random_game(n, seed=seed)
    other = shapley_value(renamed(game, label), n).values
    np.testing.assert_allclose(other[label], shapley_value(game, n).values, rtol=0, atol=1e-13)


@settings(max_examples=30)
@given(st.integers(0, 7), st.integers(0, 2**32), st.floats(-3, 3), st.floats(-3, 3))
def test_it_is_linear(n: int, seed: int, a: float, b: float) -> None:
    v, w = random_game(n, seed=seed), random_game(n, seed=seed + 1)
    mixed = shapley_value(lambda c: a * v(c) + b * w(c), n).values
    apart = a * shapley_value(v, n).values + b * shapley_value(w, n).values
    np.testing.assert_allclose(mixed, apart, rtol=0, atol=1e-12)


def test_additive_games_keep_what_they_have() -> None:
    own = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_allclose(shapley_value(additive_game(own), 9).values, own, rtol=0, atol=1e-12)


def test_every_coalition_is_evaluated_once() -> None:
    counting = Counting(random_game(6, seed=0))
    assert shapley_value(counting, 6).evaluations == counting.distinct == 63


def test_sixteen_players() -> None:
    # a majority of many: everybody has the same power
    result = shapley_value(lambda c: (c.sum(axis=1) > 8).astype(float), 16)
    np.testing.assert_allclose(result.values, 1 / 16, rtol=0, atol=1e-13)
    assert result.residual < 1e-12


# bad input


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (-1, ValueError, r"n must be at least 0 \(got -1\)"),
        (25, TooManyCoalitions, r"the limit is 2,000,000: .* estimate with shapley_value_sampled"),
    ],
)
def test_a_bad_number_of_players(n: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shapley_value(random_game(abs(n), seed=0), n)


def test_the_limit_is_the_callers() -> None:
    game = random_game(4, seed=0)
    assert shapley_value(game, 4, max_coalitions=15).evaluations == 15
    with pytest.raises(TooManyCoalitions, match=r"at least 15 .* the limit is 14"):
        shapley_value(game, 4, max_coalitions=14)


def test_too_many_coalitions_are_not_said_to_be_connected() -> None:
    for value in (shapley_value, banzhaf_value):
        with pytest.raises(
            TooManyCoalitions, match="at least 32,767 coalitions and the limit is 9"
        ):
            value(lambda c: c.sum(axis=1), 15, max_coalitions=9)
