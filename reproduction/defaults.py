"""HN with the uniform baseline against the default of ``explain``: Myerson with singletons.

Three questions about every network: how closely scores follow the degrees of the nodes, how well
the selected nodes preserve and destroy the prediction, and how well they agree with the truth.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch_geometric.data import Data
from torch_geometric.utils import degree

from gstarx.explainers import GStarX
from gstarx.values import PrecisionWarning
from reproduction import RESULTS
from reproduction.grids import Cell, Grid
from reproduction.ground_truth import NETWORKS, TASKS
from reproduction.ground_truth.explaining import explain_setup, load_task
from reproduction.ground_truth.methods import METHODS
from reproduction.ground_truth.outcomes import outcome_of
from reproduction.ground_truth.rows import TruthRows
from reproduction.methods import BUDGET, Method
from reproduction.remedies import BUNDLED, load_network_and_graphs
from reproduction.remedies_tables import Judged
from reproduction.setups import SETUPS, Missing

#: Rows of the former default on the networks of the ground-truth page.
FOLDER = RESULTS / "defaults"
#: Test graphs of every network of the results page whose scores are computed here.
_GRAPHS = 30
_FORMER: dict[str, Any] = {"value": "hn", "budget": BUDGET}
_HEADER = (
    "network",
    *("graphs", "degree, HN", "degree, default"),
    *("graphs judged", "H-fidelity, HN", "H-fidelity, default"),
    *("truth, HN", "truth, default"),
)


def defaults() -> Grid:
    """Both defaults on all networks of the results page and of the ground-truth page.

    A network whose data or weights are missing keeps the row that is stored.
    """
    judged, before = Judged(RESULTS), Grid.read(RESULTS, "defaults")
    stored = {} if before is None else {row[0]: row for row in before.rows}
    rows: list[tuple[Cell, ...]] = []
    for name in (*SETUPS, *BUNDLED):
        try:
            rows.append(_of_results(name, judged))
        except (Missing, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            rows += [stored[name]] if name in stored else []
    rows += [_of_truths(f"{task}-{network}") for task in TASKS for network in NETWORKS]
    return Grid("defaults", _HEADER, tuple(rows))


def summary(measured: Grid) -> Grid:
    """Means over networks of a kind, of what was measured for each of them."""
    kinds = {
        "the paper's networks": set(SETUPS),
        "nitro and motifs": set(BUNDLED),
        "ground truth, classifiers": {f"{task}-{n}" for task in TASKS[:3] for n in NETWORKS},
        "ground truth, Crippen": {f"{TASKS[3]}-{n}" for n in NETWORKS},
    }
    rows: list[tuple[Cell, ...]] = []
    for kind, names in kinds.items():
        own = [row[1:] for row in measured.rows if row[0] in names]
        means = [_mean(column) for column in zip(*own, strict=True)]
        rows.append((f"{kind} ({len(own)})", *means))
    return Grid("defaults_summary", measured.header, tuple(rows))


def _mean(column: Sequence[Any]) -> Cell:
    """The mean of those that have a number; the sum of counts."""
    known = [cell for cell in column if cell is not None]
    if all(isinstance(cell, int) for cell in known):
        return sum(known) or None
    return float(np.mean(known))


def _of_results(name: str, judged: Judged) -> tuple[Cell, ...]:
    """Correlations computed here, verdicts as stored for all variants of the two values."""
    model, chosen = load_network_and_graphs(name)
    graphs = chosen["test"][:_GRAPHS]
    before, now = GStarX(baseline="uniform", **_FORMER), GStarX(budget=BUDGET)
    names = ("HN, uniform", "Myerson, singletons")
    fidelity = [judged.tested(name, method) for method in names]
    truths = [judged.numbers(name, "test", method, "auroc") for method in names]
    return (
        name,
        len(graphs),
        *(_median(_scored(explainer, model, graphs), graphs) for explainer in (before, now)),
        len(fidelity[0]),
        *(float(own.mean()) for own in fidelity),
        *(float(own.mean()) if np.isfinite(own).all() else None for own in truths),
    )


def _scored(explainer: GStarX, model: Any, graphs: Sequence[Data]) -> list[Any]:
    with warnings.catch_warnings():
        # the former default is computed to show what these warn of
        warnings.filterwarnings("ignore", "the outputs for all evaluated parts")
        warnings.simplefilter("ignore", PrecisionWarning)
        return [
            explainer.explain(model, data, seed=at).node_scores.numpy()
            for at, data in enumerate(graphs)
        ]


def _of_truths(setup: str) -> tuple[Cell, ...]:
    """Rows of the ground-truth page, and those of the former default on the same graphs."""
    dataset = load_task(setup.split("-")[0])
    regression = dataset.task == "regression"
    baseline = (0.0,) if regression else "uniform"
    former = Method("former default", "gstarx", dict(_FORMER), "ours", baseline)
    explain_setup(setup, former, FOLDER, workers=1)
    before = TruthRows(setup, FOLDER).of(former)
    now = TruthRows(setup).of(METHODS["Myerson, singletons"])
    common = sorted(before.keys() & now.keys())
    graphs = [dataset[at] for at in common]
    scores = [[rows[at]["scores"] for at in common] for rows in (before, now)]
    outcomes = [outcome_of([rows[at] for at in common]) for rows in (before, now)]
    return (
        setup,
        len(common),
        *(_median(own, graphs) for own in scores),
        len(common),
        *(None if own is None else own.best_fidelity for own in outcomes),
        *(None if own is None else own.mean for own in outcomes),
    )


def _median(scores: Sequence[Any], graphs: Sequence[Data]) -> float:
    """The median over graphs of the size of the correlation of scores with degrees."""
    found = []
    for own, data in zip(scores, graphs, strict=True):
        degrees = degree(data.edge_index[0], data.num_nodes).numpy()
        if np.ptp(degrees) and np.ptp(own):
            found.append(abs(float(np.corrcoef(np.asarray(own), degrees)[0, 1])))
    return float(np.median(found))
