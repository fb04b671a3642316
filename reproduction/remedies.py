"""Two remedies for HN and Myerson values: baseline rules, and both sides of the game.

Values are linear, so one sample of coalitions gives the scores of every baseline and payoff: the
game has the probability, the logit and the constant 1 as columns.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx import Judge, datasets
from gstarx._internal.files import atomic_path
from gstarx.games import Game, self_dual
from gstarx.gnn import GNNGame, restored
from gstarx.graphs import Coalitions
from gstarx.metrics import SPARSITIES, auroc
from gstarx.metrics.faithfulness import harmonic_mean_of
from gstarx.metrics.selection import selection_size
from gstarx.models import pretrained
from gstarx.values import (
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value_growth_sampled,
    myerson_value_sampled,
    shapley_value_sampled,
)
from reproduction.methods import BUDGET
from reproduction.setups import SETUPS, Missing, load_weights

#: Datasets of the package that have a known truth.
BUNDLED = ("nitro", "motifs")
#: Splits, and at most how many of their graphs are judged.
SPLITS = ("val", "test")
GRAPHS = (60, 250)
_AT_A_TIME = 10
#: Where robust fidelity is measured, and from how many random deletions.
_SPARSITY, _DELETIONS = 0.7, 20

Numbers = NDArray[np.float64]
SCHEMA = pa.schema(
    {
        "network": pa.string(),
        "split": pa.string(),
        "graph": pa.int32(),
        "method": pa.string(),
        "harmonic": pa.list_(pa.float32()),
        "robust": pa.float32(),
        "auroc": pa.float32(),
    }
)
#: From evaluated coalitions (k, n) and their payoffs (k, 2) to what nobody is worth, (2,).
Rule = Callable[[Coalitions, Numbers], Numbers]


def uniform(_: Coalitions, __: Numbers) -> Numbers:
    """Two classes of which nothing is known: a probability of one half, a logit of zero."""
    return np.array([0.5, 0.0])


def singletons(coalitions: Coalitions, payoffs: Numbers) -> Numbers:
    """The mean over single nodes."""
    mean: Numbers = payoffs[coalitions.sum(axis=1) == 1].mean(axis=0)
    return mean


def small(coalitions: Coalitions, payoffs: Numbers) -> Numbers:
    """The mean over evaluated coalitions of at most a quarter of the nodes."""
    most = max(1, coalitions.shape[1] // 4)
    mean: Numbers = payoffs[coalitions.sum(axis=1) <= most].mean(axis=0)
    return mean


def intercept(coalitions: Coalitions, payoffs: Numbers) -> Numbers:
    """The constant of an additive model, every size counting the same."""
    size = coalitions.sum(axis=1)
    weight = np.sqrt(1.0 / np.bincount(size)[size])[:, None]
    design = np.hstack([np.ones((len(coalitions), 1)), coalitions.astype(np.float64)])
    constant: Numbers = np.linalg.lstsq(design * weight, payoffs * weight, rcond=None)[0][0]
    return constant


RULES: Mapping[str, Rule] = {
    "uniform": uniform,
    "singletons": singletons,
    "small coalitions": small,
    "intercept": intercept,
}
_GRAPH_VALUES = {"HN": hn_value_growth_sampled, "Myerson": myerson_value_sampled}
_OTHER_VALUES = {"Shapley": shapley_value_sampled, "Banzhaf": banzhaf_value_sampled}
_PAYOFFS = ("", " of logits")


def variant(value: str, *, two_sided: bool, rule: str, logits: bool = False) -> str:
    """The name of a variant.

    >>> variant("HN", two_sided=True, rule="singletons")
    'HN, two-sided, singletons'
    """
    return f"{value}{_PAYOFFS[logits]}{', two-sided' if two_sided else ''}, {rule}"


#: All variants that are tried.
VARIANTS = tuple(
    variant(value, two_sided=two_sided, rule=rule, logits=logits)
    for value in _GRAPH_VALUES
    for logits in (False, True)
    for two_sided in (False, True)
    for rule in RULES
)


@dataclass
class _Recorded:
    """A game of three columns, two payoffs and the constant 1, that keeps what was asked."""

    game: GNNGame
    asked: list[Coalitions] = field(default_factory=list)

    def __call__(self, coalitions: Coalitions) -> Numbers:
        """Worths (k, 3)."""
        self.asked.append(coalitions)
        return np.hstack([self.game(coalitions), np.ones((len(coalitions), 1))])

    def evaluated(self) -> tuple[Coalitions, Numbers]:
        """What was asked, and every single node, once each, with its payoffs."""
        alone = np.eye(self.game.n, dtype=np.bool_)
        coalitions = np.unique(np.concatenate([*self.asked, alone]), axis=0)
        return coalitions, np.asarray(self.game(coalitions))


def scores_of_variants(game: GNNGame, seed: int) -> dict[str, Numbers]:
    """Scores (n,) of every variant, and of Shapley and Banzhaf values."""
    scores: dict[str, Numbers] = {}
    for value, sampled in _GRAPH_VALUES.items():
        for two_sided in (False, True):
            recorded = _Recorded(game)
            played: Game = self_dual(recorded) if two_sided else recorded
            budget = BUDGET // (1 + two_sided)
            estimate = sampled(played, game.graph, budget=budget, seed=seed).values
            coalitions, payoffs = recorded.evaluated()
            for rule, constant_of in RULES.items():
                constant = constant_of(coalitions, payoffs)
                for logits in (False, True):
                    name = variant(value, two_sided=two_sided, rule=rule, logits=logits)
                    scores[name] = estimate[:, int(logits)] - constant[int(logits)] * estimate[:, 2]
    for value, sampled_from in _OTHER_VALUES.items():
        estimate = sampled_from(game, game.n, budget=BUDGET, seed=seed).values
        scores |= {f"{value}{name}": estimate[:, at] for at, name in enumerate(_PAYOFFS)}
    return scores | {"random": np.random.default_rng([4, seed]).random(game.n)}


def measure_all(
    only: Sequence[str] = (), *, results: Path, graphs: tuple[int, int] = GRAPHS
) -> None:
    """Judge all variants on graphs that have not been judged yet, and store rows as they come.

    Parameters
    ----------
    only
        Names of setups, ``"nitro"`` or ``"motifs"``; all by default.
    results
        The directory of the rows.
    graphs
        At most so many validation graphs and test graphs, the first ones of their splits.
    """
    for name in only or (*SETUPS, *BUNDLED):
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            model, chosen = load_network_and_graphs(name)
        except (Missing, ImportError, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for split, most in zip(SPLITS, graphs, strict=True):
            _measure(name, model, split, chosen[split][:most], results)


def _measure(name: str, model: Any, split: str, graphs: Sequence[Data], results: Path) -> None:
    """Judge the graphs of a split that are not stored yet."""
    known = read(results)
    done = set() if known is None else _judged(known)
    todo = [at for at in range(len(graphs)) if (name, split, at) not in done]
    for first in range(0, len(todo), _AT_A_TIME):
        rows = [
            {"network": name, "split": split, "graph": at, "method": method, **verdict}
            for at in todo[first : first + _AT_A_TIME]
            for method, verdict in _judge(model, graphs[at], seed=at).items()
        ]
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        known = table if known is None else pa.concat_tables([known, table])
        with atomic_path(results / "remedies.parquet") as aside:
            pq.write_table(known, aside, compression="zstd", compression_level=19)


def _judged(table: pa.Table) -> set[tuple[str, str, int]]:
    columns = (table[name].to_pylist() for name in ("network", "split", "graph"))
    return set(zip(*columns, strict=True))


def read(results: Path) -> pa.Table | None:
    """What has been judged: a row for every network, graph and variant."""
    path = results / "remedies.parquet"
    return pq.read_table(path) if path.exists() else None


def _judge(model: Any, data: Data, seed: int) -> dict[str, dict[str, Any]]:
    """Verdicts on all variants for one graph, by method."""
    with restored(model), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        with torch.no_grad():
            target = int(model.eval()(data.x, data.edge_index).argmax())

        def both(outputs: Tensor) -> Tensor:
            return torch.stack([outputs.softmax(1)[:, target], outputs[:, target]], dim=1)

        game = GNNGame(model, data, payoff=both, baseline=0.0)
        return _verdicts(model, data, scores_of_variants(game, seed), seed)


def _verdicts(
    model: Any, data: Data, scores: Mapping[str, Numbers], seed: int
) -> dict[str, dict[str, Any]]:
    """By method: H-fidelity of top-k selections, robust H-fidelity, and AUROC if it is known.

    Robust fidelity, at one sparsity, only of the main variants.
    """
    n = int(data.num_nodes or 0)
    orders = {method: np.argsort(-own, kind="stable") for method, own in scores.items()}
    sizes = [selection_size(n, level) for level in SPARSITIES]
    chosen = [order[:size] for order in orders.values() for size in sizes]
    judged = iter(Judge(model).many([data], [chosen])[0])
    truth = getattr(data, "truth", None)
    known = truth is not None and 0 < int(truth.sum()) < n
    verdicts: dict[str, dict[str, Any]] = {}
    for method, order in orders.items():
        robust = None
        if "logits" not in method and not method.endswith(("small coalitions", "intercept")):
            nodes = order[: selection_size(n, _SPARSITY)]
            parts = Judge(model).robust(data, nodes, samples=_DELETIONS, seed=seed)
            robust = harmonic_mean_of(parts.fidelity, parts.inverse_fidelity)
        verdicts[method] = {
            "harmonic": [next(judged).harmonic_fidelity for _ in sizes],
            "robust": robust,
            "auroc": auroc(scores[method], truth) if known else None,
        }
    return verdicts


def load_network_and_graphs(name: str) -> tuple[Any, dict[str, list[Data]]]:
    """A network, and graphs of the splits; if a truth is planted, those that have it."""
    if name in SETUPS:
        setup, graphs = SETUPS[name], SETUPS[name].data()
        chosen = {split: [graphs[at] for at in setup.graphs(split)] for split in SPLITS}
        return load_weights(setup.weights()), chosen
    dataset = datasets.load(name)
    chosen = {
        split: [data for data in dataset.split(split) if bool(data.truth.any())] for split in SPLITS
    }
    return pretrained(name)[0], chosen
