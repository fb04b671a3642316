"""Small networks of every signature, and how each is called on a single graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphNorm,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

from gstarx.models import GCN

FEATURES, CLASSES = 4, 3


class GIN(nn.Module):
    """Isomorphism layers with BatchNorm, whose statistics have seen data."""

    def __init__(self, *, track_running_stats: bool = True) -> None:
        super().__init__()
        self.conv = GINConv(nn.Linear(FEATURES, 8), train_eps=True)
        self.norm = nn.BatchNorm1d(8, track_running_stats=track_running_stats)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, CLASSES)
        self.norm(torch.randn(50, 8) * 2 + 1)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        hidden = self.drop(self.norm(self.conv(x, edge_index)).relu())
        return self.head(global_max_pool(hidden, batch))


class GAT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GATConv(FEATURES, 4, heads=2, dropout=0.5)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(global_add_pool(self.conv(x, edge_index).relu(), batch))


class GINE(nn.Module):
    """A model of nodes and edges; the attributes of the edges by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GINEConv(nn.Linear(FEATURES, 8), edge_dim=3)
        self.head = nn.Linear(8, CLASSES)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor | None = None
    ) -> Tensor:
        return self.head(global_mean_pool(self.conv(x, edge_index, edge_attr).relu(), batch))


class Normalized(nn.Module):
    """GraphNorm, which looks at all nodes of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, 8)
        self.norm = GraphNorm(8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, *, batch: Tensor | None = None) -> Tensor:
        hidden = self.norm(self.conv(x, edge_index), batch)
        return self.head(global_mean_pool(hidden.relu(), batch))


class OnData(nn.Module):
    """A model that takes a ``Data`` object and asks it for all sorts of things."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GINE()

    def forward(self, data: Data) -> Tensor:
        assert data.num_nodes == len(data.x) == len(data.batch)
        assert len(data.edge_attr) == data.num_edges
        out = self.net(data.x, data.edge_index, data.edge_attr, data.batch)
        sizes = data.ptr.diff() if "ptr" in data else torch.tensor([data.num_nodes])
        assert data.num_graphs == len(out)
        return out + 0.1 * sizes[:, None]


class ByKeyword(nn.Module):
    """Arguments of many names: of nodes, of edges, of the graph, of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, 8)
        self.head = nn.Linear(8 + 3 + 2, CLASSES)

    def forward(
        self,
        features: Tensor,
        edges: Tensor,
        batch: Tensor,
        pos: Tensor,
        charges: Tensor,
        edge_weight: Tensor,
        u: Tensor,
        scale: float,
        *,
        bond_length_of_edge: Tensor,
        unheard_of: Tensor | None = None,
    ) -> Tensor:
        assert unheard_of is None
        weights = edge_weight / (1 + bond_length_of_edge[:, 0])
        hidden = self.conv(features, edges, weights).relu() * charges[:, None]
        pooled = global_add_pool(torch.cat([hidden, pos], dim=1), batch)
        return scale * self.head(torch.cat([pooled, u], dim=1))


class OnPositions(nn.Module):
    """Atoms in space, without edges."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(7, CLASSES)

    def forward(self, z: Tensor, pos: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.head(global_mean_pool(torch.cat([self.embed(z), pos], dim=1), batch))


class OnPairs(nn.Module):
    """Chosen pairs of nodes, whose ids have to follow the nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES, readout=None)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, pair_index: Tensor, batch_size: int
    ) -> Tensor:
        hidden = self.net(x, edge_index)
        pairs = hidden[pair_index[0]] * hidden[pair_index[1]].sigmoid()
        out = global_add_pool(pairs, batch[pair_index[0]], batch_size)
        return out + global_mean_pool(hidden, batch)


class WithoutBatch(nn.Module):
    """A model of one graph at a time, which returns a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.net(x, edge_index)[0]


def _function() -> Callable[..., Tensor]:
    net = GCN(FEATURES, 8, CLASSES).eval()
    return lambda x, edge_index, batch: net(x, edge_index, batch)


def _function_of_data() -> Callable[..., Tensor]:
    net = GCN(FEATURES, 8, CLASSES).eval()
    return lambda sample: net(sample.x, sample.edge_index, sample.batch)


def one_batch(data: Data) -> Tensor:
    return torch.zeros(len(data.x), dtype=torch.long)


def _plain(model: Any, data: Data) -> Tensor:
    return model(data.x, data.edge_index, batch=one_batch(data))


def _weighted(model: Any, data: Data) -> Tensor:
    return model(data.x, data.edge_index, batch=one_batch(data), edge_weight=data.edge_weight)


def _by_keyword(model: Any, data: Data) -> Tensor:
    names = ("pos", "charges", "edge_weight", "u", "scale", "bond_length_of_edge")
    named = {name: data[name] for name in names}
    return model(data.x, data.edge_index, batch=one_batch(data), **named)


def _on_data(model: Any, data: Data) -> Tensor:
    alone = data.clone()
    alone.batch, alone.num_graphs = one_batch(data), 1
    return model(alone)


#: By name: how to build a network, and how to call it on one graph.
NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[Any, Data], Tensor]]] = {
    "gcn": (lambda: GCN(FEATURES, 8, CLASSES, readout="max"), _weighted),
    "gcn unnormalized": (lambda: GCN(FEATURES, 8, CLASSES, normalize=False), _weighted),
    "gin": (GIN, _plain),
    "gat": (GAT, _plain),
    "gine": (GINE, lambda m, d: m(d.x, d.edge_index, d.edge_attr)),
    "graph norm": (Normalized, _plain),
    "data": (OnData, _on_data),
    "function": (_function, _plain),
    "function of data": (_function_of_data, _on_data),
    "keywords": (ByKeyword, _by_keyword),
    "positions": (OnPositions, lambda m, d: m(d.z, d.pos)),
    "pairs": (
        OnPairs,
        lambda m, d: m(d.x, d.edge_index, one_batch(d), d.pair_index, 1),
    ),
    "no batch": (WithoutBatch, lambda m, d: m(d.x, d.edge_index)[None]),
}


def build(name: str, *, seed: int = 0) -> Any:
    """A network by name, with weights by seed, in evaluation mode where it has one."""
    torch.manual_seed(seed)
    model = NETWORKS[name][0]()
    return model.eval() if isinstance(model, nn.Module) else model
