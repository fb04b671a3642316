"""Sums over many coalitions from a few of them: chances, draws, and the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gstarx.games import additive_game, random_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph
from gstarx.graphs.bitmasks import pack, unpack
from gstarx.values.coalition_sampling import (
    WeightedSum,
    certain_rows,
    estimate_sum,
    inclusion_chances,
    small_sample_factor,
    systematic_sample,
)
from gstarx.values.hn.closed_form import hn_weights
from gstarx.values.myerson import myerson_weights
from gstarx.values.surrogate import Features, Surrogate
from tests.oracles import as_rows
from tests.pairs import for_each
from tests.strategies import graphs
from tests.values.definitions import Numbers, molecule, ring, smooth_game


class At:
    """A generator whose next random number is known."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def drawn_at(chance: Numbers, number: float) -> np.ndarray:
    return systematic_sample(chance, At(number))  # type: ignore[arg-type]


@st.composite
def budgets(draw: st.DrawFn) -> tuple[Numbers, int, np.ndarray]:
    """Sizes of some rows, how many to draw, and rows that must be drawn."""
    k = draw(st.integers(1, 30))
    sizes = draw(arrays(np.float64, k, elements=st.floats(1e-6, 1e6) | st.sampled_from([0.0, 1.0])))
    certain = np.array(draw(st.lists(st.integers(0, k - 1), unique=True)), dtype=np.int64)
    return sizes, draw(st.integers(len(certain), k)), np.sort(certain)


# chances


@given(budgets())
def test_chances_sum_to_the_budget(drawn: tuple[Numbers, int, np.ndarray]) -> None:
    sizes, budget, certain = drawn
    chance = inclusion_chances(sizes, budget, certain)
    assert chance.sum() == pytest.approx(budget, rel=1e-9)
    assert (chance >= 0).all()
    assert (chance <= 1).all()
    assert (chance[certain] == 1).all()


@given(budgets())
def test_open_chances_are_proportional_to_size(drawn: tuple[Numbers, int, np.ndarray]) -> None:
    sizes, budget, certain = drawn
    chance = inclusion_chances(sizes, budget, certain)
    open_rows = chance < 1
    floor = 1e-9 * sizes.max()
    for size, of_size in ((sizes[open_rows], chance[open_rows]),):
        ratio = of_size[size > floor] / size[size > floor]
        np.testing.assert_allclose(ratio, ratio.mean() if len(ratio) else 0, rtol=1e-9)
    # what is not proportional is certain, and larger than all that is
    forced = np.setdiff1d(np.flatnonzero(~open_rows), certain)
    if len(forced) and open_rows.any():
        assert sizes[forced].min() >= sizes[open_rows].max() * (1 - 1e-9)


@for_each("k", range(1, 12))
def test_a_budget_for_every_row_leaves_none_to_chance(k: int) -> None:
    for sizes in (np.zeros(k), np.full(k, 0.1), np.arange(1.0, k + 1)):
        assert (inclusion_chances(sizes, k, np.zeros(0, dtype=np.int64)) == 1).all()


def test_nothing_is_impossible() -> None:
    chance = inclusion_chances(np.array([1.0, 0.0, 5.0]), 1, np.zeros(0, dtype=np.int64))
    assert (chance > 1e-11).all()
    zeros = inclusion_chances(np.zeros(4), 2, np.zeros(0, dtype=np.int64))
    np.testing.assert_allclose(zeros, 0.5)


def test_rows_above_one_pass_their_share_on() -> None:
    chance = inclusion_chances(np.array([100.0, 4, 1, 1, 2]), 3, np.zeros(0, dtype=np.int64))
    np.testing.assert_allclose(chance, [1, 1, 0.25, 0.25, 0.5])


# draws


@given(budgets(), st.floats(0, 1, exclude_max=True))
def test_as_many_rows_as_the_chances_sum_to(
    drawn: tuple[Numbers, int, np.ndarray], number: float
) -> None:
    sizes, budget, certain = drawn
    chance = inclusion_chances(sizes, budget, certain)
    rows = drawn_at(chance, number)
    assert len(rows) == budget
    assert (np.diff(rows) > 0).all()


