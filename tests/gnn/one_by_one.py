"""Coalitions evaluated the slow and obvious way: one graph cut out, one call of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from tests.gnn.networks import FEATURES, NETWORKS

NODE_FIELDS = ("x", "pos", "z", "charges")
EDGE_FIELDS = ("edge_attr", "edge_weight", "bond_length_of_edge")

#: Directed, repeated and looping edges, and isolated nodes.
EDGES = {
    "messy": (7, [(0, 1), (1, 0), (1, 2), (2, 3), (2, 3), (3, 3), (4, 2), (0, 4), (4, 0)]),
    "as many nodes as edges": (6, [(0, 1), (1, 0), (1, 2), (2, 3), (3, 3), (2, 3)]),
    "no edges": (3, []),
    "one node": (1, [(0, 0)]),
    "ring": (6, [(i, (i + 1) % 6) for i in range(6)] + [((i + 1) % 6, i) for i in range(6)]),
    "wide": (70, [(i, (3 * i + 1) % 68) for i in range(68)] + [(63, 64), (64, 63), (67, 67)]),
}


def graph(name: str, *, seed: int = 0) -> Data:
    """A graph with all the fields that a network of :mod:`networks` may want."""
    n, edges = EDGES[name]
    draw = torch.Generator().manual_seed(seed)
    count = len(edges)
    pairs = [(0, n - 1), (n // 2, 0), (n - 1, n // 2)]
    return Data(
        x=torch.randn(n, FEATURES, generator=draw),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
        edge_attr=torch.randn(count, 3, generator=draw),
        edge_weight=torch.rand(count, generator=draw) + 0.1,
        bond_length_of_edge=torch.rand(count, 1, generator=draw),
        pos=torch.randn(n, 3, generator=draw),
        z=torch.randint(10, (n,), generator=draw),
        charges=torch.rand(n, generator=draw),
        pair_index=torch.tensor(pairs).t(),
        u=torch.randn(1, 2, generator=draw),
        scale=0.5,
        y=torch.tensor([1]),
        name="a graph",
    )


def coalitions(n: int, *, seed: int = 0, at_most: int = 48) -> NDArray[np.bool_]:
    """Everybody, every node alone, and subsets of all sizes; none empty."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n + 1, size=at_most)
    some = np.array([np.isin(np.arange(n), rng.choice(n, k, replace=False)) for k in sizes])
    return np.concatenate([np.ones((1, n), bool), np.eye(n, dtype=bool)[:12], some])


def removed(data: Data, inside: Tensor, *, present: Tensor | None = None) -> Data:
    """The induced subgraph; nodes that are merely ``present`` are there without their edges."""
    nodes = (inside if present is None else inside | present).nonzero()[:, 0]
    place = torch.full((len(inside),), -1)
    place[nodes] = torch.arange(len(nodes))
    _, _, mask = subgraph(inside, data.edge_index, num_nodes=len(inside), return_edge_mask=True)
    out = _cut(data, nodes, mask)
    out.edge_index = place[out.edge_index]
    if "pair_index" in data:
        pairs = place[data.pair_index]
        out.pair_index = pairs[:, (pairs >= 0).all(dim=0)]
    return out


def split(data: Data, inside: Tensor) -> Data:
    mask = inside[data.edge_index[0]] & inside[data.edge_index[1]]
    return _cut(data, torch.arange(len(inside)), mask)


def _cut(data: Data, nodes: Tensor, edges: Tensor) -> Data:
    """Fields of some nodes and edges, which keep their numbers."""
    fields = dict(data)
    fields |= {key: data[key][nodes] for key in NODE_FIELDS if key in data}
    fields |= {key: data[key][edges] for key in EDGE_FIELDS if key in data}
    fields |= {"edge_index": data.edge_index[:, edges], "num_nodes": len(nodes)}
    return Data(**fields)


def zero_filled(data: Data, inside: Tensor) -> Data:
    out = data.clone()
    out.x = data.x.clone()
    out.x[~inside] = 0
    return out


def averaged(data: Data, inside: Tensor) -> Data:
    """A removal of one's own: the absent get the mean features."""
    out = data.clone()
    out.x = torch.where(inside[:, None], data.x, data.x.mean(dim=0))
    return out


REMOVALS: dict[str, Callable[[Data, Tensor], Data]] = {
    "remove": removed,
    "split": split,
    "zero_filling": zero_filled,
    "averaged": averaged,
}


def outputs(
    name: str, model: Any, data: Data, rows: Iterable[NDArray[np.bool_]], *, removal: str = "remove"
) -> NDArray[np.float64]:
    """Raw outputs (k, classes) of a network of :mod:`networks`, one coalition at a time."""
    call, take = NETWORKS[name][1], REMOVALS[removal]
    with torch.no_grad():
        found = [call(model, take(data, torch.from_numpy(row.copy()))) for row in rows]
    return torch.cat(found).double().numpy()
