"""What is not a set of nodes, a graph, a task or a probability is refused in words."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gstarx import Judge, metrics
from gstarx.metrics import evaluate
from gstarx.models import GCN
from tests.metrics.by_hand import CHANCES, by_table, path

MODEL = by_table(CHANCES)


def test_options_and_sets_that_make_no_sense() -> None:
    for options, error, words in (
        ({"task": "regression"}, ValueError, "need reference=.*reference_of"),
        (
            {"reference": metrics.Reference(1, 0)},
            ValueError,
            "reference is for regression .got mode='multiclass_classification'",
        ),
        ({"task": {"mode": "guess"}}, ValueError, "mode must be one of .* \\(got 'guess'\\)"),
        ({"task": {"return_type": "odds"}}, ValueError, "return_type must be one of"),
        ({"task": {"task_level": "town"}}, ValueError, "task_level must be one of"),
        ({"task": "node"}, ValueError, "needs index="),
        ({"removal": "burn"}, ValueError, "removal must be a function or one of"),
        (
            {"color": 1},
            TypeError,
            "evaluate\\(\\) has no keyword 'color'",
        ),
        ({"target": 2}, ValueError, r"target must name a class in 0\.\.1 \(got 2\)"),
        ({"target": -1}, ValueError, r"0\.\.1"),
        ({"target": "all"}, TypeError, "target must be one class \\(got 'all'\\)"),
        ({"target": [0]}, TypeError, "target must be one class"),
        ({"batch_nodes": 0}, ValueError, "batch_nodes must be at least 1"),
    ):
        with pytest.raises(error, match=words):
            evaluate(MODEL, path(3), [0], **options)

    for nodes, error, words in (
        ([3], ValueError, r"nodes must lie in 0\.\.2 \(got \[3\]\)"),
        ([-1], ValueError, r"0\.\.2"),
        ([1, 1], ValueError, "must not repeat a node"),
        ([True, False], ValueError, r"shape \(3,\) \(got \(2,\)\)"),
        ([0.5], TypeError, "list of node ids"),
        ([[0, 1]], TypeError, "list of node ids"),
        ("all", TypeError, "list of node ids"),
    ):
        with pytest.raises(error, match=words):
            evaluate(MODEL, path(3), nodes)
        with pytest.raises(error, match=words):
            metrics.sparsity(path(3), nodes)


def test_graphs_that_are_not_one_graph() -> None:
    with pytest.raises(TypeError, match=r"torch_geometric.data.Data or HeteroData \(got str\)"):
        evaluate(MODEL, "graph", [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no nodes"):
        evaluate(MODEL, HeteroData(), [0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no nodes"):
        evaluate(MODEL, Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0).long()), [])
    with pytest.raises(ValueError, match="holds 2 graphs"):
        evaluate(MODEL, Batch.from_data_list([path(3), path(3)]), [0])
    with pytest.raises(ValueError, match="number of nodes is not known"):
        evaluate(MODEL, Data(edge_index=path(3).edge_index), [0])


def test_as_many_sets_and_targets_as_graphs() -> None:
    with pytest.raises(ValueError, match=r"entry for each of 2 graphs \(got 1\)"):
        Judge(MODEL).many([path(3), path(3)], [[0]])
    with pytest.raises(ValueError, match=r"one for each of 2 graphs \(got 3\)"):
        Judge(MODEL).many([path(3), path(3)], [[0], [1]], target=[0, 1, 0])


def test_outputs_that_are_no_probabilities() -> None:
    def broken(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return torch.full((int(batch.max()) + 1, 2), torch.nan)

    with pytest.raises(ValueError, match="must be finite"):
        evaluate(broken, path(3), [0])
    with pytest.raises(ValueError, match="pass task='binary'"):
        evaluate(GCN(3, 4, 1), path(3), [0])
    with pytest.raises(TypeError, match="must be callable"):
        evaluate("model", path(3), [0])  # type: ignore[arg-type]
