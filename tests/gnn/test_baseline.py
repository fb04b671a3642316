"""The mean output over a dataset, however its graphs come."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool

from gstarx import GNNGame, expected_output, explain, explain_many
from gstarx.gnn.baseline import graph_outputs
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, GIN, NETWORKS, build
from tests.gnn.one_by_one import graph
from tests.pairs import for_each

GRAPHS = [graph(shape, seed=seed) for seed in range(30) for shape in ("ring", "messy", "one node")]


def one_by_one(name: str, model: Any, graphs: list[Data]) -> Tensor:
    call = NETWORKS[name][1]
    with torch.no_grad():
        return torch.cat([call(model, data) for data in graphs]).double()


@for_each("name", ["gcn", "gin", "gine", "data", "keywords", "no batch"])
def test_it_is_the_mean_probability(name: str) -> None:
    # more than fit in one batch
    graphs = [data.clone() for data in GRAPHS]
    for data in graphs:
        data.scale = torch.tensor([[0.5]])
    model = build(name)
    expected = one_by_one(name, model, graphs).softmax(1).mean(dim=0)
    found = expected_output(model, graphs)
    assert found.shape == (CLASSES,)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    assert found.sum().item() == pytest.approx(1)
    # a loader of batches, of unequal size
    torch.testing.assert_close(
        expected_output(model, DataLoader(graphs, batch_size=7)), expected, atol=1e-6, rtol=0
    )


def test_any_iterable_will_do() -> None:
    model = build("gcn")
    listed = expected_output(model, GRAPHS)
    assert torch.equal(expected_output(model, iter(GRAPHS)), listed)
    assert torch.equal(expected_output(model, tuple(GRAPHS)), listed)
    mixed = [GRAPHS[0], Batch.from_data_list(GRAPHS[1:10]), *GRAPHS[10:]]
    torch.testing.assert_close(expected_output(model, mixed), listed)


def test_outputs_come_in_order() -> None:
    model = build("gcn")
    mixed = [GRAPHS[0], Batch.from_data_list(GRAPHS[1:3]), *GRAPHS[3:5], *GRAPHS[5:80]]
    found = torch.cat(list(graph_outputs(model, mixed)))
    torch.testing.assert_close(found.double(), one_by_one("gcn", model, GRAPHS[:80]))


def test_layers_that_normalize_by_the_batch_see_one_graph_at_a_time() -> None:
    torch.manual_seed(0)
    model = GIN(track_running_stats=False).eval()
    graphs = [data for data in GRAPHS if data.num_nodes > 1]
    expected = one_by_one("gin", model, graphs).softmax(1).mean(dim=0)
    for dataset in (graphs, DataLoader(graphs, batch_size=7)):
        torch.testing.assert_close(expected_output(model, dataset), expected, atol=1e-6, rtol=0)


def test_a_model_may_ask_for_the_number_of_nodes() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor, num_nodes: int) -> Tensor:
        assert len(x) == num_nodes
        return global_add_pool(x, batch)

    assert expected_output(model, GRAPHS).shape == (FEATURES,)


def test_every_mode_and_return_type() -> None:
    torch.manual_seed(0)
    net = GCN(FEATURES, 8, 1)
    out = torch.cat([net(g.x, g.edge_index, None, g.edge_weight) for g in GRAPHS]).double().detach()
    close = {"atol": 1e-6, "rtol": 0.0}
    found = expected_output(net, GRAPHS, task="regression")
    torch.testing.assert_close(found, out.mean(dim=0), **close)
    p = out.sigmoid().mean()
    found = expected_output(net, GRAPHS, task="binary_classification")
    torch.testing.assert_close(found, torch.stack([1 - p, p]), **close)

    def likely(x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor) -> Tensor:
        return net(x, edge_index, batch, edge_weight).sigmoid()

    found = expected_output(
        likely, GRAPHS, task={"mode": "binary_classification", "return_type": "probs"}
    )
    torch.testing.assert_close(found, torch.stack([1 - p, p]), **close)

    def logs(x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor) -> Tensor:
        out = net(x, edge_index, batch, edge_weight)
        return torch.cat([-out, out], dim=1).log_softmax(1)

    found = expected_output(logs, GRAPHS, task={"return_type": "log_probs"})
    p = (2 * out).sigmoid().mean()
    torch.testing.assert_close(found, torch.stack([1 - p, p]), **close)


def test_it_serves_as_a_baseline() -> None:
    model = build("gcn")
    baseline = expected_output(model, GRAPHS)
    game = GNNGame(model, GRAPHS[0], baseline=baseline)
    predicted = int(game.prediction.argmax())
    assert game.payoff.baseline == pytest.approx((baseline[predicted].item(),))
    found = explain(model, GRAPHS[0], baseline=baseline, target="all")
    assert found.baseline == pytest.approx(baseline.tolist())
    assert found.baseline_source == "given"


def test_nothing_to_average() -> None:
    with pytest.raises(ValueError, match="the dataset has no graphs to average over"):
        expected_output(build("gcn"), [])
    with pytest.raises(ValueError, match="there is no task 'clustering'"):
        expected_output(build("gcn"), GRAPHS, task="clustering")


def test_many_graphs_with_a_constant_output_are_warned_of_once() -> None:
    class Offset(torch.nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return 120 + global_add_pool(x[:, :1], batch)

    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [Data(x=torch.full((3, 1), size), edge_index=path) for size in (0.5, 1.0, 2.0)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        explanations = explain_many(Offset(), graphs, baseline=0.0, task="regression")
    assert [explanation.baseline for explanation in explanations] == [[0.0]] * 3
    (warning,) = caught
    assert "about equal and far from the baseline (given)" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent: list[dict[str, Any]] = [{}, {"baseline": "singletons"}, {"value": "shapley"}]
        for options in silent:
            explain_many(Offset(), graphs, task="regression", **options)
