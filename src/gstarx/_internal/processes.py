"""Worker processes: one torch thread each, jobs with limits, and forks that inherit everything.

There is one kind of worker, :class:`Worker`: a process that is told once what to do, and then does
one job after another. :func:`forked_map` and :func:`unordered_map` share many jobs among several of
them; a server keeps one for as long as it lives::

    worker = Worker(load, settings, fork=False, memory=4 << 30)  # load(settings) -> function(job)
    outcome = await asyncio.wrap_future(worker.ready)  # of load, which may have failed
    job = worker.submit(request, on_message=show)  # send_message(...) calls show(...)
    await asyncio.wait([asyncio.wrap_future(job)], timeout=30)
    job.cancel()  # does nothing if it has ended
    answer = job.result().get()
    worker.stop()

- A job that is canceled gets an exception, and keeps its process. One that does not react, and one
  whose ``timeout`` passes, ends with its process.
- A worker that died is not replaced: :attr:`Worker.alive` says so, all of its jobs end with
  :class:`WorkerDied`, and whoever wants another one makes it.
- ``on_message`` and callbacks of jobs are called in another thread: a server hands over to its own
  with ``loop.call_soon_threadsafe``. All messages of a job arrive before it ends.
- Interrupts (Ctrl-C) are for the process that started the workers; workers die when it dies.

Pebble starts, feeds, stops and kills the processes. Every worker has a pool of its own, because
workers that share one also share its pipes and locks, which a worker that is killed while it holds
them takes away from the others.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: How many workers in a row, per worker, may die before they are ready until none is replaced.
MAX_STARTS = 3
#: Seconds that a job may take to end by itself after it was canceled.
_GRACE = 1.0
#: Seconds after which the reason for the death of a process is known.
_BURIAL = 5.0
_READY = 0


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


def can_fork() -> bool:
    """Whether this system has processes that inherit from their parent."""
    return "fork" in multiprocessing.get_all_start_methods()


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerDied(RuntimeError):
    """A process ended before it had a result."""


class Canceled(RuntimeError):
    """A job was canceled."""


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


class Job(Future[Outcome]):
    """A job of a worker; its result is always an :class:`Outcome`, also of one that failed."""

    def __init__(self, worker: Worker, on_message: Callable[[Any], None] | None) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.on_message = on_message
        self.scheduled: Future[None] = Future()
        self._worker = worker

    def cancel(self) -> bool:
        """End the job with :class:`Canceled`, if need be by killing its process after a second.

        It has to be the one that the worker does, not one that waits for its turn.
        """
        if not self.done():
            self._worker.interrupt()
            timer = threading.Timer(_GRACE, self.scheduled.cancel)
            timer.daemon = True
            self.add_done_callback(lambda _: timer.cancel())
            timer.start()
        return False  # it ends a little later

    def end(self, outcome: Outcome) -> None:
        """Set the outcome; only the first call counts."""
        if not self.done():
            self.set_result(outcome)


class Worker:
    """A process that does one job after another.

    Parameters
    ----------
    setup
        Called in the process with ``arguments``; returns the function that does a job.
    fork
        Whether the process inherits everything from this one, so that nothing of ``setup`` is
        pickled. Other processes import it, and start with the modules of this one.
    memory
        Bytes by which the process may grow after ``setup``, on Linux: what exceeds it raises a
        ``MemoryError``.

    Attributes
    ----------
    ready
        A job that ends when ``setup`` has returned, failed or died.
    """

    def __init__(
        self,
        setup: Callable[..., Callable[[Any], Any]],
        *arguments: Any,
        fork: bool = True,
        memory: int | None = None,
    ) -> None:
        from pebble import ProcessPool

        self._context = _OneProcess("fork" if fork else "spawn")
        self._answers, answers = self._context.Pipe(duplex=False)
        self._numbers = count(_READY)
        self._jobs: dict[int, Job] = {}
        self._dead = False
        options: dict[str, Any] = {
            "initializer": _begin,
            "initargs": (setup, arguments, answers, memory),
            "context": self._context,
        }
        self._pool = ProcessPool(max_workers=1, **options)
        with warnings.catch_warnings(), _one_thread_in_children():
            # Python 3.12 and later: threads of this process do not exist in the others
            warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
            self.ready = self.submit(None)
        answers.close()  # so that only the process has it, and its death closes it
        if self.pid is None:
            self._answers.close()
            raise OSError("no process can be started") from self.ready.scheduled.exception()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int | None:
        """The process ID."""
        process = self._context.process
        return None if process is None else process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended, as far as we know."""
        return not self._dead

    def submit(
        self,
        item: Any,
        *,
        timeout: float | None = None,
        on_message: Callable[[Any], None] | None = None,
    ) -> Job:
        """Give the process a job, which may take so many seconds from when it is begun."""
        number, job = next(self._numbers), Job(self, on_message)
        self._jobs[number] = job
        try:
            job.scheduled = self._pool.schedule(_work, (number, item), timeout=timeout)
        except RuntimeError as error:  # its process has died, or cannot be started
            job.scheduled.set_exception(error)
        job.scheduled.add_done_callback(partial(self._scheduled, number))
        if self._dead:
            self._end(number, Outcome(error=WorkerDied("the worker process died before")))
        return job

    def interrupt(self) -> None:
        """Raise an exception in the job that the process does, if there is one."""
        if os.name != "nt" and self.pid is not None and not self._dead:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    def stop(self) -> None:
        """End the process, and with it its jobs; not to be called in a callback of a job."""
        stop_all([self])

    def _scheduled(self, number: int, scheduled: Future[None]) -> None:
        """End a job that cannot be pickled; all others end with an answer or a death."""
        error = None if scheduled.cancelled() else scheduled.exception()
        if isinstance(error, Exception) and not isinstance(error, OSError | RuntimeError):
            self._end(number, Outcome(error=error))

    def _end(self, number: int, outcome: Outcome) -> None:
        job = self._jobs.pop(number, None)
        if job is not None:
            job.end(outcome)

    def _listen(self) -> None:
        """Receive messages and outcomes until the process ends."""
        with suppress(EOFError, OSError):
            while True:
                number, last, content = pickle.loads(self._answers.recv_bytes())
                try:
                    content = pickle.loads(content)
                except Exception as error:
                    content = Outcome(error=error)
                if last:
                    self._end(number, content)
                elif (on_message := self._jobs[number].on_message) is not None:
                    on_message(content)
        self._dead = True
        for number in tuple(self._jobs):
            self._bury(number)

    def _bury(self, number: int) -> None:
        """End a job of a process that has died."""
        job = self._jobs.get(number)
        if job is None:
            return
        reason: BaseException | None = None
        with suppress(TimeoutError):
            reason = None if job.scheduled.cancelled() else job.scheduled.exception(_BURIAL)
        if job.scheduled.cancelled():
            self._end(number, Outcome(error=Canceled("the job was canceled")))
        elif isinstance(reason, TimeoutError):
            self._end(number, Outcome(error=TimeoutError("the job took too long")))
        else:
            cause = f"the worker process died, {self._cause_of_death()}"
            self._end(number, Outcome(error=WorkerDied(cause)))

    def _cause_of_death(self) -> str:
        process, end = self._context.process, time.monotonic() + _BURIAL
        while process is not None and process.exitcode is None and time.monotonic() < end:
            process.join(0.01)
        code = None if process is None else process.exitcode
        if code == -9:
            return "killed by signal 9, as the system does when memory runs out"
        return f"killed by signal {-code}" if code and code < 0 else f"with exit code {code}"


