"""Arrival times of growth, against sums over all coalitions."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx.graphs import CommunicationGraph
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values import hn_value
from gstarx.values.hn.arrival_times import BATCHES, ArrivalTimes
from gstarx.values.hn.closed_form import growth_weights
from gstarx.values.surrogate import Features, Surrogate
from tests.pairs import for_each
from tests.values.definitions import molecule, path, ring

GRAPHS = (path(6), ring(7), molecule(10, seed=2), CommunicationGraph.complete(5))


@pytest.mark.parametrize("graph", GRAPHS)
def test_mean_times_are_sums_of_growth_weights(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    members = lattice.coalitions().astype(np.float64)
    weights = growth_weights(lattice) / graph.degrees
    times = ArrivalTimes.sample(graph, 64 * BATCHES, np.random.default_rng(0))
    for found, exact in (
        (times.inside, weights.T @ members),
        (times.sizes[:, :, 0], weights.sum(axis=0)),
        (times.sizes[:, :, 1], weights.T @ (1 / members.sum(axis=1))),
    ):
        error = found.std(axis=0, ddof=1) / np.sqrt(BATCHES)
        assert (np.abs(found.mean(axis=0) - exact) <= 5 * error + 1e-6).all()
        assert error.max() < 0.06 * np.abs(exact).max()


@for_each("graph", [path(6), molecule(10, seed=2), CommunicationGraph.complete(5)])
@for_each("shares", [True, False])
def test_values_of_surrogates_are_those_of_the_closed_form(
    graph: CommunicationGraph, shares: bool
) -> None:
    generator = np.random.default_rng(1)
    features = Features.choose(graph, 10**5, shares=shares)
    assert len(features.patterns) == 3
    coefficients = generator.normal(size=(features.width, 2))
    surrogate = Surrogate(features, coefficients)
    masks = CoalitionLattice.of(graph).masks
    rows = {mask.tobytes(): i for i, mask in enumerate(masks)}
    worths = surrogate.predict(masks)

    def game(coalitions: np.ndarray) -> np.ndarray:
        from gstarx.graphs.bitmasks import pack

        return worths[[rows[mask.tobytes()] for mask in pack(coalitions)]]

    exact = hn_value(game, graph).values
    times = ArrivalTimes.sample(graph, 256 * BATCHES, generator)
    of_features = times.feature_values(features, np.arange(graph.num_nodes))
    values, variance = of_features.values @ coefficients, of_features.variance(surrogate)
    assert (np.abs(values - exact) <= 5 * np.sqrt(variance) + 1e-9).all()
    assert np.sqrt(variance).max() < 0.2 * exact.std()
    np.testing.assert_allclose(values.sum(axis=0), worths[-1], rtol=0, atol=1e-8)


def test_cliques_share_equally_without_any_error() -> None:
    graph = CommunicationGraph.complete(5)
    features = Features.choose(graph, 10**5, shares=False)
    coefficients = np.random.default_rng(0).normal(size=(features.width, 1))
    surrogate = Surrogate(features, coefficients)
    times = ArrivalTimes.sample(graph, 4 * BATCHES, np.random.default_rng(0))
    of_features = times.feature_values(features, np.arange(5))
    values, variance = of_features.values @ coefficients, of_features.variance(surrogate)
    np.testing.assert_allclose(values, surrogate.shared_equally(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(variance, 0, atol=1e-20)


def test_single_nodes_keep_their_worth_without_any_error() -> None:
    # all that a surrogate of very many nodes has
    graph = path(6)
    features = Features(6, (np.arange(6)[:, None],), shares=True, divided=0)
    times = ArrivalTimes.sample(graph, 4 * BATCHES, np.random.default_rng(0))
    of_features = times.feature_values(features, np.arange(6))
    np.testing.assert_allclose(of_features.values[:, 1:7], np.eye(6), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(of_features.varying, [0, 7])
    # a constant and one over the size, of the whole component
    np.testing.assert_allclose(of_features.values[:, [0, 7]].sum(axis=0), [1, 1 / 6], atol=1e-9)
