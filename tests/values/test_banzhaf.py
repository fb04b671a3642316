"""The Banzhaf value: its definition, what it fits, and its estimate."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interactions import interaction_game
from gstarx.games import additive_game, random_game, unanimity_game
from gstarx.graphs.communication import TooManyCoalitions
from gstarx.values import (
    Allocation,
    PrecisionWarning,
    banzhaf_value,
    banzhaf_value_sampled,
    shapley_value,
)
from tests.pairs import for_each
from tests.values.definitions import first_players_game, peak_memory


def by_definition(v, n: int, presence: float) -> np.ndarray:
    values = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for some in combinations(others, size):
                without = np.zeros((1, n), dtype=bool)
                without[0, list(some)] = True
                with_i = without.copy()
                with_i[0, i] = True
                before = v(without)[0] if some else 0.0
                weight = presence**size * (1 - presence) ** (n - 1 - size)
                values[i] += weight * (v(with_i)[0] - before)
    return values


@given(st.integers(1, 6), st.integers(0, 99), st.sampled_from([0.2, 0.5, 0.7]))
def test_it_is_what_a_player_adds_to_a_random_coalition(n: int, seed: int, presence: float) -> None:
    game = random_game(n, seed=seed)
    found = banzhaf_value(game, n, presence=presence)
    np.testing.assert_allclose(found.values, by_definition(game, n, presence), atol=1e-12)
    assert found.exact
    assert found.evaluations == 2**n - 1
    assert found.residual == pytest.approx(
        abs(found.values.sum() - game(np.ones((1, n), dtype=bool))[0]), abs=1e-12
    )


@given(st.integers(2, 6), st.integers(0, 99))
def test_it_fits_the_worth_of_a_set_less_that_of_the_others_best(n: int, seed: int) -> None:
    game = random_game(n, seed=seed)
    every = np.array([[s >> i & 1 for i in range(n)] for s in range(2**n)], dtype=bool)
    worths = np.where(every.any(axis=1), game(every), 0.0)
    differences = worths - worths[::-1]  # the complement of row s is row 2^n - 1 - s
    best, *_ = np.linalg.lstsq(2.0 * every - 1.0, differences, rcond=None)
    np.testing.assert_allclose(banzhaf_value(game, n).values, best, atol=1e-9)


def pairwise_game(n: int, seed: int):
    rng = np.random.default_rng(seed)
    alone, together = rng.normal(size=n), np.triu(rng.normal(size=(n, n)), 1)

    def worth(coalitions: np.ndarray) -> np.ndarray:
        there = coalitions.astype(float)
        return there @ alone + np.einsum("ki,ij,kj->k", there, together, there)

    return worth


def test_without_interactions_of_three_it_is_the_shapley_value() -> None:
    game = pairwise_game(7, 0)
    expected = shapley_value(game, 7).values
    np.testing.assert_allclose(banzhaf_value(game, 7).values, expected, atol=1e-12)


def test_pairs_leave_nothing_of_interactions_of_two() -> None:
    game = pairwise_game(30, 1)
    few = banzhaf_value_sampled(game, 30, budget=140, seed=0)
    rng = np.random.default_rng(5)
    many = banzhaf_value_sampled(game, 30, budget=2_000, seed=rng)
    np.testing.assert_allclose(few.values, many.values, atol=1e-9)
    assert few.std_error.max() < 1e-9
    other = banzhaf_value_sampled(game, 30, budget=140, seed=0, presence=0.6)
    assert other.std_error.max() > 1e-3


@pytest.mark.parametrize("presence", [0.5, 0.7])
def test_two_standard_errors_cover(presence: float) -> None:
    game = random_game(10, seed=4)
    exact = banzhaf_value(game, 10, presence=presence).values
    found = [noisy(game, 10, budget=300, seed=seed, presence=presence) for seed in range(60)]
    errors = np.array([one.values - exact for one in found])
    spread = np.array([one.std_error for one in found])
    inside = (np.abs(errors) <= 2 * spread).mean()
    assert 0.92 < inside < 0.98
    assert np.abs(errors.mean(axis=0)).max() < 4 * spread.mean() / np.sqrt(60)


def test_few_players_do_not_evaluate_a_coalition_twice() -> None:
    game = random_game(9, seed=0)
    exact = banzhaf_value(game, 9).values
    half, most = (noisy(game, 9, budget=budget, seed=0) for budget in (255, 501))
    # nobody and everybody may be one of the pairs, and both are known already
    assert half.evaluations in (253, 255)
    assert most.evaluations in (499, 501)
    # 250 of 256 pairs: hardly anything is left to chance
    assert np.abs(most.values - exact).max() < 0.02
    assert most.std_error.max() < 0.2 * half.std_error.max()
    inside = [
        np.abs(found.values - exact) <= 2 * found.std_error
        for found in (noisy(game, 9, budget=255, seed=seed) for seed in range(40))
    ]
    assert 0.9 < np.mean(inside) < 0.99


@pytest.mark.parametrize("presence", [0.5, 0.7])
def test_the_budget_is_kept_and_the_seed_decides(presence: float) -> None:
    asked: list[int] = []
    inner = random_game(20, seed=0)

    def game(coalitions: np.ndarray) -> np.ndarray:
        assert coalitions.any(axis=1).all()
        asked.append(len(coalitions))
        return inner(coalitions)

    first, again, other = (
        noisy(game, 20, budget=101, seed=seed, presence=presence) for seed in (1, 1, 2)
    )
    assert max(asked) <= 101
    assert first.evaluations == asked[0]
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
def test_a_budget_for_everything_is_exact_and_a_small_one_has_unknown_errors() -> None:
    game = unanimity_game(6, [0, 1, 2])
    assert banzhaf_value_sampled(game, 6, budget=63).exact
    for n, presence, known in ((4, 0.5, 5), (2, 0.6, 3)):
        game = random_game(n, seed=0)
        with pytest.warns(PrecisionWarning, match=f"banzhaf: .*nan; from budget={known} on"):
            thin = banzhaf_value_sampled(game, n, budget=known - 1, presence=presence, seed=0)
        assert np.isnan(thin.std_error).all()
        assert np.isfinite(thin.values).all()
        known = banzhaf_value_sampled(game, n, budget=known, presence=presence, seed=0)
        assert np.isfinite(known.std_error).all()


def noisy(*args: Any, **options: Any) -> Allocation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        return banzhaf_value_sampled(*args, **options)


@pytest.mark.parametrize("presence", [0.5, 0.3])
def test_errors_are_known_from_the_first_budget_on(presence: float) -> None:
    # one evaluation for each player: less than a regression has unknowns
    game, exact = interaction_game(60, seed=1)
    off = []
    for seed in range(30):
        found = noisy(game, 60, budget=60, seed=seed, presence=presence)
        if presence == 0.5:
            off.append(np.abs(found.values - exact.banzhaf) / found.std_error)
        assert np.isfinite(found.std_error).all()
    if presence == 0.5:
        assert 0.9 < (np.array(off) <= 2).mean() < 0.99


def test_more_evaluations_never_make_it_worse() -> None:
    # least squares would interpolate at two evaluations for each player
    game, exact = interaction_game(100, seed=1)
    budgets = (120, 180, 200, 220, 300, 500)
    errors = [
        np.mean(
            [(noisy(game, 100, budget=b, seed=s).values - exact.banzhaf) ** 2 for s in range(6)]
        )
        for b in budgets
    ]
    assert (np.diff(errors) < 0).all()


@settings(max_examples=3)
@given(st.integers(6, 7), st.integers(0, 2**32), st.sampled_from([0.5, 0.3]))
def test_the_mean_over_seeds_is_the_value(n: int, seed: int, presence: float) -> None:
    # with fewer players there are so few draws that choosing the steps of the fit biases them
    game = random_game(n, seed=seed)
    exact = banzhaf_value(game, n, presence=presence).values
    found = np.array(
        [noisy(game, n, budget=5 * 2**n // 8, seed=s, presence=presence).values for s in range(64)]
    )
    drift = (found.mean(axis=0) - exact) / (found.std(axis=0, ddof=1) / 8 + 1e-9)
    assert np.abs(drift).max() < 5


def test_many_players_cost_little_memory() -> None:
    for presence in (0.5, 0.3):
        with peak_memory() as peak:
            noisy(first_players_game, 2_000, budget=3_000, seed=0, presence=presence)
        # eight bytes for every player of every coalition would be 48 MB
        assert peak[0] < 30e6


def test_several_games_at_once() -> None:
    one, two = additive_game(range(5)), random_game(5, seed=1)

    def both(coalitions: np.ndarray) -> np.ndarray:
        return np.stack([one(coalitions), two(coalitions)], axis=1)

    found = banzhaf_value(both, 5)
    np.testing.assert_allclose(found.values[:, 0], range(5), atol=1e-12)
    np.testing.assert_allclose(found.values[:, 1], banzhaf_value(two, 5).values)
    sampled = noisy(lambda c: np.repeat(both(c), 2, axis=1), 5, budget=20, seed=0)
    assert sampled.values.shape == (5, 4)


@for_each("presence", [0, 1, -0.1, float("nan")])
def test_a_presence_is_a_probability(presence: float) -> None:
    with pytest.raises(ValueError, match="presence must lie between 0 and 1"):
        banzhaf_value(random_game(3, seed=0), 3, presence=presence)


def test_too_many_players() -> None:
    with pytest.raises(TooManyCoalitions, match="banzhaf_value_sampled"):
        banzhaf_value(random_game(3, seed=0), 30)
    with pytest.raises(ValueError, match="n must be at least 0"):
        banzhaf_value(random_game(3, seed=0), -1)
