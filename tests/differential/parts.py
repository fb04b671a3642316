"""Steps that are not rounds of messages: norms, guards on size, virtual nodes, and readouts."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn import aggr
from torch_geometric.utils import scatter, to_dense_batch

from tests.differential.inputs import Inputs, mlp


class Norm(nn.Module):
    """A norm, given ``batch`` or not."""

    def __init__(self, norm: nn.Module, given_batch: bool = False) -> None:
        super().__init__()
        self.norm, self.given_batch = norm, given_batch

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        return self.norm(h, g.batch) if self.given_batch else self.norm(h)


def _seen_data(norm: nn.Module) -> nn.Module:
    """A batch norm with statistics of its own."""
    inner = getattr(norm, "module", norm)
    inner.running_mean.normal_()
    inner.running_var.uniform_(0.5, 2)
    return norm


#: Norms of one node, which leave the others alone.
NODE_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "BatchNorm": lambda w: Norm(_seen_data(pyg.BatchNorm(w))),
    "BatchNorm1d": lambda w: Norm(_seen_data(nn.BatchNorm1d(w))),
    "LayerNorm node": lambda w: Norm(pyg.LayerNorm(w, mode="node")),
    "nn.LayerNorm": lambda w: Norm(nn.LayerNorm(w)),
    "DiffGroupNorm": lambda w: Norm(pyg.DiffGroupNorm(w, groups=2)),
}
#: Norms over the nodes of a graph that know which graph.
GRAPH_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "GraphNorm": lambda w: Norm(pyg.GraphNorm(w), True),
    "LayerNorm graph": lambda w: Norm(pyg.LayerNorm(w), True),
    "PairNorm": lambda w: Norm(pyg.PairNorm(), True),
    "InstanceNorm": lambda w: Norm(pyg.InstanceNorm(w), True),
    "GraphSizeNorm": lambda w: Norm(pyg.GraphSizeNorm(), True),
    "MeanSubtractionNorm": lambda w: Norm(pyg.MeanSubtractionNorm(), True),
}
#: The same without knowing, which mixes the graphs of a batch.
MIXING_NORMS: dict[str, Callable[[int], nn.Module]] = {
    "GraphNorm alone": lambda w: Norm(pyg.GraphNorm(w)),
    "LayerNorm graph alone": lambda w: Norm(pyg.LayerNorm(w)),
    "PairNorm alone": lambda w: Norm(pyg.PairNorm()),
    "InstanceNorm alone": lambda w: Norm(pyg.InstanceNorm(w)),
    "centered": lambda w: Mixing("centered", w),
    "largest": lambda w: Mixing("largest", w),
}


class Mixing(nn.Module):
    """Something over all rows, which is right for one graph only."""

    def __init__(self, way: str, width: int) -> None:
        super().__init__()
        self.way = way

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        return h - h.mean(0) if self.way == "centered" else h / h.abs().max().clamp(min=1)


class Guard(nn.Module):
    """A condition on the size of the input, which a batch of graphs does not have."""

    def __init__(self, way: str, width: int) -> None:
        super().__init__()
        self.way, self.lin = way, nn.Linear(width, width)
        self.conv = pyg.SAGEConv(width, width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        if self.way == "no edges":
            return self.lin(h) if g.edge_index.numel() == 0 else self.conv(h, g.edge_index).tanh()
        if self.way == "no edges, zeros":
            return h * 0 if g.edge_index.shape[1] == 0 else h
        if self.way == "few edges":
            return h if g.edge_index.size(1) > 3 else 0.5 * h
        if self.way == "one node":
            return self.lin(h).tanh() if h.size(0) > 1 else h
        if self.way == "few nodes":
            return h if len(h) >= 4 else 0 * h
        if self.way == "scale":
            return h / max(1, 6 - len(h))
        return h / h.size(0)


GUARDS: dict[str, Callable[[int], nn.Module]] = {
    way: lambda w, way=way: Guard(way, w)
    for way in (
        "no edges",
        "no edges, zeros",
        "few edges",
        "one node",
        "few nodes",
        "scale",
        "divided by size",
    )
}


class Together(nn.Module):
    """All nodes of a graph talk to each other: through a virtual node, or by attention."""

    def __init__(self, way: str, width: int) -> None:
        super().__init__()
        self.way, self.lin = way, nn.Linear(width, width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        if self.way == "virtual node":
            state = self.lin(pyg.global_mean_pool(h, g.batch)).tanh()
            return h + state[g.owner]
        if self.way == "linked virtual node":
            return self._linked(h, g)
        same = g.owner[:, None] == g.owner[None]
        scores = (self.lin(h) @ h.t()).tanh().masked_fill(~same, -torch.inf)
        return h + scores.softmax(dim=1) @ h

    def _linked(self, h: Tensor, g: Inputs) -> Tensor:
        """One node more for every graph, linked with all of it, for one round by hand."""
        hubs = len(h) + g.owner
        more = torch.cat([h, h.new_zeros(g.graphs, h.shape[1])])
        received = scatter(self.lin(h), hubs, dim_size=len(more), reduce="sum")
        return h + (more + received)[hubs].tanh()


TOGETHER: dict[str, Callable[[int], nn.Module]] = {
    way: lambda w, way=way: Together(way, w)
    for way in ("virtual node", "linked virtual node", "global attention")
}


class InPlace(nn.Module):
    """Writes into the tensors that it is given."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def forward(self, g: Inputs) -> None:
        if self.way == "scaled":
            g.x.mul_(0.5)
        elif self.way == "cleared":
            g.x[:, 0] = 0.0
        elif self.way == "shifted":
            g.x += 0.25
        elif self.way == "relu":
            torch.nn.functional.relu_(g.x)
        elif g.edge_attr is not None:
            g.edge_attr.add_(1.0)


