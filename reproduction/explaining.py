"""Explain the graphs of all setups with all methods on the run engine, skipping what is done."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from gstarx._internal.files import write_atomically
from gstarx.gnn import expected_output
from reproduction import RESULTS, checked
from reproduction.methods import METHODS, STAGES, Method
from reproduction.results import RowStore
from reproduction.setups import SETUPS, Missing, Setup, load_weights

#: Rows are stored after so many graphs, so that an interruption loses little.
_AT_A_TIME = 120


def explain_all(
    setups: Sequence[str] = (),
    stages: Sequence[str] = (),
    *,
    results: Path = RESULTS,
    workers: int | None = None,
    engine: str = "local",
) -> None:
    """Explain what has not been explained yet, and store rows as they come.

    A setup whose data or weights are missing is skipped with a message.

    Parameters
    ----------
    setups
        Names of :data:`SETUPS`; all by default.
    stages
        Names of :data:`STAGES`, in this order; all by default.
    results
        The directory of the results; ``work`` in it holds unfinished runs.
    workers, engine
        As for :func:`gstarx_bench.runs.run`.
    """
    chosen = [SETUPS[name] for name in checked("setup", setups, SETUPS)]
    for stage in checked("stage", stages, STAGES):
        for method in STAGES[stage]:
            for setup in chosen:
                if method.only and setup.name not in method.only:
                    continue
                try:
                    _explain(setup, method, results, workers, engine)
                except Missing as error:
                    print(f"{setup.name}: {error}", file=sys.stderr)
                    RowStore(results, setup.name).note_missing(str(error))


def graphs_to_explain(setup: Setup, method: Method, split: str) -> tuple[int, ...]:
    """The graphs of a split that a method explains."""
    graphs = setup.graphs(split)
    return setup.few_graphs(graphs, split) if method.slow else graphs


def _explain(setup: Setup, method: Method, results: Path, workers: int | None, engine: str) -> None:
    from gstarx_bench import runs

    stored = RowStore(results, setup.name)
    stored.note_graphs({split: setup.graphs(split) for split in ("val", "test")})
    todo = [
        graph
        for split in method.splits
        for graph in graphs_to_explain(setup, method, split)
        if graph not in stored.done(method, split)
    ]
    store = results / "work" / setup.name
    for first in range(0, len(todo), _AT_A_TIME):
        batch = todo[first : first + _AT_A_TIME]
        start, cpu = time.perf_counter(), time.process_time()
        spec = runs.RunSpec(
            dataset=setup.dataset,
            model=str(setup.weights()),
            explainer={"name": method.explainer, "options": method.options},
            split="all",
            graphs=batch,
            baseline=_baseline(setup, method),
            seed=method.seed,
        )
        report = runs.run(
            spec, store, workers=workers, engine=engine, progress=False, dataset=setup.data()
        )
        rows = runs.read(store, run=report.run)
        here = set(batch)
        own = rows.filter([graph in here for graph in rows["graph"].to_pylist()])
        stored.add(method, own, set(setup.graphs("test")))
        if report.done and first == 0 and workers == 1:
            explaining = sum(own["cpu_seconds"].to_pylist())
            _note_training(results, setup, method, time.process_time() - cpu - explaining)
        spent = time.perf_counter() - start
        failed = f", {report.failed} failed" if report.failed else ""
        print(
            f"{setup.name}, {method.name}: {len(batch)} graphs, {spent:.0f} s{failed}", flush=True
        )


def _note_training(results: Path, setup: Setup, method: Method, seconds: float) -> None:
    """Record the training time: what a run took beyond explaining, to about a second."""
    if METHODS[method.name].explainer not in ("pgexplainer", "orphicx"):
        return
    known = training_seconds(results)
    known.setdefault(setup.name, {}).setdefault(method.name, round(seconds, 1))
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    write_atomically(results / "training_seconds.json", text.encode())


def training_seconds(results: Path) -> dict[str, dict[str, float]]:
    """CPU seconds of training explainers, by setup and method."""
    path = results / "training_seconds.json"
    seconds: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    return seconds


def _baseline(setup: Setup, method: Method) -> tuple[float, ...] | str | None:
    """The baseline as numbers, because the mean over a large split takes a while; or a rule."""
    if not isinstance(method.baseline, str) or method.baseline == "singletons":
        return method.baseline
    return _mean_output(setup, method.baseline)


@cache
def _mean_output(setup: Setup, split: str) -> tuple[float, ...]:
    model = load_weights(setup.weights())
    return tuple(round(float(p), 6) for p in expected_output(model, setup.data().split(split)))


__all__ = ["explain_all", "graphs_to_explain", "training_seconds"]
