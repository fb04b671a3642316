"""Run a specification, resume runs that were stopped, and retry graphs that failed."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gstarx._internal.messages import unknown
from gstarx._internal.processes import one_thread
from gstarx._internal.progress import tqdm
from gstarx.datasets import GraphDataset
from gstarx.values import Imprecise, summarize_imprecise
from gstarx_bench.runs.local import explain_locally
from gstarx_bench.runs.on_ray import explain_on_ray
from gstarx_bench.runs.resolution import (
    ChangedInput,
    ResolvedRun,
    check_unchanged,
    check_versions,
    resolve,
    trained_explainer,
)
from gstarx_bench.runs.rows import TaskResult
from gstarx_bench.runs.specification import RunSpec, as_spec
from gstarx_bench.runs.store import (
    FAILED,
    MISSING,
    Store,
    StoreError,
    check_format,
    open_store,
    storage_errors,
)

_LOG = logging.getLogger(__name__)
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class RunReport:
    """The outcome of a run.

    Attributes
    ----------
    run
        The digest of everything that can change a number, as in the column ``run``.
    graphs
        Number of requested graphs.
    found
        How many of them were in the store already.
    done
        How many were processed now, including those that failed.
    failed
        How many of the requested graphs have failed, now or before.
    seconds
        Wall time.
    """

    run: str
    graphs: int
    found: int
    done: int
    failed: int
    seconds: float


@dataclass(frozen=True)
class _Engine:
    """Where graphs are explained, and by how many workers."""

    name: str
    workers: int | None
    address: str | None
    progress: bool

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ValueError(unknown("engine", str(self.name), ENGINES))
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1 (got {self.workers!r})")
        if self.address is not None and self.name != "ray":
            raise ValueError("address is the address of a Ray cluster: use it with engine='ray'")

    def results(
        self, resolved: ResolvedRun, trained: Path | None, positions: Sequence[int]
    ) -> Iterator[TaskResult]:
        if self.name == "local":
            return explain_locally(resolved, trained, positions, workers=self.workers)
        return explain_on_ray(
            resolved, trained, positions, workers=self.workers, address=self.address
        )


def run(
    spec: RunSpec | Mapping[str, Any] | str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
    dataset: GraphDataset | None = None,
) -> RunReport:
    """Explain the graphs of a specification that the store does not have yet.

    Every finished graph is stored at once, and stays there whatever happens next: call this again
    to continue. A graph that fails is stored as a row with its error and is not retried. The rows
    are the same with every engine and any number of workers, except for :data:`VOLATILE` columns.

    Parameters
    ----------
    spec
        A :class:`RunSpec`, a dictionary that makes one, or the path of a ``.toml`` or ``.json``
        file.
    store
        A directory, which is created if needed. It can hold any number of runs.
    engine
        ``"local"`` for processes on this machine, ``"ray"`` for a Ray cluster.
    workers
        Number of processes, or of simultaneous tasks on Ray; by default all cores.
    address
        Address of the Ray cluster; see :func:`gstarx_bench.runs.on_ray.explain_on_ray`.
    progress
        Show a progress bar with rate and remaining time.
    dataset
        The dataset that the specification names, if it has been loaded already; worker processes
        load their own.

    Raises
    ------
    ValueError
        If the specification is not valid.
    ChangedInput
        If data or weights do not match the digests in the specification.
    StoreInUse, StoreError
        If another process is writing to the store, or it cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from gstarx.models import GCN, save_model
    >>> from gstarx_bench.runs import read
    >>> with TemporaryDirectory() as folder:
    ...     _ = save_model(f"{folder}/gcn.safetensors", GCN(8, 8, 2))
    ...     spec = RunSpec(
    ...         dataset="nitro",
    ...         model=f"{folder}/gcn.safetensors",
    ...         explainer="leave_one_out",
    ...         split="all",
    ...         graphs=(0, 1, 2),
    ...     )
    ...     report = run(spec, f"{folder}/store", workers=1, progress=False)
    ...     table = read(f"{folder}/store")
    >>> report.done, report.failed, table.num_rows
    (3, 0, 3)
    """
    chosen = _Engine(engine, workers, address, progress)
    spec = as_spec(spec)
    with one_thread(), open_store(store) as opened:
        return _execute(opened, spec, MISSING, chosen, dataset)


def resume(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
) -> list[RunReport]:
    """Resume the runs of a store that were stopped.

    A run that cannot be resumed does not affect the others. Damaged files in ``runs/`` are named
    in the log.

    Parameters
    ----------
    store
        Its directory.
    run
        Only this run; by default all.
    engine, workers, address, progress
        As for :func:`run`; they may differ from those of the first run.

    Raises
    ------
    ChangedInput
        At the end, if data, weights or packages have changed since a run was started.
    StoreError
        If the file about ``run`` is damaged.
    """
    return _resume(store, run, MISSING, _Engine(engine, workers, address, progress))


def retry_failed(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
) -> list[RunReport]:
    """Retry the graphs whose rows have an error; new rows replace the old ones.

    The parameters are those of :func:`resume`.
    """
    return _resume(store, run, FAILED, _Engine(engine, workers, address, progress))


def _resume(
    store: str | os.PathLike[str], run: str | None, status: int, engine: _Engine
) -> list[RunReport]:
    check_format(Path(store))
    with one_thread(), open_store(store) as opened:
        requests, problems = opened.read_requests()
        stored = [request["name"].partition("-")[0] for request in requests]
        for name, problem in problems.items():
            if run is not None and run not in stored and name.partition("-")[0] == run:
                raise problem
            _LOG.warning("%s", problem)
        if run is not None and run not in stored:
            raise ValueError(unknown("run", run, dict.fromkeys(stored)))
        chosen = [r for r, name in zip(requests, stored, strict=True) if run in (None, name)]
        return _resume_all(opened, chosen, status, engine)


def _resume_all(
    store: Store, requests: Sequence[Mapping[str, Any]], status: int, engine: _Engine
) -> list[RunReport]:
    """Resume every request that can be; then raise the errors of the others."""
    reports: list[RunReport] = []
    errors: list[Exception] = []
    for request in requests:
        try:
            check_versions(request)
            spec = RunSpec.model_validate(request["spec"])
            reports.append(_execute(store, spec, status, engine, request=request))
        except (ChangedInput, StoreError, ValueError, OSError) as error:
            if isinstance(error.__cause__, OSError):
                raise  # a full disk affects all of them
            error.add_note(f"the run {request['name']} was not resumed")
            errors.append(error)
    if errors:
        for other in errors[1:]:
            errors[0].add_note("\n".join([str(other), *other.__notes__]))
        raise errors[0]
    return reports


def _execute(
    store: Store,
    spec: RunSpec,
    status: int,
    engine: _Engine,
    dataset: GraphDataset | None = None,
    request: Mapping[str, Any] | None = None,
) -> RunReport:
    """Explain the graphs of a status; ``request`` is that of the run to resume."""
    start = time.perf_counter()
    resolved = resolve(spec, dataset=dataset)
    if request is not None:
        check_unchanged(resolved, request)
    store.remember(resolved.name, resolved.request)
    before = store.statuses(resolved.run, resolved.count)[list(resolved.positions)]
    todo = [p for p, s in zip(resolved.positions, before.tolist(), strict=True) if s == status]
    failed = int((before == FAILED).sum())
    if status == FAILED:
        failed -= len(todo)
    if todo:
        with storage_errors(store.path):
            trained = trained_explainer(resolved, store.trained)
        results = engine.results(resolved, trained, todo)
        failed += _write_rows(results, store, resolved, len(todo), engine.progress)
    return RunReport(
        run=resolved.run,
        graphs=len(resolved.positions),
        found=int((before != MISSING).sum()),
        done=len(todo),
        failed=failed,
        seconds=time.perf_counter() - start,
    )


def _write_rows(
    results: Iterator[TaskResult],
    store: Store,
    resolved: ResolvedRun,
    todo: int,
    progress: bool,
) -> int:
    """Store every row as it arrives; returns how many of them failed."""
    failed = 0
    unit = "graph" if resolved.spec.nodes is None else "node"
    imprecise: dict[str, list[Imprecise]] = {}
    bar = tqdm(
        total=len(resolved.positions),
        initial=len(resolved.positions) - todo,
        desc=f"{resolved.spec.explainer.name} on {resolved.spec.dataset.title}",
        unit=unit,
        disable=not progress,
        mininterval=0.5,
    )
    try:
        with bar:
            for result in results:
                store.append(resolved.run, result)
                failed += result.failed
                if result.imprecise is not None:
                    imprecise[f"{unit} {result.position}"] = [result.imprecise]
                bar.update()
                if result.failed:
                    bar.set_postfix(failed=failed, refresh=False)
    finally:
        results.close()  # type: ignore[attr-defined]  # workers end with the generator
    summarize_imprecise(imprecise, todo, f"{unit}s", stacklevel=4)
    return failed
