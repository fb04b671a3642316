"""Carrying out runs: from the start, from where they stopped, and what failed once more."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from gstarx._internal.one_thread import one_thread
from gstarx._internal.suggestions import unknown
from gstarx.datasets import GraphDataset
from gstarx.runs.local import explain_locally
from gstarx.runs.on_ray import explain_on_ray
from gstarx.runs.parquet_parts import FAILED, MISSING
from gstarx.runs.resolution import (
    ChangedInput,
    ResolvedRun,
    check_unchanged,
    check_versions,
    resolve,
    trained_explainer,
)
from gstarx.runs.rows import Done
from gstarx.runs.specification import RunSpec, as_spec
from gstarx.runs.store import Store, StoreError, Writer, check_format, disk, open_store

_LOG = logging.getLogger(__name__)
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class RunReport:
    """What a run did.

    Attributes
    ----------
    run
        The digest of everything that can change a number, as in the column ``run``.
    graphs
        Number of graphs that were asked for.
    found
        How many of them were in the store already.
    done
        How many were explained now, or failed now.
    failed
        How many of all have failed, now or before.
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
    """Who does the work."""

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
            raise ValueError("address is of a Ray cluster: say engine='ray'")

    def results(
        self, resolved: ResolvedRun, trained: Path | None, positions: Sequence[int]
    ) -> Iterator[Done]:
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

    Every finished graph is in the store at once, and stays there whatever happens next: call it
    again to go on. A graph that fails is a row with its error, and is not tried again by this. The
    rows are the same with every engine and any number of workers, but for :data:`VOLATILE` columns.

    Parameters
    ----------
    spec
        A :class:`RunSpec`, a dictionary that makes one, or the path of a ``.toml`` or ``.json``
        file.
    store
        A directory; made if need be. It can hold any number of runs.
    engine
        ``"local"`` for processes on this machine, ``"ray"`` for a Ray cluster.
    workers
        Number of processes, or the most tasks at a time on Ray; by default all cores.
    address
        Of the Ray cluster; see :func:`gstarx.runs.on_ray.explain_on_ray`.
    progress
        Show a bar with rate and remaining time.
    dataset
        The dataset that the specification names, if it has been loaded already; worker processes
        load their own.

    Raises
    ------
    ValueError
        When the specification is not valid.
    ChangedInput
        When data or weights are not those of the digests in the specification.
    StoreInUse, StoreError
        When another process has the store open, or it cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from gstarx.models import GCN, save_model
    >>> from gstarx.runs import read
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
    how = _Engine(engine, workers, address, progress)
    asked = as_spec(spec)
    with one_thread(), open_store(store) as opened:
        return _carried_out(opened, asked, MISSING, how, dataset)


def resume(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
) -> list[RunReport]:
    """Go on with the runs of a store that were stopped.

    A run that cannot go on does not keep the others from it. A file about a run that is damaged is
    named in the log.

    Parameters
    ----------
    store
        Its directory.
    run
        Only this run; by default all.
    engine, workers, address, progress
        As for :func:`run`, and not necessarily what they were before.

    Raises
    ------
    ChangedInput
        At the end, when data, weights or packages are not those that a run was begun with.
    StoreError
        When the file about ``run`` is damaged.
    """
    return _again(store, run, MISSING, _Engine(engine, workers, address, progress))


def retry_failed(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool = True,
) -> list[RunReport]:
    """Do the graphs once more whose rows hold an error; new rows take the place of the old ones.

    Parameters are those of :func:`resume`.
    """
    return _again(store, run, FAILED, _Engine(engine, workers, address, progress))


def _again(
    store: str | os.PathLike[str], run: str | None, status: int, how: _Engine
) -> list[RunReport]:
    check_format(Path(store))
    with one_thread(), open_store(store) as opened:
        requests, problems = opened.read_requests()
        known = [request["name"].partition("-")[0] for request in requests]
        for name, problem in problems.items():
            if run is not None and run not in known and name.partition("-")[0] == run:
                raise problem
            _LOG.warning("%s", problem)
        if run is not None and run not in known:
            raise ValueError(unknown("run", run, dict.fromkeys(known)))
        chosen = [r for r, name in zip(requests, known, strict=True) if run in (None, name)]
        return _all_of(opened, chosen, status, how)


def _all_of(
    store: Store, requests: Sequence[Mapping[str, Any]], status: int, how: _Engine
) -> list[RunReport]:
    """Carry out every request that can be; then raise what is wrong with the others."""
    reports: list[RunReport] = []
    wrong: list[Exception] = []
    for request in requests:
        try:
            check_versions(request)
            spec = RunSpec.model_validate(request["spec"])
            reports.append(_carried_out(store, spec, status, how, begun=request))
        except (ChangedInput, StoreError, ValueError, OSError) as error:
            if isinstance(error.__cause__, OSError):
                raise  # a full disk is full for all of them
            error.add_note(f"the run {request['name']} was not resumed")
            wrong.append(error)
    if wrong:
        for more in wrong[1:]:
            wrong[0].add_note("\n".join([str(more), *more.__notes__]))
        raise wrong[0]
    return reports


def _carried_out(
    store: Store,
    spec: RunSpec,
    status: int,
    how: _Engine,
    dataset: GraphDataset | None = None,
    begun: Mapping[str, Any] | None = None,
) -> RunReport:
    start = time.perf_counter()
    resolved = resolve(spec, dataset=dataset)
    if begun is not None:
        check_unchanged(resolved, begun)
    store.remember(resolved.name, resolved.request)
    before = store.statuses(resolved.run, len(resolved.dataset))[list(resolved.positions)]
    todo = [p for p, s in zip(resolved.positions, before.tolist(), strict=True) if s == status]
    failed = int((before == FAILED).sum())
    if status == FAILED:
        failed -= len(todo)
    if todo:
        with disk(store.path):
            trained = trained_explainer(resolved, store.trained, store.aside)
        results = how.results(resolved, trained, todo)
        failed += _written(results, Writer(store.directory(resolved.run)), resolved, todo, how)
    return RunReport(
        run=resolved.run,
        graphs=len(resolved.positions),
        found=int((before != MISSING).sum()),
        done=len(todo),
        failed=failed,
        seconds=time.perf_counter() - start,
    )


def _written(
    results: Iterator[Done],
    writer: Writer,
    resolved: ResolvedRun,
    todo: Sequence[int],
    how: _Engine,
) -> int:
    """Keep every row as it comes; how many of them failed."""
    failed = 0
    bar = tqdm(
        total=len(resolved.positions),
        initial=len(resolved.positions) - len(todo),
        desc=f"{resolved.spec.explainer.name} on {resolved.spec.dataset.name}",
        unit="graph",
        disable=not how.progress,
        mininterval=0.5,
    )
    try:
        with bar:
            for done in results:
                writer.append(done.row)
                failed += done.failed
                bar.update()
                if done.failed:
                    bar.set_postfix(failed=failed, refresh=False)
        writer.finish()
    finally:
        # an interrupt does not wait for the merging of files; workers end with the generator
        results.close()  # type: ignore[attr-defined]
        writer.abandon()
    return failed
