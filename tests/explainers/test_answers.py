"""What an explainer answers is checked, whoever wrote it, before anybody sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx.explainers import NodeExplainer
from gstarx.explanation import Attribution, Explanation
from gstarx.models import GCN
from tests.pairs import for_each


class Says(NodeExplainer):
    """Answers whatever it is told to."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Any:
        return self.answer


def explained(answer: Any) -> Explanation:
    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    return Says(answer).explain(GCN(4, 4, 2), data)


@for_each(
    ("scores", "message"),
    [
        ([1, float("nan"), 3, 4], r"scores of Says must be finite \(got nan for node 1, 1 of 4"),
        ([1, 2, float("inf"), -float("inf")], r"finite \(got inf for node 2, 2 of 4 are not"),
        ([1, 2, 3], r"one number per node, of shape \(4,\) \(got \(3,\)\)"),
        ([1, 2, 3, 4, 5], r"one number per node, of shape \(4,\) \(got \(5,\)\)"),
        (np.ones((4, 1)), r"one number per node, of shape \(4,\) \(got \(4, 1\)\)"),
        (0.5, r"one number per node, of shape \(4,\) \(got \(\)\)"),
    ],
)
def test_scores_that_are_none(scores: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explained(Attribution(np.asarray(scores)))


@for_each("nodes", [[0, 4], [-1, 2], [1, 1], [0.5, 1.0], [[0, 1]]])
def test_sets_of_what_are_no_nodes(nodes: Any) -> None:
    with pytest.raises(ValueError, match=r"Says must name distinct nodes in 0\.\.3 \(got"):
        explained(Attribution(None, sets=(np.array([0, 1]), np.array(nodes))))


def test_standard_errors_for_other_nodes() -> None:
    with pytest.raises(ValueError, match="standard errors of Says must be one number per node"):
        explained(Attribution(np.zeros(4), std_errors=np.zeros(3)))


def test_something_else() -> None:
    with pytest.raises(TypeError, match=r"Says.attribute must return an Attribution \(got list\)"):
        explained([1, 2, 3, 4])
    with pytest.raises(TypeError, match="scores of Says must be numbers"):
        explained(Attribution(["a", "b", "c", "d"]))  # type: ignore[arg-type]


@for_each("kind", [list, torch.tensor, lambda s: np.array(s, dtype=np.float32)])
def test_other_kinds_of_numbers_are_taken(kind: Any) -> None:
    found = explained(Attribution(kind([1, 2, 3, 4]))).node_scores
    assert found.dtype == torch.float64
    assert found.tolist() == [1, 2, 3, 4]


def test_a_search_may_find_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert explained(Attribution(None)).select(size=3).size == 0
    assert explained(Attribution(None, sets=(nothing,))).select(size=3).size == 0
