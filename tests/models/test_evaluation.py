"""Accuracy, and models that do not fit the labels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gstarx.models import GCN, GIN
from gstarx_bench.models import accuracy
from gstarx_bench.models.evaluation import LabeledGraphs, batch_for, loss_and_accuracy
from tests.models.small import nodes, rings


class Mean(nn.Module):
    """Class 1 where the first feature is positive, by graph or by node."""

    def __init__(self, *, nodewise: bool = False) -> None:
        super().__init__()
        self.nodewise = nodewise

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        score = x[:, 0]
        if not self.nodewise:
            score = torch.zeros(int(batch.max()) + 1).index_add(0, batch, score)
        return torch.stack([-score, score], dim=1)


def test_accuracy_is_the_share_of_right_labels() -> None:
    graphs = rings(1100).graphs  # more than go at once
    right = [int(g.x[:, 0].sum() > 0) == int(g.y) for g in graphs]
    assert 0.7 < sum(right) / 1100 < 1
    assert accuracy(Mean(), graphs) == sum(right) / 1100
    assert accuracy(Mean(), graphs[:1]) == float(right[0])


def test_accuracy_on_nodes() -> None:
    graphs = nodes().graphs
    model = Mean(nodewise=True)
    assert accuracy(model, graphs) == 0.75
    assert accuracy(model, graphs, mask="train_mask") == 1.0
    assert accuracy(model, graphs, mask="test_mask") == 0.0


def test_the_loss_gives_every_label_the_same_weight() -> None:
    graphs = LabeledGraphs.of(rings(1100).graphs).part()
    loss, _ = loss_and_accuracy(Mean(), graphs)
    halves = [loss_and_accuracy(Mean(), half)[0] for half in (graphs[:550], graphs[550:])]
    assert loss == pytest.approx(sum(halves) / 2, rel=1e-6)
    batch = batch_for(Mean(), graphs)
    logits = Mean()(batch.x, batch.edge_index, batch.batch)
    assert loss == pytest.approx(float(nn.functional.cross_entropy(logits, batch.y)), rel=1e-5)


def test_the_model_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = GIN(3, 8, 2).train()
    model.convs[1].eval()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    first = accuracy(model, rings().graphs)
    assert accuracy(model, rings().graphs) == first
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_features_in_half_precision_and_weights_in_double() -> None:
    graphs = [g.clone() for g in rings().graphs]
    for g in graphs:
        g.x = g.x.half()
    assert 0 <= accuracy(GCN(3, 4, 2), graphs) <= 1
    assert 0 <= accuracy(GCN(3, 4, 2).double(), graphs) <= 1


def test_masks_that_are_not_there() -> None:
    with pytest.raises(ValueError, match=r"one that the graphs have: none \(got"):
        accuracy(Mean(), rings().graphs, mask="train_mask")
    with pytest.raises(ValueError, match="have: 'train_mask', 'val_mask', 'test_mask'"):
        accuracy(Mean(nodewise=True), nodes().graphs, mask="x")


def test_no_labels_to_predict() -> None:
    data = nodes()
    data.graphs[0].test_mask[:] = False
    with pytest.raises(ValueError, match=r"at least one label to predict \(got none\)"):
        accuracy(Mean(nodewise=True), data.graphs, mask="test_mask")


class Returns(nn.Module):
    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return self.found


def test_outputs_that_do_not_fit() -> None:
    for found, got in (
        (torch.ones(40), r"\(40,\)"),
        (torch.ones(39, 2), r"\(39, 2\)"),
        ([1, 2], "list"),
    ):
        message = rf"40 graphs.* must return \(40, classes\) \(got {got}"
        with pytest.raises(ValueError, match=message):
            accuracy(Returns(found), rings().graphs)
    with pytest.raises(ValueError, match=r"labels are those of 60 nodes.*\(got \(1, 2\)\)"):
        accuracy(GCN(2, 4, 2), nodes().graphs)
    with pytest.raises(ValueError, match="labels are those of 40 graphs"):
        accuracy(GCN(3, 4, 2, readout=None), rings().graphs)


def test_graphs_that_cannot_be_used() -> None:
    with pytest.raises(ValueError, match=r"at least one graph \(got none\)"):
        accuracy(Mean(), [])
    for field in ("x", "edge_index", "y"):
        bad = [graph.clone() for graph in rings(5).graphs]
        del bad[3][field]
        with pytest.raises(ValueError, match=f"graph 3 of 5 has no {field}"):
            accuracy(Mean(), bad)
    bad[3] = bad[2].clone()
    bad[2].x = torch.ones(0, 3)
    with pytest.raises(ValueError, match="graph 2 of 5 has no nodes"):
        accuracy(Mean(), bad)
    bad[2] = bad[1].clone()
    bad[1].y = torch.zeros(len(bad[1].x))
    with pytest.raises(ValueError, match="one label, or every graph one for each node"):
        accuracy(Mean(), bad)


def test_a_mask_that_only_some_graphs_have_is_none() -> None:
    (one,) = nodes().graphs
    without = one.clone()
    del without.train_mask
    with pytest.raises(ValueError, match="have: 'val_mask', 'test_mask'"):
        accuracy(Mean(nodewise=True), [one, without], mask="train_mask")
