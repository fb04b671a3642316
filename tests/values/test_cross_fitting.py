"""Least squares on who is there: products, fits by folds, and what they correct."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import random_game
from gstarx.graphs.bitmasks import pack, unpack
from gstarx.values import banzhaf_value, cross_fitting
from gstarx.values.cross_fitting import Membership, corrected, cross_fit, fold_of
from tests.values.definitions import Numbers


def random_rows(rng: np.random.Generator, rows: int, n: int, extras: int = 2) -> Membership:
    return Membership(
        pack(rng.random((rows, n)) < 0.5),
        n,
        rng.random(rows),
        rng.normal(size=(rows, 2)),
        rng.normal(size=(rows, extras)),
    )


def dense(rows: Membership) -> Numbers:
    """The matrix itself."""
    members = unpack(rows.masks, rows.num_players) - rows.centers[:, None]
    groups = [members * scale[:, None] for scale in rows.scales.T]
    return np.concatenate([*groups, rows.extras], axis=1)


def folds(rows: int) -> Numbers:
    return (fold_of(rows)[:, None] == np.arange(fold_of(rows).max() + 1)).astype(float)


# products


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 80), st.integers(0, 3), st.integers(0, 2**32))
def test_products_without_a_matrix(rows: int, n: int, extras: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = random_rows(rng, rows, n, extras)
    matrix = dense(drawn)
    assert matrix.shape == (rows, drawn.width)
    right, left = rng.normal(size=(drawn.width, 3)), rng.normal(size=(rows, 3))
    np.testing.assert_allclose(drawn.fitted(right), matrix @ right, atol=1e-9)
    np.testing.assert_allclose(drawn.transposed(left), matrix.T @ left, atol=1e-9)
    members = unpack(drawn.masks, n) - drawn.centers[:, None]
    for power in (1, 2):
        found = drawn.shares(left[:, :, None], power=power)
        np.testing.assert_allclose(found[:, :, 0], (members**power).T @ left, atol=1e-9)
    part = slice(rows // 3, rows)
    np.testing.assert_array_equal(dense(drawn[part]), matrix[part])


def test_a_few_octets_at_a_time_are_all_players(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    drawn = random_rows(rng, 50, 30)
    right, left = rng.normal(size=(drawn.width, 2)), rng.normal(size=(50, 2))

    def products() -> list[Numbers]:
        return [drawn.fitted(right), drawn.transposed(left), drawn.shares(left, power=2)]

    at_once = products()
    monkeypatch.setattr(cross_fitting, "_TABLES", 1)
    assert [players.start for _, players in drawn._chunks(2)] == [0, 8, 16, 24]
    for one, other in zip(at_once, products(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


# fits


def test_each_fold_is_fitted_by_the_others_alone() -> None:
    # where little noise is left to stop for, a fit is ordinary least squares without the fold
    rng = np.random.default_rng(1)
    drawn = random_rows(rng, 120, 10)
    matrix = dense(drawn)
    answers = matrix @ rng.normal(size=(drawn.width, 2)) + 1e-3 * rng.normal(size=(120, 2))
    held = folds(120)
    fit = cross_fit(drawn, answers, 1 - held, held)
    assert fit.coefficients.shape == (drawn.width, 10, 2)
    for fold in range(10):
        others = fold_of(120) != fold
        expected, *_ = np.linalg.lstsq(matrix[others], answers[others], rcond=None)
        np.testing.assert_allclose(fit.coefficients[:, fold], expected, atol=5e-4)
        left = answers - matrix @ fit.coefficients[:, fold]
        np.testing.assert_allclose(fit.residuals[:, fold], left, atol=1e-9)


def test_a_fold_does_not_move_its_own_surrogate() -> None:
    rng = np.random.default_rng(2)
    drawn = random_rows(rng, 40, 8)
    answers = rng.normal(size=(40, 1))
    held = folds(40)
    # judged by what it is fitted to, every fit goes on to the end
    fits = []
    for moved in (0.0, 5.0):
        answers[7] += moved
        fits.append(cross_fit(drawn, answers, 1 - held, 1 - held).coefficients)
    own = fold_of(40)[7]
    np.testing.assert_allclose(fits[0][:, own], fits[1][:, own], atol=1e-9)
    others = np.delete(np.abs(fits[0] - fits[1]), own, axis=1)
    assert others.max(axis=(0, 2)).min() > 1e-3


def test_noise_is_not_fitted() -> None:
    # as many coalitions as unknowns: least squares would interpolate
    rng = np.random.default_rng(3)
    drawn = Membership.of(pack(rng.random((111, 100)) < 0.5), 100, center=0.5, scale=2.0)
    answers = rng.normal(size=(111, 1))
    held = folds(111)
    fit = cross_fit(drawn, answers, 1 - held, held)
    left = fit.residuals[np.arange(111), fold_of(111)]
    assert (left**2).mean() <= (answers**2).mean() * 1.0001


def test_a_good_start_is_kept_and_a_bad_one_is_not() -> None:
    rng = np.random.default_rng(4)
    drawn = random_rows(rng, 25, 20)
    truth = rng.normal(size=(drawn.width, 1))
    answers = drawn.fitted(truth)
    held = folds(25)
    # too few rows to find it, but a third of it is pointed at
    found = cross_fit(drawn, answers, 1 - held, held, start=truth / 3)
    np.testing.assert_allclose(found.coefficients, np.repeat(truth[:, None], 10, 1), atol=1e-9)
    away = rng.normal(size=truth.shape)
    led = cross_fit(drawn, answers, 1 - held, held, start=away).residuals
    alone = cross_fit(drawn, answers, 1 - held, held).residuals
    assert ((held[:, :, None] * led) ** 2).sum() < 1.2 * ((held[:, :, None] * alone) ** 2).sum()


def test_games_do_not_know_of_each_other() -> None:
    rng = np.random.default_rng(5)
    drawn = random_rows(rng, 60, 20)
    answers = np.stack([dense(drawn) @ rng.normal(size=42), rng.normal(size=60)], axis=1)
    held = folds(60)
    both = cross_fit(drawn, answers, 1 - held, held)
    for game in range(2):
        alone = cross_fit(drawn, answers[:, [game]], 1 - held, held)
        np.testing.assert_allclose(both.residuals[:, :, [game]], alone.residuals, atol=1e-7)


# corrections


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_no_surrogate_moves_the_expectation(n: int, seed: int) -> None:
    # every coalition once is what drawing them evenly expects; the surrogate is anything
    rng = np.random.default_rng(seed)
    game = random_game(n, seed=seed, q=2)
    every = np.array([[s >> i & 1 for i in range(n)] for s in range(2**n)], dtype=bool)
    worths = np.where(every.any(axis=1, keepdims=True), game(every), 0.0)
    drawn = Membership.of(pack(every), n, center=0.5, scale=2.0)
    anything = np.repeat(rng.normal(size=(n, 1, 2)), min(10, 2**n), axis=1)
    left = (worths - worths[::-1])[:, None] - drawn.fitted(anything[:, 0])[:, None]
    residuals = np.repeat(left, anything.shape[1], axis=1)
    values, variance = corrected(drawn, np.full(2**n, 2.0), residuals, anything)
    np.testing.assert_allclose(values, banzhaf_value(game, n).values, atol=1e-9)
    terms = anything[:, 0] + (2.0 * every - 1)[:, :, None] * left
    np.testing.assert_allclose(variance, terms.var(axis=0, ddof=1) / 2**n, atol=1e-9)


def test_a_draw_counts_in_its_own_fold() -> None:
    rng = np.random.default_rng(6)
    drawn = random_rows(rng, 23, 5)
    residuals, base = rng.normal(size=(23, 10, 2)), rng.normal(size=(5, 10, 2))
    weights = rng.random(23)
    values, variance = corrected(drawn, weights, residuals, base)
    members = unpack(drawn.masks, 5) - drawn.centers[:, None]
    terms = np.array(
        [
            base[:, f] + members[k][:, None] * weights[k] * residuals[k, f]
            for k, f in enumerate(fold_of(23))
        ]
    )
    np.testing.assert_allclose(values, terms.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(variance, terms.var(axis=0, ddof=1) / 23, atol=1e-12)


def test_a_sample_of_different_coalitions_is_unbiased_too() -> None:
    # every sample of two of the four pairs of three players; surrogates that learned from one
    n, game = 3, random_game(3, seed=1)
    every = np.array([[s >> i & 1 for i in range(n)] for s in range(4)], dtype=bool)
    differences = game(~every)[:, None] * -1.0
    differences[1:] += game(every[1:])[:, None]
    signs = 2.0 * every - 1
    mean, variances, found = np.zeros((n, 1)), [], []
    for pair in permutations(range(4), 2):
        chosen = list(pair)
        drawn = Membership.of(pack(every[chosen]), n, center=0.5, scale=2.0)
        base = np.stack([signs[k][:, None] * differences[k] / 3 for k in chosen[::-1]], axis=1)
        left = differences[chosen][:, None] - np.einsum("ki,ifq->kfq", signs[chosen], base)
        values, variance = corrected(drawn, np.full(2, 2.0), left, base, population=4)
        mean += values / 12
        variances.append(variance)
        found.append(values)
    np.testing.assert_allclose(mean[:, 0], banzhaf_value(game, n).values, atol=1e-12)
    assert np.mean(variances) > 0.3 * np.var(found, axis=0).mean()


def test_one_draw_knows_no_variance() -> None:
    drawn = random_rows(np.random.default_rng(7), 1, 4)
    values, variance = corrected(drawn, np.ones(1), np.ones((1, 1, 1)), np.zeros((4, 1, 1)))
    assert np.isfinite(values).all()
    assert np.isnan(variance).all()
