"""Models of many kinds, each with the way its owner would call it on one graph."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import aggr, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import to_dense_batch

from gstarx import Task

FEATURES, WIDTH, CLASSES = 4, 8, 3
#: A five-ring with a tail.
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5)]
BATCHES, SINGLY, REFUSED = "in batches", "one at a time", "refused"


def graph(*extra: str) -> Data:
    """The graph with the fields named."""
    draw = torch.Generator().manual_seed(1)
    edges = torch.tensor(EDGES).t()
    both = torch.cat([edges, edges.flip(0)], dim=1)
    count = both.shape[1]
    fields = {
        "edge_attr": torch.rand(count, 3, generator=draw, dtype=torch.float64),
        "edge_weight": torch.rand(count, generator=draw, dtype=torch.float64) + 0.5,
        "edge_type": torch.randint(2, (count,), generator=draw),
        "node_type": torch.randint(2, (6,), generator=draw),
        "pos": torch.randn(6, 3, generator=draw, dtype=torch.float64),
        "normal": torch.randn(6, 3, generator=draw, dtype=torch.float64),
        "z": torch.randint(1, 8, (6,), generator=draw),
    }
    x = torch.randn(6, FEATURES, generator=draw, dtype=torch.float64)
    return Data(x=x, edge_index=both, y=torch.tensor([1]), **{name: fields[name] for name in extra})


class Net(nn.Module):
    """One layer between an activation, a readout and a head."""

    def __init__(
        self,
        layer: nn.Module | None = None,
        step: Callable[..., Tensor] | None = None,
        *,
        pool: Callable[..., Tensor] = global_mean_pool,
        width: int = WIDTH,
    ) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, WIDTH)
        self.layer = pyg.GCNConv(WIDTH, WIDTH) if layer is None else layer
        self.head = nn.Linear(width, CLASSES)
        self.pool = pool
        self.step = step or (lambda layer, h, edge_index, extra, batch: layer(h, edge_index))

    def run(self, x: Tensor, edge_index: Tensor, extra: Any, batch: Tensor | None) -> Tensor:
        hidden = self.step(self.layer, self.first(x).tanh(), edge_index, extra, batch)
        return self.head(self.pool(hidden.tanh(), batch))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.run(x, edge_index, None, batch)


class WithEdgeAttr(Net):
    def forward(self, x, edge_index, edge_attr, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, edge_attr, batch)


class WithEdgeWeight(Net):
    def forward(self, x, edge_index, edge_weight=None, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, edge_weight, batch)


class WithEdgeType(Net):
    def forward(self, x, edge_index, edge_type, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, edge_type, batch)


class WithPos(Net):
    def forward(self, x, edge_index, pos, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, pos, batch)


class WithNormals(Net):
    def forward(self, x, edge_index, pos, normal, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, (pos, normal), batch)


class WithTypes(Net):
    def forward(self, x, edge_index, node_type, edge_type, edge_attr, batch=None):  # type: ignore[no-untyped-def,override]
        return self.run(x, edge_index, (node_type, edge_type, edge_attr), batch)


def called(model: Any, data: Data, *names: str) -> Tensor:
    return model(data.x, data.edge_index, *(data[name] for name in names))


@dataclass(frozen=True)
class Case:
    """A model, how its owner calls it, and what an explanation should do with it."""

    make: Callable[[], Any]
    expected: str = BATCHES
    names: tuple[str, ...] = ()
    call: Callable[..., Tensor] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    #: Words of the error, where it is refused.
    reason: str = ""
    dtype: torch.dtype = torch.float64

    def build(self) -> tuple[Any, Data]:
        torch.manual_seed(0)
        model = self.make()
        if isinstance(model, nn.Module) and not isinstance(model, torch.jit.ScriptModule):
            model = model.to(self.dtype)
        data = graph(*self.names)
        return model, data.apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)

    def alone(self, model: Any, data: Data) -> Tensor:
        if self.call is not None:
            return self.call(model, data)
        return called(model, data, *self.names)


def with_zeros(model: Any, data: Data) -> Tensor:
    return model(data.x, data.edge_index, torch.zeros(len(data.x), dtype=torch.long))


def forgetting(model: Any, data: Data) -> Tensor:
    """Without what a layer keeps of the graph before."""
    model.layer._cached_edge_index = None
    found = called(model, data)
    model.layer._cached_edge_index = None
    return found


def plain(layer: Callable[[], nn.Module], **options: Any) -> Case:
    return Case(lambda: Net(layer(), **options))


def attributed(layer: Callable[[], nn.Module], step: Any = None) -> Case:
    own = step or (lambda layer, h, e, attr, b: layer(h, e, attr))
    return Case(lambda: WithEdgeAttr(layer(), own), names=("edge_attr",))


def weighted(layer: Callable[[], nn.Module]) -> Case:
    step = lambda layer, h, e, weight, b: layer(h, e, weight)  # noqa: E731
    return Case(lambda: WithEdgeWeight(layer(), step), names=("edge_weight",))


def typed(layer: Callable[[], nn.Module]) -> Case:
    step = lambda layer, h, e, kind, b: layer(h, e, kind)  # noqa: E731
    return Case(lambda: WithEdgeType(layer(), step), names=("edge_type",))


def placed(layer: Callable[[], nn.Module], step: Any) -> Case:
    return Case(lambda: WithPos(layer(), step), names=("pos",))


W = WIDTH
linear = functools.partial(nn.Linear, W, W)

CONVOLUTIONS: dict[str, Case] = {
    "GCNConv": weighted(lambda: pyg.GCNConv(W, W)),
    "GCNConv, cached": Case(
        lambda: Net(pyg.GCNConv(W, W, cached=True)), call=lambda m, d: forgetting(m, d)
    ),
    "ChebConv": Case(
        lambda: Net(pyg.ChebConv(W, W, 3), lambda c, h, e, _, b: c(h, e, batch=b)),
    ),
    "SAGEConv": plain(lambda: pyg.SAGEConv(W, W)),
    "GraphConv": weighted(lambda: pyg.GraphConv(W, W)),
    "GatedGraphConv": weighted(lambda: pyg.GatedGraphConv(W, 2)),
    "ResGatedGraphConv": plain(lambda: pyg.ResGatedGraphConv(W, W)),
    "GATConv": attributed(lambda: pyg.GATConv(W, 4, heads=2, edge_dim=3)),
    "GATv2Conv": attributed(lambda: pyg.GATv2Conv(W, 4, heads=2, edge_dim=3)),
    "TransformerConv": attributed(lambda: pyg.TransformerConv(W, 4, heads=2, edge_dim=3)),
    "AGNNConv": plain(lambda: pyg.AGNNConv()),
    "TAGConv": weighted(lambda: pyg.TAGConv(W, W)),
    "GINConv": plain(lambda: pyg.GINConv(linear())),
    "GINEConv": attributed(lambda: pyg.GINEConv(linear(), edge_dim=3)),
    "ARMAConv": weighted(lambda: pyg.ARMAConv(W, W, num_stacks=2, num_layers=2)),
    "SGConv": weighted(lambda: pyg.SGConv(W, W, K=2)),
    "SSGConv": weighted(lambda: pyg.SSGConv(W, W, alpha=0.2, K=2)),
    "APPNP": weighted(lambda: pyg.APPNP(K=3, alpha=0.1)),
    "MFConv": plain(lambda: pyg.MFConv(W, W)),
    "RGCNConv": typed(lambda: pyg.RGCNConv(W, W, 2)),
    "FastRGCNConv": typed(lambda: pyg.FastRGCNConv(W, W, 2)),
    "RGATConv": typed(lambda: pyg.RGATConv(W, W, 2)),
    "SignedConv": Case(
        lambda: Net(pyg.SignedConv(W, 4, first_aggr=True), lambda c, h, e, _, b: c(h, e, e)),
    ),
    "DNAConv": Case(
        lambda: Net(pyg.DNAConv(W, heads=2), lambda c, h, e, _, b: c(torch.stack([h, h], 1), e)),
    ),
    "PointNetConv": placed(
        lambda: pyg.PointNetConv(nn.Linear(W + 3, W)), lambda c, h, e, pos, b: c(h, pos, e)
    ),
    "GMMConv": attributed(lambda: pyg.GMMConv(W, W, dim=3, kernel_size=2)),
    "NNConv": attributed(lambda: pyg.NNConv(W, W, nn.Linear(3, W * W))),
    "CGConv": attributed(lambda: pyg.CGConv(W, dim=3)),
    "EdgeConv": plain(lambda: pyg.EdgeConv(nn.Linear(2 * W, W))),
    "PPFConv": Case(
        lambda: WithNormals(
            pyg.PPFConv(nn.Linear(W + 4, W)),
            lambda c, h, e, extra, b: c(h, extra[0], extra[1], e),
        ),
        names=("pos", "normal"),
    ),
    "FeaStConv": plain(lambda: pyg.FeaStConv(W, W, heads=2)),
    "PointTransformerConv": placed(
        lambda: pyg.PointTransformerConv(W, W), lambda c, h, e, pos, b: c(h, pos, e)
    ),
    "LEConv": weighted(lambda: pyg.LEConv(W, W)),
    "PNAConv": attributed(
        lambda: pyg.PNAConv(
            W,
            W,
            ["mean", "min", "max", "std"],
            ["identity", "amplification", "attenuation"],
            torch.tensor([0, 2, 3, 1]),
            edge_dim=3,
        )
    ),
    "ClusterGCNConv": plain(lambda: pyg.ClusterGCNConv(W, W, diag_lambda=0.5)),
    "GENConv": attributed(lambda: pyg.GENConv(W, W, edge_dim=3, norm="layer")),
    "GCN2Conv": Case(
        lambda: Net(pyg.GCN2Conv(W, alpha=0.2), lambda c, h, e, _, b: c(h, h, e)),
    ),
    "FiLMConv": plain(lambda: pyg.FiLMConv(W, W)),
    "SuperGATConv": plain(lambda: pyg.SuperGATConv(W, 4, heads=2)),
    "FAConv": Case(lambda: Net(pyg.FAConv(W), lambda c, h, e, _, b: c(h, h, e))),
    "EGConv": plain(lambda: pyg.EGConv(W, W, num_heads=2)),
    "PDNConv": attributed(lambda: pyg.PDNConv(W, W, edge_dim=3, hidden_channels=4)),
    "GeneralConv": attributed(lambda: pyg.GeneralConv(W, W, in_edge_channels=3, attention=True)),
    "HEATConv": Case(
        lambda: WithTypes(
            pyg.HEATConv(W, W, 2, 2, 4, 3, 5, heads=2, concat=False),
            lambda c, h, e, extra, b: c(h, e, *extra),
        ),
        names=("node_type", "edge_type", "edge_attr"),
    ),
    "LGConv": weighted(lambda: pyg.LGConv()),
    "SimpleConv": weighted(lambda: pyg.SimpleConv()),
    "PointGNNConv": placed(
        lambda: pyg.PointGNNConv(nn.Linear(W, 3), nn.Linear(W + 3, W), nn.Linear(W, W)),
        lambda c, h, e, pos, b: c(h, pos, e),
    ),
    "GPSConv": Case(
        lambda: Net(
            pyg.GPSConv(W, pyg.GCNConv(W, W), heads=2, norm="layer_norm"),
            lambda c, h, e, _, b: c(h, e, batch=b),
        ),
        call=with_zeros,
    ),
    "AntiSymmetricConv": plain(lambda: pyg.AntiSymmetricConv(W, num_iters=2)),
    "DirGNNConv": plain(lambda: pyg.DirGNNConv(pyg.SAGEConv(W, W))),
    "MixHopConv": Case(lambda: Net(pyg.MixHopConv(W, 4, powers=[0, 1, 2]), width=12)),
    "HypergraphConv": plain(lambda: pyg.HypergraphConv(W, W)),
}


def normed(
    norm: Callable[[], nn.Module], *, batch: bool, expected: str = "", reason: str = ""
) -> Case:
    """A norm between layers, given the batch vector or not."""
    step = (
        (lambda layer, h, e, _, b: layer[1](layer[0](h, e), b))
        if batch
        else (lambda layer, h, e, _, b: layer[1](layer[0](h, e)))
    )

    def make() -> Net:
        return Net(nn.ModuleList([pyg.GCNConv(W, W), norm()]), step)

    # batch=None and a batch of one graph differ by rounding in some norms
    call = with_zeros if batch else None
    return Case(make, expected or (BATCHES if batch else SINGLY), call=call, reason=reason)


def seen(norm: nn.Module) -> nn.Module:
    """A batch norm with statistics."""
    norm(torch.randn(50, W) * 2 + 1)
    return norm


NORMS: dict[str, Case] = {
    "BatchNorm": normed(lambda: seen(pyg.BatchNorm(W)), batch=False, expected=BATCHES),
    "BatchNorm without running statistics": Case(
        lambda: Net(
            nn.ModuleList([pyg.GCNConv(W, W), pyg.BatchNorm(W, track_running_stats=False)]),
            lambda layer, h, e, _, b: layer[1](torch.cat([layer[0](h, e), h]))[: len(h)],
        ),
        SINGLY,
    ),
    "GraphNorm": normed(lambda: pyg.GraphNorm(W), batch=True),
    "GraphNorm without batch": normed(lambda: pyg.GraphNorm(W), batch=False),
    "PairNorm": normed(lambda: pyg.PairNorm(), batch=True),
    "PairNorm without batch": normed(lambda: pyg.PairNorm(), batch=False),
    "MeanSubtractionNorm": normed(lambda: pyg.MeanSubtractionNorm(), batch=True),
    "MeanSubtractionNorm without batch": normed(lambda: pyg.MeanSubtractionNorm(), batch=False),
    "InstanceNorm without batch, which takes no single node": normed(
        lambda: pyg.InstanceNorm(W), batch=False, expected=REFUSED, reason="more than 1 spatial"
    ),
    "InstanceNorm with running statistics": normed(
        lambda: pyg.InstanceNorm(W, track_running_stats=True), batch=True
    ),
    "LayerNorm over the graph": normed(lambda: pyg.LayerNorm(W), batch=True),
    "LayerNorm over the graph, without batch": normed(lambda: pyg.LayerNorm(W), batch=False),
    "LayerNorm over a node": normed(
        lambda: pyg.LayerNorm(W, mode="node"), batch=False, expected=BATCHES
    ),
    "GraphSizeNorm": normed(lambda: pyg.GraphSizeNorm(), batch=True),
    "GraphSizeNorm without batch": normed(lambda: pyg.GraphSizeNorm(), batch=False),
    "DiffGroupNorm": normed(lambda: pyg.DiffGroupNorm(W, 2), batch=False, expected=BATCHES),
    "features less their mean": Case(
        lambda: Net(None, lambda c, h, e, _, b: c(h - h.mean(dim=0), e)), SINGLY
    ),
}


def pooled(layer: Callable[[], nn.Module], step: Any, **options: Any) -> Case:
    return Case(lambda: Net(layer(), step, **options))


def aggregated(make: Callable[[], nn.Module], width: int = W, expected: str = BATCHES) -> Case:
    """A learned or unusual readout."""

    class Readout(Net):
        def __init__(self) -> None:
            super().__init__(width=width)
            self.readout = make()

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            hidden = self.layer(self.first(x).tanh(), edge_index).tanh()
            index = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
            return self.head(self.readout(hidden, index))

    return Case(Readout, expected)


class Selected(Net):
    """Nodes are selected or merged before the readout."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        hidden = self.first(x).tanh()
        found = self.layer(hidden, edge_index, batch=batch)
        if isinstance(self.layer, pyg.EdgePooling):
            return self.head(global_mean_pool(found[0].tanh(), found[2]))
        return self.head(global_mean_pool(found[0].tanh(), found[3]))


