"""Share of true values within two standard errors of their estimates: 90 to 99 % is honest.

Games are sums of random worths of players, edges and paths of two edges; their Shapley, Banzhaf and
Myerson values are known in closed form. HN and two-sided values are exact where the connected
coalitions can be listed, and else means of long runs, whose own errors count. Budgets of two-sided
values count complements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.interactions import dense_graph, interaction_game, sparse_graph
from gstarx.games import Game, self_dual
from gstarx.graphs import CommunicationGraph
from gstarx.values import (
    Allocation,
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value,
    hn_value_growth_sampled,
    myerson_value,
    myerson_value_sampled,
    shapley_value_sampled,
)

VALUES = ("shapley", "banzhaf", "myerson", "hn")
TWO_SIDED = ("myerson, two-sided", "hn, two-sided")
_EXACT = {"hn": hn_value, "myerson": myerson_value}
_SAMPLED = {"hn": hn_value_growth_sampled, "myerson": myerson_value_sampled}
GRAPHS = {"sparse": sparse_graph, "dense": dense_graph}
PLAYERS = (20, 60, 120, 200)
PER_PLAYER = (10, 20, 40)
_LISTED = 300_000
_LONG = 8


def seeds_of(value: str, n: int) -> range:
    """Seeds to average over: fewer where an estimate takes seconds and there are many players."""
    return range(max(8, 480 // n)) if value.startswith("hn") else range(20)


def share_covered(value: str, graph: CommunicationGraph, per_player: int, seeds: range) -> float:
    """How many true values lie within two standard errors, over players and seeds."""
    n = graph.num_nodes
    estimates: dict[str, Callable[..., Allocation]] = {
        "shapley": lambda v, **options: shapley_value_sampled(v, n, **options),
        "banzhaf": lambda v, **options: banzhaf_value_sampled(v, n, **options),
        "myerson": lambda v, **options: myerson_value_sampled(v, graph, **options),
        "hn": lambda v, **options: hn_value_growth_sampled(v, graph, **options),
    }
    kind, _, side = value.partition(", ")
    inside = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        game, known = interaction_game(n, seed=0, graph=graph)
        truth, spread = known.shapley, np.zeros(n)
        if value == "banzhaf":
            truth = known.banzhaf
        budget = per_player * n
        if side:
            game, budget = self_dual(game), (budget + 1) // 2
        if side or kind == "hn":
            truth, spread = long_run(kind, game, graph, budget)
        for seed in seeds:
            found = estimates[kind](game, budget=budget, seed=seed)
            both = np.sqrt(found.std_error**2 + spread**2)
            inside.append(np.abs(found.values - truth) <= 2 * both + 1e-9)
    return float(np.mean(inside))


def long_run(
    value: str, game: Game, graph: CommunicationGraph, budget: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """HN or Myerson values, and their standard errors if they are from long runs."""
    if graph.count_connected_coalitions(_LISTED) <= _LISTED:
        return _EXACT[value](game, graph).values, np.zeros(graph.num_nodes)
    runs = [
        _SAMPLED[value](game, graph, budget=_LONG * budget, seed=1_000 + seed) for seed in range(4)
    ]
    errors = np.array([run.std_error for run in runs])
    return np.mean([run.values for run in runs], axis=0), np.sqrt((errors**2).mean(axis=0) / 4)


def main() -> None:
    print("| graph | players | budget | " + " | ".join((*VALUES, *TWO_SIDED)) + " |")
    print("|---|---:|---:|" + "---:|" * len((*VALUES, *TWO_SIDED)))
    for name, drawn in GRAPHS.items():
        for n in PLAYERS:
            graph = drawn(n, seed=1)
            for per_player in PER_PLAYER:
                shares = [
                    f"{share_covered(value, graph, per_player, seeds_of(value, n)):.1%}"
                    for value in (*VALUES, *TWO_SIDED)
                ]
                print(
                    f"| {name} | {n} | {per_player * n:,} | " + " | ".join(shares) + " |",
                    flush=True,
                )
