"""Time and memory per coalition as coalitions become many: 100 to 1,000,000.

A ring of 26 nodes with chords, the width-128 GCN of the paper with random weights, one thread.
"""

from __future__ import annotations

import resource
import time

import numpy as np
import torch
from torch_geometric.data import Data

from benchmarks.enumeration import ring_with_chords
from gstarx import GNNGame
from gstarx.models import GCN


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    graph = ring_with_chords(26, 7)
    edges = torch.from_numpy(np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy())
    data = Data(x=torch.randn(26, 7), edge_index=edges)
    game = GNNGame(GCN(7, 128, 2), data)
    every = graph.connected_coalitions(limit=2_000_000)
    order = np.random.default_rng(0).permutation(len(every))
    game(every[order[-100:]])  # what only the first pass costs is not the coalitions'
    done = 0
    for count in (100, 1_000, 10_000, 100_000, 1_000_000):
        asked = every[order[done:count]]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        game(asked)
        spent = time.process_time() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(
            f"{count:9,} coalitions: {1e6 * spent / len(asked):5.1f} us each; peak memory grew by "
            f"{grown / 1024:.0f} MB, {grown * 1024 / len(asked):.0f} bytes each",
            flush=True,
        )
        done = count
