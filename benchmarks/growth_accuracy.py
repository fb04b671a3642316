"""Error of the growth sampler and of the paper's Algorithm 3 at equal numbers of evaluations.

Error: RMSE over the standard deviation of the exact values, per graph; mean over graphs and 10
seeds. The games are message-passing networks with random weights on molecule-like graphs.
Algorithm 3 draws subsets of ten nodes, with exact values inside, until it has evaluated at least as
many coalitions (or 60 subsets per node, where it runs out of new ones).
"""

from __future__ import annotations

import numpy as np

from benchmarks.molecules import MessagePassingGame, Recorded, molecules_with
from gstarx.games import Game
from gstarx.graphs import CommunicationGraph
from gstarx.values import hn_value, hn_value_growth_sampled, hn_value_subgraph_sampled

SEEDS = range(10)
SHARES = (0.02, 0.05, 0.1, 0.2)


def relative_error(values: np.ndarray, exact: np.ndarray) -> float:
    return float(np.sqrt(np.mean((values - exact) ** 2)) / exact.std())


def algorithm_3(game: Game, graph: CommunicationGraph, evaluations: int, seed: int) -> tuple:
    """Algorithm 3 with the fewest subsets (in steps of n) that use up the evaluations."""
    for rounds in (1, 2, 4, 8, 15, 30, 60):
        result = hn_value_subgraph_sampled(
            game, graph, num_samples=rounds * graph.num_nodes, seed=seed
        )
        if result.evaluations >= evaluations:
            break
    return result.values, result.evaluations


def report(name: str, cases: list[tuple[CommunicationGraph, Recorded]]) -> None:
    counts = [len(game.masks) for _, game in cases]
    print(f"{name}: {len(cases)} graphs, {min(counts):,} to {max(counts):,} coalitions")
    for share in SHARES:
        ours, covered, theirs, used = [], [], [], []
        for graph, game in cases:
            exact = hn_value(game, graph).values
            budget = int(share * len(game.masks))
            if budget < graph.num_nodes:
                continue
            for seed in SEEDS:
                result = hn_value_growth_sampled(game, graph, budget=budget, seed=seed)
                ours.append(relative_error(result.values, exact))
                covered.append(np.mean(np.abs(result.values - exact) <= 2 * result.std_error))
                if seed < 3:
                    values, spent = algorithm_3(game, graph, result.evaluations, seed)
                    theirs.append(relative_error(values, exact))
                    used.append(spent / len(game.masks))
        if ours:
            print(
                f"  {share:4.0%} evaluated: growth {np.mean(ours):.4f} (median "
                f"{np.median(ours):.4f}, worst {np.max(ours):.3f}), within two standard errors "
                f"{np.mean(covered):.1%}; "
                f"Algorithm 3 {np.mean(theirs):.3f} at {np.mean(used):.0%}",
                flush=True,
            )


def main() -> None:
    for readout in ("mean", "max"):
        graphs = molecules_with(20, fewest=1_000, most=100_000, atoms=(12, 25), seed=0)
        cases = [
            (graph, Recorded.of(MessagePassingGame(graph, seed=seed, readout=readout), graph))
            for seed, graph in enumerate(graphs)
        ]
        report(f"{readout} readout", cases)
    graphs = molecules_with(20, fewest=100, most=999, atoms=(8, 14), seed=1)
    small = [(g, Recorded.of(MessagePassingGame(g, seed=s), g)) for s, g in enumerate(graphs)]
    report("mean readout, smaller graphs", small)
