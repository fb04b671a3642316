"""Explaining one node of a large graph: the cost is that of its surroundings, not of the graph.

A three-layer GCN on random sparse graphs with the same local structure and 700 to 100,000 nodes.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gstarx import explain
from gstarx.models import GCN


def chain_of_houses(houses: int) -> Data:
    """Five-node houses along a ring, so that every node's surroundings look alike."""
    house = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])
    edges = np.concatenate([house + 5 * h for h in range(houses)])
    ring = np.array([(5 * h + 2, (5 * h + 8) % (5 * houses)) for h in range(houses)])
    index = torch.from_numpy(np.concatenate([edges, ring]).T)
    return Data(x=torch.ones(5 * houses, 10), edge_index=to_undirected(index))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = GCN(10, 20, 4, readout=None)
    for houses in (140, 2_000, 20_000):
        data = chain_of_houses(houses)
        explain(model, data, index=3, task="node")
        start = time.process_time()
        found = explain(model, data, index=7, task="node")
        spent = time.process_time() - start
        print(
            f"{data.num_nodes:7,} nodes: {len(found.nodes)} players, {found.evaluations:,} "
            f"coalitions, {spent:.3f} CPU s"
        )
