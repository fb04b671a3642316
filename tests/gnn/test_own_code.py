"""What a model does between its layers is watched, and not what its layers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from gstarx import Passes, explain
from gstarx.gnn.own_code import looks_across, wants_all, watch_own_code


def degree_of(edge_index: Tensor, h: Tensor) -> Tensor:
    """All that reads edges is a function of PyG."""
    adjacency = to_dense_adj(edge_index, max_num_nodes=6)
    return torch.einsum("bij->j", adjacency)[:, None].to(h)


Step = Callable[[Tensor, Tensor], Tensor]

ACROSS: dict[str, Step] = {
    "len": lambda h, e: h if len(h) > 3 else 0 * h,
    "shape": lambda h, e: h / h.shape[0],
    "size": lambda h, e: h / h.size(0),
    "all sizes": lambda h, e: h.new_ones(h.size()) * h,
    "number of edges": lambda h, e: h if e.numel() else 0 * h,
    "columns of edges": lambda h, e: h * e.size(1),
    "mean": lambda h, e: h - h.mean(dim=0),
    "largest": lambda h, e: h / h.abs().max().clamp(min=1),
    "products": lambda h, e: h + (h @ h.t()) @ h,
    "any": lambda h, e: 2 * h if (h > 0).any() else h,
    "one more row": lambda h, e: torch.cat([h, h[:1]])[:-1],
    "gathered": lambda h, e: h.index_add(0, e[1], h[e[0]]),
    "degrees by a function": lambda h, e: h + degree_of(e, h),
    "ends": lambda h, e: h + (e[0] == e[1]).any(),
    "largest and where": lambda h, e: h / h.max(dim=0).values.abs().clamp(min=1),
    "einsum": lambda h, e: h + torch.einsum("nc,nd->cd", h, h).sum(0),
    "numpy": lambda h, e: torch.from_numpy(h.numpy() - h.numpy().mean(0)),
    "edges in numpy": lambda h, e: h * int(np.bincount(e.numpy()[1]).max()),
    "a list": lambda h, e: h * max(map(max, h.tolist())),
    "similarity in functional": lambda h, e: h * F.cosine_similarity(h[:1], h).mean(),
}
WITHIN: dict[str, Step] = {
    "nothing": lambda h, e: h,
    "width": lambda h, e: h / h.size(1) / h.size(-1),
    "rows": lambda h, e: torch.cat([h, h], dim=1)[:, :8].softmax(dim=-1),
    "sums of rows": lambda h, e: h / (1 + h.abs().sum(dim=1, keepdim=True)),
    "functional": lambda h, e: F.dropout(F.normalize(F.relu(h)), 0.5, training=False),
    "device": lambda h, e: h + torch.zeros(1, device=e.device),
}


class Doubled(pyg.MessagePassing):  # type: ignore[misc]
    """A layer of one's own, whose messages PyG passes on by code that it writes."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        return 2 * x_j


class Network(nn.Module):
    def __init__(self, step: Step) -> None:
        super().__init__()
        self.conv, self.norm, self.own = pyg.GCNConv(3, 8), pyg.GraphNorm(8), Doubled()
        self.head, self.step = nn.Linear(8, 2), step

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = self.norm(self.conv(x, edge_index).relu(), batch)
        h = self.step(self.own(h, edge_index), edge_index)
        return self.head(pyg.global_mean_pool(h, batch)).squeeze(-1)


def ring(count: int = 6) -> Data:
    at = torch.arange(count)
    ends = torch.stack([at, (at + 1) % count])
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def seen(model: Any, data: Data) -> bool:
    batch = torch.zeros(data.num_nodes, dtype=torch.long)
    with torch.no_grad(), watch_own_code(model):
        model(data.x, data.edge_index, batch)
    return looks_across(model)


def test_looking_at_several_nodes_is_seen() -> None:
    for name, look in ACROSS.items():
        model = Network(look).eval()
        assert seen(model, ring()), name
        assert wants_all(model, 6)
        assert not wants_all(model, 100_000)


def test_layers_and_single_rows_are_nothing_special() -> None:
    assert not [name for name, look in WITHIN.items() if seen(Network(look).eval(), ring())]


@pytest.mark.parametrize("told", [True, False])
def test_the_number_of_nodes_is_watched_where_it_is_a_number(told: bool) -> None:
    """A graph of five nodes is special: so are a quarter of the coalitions of nine."""
    network = Network(WITHIN["nothing"]).eval()

    def given(x: Tensor, edge_index: Tensor, batch: Tensor, num_nodes: int) -> Tensor:
        return network(x, edge_index, batch) * (0.5 if num_nodes == 5 else 1)

    def asking(data: Data) -> Tensor:
        return given(data.x, data.edge_index, data.batch, data.num_nodes)

    model = given if told else asking
    with pytest.warns(UserWarning, match="mixes the graphs"):
        explanation = explain(model, ring(9), value="shapley")
    alone = explain(model, ring(9), passes=Passes(batch_nodes=1), value="shapley")
    torch.testing.assert_close(explanation.scores, alone.scores, atol=1e-6, rtol=0)


def test_functions_are_watched_like_networks() -> None:
    network = Network(WITHIN["nothing"]).eval()

    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return network(x / len(x), edge_index, batch)

    assert seen(model, ring())
    assert not looks_across(network)


def test_what_does_not_run_as_python_may_look_anywhere() -> None:
    traced = torch.jit.trace(nn.Linear(3, 2), torch.zeros(2, 3))

    class Opaque(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = traced

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return pyg.global_add_pool(self.inner(x), batch)

    assert seen(Opaque(), ring())


@torch.jit.script
def per_edge(h: Tensor, edge_index: Tensor) -> Tensor:
    return h / (1 + edge_index.size(1))


def scaled(h: Tensor, edge_index: Tensor) -> Tensor:
    return torch.stack([per_edge(row, edge_index) for row in h.unbind(1)], dim=1)


@pytest.mark.parametrize("named", [True, False])
def test_functions_in_torchscript_do_not_share(named: bool) -> None:
    """They ask for sizes without telling the tensor."""
    inner = per_edge
    model = Network(scaled if named else lambda h, e: h + inner(h, e)).eval()
    assert seen(model, ring())
    with pytest.warns(UserWarning, match="mixes the graphs"):
        explanation = explain(model, ring(12), players="nodes", value="banzhaf")
    assert "TorchScript" in explanation.sharing.reason
    alone = explain(model, ring(12), players="nodes", value="banzhaf", passes=Passes(batch_nodes=1))
    torch.testing.assert_close(explanation.scores, alone.scores, atol=1e-6, rtol=0)


@pytest.mark.parametrize("count", [8, 10])
@pytest.mark.parametrize("share", ["auto", False])
def test_a_guard_that_hides_from_extreme_coalitions(count: int, share: Any) -> None:
    """Only coalitions of exactly three nodes are special, which no batch has."""

    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = pyg.GINConv(nn.Linear(3, 4)), nn.Linear(4, 2)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            h = self.conv(x, edge_index).tanh()
            h = -h if len(h) == 3 else h
            return self.head(pyg.global_add_pool(h, batch))

    torch.manual_seed(0)
    model, data = Hidden().double().eval(), ring(count)
    data.x = data.x.double()
    options: dict[str, Any] = {"value": "banzhaf", "target": 0, "payoff": "raw"}
    alone = explain(model, data, passes=Passes(batch_nodes=1), **options)
    with pytest.warns(match="mixes the graphs"):
        found = explain(model, data, passes=Passes(share=share), **options)
    assert torch.allclose(found.scores, alone.scores, rtol=0, atol=1e-12)
