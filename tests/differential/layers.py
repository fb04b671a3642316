"""Rounds of messages: layers of PyG, layers that users write, and rounds by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops, degree, scatter, softmax

from tests.differential.graphs import EDGE_FEATURES
from tests.differential.inputs import Inputs, mlp


class Layer(nn.Module):
    """A layer of PyG, given the fields that it takes besides ``x`` and ``edge_index``."""

    def __init__(self, conv: nn.Module, *extra: str, twice: bool = False) -> None:
        super().__init__()
        self.conv, self.extra, self.twice = conv, extra, twice

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        more = [getattr(g, name) for name in self.extra]
        first = (h, h) if self.twice else (h,)  # some take the features of the first layer, too
        return self.conv(*first, g.edge_index, *more).tanh()


class History(nn.Module):
    """DNA, which takes the features of all layers so far."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = pyg.DNAConv(width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        return self.conv(torch.stack([h, h.tanh()], dim=1), g.edge_index).tanh()


class Wide(nn.Module):
    """MixHop, which returns a block of features for every power of the adjacency matrix."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv, self.lin = pyg.MixHopConv(width, width, [0, 1, 2]), nn.Linear(3 * width, width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        return self.lin(self.conv(h, g.edge_index)).tanh()


class TutorialGCN(pyg.MessagePassing):
    """The layer of PyG's tutorial, which normalizes by itself."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(width, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        scale = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        return self.propagate(edge_index, x=self.lin(x), norm=scale[row] * scale[col])

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.view(-1, 1) * x_j


class OnlyPropagates(pyg.MessagePassing):
    def __init__(self, width: int, aggr: str, flow: str) -> None:
        super().__init__(aggr=aggr, flow=flow)
        self.lin, self.root = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(self.propagate(edge_index, x=x)) + self.root(x)