def stop_all(workers: Sequence[Worker]) -> None:
    """End processes, all at once."""
    for worker in workers:
        worker._pool.stop()  # type: ignore[no-untyped-call]
        process = worker._context.process
        if process is not None:
            process.kill()
    for worker in workers:
        worker._pool.join()
        worker._listener.join()
        worker._answers.close()


class _OneProcess:
    """A way to start processes that starts one, so that Pebble does not replace it."""

    def __init__(self, method: str) -> None:
        self._context = multiprocessing.get_context(method)
        self.process: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def Process(self, **options: Any) -> Any:
        if self.process is not None:
            raise OSError("a worker is not replaced")  # which breaks its pool
        self.process = self._context.Process(**options)  # type: ignore[attr-defined]
        return self.process


@contextmanager
def _one_thread_in_children() -> Iterator[None]:
    """Let processes that are started inside this block use one thread."""
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def forked_map(
    function: Callable[[Any], Any], items: Sequence[Any], workers: int
) -> Generator[Outcome]:
    """The outcomes of calls in order, from processes with one torch thread each.

    Results are pickled; the function, the items and all that they refer to are inherited. A process
    that dies is replaced, and its death is the error of the item that it had.
    """

    def setup() -> Callable[[int], Any]:
        return lambda number: function(items[number])

    found: dict[int, Outcome] = {}
    results = unordered_map(partial(Worker, setup), range(len(items)), workers)
    try:
        for number in range(len(items)):
            while number not in found:
                at, outcome = next(results)
                found[at] = outcome
            yield found.pop(number)
    finally:
        results.close()


