"""The growth sampler where the connected coalitions cannot be listed, against a long run.

The long run has 20 times the budget and another seed. Error as elsewhere: RMSE over the standard
deviation of the values.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.growth_accuracy import relative_error
from benchmarks.molecules import MessagePassingGame, molecule
from gstarx.values import hn_value_growth_sampled, hn_value_subgraph_sampled

_MANY = 10**9


def main() -> None:
    generator = np.random.default_rng(0)
    for atoms in (34, 42, 50):
        graph = molecule(generator, atoms)
        count = graph.count_connected_coalitions(_MANY)
        game = MessagePassingGame(graph, seed=atoms)
        long = hn_value_growth_sampled(game, graph, budget=100_000, seed=99)
        shown = f"more than {_MANY:,}" if count > _MANY else f"{count:,}"
        trust = np.sqrt(np.mean(long.std_error**2)) / long.values.std()
        print(
            f"{graph.num_nodes} atoms, {shown} coalitions; long run of {long.evaluations:,} "
            f"evaluations, own standard error {trust:.3f}"
        )
        for budget in (1_000, 5_000, 20_000):
            errors, covered, seconds = [], [], []
            for seed in range(3):
                start = time.process_time()
                result = hn_value_growth_sampled(game, graph, budget=budget, seed=seed)
                seconds.append(time.process_time() - start)
                errors.append(relative_error(result.values, long.values))
                both = np.sqrt(result.std_error**2 + long.std_error**2)
                covered.append(np.mean(np.abs(result.values - long.values) <= 2 * both))
            print(
                f"  {budget:6,} evaluated: error {np.mean(errors):.3f}, within two standard errors "
                f"{np.mean(covered):.0%}, {np.mean(seconds):.1f} CPU s with the game"
            )
        other = hn_value_subgraph_sampled(game, graph, seed=0, num_samples=20 * graph.num_nodes)
        error = relative_error(other.values, long.values)
        print(f"  Algorithm 3 with {other.evaluations:,} evaluated: error {error:.3f}", flush=True)
