"""The graph attention network of the paper (Table 6)."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GATConv

from gstarx.models.network import Network


class GAT(Network):
    """Attention over neighbors with ReLU, a readout, and one linear layer to the classes.

    The heads of a layer are concatenated. Every node attends to itself once, whether the graph has
    a self-loop there or not. Source and target of an edge share their linear map.

    Parameters
    ----------
    in_channels
        Width of the node features.
    hidden_channels
        Width of one head; a layer is ``heads * hidden_channels`` wide.
    out_channels
        Number of classes.
    heads
        Number of heads of every layer.
    num_layers
        Number of layers.
    readout
        ``"mean"``, ``"max"`` or ``"sum"`` over the nodes of a graph, or ``None`` for an output at
        every node.
    negative_slope
        Slope of the leaky ReLU of the attention scores.
    dropout
        Share of the attention coefficients dropped in training mode.

    Examples
    --------
    >>> import torch
    >>> model = GAT(7, 4, 2, heads=3)
    >>> model(torch.ones(3, 7), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = 10,
        num_layers: int = 3,
        readout: str | None = "max",
        negative_slope: float = 0.2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            readout,
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            heads=heads,
            num_layers=num_layers,
        )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1 (got {dropout})")
        self.negative_slope = negative_slope
        self.dropout = dropout
        width = heads * hidden_channels
        self.convs = nn.ModuleList(
            GATConv(size, hidden_channels, heads, negative_slope=negative_slope, dropout=dropout)
            for size in [in_channels, *[width] * (num_layers - 1)]
        )
        self.classifier = nn.Linear(width, out_channels)

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Node embeddings after the last ReLU."""
        for conv in self.convs:
            x = conv(x, edge_index).relu()
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
