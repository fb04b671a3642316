"""Exact Myerson at 14 players, against the exact calculator of the `myerson` package.

Both get the same table game and the same graph. CPU seconds.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
from myerson import MyersonCalculator

from benchmarks.molecules import molecules_with
from benchmarks.timing import cpu_seconds
from gstarx.games import TableGame
from gstarx.graphs import CommunicationGraph
from gstarx.values import myerson_value


def main() -> None:
    generator = np.random.default_rng(0)
    table = generator.normal(size=2**14)
    table[0] = 0.0
    ours = TableGame(14, table)
    (molecule,) = molecules_with(1, fewest=300, most=5000, atoms=(14, 15), seed=3)

    def theirs(coalition: tuple[int, ...], graph: object) -> float:
        return float(table[sum(1 << i for i in coalition)])

    for name, graph in (
        ("molecule", molecule),
        ("path", CommunicationGraph(14, [(i, i + 1) for i in range(13)])),
    ):
        nx_graph = nx.empty_graph(14)
        nx_graph.add_edges_from(graph.edges.tolist())

        def package(nx_graph: nx.Graph = nx_graph) -> dict[int, float]:
            calculator = MyersonCalculator(
                graph=nx_graph, coalition_function=theirs, disable_tqdm=True
            )
            return calculator.calculate_all_myerson_values()

        values = package()
        result = myerson_value(ours, graph)
        gap = max(abs(values[i] - result.values[i]) for i in range(14))
        slow = cpu_seconds(package, repeats=1)
        fast = cpu_seconds(lambda graph=graph: myerson_value(ours, graph))
        print(
            f"{name:10s} {result.evaluations:5d} coalitions: {1e3 * fast:7.3f} ms against "
            f"{slow:6.2f} s, {slow / fast:8.0f} times less; values equal to {gap:.1e}"
        )
