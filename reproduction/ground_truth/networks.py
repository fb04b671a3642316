"""A network in the manner of Sanchez-Lengeling et al. (2020): bond features and a sum readout."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter

_ATOM, _BOND = 14, 5


class EdgeConv(MessagePassing):  # type: ignore[misc]
    """An MLP of a node, the sum of its incoming bonds and the sum of its neighbors."""

    def __init__(self, node_size: int, edge_size: int) -> None:
        super().__init__(aggr="sum")
        self.perceptron = nn.Sequential(
            nn.Linear(2 * node_size + edge_size, node_size),
            nn.ReLU(),
            nn.Linear(node_size, node_size),
            nn.ReLU(),
            nn.LayerNorm(node_size),
        )

    def forward(self, x: Tensor, edge_index: Tensor, bonds: Tensor) -> Tensor:
        """New embeddings of the nodes."""
        gathered = self.propagate(edge_index, x=x, bonds=bonds)
        updated: Tensor = self.perceptron(torch.cat([x, gathered], dim=1))
        return updated

    def message(self, x_j: Tensor, bonds: Tensor) -> Tensor:
        """The neighbor and the bond to it."""
        return torch.cat([x_j, bonds], dim=1)


class EdgeNetwork(nn.Module):
    """Three blocks of :class:`EdgeConv`, then a sum over nodes and bonds.

    Sizes and readout as stated for the GCN of Sanchez-Lengeling et al.: every node and every
    directed bond goes through a linear layer and a softmax, all are summed, and a linear layer
    without bias gives one number, z. A classifier returns the logits (0, z), a regression z.

    Parameters
    ----------
    classes
        2, or 0 for a regression.
    """

    def __init__(
        self,
        classes: int = 2,
        *,
        node_size: int = 50,
        edge_size: int = 20,
        global_size: int = 100,
        num_layers: int = 3,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.encode_nodes = nn.Linear(_ATOM, node_size)
        self.encode_edges = nn.Linear(_BOND, edge_size)
        self.convs = nn.ModuleList(EdgeConv(node_size, edge_size) for _ in range(num_layers))
        self.read_nodes = nn.Linear(node_size, global_size)
        self.read_edges = nn.Linear(edge_size, global_size)
        self.classifier = nn.Linear(global_size, 1, bias=False)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits (graphs, 2), or numbers (graphs, 1)."""
        if batch is None:
            batch = edge_index.new_zeros(len(x))
        bonds = self.encode_edges(edge_attr)
        hidden = self.encode_nodes(x)
        for conv in self.convs:
            hidden = conv(hidden, edge_index, bonds)
        nodes, edges = self.read_nodes(hidden).softmax(dim=1), self.read_edges(bonds).softmax(dim=1)
        # the sum over a graph's bonds is the sum over its nodes of their incoming bonds
        incoming = scatter(edges, edge_index[1], dim=0, dim_size=len(x), reduce="sum")
        graphs = int(batch.max()) + 1 if batch_size is None else batch_size
        pooled = scatter(nodes + incoming, batch, dim=0, dim_size=graphs, reduce="sum")
        z: Tensor = self.classifier(pooled)
        return torch.cat([torch.zeros_like(z), z], dim=1) if self.classes else z


def classifier() -> EdgeNetwork:
    """The network for two classes, before training."""
    return EdgeNetwork(2)


def regressor() -> EdgeNetwork:
    """The network for a regression, before training."""
    return EdgeNetwork(0)