IN_PLACE = ("scaled", "cleared", "shifted", "relu", "attributes")


class Readout(nn.Module):
    """From the nodes of every graph to a row."""

    def __init__(
        self, way: Callable[[Tensor, Inputs], Tensor], module: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.way, self.module = way, module

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        if self.module is not None:
            return self.module(h, g.batch) if g.batch is not None else self.module(h)
        return self.way(h, g)


class Pooled(nn.Module):
    """Some of the nodes of every graph, and their mean."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        h, _, _, batch, *_ = self.pool(h, g.edge_index, None, g.owner)
        return pyg.global_mean_pool(h, batch)


def _first_node(h: Tensor, g: Inputs) -> Tensor:
    sizes = torch.bincount(g.owner, minlength=g.graphs)
    return h[sizes.cumsum(0) - sizes]


def _padded(h: Tensor, g: Inputs) -> Tensor:
    dense, there = to_dense_batch(h, g.owner)
    return dense.sum(dim=1) / there.sum(dim=1, keepdim=True)


def _by_index_add(h: Tensor, g: Inputs) -> Tensor:
    return h.new_zeros(g.graphs, h.shape[1]).index_add(0, g.owner, h)


def _way(function: Callable[..., Tensor]) -> Callable[[int], nn.Module]:
    return lambda w: Readout(lambda h, g: function(h, g.batch))


def _module(make: Callable[[int], nn.Module]) -> Callable[[int], nn.Module]:
    return lambda w: Readout(_by_index_add, make(w))


#: Readouts, and how many times as wide as the nodes their rows are.
SIMPLE_READOUTS: dict[str, tuple[Callable[[int], nn.Module], int]] = {
    "mean": (_way(pyg.global_mean_pool), 1),
    "sum": (_way(pyg.global_add_pool), 1),
    "max": (_way(pyg.global_max_pool), 1),
    "multi": (_module(lambda w: aggr.MultiAggregation(["mean", "max", "sum"])), 3),
    "attention": (_module(lambda w: aggr.AttentionalAggregation(nn.Linear(w, 1))), 1),
    "softmax": (_module(lambda w: aggr.SoftmaxAggregation(learn=True)), 1),
}
OTHER_READOUTS: dict[str, tuple[Callable[[int], nn.Module], int]] = {
    "Set2Set": (_module(lambda w: aggr.Set2Set(w, 2)), 2),
    "sort": (_module(lambda w: aggr.SortAggregation(3)), 3),
    "median": (_module(lambda w: aggr.MedianAggregation()), 1),
    "variance": (_module(lambda w: aggr.VarAggregation()), 1),
    "min": (_module(lambda w: aggr.MinAggregation()), 1),
    "deep sets": (_module(lambda w: aggr.DeepSetsAggregation(mlp(w, w), mlp(w, w))), 1),
    "TopK": (lambda w: Pooled(pyg.TopKPooling(w, ratio=0.5)), 1),
    "first node": (lambda w: Readout(_first_node), 1),
    "padded": (lambda w: Readout(_padded), 1),
    "index_add": (lambda w: Readout(_by_index_add), 1),
}


class Pairs(nn.Module):
    """From the two ends of a pair to a row."""

    def __init__(self, width: int, way: str) -> None:
        super().__init__()
        self.way, self.lin = way, nn.Linear(width, width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        a, b = g.edge_label_index
        if self.way == "common neighbors":
            linked = h.new_zeros(len(h), len(h))
            linked[g.edge_index[0], g.edge_index[1]] = 1.0
            return h[a] * h[b] + (linked.t() @ linked)[a, b][:, None]
        return self.lin(h[a]) * h[b] if self.way == "product" else h[a] + self.lin(h[b]).tanh()


PAIRS = ("product", "sum", "common neighbors")
