"""Share of true values within two standard errors of their estimates: 90 to 99 % is honest.

Games are sums of random worths of players, edges and paths of two edges; their Shapley, Banzhaf and
Myerson values are known in closed form. HN and Myerson values are measured on other games, too: a
graph convolutional network and a graph isomorphism network with random weights, the latter with
the maximum as readout, a saturating sum, a smooth game, and a planted pair of neighbors. These, HN
and two-sided values are exact where the connected coalitions can be listed, and else means of long
runs, whose own errors count. Budgets of two-sided values count complements. In parentheses: the
game that is covered least.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

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
#: Sizes of graphs that network games are played on.
NETWORK_PLAYERS = (20, 60)
_LISTED = 300_000
#: Evaluations of a long run, per player.
_LONG = 80


def graph_of(name: str, n: int, network_games: bool) -> CommunicationGraph:
    """The graph that games are played on."""
    return GRAPHS[name](n, seed=2 if network_games else 1)


def seeds_of(value: str, n: int) -> range:
    """Seeds to average over: fewer where an estimate takes seconds.

    Errors of one estimate are correlated, so a share over few seeds is imprecise.
    """
    return range(24 if n <= 60 else 12) if value.startswith("hn") else range(20)


def networks(graph: CommunicationGraph, *, seed: int) -> Game:
    """Five games as columns: a random GCN and GIN, a saturating sum, a smooth game, a pair."""
    import torch
    from torch_geometric.data import Data

    from gstarx.gnn import GNNGame
    from gstarx.models import GCN, GIN

    n, generator = graph.num_nodes, np.random.default_rng(seed)
    ends = torch.from_numpy(np.vstack([graph.edges, graph.edges[:, ::-1]])).T
    x = torch.from_numpy(np.eye(5, dtype=np.float32)[generator.integers(5, size=n)])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        models = (GCN(5, 32, 2), GIN(5, 32, 2, readout="max"))
        data = Data(x=x.double(), edge_index=ends)
        gcn, gin = (GNNGame(model.double(), data) for model in models)
    own, slope, wave = generator.normal(size=(3, n))
    i, j = graph.edges[generator.integers(len(graph.edges))]

    def worth(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        members = coalitions.astype(np.float64)
        sigmoid = 1 / (1 + np.exp(-4 / np.sqrt(n) * members @ own))
        smooth = np.tanh(members @ slope / 2) * (1 + 0.5 * np.sin(members @ wave))
        pair = coalitions[:, i] & coalitions[:, j]
        planted = pair + np.tanh(members @ own / n)
        return np.stack([gcn(coalitions), gin(coalitions), sigmoid, smooth, planted], axis=1)

    return worth


def shares_covered(
    value: str, graph: str, n: int, per_player: int, *, network_games: bool = False
) -> NDArray[np.float64]:
    """How many true values lie within two standard errors, over players and seeds, by game."""
    drawn = graph_of(graph, n, network_games)
    estimators: dict[str, Callable[..., Allocation]] = {
        "shapley": lambda v, **options: shapley_value_sampled(v, n, **options),
        "banzhaf": lambda v, **options: banzhaf_value_sampled(v, n, **options),
        "myerson": lambda v, **options: myerson_value_sampled(v, drawn, **options),
        "hn": lambda v, **options: hn_value_growth_sampled(v, drawn, **options),
    }
    kind, _, side = value.partition(", ")
    budget = per_player * n // (2 if side else 1)
    inside = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        game, truth, spread = truths(value, graph, n, network_games)
        for seed in seeds_of(value, n):
            estimate = estimators[kind](game, budget=budget, seed=seed)
            both = np.sqrt(estimate.std_error**2 + spread**2)
            inside.append(np.abs(estimate.values - truth) <= 2 * both + 1e-9)
    shares: NDArray[np.float64] = np.mean(inside, axis=(0, 1)).reshape(-1)
    return shares


@cache
def truths(
    value: str, graph: str, n: int, network_games: bool
) -> tuple[Game, NDArray[np.float64], NDArray[np.float64]]:
    """The games, their values, and the standard errors of these if they are from long runs."""
    drawn = graph_of(graph, n, network_games)
    kind, _, side = value.partition(", ")
    game, known = interaction_game(n, seed=0, graph=drawn)
    if not side and kind != "hn" and not network_games:
        return game, known.banzhaf if kind == "banzhaf" else known.shapley, np.zeros(n)
    if network_games:
        game = networks(drawn, seed=0)
    if side:
        game = self_dual(game)
    if drawn.count_connected_coalitions(_LISTED) <= _LISTED:
        exact = _EXACT[kind](game, drawn).values
        return game, exact, np.zeros_like(exact)
    budget = _LONG * n // (2 if side else 1)
    runs = [_SAMPLED[kind](game, drawn, budget=budget, seed=1_000 + seed) for seed in range(4)]
    errors = np.array([run.std_error for run in runs])
    mean = np.mean([run.values for run in runs], axis=0)
    return game, mean, np.sqrt((errors**2).mean(axis=0) / 4)


def main() -> None:
    print("| games | graph | nodes | " + " | ".join((*VALUES, *TWO_SIDED)) + " |")
    print("|---|---|---:|" + "---:|" * len((*VALUES, *TWO_SIDED)))
    for network_games, sizes in ((False, PLAYERS), (True, NETWORK_PLAYERS)):
        for graph in GRAPHS:
            for n in sizes:
                cells = []
                for value in (*VALUES, *TWO_SIDED):
                    if network_games and value in ("shapley", "banzhaf"):
                        cells.append("–")
                        continue
                    shares = [
                        shares_covered(value, graph, n, per_player, network_games=network_games)
                        for per_player in PER_PLAYER
                    ]
                    cells.append(" / ".join(map(percent, shares)))
                games = "networks and others" if network_games else "sums"
                print(f"| {games} | {graph} | {n} | " + " | ".join(cells) + " |", flush=True)


def percent(shares: NDArray[np.float64]) -> str:
    """The mean of several games, and the least of them.

    >>> percent(np.array([0.95, 0.85])), percent(np.array([0.951]))
    ('90.0 (85.0)', '95.1')
    """
    least = f" ({100 * shares.min():.1f})" if len(shares) > 1 else ""
    return f"{100 * shares.mean():.1f}{least}"
