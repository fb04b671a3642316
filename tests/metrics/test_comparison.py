"""Two explainers on the same graphs: the interval covers, is symmetric, and repeats."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx.metrics import comparison, paired_bootstrap, share_of_gap


def test_the_mean_and_a_certain_interval() -> None:
    found = paired_bootstrap([1.0, 2.0, 3.0], [0.5, 1.5, 2.5], resamples=199, seed=0)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)
    assert (found.count, found.confidence) == (3, 0.95)
    # no resampled mean is on the other side: the smallest there can be, not nought
    assert found.p_value == pytest.approx(2 / 200)
    assert str(found) == "+0.5000 [+0.5000, +0.5000] over 3 graphs"


def test_no_difference_at_all() -> None:
    found = paired_bootstrap([1.0, 2.0], [1.0, 2.0], seed=0)
    assert (found.mean, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_the_interval_by_hand() -> None:
    # two graphs: means of resamples are 0, 1/2, 1/2, 1, equally often
    found = paired_bootstrap([0.0, 1.0], [0.0, 0.0], confidence=0.4, resamples=20_000, seed=0)
    assert (found.low, found.high) == (0.5, 0.5)
    wide = paired_bootstrap([0.0, 1.0], [0.0, 0.0], confidence=0.6, resamples=20_000, seed=0)
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert wide.p_value == pytest.approx(0.5, abs=0.02)


def test_the_other_way_round_is_the_mirror_image() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 30))
    there = paired_bootstrap(one, other, seed=1)
    back = paired_bootstrap(other, one, seed=1)
    assert back.mean == pytest.approx(-there.mean)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))
    assert back.p_value == there.p_value
    assert there.low < there.mean < there.high


def test_the_same_seed_the_same_interval() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 15))
    first = paired_bootstrap(one, other, seed=3)
    assert paired_bootstrap(one, other, seed=np.random.default_rng(3)) == first
    assert paired_bootstrap(one, other, seed=4) != first


def test_resamples_that_do_not_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 15))
    whole = paired_bootstrap(one, other, resamples=1001, seed=3)
    monkeypatch.setattr(comparison, "_RESAMPLES_TOGETHER", 100)
    assert paired_bootstrap(one, other, resamples=1001, seed=3) == whole


def test_a_95_percent_interval_holds_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(5)
    held, sure = 0, 0
    for _ in range(400):
        shared, noise = rng.normal(size=40), rng.normal(size=40)
        found = paired_bootstrap(shared + 0.3 + noise, shared, resamples=400, seed=rng)
        held += found.low <= 0.3 <= found.high
        none = paired_bootstrap(shared + noise, shared, resamples=400, seed=rng)
        sure += none.p_value < 0.05
    assert 0.89 <= held / 400 <= 0.98
    assert 0.02 <= sure / 400 <= 0.11


def test_pairing_takes_off_what_graphs_share() -> None:
    rng = np.random.default_rng(1)
    shared = 10 * rng.normal(size=50)
    found = paired_bootstrap(shared + 0.5 + 0.1 * rng.normal(size=50), shared, seed=0)
    assert 0.4 < found.low < found.high < 0.6


def test_share_of_gap() -> None:
    assert share_of_gap(0.6, random=0.5, best=0.7) == 0.5
    assert share_of_gap(0.5, random=0.5, best=0.7) == 0
    assert share_of_gap(0.7, random=0.5, best=0.7) == 1
    assert share_of_gap(0.4, random=0.5, best=0.7) == -0.5


def test_bad_input() -> None:
    for call, words in (
        (lambda: paired_bootstrap([1], [1, 2]), r"same graphs \(got 1 and 2\)"),
        (lambda: paired_bootstrap([], []), r"first must be a number per graph.*\(got \(0,\)\)"),
        (lambda: paired_bootstrap([[1]], [1]), r"first must be a number per graph"),
        (lambda: paired_bootstrap([1], [float("nan")]), r"second must be finite \(got nan\)"),
        (lambda: paired_bootstrap([1], [1], confidence=1), "between 0 and 1"),
        (lambda: paired_bootstrap([1], [1], confidence=0), "between 0 and 1"),
        (lambda: paired_bootstrap([1], [1], resamples=0), "at least 1"),
        (lambda: share_of_gap(0.5, 0.5, 0.5), r"best must be above random \(got 0.5 and 0.5\)"),
        (lambda: share_of_gap(0.5, 0.6, 0.5), "best must be above random"),
        (lambda: share_of_gap(0.5, float("nan"), 0.5), "best must be above random"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
