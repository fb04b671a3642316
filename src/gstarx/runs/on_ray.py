"""The engine of many machines: tasks of several graphs on a Ray cluster."""

from __future__ import annotations

import os
import socket
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.runs.local import usable_cores
from gstarx.runs.resolution import ChangedInput, ResolvedRun, check_versions
from gstarx.runs.rows import Done, Task

#: Graphs in one object of the object store; a task is a part of one.
GRAPHS_PER_OBJECT = 256
#: What a task should take: long against the milliseconds that Ray needs for one.
_TASK_SECONDS = 2.0
_FIRST_TASK = 4
#: How often Ray itself does a task again whose worker was lost.
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
) -> Iterator[Done]:
    """Rows as their tasks are finished, in any order.

    The model goes to the object store once, and so do the graphs, in objects of 256 that are let
    go when they are done. Tasks grow until they take about two seconds.

    Parameters
    ----------
    resolved, trained
        The run and its trained explainer.
    positions
        The graphs.
    workers
        The most tasks at a time; by default one for every core of the cluster, and as many again
        that wait for them.
    address
        Address of a cluster, as in ``ray.init(address=...)``. By default the cluster that this
        process is connected to already, or else a local one, which ends with the run.

    Raises
    ------
    ClusterNotFound
        When there is none at the address.
    """
    ray = require("ray", extra="ray")
    with _cluster(ray, address, workers):
        yield from _Tasks(ray, resolved, resolved.task(trained), positions, workers).results()


class _Tasks:
    """The tasks of a run: those still to be made, and those under way."""

    def __init__(
        self,
        ray: Any,
        resolved: ResolvedRun,
        task: Task,
        positions: Sequence[int],
        workers: int | None,
    ) -> None:
        self._ray = ray
        self._resolved = resolved
        self._task = task
        self._shared_task = ray.put(task)
        self._function = ray.remote(num_cpus=1, max_retries=_RETRIES)(explain_some)
        size = GRAPHS_PER_OBJECT
        self._chunks = deque(positions[at : at + size] for at in range(0, len(positions), size))
        self._current: deque[int] = deque()
        self._placed: Any = None
        self._offsets: dict[int, int] = {}
        self._limit = workers or 2 * int(ray.cluster_resources().get("CPU", 1))
        self._size = _FIRST_TASK
        self._under_way: dict[Any, tuple[Any, list[tuple[int, int]]]] = {}

    def results(self) -> Iterator[Done]:
        try:
            while self._fill():
                finished, _ = self._ray.wait(list(self._under_way), num_returns=1)
                for reference in finished:
                    yield from self._collected(reference)
        finally:
            for reference in self._under_way:
                self._ray.cancel(reference, force=True)

    def _fill(self) -> bool:
        """Submit as many tasks as may be under way; whether there are any."""
        while len(self._under_way) < self._limit and (self._current or self._chunks):
            if not self._current:
                self._current = deque(self._chunks.popleft())
                self._offsets = {position: at for at, position in enumerate(self._current)}
                self._placed = self._ray.put([self._resolved.graph(p) for p in self._current])
            several = min(self._size, len(self._current))
            taken = [self._current.popleft() for _ in range(several)]
            self._submit(self._placed, [(self._offsets[p], p) for p in taken])
        return bool(self._under_way)

    def _submit(self, placed: Any, wanted: list[tuple[int, int]]) -> None:
        reference = self._function.remote(self._shared_task, placed, wanted)
        self._under_way[reference] = (placed, wanted)

    def _collected(self, reference: Any) -> Iterator[Done]:
        placed, wanted = self._under_way.pop(reference)
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
            if len(wanted) == 1:
                position = wanted[0][1]
                reason = f"Ray gave up on this graph, {type(error).__name__}"
                yield self._task.lost(position, self._resolved.graph(position), reason)
            # one by one, to find the graph that takes its worker down
            for single in wanted if len(wanted) > 1 else ():
                self._submit(placed, [single])
            return
        if seconds < _TASK_SECONDS / 2 and len(wanted) == self._size:
            self._size = min(2 * self._size, GRAPHS_PER_OBJECT)
        elif seconds > 2 * _TASK_SECONDS:
            self._size = max(self._size // 2, 1)
        yield from (Done(*row) for row in rows)


def explain_some(
    task: Task, graphs: list[Data], wanted: list[tuple[int, int]]
) -> tuple[float, list[tuple[int, bool, bytes]]]:
    """One task: some graphs of an object, by offset and position; seconds and rows."""
    import time

    _check_versions(tuple(task.versions.items()))
    torch.set_num_threads(1)
    start = time.perf_counter()
    rows = [tuple(task.run(position, graphs[offset])) for offset, position in wanted]
    return time.perf_counter() - start, rows  # type: ignore[return-value]


@cache
def _check_versions(begun: tuple[tuple[str, str | None], ...]) -> None:
    """Raise where this machine has other packages than the driver."""
    try:
        check_versions({"versions": dict(begun)})
    except ChangedInput as error:
        raise ChangedInput(f"on {socket.gethostname()}: {error}") from None


@contextmanager
def _cluster(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Connected to a cluster inside; one that was not there before is gone afterwards."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    options: dict[str, Any] = {"log_to_driver": False}
    if address is None:
        # nothing about it is told to anybody
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
            raise ClusterNotFound(_not_there(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray waits long for a cluster that is not there; a look at its port tells at once."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ClusterNotFound(_not_there(address, error)) from error


def _not_there(address: str | None, error: Exception) -> str:
    return (
        f"there is no Ray cluster at {address!r} ({error}): start one with 'ray start --head', "
        "give its address, or leave the address out for a local one"
    )
