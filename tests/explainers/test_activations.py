"""CAM, GradCAM, attention, SmoothGrad and occlusion, on networks where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, global_add_pool

from gstarx.explainers import create
from gstarx.explainers.baselines import LeaveOneOut, Occlusion
from gstarx.explainers.gradients import SmoothGrad
from gstarx.models import GAT, GCN, GIN
from gstarx_bench.explainers.activations import CAM, Attention, GradCAM
from tests.explainers.small import (
    CLASSES,
    FEATURES,
    WithoutMessages,
    graph,
    network,
    unchanged,
)

READOUTS = ("sum", "mean", "max")


def gcn(readout: str) -> GCN:
    torch.manual_seed(1)
    return GCN(FEATURES, 8, CLASSES, readout=readout)


@pytest.mark.parametrize(
    ("readout", "shape"),
    [("sum", "path"), ("mean", "loops"), ("max", "a loop everywhere"), ("sum", "components")],
)
def test_cam_adds_up_to_the_logit_without_its_bias(readout: str, shape: str) -> None:
    model, data = gcn(readout), graph(shape)
    with unchanged(model):
        scores = CAM().explain(model, data, target=1).scores
    logit = model.eval()(data.x, data.edge_index)[0, 1] - model.classifier.bias[1]
    assert float(scores.sum()) == pytest.approx(float(logit.detach()), abs=1e-4)
    if readout == "sum":
        embedded = model.embed(data.x, data.edge_index) @ model.classifier.weight[1]
        assert scores.numpy() == pytest.approx(embedded.detach().numpy(), abs=1e-5)


def test_cam_of_a_maximum_gives_each_feature_to_the_node_that_attains_it() -> None:
    model, data = gcn("max"), graph("path")
    embedded = model.embed(data.x, data.edge_index).detach()
    expected = torch.zeros(5)
    for feature, node in enumerate(embedded.argmax(dim=0).tolist()):
        expected[node] += embedded[node, feature] * model.classifier.weight[0, feature].detach()
    scores = CAM().explain(model, data, target=0).scores
    assert scores.numpy() == pytest.approx(expected.numpy(), abs=1e-5)


class OneLogit(nn.Module):
    """A convolution, a sum, and one number for two classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, 6)
        self.last = nn.Linear(6, 1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.last(global_add_pool(self.conv(x, edge_index).relu(), batch))


def test_cam_of_one_logit_speaks_for_both_classes() -> None:
    torch.manual_seed(0)
    model, data = OneLogit(), graph("path")
    on, off = (
        CAM().explain(model, data, target=target, task="binary_classification").scores
        for target in (1, 0)
    )
    hidden = model.conv(data.x, data.edge_index).relu() @ model.last.weight[0]
    assert on.numpy() == pytest.approx(hidden.detach().numpy(), abs=1e-5)
    assert torch.equal(on, -off)
    number = CAM().explain(model, data, task="regression").scores
    assert torch.equal(number, on)


class TwoLayersAfterTheReadout(OneLogit):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, CLASSES))  # type: ignore[assignment]


def test_cam_refuses_models_whose_logit_is_no_sum_over_nodes() -> None:
    for model in (
        TwoLayersAfterTheReadout(),
        WithoutMessages(),
    ):
        with pytest.raises(ValueError, match=r"CAM needs a model whose last linear layer reads"):
            CAM().explain(model, graph("path"))


def test_cam_explains_graphs_only() -> None:
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    with pytest.raises(ValueError, match=r"task_level must be 'graph' \(got 'node'\)"):
        CAM().explain(model, graph("path"), index=0, task="node")


def test_gradcam_equals_cam_where_the_logit_is_a_sum_over_nodes() -> None:
    model, data = gcn("sum"), graph("loops")
    with unchanged(model):
        scores = GradCAM().explain(model, data, target=1).scores
    assert scores.numpy() == pytest.approx(CAM().explain(model, data, target=1).scores.numpy())


@pytest.mark.parametrize("layers", ["last", "all"])
def test_gradcam_by_its_definition(layers: str) -> None:
    torch.manual_seed(0)
    model, data = GIN(FEATURES, 8, CLASSES, readout="max").eval(), graph("path")
    x, hidden = data.x, []
    for conv in model.convs:
        x = conv(x, data.edge_index)
        hidden.append(x)
    logit = model.classifier(x.max(dim=0).values)[1]
    maps = [
        (one * slope.mean(dim=0)).sum(dim=1)
        for one, slope in zip(hidden, torch.autograd.grad(logit, hidden), strict=True)
    ]
    expected = maps[-1] if layers == "last" else torch.stack(maps).mean(dim=0)
    scores = GradCAM(layers=layers).explain(model, data, target=1).scores
    assert scores.numpy() == pytest.approx(expected.detach().numpy(), abs=1e-5)


def test_gradcam_takes_embeddings_after_their_activation() -> None:
    torch.manual_seed(0)
    model, data = OneLogit(), graph("path")
    scores = GradCAM().explain(model, data, task="regression").scores
    hidden = model.conv(data.x, data.edge_index).relu() @ model.last.weight[0]
    assert scores.numpy() == pytest.approx(hidden.detach().numpy(), abs=1e-5)


