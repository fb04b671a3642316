"""Against known nodes: by brute force over pairs and by counting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gstarx.metrics import auroc, iou, precision, precision_at_k, recall
from tests.oracles import subsets

SCORED = st.lists(st.tuples(st.integers(-2, 2).map(float), st.booleans()), min_size=1, max_size=10)


@given(SCORED)
def test_auroc_counts_pairs(nodes: list[tuple[float, bool]]) -> None:
    true = [score for score, inside in nodes if inside]
    other = [score for score, inside in nodes if not inside]
    assume(true and other)
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(true, other)]
    scores, truth = [score for score, _ in nodes], np.array([inside for _, inside in nodes])
    assert auroc(scores, truth) == pytest.approx(sum(wins) / len(wins))
    assert auroc(scores, np.flatnonzero(truth)) == auroc(scores, truth)
    assert auroc(scores, truth) + auroc(scores, ~truth) == pytest.approx(1)


def test_auroc_at_its_ends() -> None:
    assert auroc([3, 2, 1, 0], [0, 1]) == 1
    assert auroc([3, 2, 1, 0], [2, 3]) == 0
    assert auroc([7, 7, 7, 7], [0, 1]) == 0.5


@given(SCORED, st.data())
def test_precision_at_k_counts(nodes: list[tuple[float, bool]], data: st.DataObject) -> None:
    scores, truth = [score for score, _ in nodes], [inside for _, inside in nodes]
    order = sorted(range(len(nodes)), key=lambda node: (-scores[node], node))
    k = data.draw(st.integers(1, len(nodes)))
    assert precision_at_k(scores, truth, k) == pytest.approx(
        sum(truth[node] for node in order[:k]) / k
    )
    if any(truth):
        assert precision_at_k(scores, truth) == precision_at_k(scores, truth, sum(truth))


def test_precision_recall_and_overlap_of_every_pair_of_sets() -> None:
    for chosen in subsets(range(4)):
        for truth in subsets(range(4)):
            both, either = len(chosen & truth), len(chosen | truth)
            assert precision(chosen, truth, 4) == (both / len(chosen) if chosen else 0)
            if truth:
                assert recall(chosen, truth, 4) == both / len(truth)
            if either:
                assert iou(chosen, truth, 4) == both / either


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: auroc([1, 2], []), r"some but not all of the 2 nodes \(got 0\)"),
        (lambda: auroc([1, 2], [0, 1]), r"but not all of the 2 nodes \(got 2\)"),
        (lambda: auroc([1, float("nan")], [0]), "must be finite"),
        (lambda: auroc([1, 2], [2]), r"must lie in 0\.\.1"),
        (lambda: auroc([1, 2], [True]), r"shape \(2,\) \(got \(1,\)\)"),
        (lambda: precision_at_k([1, 2], [0], 0), r"k must lie in 1\.\.2 \(got 0\)"),
        (lambda: precision_at_k([1, 2], [0], 3), r"k must lie in 1\.\.2 \(got 3\)"),
        (lambda: precision_at_k([1, 2], []), r"k must lie in 1\.\.2 \(got 0\)"),
        (lambda: recall([0], [], 2), "at least one node"),
        (lambda: iou([], [], 2), "must not both be empty"),
        (lambda: precision([0, 0], [1], 2), "must not repeat"),
    ],
)
def test_bad_input(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
