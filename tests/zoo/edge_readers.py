"""Models that use ``edge_index`` or fields of edges in their forward pass, outside of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import (
    add_self_loops,
    degree,
    remove_self_loops,
    scatter,
    to_dense_adj,
    to_undirected,
)

from tests.zoo.models import SINGLY, WIDTH, Case, Net, WithEdgeAttr, WithEdgeWeight

W = WIDTH
Step = Callable[..., Tensor]


def dense(hidden: Tensor, edges: Tensor) -> Tensor:
    """The adjacency matrix of all graphs together; there are no edges between them."""
    return to_dense_adj(edges, max_num_nodes=len(hidden))[0].to(hidden).clamp(max=1)


def around(change: Callable[[Tensor, Tensor], Tensor]) -> Case:
    """A layer whose embeddings are changed by what the edges say."""
    step: Step = lambda conv, h, e, extra, b: change(conv(h, e), e)  # noqa: E731
    return Case(lambda: Net(pyg.SAGEConv(W, W), step))


def by(layer: Callable[[], nn.Module], step: Step | None = None) -> Case:
    return Case(lambda: Net(layer(), step))


def triangles(h: Tensor, e: Tensor) -> Tensor:
    adjacency = dense(h, e)
    return h + ((adjacency @ adjacency) * adjacency).sum(1, keepdim=True)


def common_neighbors(h: Tensor, e: Tensor) -> Tensor:
    adjacency = dense(h, e)
    return ((adjacency @ adjacency) * adjacency) @ h + h


def jaccard(h: Tensor, e: Tensor) -> Tensor:
    adjacency = dense(h, e)
    both = adjacency @ adjacency
    either = adjacency.sum(0) + adjacency.sum(1, keepdim=True) - both
    return (both / either.clamp(min=1) * adjacency) @ h + h


def walks(h: Tensor, e: Tensor) -> Tensor:
    step = dense(h, e)
    step = step / step.sum(1, keepdim=True).clamp(min=1)
    return h + torch.stack([(step @ step).diag(), (step @ step @ step).diag()]).sum(0)[:, None]


def pagerank(h: Tensor, e: Tensor) -> Tensor:
    step, rank = dense(h, e), h.new_ones(len(h))
    step = step / step.sum(1, keepdim=True).clamp(min=1)
    for _ in range(5):
        rank = 0.15 + 0.85 * step.t() @ rank
    return h * rank[:, None]


def core(h: Tensor, e: Tensor) -> Tensor:
    adjacency, inside = dense(h, e), h.new_ones(len(h))
    for _ in range(len(h)):
        inside = inside * ((adjacency @ inside) >= 2)
    return h + inside[:, None]


def sparse_round(h: Tensor, e: Tensor) -> Tensor:
    matrix = torch.sparse_coo_tensor(e.flip(0), h.new_ones(e.shape[1]), (len(h), len(h)))
    return h + torch.sparse.mm(matrix, h)


class Tutorial(pyg.MessagePassing):  # type: ignore[misc]
    """A convolution that normalizes by itself."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(W, W)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        scale = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        return self.propagate(edge_index, x=self.lin(x), norm=scale[row] * scale[col])

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.view(-1, 1) * x_j


class Propagating(pyg.MessagePassing):  # type: ignore[misc]
    """A layer of one's own that leaves the edges to ``propagate``."""

    def __init__(self) -> None:
        super().__init__(aggr="max")
        self.lin = nn.Linear(2 * W, W)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edge_index, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=x.size(0))
        return self.propagate(edge_index, x=x)

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return self.lin(torch.cat([x_i, x_j - x_i], dim=1)).tanh()


class Updating(Propagating):
    """Weights of edges from both ends, by ``edge_updater``."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        alpha = self.edge_updater(edge_index, x=x)
        return self.propagate(edge_index, x=x, alpha=alpha)

    def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return (x_i * x_j).sum(1, keepdim=True).sigmoid()

    def message(self, x_i: Tensor, x_j: Tensor, alpha: Tensor) -> Tensor:  # type: ignore[override]
        return alpha * super().message(x_i, x_j)


class Asking(Propagating):
    """Messages that look at how many leave the node they come from."""

    def message(self, x_i: Tensor, x_j: Tensor, edge_index_j: Tensor) -> Tensor:  # type: ignore[override]
        leaving = degree(edge_index_j, dtype=x_j.dtype)[edge_index_j]
        return super().message(x_i, x_j) / leaving[:, None]


class Derived(pyg.GCNConv):  # type: ignore[misc]
    """One of PyG's layers with a forward of one's own."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index) * (1 + degree(edge_index[0], len(x))[:, None])


def normalized_outside(conv: Any, h: Tensor, e: Tensor, extra: Any, b: Any) -> Tensor:
    edges, weights = gcn_norm(e, None, len(h), dtype=h.dtype)
    return conv(h, edges, weights)


