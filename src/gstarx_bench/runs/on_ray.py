"""The Ray engine: tasks of several graphs each on a cluster."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx._internal.processes import usable_cores
from gstarx_bench.runs.resolution import ChangedInput, ResolvedRun, check_versions
from gstarx_bench.runs.rows import RowTask, TaskResult

#: Graphs in one object of the object store; a task explains a part of them.
GRAPHS_PER_OBJECT = 256
#: The time that a task should take: much longer than Ray's overhead of milliseconds.
_TASK_SECONDS = 2.0
#: Graphs of the first tasks.
_FIRST_SIZE = 4
#: How often Ray retries a task whose worker was lost.
_RETRIES = 3


class ClusterNotFound(ConnectionError):
    """There is no Ray cluster at the address."""


def explain_on_ray(
    resolved: ResolvedRun,
    trained: Path | None,
    positions: Sequence[int],
    *,
    workers: int | None = None,
    address: str | None = None,
) -> Iterator[TaskResult]:
    """Rows as their tasks are finished, in any order.

    The model is put into the object store once, and so are the graphs, in objects of 256 that are
    released when they are done. Tasks grow until they take about two seconds.

    Parameters
    ----------
    resolved, trained
        The run and its trained explainer.
    positions
        The graphs.
    workers
        Maximum number of tasks at a time; by default twice the number of cores of the cluster, so
        that as many tasks wait as run.
    address
        Address of a cluster, as in ``ray.init(address=...)``. By default, the cluster that this
        process is connected to, or a local one that ends with the run.

    Raises
    ------
    ClusterNotFound
        If there is no cluster at the address.
    """
    ray = require("ray", extra="ray")
    with _cluster(ray, address, workers):
        yield from _Tasks(ray, resolved, resolved.task(trained), positions, workers).results()


class _Tasks:
    """The tasks of a run: those to be submitted, and those that are running."""

    def __init__(
        self,
        ray: Any,
        resolved: ResolvedRun,
        task: RowTask,
        positions: Sequence[int],
        workers: int | None,
    ) -> None:
        self._ray = ray
        self._resolved = resolved
        self._task = task
        self._shared_task = ray.put(task)
        self._function = ray.remote(num_cpus=1, max_retries=_RETRIES)(explain_graphs)
        size = GRAPHS_PER_OBJECT
        self._chunks = deque(positions[at : at + size] for at in range(0, len(positions), size))
        self._current: deque[int] = deque()
        self._chunk: Any = None
        self._offsets: dict[int, int] = {}
        self._limit = workers or 2 * int(ray.cluster_resources().get("CPU", 1))
        self._size = _FIRST_SIZE
        self._running: dict[Any, tuple[Any, list[tuple[int, int]]]] = {}

    def results(self) -> Iterator[TaskResult]:
        try:
            while self._fill():
                finished, _ = self._ray.wait(list(self._running), num_returns=1)
                for reference in finished:
                    yield from self._collect(reference)
        finally:
            for reference in self._running:
                self._ray.cancel(reference, force=True)

    def _fill(self) -> bool:
        """Submit as many tasks as may run; whether there are any."""
        while len(self._running) < self._limit and (self._current or self._chunks):
            if not self._current:
                self._current = deque(self._chunks.popleft())
                self._offsets = {position: at for at, position in enumerate(self._current)}
                self._chunk = self._ray.put([self._resolved.graph(p) for p in self._current])
            count = min(self._size, len(self._current))
            positions = [self._current.popleft() for _ in range(count)]
            self._submit(self._chunk, [(self._offsets[p], p) for p in positions])
        return bool(self._running)

    def _submit(self, chunk: Any, graphs: list[tuple[int, int]]) -> None:
        reference = self._function.remote(self._shared_task, chunk, graphs)
        self._running[reference] = (chunk, graphs)

    def _collect(self, reference: Any) -> Iterator[TaskResult]:
        chunk, graphs = self._running.pop(reference)
        failures = self._ray.exceptions
        try:
            seconds, rows = self._ray.get(reference)
        except failures.RayTaskError as error:
            if isinstance(error.cause, ChangedInput):
                raise error.cause from None
            raise
        except (
            failures.WorkerCrashedError,
            failures.OutOfMemoryError,
            failures.NodeDiedError,
            failures.ObjectLostError,
            failures.LocalRayletDiedError,
        ) as error:
            if len(graphs) == 1:
                position = graphs[0][1]
                reason = f"Ray gave up on this graph, {type(error).__name__}"
                yield self._task.lost(position, self._resolved.graph(position), reason)
            # one at a time, to find the graph that crashes its worker
            for graph in graphs if len(graphs) > 1 else ():
                self._submit(chunk, [graph])
            return
        if seconds < _TASK_SECONDS / 2 and len(graphs) == self._size:
            self._size = min(2 * self._size, GRAPHS_PER_OBJECT)
        elif seconds > 2 * _TASK_SECONDS:
            self._size = max(self._size // 2, 1)
        yield from (TaskResult(*row) for row in rows)


def explain_graphs(
    task: RowTask, chunk: list[Data], graphs: list[tuple[int, int]]
) -> tuple[float, list[tuple[int, bool, bytes]]]:
    """Explain graphs of a chunk, given by offset and position; returns seconds and rows."""
    _check_versions(tuple(task.versions.items()))
    torch.set_num_threads(1)
    start = time.perf_counter()
    rows = [tuple(task.run(position, chunk[offset])) for offset, position in graphs]
    return time.perf_counter() - start, rows  # type: ignore[return-value]


@cache
def _check_versions(versions: tuple[tuple[str, str | None], ...]) -> None:
    """Raise if this machine has other packages than the driver."""
    try:
        check_versions({"versions": dict(versions)})
    except ChangedInput as error:
        raise ChangedInput(f"on {socket.gethostname()}: {error}") from None


@contextmanager
def _cluster(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to a cluster; shut down one that was started for the run."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"log_to_driver": False}
    if address is None:
        # a local cluster sends no usage statistics
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"num_cpus": workers or usable_cores(), "include_dashboard": False}
    else:
        _check_reachable(address)
        options["address"] = address
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, TimeoutError) as error:
            raise ClusterNotFound(_not_found(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Check the port at once, because Ray waits long for a cluster that does not exist."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ClusterNotFound(_not_found(address, error)) from error


def _not_found(address: str | None, error: Exception) -> str:
    return (
        f"there is no Ray cluster at {address!r} ({error}): start one with 'ray start --head', "
        "give its address, or omit the address for a local one"
    )
