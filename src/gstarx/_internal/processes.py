"""Processes and threads: one torch thread, workers, and forks that inherit everything."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, cast


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread, so that commands, runs and their workers give the same numbers.

    More threads would only wait for each other: no graph is large enough to be split among them.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def worker_environment() -> dict[str, str]:
    """Environment variables of a worker process: one thread, and the modules of this process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**os.environ, **threads, "PYTHONPATH": path}


class WorkerDied(RuntimeError):
    """A process ended before it had a result."""


@dataclass(frozen=True)
class Outcome:
    """What a call returned, or the error it raised, and the warnings on the way."""

    result: Any = None
    error: Exception | None = None
    warned: tuple[tuple[type[Warning], str], ...] = ()

    def get(self) -> Any:
        """The result, with the warnings and the error of the call."""
        for category, message in self.warned:
            warnings.warn(message, category, stacklevel=3)
        if self.error is not None:
            raise self.error
        return self.result


def outcome_of(call: Callable[[], Any]) -> Outcome:
    """What a call returns or raises, as far as it survives being sent to another process."""
    try:
        return Outcome(call())
    except Exception as error:
        return Outcome(error=_sendable(error))


def can_fork() -> bool:
    """Whether this system has processes that inherit from their parent."""
    return "fork" in multiprocessing.get_all_start_methods()


def cause_of_death(code: int | None) -> str:
    """How a process ended, from its exit code."""
    if code == -9:
        return "killed by signal 9, as the system does when memory runs out"
    return (
        f"killed by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    )


def forked_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Outcome]:
    """The outcomes of calls in order, from processes with one torch thread each.

    Results are pickled; the function, the items and all that they refer to are inherited. A process
    that dies is replaced, and its death is the error of the item that it had.
    """
    waiting = deque(range(len(items)))
    outcomes: dict[int, Outcome] = {}
    busy: list[_Worker] = []

    def advance(timeout: float | None) -> None:
        """Take the outcomes that arrive by then, and keep the processes busy."""
        while waiting and len(busy) < workers:
            busy.append(_Worker(function, items, waiting.popleft()))
        ready = wait([worker.connection for worker in busy], timeout)
        for worker in [each for each in busy if each.connection in ready]:
            outcomes[worker.number] = worker.outcome()
            if waiting and worker.process.exitcode is None:
                worker.give(waiting.popleft())
            else:
                busy.remove(worker)
                worker.stop()

    try:
        for number in range(len(items)):
            advance(0)
            while number not in outcomes:
                advance(None)
            yield outcomes.pop(number)
    finally:
        for worker in busy:
            worker.stop()


class _Worker:
    """A forked process, which has one item at a time."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any], first: int) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, other = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(function, items, other, self.connection)
        )
        with warnings.catch_warnings():
            # Python 3.12 and later: threads of this process do not exist in the others
            warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
            self.process.start()
        other.close()  # so that only the process has it, and its death closes it
        self.give(first)

    def give(self, number: int) -> None:
        self.number = number
        with suppress(OSError):  # a process that has died is found when its outcome is read
            self.connection.send(number)

    def outcome(self) -> Outcome:
        try:
            return cast(Outcome, pickle.loads(self.connection.recv_bytes()))
        except (EOFError, OSError):
            self.stop()
            cause = cause_of_death(self.process.exitcode)
            return Outcome(error=WorkerDied(f"the worker process died, {cause}"))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(
    function: Callable[[Any], Any], items: Sequence[Any], connection: Any, parents: Any
) -> None:
    """Call the function in a new process; an interrupt is for the parent, which ends this one."""
    import torch

    from gstarx._internal.progress import hide_bars

    parents.close()  # so that the death of the parent closes it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    hide_bars()
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_call(function, items[connection.recv()]))


def _call(function: Callable[[Any], Any], item: Any) -> bytes:
    """The pickled outcome of a call, or that of pickling it."""
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(item)
        except Exception as raised:
            error = _sendable(raised)
    warned = tuple((warning.category, str(warning.message)) for warning in caught)
    try:
        return pickle.dumps(Outcome(result, error, warned))
    except Exception as unsendable:
        return pickle.dumps(Outcome(error=_sendable(unsendable)))


def _sendable(error: Exception) -> Exception:
    """An error that survives being sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
