"""Selections by surrogates: those of sums are the highest scores, those of pairs know pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from reproduction import headroom
from reproduction.headroom import selected

EVERY = np.array(list(product([False, True], repeat=6)))


def test_of_sums_the_highest_are_selected() -> None:
    weights = np.array([0.1, -0.4, 0.9, 0.3, 0.8, -0.2])
    for size, best in ((1, {2}), (2, {2, 4}), (3, {2, 3, 4}), (0, set())):
        assert set(selected(EVERY, EVERY @ weights, size, headroom._single)) == best


def test_pairs_see_what_sums_do_not() -> None:
    def worth(sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        # 0 and 1 stand in for each other, 2 and 3 need each other
        either = np.maximum(sets[:, 0], sets[:, 1])
        return 1.3 * either + 1.2 * (sets[:, 2] & sets[:, 3]) + 0.1 * sets[:, 4]

    def promise(nodes: NDArray[np.int64]) -> float:
        kept = np.isin(np.arange(6), nodes)[None]
        return float(worth(kept)[0] / 3 - 2 / 3 * worth(~kept)[0])

    found = {
        name: selected(EVERY, worth(EVERY), 2, features)
        for name, features in (("sums", headroom._single), ("pairs", headroom._with_pairs))
    }
    pairs = [np.array(nodes) for nodes in product(range(6), repeat=2) if nodes[0] < nodes[1]]
    assert promise(found["pairs"]) == pytest.approx(max(map(promise, pairs)))
    assert promise(found["pairs"]) >= promise(found["sums"])
    assert headroom._with_pairs(EVERY).shape == (64, 6 + 15)


def test_random_selections_are_of_a_quarter() -> None:
    sets = headroom._selections(21, np.random.default_rng(0))
    assert set(sets.sum(axis=1)) == {5}
    share = sets.mean(axis=0)  # of 200 draws, each node in 5 of 21
    assert np.abs(share - 5 / 21).max() < 0.1
    assert headroom._selections(3, np.random.default_rng(0)).sum(axis=1).max() == 1


def test_saturation_is_being_near_an_end() -> None:
    assert headroom._saturated(np.array([0.0, 0.005, 0.5, 0.995])) == 0.75
