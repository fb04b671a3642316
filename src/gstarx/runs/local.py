"""The engine of one machine: this process, or worker processes with one torch thread each."""

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

from gstarx.runs.resolution import ChangedInput, ResolvedRun
from gstarx.runs.rows import Done, Task

#: Graphs that a worker has at a time: one in work, and one that waits for it.
_AT_A_TIME = 2
#: How often a graph may take its worker down before it is given up.
ATTEMPTS = 2
#: How many may end before they have begun for each worker, in a row, until none is replaced.
STARTS = 3
_LOG = logging.getLogger(__name__)


def explain_locally(
    resolved: ResolvedRun,
    trained: Path | None,
    positions: Sequence[int],
    *,
    workers: int | None = None,
) -> Iterator[Done]:
    """Rows as they are finished, in any order.

    Parameters
    ----------
    resolved, trained
        The run and its trained explainer.
    positions
        The graphs.
    workers
        Number of processes, by default as many as there are cores for this one. One worker is this
        process itself.

    Raises
    ------
    RuntimeError
        When no worker process can begin.
    """
    count = min(usable_cores() if workers is None else workers, len(positions))
    task = resolved.task(trained)
    # one graph and several workers: it may be one that takes its process down
    if count <= 1 and (workers is None or workers == 1):
        for position in positions:
            yield task.run(position, resolved.graph(position))
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


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A worker process, the graphs it has, and a thread that listens to it."""

    def __init__(self, setup: dict[str, Any], heard: queue.SimpleQueue[Any]) -> None:
        self.has: deque[int] = deque()
        self.ready = False
        self.failure: str | None = None
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gstarx.runs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **one_thread, "PYTHONPATH": path},
            # in a group of its own: Ctrl-C is for this process, which sees to its workers
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._listener.start()
        self.say(json.dumps(setup).encode())

    def say(self, line: bytes) -> None:
        # where it is gone, we are about to hear
        with suppress(OSError):
            _pipe(self.process.stdin).write(line + b"\n")
            _pipe(self.process.stdin).flush()

    def give(self, position: int) -> None:
        self.has.append(position)
        self.say(b"%d" % position)

    def _listen(self, heard: queue.SimpleQueue[Any]) -> None:
        for line in _pipe(self.process.stdout):
            heard.put((self, line))
        heard.put((self, None))

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
    """Workers that share the graphs, and are replaced when they die."""

    def __init__(self, setup: dict[str, Any], positions: Sequence[int]) -> None:
        self._setup = setup
        self._waiting = deque(positions)
        self._open = len(positions)
        self._deaths: Counter[int] = Counter()
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._stillborn = 0
        self._most_stillborn = 0

    def start(self, count: int) -> None:
        """Start so many workers, or as many as the system allows."""
        self._most_stillborn = max(self._most_stillborn, STARTS * count)
        for _ in range(count):
            try:
                self._workers.append(_Worker(self._setup, self._heard))
            except OSError as error:
                self._not_begun(f"cannot be started: {error}")
                return

    def results(self, resolved: ResolvedRun, task: Task) -> Iterator[Done]:
        while self._open:
            worker, line = self._heard.get()
            if line is None or not line.endswith(b"\n"):
                yield from self._buried(worker, resolved, task)
            elif line == b"ready\n":
                worker.ready = True
                self._stillborn = 0
            elif line.startswith(b"failed "):
                worker.failure = str(json.loads(line[7:]))
                if worker.failure.startswith("ChangedInput: "):
                    raise ChangedInput(f"a worker process could not begin: {worker.failure}")
            else:
                position, failed, row = line[:-1].split(b" ", 2)
                worker.has.remove(int(position))
                self._open -= 1
                yield Done(int(position), failed == b"1", row)
            # not only to the one that was heard: it may be gone, and another have nothing to do
            for each in self._workers:
                while each.ready and self._waiting and len(each.has) < _AT_A_TIME:
                    each.give(self._waiting.popleft())

    def _buried(self, worker: _Worker, resolved: ResolvedRun, task: Task) -> Iterator[Done]:
        """Put a worker in the place of one that died, and its graphs back in front.

        The first of its graphs was the one it was at.
        """
        if worker not in self._workers:
            return  # the end of a line that was cut off, after which comes the end
        self._workers.remove(worker)
        code = worker.process.wait()
        worker.stop()
        if not worker.ready:
            self._not_begun(
                f"ended before it had begun, {_cause(code)}"
                if worker.failure is None
                else f"could not begin: {worker.failure}"
            )
            return
        worker.ready = False
        if worker.has:
            suspect = worker.has[0]
            self._deaths[suspect] += 1
            if self._deaths[suspect] >= ATTEMPTS:
                worker.has.popleft()
                self._open -= 1
                reason = f"{ATTEMPTS} worker processes ended while at this graph, {_cause(code)}"
                yield task.lost(suspect, resolved.graph(suspect), reason)
        self._waiting.extendleft(reversed(worker.has))
        if self._open:
            self.start(1)

    def _not_begun(self, reason: str) -> None:
        """Try again with a new worker, go on with the others, or give up."""
        self._stillborn += 1
        _LOG.warning("a worker process %s", reason)
        if self._stillborn < self._most_stillborn:
            self.start(1)
        elif not self._workers:
            raise RuntimeError(
                f"a worker process {reason}. This was so {self._stillborn} times in a row, and no "
                "other one is left. What it said is on standard error; what is finished is safe: "
                "see to it, and resume, or use one worker, which is this process"
            )

    def stop(self) -> None:
        for worker in self._workers:
            if not worker.ready:
                worker.process.kill()  # it would only listen when it has loaded everything
            with suppress(OSError):
                _pipe(worker.process.stdin).close()
        for worker in self._workers:
            worker.stop()


def _cause(code: int) -> str:
    if code == -9:
        return "killed by signal 9, as the system does when memory runs out"
    return f"killed by signal {-code}" if code < 0 else f"with exit code {code}"


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None
    return end
