"""Gradient times input and integrated gradients, through Captum and PyG."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.data import Data

pytest.importorskip("captum")

from gstarx.explainers.gradients import GradientXInput, IntegratedGradients
from gstarx.models import GCN
from tests.explainers.small import (
    CLASSES,
    EDGES,
    FEATURES,
    NETWORKS,
    WithoutMessages,
    graph,
    network,
    unchanged,
    without_edges,
)
from tests.pairs import for_each, in_turn

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
BOTH = (GradientXInput, IntegratedGradients)


@for_each(("name", "shape"), in_turn(NETWORKS, EDGES))
def test_gradient_times_input(name: str, shape: str) -> None:
    model, data = network(name), graph(shape)
    with unchanged(model):
        found = GradientXInput().explain(model, data)
    x = data.x.clone().requires_grad_()
    outputs = model.eval()(x, data.edge_index)
    column = int(outputs.argmax())
    (gradient,) = torch.autograd.grad(outputs[0, column], x)
    assert found.target == column
    assert found.node_scores == pytest.approx((gradient * data.x).sum(dim=1).numpy(), abs=1e-6)


@for_each("name", NETWORKS)
def test_integrated_gradients_add_up(name: str) -> None:
    model, data = network(name), graph("loops")
    with unchanged(model):
        found = IntegratedGradients(steps=200).explain(model, data, target=1)
        again = IntegratedGradients(steps=200).explain(model, data, target=1)
    assert torch.equal(found.node_scores, again.node_scores)
    with torch.no_grad():
        ends = [model.eval()(x, data.edge_index)[0, 1] for x in (data.x, torch.zeros_like(data.x))]
    assert found.node_scores.sum() == pytest.approx(float(ends[0] - ends[1]), abs=2e-3)


@pytest.mark.parametrize("kind", BOTH)
def test_a_linear_model_is_explained_exactly(kind: type) -> None:
    torch.manual_seed(0)
    model, data = WithoutMessages(), graph("path")
    found = kind().explain(model, data, target=1)
    expected = (data.x @ model.linear.weight[1] / 5).detach().numpy()
    assert found.node_scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", BOTH)
def test_a_plain_function_and_other_modes(kind: type) -> None:
    data = graph("path")

    def total(x: Tensor, edge_index: Tensor) -> Tensor:
        return 2 * x.sum(dim=0, keepdim=True)[:, :1]

    found = kind().explain(total, data, task="regression")
    assert found.node_scores == pytest.approx(2 * data.x[:, 0].numpy(), abs=1e-5)
    on, off = (
        kind().explain(total, data, target=t, task="binary_classification").node_scores
        for t in (1, 0)
    )
    assert on == pytest.approx(found.node_scores, abs=1e-5)
    assert off == pytest.approx(-on)


@pytest.mark.parametrize("kind", BOTH)
def test_nodes_and_graphs_without_edges(kind: type) -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=1, readout=None)
    found = kind().explain(model, graph("path"), index=4, task="node")
    assert found.node_scores[:3].tolist() == [0, 0, 0]
    assert found.node_scores[3:].abs().min() > 0
    assert kind().explain(network("gcn"), without_edges(1)).node_scores.shape == (1,)


@pytest.mark.parametrize("kind", BOTH)
def test_inside_pygs_explainer_and_without_gradients_around(kind: type) -> None:
    model, data = network("gcn").eval(), graph("components")
    explainer = pyg.Explainer(
        model,
        algorithm=kind(),
        explanation_type="model",
        node_mask_type="object",
        model_config=CONFIG,
    )
    expected = kind().explain(model, data).node_scores
    with unchanged(model):
        found = explainer(data.x, data.edge_index)
    assert found.node_mask[:, 0].tolist() == pytest.approx(expected.tolist())
    for block in (torch.no_grad(), torch.inference_mode()):
        with block:
            alone = kind().explain(model, graph("components")).node_scores
        assert alone == pytest.approx(expected)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1"):
        IntegratedGradients(steps=0)
    whole = Data(x=torch.ones(2, FEATURES, dtype=torch.long), edge_index=torch.tensor([[0], [1]]))

    class OnIntegers(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return x.float().mean(dim=0, keepdim=True)

    with pytest.raises(TypeError, match=r"data\.x must be floating point \(got torch\.int64\)"):
        GradientXInput().explain(OnIntegers(), whole)


def test_without_captum_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum", None)
    with pytest.raises(ImportError, match=r"gstarx\[gradients\]"):
        _explain()


def _explain() -> Any:
    return GradientXInput().explain(network("gcn"), graph("path"))
