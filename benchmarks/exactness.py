"""Closed form against converged iteration, and efficiency on larger graphs."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.molecules import molecules_with
from gstarx.games import random_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import ConvergenceWarning, hn_value, hn_value_iterated


def random_connected(generator: np.random.Generator, n: int) -> CommunicationGraph:
    """A random tree with random edges on top, from sparse to complete."""
    tree = [(int(generator.integers(i)), i) for i in range(1, n)]
    extra = np.argwhere(np.triu(generator.random((n, n)) < generator.random() ** 2, 1))
    return CommunicationGraph(n, tree + extra.tolist())


def main() -> None:
    generator = np.random.default_rng(0)
    worst = 0.0
    for seed in range(200):
        n = int(generator.integers(2, 10))
        graph = random_connected(generator, n)
        game = random_game(n, seed=seed)
        with warnings.catch_warnings():
            # the tolerance is at the edge of what rounding allows; equality is checked below
            warnings.simplefilter("ignore", ConvergenceWarning)
            limit = hn_value_iterated(game, graph, tau=1 / n, max_squarings=16, tol=1e-13)
        worst = max(worst, float(np.abs(limit.values - hn_value(game, graph).values).max()))
    print(
        f"200 random connected graphs, 2-9 nodes: closed form = converged iteration to {worst:.1e}"
    )
    gaps = []
    graphs = molecules_with(10, fewest=20_000, most=200_000, atoms=(20, 27), seed=1)
    for seed, graph in enumerate(graphs):
        result = hn_value(random_game(graph.num_nodes, seed=seed), graph)
        gaps.append((result.evaluations, graph.num_nodes, result.residual))
    most, nodes, gap = (max(column) for column in zip(*gaps, strict=True))
    print(f"10 graphs up to {nodes} nodes and {most:,} coalitions: efficiency to {gap:.1e}")
