"""Training of all tasks: binary, multilabel and regression."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool

from gstarx import metrics
from gstarx.datasets import GraphDataset
from gstarx.models import GCN, digest
from gstarx_bench.models import TrainingResult, TrainingSettings, train
from gstarx_bench.models.evaluation import scores_of
from gstarx_bench.models.training import Epoch, Objective
from tests.models.small import BRIEF, rings

SETTINGS = TrainingSettings(learning_rate=0.02, batch_size=16, epochs=30)


def labeled(task: str, *, count: int = 80, names: tuple[str, ...] = ("a", "b")) -> GraphDataset:
    """The rings with labels of another kind; some are missing where there are several."""
    dataset = rings(count)
    graphs = []
    for at, graph in enumerate(dataset.graphs):
        high = float(graph.x[:, 0].mean())
        if task == "binary":
            y = graph.y
        elif task == "multilabel":
            y = torch.tensor([[float(graph.y), math.nan if at % 3 == 0 else 1 - float(graph.y)]])
        else:
            y = torch.tensor([[1000 + 20 * high, math.nan if at % 3 == 0 else -0.01 * high]])
            y = y[:, : len(names)]
        graphs.append(Data(x=graph.x, edge_index=graph.edge_index, y=y))
    several = names if task in ("multilabel", "regression") else ()
    return dataset.replace(
        graphs=graphs, task=task, target_names=several, num_classes=2 if task == "binary" else 0
    )


def quiet(model: Any, dataset: Any, **options: Any) -> TrainingResult:
    return train(model, dataset, **{"settings": SETTINGS, "progress": False, **options})


def outputs(model: nn.Module, graphs: Any) -> Tensor:
    with torch.no_grad():
        return torch.cat([model(g.x, g.edge_index, torch.zeros(len(g.x)).long()) for g in graphs])


@pytest.mark.parametrize("task", ["binary", "multilabel"])
def test_yes_or_no(task: str) -> None:
    dataset = labeled(task)
    result = quiet("gcn", dataset)
    assert result.model.config["out_channels"] == dataset.num_outputs
    assert result.metrics["test"]["auroc"] > 0.9
    assert result.metrics["test"]["average_precision"] > 0.9
    assert result.accuracy["test"] > 0.8
    assert result.reference is None
    graphs = dataset.split("val")
    labels = torch.cat([g.y.reshape(1, -1).float() for g in graphs])
    expected = scores_of(task, outputs(result.model, graphs), labels, dataset.target_names)
    assert result.metrics["val"] == pytest.approx(expected)
    assert result.history[result.best_epoch].val_score == pytest.approx(expected["auroc"])
    assert digest(quiet("gcn", dataset).model) == digest(result.model)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_regression_is_in_the_units_of_the_targets(names: tuple[str, ...]) -> None:
    dataset = labeled("regression", names=names)
    result = quiet("gcn", dataset)
    assert result.accuracy == {}
    assert result.metrics["test"]["r2"] > 0.7
    graphs = dataset.split("test")
    found = outputs(result.model, graphs)
    targets = torch.cat([g.y for g in graphs])
    # around 1000, with a spread of about 20
    assert (found[:, 0] - targets[:, 0]).abs().max() < 20
    expected = scores_of("regression", found, targets, names)
    assert result.metrics["test"] == pytest.approx(expected, rel=1e-3)
    assert result.reference is not None
    again = metrics.reference_of(result.model, dataset.split("train"))
    assert again.range == pytest.approx(result.reference.range, rel=1e-4)
    assert again.mean == pytest.approx(result.reference.mean, rel=1e-4)
    best = result.history[result.best_epoch]
    assert best.val_score == max(epoch.val_score for epoch in result.history)


def test_the_loss_is_that_of_labels_that_are_there() -> None:
    missing = math.nan
    out = torch.tensor([[0.5, -1.0], [2.0, 0.0]])
    y = torch.tensor([[1.0, missing], [0.0, missing]])
    objective = Objective("multilabel")
    expected = functional.binary_cross_entropy_with_logits(out[:, 0], y[:, 0])
    assert objective.loss(out, y) == expected
    values = torch.tensor([[3.0, missing], [5.0, 1.0], [7.0, 3.0]])
    regression = Objective.of("regression", values, ["a", "b"])
    assert regression.center is not None
    assert regression.center.tolist() == [5, 2]
    standard = regression.standardized(values)
    assert standard[:, 0].tolist() == pytest.approx([-math.sqrt(1.5), 0, math.sqrt(1.5)])
    assert standard[1:, 1].tolist() == [-1, 1]
    loss = regression.loss(torch.zeros(3, 2), values)
    assert float(loss) == pytest.approx((1.5 + 0 + 1.5 + 1 + 1) / 5)


def test_mean_and_scale_go_into_the_last_layer() -> None:
    torch.manual_seed(0)
    model, graphs = GCN(3, 8, 2), rings(6).graphs
    before = outputs(model, graphs)
    values = torch.tensor([[10.0, -1.0], [30.0, 1.0]])
    assert Objective.of("regression", values, []).fold(model)
    expected = before * torch.tensor([10.0, 1.0]) + torch.tensor([20.0, 0.0])
    torch.testing.assert_close(outputs(model, graphs), expected)


class Own(nn.Module):
    """A model of one's own, with a linear layer at its end or something after it."""

    def __init__(self, after: Any = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
        self.after = after

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        found = self.last(global_mean_pool(self.first(x).relu(), batch))[:, 0]
        return found if self.after is None else self.after(found)


@pytest.mark.parametrize("after", [None, functional.softplus])
def test_models_of_ones_own_learn_regression_too(after: Any) -> None:
    dataset = labeled("regression", names=("a",))
    for graph in dataset.graphs:  # near enough to learn without standardization
        graph.y = (graph.y - 1000) / 20 + 3
    result = quiet(Own(after), dataset, settings=replace(SETTINGS, epochs=100))
    assert result.metrics["test"]["r2"] > 0.7
    if after is not None:
        assert outputs(result.model, dataset.split("test")).min() > 0


def test_epochs_without_a_score_are_compared_by_their_loss() -> None:
    first, better = Epoch(0, 1.0, 0.5, math.nan), Epoch(1, 1.0, 0.4, math.nan)
    assert better.better_than(first)
    assert not first.better_than(better)


def test_one_class_in_a_split_gives_nan() -> None:
    dataset = labeled("binary")
    for graph in dataset.split("test"):
        graph.y[:] = 1
    for graph in dataset.split("val"):
        graph.y[:] = 0
    result = quiet("gcn", dataset, settings=BRIEF)
    assert math.isnan(result.metrics["test"]["auroc"])
    assert result.metrics["test"]["average_precision"] == 1
    assert 0 <= result.metrics["val"]["accuracy"] <= 1
    losses = [epoch.val_loss for epoch in result.history]
    assert result.best_epoch == losses.index(min(losses))


def changed(dataset: GraphDataset, change: Any) -> GraphDataset:
    for graph in dataset.graphs:
        graph.y = change(graph.y)
    return dataset


def test_labels_that_cannot_be_learned() -> None:
    for dataset, words in (
        (
            changed(labeled("binary"), lambda y: y * 0),
            r"the label must differ between training graphs .*got only 0 for 40",
        ),
        (
            changed(labeled("regression"), lambda y: y * 0 + 2.5),
            r"target 'a' must differ between training graphs .*got only 2.5",
        ),
        (changed(labeled("binary"), lambda y: y + 1), r"binary task must be 0 or 1.*got 2"),
        (changed(labeled("multilabel"), lambda y: y - 0.5), r"multilabel task must be 0 or 1"),
        (changed(labeled("regression"), lambda y: y / 0), r"targets must be finite, or nan"),
        (changed(labeled("multilabel"), lambda y: y * math.nan), r"graphs in split 'train'"),
        (
            changed(labeled("regression"), lambda y: torch.tensor([[float(y[0, 0]), math.nan]])),
            r"no training graph has a value of target 'b'",
        ),
        (
            changed(labeled("regression"), lambda y: y[:, :1]),
            r"graph 0 of 80 must have 2 labels, one for each target \(got 1\)",
        ),
        (rings().replace(graphs=[]), "at least one graph"),
        (changed(rings(), lambda y: y * 0), "the label must differ between training graphs"),
    ):
        with pytest.raises(ValueError, match=words):
            quiet("gcn", dataset)


def test_models_with_other_outputs() -> None:
    with pytest.raises(ValueError, match=r"out_channels .* at least 2.*\(got 1\)"):
        quiet(GCN(3, 4, 1), labeled("multilabel"))
    with pytest.raises(ValueError, match=r"output for each target of 16 graphs.*got \(16, 3\)"):
        quiet(GCN(3, 4, 3), labeled("multilabel"))