def test_gradcam_of_a_node_and_bad_input() -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=1, readout=None)
    scores = GradCAM().explain(model, graph("path"), index=4, task="node").scores
    assert scores.shape == (5,)
    with pytest.raises(ValueError, match=r"layers must be one of 'last', 'all' \(got 'first'\)"):
        GradCAM(layers="first")
    with pytest.raises(ValueError, match=r"message-passing layers of PyG.*got WithoutMessages"):
        GradCAM().explain(WithoutMessages(), graph("path"))


class Selective(nn.Module):
    """One attention layer that looks at a node for its first feature alone."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GATConv(FEATURES, CLASSES, add_self_loops=False, bias=False)
        with torch.no_grad():
            self.conv.lin.weight.copy_(torch.eye(CLASSES, FEATURES))
            self.conv.att_src.copy_(torch.tensor([[[20.0, 0.0]]]))
            self.conv.att_dst.zero_()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.conv(x, edge_index), batch)


def test_attention_finds_the_node_that_others_look_at() -> None:
    # the center of a star chooses among its leaves; each leaf has the center only
    edges = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    x = torch.zeros(4, FEATURES)
    x[2, 0] = 1
    explanation = Attention().explain(Selective(), Data(x=x, edge_index=edges)).score_edges()
    assert explanation.scores.tolist() == pytest.approx([3, 0, 1, 0], abs=1e-6)
    assert explanation.edge_mask.tolist() == pytest.approx([1, 1, 1, 0, 1, 0], abs=1e-6)


def test_attention_of_all_layers_and_heads_is_averaged() -> None:
    torch.manual_seed(0)
    model, data = GAT(FEATURES, 4, CLASSES, heads=3).eval(), graph("components")
    with unchanged(model):
        scores = Attention().explain(model, data).scores
    x, paid = data.x, torch.zeros(6)
    for conv in model.convs:
        out, (ends, alpha) = conv(x, data.edge_index, return_attention_weights=True)
        paid = paid.index_add(0, ends[0], alpha.detach().mean(dim=1) / len(model.convs))
        x = out.relu()
    assert scores.numpy() == pytest.approx(paid.numpy(), abs=1e-6)
    assert float(scores.sum()) == pytest.approx(6)  # everybody pays one


def test_attention_refuses_models_without_it() -> None:
    with pytest.raises(ValueError, match=r"attention layers of PyG, such as GATConv \(got GCN\)"):
        create("attention").explain(network("gcn"), graph("path"))


def test_smoothgrad_without_noise_is_gradient_times_input() -> None:
    model, data = network("gcn"), graph("loops")
    with unchanged(model):
        scores = SmoothGrad(samples=3, noise=0.0).explain(model, data, target=1).scores
    x = data.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model.eval()(x, data.edge_index)[0, 1], x)
    assert scores.numpy() == pytest.approx((gradient * data.x).sum(dim=1).numpy(), abs=1e-5)


def test_smoothgrad_of_a_square_is_its_expectation() -> None:
    def squares(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool((x[:, :1] ** 2), batch)

    data = graph("path")
    scores = SmoothGrad(samples=4000, noise=0.5).explain(squares, data, seed=1, task="regression")
    variance = (0.5 * float(data.x.std(correction=0))) ** 2
    expected = 2 * (data.x[:, 0] ** 2 + variance)
    assert scores.scores.numpy() == pytest.approx(expected.numpy(), abs=0.15)


def test_smoothgrad_of_a_node_does_not_depend_on_how_many_copies_go_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=1, readout=None)
    task: dict[str, Any] = {"task": "node", "index": 4, "seed": 0}
    together = SmoothGrad(samples=7).explain(model, graph("path"), **task).scores
    monkeypatch.setattr("gstarx.explainers.gradients._NODES_AT_ONCE", 10)
    apart = SmoothGrad(samples=7).explain(model, graph("path"), **task).scores
    assert together.numpy() == pytest.approx(apart.numpy(), abs=1e-6)
    assert together[:3].tolist() == [0, 0, 0]


def test_smoothgrad_refuses_bad_options() -> None:
    with pytest.raises(ValueError, match=r"samples must be at least 1 \(got 0\)"):
        SmoothGrad(samples=0)
    with pytest.raises(ValueError, match=r"noise must be at least 0 \(got -1\)"):
        SmoothGrad(noise=-1)
    whole = Data(x=torch.ones(2, 1, dtype=torch.long), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(TypeError, match=r"data\.x must be floating point \(got torch\.int64\)"):
        SmoothGrad().explain(marked, whole, task="regression")


def marked(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
    """The sum of the first feature."""
    return global_add_pool(x[:, :1], batch)


def test_occlusion_takes_out_whole_neighborhoods() -> None:
    x = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0]])
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    scores = {
        hops: Occlusion(hops=hops).explain(marked, data, task="regression").scores.tolist()
        for hops in (0, 1, 2, 9)
    }
    assert scores[0] == [1, 2, 4, 8, 16]
    assert scores[1] == [3, 7, 14, 28, 24]
    assert scores[2] == [7, 15, 31, 30, 28]
    assert scores[9] == [31] * 5
    alone = LeaveOneOut().explain(network("gcn"), graph("path"), target=0).scores
    same = Occlusion(hops=0).explain(network("gcn"), graph("path"), target=0).scores
    assert same.numpy() == pytest.approx(np.asarray(alone), abs=1e-6)
    with pytest.raises(ValueError, match=r"hops must be at least 0 \(got -1\)"):
        Occlusion(hops=-1)
