"""Scores of predictions: as scikit-learn computes them, and nan where labels do not define them."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx_bench.models.evaluation import auroc, average_precision, mean_known, r2, rmse, scores_of

sklearn = pytest.importorskip("sklearn.metrics")

#: Few values, so that there are ties.
rows = st.lists(
    st.tuples(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=30,
)
pairs = st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=2, max_size=20)


@settings(max_examples=100, deadline=None)
@given(rows)
def test_ranking_is_as_in_scikit_learn_and_by_counting(
    given_rows: list[tuple[float, float]],
) -> None:
    scores, labels = (np.array(column) for column in zip(*given_rows, strict=True))
    up, down = scores[labels == 1], scores[labels == 0]
    if not len(up) or not len(down):
        assert math.isnan(auroc(scores, labels))
    else:
        wins = [(a > b) + (a == b) / 2 for a, b in product(up, down)]
        assert auroc(scores, labels) == pytest.approx(np.mean(wins))
        assert auroc(scores, labels) == pytest.approx(sklearn.roc_auc_score(labels, scores))
    if not len(up):
        assert math.isnan(average_precision(scores, labels))
    else:
        expected = sklearn.average_precision_score(labels, scores)
        assert average_precision(scores, labels) == pytest.approx(expected)


@settings(max_examples=50, deadline=None)
@given(pairs)
def test_errors_are_as_in_scikit_learn(given_pairs: list[tuple[float, float]]) -> None:
    outputs, targets = (np.array(column) for column in zip(*given_pairs, strict=True))
    expected = math.sqrt(sklearn.mean_squared_error(targets, outputs))
    assert rmse(outputs, targets) == pytest.approx(expected, abs=1e-9)
    if np.ptp(targets) > 1e-3:
        assert r2(outputs, targets) == pytest.approx(sklearn.r2_score(targets, outputs))


def test_what_is_missing_does_not_count() -> None:
    missing = math.nan
    assert auroc([1, 2, 9, 3], [0, 1, missing, 1]) == auroc([1, 2, 3], [0, 1, 1])
    assert average_precision([1, 2, 9], [0, 1, missing]) == 1
    assert rmse([1, 9], [2, missing]) == 1
    assert r2([1, 2, 9], [1, 2, missing]) == 1
    for function in (auroc, average_precision, rmse, r2):
        assert math.isnan(function([1.0], [missing]))
        assert math.isnan(function([], []))
    assert math.isnan(r2([1, 2], [3, 3]))
    assert math.isnan(auroc([1, missing], [0, 1]))
    assert math.isnan(average_precision([1, missing], [0, 1]))
    assert mean_known([1.0, missing, 3.0]) == 2
    assert math.isnan(mean_known([missing]))
    with pytest.raises(ValueError, match=r"one score \(got 1 for 2\)"):
        rmse([1], [1, 2])


def test_scores_of_tasks() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.5], [0.0, 3.0]])
    labels = torch.tensor([0, 1, 1, 1])
    found = scores_of("classification", logits, labels)
    assert found == {"accuracy": 0.75, "auroc": 1.0, "average_precision": 1.0}
    margin = logits[:, 1:] - logits[:, :1]
    assert scores_of("binary", margin, labels[:, None].float()) == found
    three = torch.eye(3)[[0, 1, 2, 2]] + torch.tensor([0.0, 0.1, 0.2])
    classes = torch.tensor([0, 1, 2, 0])
    expected = sklearn.roc_auc_score(classes, three.softmax(1), multi_class="ovr")
    assert scores_of("classification", three, classes)["auroc"] == pytest.approx(expected)


def test_scores_of_several_targets() -> None:
    missing = math.nan
    outputs = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [-2.0, 2.0, 1.0]])
    labels = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, missing], [missing, 1.0, 1.0]])
    found = scores_of("multilabel", outputs, labels, ["a", "b", "c"])
    assert found["auroc a"] == 1
    assert found["auroc b"] == 0.5
    assert math.isnan(found["auroc c"])
    assert found["auroc"] == 0.75
    assert found["accuracy"] == pytest.approx(5 / 7)
    values = scores_of("regression", outputs, labels, ["a", "b", "c"])
    assert "accuracy" not in values
    assert values["rmse a"] == rmse(outputs[:, 0], labels[:, 0])
    assert values["rmse"] == pytest.approx(np.mean([values[f"rmse {name}"] for name in "abc"]))
    one: dict[str, Any] = scores_of("regression", outputs[:, :1], labels[:, :1], ["a"])
    assert set(one) == {"rmse", "r2"}