class Padded(Net):
    """Graphs padded to the largest one, and a mean that counts the padding."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        hidden = self.layer(self.first(x).tanh(), edge_index).tanh()
        dense, _ = to_dense_batch(hidden, batch)
        return self.head(dense.mean(dim=1))


class Unpadded(Padded):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        hidden = self.layer(self.first(x).tanh(), edge_index).tanh()
        dense, mask = to_dense_batch(hidden, batch)
        return self.head(dense.sum(dim=1) / mask.sum(dim=1, keepdim=True))


POOLING: dict[str, Case] = {
    "mean": pooled(lambda: pyg.GCNConv(W, W), None),
    "sum": pooled(lambda: pyg.GCNConv(W, W), None, pool=global_add_pool),
    "max": pooled(lambda: pyg.GCNConv(W, W), None, pool=global_max_pool),
    "TopKPooling": Case(lambda: Selected(pyg.TopKPooling(W, ratio=0.6))),
    "SAGPooling": Case(lambda: Selected(pyg.SAGPooling(W, ratio=0.6))),
    "ASAPooling": Case(lambda: Selected(pyg.ASAPooling(W, ratio=0.6)), dtype=torch.float32),
    "EdgePooling": Case(lambda: Selected(pyg.EdgePooling(W)), SINGLY),
    "SoftmaxAggregation": aggregated(lambda: aggr.SoftmaxAggregation(learn=True)),
    "MedianAggregation": aggregated(aggr.MedianAggregation),
    "StdAggregation": aggregated(aggr.StdAggregation),
    "MultiAggregation": aggregated(lambda: aggr.MultiAggregation(["mean", "max"]), 2 * W),
    "AttentionalAggregation": aggregated(lambda: aggr.AttentionalAggregation(nn.Linear(W, 1))),
    "Set2Set": aggregated(lambda: aggr.Set2Set(W, 2), 2 * W),
    "SortAggregation": aggregated(lambda: aggr.SortAggregation(3), 3 * W),
    "LSTMAggregation": aggregated(lambda: aggr.LSTMAggregation(W, W), expected=SINGLY),
    "GRUAggregation": aggregated(lambda: aggr.GRUAggregation(W, W), expected=SINGLY),
    "DeepSetsAggregation": aggregated(lambda: aggr.DeepSetsAggregation(linear(), linear())),
    "SetTransformerAggregation": aggregated(lambda: aggr.SetTransformerAggregation(W, heads=2)),
    "a mean over padded graphs": Case(lambda: Padded(), SINGLY),
    "a mean over padded graphs, masked": Case(lambda: Unpadded()),
}


class Sampling(Net):
    """Drops features in evaluation mode too."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return super().forward(functional.dropout(x, 0.4), edge_index, batch)


