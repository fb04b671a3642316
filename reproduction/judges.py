"""Baseline rules and both sides of the game, judged in three ways."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx import datasets
from gstarx.games import Game, self_dual
from gstarx.gnn import GNNGame
from gstarx.graphs import Coalitions, CommunicationGraph
from gstarx.metrics import SPARSITIES, auroc, evaluate_many, robust_fidelity
from gstarx.metrics.selection import selection_size
from gstarx.models import pretrained
from gstarx.values import (
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value_growth_sampled,
    myerson_value_sampled,
    shapley_value_sampled,
)
from reproduction.grids import Cell, Grid
from reproduction.methods import BUDGET
from reproduction.setups import SETUPS, load_weights

_GRAPHS = 20
#: Where robust fidelity is measured, and from how many random deletions.
_SPARSITY = 0.7
_DELETIONS = 20

Numbers = NDArray[np.float64]
#: From evaluated coalitions (k, n) and their payoffs (k,) to what nobody is worth.
Rule = Callable[[Coalitions, Numbers], float]


def uniform(_: Coalitions, __: Numbers) -> float:
    """The probability of two classes that nothing is known about."""
    return 0.5


def singletons(coalitions: Coalitions, payoffs: Numbers) -> float:
    """The mean over single nodes."""
    return float(payoffs[coalitions.sum(axis=1) == 1].mean())


def small(coalitions: Coalitions, payoffs: Numbers) -> float:
    """The mean over coalitions of at most a quarter of the nodes."""
    most = max(1, coalitions.shape[1] // 4)
    return float(payoffs[coalitions.sum(axis=1) <= most].mean())


def intercept(coalitions: Coalitions, payoffs: Numbers) -> float:
    """The constant of an additive model, every size counting the same."""
    size = coalitions.sum(axis=1)
    weight = np.sqrt(1.0 / np.bincount(size)[size])[:, None]
    design = np.hstack([np.ones((len(coalitions), 1)), coalitions.astype(np.float64)])
    fitted = np.linalg.lstsq(design * weight, payoffs * weight[:, 0], rcond=None)[0]
    return float(fitted[0])


RULES: Mapping[str, Rule] = {
    "uniform": uniform,
    "singletons": singletons,
    "small coalitions": small,
    "intercept": intercept,
}


@dataclass
class Recorded:
    """A game of two columns, the payoff and the constant 1, that remembers what was asked."""

    game: GNNGame
    asked: list[Coalitions] = field(default_factory=list)

    def __call__(self, coalitions: Coalitions) -> Numbers:
        self.asked.append(coalitions)
        payoffs = np.asarray(self.game(coalitions))
        return np.stack([payoffs, np.ones(len(coalitions))], axis=1)

    def evaluated(self) -> tuple[Coalitions, Numbers]:
        """Connected and other coalitions that were asked for, with every single node, once each."""
        alone = np.eye(self.game.n, dtype=np.bool_)
        coalitions = np.unique(np.concatenate([*self.asked, alone]), axis=0)
        coalitions = coalitions[coalitions.any(axis=1)]
        return coalitions, np.asarray(self.game(coalitions))


def scores_by_rule(
    game: GNNGame, value: Callable[..., Any], *, two_sided: bool, seed: int
) -> dict[str, Numbers]:
    """Values of the game less the constant of every rule, by linearity from one sample."""
    recorded = Recorded(game)
    played: Game = self_dual(recorded) if two_sided else recorded
    budget = BUDGET // 2 if two_sided else BUDGET
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        of_game, of_constant = value(played, game.graph, budget=budget, seed=seed).values.T
    coalitions, payoffs = recorded.evaluated()
    return {name: of_game - rule(coalitions, payoffs) * of_constant for name, rule in RULES.items()}


def judges() -> Grid:
    """Every value, side and rule: best H-fidelity of eight sparsities, robust fidelity, AUROC.

    On validation graphs; AUROC where the truth is known.
    """
    columns: dict[str, dict[str, tuple[Cell, ...]]] = {}
    for name in ("nitro", "motifs", "mutag-gcn", "mutag-gin"):
        try:
            columns[name] = _judged(name)
        except OSError as error:
            print(f"{name}: {error}")
    header = [f"{name}, {judge}" for name in columns for judge in ("best", "robust", "AUROC")]
    methods = next(iter(columns.values()))
    rows = [
        (method, *(cell for own in columns.values() for cell in own[method])) for method in methods
    ]
    return Grid("judges", ("method", *header), tuple(rows))


def _judged(name: str) -> dict[str, tuple[Cell, ...]]:
    """By method, the mean of every judge over the graphs of a network."""
    model, graphs = _task(name)
    by_method: dict[str, list[list[float]]] = {}
    for seed, data in enumerate(graphs):
        game = GNNGame(model, data, payoff="prob")
        for method, scores in _all_scores(game, seed).items():
            by_method.setdefault(method, []).append(_verdict(model, data, scores, seed))
    return {method: _means(np.array(rows)) for method, rows in by_method.items()}


def _means(rows: Numbers) -> tuple[Cell, ...]:
    best = float(rows[:, : len(SPARSITIES)].mean(axis=0).max())
    robust, truth = (float(rows[:, at].mean()) for at in (-2, -1))
    return best, robust, None if np.isnan(truth) else truth


def _verdict(model: Any, data: Data, scores: Numbers, seed: int) -> list[float]:
    """H-fidelity at every sparsity, robust H-fidelity at one, and AUROC or nan."""
    order = np.argsort(-scores, kind="stable")
    n = len(scores)
    chosen = [order[: selection_size(n, level)] for level in SPARSITIES]
    fidelities = [one.harmonic_fidelity for one in evaluate_many(model, [data], [chosen])[0]]
    nodes = order[: selection_size(n, _SPARSITY)]
    robust = robust_fidelity(model, data, nodes, samples=_DELETIONS, seed=seed)
    difference = robust.fidelity - robust.inverse_fidelity
    truth = getattr(data, "truth", None)
    known = truth is not None and 0 < int(truth.sum()) < n
    return [*fidelities, difference, auroc(scores, truth) if known else float("nan")]


def _all_scores(game: GNNGame, seed: int) -> dict[str, Numbers]:
    scores: dict[str, Numbers] = {}
    for label, value in (("HN", hn_value_growth_sampled), ("Myerson", myerson_value_sampled)):
        for two_sided in (False, True):
            side = ", two-sided" if two_sided else ""
            rules = scores_by_rule(game, value, two_sided=two_sided, seed=seed)
            scores |= {f"{label}{side}, {rule}": own for rule, own in rules.items()}
    graph: CommunicationGraph = game.graph
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        for label, sampled in (
            ("Shapley", shapley_value_sampled),
            ("Banzhaf", banzhaf_value_sampled),
        ):
            scores[label] = sampled(game, graph.num_nodes, budget=BUDGET, seed=seed).values
    scores["random"] = np.random.default_rng([4, seed]).random(game.n)
    return scores


def _task(name: str) -> tuple[Any, list[Data]]:
    """A network and validation graphs, those with a known truth if some have one."""
    if name in SETUPS:
        setup = SETUPS[name]
        return load_weights(setup.weights()), [
            setup.data()[at] for at in setup.graphs("val")[:_GRAPHS]
        ]
    graphs = [data for data in datasets.load(name).split("val") if bool(data.truth.any())]
    return pretrained(name)[0], graphs[:_GRAPHS]
