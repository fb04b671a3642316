"""The local engine: this process, or worker processes with one torch thread each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from gstarx._internal.processes import Worker, WorkerDied, can_fork, unordered_map, usable_cores
from gstarx_bench.runs.resolution import ChangedInput, ResolvedRun, resolve
from gstarx_bench.runs.rows import RowTask, TaskResult
from gstarx_bench.runs.specification import RunSpec

#: How often a graph may crash its worker before it counts as failed.
MAX_CRASHES = 2


def explain_locally(
    resolved: ResolvedRun,
    trained: Path | None,
    positions: Sequence[int],
    *,
    workers: int | None = None,
) -> Iterator[TaskResult]:
    """Rows as they are finished, in any order.

    Workers inherit the model and the graphs. Where processes cannot, as on Windows or with a GPU,
    they load them again; what no file describes is explained by this process then.

    Parameters
    ----------
    resolved, trained
        The run and its trained explainer.
    positions
        The graphs.
    workers
        Number of processes; by default, the number of usable cores. One worker is this process
        itself.

    Raises
    ------
    RuntimeError
        If no worker process can start.
    """
    count = min(usable_cores() if workers is None else workers, len(positions))
    task = resolved.task(trained)
    inherit = can_fork() and resolved.spec.device.startswith("cpu")
    # with several workers, even a single graph gets a process, which it may crash
    alone = count <= 1 and (workers is None or workers == 1)
    if alone or (resolved.live and not inherit):
        yield from map(partial(_explain, resolved, task), positions)
        return
    if inherit:
        make = partial(Worker, lambda: partial(_explain, resolved, task))
    else:
        spec = resolved.spec.model_dump(mode="json")
        make = partial(Worker, _load, spec, resolved.run, resolved.baseline, trained, fork=False)
    results = unordered_map(make, positions, count, attempts=MAX_CRASHES, fatal=(ChangedInput,))
    with closing(results):
        for at, outcome in results:
            if outcome.error is None:
                yield outcome.get()
                continue
            reason = str(outcome.error)
            if isinstance(outcome.error, WorkerDied):
                reason = f"{MAX_CRASHES} worker processes died at this graph; {reason}"
            yield task.lost(positions[at], resolved.graph(positions[at]), reason)


def _explain(resolved: ResolvedRun, task: RowTask, position: int) -> TaskResult:
    return task.run(position, resolved.graph(position))


def _load(
    spec: dict[str, Any], run: str, baseline: tuple[float, ...] | str | None, trained: Path | None
) -> Callable[[int], TaskResult]:
    """In a worker that inherits nothing: what explains graphs."""
    with warnings.catch_warnings():
        # the process that started this one has read the same files and said it once
        warnings.simplefilter("ignore")
        resolved = resolve(RunSpec.model_validate(spec), baseline)
    if resolved.run != run:
        raise ChangedInput("the data, weights or packages have changed since the run was started")
    return partial(_explain, resolved, resolved.task(trained))
