"""Graphs and networks on which trained and gradient-based explainers take a moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gstarx.models import GAT, GCN, GIN
from tests.gnn.test_model_state import everything, same

FEATURES, CLASSES = 4, 2

#: Networks by name; one of them adds self-loops beside those that there are, one drops them all.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCN(FEATURES, 8, CLASSES),
    "gcn unnormalized": lambda: GCN(FEATURES, 8, CLASSES, normalize=False),
    "gin": lambda: GIN(FEATURES, 8, CLASSES, readout="mean"),
    "gat": lambda: GAT(FEATURES, 4, CLASSES, heads=2, readout="mean"),
}

#: Edges by name: (nodes, edges), each in one direction.
EDGES = {
    "path": (5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "loops": (5, [(0, 1), (1, 1), (1, 2), (2, 3), (3, 3), (3, 4)]),
    "a loop everywhere": (4, [(0, 0), (0, 1), (1, 1), (2, 2), (1, 2), (3, 3), (2, 3)]),
    "components": (6, [(0, 1), (2, 3), (3, 4)]),
}


def network(name: str, *, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return NETWORKS[name]()


def graph(name: str, *, seed: int = 0) -> Data:
    n, edges = EDGES[name]
    draw = torch.Generator().manual_seed(seed)
    both = edges + [(b, a) for a, b in edges if a != b]
    return Data(
        x=torch.randn(n, FEATURES, generator=draw),
        edge_index=torch.tensor(both).t().contiguous(),
    )


def without_edges(n: int) -> Data:
    return Data(x=torch.ones(n, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.long))


def many(count: int = 8) -> list[Data]:
    """Graphs of all kinds, one of them without edges."""
    names = list(EDGES)
    graphs = [graph(names[i % len(names)], seed=i) for i in range(count)]
    return [*graphs, without_edges(2)]


class WithoutMessages(nn.Module):
    """A network that looks at nodes alone."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.linear(x).mean(dim=0, keepdim=True)


class unchanged:
    """A block after which a model, and all random state, is bit for bit what it was before."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __enter__(self) -> None:
        self.before = everything(self.model)

    def __exit__(self, *_: object) -> None:
        after = everything(self.model)
        for what, value in self.before.items():
            assert same(value, after[what]), what