def unordered_map(
    make: Callable[[], Worker],
    items: Sequence[Any],
    workers: int,
    *,
    attempts: int = 1,
    fatal: tuple[type[Exception], ...] = (),
) -> Generator[tuple[int, Outcome]]:
    """The place and the outcome of every item as they arrive, from workers that are replaced.

    An item has the error :class:`WorkerDied` after so many ``attempts``; items that it had not
    been sent are given to other workers.

    Raises
    ------
    Exception
        A ``fatal`` error of the setup of a worker.
    RuntimeError
        If no worker can start.
    """
    waiting, unfinished = deque(range(len(items))), len(items)
    events: queue.SimpleQueue[tuple[Worker, int | None, Outcome]] = queue.SimpleQueue()
    alive: set[Worker] = set()
    idle: list[Worker] = []
    deaths: Counter[int] = Counter()
    failed, most, problem = 0, MAX_STARTS * min(workers, unfinished), Exception()

    def watch(worker: Worker, at: int | None, job: Job) -> None:
        job.add_done_callback(lambda job: events.put((worker, at, job.result())))

    def keep_busy() -> None:
        """Replace the dead, unless too many could not start in a row, and give work to the idle."""
        nonlocal failed, problem
        while len(alive) < min(workers, unfinished) and failed < most:
            try:
                worker = make()
            except OSError as error:
                failed, problem = failed + 1, error
            else:
                alive.add(worker)
                watch(worker, None, worker.ready)
        if unfinished and not alive:
            raise RuntimeError(
                f"a worker process could not start: {type(problem).__name__}: {problem}. This "
                f"happened {failed} times in a row, and no other worker is left. Its messages are "
                "on standard error. Finished rows are safe: fix the problem and resume, or use one "
                "worker, which is this process"
            ) from problem
        while waiting and idle:
            at, worker = waiting.popleft(), idle.pop()
            watch(worker, at, worker.submit(items[at]))

    try:
        keep_busy()
        while unfinished:
            worker, at, outcome = events.get()
            died = isinstance(outcome.error, WorkerDied)
            ended = at is not None
            if died or (at is None and outcome.error is not None):
                alive.discard(worker)
                worker.stop()
            else:
                idle.append(worker)
            if isinstance(outcome.error, fatal):
                raise outcome.error
            if at is None:
                failed, problem = (0, problem) if not outcome.error else (failed + 1, outcome.error)
            elif died:
                deaths[at] += 1
                if deaths[at] < attempts:
                    waiting.appendleft(at)
                    ended = False
            unfinished -= ended
            keep_busy()
            if ended:
                assert at is not None
                yield at, outcome
    finally:
        stop_all(list(alive))


def limit_memory(size: int) -> None:
    """Let this process grow by so many bytes, on Linux: an allocation beyond them fails."""
    with suppress(OSError, ImportError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = pages * os.sysconf("SC_PAGE_SIZE") + size
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


# What follows runs in worker processes.


class _Stopped(BaseException):
    """The job was canceled; not an Exception, so that no handler on the way swallows it."""


class _Here:
    """What this process does, if it is a worker."""

    prepared: Outcome
    answers: Connection
    job: int | None = None


def send_message(content: Any) -> None:
    """Send a message to whoever submitted the job that this process does."""
    _send(_Here.job, False, pickle.dumps(content))


def _send(number: int | None, last: bool, content: bytes) -> None:
    try:
        _Here.answers.send_bytes(pickle.dumps((number, last, content)))
    except OSError:
        os._exit(0)  # nobody listens any more


def _begin(
    setup: Callable[..., Callable[[Any], Any]],
    arguments: tuple[Any, ...],
    answers: Connection,
    memory: int | None,
) -> None:
    """Make this process a worker: signals, threads, limits, and what it does with a job."""
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()  # Ctrl-C is for the process that started this one
    with suppress(OSError):
        os.dup2(2, 1)  # standard output is that of the parent, who may write JSON there
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what is inherited belongs to the parent: nothing of it is closed here
    import torch

    from gstarx._internal.progress import hide_bars

    torch.set_num_threads(1)
    hide_bars()  # the terminal is that of the parent
    _Here.answers = answers
    _Here.prepared = _outcome(setup, arguments, None)
    if memory is not None:
        limit_memory(memory)


def _work(number: int, item: Any) -> None:
    """Do a job, and send its outcome; the first is to say how the setup went."""
    outcome = _Here.prepared
    if number == _READY:
        outcome = replace(outcome, result=None)
    elif outcome.error is None:
        outcome = _outcome(outcome.result, (item,), number)
    try:
        content = pickle.dumps(outcome)
    except Exception as unsendable:
        content = pickle.dumps(Outcome(error=_sendable(unsendable)))
    _send(number, True, content)


def _outcome(
    function: Callable[..., Any], arguments: tuple[Any, ...], number: int | None
) -> Outcome:
    """What a function returns or raises, which may be canceled if it has a number."""
    result: Any = None
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            try:
                _Here.job = number
                result = function(*arguments)
            finally:
                _Here.job = None
        except _Stopped:
            error = Canceled("the job was canceled")
        except BaseException as raised:  # a model may even call sys.exit()
            error = _sendable(raised)
    _Here.job = None
    warned = tuple((warning.category, str(warning.message)) for warning in caught)
    return Outcome(result, error, warned)


def _interrupted(*_: Any) -> None:
    if _Here.job is not None:
        raise _Stopped


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _sendable(error: BaseException) -> Exception:
    """An error that survives being sent to another process."""
    if isinstance(error, Exception):
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return error
    return RuntimeError(f"{type(error).__name__}: {error}")