def with_attention(conv: Any, h: Tensor, e: Tensor, extra: Any, b: Any) -> Tensor:
    out, (edges, alpha) = conv(h, e, return_attention_weights=True)
    return out + scatter(alpha.mean(1), edges[0], dim_size=len(h))[:, None]


def edgeless(conv: Any, h: Tensor, e: Tensor, extra: Any, b: Any) -> Tensor:
    return 2 * h if e.numel() == 0 else conv(h, e)


def mean_of_attributes(conv: Any, h: Tensor, e: Tensor, attributes: Tensor, b: Any) -> Tensor:
    heard = scatter(attributes, e[1], dim_size=len(h), reduce="mean")
    return conv(h, e) + heard.sum(1, keepdim=True)


def heavy_only(conv: Any, h: Tensor, e: Tensor, weight: Tensor, b: Any) -> Tensor:
    heavy = weight > 1
    return conv(h, e[:, heavy], weight[heavy])


class Encoding(WithEdgeAttr):
    """Attributes of edges go through a network before they are used."""

    def __init__(self) -> None:
        super().__init__(
            pyg.GINEConv(nn.Linear(W, W), edge_dim=5),
            lambda conv, h, e, attributes, b: conv(h, e, self.encode(attributes)),
        )
        self.mlp = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.BatchNorm1d(5), nn.LayerNorm(5))
        self.kinds = nn.Embedding(3, 5)

    def encode(self, attributes: Tensor) -> Tensor:
        own = torch.cat([attributes, attributes.sum(1, keepdim=True)], dim=-1)
        return self.mlp(own) + self.kinds(attributes.argmax(dim=-1))


EDGE_READERS: dict[str, Case] = {
    "triangles of a node": around(triangles),
    "common neighbors as weights": around(common_neighbors),
    "Jaccard weights": around(jaccard),
    "random walks as positions": around(walks),
    "PageRank": around(pagerank),
    "the 2-core": around(core),
    "edges that arrive, counted": around(
        lambda h, e: h + degree(e[1], len(h), dtype=h.dtype)[:, None]
    ),
    "edges that leave, counted": around(
        lambda h, e: h + degree(e[0], len(h), dtype=h.dtype)[:, None]
    ),
    "nodes without edges, marked": around(
        lambda h, e: h + torch.isin(torch.arange(len(h)), e).to(h)[:, None]
    ),
    "a round of messages by index_add": around(
        lambda h, e: h + torch.zeros_like(h).index_add(0, e[1], h[e[0]])
    ),
    "a round of messages by scatter": around(
        lambda h, e: h + scatter(h[e[0]], e[1], dim_size=len(h), reduce="max")
    ),
    "a round of messages by a sparse matrix": around(sparse_round),
    "a round of messages by a dense matrix": around(lambda h, e: h + dense(h, e).t() @ h),
    "two hops at once": around(lambda h, e: h + (dense(h, e) @ dense(h, e) > 0).to(h) @ h),
    "to_undirected": by(
        lambda: pyg.SAGEConv(W, W),
        lambda conv, h, e, extra, b: conv(h, to_undirected(e, num_nodes=len(h))),
    ),
    "edges the other way": by(
        lambda: pyg.SAGEConv(W, W), lambda conv, h, e, extra, b: conv(h, e) + conv(h, e.flip(0))
    ),
    "a convolution that normalizes by itself": by(Tutorial),
    "gcn_norm before a layer": by(lambda: pyg.GCNConv(W, W, normalize=False), normalized_outside),
    "weights of edges by edge_updater": by(Updating),
    "messages that ask for edge_index_j": by(Asking),
    "a layer derived from GCNConv": by(lambda: Derived(W, W)),
    "attention that a layer returns": by(lambda: pyg.GATConv(W, 4, heads=2), with_attention),
    "if there are no edges": Case(lambda: Net(pyg.SAGEConv(W, W), edgeless), SINGLY),
    "attributes of edges at a node": Case(
        lambda: WithEdgeAttr(pyg.SAGEConv(W, W), mean_of_attributes), names=("edge_attr",)
    ),
    "remove_self_loops and add_self_loops": by(
        lambda: pyg.SAGEConv(W, W),
        lambda conv, h, e, extra, b: conv(
            h, add_self_loops(remove_self_loops(e)[0], num_nodes=len(h))[0]
        ),
    ),
    "a layer of one's own that calls propagate": by(Propagating),
    "a network on attributes of edges": Case(Encoding, names=("edge_attr",)),
    "edges chosen by their weights": Case(
        lambda: WithEdgeWeight(pyg.GraphConv(W, W), heavy_only), names=("edge_weight",)
    ),
}
