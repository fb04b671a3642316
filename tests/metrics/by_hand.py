"""A model whose probabilities can be computed by hand, and the metrics by their formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

#: Chance of class 1 for every set of nodes of a path 0 - 1 - 2; of class 0 it is the rest.
CHANCES = {
    (0,): 0.3,
    (1,): 0.4,
    (2,): 0.5,
    (0, 1): 0.7,
    (0, 2): 0.2,
    (1, 2): 0.6,
    (0, 1, 2): 0.9,
}


def path(n: int) -> Data:
    """A path whose nodes say who they are: a one-hot row each."""
    ends = torch.arange(n - 1)
    edges = torch.stack([ends, ends + 1])
    return Data(x=torch.eye(n), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def by_table(chances: dict[tuple[int, ...], float]) -> Callable[..., Tensor]:
    """A model of graphs with one-hot nodes that looks the chance of class 1 up."""

    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        there = [x[batch == g].sum(dim=0).nonzero()[:, 0] for g in batch.unique()]
        on = torch.tensor([chances[tuple(nodes.tolist())] for nodes in there], dtype=torch.double)
        return torch.stack([1 - on, on], dim=1).log()

    return model


def random_chances(n: int, *, seed: int) -> NDArray[np.float64]:
    """Chances of class 1 by bitmask (2^n,), those of everybody above one half."""
    chances = np.random.default_rng(seed).random(1 << n)
    chances[0], chances[-1] = 0.0, 0.5 + chances[-1] / 2
    return chances


def by_bitmask(chances: NDArray[np.float64]) -> Callable[..., Tensor]:
    """A model of graphs with one-hot nodes: a chance of class 1 for every set of them."""
    table = torch.from_numpy(chances)
    n = len(chances).bit_length() - 1
    weights = 2 ** torch.arange(n, dtype=torch.double)

    def model(x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        there = torch.zeros(batch_size, n, dtype=torch.double).index_add_(0, batch, x.double())
        on = table[(there @ weights).long()]
        return torch.stack([1 - on, on], dim=1).log()

    return model


def harmonic(whole: float, without: float, alone: float, sparsity: float) -> float:
    """The paper's H-fidelity: the harmonic mean of the two rescaled normalized fidelities."""
    up = (1 + (whole - without) * sparsity) / 2
    down = (1 - (whole - alone) * (1 - sparsity)) / 2
    return 2 / (1 / up + 1 / down)


def mask_of(nodes: Iterable[int], n: int) -> Any:
    found = np.zeros(n, dtype=np.bool_)
    found[list(nodes)] = True
    return found