class Noisy(Net):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return super().forward(x + 0.1 * torch.randn_like(x), edge_index, batch)


class TakesData(Net):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return self.run(data.x, data.edge_index, None, data.batch)


class TakesApart(Net):
    """Goes through the graphs of a batch one by one itself."""

    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        graphs = data.to_data_list() if hasattr(data, "to_data_list") else [data]
        return torch.cat([self.run(g.x, g.edge_index, None, None) for g in graphs])


class Keywords(Net):
    def forward(self, *, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.run(x, edge_index, None, batch)


class Anything(WithEdgeWeight):
    def forward(self, x: Tensor, edge_index: Tensor, **more: Any) -> Tensor:  # type: ignore[override]
        return self.run(x, edge_index, more.get("edge_weight"), more.get("batch"))


class PassesOn(nn.Module):
    """A wrapper without a word about what it takes."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.inner(*args, **kwargs)


class WithoutBatch(Net):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return self.run(x, edge_index, None, None)


class Fabric(nn.Module):
    """As Lightning's Fabric wraps a module."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self._forward_module = self._original_module = inner

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._forward_module(*args, **kwargs)


class Callback:
    """An object that is called, with the network inside, left in training mode."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network.double().train()

    def __call__(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.network(x, edge_index, batch)


def dropping() -> Net:
    """A network with dropout and batch norm, which act in training mode only."""
    layers = nn.ModuleList([pyg.GCNConv(W, W), seen(nn.BatchNorm1d(W)), nn.Dropout(0.5)])
    return Net(layers, lambda layer, h, e, _, b: layer[2](layer[1](layer[0](h, e))))


def by_weight(model: Any) -> Case:
    """Two optional inputs, of which a wrapper may lose one."""
    step = lambda layer, h, e, weight, b: layer(h, e, weight)  # noqa: E731
    make = lambda: model(WithEdgeWeight(pyg.GCNConv(W, W), step))  # noqa: E731
    return Case(make, names=("edge_weight",))


def function_in_training_mode() -> Any:
    network = dropping().double().train()

    def function(x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return network(x, edge_index, batch)

    function.network = network  # type: ignore[attr-defined]
    return function


def decorated() -> Any:
    network = WithEdgeWeight(None, lambda c, h, e, weight, b: c(h, e, weight)).double()

    @functools.wraps(network.forward)
    def outer(*args: Any, **kwargs: Any) -> Tensor:
        return network(*args, **kwargs)

    return outer


class Scriptable(nn.Module):
    """Message passing by hand, which TorchScript compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, batch: Tensor) -> Tensor:
        hidden = self.first(x).tanh()
        sent = hidden[edge_index[0]] * edge_weight[:, None]
        hidden = hidden.index_add(0, edge_index[1], sent).tanh()
        member = batch[None, :] == torch.arange(int(batch.max()) + 1)[:, None]
        return self.head(member.to(x.dtype) @ hidden)