@for_each(
    "chance",
    [
        [0.5, 0.5, 1.0, 0.25, 0.75],
        [0.1] * 10,
        [0.9, 0.9, 0.9, 0.3],
        [1.0, 1.0, 0.125, 0.875],
        [1.0] * 5,
    ],
)
def test_every_row_is_drawn_with_its_chance(chance: list[float]) -> None:
    places = 4000
    times = np.zeros(len(chance))
    for place in range(places):
        times[drawn_at(np.array(chance), (place + 0.5) / places)] += 1
    np.testing.assert_allclose(times / places, chance, rtol=0, atol=1e-3)


def test_draws_are_spread_over_the_order() -> None:
    rows = systematic_sample(np.full(100, 0.1), np.random.default_rng(0))
    np.testing.assert_array_equal(np.diff(rows), 10)


def test_chances_without_a_whole_sum_are_drawn_too() -> None:
    sizes = [len(drawn_at(np.full(5, 0.3), (k + 0.5) / 100)) for k in range(100)]
    assert set(sizes) == {1, 2}
    assert np.mean(sizes) == pytest.approx(1.5)


def test_rounding_does_not_change_the_size_of_a_draw() -> None:
    for chance in (np.full(300_000, 1 / 3), np.append(np.full(200_000, 0.5), 1e-13)):
        for number in (0.0, 0.5, 1 - 1e-16):
            assert len(drawn_at(chance, number)) == 100_000


def test_nothing_to_draw_from() -> None:
    assert len(systematic_sample(np.zeros(0), np.random.default_rng(0))) == 0


# few draws


@for_each(
    ("freedom", "quantile"),
    # of Student's distribution, where the normal one has 2
    [(5, 2.6487), (10, 2.2837), (20, 2.1330), (30, 2.0872), (100, 2.0255)],
)
def test_few_draws_widen_as_student_says(freedom: int, quantile: float) -> None:
    assert small_sample_factor(freedom + 1) == pytest.approx(quantile / 2, rel=0.015)


def test_a_single_draw_widens_to_nothing_known() -> None:
    assert np.isnan(small_sample_factor(1))
    assert np.isnan(small_sample_factor(0))
    assert 1 < small_sample_factor(10**6) < 1.00001


# what is always evaluated


@given(graphs(min_nodes=1, max_nodes=7), st.integers(0, 9))
def test_certain_rows_determine_additive_games(graph: CommunicationGraph, extra: int) -> None:
    lattice = CoalitionLattice.of(graph)
    budget = graph.num_nodes + extra
    certain = certain_rows(lattice.masks, lattice.tops, graph.num_nodes, budget)
    assert len(certain) <= budget
    assert (np.diff(certain) > 0).all()
    assert np.isin(lattice.tops, certain).all()
    members = lattice.coalitions(certain)
    assert np.linalg.matrix_rank(members.astype(float)) == graph.num_nodes
    whole = sum(len(component) > 1 for component in graph.components)
    if extra >= whole:
        assert len(certain) == graph.num_nodes + whole
    else:
        assert len(certain) == graph.num_nodes


def test_certain_rows_of_masks_in_any_order() -> None:
    # two components whose single nodes come in no particular order
    sets = [{1}, {0, 1}, {3}, {0}, {2}, {2, 3, 4}, {4}, {2, 3}, {3, 4}]
    masks = pack(as_rows(sets, 5))
    tops = np.array([1, 5])
    np.testing.assert_array_equal(certain_rows(masks, tops, 5, 7), [0, 1, 2, 3, 4, 5, 6])
    tight = certain_rows(masks, tops, 5, 6)
    assert len(tight) == 5
    assert np.linalg.matrix_rank(as_rows([sets[row] for row in tight], 5).astype(float)) == 5


# the estimate


