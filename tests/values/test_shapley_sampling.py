"""The Shapley value of many players: pairs by size, orders, and what bounds them.

What this estimate shares with others is in ``tests/values/test_samplers.py``.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interactions import interaction_game
from gstarx.games import TableGame, airport_game, random_game
from gstarx.graphs.bitmasks import pack, unpack
from gstarx.values import PrecisionWarning, shapley_value, shapley_value_sampled
from gstarx.values.shapley_sampling import _Plan, _regressors, _surrogate_values, counted, subsets
from tests.values.definitions import (
    Counting,
    Numbers,
    first_players_game,
    peak_memory,
    smooth_game,
)

ignoring_noise = pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")


@pytest.fixture
def _unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coalitions are never listed, so that few players are enough."""
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 0)


# the plan


@given(st.integers(2, 40), st.integers(0, 3000))
def test_a_plan_keeps_to_the_budget(n: int, more: int) -> None:
    spend = n + more
    if 2**n - 1 <= spend:
        return
    plan = _Plan.within(spend, n)
    if plan.draws <= 1:
        assert plan.orders >= 1
        assert plan.orders * (n - 1) + 1 <= spend
        return
    listed, sizes = plan.listed()
    assert len(listed) == sum(math.comb(n, size) for size in range(1, plan.smallest))
    np.testing.assert_array_equal(unpack(listed, n).sum(axis=1), sizes)
    assert 2 * (len(listed) + plan.draws) + 1 in (spend, spend - 1)
    assert plan.chances.sum() == pytest.approx(1)
    # the next size does not fit its share
    if 2 * plan.smallest < n:
        assert math.comb(n, plan.smallest) > plan.draws * plan.chances[0]


def test_sizes_are_drawn_as_often_as_their_chance_says_and_players_alike() -> None:
    plan = _Plan(9, 0, 2, 6000)
    masks, sizes = plan.drawn(np.random.default_rng(0))
    members = unpack(masks, 9)
    np.testing.assert_array_equal(members.sum(axis=1), sizes)
    times = np.bincount(sizes, minlength=5)[2:]
    assert np.abs(times - 6000 * plan.chances).max() <= 1
    for size in (2, 3, 4):
        share = members[sizes == size].mean(axis=0)
        assert np.abs(share - size / 9).max() < 0.06
    # in random order, so that folds are alike
    assert len(set(sizes[:20])) == 3


def test_all_coalitions_of_a_size() -> None:
    for n, size in ((5, 0), (5, 2), (70, 1), (66, 2)):
        found = unpack(subsets(n, size), n)
        expected = {frozenset(chosen) for chosen in combinations(range(n), size)}
        assert {frozenset(np.flatnonzero(row).tolist()) for row in found} == expected
        assert len(found) == math.comb(n, size)


# the estimate