class Differences(pyg.MessagePassing):
    """Messages that look at both ends and at attributes."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="mean")
        self.lin, self.bond = nn.Linear(width, width), nn.Linear(EDGE_FEATURES, width)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return x + self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_i: Tensor, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        return self.lin(x_i - x_j) * self.bond(edge_attr).sigmoid()


class Updater(pyg.MessagePassing):
    """Attention that is computed on edges before messages are sent."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="add", node_dim=0)
        self.lin, self.score = nn.Linear(width, width), nn.Linear(2 * width, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.lin(x)
        alpha = self.edge_updater(edge_index, x=x)
        return x + self.propagate(edge_index, x=x, alpha=alpha)

    def edge_update(self, x_i: Tensor, x_j: Tensor, index: Tensor, size_i: int | None) -> Tensor:
        score = self.score(torch.cat([x_i, x_j], dim=-1)).tanh()
        return softmax(score, index, num_nodes=size_i)

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha * x_j


class SourceDegrees(pyg.MessagePassing):
    """Messages divided by how many their source sends, counted before they are sent."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(width, width)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sent = degree(edge_index[0], x.size(0), dtype=x.dtype).clamp(min=1)
        return x + self.propagate(edge_index, x=self.lin(x) / sent[:, None])


class ByHand(nn.Module):
    """A round of messages that no layer of PyG knows of."""

    def __init__(self, width: int, way: str) -> None:
        super().__init__()
        self.lin, self.way = nn.Linear(width, width), way

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        return (h + HAND_MADE[self.way](self.lin(h), g)).tanh()


def _index_add(h: Tensor, g: Inputs) -> Tensor:
    source, target = g.edge_index
    return torch.zeros_like(h).index_add(0, target, h[source])


def _index_add_back(h: Tensor, g: Inputs) -> Tensor:
    source, target = g.edge_index
    return torch.zeros_like(h).index_add(0, source, h[target])


def _sparse(h: Tensor, g: Inputs) -> Tensor:
    return torch.sparse.mm(_matrix(h, g, h.new_ones(g.edge_index.shape[1])), h)


def _sparse_weighted(h: Tensor, g: Inputs) -> Tensor:
    return torch.sparse.mm(_matrix(h, g, g.edge_weight), h)


def _matrix(h: Tensor, g: Inputs, weights: Tensor) -> Tensor:
    shape = (len(h), len(h))
    return torch.sparse_coo_tensor(g.edge_index.flip(0), weights, shape, check_invariants=False)


def _dense(h: Tensor, g: Inputs) -> Tensor:
    adjacency = h.new_zeros(len(h), len(h))
    adjacency.index_put_((g.edge_index[1], g.edge_index[0]), h.new_ones(()), accumulate=True)
    return adjacency @ h / adjacency.sum(dim=1, keepdim=True).clamp(min=1)


def _attention(h: Tensor, g: Inputs) -> Tensor:
    linked = torch.eye(len(h), dtype=torch.bool)
    linked[g.edge_index[1], g.edge_index[0]] = True
    return (h @ h.t()).masked_fill(~linked, -torch.inf).softmax(dim=1) @ h


def _scatter_max(h: Tensor, g: Inputs) -> Tensor:
    return scatter(h[g.edge_index[0]], g.edge_index[1], dim_size=len(h), reduce="max")


def _scatter_reduce(h: Tensor, g: Inputs) -> Tensor:
    place = g.edge_index[1][:, None].expand(-1, h.shape[1])
    return torch.zeros_like(h).scatter_reduce(0, place, h[g.edge_index[0]], "mean")


def _loop(h: Tensor, g: Inputs) -> Tensor:
    out = torch.zeros_like(h)
    for source, target in g.edge_index.t().tolist():
        out[target] = out[target] + 0.5 * h[source]
    return out


def _attributes(h: Tensor, g: Inputs) -> Tensor:
    message = h[g.edge_index[0]] * g.edge_attr[:, :1]
    return torch.zeros_like(h).index_add(0, g.edge_index[1], message)


HAND_MADE: dict[str, Callable[[Tensor, Inputs], Tensor]] = {
    "index_add": _index_add,
    "index_add_back": _index_add_back,
    "sparse.mm": _sparse,
    "sparse.mm_weighted": _sparse_weighted,
    "dense": _dense,
    "masked_attention": _attention,
    "scatter_max": _scatter_max,
    "scatter_reduce": _scatter_reduce,
    "loop": _loop,
    "attributes": _attributes,
}

_DEGREES = torch.tensor([1, 3, 4, 2, 1])


def _pna(width: int) -> nn.Module:
    scalers = ["identity", "amplification", "attenuation"]
    return pyg.PNAConv(width, width, ["mean", "max", "sum"], scalers, _DEGREES)


#: Layers whose messages are scaled by degrees of their source, so that one hop more matters.
NORMALIZED: dict[str, Callable[[int], nn.Module]] = {
    "GCN": lambda w: Layer(pyg.GCNConv(w, w)),
    "GCN improved": lambda w: Layer(pyg.GCNConv(w, w, improved=True)),
    "GCN no loops": lambda w: Layer(pyg.GCNConv(w, w, add_self_loops=False)),
    "GCN weighted": lambda w: Layer(pyg.GCNConv(w, w), "edge_weight"),
    "TAG": lambda w: Layer(pyg.TAGConv(w, w, K=2)),
    "SG": lambda w: Layer(pyg.SGConv(w, w, K=2)),
    "SSG": lambda w: Layer(pyg.SSGConv(w, w, alpha=0.2, K=2)),
    "APPNP": lambda w: Layer(pyg.APPNP(K=2, alpha=0.3)),
    "ARMA": lambda w: Layer(pyg.ARMAConv(w, w, num_layers=1)),
    "Cheb": lambda w: Layer(pyg.ChebConv(w, w, K=2)),
    "Cheb 3": lambda w: Layer(pyg.ChebConv(w, w, K=3, normalization="rw")),
    "LG": lambda w: Layer(pyg.LGConv()),
    "FA": lambda w: Layer(pyg.FAConv(w), twice=True),
    "GCN2": lambda w: Layer(pyg.GCN2Conv(w, alpha=0.3), twice=True),
    "EG": lambda w: Layer(pyg.EGConv(w, w, num_heads=1)),
    "MixHop": Wide,
    "AntiSymmetric": lambda w: Layer(pyg.AntiSymmetricConv(w)),
    "DNA": History,
    "DirGNN": lambda w: Layer(pyg.DirGNNConv(pyg.GCNConv(w, w, add_self_loops=False))),
    "PDN": lambda w: Layer(pyg.PDNConv(w, w, EDGE_FEATURES, 4), "edge_attr"),
    "tutorial GCN": lambda w: Layer(TutorialGCN(w)),
    "source degrees": lambda w: Layer(SourceDegrees(w)),
}
#: The same with something kept from the graph that was seen first.
CACHED: dict[str, Callable[[int], nn.Module]] = {
    "GCN cached": lambda w: Layer(pyg.GCNConv(w, w, cached=True)),
    "SG cached": lambda w: Layer(pyg.SGConv(w, w, K=2, cached=True)),
    "APPNP cached": lambda w: Layer(pyg.APPNP(K=2, alpha=0.3, cached=True)),
}
PLAIN: dict[str, Callable[[int], nn.Module]] = {
    "SAGE": lambda w: Layer(pyg.SAGEConv(w, w)),
    "SAGE max": lambda w: Layer(pyg.SAGEConv(w, w, aggr="max", project=True)),
    "GIN": lambda w: Layer(pyg.GINConv(mlp(w, w), train_eps=True)),
    "GAT": lambda w: Layer(pyg.GATConv(w, w, heads=2, concat=False)),
    "GATv2": lambda w: Layer(pyg.GATv2Conv(w, w, heads=2, concat=False)),
    "GAT no loops": lambda w: Layer(pyg.GATConv(w, w, add_self_loops=False)),
    "SuperGAT": lambda w: Layer(pyg.SuperGATConv(w, w)),
    "GraphConv": lambda w: Layer(pyg.GraphConv(w, w)),
    "GraphConv max": lambda w: Layer(pyg.GraphConv(w, w, aggr="max")),
    "PNA": lambda w: Layer(_pna(w)),
    "Transformer": lambda w: Layer(pyg.TransformerConv(w, w, beta=True)),
    "EdgeConv": lambda w: Layer(pyg.EdgeConv(mlp(2 * w, w))),
    "MF": lambda w: Layer(pyg.MFConv(w, w, max_degree=4)),
    "Cluster": lambda w: Layer(pyg.ClusterGCNConv(w, w)),
    "LE": lambda w: Layer(pyg.LEConv(w, w)),
    "ResGated": lambda w: Layer(pyg.ResGatedGraphConv(w, w)),
    "GEN": lambda w: Layer(pyg.GENConv(w, w)),
    "FeaSt": lambda w: Layer(pyg.FeaStConv(w, w, heads=2)),
    "Gated": lambda w: Layer(pyg.GatedGraphConv(w, num_layers=2)),
    "FiLM": lambda w: Layer(pyg.FiLMConv(w, w)),
    "General": lambda w: Layer(pyg.GeneralConv(w, w)),
    "Simple": lambda w: Layer(pyg.SimpleConv("mean", combine_root="self_loop")),
    "only propagates": lambda w: Layer(OnlyPropagates(w, "mean", "source_to_target")),
    "propagates max": lambda w: Layer(OnlyPropagates(w, "max", "source_to_target")),
    "propagates back": lambda w: Layer(OnlyPropagates(w, "add", "target_to_source")),
    "edge updater": lambda w: Layer(Updater(w)),
}
#: Layers that take the attributes or weights of edges.
OF_EDGES: dict[str, Callable[[int], nn.Module]] = {
    "GINE": lambda w: Layer(pyg.GINEConv(mlp(w, w), edge_dim=EDGE_FEATURES), "edge_attr"),
    "GAT edges": lambda w: Layer(pyg.GATConv(w, w, edge_dim=EDGE_FEATURES), "edge_attr"),
    "GATv2 edges": lambda w: Layer(pyg.GATv2Conv(w, w, edge_dim=EDGE_FEATURES), "edge_attr"),
    "Transformer edges": lambda w: Layer(
        pyg.TransformerConv(w, w, edge_dim=EDGE_FEATURES), "edge_attr"
    ),
    "NN": lambda w: Layer(pyg.NNConv(w, w, mlp(EDGE_FEATURES, w * w)), "edge_attr"),
    "CG": lambda w: Layer(pyg.CGConv(w, EDGE_FEATURES), "edge_attr"),
    "GraphConv weighted": lambda w: Layer(pyg.GraphConv(w, w), "edge_weight"),
    "differences": lambda w: Layer(Differences(w), "edge_attr"),
}


def layer(rng: Random, width: int, kinds: dict[str, Callable[[int], Any]]) -> tuple[str, nn.Module]:
    """One of some layers."""
    name = rng.choice(sorted(kinds))
    return name, kinds[name](width)