def estimated(
    game: Any,
    lattice: CoalitionLattice,
    weights: Numbers,
    graph: CommunicationGraph,
    **options: Any,
) -> WeightedSum:
    certain = options.pop("certain", lattice.tops)
    generator = np.random.default_rng(options.pop("seed", 0))
    return estimate_sum(
        game, lattice.masks, weights, graph, certain=certain, generator=generator, **options
    )


def test_asking_for_everything_is_exact() -> None:
    graph = ring(7)
    lattice = CoalitionLattice.of(graph)
    game = random_game(7, seed=0, q=2)
    for weights in (hn_weights(lattice, graph), myerson_weights(lattice)):
        found = estimated(game, lattice, weights, graph, budget=len(lattice))
        expected = weights.T @ game(lattice.coalitions())
        np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(found.variance, 0)
        assert found.evaluations == len(lattice)


def test_the_worths_that_were_certain_come_back() -> None:
    graph = molecule(10, seed=1)
    lattice = CoalitionLattice.of(graph)
    weights = myerson_weights(lattice)
    certain = np.array([2, 5, 30, len(lattice) - 1])
    for q in (None, 3):
        game = random_game(10, seed=4, q=q)
        found = estimated(game, lattice, weights, graph, budget=20, certain=certain)
        np.testing.assert_array_equal(found.certain_worths, game(lattice.coalitions(certain)))
        assert found.surrogate.predict(lattice.masks).shape == (len(lattice), q or 1)
        assert found.evaluations == 20


