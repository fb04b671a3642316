"""Connected coalitions counted and stored per second on one core, and the memory of exact HN.

One word: up to 64 nodes. Two words: the same graph with its nodes scattered over 100 labels.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.molecules import molecules_with
from gstarx.graphs import CommunicationGraph

_SOLVE = """
import resource, sys, time
import numpy as np
from gstarx.graphs import CommunicationGraph
from gstarx.games import random_game
from gstarx.values import hn_value
hn_value(random_game(3, seed=0), CommunicationGraph(3, [(0, 1), (1, 2)]))
graph = CommunicationGraph({n}, np.array({edges}))
start = time.process_time()
result = hn_value(random_game({n}, seed=0), graph, max_coalitions=3_000_000)
spent = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{{result.evaluations:,}} coalitions of {n} nodes solved in {{spent:.2f}} CPU s; "
      f"efficiency to {{result.residual:.0e}}; peak memory of the process {{peak:.0f}} MB")
"""


def rate(call: Callable[[], int]) -> tuple[int, float]:
    """Coalitions, and millions of them per CPU second, best of five."""
    call()
    best, found = 0.0, 0
    for _ in range(5):
        start = time.process_time()
        found = call()
        best = max(best, found / (time.process_time() - start) / 1e6)
    return found, best


def ring_with_chords(n: int, chords: int) -> CommunicationGraph:
    """A ring, and chords across it: a million coalitions of 26 nodes with seven."""
    ring = [(i, (i + 1) % n) for i in range(n)]
    return CommunicationGraph(n, ring + [(3 * j, (3 * j + 11) % n) for j in range(chords)])


def comb(teeth: int, length: int) -> CommunicationGraph:
    """A long spine with short teeth: many nodes, moderately many coalitions."""
    spine = [(i, i + 1) for i in range(length - 1)]
    places = np.linspace(0, length - 1, teeth).astype(int)
    return CommunicationGraph(
        length + teeth, spine + [(p, length + t) for t, p in enumerate(places)]
    )


def main() -> None:
    (graph,) = molecules_with(1, fewest=3_000_000, most=10_000_000, atoms=(32, 36), seed=0)
    scattered = np.random.default_rng(0).permutation(100)[: graph.num_nodes]
    wide = CommunicationGraph(100, scattered[graph.edges])
    for name, shape in (("one word", graph), ("two words", wide)):
        shape.adjacency  # noqa: B018 - built once, outside the clock
        found, counted = rate(shape.count_connected_coalitions)
        _, stored = rate(lambda shape=shape: len(shape.connected_masks()[0]))
        print(
            f"{name:9s} {found:,} coalitions: counted {counted:6.1f} M/s, "
            f"stored as bitmasks {stored:5.1f} M/s"
        )
    for shape in (ring_with_chords(26, 7), comb(12, 188), comb(13, 187)):
        script = _SOLVE.format(n=shape.num_nodes, edges=shape.edges.tolist())
        subprocess.run([sys.executable, "-c", script], check=True)


if __name__ == "__main__":
    main()
