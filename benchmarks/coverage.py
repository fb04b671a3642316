"""Share of true values within two standard errors of their estimates: 90 to 99 % is honest.

Games are sums of random worths of players, edges and paths of two edges; their Shapley, Banzhaf and
Myerson values are known in closed form. HN values are exact where the connected coalitions can be
listed, and else means of long runs, whose own errors count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.interactions import dense_graph, interaction_game, sparse_graph
from gstarx.games import Game
from gstarx.graphs import CommunicationGraph
from gstarx.values import (
    Allocation,
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value,
    hn_value_growth_sampled,
    myerson_value_sampled,
    shapley_value_sampled,
)

VALUES = ("shapley", "banzhaf", "myerson", "hn")
GRAPHS = {"sparse": sparse_graph, "dense": dense_graph}
PLAYERS = (20, 60, 120, 200)
PER_PLAYER = (10, 20, 40)
_LISTED = 300_000
_LONG = 8


def seeds_of(value: str, n: int) -> range:
    """Seeds to average over: fewer where an estimate takes seconds and there are many players."""
    return range(20) if value != "hn" else range(max(8, 480 // n))


def share_covered(value: str, graph: CommunicationGraph, per_player: int, seeds: range) -> float:
    """How many true values lie within two standard errors, over players and seeds."""
    n = graph.num_nodes
    estimates: dict[str, Callable[..., Allocation]] = {
        "shapley": lambda v, **options: shapley_value_sampled(v, n, **options),
        "banzhaf": lambda v, **options: banzhaf_value_sampled(v, n, **options),
        "myerson": lambda v, **options: myerson_value_sampled(v, graph, **options),
        "hn": lambda v, **options: hn_value_growth_sampled(v, graph, **options),
    }
    inside = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        game, known = interaction_game(n, seed=0, graph=graph)
        truth, spread = known.shapley, np.zeros(n)
        if value == "banzhaf":
            truth = known.banzhaf
        elif value == "hn":
            truth, spread = hn_truth(game, graph, per_player)
        for seed in seeds:
            found = estimates[value](game, budget=per_player * n, seed=seed)
            both = np.sqrt(found.std_error**2 + spread**2)
            inside.append(np.abs(found.values - truth) <= 2 * both + 1e-9)
    return float(np.mean(inside))


def hn_truth(
    game: Game, graph: CommunicationGraph, per_player: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """HN values, and their standard errors if they are from long runs."""
    if graph.count_connected_coalitions(_LISTED) <= _LISTED:
        return hn_value(game, graph).values, np.zeros(graph.num_nodes)
    budget = _LONG * per_player * graph.num_nodes
    runs = [
        hn_value_growth_sampled(game, graph, budget=budget, seed=1_000 + seed) for seed in range(4)
    ]
    errors = np.array([run.std_error for run in runs])
    return np.mean([run.values for run in runs], axis=0), np.sqrt((errors**2).mean(axis=0) / 4)


def main() -> None:
    print("| graph | players | budget | " + " | ".join(VALUES) + " |")
    print("|---|---:|---:|" + "---:|" * len(VALUES))
    for name, drawn in GRAPHS.items():
        for n in PLAYERS:
            graph = drawn(n, seed=1)
            for per_player in PER_PLAYER:
                shares = [
                    f"{share_covered(value, graph, per_player, seeds_of(value, n)):.1%}"
                    for value in VALUES
                ]
                print(
                    f"| {name} | {n} | {per_player * n:,} | " + " | ".join(shares) + " |",
                    flush=True,
                )
