"""What a model is given, for all its steps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Inputs:
    """The fields of a graph or of a batch of graphs; ``batch`` may be missing."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None = None
    edge_weight: Tensor | None = None
    batch: Tensor | None = None
    edge_label_index: Tensor | None = None

    @property
    def owner(self) -> Tensor:
        """The graph of every node."""
        if self.batch is None:
            return torch.zeros(len(self.x), dtype=torch.long)
        return self.batch

    @property
    def graphs(self) -> int:
        return 1 if self.batch is None else int(self.batch.max()) + 1


def mlp(inside: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inside, 8), nn.Tanh(), nn.Linear(8, out))
