"""What the estimators themselves cost: CPU seconds and peak memory, on a game that costs little.

Each cell in a process of its own, one thread; memory beyond that of a process that estimated a
small game. Graphs are trees with half as many edges again.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.interactions import sparse_graph
from gstarx.values import (
    Allocation,
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value_growth_sampled,
    myerson_value_sampled,
    shapley_value_sampled,
)

PLAYERS = (50, 200, 600, 2_000, 5_000)
BUDGETS = (2_000, 20_000)
_LIMIT = 600


class LightGame:
    """The hyperbolic tangent of a weighted sum, looked up eight players at a time."""

    def __init__(self, n: int) -> None:
        weights = np.zeros(-(-n // 8) * 8)
        weights[:n] = np.random.default_rng(0).normal(0.3, 1, n) / np.sqrt(n)
        patterns = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
        self.table = (weights.reshape(-1, 8) @ patterns.T).astype(np.float32)

    def __call__(self, coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        octets = np.packbits(coalitions, axis=1)
        total = np.zeros(len(octets))
        for table, octet in zip(self.table, octets.T, strict=True):
            total += table[octet]
        return np.tanh(total)


def estimate(value: str, n: int, budget: int) -> Allocation:
    graph, game = sparse_graph(n, seed=0), LightGame(n)
    calls: dict[str, Callable[[], Allocation]] = {
        "shapley": lambda: shapley_value_sampled(game, n, budget=budget, seed=0),
        "banzhaf": lambda: banzhaf_value_sampled(game, n, budget=budget, seed=0),
        "myerson": lambda: myerson_value_sampled(game, graph, budget=budget, seed=0),
        "hn": lambda: hn_value_growth_sampled(game, graph, budget=budget, seed=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        return calls[value]()


def measure(value: str, n: int, budget: int) -> str:
    """CPU seconds and megabytes of one estimate, or why there is none."""
    estimate(value, 20, 100)  # compiled code is loaded before the clock starts
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        estimate(value, n, budget)
    except ValueError as error:
        return "refused" if "budget must be at least" in str(error) else str(error)
    spent = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{spent:.1f} s, {grown / 1024:.0f} MB"


def cell(value: str, n: int, budget: int) -> str:
    command = [sys.executable, "-m", "benchmarks.estimator_cost", value, str(n), str(budget)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, env=alone, capture_output=True, text=True, check=False, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"more than {_LIMIT} s"
    return done.stdout.strip() if not done.returncode else done.stderr.strip().splitlines()[-1]


def main() -> None:
    values = ("shapley", "banzhaf", "myerson", "hn")
    print("| players | budget | " + " | ".join(values) + " |")
    print("|---:|---:|" + "---:|" * len(values))
    for n in PLAYERS:
        for budget in BUDGETS:
            cells = [cell(value, n, budget) for value in values]
            print(f"| {n:,} | {budget:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    name, players, evaluations = sys.argv[1:]
    print(measure(name, int(players), int(evaluations)))
