"""Share of true values within two standard errors of their estimates: 90 to 99 % is honest.

Games are sums of random worths of players, edges and paths of two edges; their Shapley, Banzhaf and
Myerson values are known in closed form. HN and Myerson values are measured on other games, too: a
graph convolutional network with random weights, a saturating sum, a smooth game, and a planted pair
of neighbors. These, HN and two-sided values are exact where the connected coalitions can be listed,
and else means of long runs, whose own errors count. Budgets of two-sided values count complements.
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


def networks(graph: CommunicationGraph, *, seed: int) -> Game:
    """Four games as columns: a random GCN, a saturating sum, a smooth game, a planted pair."""
    import torch
    from torch_geometric.data import Data

    from gstarx.gnn import GNNGame
    from gstarx.models import GCN

    n, generator = graph.num_nodes, np.random.default_rng(seed)
    ends = torch.from_numpy(np.vstack([graph.edges, graph.edges[:, ::-1]])).T
    x = torch.from_numpy(np.eye(5, dtype=np.float32)[generator.integers(5, size=n)])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = GNNGame(GCN(5, 32, 2).double(), Data(x=x.double(), edge_index=ends))
    own, slope, wave = generator.normal(size=(3, n))
    i, j = graph.edges[generator.integers(len(graph.edges))]

    def worth(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        members = coalitions.astype(np.float64)
        sigmoid = 1 / (1 + np.exp(-4 / np.sqrt(n) * members @ own))
        smooth = np.tanh(members @ slope / 2) * (1 + 0.5 * np.sin(members @ wave))
        pair = coalitions[:, i] & coalitions[:, j]
        games = (network(coalitions), sigmoid, smooth, pair + np.tanh(members @ own / n))
        return np.stack(games, axis=1)

    return worth


def share_covered(
    value: str,
    graph: CommunicationGraph,
    per_player: int,
    seeds: range,
    *,
    network_games: bool = False,
) -> float:
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
        if network_games:
            game = networks(graph, seed=0)
        truth, spread = known.shapley, np.zeros(n)
        if value == "banzhaf":
            truth = known.banzhaf
        budget = per_player * n
        if side:
            game, budget = self_dual(game), (budget + 1) // 2
        if side or kind == "hn" or network_games:
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
        exact = _EXACT[value](game, graph).values
        return exact, np.zeros_like(exact)
    runs = [
        _SAMPLED[value](game, graph, budget=_LONG * budget, seed=1_000 + seed) for seed in range(4)
    ]
    errors = np.array([run.std_error for run in runs])
    return np.mean([run.values for run in runs], axis=0), np.sqrt((errors**2).mean(axis=0) / 4)


def main() -> None:
    columns = [(value, False) for value in (*VALUES, *TWO_SIDED)]
    columns += [(value, True) for value in (*VALUES[2:], *TWO_SIDED)]
    names = [value + ", networks" * network_games for value, network_games in columns]
    print("| graph | players | budget | " + " | ".join(names) + " |")
    print("|---|---:|---:|" + "---:|" * len(names))
    for name, drawn in GRAPHS.items():
        for n in PLAYERS:
            graph = drawn(n, seed=1)
            for per_player in PER_PLAYER:
                shares = [
                    share_covered(
                        value, graph, per_player, seeds_of(value, n), network_games=network_games
                    )
                    for value, network_games in columns
                ]
                print(
                    f"| {name} | {n} | {per_player * n:,} | "
                    + " | ".join(f"{share:.1%}" for share in shares)
                    + " |",
                    flush=True,
                )
