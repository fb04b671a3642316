"""The growth sampler on the real game: the paper's MUTAG GCN, test molecules from 1,000 coalitions.

Error as for `growth_accuracy`: RMSE over the standard deviation of the exact values, per molecule.
"""

from __future__ import annotations

from benchmarks.growth_accuracy import report
from benchmarks.molecules import Recorded
from benchmarks.published import mutag
from gstarx import GNNGame

_MOST = 100_000


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, baseline = found
    cases = []
    for data in graphs:
        game = GNNGame(model, data, baseline=baseline)
        if 1_000 <= game.graph.count_connected_coalitions(_MOST) <= _MOST:
            cases.append((game.graph, Recorded.of(game, game.graph)))
    report("MUTAG", cases)
