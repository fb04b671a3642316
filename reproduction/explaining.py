"""Explaining the graphs of all setups by all methods, on the run engine, as far as is not done."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from gstarx._internal.atomic_write import write_whole
from gstarx.gnn import expected_output
from reproduction import RESULTS
from reproduction.methods import METHODS, STAGES, Method
from reproduction.results import Results
from reproduction.setups import SETUPS, Missing, Setup, load_weights

#: Rows are added to the results after so many graphs, so that little is lost.
_AT_A_TIME = 120


def explain_all(
    setups: Sequence[str] = (),
    stages: Sequence[str] = (),
    *,
    results: Path = RESULTS,
    workers: int | None = None,
    engine: str = "local",
) -> None:
    """Explain what is still to be explained, and keep rows as they come.

    A setup whose data or weights are not here is said so and passed over.

    Parameters
    ----------
    setups
        Names of :data:`SETUPS`; all by default.
    stages
        Names of :data:`STAGES`, in this order; all by default.
    results
        The folder of the results; ``work`` in it holds what is under way.
    workers, engine
        As for :func:`gstarx.runs.run`.
    """
    for stage in stages or STAGES:
        for method in STAGES[stage]:
            for setup in _chosen(setups):
                if method.only and setup.name not in method.only:
                    continue
                try:
                    _explain(setup, method, results, workers, engine)
                except Missing as error:
                    print(f"{setup.name}: {error}", file=sys.stderr)
                    Results(results, setup.name).note_missing(str(error))


def asked(setup: Setup, method: Method, split: str) -> tuple[int, ...]:
    """The graphs of a split that a method is to explain."""
    graphs = setup.graphs(split)
    return setup.few_graphs(graphs, split) if method.slow else graphs


def _chosen(setups: Sequence[str]) -> Iterable[Setup]:
    for name in setups:
        if name not in SETUPS:
            raise ValueError(f"there is no setup {name!r}; valid are {', '.join(SETUPS)}")
    return [SETUPS[name] for name in setups or SETUPS]


def _explain(setup: Setup, method: Method, results: Path, workers: int | None, engine: str) -> None:
    from gstarx import runs

    found = Results(results, setup.name)
    found.note_graphs({split: setup.graphs(split) for split in ("val", "test")})
    todo = [
        graph
        for split in method.splits
        for graph in asked(setup, method, split)
        if graph not in found.done(method, split)
    ]
    store = results / "work" / setup.name
    for first in range(0, len(todo), _AT_A_TIME):
        some = todo[first : first + _AT_A_TIME]
        start, cpu = time.perf_counter(), time.process_time()
        spec = runs.RunSpec(
            dataset=setup.dataset,
            model=str(setup.weights()),
            explainer={"name": method.explainer, "options": method.options},
            split="all",
            graphs=some,
            baseline=_baseline(setup, method),
            seed=method.seed,
        )
        report = runs.run(
            spec, store, workers=workers, engine=engine, progress=False, dataset=setup.data()
        )
        rows = runs.read(store, run=report.run)
        here = set(some)
        own = rows.filter([graph in here for graph in rows["graph"].to_pylist()])
        found.add(method, own, set(setup.graphs("test")))
        if report.done and first == 0 and workers == 1:
            explaining = sum(own["cpu_seconds"].to_pylist())
            _note_training(results, setup, method, time.process_time() - cpu - explaining)
        spent = time.perf_counter() - start
        failed = f", {report.failed} failed" if report.failed else ""
        print(f"{setup.name}, {method.name}: {len(some)} graphs, {spent:.0f} s{failed}", flush=True)


def _note_training(results: Path, setup: Setup, method: Method, seconds: float) -> None:
    """Write down what training took: what a run took beyond its graphs, to a second or so."""
    if METHODS[method.name].explainer not in ("pgexplainer", "orphicx"):
        return
    known = training_seconds(results)
    known.setdefault(setup.name, {}).setdefault(method.name, round(seconds, 1))
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    write_whole(results / "training_seconds.json", text.encode())


def training_seconds(results: Path) -> dict[str, dict[str, float]]:
    """CPU seconds that explainers took to train, by setup and method."""
    path = results / "training_seconds.json"
    found: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _baseline(setup: Setup, method: Method) -> tuple[float, ...] | None:
    """The baseline as numbers: the mean over a split of a large dataset takes a while."""
    if not isinstance(method.baseline, str):
        return method.baseline
    return _mean_output(setup, method.baseline)


@cache
def _mean_output(setup: Setup, split: str) -> tuple[float, ...]:
    model = load_weights(setup.weights())
    return tuple(round(float(p), 6) for p in expected_output(model, setup.data().split(split)))


__all__ = ["asked", "explain_all", "training_seconds"]
