"""Claims of the paper, each tested by one small experiment."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.explainers import create, explain
from gstarx.gnn import GNNGame, expected_output
from gstarx.graphs import CommunicationGraph
from gstarx.values import Subgraphs, coalition_weights
from reproduction.grids import Cell, Grid
from reproduction.setups import SETUPS, load_weights

_GRAPHS = 20
_SETS = 400


def cost_of_subsets() -> Grid:
    """Is the cost linear in the number of subsets J? MUTAG, as published, J from n to 32 n."""
    model, graphs, baseline = _task("mutag-gcn")
    rows: list[tuple[Cell, ...]] = []
    explain(model, graphs[0], value=Subgraphs(), baseline=baseline, seed=0)
    for times in (1, 2, 4, 8, 16, 32):
        start = time.process_time()
        evaluated = 0
        for data in graphs:
            wanted = times * int(data.num_nodes)
            value = Subgraphs(num_samples=wanted)
            evaluated += explain(model, data, value=value, baseline=baseline, seed=0).evaluations
        spent = time.process_time() - start
        rows.append(
            (f"{times} n", f"{1e3 * spent / len(graphs):.1f} ms", round(evaluated / len(graphs)))
        )
    header = ("subsets J", "CPU time per molecule", "coalitions evaluated")
    return Grid("claim_cost", header, tuple(rows))


def locality() -> Grid:
    """Does the neighborhood of a node decide its score? Where the weights of MUTAG's graphs lie."""
    _, graphs, _ = _task("mutag-gcn")
    reach: dict[str, list[NDArray[np.float64]]] = {"hn": [], "myerson": []}
    used = 0
    for data in graphs:
        graph = CommunicationGraph.from_edge_index(data.edge_index, int(data.num_nodes))
        if graph.count_connected_coalitions(20_000) > 20_000:
            continue
        used += 1
        inside = graph.connected_coalitions()
        hops = _distances(graph)
        for value, shares in reach.items():
            weights = np.abs(coalition_weights(graph, value=value))
            # for every coalition with the node, the distance of the farthest member
            own = []
            for node in range(graph.num_nodes):
                with_node = inside[:, node]
                farthest = np.where(inside[with_node], hops[node], 0).max(axis=1)
                share = np.bincount(farthest, weights[node, with_node], minlength=20)[:20]
                own.append(share / share.sum())
            shares.append(np.mean(own, axis=0))
    rows: list[tuple[Cell, ...]] = []
    for value, label in (("hn", "HN"), ("myerson", "Myerson")):
        mean = np.mean(reach[value], axis=0).cumsum()
        rows.append((label, *(float(mean[h]) for h in (0, 1, 2, 3, 5))))
    header = (f"value, {used} molecules", "the node alone", "1 hop", "2 hops", "3 hops", "5 hops")
    return Grid("claim_locality", header, tuple(rows))


def zero_weight() -> Grid:
    """Does a node without communication get weight zero? Opposite nodes of paths and rings."""
    rows: list[tuple[Cell, ...]] = []
    for label, graph, far in (
        ("path of 3", _path(3), 2),
        ("path of 5", _path(5), 4),
        ("ring of 4", _ring(4), 2),
        ("ring of 5", _ring(5), 2),
        ("ring of 6, as benzene", _ring(6), 3),
    ):
        inside = graph.connected_coalitions()
        alone = int(np.flatnonzero((inside.sum(axis=1) == 1) & inside[:, far])[0])
        rows.append(
            (
                label,
                *(
                    round(float(coalition_weights(graph, value=value)[0, alone]), 6)
                    for value in ("hn", "myerson")
                ),
            )
        )
    header = ("graph", "HN: weight of v({far node}) for node 0", "Myerson")
    return Grid("claim_zero_weight", header, tuple(rows))


def fits() -> Grid:
    """Why some values lead: how well scores predict v(S) - v(rest) for random halves S."""
    rows: list[tuple[Cell, ...]] = []
    names = {"hn": "HN", "myerson": "Myerson", "shapley": "Shapley", "banzhaf": "Banzhaf"}
    for setup in SETUPS:
        try:
            model, graphs, baseline = _task(setup)
        except OSError as error:
            rows.append((setup, str(error), *[None] * (len(names) - 1)))
            continue
        r_squared: dict[str, list[float]] = {name: [] for name in names}
        for at, data in enumerate(graphs):
            game = GNNGame(model, data, baseline=baseline)
            sets = np.random.default_rng([1, at]).random((_SETS, game.n)) < 0.5
            truth = game(sets) - game(~sets)
            for name, own in r_squared.items():
                explainer = create(name, baseline=baseline, budget=2_000)
                scores = np.asarray(explainer.explain(model, data, seed=at).node_scores)
                own.append(_r_squared(truth, (2.0 * sets - 1.0) @ scores))
        rows.append((setup, *(float(np.mean(own)) for own in r_squared.values())))
    return Grid("claim_fits", ("setup", *names.values()), tuple(rows))


def _task(name: str) -> tuple[Any, list[Data], Any]:
    setup = SETUPS[name]
    model = load_weights(setup.weights())
    data = setup.data()
    graphs = [data[at] for at in setup.graphs("test")[:_GRAPHS]]
    return model, graphs, expected_output(model, data.split("train")[:500])


def _r_squared(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Share of the variance that the prediction explains after scaling it to fit best."""
    if not predicted.any() or not truth.any():
        return 0.0
    scale = float(truth @ predicted / (predicted @ predicted))
    return 1.0 - float(((truth - scale * predicted) ** 2).sum() / (truth**2).sum())


def _path(n: int) -> CommunicationGraph:
    return CommunicationGraph(n, [(i, i + 1) for i in range(n - 1)])


def _ring(n: int) -> CommunicationGraph:
    return CommunicationGraph(n, [(i, (i + 1) % n) for i in range(n)])


def _distances(graph: CommunicationGraph) -> NDArray[np.int64]:
    """Hops between any two nodes; 19 where there is no path."""
    n = graph.num_nodes
    hops = np.full((n, n), 19)
    for start in range(n):
        seen = np.zeros(n, dtype=np.bool_)
        seen[start] = True
        step = 0
        while True:
            hops[start, seen & (hops[start] > step)] = step
            more = seen | graph.boundary(seen)
            if (more == seen).all():
                break
            seen, step = more, step + 1
    return hops


CLAIMS = (cost_of_subsets, locality, zero_weight, fits)
