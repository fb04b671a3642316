"""The part of a large graph that decides an output at one node (Appendix B of the paper)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from gstarx.coalitions.signature import Model, Roles


def count_layers(model: Model) -> int:
    """Number of message-passing layers of a model, one if it shows none."""
    if not isinstance(model, torch.nn.Module):
        return 1
    return max(1, sum(isinstance(module, MessagePassing) for module in model.modules()))


def grow_hops(
    edge_index: NDArray[np.int64], num_nodes: int, start: NDArray[np.int64]
) -> Iterator[NDArray[np.bool_]]:
    """Nodes within 0, 1, 2, ... hops of the start, edges read both ways, until nothing is new.

    The cost of a hop is that of the nodes it reaches, not of the graph.
    """
    both = np.concatenate([edge_index, edge_index[::-1]], axis=1)
    order = np.argsort(both[0], kind="stable")
    targets = both[1][order]
    starts = np.searchsorted(both[0][order], np.arange(num_nodes + 1))
    inside = np.zeros(num_nodes, dtype=np.bool_)
    inside[start] = True
    front = start
    while True:
        yield inside
        reached = [targets[starts[node] : starts[node + 1]] for node in front]
        fresh = np.unique(np.concatenate(reached)) if reached else np.zeros(0, dtype=np.int64)
        front = fresh[~inside[fresh]]
        if not len(front):
            return
        inside[front] = True


def induced(data: Data, inside: NDArray[np.bool_], roles: Roles) -> Data:
    """The subgraph on some nodes, all node and edge fields cut down, node ids moved."""
    keep = torch.from_numpy(np.flatnonzero(inside))
    place = torch.full((len(inside),), -1, dtype=torch.long)
    place[keep] = torch.arange(len(keep))
    moved = place[data.edge_index.cpu()]
    edges = (moved >= 0).all(dim=0)
    fields = {key: data[key] for key, role in roles.items() if role == "rest"}
    for key, role in roles.items():
        if role == "node":
            fields[key] = data[key].cpu()[keep]
        elif role == "edge":
            fields[key] = data[key].cpu()[edges]
        elif role == "ids":
            ids = data[key].cpu()
            columns = place[ids.reshape(1) if ids.dim() == 0 else ids]
            present = (columns[None].flatten(0, -2) >= 0).all(dim=0)
            fields[key] = columns[..., present]
    return Data(edge_index=moved[:, edges], num_nodes=len(keep), **fields)
