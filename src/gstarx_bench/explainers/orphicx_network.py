"""The generator of OrphicX and the terms of its loss, on many graphs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_batch

from gstarx.graphs import color_refinement

#: The largest logarithm of a standard deviation, so that its exponential stays finite.
_LOG_STD_LIMIT = 10.0
_TINY = 1e-8


@dataclass(frozen=True)
class GeneratorGraphs:
    """Graphs as the generator sees them, one after the other.

    Attributes
    ----------
    features
        Features and one-hot colors of all nodes, (N, F + colors).
    pairs
        Both directions of every edge once, no self-loops, (2, P).
    owner
        The graph of every node, ascending, (N,).
    """

    features: Tensor
    pairs: Tensor
    owner: Tensor

    @classmethod
    def of(cls, data: Data, colors: int, device: torch.device) -> Self:
        """One graph. Colors beyond the number of columns share the last column."""
        ends = data.edge_index.cpu().numpy().astype(np.int64)
        n = int(data.num_nodes or 0)
        labels = torch.from_numpy(color_refinement(ends, n)).clamp(max=colors) - 1
        joined = ends[:, ends[0] != ends[1]]
        keys = np.unique(np.concatenate([joined[0] * n + joined[1], joined[1] * n + joined[0]]))
        one_hot = functional.one_hot(labels, colors).float()
        return cls(
            torch.cat([data.x.cpu().float(), one_hot], dim=1).to(device),
            torch.from_numpy(np.stack(np.divmod(keys, n))).to(device),
            torch.zeros(n, dtype=torch.long, device=device),
        )

    @classmethod
    def union(cls, graphs: Sequence[GeneratorGraphs]) -> Self:
        """Several graphs, each given as one."""
        sizes = torch.tensor([len(graph.owner) for graph in graphs])
        first = (sizes.cumsum(0) - sizes).tolist()
        return cls(
            torch.cat([graph.features for graph in graphs]),
            torch.cat([g.pairs + at for g, at in zip(graphs, first, strict=True)], dim=1),
            torch.cat([g.owner + place for place, g in enumerate(graphs)]),
        )


class Generator(nn.Module):
    """A variational graph auto-encoder with a latent vector per node, the first part of it causal.

    Parameters
    ----------
    in_channels
        Width of the features with their one-hot colors.
    hidden_channels
        Width of the two hidden layers of the encoder.
    latent, causal
        Width of the latent vectors, and of their causal part.
    decoder_channels
        Width of the two layers of the decoder.
    """

    def __init__(
        self,
        in_channels: int,
        *,
        hidden_channels: int = 32,
        latent: int = 16,
        causal: int = 8,
        decoder_channels: int = 16,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.latent = latent
        self.first = nn.Linear(in_channels, hidden_channels, bias=False)
        self.second = nn.Linear(hidden_channels, hidden_channels, bias=False)
        self.mean = nn.Linear(hidden_channels, latent, bias=False)
        self.log_std = nn.Linear(hidden_channels, latent, bias=False)
        for layer in (self.first, self.second, self.mean, self.log_std):
            nn.init.xavier_uniform_(layer.weight)
        self.decoder = nn.Sequential(
            nn.Linear(latent, decoder_channels),
            nn.ReLU(),
            nn.Linear(decoder_channels, decoder_channels),
            nn.Sigmoid(),
        )

    def encode(self, graphs: GeneratorGraphs) -> tuple[Tensor, Tensor]:
        """Means and logarithms of standard deviations of the latent vectors, (N, latent) each."""
        hidden = _sum_around(self.first(graphs.features), graphs.pairs).relu()
        hidden = _sum_around(self.second(hidden), graphs.pairs).relu()
        log_std = _sum_around(self.log_std(hidden), graphs.pairs).clamp(max=_LOG_STD_LIMIT)
        return _sum_around(self.mean(hidden), graphs.pairs), log_std

    def causal_part(self, latent: Tensor) -> Tensor:
        """Latent vectors with the part that is not causal set to 0."""
        return functional.pad(latent[..., : self.causal], (0, self.latent - self.causal))

    def edge_logits(self, latent: Tensor, edges: Tensor) -> Tensor:
        """Logits of edges (2, M) between nodes with latent vectors (..., N, latent): (..., M).

        Each is a product of vectors of numbers between 0 and 1, and so never negative.
        """
        ends = self.decoder(latent)
        products = ends.index_select(-2, edges[0]) * ends.index_select(-2, edges[1])
        logits: Tensor = products.sum(dim=-1)
        return logits

    def edge_weights(self, latent: Tensor, edges: Tensor) -> Tensor:
        """Probabilities of edges, as for :meth:`edge_logits`: at least 0.5."""
        return self.edge_logits(latent, edges).sigmoid()


def _sum_around(values: Tensor, pairs: Tensor) -> Tensor:
    """The sum over the neighbors of every node: the adjacency matrix times the values."""
    return torch.zeros_like(values).index_add(0, pairs[1], values[pairs[0]])


def elbo_loss(
    generator: Generator, graphs: GeneratorGraphs, latent: Tensor, mean: Tensor, log_std: Tensor
) -> Tensor:
    """The negative evidence lower bound of the auto-encoder, the mean over the graphs.

    For a graph of n nodes with adjacency matrix A, ``c * BCE(logits, A + I, w) + KL / n`` with
    positive entries weighing ``w = (n² - ΣA) / ΣA`` and ``c = n² / 2(n² - ΣA)``. Every graph counts
    with its true size.
    """
    vectors, there = to_dense_batch(generator.decoder(latent), graphs.owner)
    sizes = there.sum(dim=1)
    first = sizes.cumsum(0) - sizes
    owner = graphs.owner[graphs.pairs[0]]
    inside = graphs.pairs - first[owner]
    adjacency = vectors.new_zeros(len(sizes), there.shape[1], there.shape[1])
    adjacency[owner, inside[0], inside[1]] = 1.0
    edges, squares = adjacency.sum(dim=(1, 2)), sizes.to(vectors.dtype) ** 2
    losses = functional.binary_cross_entropy_with_logits(
        vectors @ vectors.transpose(1, 2),
        adjacency + torch.eye(there.shape[1], device=adjacency.device),
        pos_weight=((squares - edges) / edges)[:, None, None],
        reduction="none",
    )
    both = there[:, :, None] & there[:, None, :]
    reconstruction = (losses * both).sum(dim=(1, 2)) / (2 * (squares - edges))
    divergences = -0.5 * (1 + 2 * log_std - mean**2 - (2 * log_std).exp()).sum(dim=1)
    per_graph = mean.new_zeros(len(sizes)).index_add(0, graphs.owner, divergences) / squares
    loss: Tensor = (reconstruction + per_graph).mean()
    return loss


def information_flow(probabilities: Tensor) -> Tensor:
    r"""The information that flows from causal factors to the class, in nats.

    :math:`I = \frac{1}{A} \sum_a \sum_c p_a(c) \log p_a(c) - \sum_c q(c) \log q(c)` where
    :math:`p_a` is the mean over the samples of everything else and :math:`q` the mean of all.

    Parameters
    ----------
    probabilities
        Of every class, for A samples of the causal factors and B of the others, (A, B, classes).

    Examples
    --------
    >>> decided = torch.eye(2)[:, None].repeat(1, 3, 1)
    >>> information_flow(decided), information_flow(decided.transpose(0, 1))
    (tensor(0.6931), tensor(0.))
    """
    conditional = probabilities.mean(dim=1)
    overall = conditional.mean(dim=0)
    inside = (conditional * (conditional + _TINY).log()).sum(dim=1).mean()
    return inside - (overall * (overall + _TINY).log()).sum()
