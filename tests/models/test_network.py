"""What all three networks have in common."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch

from gstarx.models import GAT, GCN, GIN, Network
from tests.gnn.one_by_one import graph
from tests.pairs import for_each

NETWORKS: list[type[Network]] = [GCN, GIN, GAT]
OPTIONS: dict[type[Network], dict[str, Any]] = {
    GCN: {"num_layers": 2, "readout": None, "normalize": False, "normalize_embeddings": True},
    GIN: {"num_layers": 2, "readout": "sum"},
    GAT: {
        "heads": 3,
        "num_layers": 2,
        "readout": "mean",
        "negative_slope": 0.1,
        "dropout": 0.25,
    },
}


@pytest.mark.parametrize("network", NETWORKS)
def test_config_rebuilds_the_network(network: type[Network]) -> None:
    sizes = {"in_channels": 4, "hidden_channels": 6, "out_channels": 3}
    model = network(**sizes, **OPTIONS[network])
    assert model.config == {**sizes, **OPTIONS[network]}
    assert json.loads(json.dumps(model.config)) == model.config
    other = type(model)(**model.config)
    assert other.config == model.config
    other.load_state_dict(model.state_dict())
    data = graph("messy")
    model.eval()
    other.eval()
    assert torch.equal(model(data.x, data.edge_index), other(data.x, data.edge_index))


def test_defaults_are_the_papers() -> None:
    assert GCN(4, 8, 2).config["readout"] == "mean"
    assert GCN(4, 8, 2).config["normalize"] is True
    assert GIN(4, 8, 2).config == {
        "in_channels": 4,
        "hidden_channels": 8,
        "out_channels": 2,
        "num_layers": 3,
        "readout": "max",
    }
    config = GAT(4, 8, 2).config
    assert (config["heads"], config["num_layers"], config["readout"]) == (10, 3, "max")
    assert (config["negative_slope"], config["dropout"]) == (0.2, 0.0)


@for_each(
    ("network", "readout"),
    [
        (GCN, "mean"),
        (GCN, "max"),
        (GCN, "sum"),
        (GIN, "sum"),
        (GIN, "max"),
        (GAT, "max"),
        (GAT, "mean"),
    ],
)
def test_a_batch_is_its_graphs_one_by_one(network: type[Network], readout: str) -> None:
    torch.manual_seed(0)
    model = network(in_channels=4, hidden_channels=6, out_channels=3, readout=readout).eval()
    graphs = [graph("ring"), graph("messy", seed=1), graph("no edges"), graph("one node")]
    batch = Batch.from_data_list(graphs)
    with torch.no_grad():
        together = model(batch.x, batch.edge_index, batch.batch)
        alone = torch.cat([model(g.x, g.edge_index) for g in graphs])
        embedded = model.embed(batch.x, batch.edge_index)
    assert together.shape == (4, 3)
    torch.testing.assert_close(together, alone)
    # and the readout is of the embeddings
    reduce = {"mean": torch.mean, "max": torch.amax, "sum": torch.sum}[readout]
    pooled = torch.stack([reduce(embedded[batch.batch == i], dim=0) for i in range(4)])
    with torch.no_grad():
        torch.testing.assert_close(together, model.classifier(pooled))


@pytest.mark.parametrize("network", NETWORKS)
def test_rows_of_the_output(network: type[Network]) -> None:
    sizes = {"in_channels": 4, "hidden_channels": 6, "out_channels": 3}
    model = network(**sizes).eval()
    data = graph("messy")
    x, edges = data.x.clone(), data.edge_index.clone()
    batch = torch.zeros(7, dtype=torch.long)
    assert model(data.x, data.edge_index, batch, batch_size=3).shape == (3, 3)
    assert model(data.x, data.edge_index, batch).shape == (1, 3)
    nodewise = network(**sizes, readout=None).eval()
    out = nodewise(data.x, data.edge_index, batch)
    assert torch.equal(out, nodewise.classifier(nodewise.embed(data.x, data.edge_index)))
    assert out.shape == (7, 3)
    assert torch.equal(data.x, x)
    assert torch.equal(data.edge_index, edges)


@pytest.mark.parametrize("network", NETWORKS)
def test_bad_sizes_and_readouts(network: type[Network]) -> None:
    sizes = {"in_channels": 4, "hidden_channels": 8, "out_channels": 2, "num_layers": 3}
    sizes |= {"heads": 2} if network is GAT else {}
    for name in sizes:
        with pytest.raises(ValueError, match=rf"{name} must be at least 1 \(got 0\)"):
            network(**{**sizes, name: 0})
    with pytest.raises(ValueError, match=r"readout must be None or one of 'mean', 'max', 'sum'"):
        network(in_channels=4, hidden_channels=8, out_channels=2, readout="median")
