"""Exact HN at ten nodes with given worths, against the matrix products the published route needs.

The published route squares a 1,023 x 1,023 matrix seven times; here are those products alone,
without building the matrix or applying it. CPU seconds, all threads counted.
"""

from __future__ import annotations

import numpy as np

from benchmarks.exactness import random_connected
from benchmarks.timing import cpu_seconds
from gstarx.games import TableGame
from gstarx.graphs import CommunicationGraph
from gstarx.values import hn_value


def main() -> None:
    generator = np.random.default_rng(0)
    game = TableGame(10, generator.normal(size=1024))
    matrix = generator.normal(size=(1023, 1023)) / 64

    def seven(dtype: type[np.floating]) -> float:
        factor = matrix.astype(dtype)
        out = np.empty_like(factor)
        return cpu_seconds(lambda: [np.matmul(factor, factor, out=out) for _ in range(7)])

    single, double = seven(np.float32), seven(np.float64)
    print(f"seven products: {1e3 * single:8.1f} ms in float32, {1e3 * double:.1f} ms in float64")
    molecule = CommunicationGraph(
        10, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 6), (6, 7), (6, 8), (3, 9)]
    )
    for name, graph in (
        ("ring with branches", molecule),
        ("random graph", random_connected(generator, 10)),
        ("complete graph", CommunicationGraph.complete(10)),
    ):
        ours = cpu_seconds(lambda graph=graph: hn_value(game, graph))
        print(
            f"{name:20s} {graph.count_connected_coalitions():5d} coalitions: {1e3 * ours:6.3f} ms, "
            f"{single / ours:6.0f} times less than float32, {double / ours:6.0f} than float64"
        )
