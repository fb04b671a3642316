"""Datasets that train in a moment."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset
from gstarx_bench.models import TrainingSettings

#: A few epochs of a few batches.
BRIEF = TrainingSettings(learning_rate=0.02, batch_size=8, epochs=6)


def rings(count: int = 40, *, seed: int = 0, name: str = "rings", **changes: Any) -> GraphDataset:
    """Rings of 3 to 7 nodes; the class is whether the first feature is high on average."""
    draw = torch.Generator().manual_seed(seed)
    graphs = []
    for position in range(count):
        n = int(torch.randint(3, 8, (1,), generator=draw))
        label = position % 2
        x = torch.randn(n, 3, generator=draw)
        x[:, 0] += 2 * label - 1
        around = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        edges = torch.cat([around, around.flip(0)], dim=1)
        graphs.append(Data(x=x, edge_index=edges, y=torch.tensor([label])))
    third = count // 4
    split = {
        "train": list(range(2 * third)),
        "val": list(range(2 * third, 3 * third)),
        "test": list(range(3 * third, count)),
    }
    return GraphDataset(
        **{
            "name": name,
            "graphs": tuple(graphs),
            "num_classes": 2,
            "split_indices": split,
            **changes,
        }
    )


def nodes(count: int = 60, *, seed: int = 0) -> GraphDataset:
    """Two paths; the class of a node is the one it is on, by its feature; the last quarter lies."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=draw)
    y = (x[:, 0] > 0).long()
    quarter = count // 4
    y[3 * quarter :] = 1 - y[3 * quarter :]
    place = torch.arange(count) // quarter
    paths = [(x[:, 0] > 0).nonzero()[:, 0], (x[:, 0] <= 0).nonzero()[:, 0]]
    edges = torch.cat([torch.stack([path[:-1], path[1:]]) for path in paths], dim=1)
    data = Data(x=x, edge_index=edges, y=y)
    data.train_mask, data.val_mask = place < 2, place == 2
    data.test_mask = place >= 3
    return GraphDataset("nodes", (data,), 2, {})
