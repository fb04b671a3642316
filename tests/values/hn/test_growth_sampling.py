"""The consistent estimate of the HN value, where coalitions are listed and where they cannot be.

What it shares with the other samplers is in ``tests/values/test_samplers.py``.
"""

from __future__ import annotations

from contextlib import nullcontext

import networkx as nx
import numpy as np
import pytest

from gstarx.games import Game, additive_game, random_game, self_dual
from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import unpack
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values import (
    PrecisionError,
    PrecisionWarning,
    hn_value,
    hn_value_growth_sampled,
    hn_value_subgraph_sampled,
)
from gstarx.values.hn import growth_sampling
from gstarx.values.hn.closed_form import growth_weights
from gstarx.values.hn.growth_draws import GrowthDraws
from gstarx.values.hn.small_coalitions import SmallCoalitions
from gstarx.values.surrogate import two_edge_paths
from tests.values.definitions import (
    Counting,
    Numbers,
    molecule,
    path,
    relabeled,
    renamed,
    ring,
    smooth_game,
    tree,
)

#: So many coalitions that they are drawn unless listed, and few enough to know the value.
DRAWN = (
    molecule(18, seed=3, chords=4),
    molecule(20, seed=1, chords=4),
    CommunicationGraph.from_networkx(nx.grid_2d_graph(4, 4)),
)


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly anything is listed: all coalitions but the smallest are drawn."""
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 0)
    monkeypatch.setattr(growth_sampling, "_KNOWN_PER_EVALUATION", 0.05)
    monkeypatch.setattr(growth_sampling, "_GROWN_FOR", 500)


def gather(
    graph: CommunicationGraph, game: Game, spend: int, seeds: int
) -> tuple[Numbers, Numbers]:
    exact = hn_value(game, graph).values
    found = [hn_value_growth_sampled(game, graph, budget=spend, seed=s) for s in range(seeds)]
    errors = np.array([one.values - exact for one in found])
    return errors / exact.std(), np.array([one.std_error for one in found]) / exact.std()


# grown where the exact value is known


@pytest.mark.usefixtures("unlisted")
def test_drawn_coalitions_bring_close_and_standard_errors_cover() -> None:
    off, small, large = [], [], []
    for graph in DRAWN:
        game = smooth_game(graph.num_nodes, seed=2)
        errors, std_errors = gather(graph, game, 20 * graph.num_nodes, 12)
        off.append((np.abs(errors) / std_errors).ravel())
        small.append(np.sqrt((errors**2).mean()))
        large.append(np.sqrt((gather(graph, game, 60 * graph.num_nodes, 6)[0] ** 2).mean()))
    pooled = np.concatenate(off)
    assert 0.85 < (pooled <= 2).mean() < 0.998
    assert (pooled <= 4).mean() > 0.98
    assert np.mean(large) < 0.7 * np.mean(small) < 0.15


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@pytest.mark.parametrize("per_node", [4, 10])
def test_standard_errors_of_both_sides_are_not_too_wide(per_node: int) -> None:
    graph = molecule(20, seed=4)
    game = self_dual(smooth_game(20, seed=2, q=6))
    # complements count: half as many coalitions, and hardly more of them than features
    errors, std_errors = gather(graph, game, 20 * per_node // 2, 12)
    assert 0.9 < (np.abs(errors) <= 2 * std_errors).mean() < 0.99
    if per_node == 10:
        assert 0.85 < np.sqrt((std_errors**2).mean() / (errors**2).mean()) < 1.25


@pytest.mark.usefixtures("unlisted")
@pytest.mark.filterwarnings("ignore:hn. the standard errors:gstarx.values.PrecisionWarning")
@pytest.mark.parametrize("graph", DRAWN)
def test_drawing_keeps_the_budget_and_what_is_certain(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    counting = Counting(random_game(n, seed=0))
    found = hn_value_growth_sampled(counting, graph, budget=200, seed=1)
    assert found.evaluations == counting.distinct == 200
    assert found.residual < 1e-10
    asked = {frozenset(np.flatnonzero(np.frombuffer(row, np.bool_))) for row in counting.asked}
    assert {frozenset({i}) for i in range(n)} | {frozenset(range(n))} <= asked
    own = np.random.default_rng(0).normal(size=n)
    for spend in (n, n + 3, 5 * n):
        # a budget of no more than the nodes leaves nothing to measure errors with
        told = (
            pytest.warns(PrecisionWarning, match="are nan; from") if spend == n else nullcontext()
        )
        with told:
            additive = hn_value_growth_sampled(additive_game(own), graph, budget=spend, seed=2)
        np.testing.assert_allclose(additive.values, own, rtol=0, atol=1e-8)


@pytest.mark.parametrize("graph", DRAWN)
def test_drawn_coalitions_weigh_what_all_larger_ones_do(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    lattice = CoalitionLattice.of(graph)
    sizes = lattice.coalitions().sum(axis=1)
    generator = np.random.default_rng(0)
    known = SmallCoalitions.within(graph, 30)
    draws = GrowthDraws(graph, known, generator)
    masks, weights = growth_sampling._drawn(draws, np.eye(n), 20_000, generator)
    found = unpack(masks, n)
    assert {*found.sum(axis=1)} == {*range(known.size + 1, n)}
    exact = growth_weights(lattice) / graph.degrees
    larger = (sizes > known.size) & (sizes < n)
    truth = exact[larger].T @ lattice.coalitions()[larger]
    np.testing.assert_allclose(weights.T @ found, truth, rtol=0.05, atol=0.02 * truth.max())


def test_clocks_show_in_the_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # the surrogate knows this game, which leaves the rounds of clocks as the only error
    graph = DRAWN[1]
    paths = two_edge_paths(graph)

    def game(coalitions: np.ndarray) -> Numbers:
        return np.asarray(coalitions[:, paths].all(axis=2) @ np.cos(np.arange(len(paths))))

    listed, _ = gather(graph, game, 1500, 4)
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 0)
    monkeypatch.setattr(growth_sampling, "_KNOWN_PER_EVALUATION", 0.05)
    errors, std_errors = gather(graph, game, 1500, 8)
    # the penalty keeps the surrogate from knowing it altogether
    assert 2 * np.abs(listed).mean() < np.abs(errors).mean() < 0.1
    assert 0.8 < (np.abs(errors) <= 2 * std_errors).mean() < 0.999


# lists and draws side by side


def test_listable_and_unlistable_components_mix() -> None:
    # a path of nine, a grid of 36 that nobody lists, a pair, and a node on its own
    grid = CommunicationGraph.from_networkx(nx.grid_2d_graph(6, 6))
    edges = [
        *path(9).edges.tolist(),
        *(9 + grid.edges).tolist(),
        (45, 46),
    ]
    graph = CommunicationGraph(48, edges)
    label = np.random.default_rng(1).permutation(48).tolist()
    game = smooth_game(48, seed=3)
    counting = Counting(renamed(game, label))
    found = hn_value_growth_sampled(counting, relabeled(graph, label), budget=700, seed=0)
    values, std_error = found.values[label], found.std_error[label]
    assert found.evaluations == counting.distinct == 700
    assert found.residual < 1e-10
    # the share of the path covers its 45 coalitions
    small = hn_value(lambda c: game(np.pad(c, ((0, 0), (0, 39)))), path(9)).values
    np.testing.assert_allclose(values[:9], small, rtol=0, atol=1e-9)
    assert std_error[9:45].mean() > 0
    everyone = np.eye(48, dtype=bool)
    pair = everyone[[45]] | everyone[[46]]
    half = (game(pair)[0] - game(everyone[45:47]).sum()) / 2
    np.testing.assert_allclose(values[45:47], game(everyone[45:47]) + half, rtol=0, atol=1e-9)
    np.testing.assert_allclose(values[47], game(everyone[47:])[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(std_error[[*range(9), 45, 46, 47]], 0, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("unlisted")
def test_every_component_grown_on_its_own() -> None:
    graph = CommunicationGraph(
        16, [*molecule(10, seed=1).edges.tolist(), (10, 11), (11, 12), (12, 13), (13, 10), (10, 14)]
    )
    game = smooth_game(16, seed=5)
    errors, std_errors = gather(graph, game, 120, 10)
    assert (np.abs(errors) <= 4 * std_errors + 1e-9).mean() > 0.97
    np.testing.assert_allclose(errors[:, 15], 0, rtol=0, atol=1e-9)


# graphs that cannot be listed


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(tree(60, seed=2), id="tree of 60"),
        pytest.param(CommunicationGraph.complete(40), id="complete graph of 40"),
        pytest.param(molecule(70, seed=1, chords=6), id="molecule of 70"),
    ],
)
def test_a_graph_nobody_can_list(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    assert graph.count_connected_coalitions(10**6) > 10**6
    counting = Counting(smooth_game(n, seed=1, q=2))
    found = hn_value_growth_sampled(counting, graph, budget=4 * n, seed=0)
    # coalitions of a complete graph are drawn in pairs, which may leave one over
    assert found.evaluations == counting.distinct
    assert 4 * n - 1 <= counting.distinct <= 4 * n
    assert found.values.shape == found.std_error.shape == (n, 2)
    assert found.residual < 1e-9
    assert np.isfinite(found.values).all()
    assert (found.std_error >= 0).all()
    assert not found.exact


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("graph", [path(120), ring(110)])
def test_more_than_a_hundred_nodes(
    graph: CommunicationGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    # coalitions of up to 16 nodes are known, larger ones drawn
    monkeypatch.setattr(growth_sampling, "_KNOWN_PER_EVALUATION", 1.5)
    n = graph.num_nodes
    game = smooth_game(n, seed=1)
    found = hn_value_growth_sampled(game, graph, budget=30 * n, seed=0)
    exact = hn_value(game, graph).values
    assert found.evaluations == 30 * n
    assert found.residual < 1e-9
    assert np.sqrt(((found.values - exact) ** 2).mean()) < 0.5 * exact.std()
    assert (np.abs(found.values - exact) <= 4 * found.std_error + 1e-9).mean() > 0.95


def test_on_a_complete_graph_it_estimates_the_shapley_value() -> None:
    # everybody counts the same, and a million coalitions are too many to list
    n = 20
    found = hn_value_growth_sampled(
        lambda c: (c.sum(axis=1) / n) ** 2, CommunicationGraph.complete(n), budget=1200, seed=0
    )
    np.testing.assert_allclose(found.values, 1 / n, rtol=0, atol=0.3 / n)


# against the paper's scheme


def test_it_is_closer_than_subgraphs_with_as_many_evaluations() -> None:
    ours, theirs = [], []
    for graph in DRAWN:
        for seed in range(3):
            game = smooth_game(graph.num_nodes, seed=seed)
            exact = hn_value(game, graph).values
            subgraphs = hn_value_subgraph_sampled(game, graph, max_sample_size=10, seed=seed)
            grown = hn_value_growth_sampled(game, graph, budget=subgraphs.evaluations, seed=seed)
            ours.append(((grown.values - exact) ** 2).mean() / exact.var())
            theirs.append(((subgraphs.values - exact) ** 2).mean() / exact.var())
    assert np.mean(ours) < 0.5 * np.mean(theirs)


def test_growth_that_cannot_be_followed_is_refused_before_anything_is_evaluated() -> None:
    asked: list[int] = []
    # all but one edge of a complete graph, and a tree
    dense = CommunicationGraph(700, CommunicationGraph.complete(700).edges[1:])
    for graph in (dense, CommunicationGraph(2000, [(i, i // 3) for i in range(1, 2000)])):
        with pytest.raises(
            PrecisionError, match=r"HN value of [\d,]+ connected .* value='myerson'"
        ):
            hn_value_growth_sampled(lambda c: asked.append(len(c)) or c[:, 0], graph, budget=2000)
    assert not asked


def test_many_large_components_are_not_one_large_graph() -> None:
    rings = [(60 * c + i, 60 * c + (i + 1) % 60) for c in range(12) for i in range(60)]
    graph = CommunicationGraph(720, rings)
    weight = np.cos(np.arange(720))
    found = hn_value_growth_sampled(additive_game(weight), graph, budget=1500, seed=0)
    np.testing.assert_allclose(found.values, weight, rtol=0, atol=1e-8)


def test_on_large_complete_graphs_it_is_no_noise() -> None:
    n = 80
    weight = np.cos(np.arange(n)) / n

    def game(coalitions: np.ndarray) -> np.ndarray:
        total = coalitions @ weight
        return total + total**2  # interactions of two share equally

    found = hn_value_growth_sampled(game, CommunicationGraph.complete(n), budget=2000, seed=0)
    expected = weight + weight * weight.sum()
    assert np.abs(found.values - expected).max() < 1e-6


def test_noise_is_warned_of() -> None:
    hubs = CommunicationGraph(
        60, [(i, j) for i in range(60) for j in (0, i // 2, i - 1) if 0 <= j < i]
    )
    with pytest.warns(PrecisionWarning, match="hn: the standard errors reach"):
        hn_value_growth_sampled(random_game(60, seed=0), hubs, budget=600, seed=0)