def test_the_estimate_centers_on_the_sum_whatever_the_surrogate_says() -> None:
    graph = molecule(10, seed=1)
    lattice = CoalitionLattice.of(graph)
    weights = hn_weights(lattice, graph)
    # nothing about these worths can be guessed from other coalitions
    game = random_game(10, seed=4)
    exact = (weights.T @ game(lattice.coalitions()))[:, None]
    found = [
        estimated(game, lattice, weights, graph, budget=len(lattice) // 2, seed=s)
        for s in range(300)
    ]
    errors = np.array([one.values - exact for one in found])[:, :, 0]
    # fitted to what was drawn, the surrogate leaves a bias, small against the spread
    assert np.sqrt((errors.mean(axis=0) ** 2).mean()) < 0.3 * errors.std()
    variance = np.mean([one.variance for one in found])
    assert variance == pytest.approx((errors**2).mean(), rel=0.6)


def test_the_surrogate_helps_where_worths_can_be_guessed() -> None:
    graph = molecule(13, seed=1)
    lattice = CoalitionLattice.of(graph)
    weights = hn_weights(lattice, graph)
    errors = {}
    for name, game in (("gentle", smooth_game(13, seed=0)), ("wild", random_game(13, seed=0))):
        exact = weights.T @ game(lattice.coalitions())
        errors[name] = np.mean(
            [
                (estimated(game, lattice, weights, graph, budget=150, seed=s).values[:, 0] - exact)
                ** 2
                for s in range(20)
            ]
        ) / np.var(game(lattice.coalitions()))
    assert errors["gentle"] < 0.2 * errors["wild"]


@for_each("extra", [2, 4, 70, 90])
def test_the_variance_is_that_of_weighted_residuals(extra: int) -> None:
    graph = molecule(11, seed=1)
    lattice = CoalitionLattice.of(graph)
    weights = hn_weights(lattice, graph)
    certain = certain_rows(lattice.masks, lattice.tops, 11, 100)
    game = random_game(11, seed=0, q=2)
    budget = len(certain) + extra
    options: Any = {"budget": budget, "certain": certain, "seed": 3}
    found = estimated(game, lattice, weights, graph, **options)
    # once more, step by step
    chance = inclusion_chances(np.linalg.norm(weights, axis=1), budget, certain)
    drawn = systematic_sample(chance, np.random.default_rng(3))
    c, w = chance[drawn], weights[drawn]
    importance = (w**2).sum(axis=1) * (1 / c - 1 + 1e-2) / c
    features = Features.choose(graph, budget)
    # of a game for every drawn coalition, in which it alone is worth something, the residuals are
    # all that is linear in the residuals of a game, and the values what worths count in the end
    alone = np.eye(budget)
    fitted = Surrogate.fit(features, lattice.masks[drawn], alone, importance)
    away = fitted.residuals
    final = estimated(lambda _: alone, lattice, weights, graph, **options).values
    residual = away @ game(lattice.coalitions(drawn))
    draws = int((c < 1).sum())
    if extra < 10:
        left_out = residual / (1 - fitted.leverage)[:, None]
        each = [(1 - c[r]) * np.outer(w[r] / c[r], left_out[r]) ** 2 for r in range(budget)]
        expected = sum(each) * draws / (draws - 1) * small_sample_factor(draws) ** 2
    else:
        # the variance of a residual if the variance of worths is one over their importance
        remaining = importance * (away**2 @ (1 / importance))
        shares = (1 - c) * final**2
        freedom = shares.sum(axis=1) ** 2 / (shares**2 / remaining).sum(axis=1)
        assert freedom.min() > 3
        widened = 1 + 1.25 / freedom + 1.53 / freedom**2
        expected = shares @ (residual**2 / remaining[:, None]) * widened[:, None] ** 2
    np.testing.assert_allclose(found.variance, expected, rtol=1e-5)


@pytest.mark.parametrize("per_node", [5, 8, 15])
@pytest.mark.parametrize("kind", ["hn", "myerson"])
def test_two_standard_errors_cover_noise_however_many_features_there_are(
    kind: str, per_node: int
) -> None:
    graph = molecule(18, seed=1)
    lattice = CoalitionLattice.of(graph)
    weights = hn_weights(lattice, graph) if kind == "hn" else myerson_weights(lattice)
    certain = certain_rows(lattice.masks, lattice.tops, 18, 100)
    # noise that no feature knows of, many times
    worths = np.random.default_rng(0).normal(size=(len(lattice), 40))
    exact = weights.T @ worths
    rows = {mask.tobytes(): row for row, mask in enumerate(lattice.masks)}

    def noise(coalitions: Any) -> Numbers:
        return worths[[rows[mask.tobytes()] for mask in pack(coalitions)]]

    found = [
        estimated(noise, lattice, weights, graph, budget=18 * per_node, certain=certain, seed=seed)
        for seed in range(12)
    ]
    inside = np.mean([np.abs(one.values - exact) <= 2 * np.sqrt(one.variance) for one in found])
    assert 0.94 < inside < 0.97


def test_nothing_open_is_an_unknown_error() -> None:
    graph = ring(6)
    lattice = CoalitionLattice.of(graph)
    weights = hn_weights(lattice, graph)
    certain = certain_rows(lattice.masks, lattice.tops, 6, 7)
    game = random_game(6, seed=0)
    for extra, known in ((0, False), (1, False), (2, True)):
        found = estimated(
            game, lattice, weights, graph, budget=len(certain) + extra, certain=certain
        )
        assert np.isfinite(found.variance).all() == known
        assert np.isfinite(found.values).all()


@settings(max_examples=30)
@given(graphs(min_nodes=2, max_nodes=7), st.integers(0, 2**32))
def test_additive_games_leave_no_error(graph: CommunicationGraph, seed: int) -> None:
    n = graph.num_nodes
    lattice = CoalitionLattice.of(graph)
    own = np.random.default_rng(seed).normal(size=n)
    certain = certain_rows(lattice.masks, lattice.tops, n, n)
    found = estimated(
        additive_game(own),
        lattice,
        myerson_weights(lattice),
        graph,
        budget=min(n + 2, len(lattice)),
        certain=certain,
        seed=seed,
    )
    np.testing.assert_allclose(found.values[:, 0], own, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        found.surrogate.predict(lattice.masks)[:, 0],
        unpack(lattice.masks, n) @ own,
        rtol=0,
        atol=1e-9,
    )
