"""The networks of the paper (Table 6): GCN, GIN and GAT, and what they have in common."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.utils import add_self_loops, remove_self_loops

from gstarx._internal.arguments import as_flag
from gstarx.registry import MOLECULE_READERS, resolve

READOUTS: dict[str, Callable[[Tensor, Tensor | None, int | None], Tensor]] = {
    "mean": global_mean_pool,
    "max": global_max_pool,
    "sum": global_add_pool,
}


class Network(nn.Module):
    """Message passing, a readout, and one linear layer to the classes.

    A subclass keeps every argument of its constructor as an attribute of the same name, and has
    ``embed`` (node embeddings).
    """

    readout: str | None
    classifier: nn.Linear
    #: What it predicts, by PyG's name, if its file says so.
    mode: str | None = None
    #: What it reads of molecules, one of :data:`gstarx.datasets.MOLECULE_FEATURES`, if any.
    features: str | None = None

    def __init__(self, readout: str | None, **sizes: int) -> None:
        super().__init__()
        if readout is not None and readout not in READOUTS:
            valid = ", ".join(map(repr, READOUTS))
            raise ValueError(f"readout must be None or one of {valid} (got {readout!r})")
        for name, size in sizes.items():
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise TypeError(f"{name} must be an integer (got {size!r})")
            if size < 1:
                raise ValueError(f"{name} must be at least 1 (got {size})")
            setattr(self, name, size)
        self.readout = readout

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of the constructor, by name: numbers, strings, booleans and ``None``.

        ``type(model)(**model.config)`` is the same network with other weights.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @property
    def task_level(self) -> str:
        """What it has outputs for: ``"graph"``, or without a readout ``"node"``."""
        return "node" if self.readout is None else "graph"

    def featurize(self, molecule: Any) -> Data:
        """A SMILES, or a ``Mol`` of RDKit, as a graph that the network reads."""
        if self.features is None:
            raise ValueError(
                f"this {type(self).__name__} does not know which features of molecules it reads: "
                "only networks that were trained on molecules and loaded from a file do; pass a "
                f"Data (got {molecule!r})"
            )
        return resolve(MOLECULE_READERS[self.features])(molecule, self.features)

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Node embeddings of the last layer."""
        raise NotImplementedError

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits of every graph of a batch, (graphs, classes), or of every node."""
        return self.classify(self.embed(x, edge_index), batch, batch_size)

    def classify(self, hidden: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Logits of every graph, (graphs, classes), or without a readout of every node."""
        if self.readout is not None:
            hidden = READOUTS[self.readout](hidden, batch, batch_size)
        logits: Tensor = self.classifier(hidden)
        return logits


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
        self.normalize = as_flag(normalize, name="normalize")
        self.normalize_embeddings = as_flag(normalize_embeddings, name="normalize_embeddings")
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

    def forward(  # type: ignore[override]  # PyG's place of the weights
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Logits of every graph of a batch, (graphs, classes), or of every node."""
        return self.classify(self.embed(x, edge_index, edge_weight), batch, batch_size)


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
    in_channels, hidden_channels, out_channels, num_layers, readout
        As for :class:`GCN`.

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


def _perceptron(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden)
    )


class GAT(Network):
    """Attention over neighbors with ReLU, a readout, and one linear layer to the classes.

    The heads of a layer are concatenated. Every node attends to itself once, whether the graph has
    a self-loop there or not. Source and target of an edge share their linear map.

    Parameters
    ----------
    in_channels, out_channels, num_layers, readout
        As for :class:`GCN`.
    hidden_channels
        Width of one head; a layer is ``heads * hidden_channels`` wide.
    heads
        Number of heads of every layer.
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
        slope: Any = negative_slope
        if not isinstance(slope, int | float) or not math.isfinite(slope):
            raise ValueError(f"negative_slope must be a finite number (got {negative_slope!r})")
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
