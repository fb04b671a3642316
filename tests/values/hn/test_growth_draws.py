"""Coalitions drawn by growth: their weights average to those of the closed form."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import unpack
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values.hn.closed_form import growth_weights
from gstarx.values.hn.growth_draws import GrowthDraws
from gstarx.values.hn.small_coalitions import SmallCoalitions
from tests.pairs import for_each
from tests.values.definitions import Numbers, molecule, ring, tree

GRAPHS = (
    ring(9),
    tree(10, seed=1),
    molecule(12, seed=2, chords=3),
    CommunicationGraph.from_networkx(nx.star_graph(6)),
    CommunicationGraph.from_networkx(nx.barabasi_albert_graph(12, 3, seed=1)),
)


def drawn(
    graph: CommunicationGraph, limit: int, steps: int, times: int
) -> tuple[np.ndarray, Numbers, np.ndarray]:
    """Members (k, n) and weights (k, n) of draws from every start node and size, and sizes."""
    known = SmallCoalitions.within(graph, limit)
    draws = GrowthDraws(graph, known, np.random.default_rng(0))
    sizes = np.arange(known.size + 1, graph.num_nodes)
    starts, ends = (
        np.tile(grid.ravel(), times) for grid in np.meshgrid(np.arange(graph.num_nodes), sizes)
    )
    masks, weights = draws.draw(starts, ends, steps)
    return unpack(masks, graph.num_nodes), weights, ends


@for_each("graph", GRAPHS)
@for_each(("limit", "steps"), [(0, 1), (0, 8), (40, 3)])
def test_weights_are_unbiased(graph: CommunicationGraph, limit: int, steps: int) -> None:
    n = graph.num_nodes
    lattice = CoalitionLattice.of(graph)
    exact = growth_weights(lattice) / graph.degrees
    members, weights, sizes = drawn(graph, limit, steps, times=400)
    assert (members.sum(axis=1) == sizes).all()
    # what is summed: the mean over sizes of any game's worths
    game = np.random.default_rng(5).normal(size=(n, 6))
    some = np.cos(members @ game)
    all_of_them = np.cos(lattice.coalitions() @ game)
    counts = lattice.coalitions().sum(axis=1)
    wanted = (counts >= sizes.min()) & (counts < n)
    truth = exact[wanted].T @ all_of_them[wanted] / (n - sizes.min())
    terms = weights[:, :, None] * some[:, None, :]
    error = terms.std(axis=0) / np.sqrt(len(terms))
    off = np.abs(terms.mean(axis=0) - truth)
    assert (off <= 5 * error).all()
    assert (off <= 2 * error).mean() > 0.85
    assert error.max() < 0.2 * np.abs(truth).max()


@pytest.mark.parametrize("graph", GRAPHS[2:])
def test_more_steps_take_noise_out(graph: CommunicationGraph) -> None:
    short, long = (drawn(graph, 0, steps, times=50)[1] for steps in (1, 32))
    assert long.std(axis=0).mean() < 0.7 * short.std(axis=0).mean()
    np.testing.assert_allclose(long.mean(axis=0), short.mean(axis=0), rtol=0.2)
