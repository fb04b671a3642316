"""The graph convolutional network of the paper (Table 6)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv
from torch_geometric.utils import add_self_loops

from gstarx.models.network import Network


class GCN(Network):
    """Graph convolutions with ReLU, a readout, and one linear layer to the classes.

    Parameters
    ----------
    in_channels
        Width of the node features.
    hidden_channels
        Width of every convolution.
    out_channels
        Number of classes.
    num_layers
        Number of convolutions.
    readout
        ``"mean"``, ``"max"`` or ``"sum"`` over the nodes of a graph, or ``None`` for an output at
        every node.
    normalize
        Symmetric normalization with self-loops added where missing. Without it, neighbors are
        summed up and every node gets one more self-loop, whether it had one or not.
    normalize_embeddings
        Scale every node's embedding to unit length before the ReLU.

    Examples
    --------
    >>> import torch
    >>> model = GCN(7, 16, 2, readout="mean")
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
        readout: str | None = "mean",
        normalize: bool = True,
        normalize_embeddings: bool = False,
    ) -> None:
        super().__init__(
            readout,
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
        )
        self.normalize = normalize
        self.normalize_embeddings = normalize_embeddings
        widths = [in_channels, *[hidden_channels] * num_layers]
        self.convs = nn.ModuleList(
            GCNConv(width, hidden_channels, normalize=normalize, add_self_loops=normalize)
            for width in widths[:-1]
        )
        self.classifier = nn.Linear(hidden_channels, out_channels)

    def embed(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Node embeddings after the last ReLU."""
        if not self.normalize:
            edge_index, edge_weight = add_self_loops(
                edge_index, edge_weight, fill_value=1.0, num_nodes=len(x)
            )
        for conv in self.convs:
            x = conv(x, edge_index, edge_weight)
            if self.normalize_embeddings:
                x = functional.normalize(x, dim=-1)
            x = x.relu()
        return x

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits of every graph of a batch, (graphs, classes), or of every node."""
        return self.classify(self.embed(x, edge_index, edge_weight), batch, batch_size)
