"""Exact explanation against the bare forward passes over the very same coalitions.

The forward passes run on pre-built batches of the size that is fastest for them. CPU seconds, one
thread, least of seven, in turn with ours so that both meet the same machine; the paper's MUTAG GCN
on test molecules with 1,000 coalitions and more.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.forward import Forward, best_forward_seconds
from benchmarks.published import mutag
from gstarx import HN, GNNGame, explain
from gstarx.graphs.bitmasks import pack

_MOST = 30_000
_TURNS = 7


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, baseline = found
    ours_total = bare_total = 0.0
    for data in graphs:
        game = GNNGame(model, data, baseline=baseline)
        count = game.graph.count_connected_coalitions(_MOST)
        if not 1_000 <= count <= _MOST:
            continue
        work = [(game, pack(game.graph.connected_coalitions()))]
        _, size = best_forward_seconds(work)
        forward = Forward(work, size)
        turns = []
        for _ in range(_TURNS):
            start = time.process_time()
            explain(model, data, baseline=baseline, budget=_MOST, value=HN(estimator="exact"))
            turns.append((time.process_time() - start, forward.seconds()))
        ours, bare = np.min(turns, axis=0)
        ours_total += ours
        bare_total += bare
        print(
            f"{data.num_nodes:3d} atoms, {count:6,} coalitions: {ours:6.3f} s, bare {bare:6.3f} s "
            f"({1e6 * bare / count:4.1f} us each at {size} nodes a batch), ratio {ours / bare:.2f}",
            flush=True,
        )
    print(
        f"all: {ours_total:.2f} s against {bare_total:.2f} s, ratio {ours_total / bare_total:.2f}"
    )
