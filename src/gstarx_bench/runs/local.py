"""The local engine: this process, or worker processes with one torch thread each."""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from gstarx._internal.processes import (
    can_fork,
    cause_of_death,
    forked_map,
    worker_environment,
)
from gstarx.values import Imprecise
from gstarx_bench.runs.resolution import ChangedInput, ResolvedRun
from gstarx_bench.runs.rows import Task, TaskResult

#: Graphs assigned to a worker at a time: the current one and the next.
_ASSIGNED = 2
#: How often a graph may crash its worker before it counts as failed.
MAX_CRASHES = 2
#: How many workers in a row, per worker, may exit before they are ready until none is replaced.
MAX_STARTS = 3
_LOG = logging.getLogger(__name__)


def explain_locally(
    resolved: ResolvedRun,
    trained: Path | None,
    positions: Sequence[int],
    *,
    workers: int | None = None,
) -> Iterator[TaskResult]:
    """Rows as they are finished, in any order.

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
    # with several workers, even a single graph gets a process, which it may crash
    if count <= 1 and (workers is None or workers == 1):
        for position in positions:
            yield task.run(position, resolved.graph(position))
        return
    if resolved.live:
        yield from _forked(resolved, task, positions, count)
        return
    setup = {
        "spec": resolved.spec.model_dump(mode="json"),
        "run": resolved.run,
        "baseline": resolved.baseline,
        "trained": None if trained is None else os.fspath(trained.absolute()),
    }
    pool = _Pool(setup, positions)
    try:
        pool.start(count)
        yield from pool.results(resolved, task)
    finally:
        pool.stop()


def _forked(
    resolved: ResolvedRun, task: Task, positions: Sequence[int], workers: int
) -> Iterator[TaskResult]:
    """Rows from processes that inherit a model and graphs that no file describes."""

    def explained(position: int) -> TaskResult:
        return task.run(position, resolved.graph(position))

    if not can_fork() or not resolved.spec.device.startswith("cpu"):
        # another device cannot be used in a fork
        yield from map(explained, positions)
        return
    for position, outcome in zip(positions, forked_map(explained, positions, workers), strict=True):
        if outcome.error is None:
            yield outcome.get()
        else:
            yield task.lost(position, resolved.graph(position), str(outcome.error))


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A worker process, its graphs, and a thread that reads its output."""

    def __init__(self, setup: dict[str, Any], lines: queue.SimpleQueue[Any]) -> None:
        self.assigned: deque[int] = deque()
        self.ready = False
        self.failure: str | None = None
        #: What is to be said of the precision of the next row.
        self.imprecise: Imprecise | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gstarx_bench.runs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=worker_environment(),
            # in a group of its own: Ctrl-C is for this process, which stops its workers
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(lines,), daemon=True)
        self._listener.start()
        self._send(json.dumps(setup).encode())

    def _send(self, line: bytes) -> None:
        # if the process is gone, its output ends
        with suppress(OSError):
            _pipe(self.process.stdin).write(line + b"\n")
            _pipe(self.process.stdin).flush()

    def assign(self, position: int) -> None:
        self.assigned.append(position)
        self._send(b"%d" % position)

    def _listen(self, lines: queue.SimpleQueue[Any]) -> None:
        for line in _pipe(self.process.stdout):
            lines.put((self, line))
        lines.put((self, None))

    def stop(self) -> None:
        with suppress(OSError):
            _pipe(self.process.stdin).close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._listener.join()
        _pipe(self.process.stdout).close()


class _Pool:
    """Workers that share the graphs and are replaced when they crash."""

    def __init__(self, setup: dict[str, Any], positions: Sequence[int]) -> None:
        self._setup = setup
        self._waiting = deque(positions)
        self._unfinished = len(positions)
        self._crashes: Counter[int] = Counter()
        self._lines: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self._max_failed_starts = 0

    def start(self, count: int) -> None:
        """Start ``count`` workers, or as many as the system allows."""
        self._max_failed_starts = max(self._max_failed_starts, MAX_STARTS * count)
        for _ in range(count):
            try:
                self._workers.append(_Worker(self._setup, self._lines))
            except OSError as error:
                self._start_failed(f"cannot be started: {error}")
                return

    def results(self, resolved: ResolvedRun, task: Task) -> Iterator[TaskResult]:
        while self._unfinished:
            worker, line = self._lines.get()
            if line is None or not line.endswith(b"\n"):
                yield from self._replace(worker, resolved, task)
            elif line == b"ready\n":
                worker.ready = True
                self._failed_starts = 0
            elif line.startswith(b"failed "):
                worker.failure = str(json.loads(line[7:]))
                if worker.failure.startswith("ChangedInput: "):
                    raise ChangedInput(f"a worker process could not start: {worker.failure}")
            elif line.startswith(b"imprecise "):
                worker.imprecise = Imprecise(*json.loads(line[10:]))
            else:
                position, failed, row = line[:-1].split(b" ", 2)
                worker.assigned.remove(int(position))
                self._unfinished -= 1
                yield TaskResult(int(position), failed == b"1", row, worker.imprecise)
                worker.imprecise = None
            # all workers: the one of this line may be gone, and another one idle
            for each in self._workers:
                while each.ready and self._waiting and len(each.assigned) < _ASSIGNED:
                    each.assign(self._waiting.popleft())

    def _replace(self, worker: _Worker, resolved: ResolvedRun, task: Task) -> Iterator[TaskResult]:
        """Replace a worker that crashed, and put its graphs back at the front.

        It crashed at the first of them.
        """
        if worker not in self._workers:
            return  # replaced already, after an incomplete line
        self._workers.remove(worker)
        code = worker.process.wait()
        worker.stop()
        if not worker.ready:
            self._start_failed(
                f"exited before it was ready, {cause_of_death(code)}"
                if worker.failure is None
                else f"could not start: {worker.failure}"
            )
            return
        worker.ready = False
        if worker.assigned:
            suspect = worker.assigned[0]
            self._crashes[suspect] += 1
            if self._crashes[suspect] >= MAX_CRASHES:
                worker.assigned.popleft()
                self._unfinished -= 1
                reason = (
                    f"{MAX_CRASHES} worker processes crashed at this graph, {cause_of_death(code)}"
                )
                yield task.lost(suspect, resolved.graph(suspect), reason)
        self._waiting.extendleft(reversed(worker.assigned))
        if self._unfinished:
            self.start(1)

    def _start_failed(self, reason: str) -> None:
        """Try again with a new worker, continue with the others, or give up."""
        self._failed_starts += 1
        _LOG.warning("a worker process %s", reason)
        if self._failed_starts < self._max_failed_starts:
            self.start(1)
        elif not self._workers:
            raise RuntimeError(
                f"a worker process {reason}. This happened {self._failed_starts} times in a row, "
                "and no other worker is left. Its messages are on standard error. Finished rows "
                "are safe: fix the problem and resume, or use one worker, which is this process"
            )

    def stop(self) -> None:
        for worker in self._workers:
            if not worker.ready:
                worker.process.kill()  # it does not read its input until it has loaded everything
            with suppress(OSError):
                _pipe(worker.process.stdin).close()
        for worker in self._workers:
            worker.stop()


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None
    return end