@settings(max_examples=25)
@given(st.integers(2, 7), st.integers(0, 2**32))
def test_no_surrogate_moves_the_expectation(n: int, seed: int) -> None:
    # over all pairs, each with its weight; the surrogate is anything
    rng = np.random.default_rng(seed)
    game = random_game(n, seed=seed)
    halves = range(1, n // 2 + 1)
    masks = np.concatenate([subsets(n, size) for size in halves])
    members = unpack(masks, n)
    sizes = members.sum(axis=1)
    rows = _regressors(masks, sizes, n)
    anything = rng.normal(size=(rows.width, 1))
    left = (game(members) - game(~members))[:, None] - rows.fitted(anything)
    each = np.array([math.comb(n, size) for size in sizes])
    weight = n / (sizes * (n - sizes)) * counted(sizes, n) / each
    values = _surrogate_values(anything[: 2 * n, None], n)[:, 0] + rows.shares(
        weight[:, None] * left
    )
    values += game(np.ones((1, n), dtype=bool)) / n
    np.testing.assert_allclose(values[:, 0], shapley_value(game, n).values, atol=1e-9)


@ignoring_noise
@pytest.mark.usefixtures("_unlisted")
@pytest.mark.parametrize(("n", "spend"), [(7, 8), (7, 23), (6, 21)])
def test_the_mean_over_seeds_is_the_value(n: int, spend: int) -> None:
    anything = random_game(n, seed=spend, q=2)

    def game(coalitions: Numbers) -> Numbers:
        # halves matter, and who is in them: they are the size that is its own complement's
        half = coalitions.sum(axis=1) == n // 2
        return anything(coalitions) + np.where(half & coalitions[:, 0], 5.0, 0.0)[:, None]

    exact = shapley_value(game, n).values
    found = np.array(
        [shapley_value_sampled(game, n, budget=spend, seed=s).values for s in range(150)]
    )
    drift = (found.mean(axis=0) - exact) / (found.std(axis=0, ddof=1) / np.sqrt(150) + 1e-12)
    assert np.abs(drift).max() < 4.5
    np.testing.assert_allclose(found.sum(axis=1), exact.sum(axis=0) + 0 * found[:, 0], atol=1e-9)


def test_interactions_of_two_players_leave_no_error() -> None:
    game, exact = interaction_game(40, seed=0, triples=0)
    found = shapley_value_sampled(game, 40, budget=120, seed=0)
    np.testing.assert_allclose(found.values, exact.shapley, atol=1e-9)
    assert found.std_error.max() < 1e-9


def test_an_airport_of_forty() -> None:
    # marginal contributions cancel: errors are small against the spread of the values
    costs = np.sort(np.random.default_rng(0).uniform(1, 10, 40))
    exact = np.cumsum(np.diff(costs, prepend=0.0) / np.arange(40, 0, -1))
    counting = Counting(airport_game(costs))
    found = shapley_value_sampled(counting, 40, budget=2000, seed=0)
    assert found.evaluations == counting.distinct <= 2000
    assert found.values.sum() == pytest.approx(costs[-1], abs=1e-9)
    errors = np.abs(found.values - exact)
    assert errors.max() < 0.5 * exact.std()
    assert (errors <= 2 * found.std_error).mean() > 0.9


def test_networks_that_average_leave_no_error() -> None:
    share = np.random.default_rng(1).normal(size=60)
    found = shapley_value_sampled(lambda c: c @ share / c.sum(axis=1), 60, budget=1500, seed=0)
    # a player's share comes to itself with every size of the coalition it comes to, and is taken
    # from all others alike
    own = sum(1 / k for k in range(1, 61)) / 60
    exact = share * own + (share.sum() - share) * (1 / 60 - own) / 59
    np.testing.assert_allclose(found.values, exact, atol=1e-6 * exact.std())


@ignoring_noise
def test_many_players_cost_little_memory() -> None:
    for spend in (700, 1000):
        with peak_memory() as peak:
            found = shapley_value_sampled(first_players_game, 300, budget=spend, seed=0)
        assert found.evaluations <= spend
        assert peak[0] < 20e6


# what is told


@pytest.mark.usefixtures("_unlisted")
def test_the_smallest_budget_with_known_errors_is_named() -> None:
    game = smooth_game(12, seed=0)
    with pytest.warns(PrecisionWarning, match=r"shapley: .* from budget=23 on they are known"):
        thin = shapley_value_sampled(game, 12, budget=22, seed=0)
    assert np.isnan(thin.std_error).all()
    known = shapley_value_sampled(game, 12, budget=23, seed=0)
    assert np.isfinite(known.std_error).all()


def test_the_smallest_budget_with_known_errors_where_coalitions_are_listed() -> None:
    game = smooth_game(7, seed=0)
    with pytest.warns(PrecisionWarning, match=r"from budget=10 on they are known"):
        shapley_value_sampled(game, 7, budget=9, seed=0)
    with pytest.warns(PrecisionWarning, match="standard errors reach"):
        known = shapley_value_sampled(game, 7, budget=10, seed=0)
    assert np.isfinite(known.std_error).all()


@ignoring_noise
@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(0, 2**32), st.booleans(), st.data())
def test_no_score_exceeds_the_range_of_the_worths(
    n: int, seed: int, listed: bool, data: st.DataObject
) -> None:
    spend = data.draw(st.integers(n, 6 * n))
    counting = Counting(random_game(n, seed=seed, q=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 10**6 if listed else 0)
        found = shapley_value_sampled(counting, n, budget=spend, seed=seed)
    asked = np.array([np.frombuffer(row, np.bool_) for row in counting.asked])
    worths = np.concatenate([counting.game(asked), np.zeros((1, 2))])
    assert (np.abs(found.values) <= np.ptp(worths, axis=0) + 1e-9).all()
    whole = counting.game(np.ones((1, n), dtype=bool))[0]
    np.testing.assert_allclose(found.values.sum(axis=0), whole, atol=1e-9)


def test_a_score_beyond_the_range_is_cut_back_with_a_warning() -> None:
    # two pairs and worths that follow from nothing: it happens, if seldom
    said = []
    for seed in range(60):
        game = random_game(12, seed=seed)
        with pytest.warns(PrecisionWarning) as caught:
            found = shapley_value_sampled(game, 12, budget=30, seed=seed)
        assert found.values.sum() == pytest.approx(game(np.ones((1, 12), bool))[0], abs=1e-9)
        said += [str(one.message) for one in caught if "cut back" in str(one.message)]
    assert said
    assert said[0].startswith("shapley: a score was estimated at")
    assert "Take budget=" in said[0]


def test_the_exact_value_when_everything_is_affordable() -> None:
    game = TableGame(3, [0, 1, 2, 4, 8, 16, 32, 64])
    found = shapley_value_sampled(game, 3, budget=7)
    np.testing.assert_array_equal(found.values, shapley_value(game, 3).values)
    assert found.exact


def test_a_negative_number_of_players() -> None:
    with pytest.raises(ValueError, match=r"n must be at least 0 \(got -2\)"):
        shapley_value_sampled(random_game(3, seed=0), -2, budget=10)


def test_packed_words_are_filled() -> None:
    # more than one word, and a word that is not full
    masks, sizes = _Plan(130, 0, 1, 500).drawn(np.random.default_rng(0))
    members = unpack(masks, 130)
    np.testing.assert_array_equal(pack(members), masks)
    np.testing.assert_array_equal(members.sum(axis=1), sizes)
    assert members.any(axis=0).all()
