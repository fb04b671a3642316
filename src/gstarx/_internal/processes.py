"""Processes and threads: one torch thread, workers, and forks that inherit everything."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


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


_function: Callable[[Any], Any] | None = None


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


def can_fork() -> bool:
    """Whether this system has processes that inherit from their parent."""
    return "fork" in multiprocessing.get_all_start_methods()


def forked_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Iterator[Outcome]:
    """The outcomes of calls in order, from processes with one torch thread each.

    Arguments and results are pickled; the function and all that it refers to are inherited. A
    process that dies raises ``BrokenProcessPool`` for the item it had.
    """
    with warnings.catch_warnings():
        # Python 3.12 and later: threads of this process do not exist in the others
        warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
        pool = ProcessPoolExecutor(
            min(workers, len(items)),
            mp_context=multiprocessing.get_context("fork"),
            initializer=_start,
            initargs=(function,),
        )
        futures = [pool.submit(_call, item) for item in items]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
        if any(not future.done() for future in futures):
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown()


def _start(function: Callable[[Any], Any]) -> None:
    """Prepare a new process; an interrupt is for the parent, which ends this one."""
    import torch

    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _call(item: Any) -> Outcome:
    assert _function is not None
    result, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = _function(item)
        except Exception as raised:
            error = _sendable(raised)
    warned = tuple((warning.category, str(warning.message)) for warning in caught)
    return Outcome(result, error, warned)


def _sendable(error: Exception) -> Exception:
    """An error that survives being sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
