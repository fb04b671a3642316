"""What numba costs: the first call after an installation, and later processes.

Wall seconds of fresh processes that import the package and compute a small value of every kind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_SCRIPT = """
import time
start = time.perf_counter()
import gstarx.values as values
from gstarx.graphs import CommunicationGraph
from gstarx.games import random_game
imported = time.perf_counter() - start
ring = CommunicationGraph(12, [(i, (i + 1) % 12) for i in range(12)])
game = random_game(12, seed=0)
values.hn_value(game, ring)
first = time.perf_counter() - start - imported
values.myerson_value(game, ring)
values.hn_value_subgraph_sampled(game, ring, seed=0)
values.hn_value_growth_sampled(game, ring, budget=60, seed=0)
ladder = [(i, i + 1) for i in range(39)] + [(i, i + 5) for i in range(0, 35, 2)]
wide = CommunicationGraph(40, ladder)
values.hn_value_growth_sampled(random_game(40, seed=0), wide, budget=100, seed=0)
values.myerson_value_sampled(random_game(40, seed=0), wide, budget=100, seed=0)
rest = time.perf_counter() - start - imported - first
print(f"import {imported:.2f} s, first exact HN value {first:.2f} s, every other kind {rest:.2f} s")
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for name in ("first process", "second process"):
            print(f"{name}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", _SCRIPT], env=environment, check=True)
