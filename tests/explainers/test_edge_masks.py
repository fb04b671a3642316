"""Weights of edges reach all messages but those of self-loops, in a copy of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.nn import GCNConv, GINEConv, global_mean_pool
from torch_geometric.utils import to_undirected

from gstarx.explainers import create
from gstarx.explainers.edge_masks import (
    Explained,
    Inputs,
    PlainModel,
    check_weighable,
    isolated,
    node_scores,
    seeded,
    weighable,
)
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.signature import Signature
from tests.explainers.small import (
    CLASSES,
    EDGES,
    FEATURES,
    NETWORKS,
    WithoutMessages,
    graph,
    network,
    unchanged,
)
from tests.pairs import for_each, in_turn

CPU = torch.device("cpu")


def plain(model: Any, data: Data, copies: int = 1, **task: Any) -> PlainModel:
    own = isolated(model)
    inputs = Inputs.copies(data, CPU, copies)
    return PlainModel(own, Signature.of(own, data), inputs, ModelTask(**task), "raw")


def outputs(model: PlainModel) -> Tensor:
    with torch.no_grad():
        return model(model.inputs.fields["x"])


@for_each(("name", "shape"), in_turn(NETWORKS, EDGES))
def test_weights_of_one_change_nothing(name: str, shape: str) -> None:
    model, data = network(name).eval(), graph(shape)
    weighed = plain(model, data)
    weighed.weigh(torch.ones(weighed.edges.shape[1]))
    assert torch.allclose(outputs(weighed), model(data.x, data.edge_index), atol=1e-6)


@for_each(("shape", "name"), in_turn(EDGES, ["gcn unnormalized", "gin"]))
def test_weights_of_zero_are_a_graph_without_those_edges(name: str, shape: str) -> None:
    """Where layers do not count neighbors, dropping an edge is the same as a weight of 0."""
    model, data = network(name).eval(), graph(shape)
    weighed = plain(model, data)
    ends = weighed.edges
    kept = torch.arange(ends.shape[1]) % 3 != 0
    weighed.weigh(kept.float())
    loops = data.edge_index[:, data.edge_index[0] == data.edge_index[1]]
    rest = torch.cat([ends[:, kept], loops], dim=1)
    assert torch.allclose(outputs(weighed), model(data.x, rest), atol=1e-5)
    assert not torch.allclose(outputs(weighed), model(data.x, data.edge_index), atol=1e-5)


def test_weights_of_an_unnormalized_layer_are_those_of_the_edges() -> None:
    model, data = network("gcn unnormalized").eval(), graph("path")
    weighed = plain(model, data)
    weights = torch.rand(data.num_edges)
    weighed.weigh(weights)
    expected = model(data.x, data.edge_index, edge_weight=weights)
    assert torch.allclose(outputs(weighed), expected, atol=1e-6)


@for_each("name", NETWORKS)
def test_every_copy_has_its_own_weights(name: str) -> None:
    model, data = network(name).eval(), graph("loops")
    one = plain(model, data)
    weights = torch.rand(3, one.edges.shape[1])
    found = []
    for row in weights:
        one.weigh(row)
        found.append(outputs(one))
    together = plain(model, data, copies=3)
    together.weigh(weights.flatten())
    assert torch.allclose(outputs(together), torch.cat(found), atol=1e-5)


def test_a_layer_that_goes_against_the_edges() -> None:
    class Backwards(nn.Module):
        def __init__(self, flow: str) -> None:
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES, normalize=False, flow=flow)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index).sum(dim=0, keepdim=True)

    data = Data(x=torch.randn(3, FEATURES), edge_index=torch.tensor([[0, 1], [1, 2]]))
    model = Backwards("target_to_source")
    weighed = plain(model, data)
    weighed.weigh(torch.tensor([0.0, 1.0]))
    assert torch.allclose(outputs(weighed), model(data.x, data.edge_index[:, 1:]), atol=1e-6)


def test_messages_along_other_edges_are_refused() -> None:
    class Reordering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, to_undirected(edge_index)).sum(dim=0, keepdim=True)

    data = Data(x=torch.randn(3, FEATURES), edge_index=torch.tensor([[2, 0], [1, 1]]))
    weighed = plain(Reordering(), data)
    assert outputs(weighed).shape == (1, CLASSES)
    weighed.weigh(torch.ones(2))
    with pytest.raises(ValueError, match=r"GCNConv sends.*got 4 edges instead of 2"):
        outputs(weighed)


def test_the_copy_is_frozen_and_clean() -> None:
    model, data = network("gcn"), graph("path")
    model.convs[0].cached = True
    model(data.x, data.edge_index)
    model(data.x, data.edge_index).sum().backward()
    mask = nn.Parameter(torch.zeros(data.num_edges))
    set_masks(model, mask, data.edge_index)
    model.convs[1].explain = False
    with unchanged(model):
        own = isolated(model)
    assert not own.training
    assert not any(p.requires_grad or p.grad is not None for p in own.parameters())
    assert len(list(own.parameters())) == 8
    assert own.convs[0]._cached_edge_index is None
    assert [layer.explain for layer in own.convs] == [None, False, None]
    assert len(weighable(own)) == 2


def test_a_mask_that_was_computed_does_not_stop_the_copy() -> None:
    model, data = network("gcn"), graph("path")
    set_masks(model, nn.Parameter(torch.zeros(data.num_edges)) * 2, data.edge_index)
    with unchanged(model):
        own = isolated(model)
    assert all(layer._edge_mask is None for layer in own.convs)


def test_weights_carry_gradients_whatever_explained_the_model_before() -> None:
    model, data = network("gcn"), graph("path")
    set_masks(model, nn.Parameter(torch.zeros(data.num_edges)), data.edge_index)
    weighed = plain(model, data)
    source = torch.ones(data.num_edges, requires_grad=True)
    weighed.weigh(source * 0.5)
    weighed(data.x)[0, 0].backward()
    assert source.grad is not None
    assert source.grad.abs().sum() > 0


def test_models_without_messages_are_refused() -> None:
    for model, got in ((WithoutMessages(), "WithoutMessages"), (lambda x: x, "a plain function")):
        with pytest.raises(ValueError, match=f"Some weighs messages.*got {got}"):
            check_weighable(isolated(model), "Some")


def test_fields_of_nodes_and_edges_follow_the_copies() -> None:
    class Edged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GINEConv(nn.Linear(FEATURES, CLASSES), edge_dim=3)

        def forward(
            self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor
        ) -> Tensor:
            return global_mean_pool(self.conv(x, edge_index, edge_attr), batch)

    torch.manual_seed(0)
    model, data = Edged(), graph("path")
    data.edge_attr = torch.randn(data.num_edges, 3)
    expected = model(data.x, data.edge_index, data.edge_attr, torch.zeros(5, dtype=torch.long))
    assert torch.allclose(outputs(plain(model, data, copies=3)), expected.expand(3, -1), atol=1e-6)
    own = isolated(model)
    inputs = Inputs.union([data, data], Signature.of(own, data), CPU)
    both = PlainModel(own, Signature.of(own, data), inputs, ModelTask(), "raw")
    assert torch.allclose(outputs(both), expected.expand(2, -1), atol=1e-6)


def test_node_scores_leave_self_loops_out() -> None:
    ends = torch.tensor([[0, 0, 1, 2], [0, 1, 0, 2]])
    inputs = Inputs.copies(Data(x=torch.ones(3, 1), edge_index=ends), CPU)
    scores, edges = node_scores(torch.tensor([0.2, 0.6]), inputs, "max")
    assert scores == pytest.approx([0.4, 0.4, 0])
    assert edges.tolist() == pytest.approx([0, 0.2, 0.6, 0])


def test_seeded_gives_all_random_state_back() -> None:
    model = network("gcn")
    with unchanged(model):
        drawn = []
        for seed in (3, 3, np.random.default_rng(3), 4):
            with torch.no_grad(), seeded(model, seed):
                drawn.append(torch.rand(2).tolist())
                assert torch.is_grad_enabled()
    assert drawn[0] == drawn[1] == drawn[2] != drawn[3]


@pytest.mark.parametrize(
    ("name", "options"),
    [("gnnexplainer", {"epochs": 2, "node_mask": True}), ("gradient_x_input", {})],
)
def test_a_network_inside_a_function_gets_no_gradients(name: str, options: Any) -> None:
    model = network("gcn")
    with unchanged(model):
        create(name, **options).explain(
            lambda x, edge_index, batch: model(x, edge_index, batch), graph("path"), seed=0
        )


@for_each(
    ("task", "message"),
    [
        ({"task_level": "graphs"}, "task_level must be one of 'graph', 'node', 'edge'"),
        ({"task_level": "node"}, "needs index"),
        ({"task_level": "node", "index": 5}, r"index must lie in 0\.\.4 \(got 5\)"),
        ({"task_level": "edge", "index": 0}, "edge_label_index"),
        ({"mode": "multi"}, "mode must be one of"),
    ],
)
def test_a_task_that_does_not_fit(task: dict[str, Any], message: str) -> None:
    model = NETWORKS["gcn"]()
    if task.get("task_level") != "graphs":
        model.readout = None
    with pytest.raises(ValueError, match=message):
        Explained.of(model, graph("path"), ModelTask(**task), method="Some", kind="raw")


def test_features_are_needed() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(ValueError, match=r"Some needs features data\.x.*num_nodes"):
        Explained.of(NETWORKS["gcn"](), data, ModelTask(), method="Some", kind="raw")


def test_one_output_is_not_many_classes() -> None:
    class Single(WithoutMessages):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(FEATURES, 1)

    args = (Single(), graph("path"))
    with pytest.raises(ValueError, match="returns one output"):
        Explained.of(*args, ModelTask(), method="Some", kind="raw")
    binary = ModelTask(mode="binary_classification")
    found = Explained.of(*args, binary, method="Some", kind="log_prob")
    scores = found.model(found.x).detach()
    assert scores.shape == (1, 2)
    assert float(scores.exp().sum()) == pytest.approx(1)
    assert found.column == int(scores.argmax())
