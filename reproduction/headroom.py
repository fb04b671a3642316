"""Headroom: how much selections differ, and whether pairs predict more than sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx import Judge
from gstarx.gnn import GNNGame
from gstarx.metrics.selection import selection_size
from reproduction.grids import Cell, Grid
from reproduction.setups import SETUPS, load_weights

_GRAPHS = 20
_SETS = 200
_SPARSITY = 0.75
_EVALUATIONS = 2_000
#: A probability this close to 0 or 1 is saturated.
_SATURATED = 0.01
#: A smaller standard deviation of H-fidelity means that selections make no difference.
_NEGLIGIBLE = 0.005

Worths = NDArray[np.float64]
Sets = NDArray[np.bool_]


def differences() -> Grid:
    """How much random selections of a quarter of the nodes differ, and how many are saturated."""
    rows: list[tuple[Cell, ...]] = []
    for name in SETUPS:
        try:
            model, graphs = _graphs(name, "test")
        except OSError as error:
            rows.append((name, str(error), None, None, None))
            continue
        small, large, spreads = [], [], []
        for at, data in enumerate(graphs):
            sets = _selections(int(data.num_nodes or 0), np.random.default_rng([2, at]))
            game = GNNGame(model, data, payoff="prob")
            small.append(_saturated(np.asarray(game(sets))))
            large.append(_saturated(np.asarray(game(~sets))))
            judged = Judge(model).many([data], [[np.flatnonzero(own) for own in sets]])[0]
            spreads.append(float(np.std([one.harmonic_fidelity for one in judged])))
        alike = float(np.mean(np.array(spreads) < _NEGLIGIBLE))
        rows.append(
            (
                name,
                f"{np.mean(small):.0%}",
                f"{np.mean(large):.0%}",
                float(np.mean(spreads)),
                f"{alike:.0%}",
            )
        )
    header = (
        "setup",
        "saturated selections",
        "saturated complements",
        "std. dev. of H-fidelity",
        f"graphs below {_NEGLIGIBLE}",
    )
    return Grid("claim_differences", header, tuple(rows))


def pairs() -> Grid:
    """Would pairwise interactions help? Selections that are best for a surrogate with them.

    All surrogates are fitted to the same coalitions, drawn with their complements, on validation
    graphs.
    """
    rows: list[tuple[Cell, ...]] = []
    for name in ("mutag-gcn", "ba_2motifs-gcn", "bbbp-gcn", "bace-gcn", "mutag-gin"):
        try:
            model, graphs = _graphs(name, "val")
        except OSError as error:
            rows.append((name, str(error), None, None, None, None))
            continue
        fidelities: list[list[float]] = []
        for at, data in enumerate(graphs):
            rng = np.random.default_rng([3, at])
            n = int(data.num_nodes or 0)
            half = rng.random((_EVALUATIONS // 2, n)) < 0.5
            sets = np.vstack([half, ~half])
            size = selection_size(n, _SPARSITY)
            chosen = [
                selected(
                    sets, np.asarray(GNNGame(model, data, payoff=payoff)(sets)), size, features
                )
                for payoff in ("prob", "log_prob")
                for features in (_single, _with_pairs)
            ]
            judged = Judge(model).many([data], [chosen])[0]
            best = Judge(model).best(data, size, seed=at).evaluation
            fidelities.append([one.harmonic_fidelity for one in (*judged, best)])
        rows.append((name, *map(float, np.mean(fidelities, axis=0))))
    header = ("setup", "sums", "pairs", "sums of logarithms", "pairs of logarithms", "best found")
    return Grid("claim_pairs", header, tuple(rows))


def selected(
    sets: Sets, worths: Worths, size: int, features: Callable[[Sets], Worths]
) -> NDArray[np.int64]:
    """The selection of that size with the best predicted score of a linear surrogate.

    The score approximates H-fidelity to first order: (1 - s) v(S) - s v(rest) at sparsity s. Nodes
    are added greedily, then exchanged as long as the score improves.
    """
    predict = _fitted(features(sets), worths)
    share = size / sets.shape[1]

    def score(candidates: Sets) -> Worths:
        inside, outside = predict(features(candidates)), predict(features(~candidates))
        return np.asarray(share * inside - (1 - share) * outside)

    kept = np.zeros(sets.shape[1], dtype=np.bool_)
    for _ in range(size):
        grown = np.array([_flipped(kept, node) for node in np.flatnonzero(~kept)])
        kept = grown[score(grown).argmax()]
    while True:
        swaps = np.array(
            [
                _flipped(kept, leaving, entering)
                for leaving in np.flatnonzero(kept)
                for entering in np.flatnonzero(~kept)
            ]
        )
        if not len(swaps):
            break
        scores = score(swaps)
        if scores.max() <= score(kept[None])[0] + 1e-9:
            break
        kept = swaps[scores.argmax()]
    return np.flatnonzero(kept)


def _fitted(features: Worths, worths: Worths) -> Callable[[Worths], Worths]:
    """A ridge regression; the light penalty is a tenth of the variance of a fair coin."""
    mean, level = features.mean(axis=0), worths.mean()
    centered = features - mean
    system = centered.T @ centered
    system[np.diag_indices_from(system)] += 0.025 * len(features)
    weights = np.linalg.solve(system, centered.T @ (worths - level))
    return lambda new: (new - mean) @ weights + level


def _single(sets: Sets) -> Worths:
    return sets.astype(np.float64)


def _with_pairs(sets: Sets) -> Worths:
    first, second = np.triu_indices(sets.shape[1], k=1)
    both = sets[:, first] & sets[:, second]
    return np.hstack([sets, both]).astype(np.float64)


def _flipped(kept: Sets, *nodes: Any) -> Sets:
    other = kept.copy()
    other[list(nodes)] ^= True
    return other


def _selections(n: int, rng: np.random.Generator) -> Sets:
    """Random selections of a quarter of the nodes."""
    size = max(1, selection_size(n, _SPARSITY))
    order = rng.random((_SETS, n)).argsort(axis=1)
    return order < size


def _saturated(probabilities: Worths) -> float:
    return float(np.mean((probabilities < _SATURATED) | (probabilities > 1 - _SATURATED)))


def _graphs(name: str, split: str) -> tuple[Any, list[Data]]:
    setup = SETUPS[name]
    data = setup.data()
    return load_weights(setup.weights()), [data[at] for at in setup.graphs(split)[:_GRAPHS]]
