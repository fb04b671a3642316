"""Explain the test graphs of the attribution tasks on the run engine, skipping what is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gstarx import datasets
from gstarx.datasets import GraphDataset
from gstarx.gnn import expected_output
from gstarx.models import load_source
from gstarx.registry import TASKS as MODES
from gstarx.registry import ModelSource
from reproduction import checked
from reproduction.ground_truth import FOLDER, NETWORKS, TASKS, WEIGHTS
from reproduction.ground_truth.methods import STAGES, available
from reproduction.ground_truth.rows import TruthRows, new_row
from reproduction.methods import Method
from reproduction.setups import chosen

#: How many graphs are explained, and how many by slow methods: fixed random subsets of the test
#: graphs whose metric is defined, one inside the other. ``--whole`` explains all of them.
SAMPLE = {"benzene": 60, "logic7": 47, "logic8": 60, "crippen": 40}
FEW = {"benzene": 20, "logic7": 20, "logic8": 20, "crippen": 10}
_AT_A_TIME = 200


def explain_tasks(
    setups: Sequence[str] = (),
    stages: Sequence[str] = (),
    *,
    folder: Path = FOLDER,
    workers: int | None = None,
    whole: bool = False,
) -> None:
    """Explain what has not been explained yet, and store rows as they come.

    Parameters
    ----------
    setups
        Such as ``"benzene-gin"``; all by default.
    stages
        Of :data:`STAGES`; all by default.
    folder
        The directory of the rows; ``work`` in it holds the stores of runs.
    workers
        As for :func:`gstarx_bench.runs.run`.
    whole
        Explain the whole test split instead of samples.
    """
    every = [f"{task}-{network}" for network in NETWORKS for task in TASKS]
    methods = [method for stage in checked("stage", stages, STAGES) for method in STAGES[stage]]
    for method in methods:
        if not available(method):
            print(f"{method.name}: not in this version", file=sys.stderr)
    for setup in checked("setup", setups, every):
        for method in methods:
            if available(method) and applies(method, setup):
                explain_setup(setup, method, folder, workers, whole)


def applies(method: Method, setup: str) -> bool:
    """Whether a method applies to a network and a task at all."""
    task, network = setup.split("-")
    if method.explainer == "attention":
        return network == "gat"
    return method.explainer != "pgexplainer" or task != "crippen"


def graphs_to_explain(task: str, method: Method, *, whole: bool = False) -> tuple[int, ...]:
    """Positions of the test graphs that a method explains: those with a defined metric."""
    dataset = load_task(task)
    defined = [at for at in dataset.split_indices["test"] if _defined(dataset[at])]
    return chosen(defined, None if whole else (FEW if method.slow else SAMPLE)[task])


def _defined(graph: Any) -> bool:
    """Whether some alternative marks some but not all nodes, or contributions differ."""
    truths = graph.truths
    if truths.is_floating_point():
        return bool((truths != truths[0, 0]).any())
    marked = truths.sum(dim=1)
    return bool(((marked > 0) & (marked < truths.shape[1])).any())


@cache
def load_task(task: str) -> GraphDataset:
    """The dataset of a task, loaded once."""
    return datasets.load(task)


def model_spec(setup: str) -> dict[str, Any]:
    """The network of a setup as runs take it."""
    task, network = setup.split("-")
    weights = WEIGHTS / f"{setup}.safetensors"
    if not weights.is_file():
        raise FileNotFoundError(
            f"there are no weights of {setup} at {weights}: run python -m reproduction "
            f"ground-truth {setup} --steps train"
        )
    spec: dict[str, Any] = {"weights": str(weights)}
    if network == "edge":
        kind = "regressor" if task == "crippen" else "classifier"
        spec["factory"] = f"reproduction.ground_truth.networks:{kind}"
        spec["task"] = load_task(task).task
    return spec


def load_network(setup: str) -> Any:
    """The trained network of a setup, in evaluation mode."""
    spec = model_spec(setup)
    source = ModelSource(spec.get("factory"), Path(spec["weights"]), task=spec.get("task"))
    return load_source(source).model


@cache
def _mean_output(setup: str) -> tuple[float, ...]:
    """The mean output over training graphs, a fixed sample of 1,000."""
    dataset = load_task(setup.split("-")[0])
    graphs = [dataset[at] for at in chosen(dataset.split_indices["train"], 1_000)]
    outputs = expected_output(load_network(setup), graphs, task=MODES[dataset.task])
    return tuple(round(float(one), 6) for one in outputs)


def explain_setup(
    setup: str, method: Method, folder: Path, workers: int | None, whole: bool = False
) -> None:
    """Explain the graphs of a setup that have no row of the method yet, and store their rows."""
    from gstarx_bench import runs

    task = setup.split("-")[0]
    dataset, rows = load_task(task), TruthRows(setup, folder)
    done = rows.of(method)
    todo = [at for at in graphs_to_explain(task, method, whole=whole) if at not in done]
    store, sample = folder / "work" / setup, set(graphs_to_explain(task, method))
    for first in range(0, len(todo), _AT_A_TIME):
        batch, start = todo[first : first + _AT_A_TIME], time.process_time()
        baseline = _mean_output(setup) if method.baseline == "train" else method.baseline
        spec = runs.RunSpec(
            dataset=task,
            model=model_spec(setup),
            explainer={"name": method.explainer, "options": method.options},
            split="test",
            graphs=tuple(batch),
            baseline=baseline,
            target=1 if dataset.task == "classification" else None,
        )
        report = runs.run(spec, store, workers=workers, progress=False, dataset=dataset)
        computed = runs.read(store, run=report.run).to_pylist()
        own = [row for row in computed if row["graph"] in set(batch)]
        added = [new_row(method, row, dataset[row["graph"]]) for row in own]
        # scores of the sample are kept, of other graphs only their verdicts
        rows.add([row if row["graph"] in sample else row | {"scores": None} for row in added])
        failed = f", {report.failed} failed" if report.failed else ""
        spent = time.process_time() - start
        print(f"{setup}, {method.name}: {len(batch)} graphs, {spent:.0f} s{failed}", flush=True)