def on_batch(model: Any, data: Data) -> Tensor:
    zeros = torch.zeros(len(data.x), dtype=torch.long)
    return model(data.x, data.edge_index, data.edge_weight, zeros)


def traced() -> Any:
    data = graph("edge_weight")
    inputs = (data.x, data.edge_index, data.edge_weight, torch.zeros(6, dtype=torch.long))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of graphs becomes a constant
        return torch.jit.trace(Scriptable().double().eval(), inputs, check_trace=False)


def sequential() -> Any:
    return pyg.Sequential(
        "x, edge_index, batch",
        [
            (pyg.GCNConv(FEATURES, WIDTH), "x, edge_index -> x"),
            nn.Tanh(),
            (global_mean_pool, "x, batch -> x"),
            nn.Linear(WIDTH, CLASSES),
        ],
    )


def compiled(inner: nn.Module) -> Any:
    return torch.compile(inner.double(), backend="eager")


SIGNATURES: dict[str, Case] = {
    "model(data)": Case(TakesData, call=lambda m, d: m(d)),
    "model(data) that calls to_data_list": Case(TakesApart, call=lambda m, d: m(d)),
    "keyword-only arguments": Case(Keywords, call=lambda m, d: m(x=d.x, edge_index=d.edge_index)),
    "no batch argument": Case(WithoutBatch, SINGLY),
    "**kwargs, fields not named": Case(
        lambda: Anything(None, lambda c, h, e, w, b: c(h, e, w)),
        REFUSED,
        ("edge_weight",),
        reason="keywords=",
    ),
    "**kwargs with keywords=": Case(
        lambda: Anything(None, lambda c, h, e, w, b: c(h, e, w)),
        BATCHES,
        ("edge_weight",),
        call=lambda m, d: m(d.x, d.edge_index, edge_weight=d.edge_weight),
        options={"task": Task(keywords=["edge_weight", "batch"])},
    ),
    "*args, **kwargs, fields not named": Case(
        lambda: PassesOn(WithEdgeWeight()), REFUSED, ("edge_weight",), reason="keywords="
    ),
    "*args, **kwargs with keywords=": Case(
        lambda: PassesOn(WithEdgeWeight(None, lambda c, h, e, w, b: c(h, e, w))),
        BATCHES,
        ("edge_weight",),
        options={"task": Task(keywords=["edge_weight", "batch"])},
    ),
    "*args, **kwargs, nothing to name": Case(lambda: PassesOn(Net()), SINGLY),
    "torch.compile": by_weight(compiled),
    "DataParallel": by_weight(nn.DataParallel),
    "AveragedModel": by_weight(torch.optim.swa_utils.AveragedModel),
    "functools.partial": by_weight(lambda inner: functools.partial(inner.double())),
    "Fabric": by_weight(Fabric),
    "bound method": by_weight(lambda inner: inner.double().forward),
    "functools.wraps": Case(decorated, names=("edge_weight",)),
    "TorchScript": Case(
        lambda: torch.jit.script(Scriptable().double()), BATCHES, ("edge_weight",), on_batch
    ),
    "torch.jit.trace": Case(traced, SINGLY, ("edge_weight",), on_batch),
    "PyG's Sequential": Case(sequential, call=with_zeros),
    "a function around a network in training mode": Case(function_in_training_mode),
    "an object around a network in training mode": Case(lambda: Callback(dropping())),
    "a network in training mode": Case(lambda: dropping().train()),
    "F.dropout without training=": Case(Sampling, REFUSED, reason="drawn by dropout in Sampling"),
    "random noise on features": Case(Noisy, REFUSED, reason="drawn by randn"),
    "a dictionary of outputs": Case(
        lambda: lambda x, edge_index, batch=None: {"logits": x},
        REFUSED,
        reason="dict with 'logits'",
    ),
    "a tuple of outputs": Case(
        lambda: lambda x, edge_index, batch=None: (x, x), REFUSED, reason="tuple of 2"
    ),
}


