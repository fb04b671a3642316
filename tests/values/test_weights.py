"""The matrix from worths to values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import random_game
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.values import coalition_weights, hn_value, myerson_value
from tests.oracles import as_sets
from tests.strategies import graphs
from tests.values.definitions import path, ring

VALUES = {"hn": hn_value, "myerson": myerson_value}


@settings(max_examples=40)
@given(graphs(max_nodes=7), st.sampled_from(sorted(VALUES)), st.integers(0, 2**32))
def test_weights_times_worths_are_values(graph: CommunicationGraph, value: str, seed: int) -> None:
    game = random_game(graph.num_nodes, seed=seed, q=2)
    coalitions = graph.connected_coalitions()
    weights = coalition_weights(graph, value=value)
    assert weights.shape == (graph.num_nodes, len(coalitions))
    if graph.num_nodes:
        expected = VALUES[value](game, graph).values
        np.testing.assert_allclose(weights @ game(coalitions), expected, rtol=0, atol=1e-11)


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=7), st.sampled_from(sorted(VALUES)))
def test_weights_are_efficient_and_keep_additive_games(
    graph: CommunicationGraph, value: str
) -> None:
    weights = coalition_weights(graph, value=value)
    coalitions = graph.connected_coalitions()
    whole = [nodes in {frozenset(c) for c in graph.components} for nodes in as_sets(coalitions)]
    np.testing.assert_allclose(
        weights.sum(axis=0), np.array(whole, dtype=float), rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(weights @ coalitions, np.eye(graph.num_nodes), rtol=0, atol=1e-11)


def test_hn_is_the_default_and_its_rows_on_the_path_of_three() -> None:
    sets = as_sets(path(3).connected_coalitions())
    weights = dict(zip(sets, coalition_weights(path(3)).T, strict=True))
    np.testing.assert_allclose(
        weights[frozenset({0, 1, 2})], [1 / 4, 1 / 2, 1 / 4], rtol=0, atol=1e-15
    )
    np.testing.assert_allclose(weights[frozenset({0})], [1 / 2, -1 / 2, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(weights[frozenset({1})], [-1 / 4, 1 / 2, -1 / 4], rtol=0, atol=1e-15)
    np.testing.assert_allclose(weights[frozenset({0, 1})], [1 / 4, 0, -1 / 4], rtol=0, atol=1e-15)


def test_hn_and_myerson_differ() -> None:
    hn, myerson = (coalition_weights(ring(5), value=value) for value in VALUES)
    assert np.abs(hn - myerson).max() > 0.01


@pytest.mark.parametrize(
    ("value", "sampler"),
    [("hn", "hn_value_growth_sampled"), ("myerson", "myerson_value_sampled")],
)
def test_too_many_coalitions_name_the_sampler(value: str, sampler: str) -> None:
    with pytest.raises(TooManyCoalitions, match=rf"the limit is 5: .* estimate with {sampler}"):
        coalition_weights(path(3), value=value, max_coalitions=5)
    assert coalition_weights(path(3), value=value, max_coalitions=6).shape == (3, 6)


@pytest.mark.parametrize("value", ["shapley", "HN", None])
def test_an_unknown_value(value: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"value must be one of 'hn', 'myerson' \(got {value!r}\)"
    ):
        coalition_weights(path(3), value=value)
