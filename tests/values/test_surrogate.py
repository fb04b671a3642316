"""The stand-in for a game: its features, its fit, and its Myerson value."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import random_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph
from gstarx.values import myerson_value, surrogate
from gstarx.values.surrogate import Features, Surrogate, two_edge_paths
from tests.oracles import as_networkx
from tests.strategies import graphs
from tests.values.definitions import Numbers, molecule, path, ring

STAR = CommunicationGraph(4, [(0, 1), (0, 2), (0, 3)])


def features_of(graph: CommunicationGraph, *, shares: bool, patterns: int = 3) -> Features:
    """Nodes, edges and two-edge paths, or only the first of these."""
    everything = (np.arange(graph.num_nodes)[:, None], graph.edges, two_edge_paths(graph))
    return Features(graph.num_nodes, everything[:patterns], shares)


# features


@settings(max_examples=50)
@given(graphs(max_nodes=7))
def test_every_path_of_two_edges_once(graph: CommunicationGraph) -> None:
    other = as_networkx(graph)
    expected = {
        (frozenset({i, j}), middle)
        for middle in other
        for i in other[middle]
        for j in other[middle]
        if i < j
    }
    found = two_edge_paths(graph)
    assert found.shape == (len(expected), 3)
    assert {(frozenset({int(i), int(j)}), int(m)) for i, m, j in found} == expected


def test_features_count_what_lies_inside() -> None:
    coalitions = STAR.connected_coalitions()
    masks = CoalitionLattice.of(STAR).masks
    plain = features_of(STAR, shares=False)
    found = plain.of(masks)
    assert found.shape == (len(masks), plain.width) == (11, 4 + 3 + 3)
    np.testing.assert_array_equal(found[:, :4], coalitions)
    for column, (i, j) in enumerate(STAR.edges):
        np.testing.assert_array_equal(found[:, 4 + column], coalitions[:, i] & coalitions[:, j])
    assert plain.free == 4


def test_shares_are_counts_by_size() -> None:
    masks = CoalitionLattice.of(STAR).masks
    sizes = STAR.connected_coalitions().sum(axis=1)
    both = features_of(STAR, shares=True)
    found = both.of(masks)
    half = both.width // 2
    assert found.shape == (11, 2 * 11)
    np.testing.assert_array_equal(found[:, 0], 1)
    np.testing.assert_array_equal(found[:, 1:half], features_of(STAR, shares=False).of(masks))
    np.testing.assert_allclose(found[:, half:], found[:, :half] / sizes[:, None])
    assert both.free == 5


def test_more_rows_carry_more_features() -> None:
    graph = molecule(20, seed=1)
    chosen = [Features.choose(graph, rows) for rows in (1, 50, 500, 2000, 10**6)]
    assert [len(features.patterns) for features in chosen] == sorted(
        len(features.patterns) for features in chosen
    )
    assert len(chosen[0].patterns) == 1
    assert len(chosen[-1].patterns) == 3
    for features, rows in zip(chosen[1:], (50, 500, 2000, 10**6), strict=True):
        if len(features.patterns) > 1:
            assert features.width <= rows / 5
    assert not Features.choose(graph, 500, shares=False).shares


def test_a_crowded_graph_does_without_paths() -> None:
    crowded = CommunicationGraph.complete(40)
    assert len(Features.choose(crowded, 10**6).patterns) == 1
    assert Features.choose(crowded, 10**6).width == 2 * 41
    assert len(Features.choose(CommunicationGraph.complete(12), 10**6).patterns) == 2


def test_no_edges_and_no_nodes() -> None:
    assert two_edge_paths(CommunicationGraph(0)).shape == (0, 3)
    assert two_edge_paths(CommunicationGraph(3)).shape == (0, 3)
    assert Features.choose(CommunicationGraph(3), 1000).of(np.array([[5]], np.uint64)).shape == (
        1,
        8,
    )


# the fit


def test_worths_made_of_features_are_found() -> None:
    graph = ring(8)
    masks = CoalitionLattice.of(graph).masks
    features = features_of(graph, shares=True, patterns=2)
    design = features.of(masks)
    generator = np.random.default_rng(0)
    worths = design @ generator.normal(size=(features.width, 2))
    fitted = Surrogate.fit(features, masks, worths, np.ones(len(masks)))
    # the penalty bends a little
    assert np.abs(fitted.predict(masks) - worths).max() < 0.2 * worths.std()


@settings(max_examples=30)
@given(graphs(min_nodes=1, max_nodes=7), st.booleans(), st.integers(0, 2**32))
def test_additive_worths_are_reproduced_from_few_rows(
    graph: CommunicationGraph, shares: bool, seed: int
) -> None:
    lattice = CoalitionLattice.of(graph)
    generator = np.random.default_rng(seed)
    own = generator.normal(size=(graph.num_nodes, 2))
    worths = lattice.coalitions() @ own
    rows = np.union1d(np.arange(graph.num_nodes), lattice.tops)
    importance = 10.0 ** generator.uniform(-3, 3, len(rows))
    features = features_of(graph, shares=shares)
    fitted = Surrogate.fit(features, lattice.masks[rows], worths[rows], importance)
    np.testing.assert_allclose(fitted.predict(lattice.masks), worths, rtol=0, atol=1e-8)
    np.testing.assert_allclose(fitted.residuals, 0, rtol=0, atol=1e-8)


def explicit_fit(design: Numbers, worths: Numbers, weight: Numbers, penalty: Numbers) -> Numbers:
    """Ridge regression as a least-squares problem, solved without normal equations."""
    rows = np.vstack([design * np.sqrt(weight)[:, None], np.diag(np.sqrt(penalty))])
    aims = np.vstack([worths * np.sqrt(weight)[:, None], np.zeros((len(penalty), worths.shape[1]))])
    return np.asarray(np.linalg.lstsq(rows, aims, rcond=None)[0])


def test_the_leverage_tells_the_residual_under_a_fit_without_the_row() -> None:
    graph = molecule(9, seed=2)
    lattice = CoalitionLattice.of(graph)
    generator = np.random.default_rng(1)
    rows = np.sort(generator.choice(len(lattice), 70, replace=False))
    masks = lattice.masks[rows]
    worths = random_game(9, seed=0, q=2)(lattice.coalitions(rows))
    importance = generator.uniform(0.1, 3, 70)
    features = features_of(graph, shares=True, patterns=2)
    fitted = Surrogate.fit(features, masks, worths, importance)
    design = features.of(masks)
    weight = importance / importance.mean()
    penalty = np.full(features.width, surrogate._PENALTY * 70)
    penalty[: features.free] = 1e-9 * 70
    np.testing.assert_allclose(
        fitted.predict(masks),
        design @ explicit_fit(design, worths, weight, penalty),
        rtol=0,
        atol=1e-5,
    )
    for row in range(0, 70, 5):
        kept = np.arange(70) != row
        without = explicit_fit(design[kept], worths[kept], weight[kept], penalty)
        left_out = fitted.residuals[row] / (1 - fitted.leverage[row])
        np.testing.assert_allclose(
            left_out, worths[row] - design[row] @ without, rtol=1e-3, atol=1e-5
        )


def test_importance_decides_what_is_fitted_best() -> None:
    graph = path(8)
    lattice = CoalitionLattice.of(graph)
    worths = random_game(8, seed=3, q=1)(lattice.coalitions())
    features = features_of(graph, shares=False, patterns=1)
    rows = np.arange(len(lattice))
    large = np.where(rows % 2 == 0, 100.0, 1.0)
    even = Surrogate.fit(features, lattice.masks, worths, large).predict(lattice.masks) - worths
    odd = (
        Surrogate.fit(features, lattice.masks, worths, 101 - large).predict(lattice.masks) - worths
    )
    assert (even[::2] ** 2).sum() < (odd[::2] ** 2).sum()
    assert (even[1::2] ** 2).sum() > (odd[1::2] ** 2).sum()
    scaled = Surrogate.fit(features, lattice.masks, worths, 7 * large)
    np.testing.assert_allclose(scaled.predict(lattice.masks) - worths, even, rtol=0, atol=1e-9)


def test_predictions_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = molecule(9, seed=2)
    lattice = CoalitionLattice.of(graph)
    worths = random_game(9, seed=0, q=2)(lattice.coalitions())
    fitted = Surrogate.fit(
        features_of(graph, shares=True), lattice.masks, worths, np.ones(len(lattice))
    )
    whole = fitted.predict(lattice.masks)
    monkeypatch.setattr(surrogate, "_CELLS", 7 * fitted.features.width)
    np.testing.assert_allclose(fitted.predict(lattice.masks), whole, rtol=0, atol=1e-12)


# its value


@settings(max_examples=30)
@given(graphs(min_nodes=1, max_nodes=7), st.integers(1, 3), st.integers(0, 2**32))
def test_shared_equally_is_the_myerson_value(
    graph: CommunicationGraph, patterns: int, seed: int
) -> None:
    features = features_of(graph, shares=False, patterns=patterns)
    coefficients = np.random.default_rng(seed).normal(size=(features.width, 2))
    stand_in = Surrogate(features, coefficients)
    lattice = CoalitionLattice.of(graph)
    worths = {
        row.tobytes(): w
        for row, w in zip(lattice.coalitions(), stand_in.predict(lattice.masks), strict=True)
    }
    exact = myerson_value(lambda c: np.array([worths[row.tobytes()] for row in c]), graph)
    np.testing.assert_allclose(stand_in.shared_equally(), exact.values, rtol=0, atol=1e-11)


def test_the_patterns_are_connected() -> None:
    graph = molecule(12, seed=5)
    other = as_networkx(graph)
    for nodes in two_edge_paths(graph):
        assert nx.is_connected(other.subgraph(nodes.tolist()))


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=7), st.booleans(), st.integers(0, 3), st.integers(0, 2**32))
def test_predictions_from_a_table(
    graph: CommunicationGraph, shares: bool, divided: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    everything = features_of(graph, shares=shares).patterns
    features = Features(graph.num_nodes, everything, shares, divided)
    fitted = Surrogate(features, rng.normal(size=(features.width, 2)))
    masks = np.arange(1, 2**graph.num_nodes, dtype=np.uint64)[:, None]
    expected = features.of(masks) @ fitted.coefficients
    np.testing.assert_allclose(fitted.predict(masks), expected, atol=1e-9)
    np.testing.assert_allclose(fitted.predict(masks[:1]), expected[:1], atol=1e-9)