def stacked(make: Callable[..., nn.Module], **options: Any) -> Case:
    """One of PyG's stacks of layers, with a readout."""

    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = make(FEATURES, W, 2, CLASSES, **options)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            return global_mean_pool(self.net(x, edge_index), batch)

    return Case(Stack)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = pyg.GraphUNet(FEATURES, W, CLASSES, depth=1, pool_ratios=0.7)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return global_mean_pool(self.net(x, edge_index, batch), batch)


def zeros_after(*names: str) -> Callable[..., Tensor]:
    def call(model: Any, data: Data) -> Tensor:
        data.zeros = torch.zeros(len(data.x), dtype=torch.long)
        return called(model, data, *names, "zeros")

    return call


MODELS: dict[str, Case] = {
    "GCN, JumpingKnowledge": stacked(pyg.models.GCN, jk="cat"),
    "GraphSAGE": stacked(pyg.models.GraphSAGE, jk="lstm"),
    "GIN, batch norm": stacked(pyg.models.GIN, norm="BatchNorm"),
    "GAT": stacked(pyg.models.GAT, heads=2),
    "PNA": stacked(
        pyg.models.PNA, aggregators=["mean", "max"], scalers=["identity"], deg=torch.tensor([0, 2])
    ),
    "EdgeCNN": stacked(pyg.models.EdgeCNN),
    "AttentiveFP": Case(
        lambda: pyg.AttentiveFP(FEATURES, W, CLASSES, edge_dim=3, num_layers=2, num_timesteps=2),
        names=("edge_attr",),
        call=zeros_after("edge_attr"),
    ),
    "GraphUNet": Case(UNet),
}
