"""The graph isomorphism network of the paper (Table 6)."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GINConv
from torch_geometric.utils import remove_self_loops

from gstarx.models.network import Network


class GIN(Network):
    r"""Sums over neighbors through small perceptrons, a readout, and one linear layer.

    Each layer maps :math:`h_i` to
    :math:`\mathrm{MLP}((1 + \epsilon) h_i + \sum_{j \in N(i)} h_j)` with a learned
    :math:`\epsilon` and an MLP of linear, batch normalization, ReLU, linear. There is no
    activation between the layers or before the readout. Self-loops of the graph are ignored: a
    node contributes to itself through :math:`1 + \epsilon` alone.

    Batch normalization makes graphs of a batch depend on each other while the model is in
    training mode. Use ``model.eval()`` to predict and to explain.

    Parameters
    ----------
    in_channels
        Width of the node features.
    hidden_channels
        Width of every layer.
    out_channels
        Number of classes.
    num_layers
        Number of layers.
    readout
        ``"mean"``, ``"max"`` or ``"sum"`` over the nodes of a graph, or ``None`` for an output at
        every node.

    Examples
    --------
    >>> import torch
    >>> model = GIN(7, 16, 2, readout="max").eval()
    >>> model(torch.ones(3, 7), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 3,
        readout: str | None = "max",
    ) -> None:
        super().__init__(
            readout,
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        widths = [in_channels, *[hidden_channels] * num_layers]
        self.convs = nn.ModuleList(
            GINConv(_perceptron(width, hidden_channels), train_eps=True) for width in widths[:-1]
        )
        self.classifier = nn.Linear(hidden_channels, out_channels)

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Node embeddings of the last layer."""
        edge_index, _ = remove_self_loops(edge_index)
        for conv in self.convs:
            x = conv(x, edge_index)
        return x

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits of every graph of a batch, (graphs, classes), or of every node."""
        return self.classify(self.embed(x, edge_index), batch, batch_size)


def _perceptron(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden)
    )
