"""Checking explanations: 20 MUTAG molecules at eight sparsities, against the bare forward passes.

The bare passes run over the very same parts of the molecules, in batches prepared beforehand; both
take turns 30 times. Beside it, one call of `evaluate` for every number. CPU seconds, one thread.
"""

from __future__ import annotations

import time
from unittest.mock import patch

import numpy as np

from benchmarks.published import mutag
from gstarx import Judge
from gstarx.gnn import multi_graph
from gstarx.gnn.model_state import untouched
from gstarx.gnn.signature import call_model
from gstarx.metrics import SPARSITIES, evaluate, select_nodes


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, _ = found
    rng = np.random.default_rng(0)
    selections = []
    for data in graphs:
        scores = rng.random(int(data.num_nodes or 0))
        selections.append([select_nodes(scores, level) for level in SPARSITIES])
    batches: list[tuple] = []

    def recording(*arguments: object) -> object:
        batches.append(arguments)
        return call_model(*arguments)

    with patch.object(multi_graph, "call_model", recording):
        Judge(model).many(graphs, selections)

    def bare() -> None:
        with untouched(model):
            for arguments in batches:
                call_model(*arguments)

    def singly() -> None:
        for data, own in zip(graphs, selections, strict=True):
            for nodes in own:
                evaluate(model, data, nodes)

    turns = [
        (_seconds(lambda: Judge(model).many(graphs, selections)), _seconds(bare)) for _ in range(30)
    ]
    ours, least = np.median(turns, axis=0)
    apart = min(_seconds(singly) for _ in range(3))
    print(
        f"evaluate_many: {1e3 * ours:.1f} ms for {len(graphs) * len(SPARSITIES)} selections in "
        f"{len(batches)} passes; bare {1e3 * least:.1f} ms; ratio {ours / least:.2f}; one call "
        f"for each selection: {1e3 * apart:.0f} ms, {apart / ours:.1f} times as much"
    )


def _seconds(call: object) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
