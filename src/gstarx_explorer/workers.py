"""Jobs and queries, and the worker processes that do them.

The server passes JSON between browsers and workers without parsing it, and never imports torch.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import sys
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gstarx._internal.processes import Worker, limit_memory, send_message
from gstarx_explorer.messages import Refused, as_json, public_message
from gstarx_explorer.settings import Limits, Settings

_log = logging.getLogger("gstarx_explorer")
ENDED = frozenset({"done", "failed", "canceled"})
#: Seconds after which an idle stream of events sends a comment, so that it is not cut off.
_HEARTBEAT = 10.0
#: Seconds that a query may take, of which the first sentence loads a large model; and seconds that
#: loading a model and its graphs may take.
_QUERY_SECONDS, _LOAD_SECONDS = 60.0, 600.0
#: Seconds before a worker that died is replaced; doubled each time.
_MIN_PAUSE, _MAX_PAUSE = 0.2, 30.0
#: Errors whose messages are written for users.
_EXPECTED = (ValueError, TypeError, ImportError)
#: Messages of errors other than MemoryError that mean the same: from torch, C++ and threads.
_OUT_OF_MEMORY = ("allocate memory", "not enough memory", "bad_alloc", "can't start new thread")

_GB = 1 << 30
#: The share of the machine's memory that all processes may use together.
_SHARE = 0.75
#: What a process uses before its first query, and the bounds of what it may use beyond that.
_PROCESS, _MIN, _MAX = _GB // 2, _GB // 2, 4 * _GB
#: The files in which Linux states the memory of a container: cgroup v2 and v1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Job:
    """One job.

    The results of workers are kept as JSON text; the server never parses them.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.id = secrets.token_urlsafe(12)
        self.request = request
        self.state = "queued"
        self.position: int | None = None
        self.error: Refused | None = None
        self.cancel_requested = asyncio.Event()
        self.size = 0
        self._parts: list[tuple[str, str]] = []
        self._events: list[str] = []
        self._changed = asyncio.Event()
        self._started: float | None = None
        self._seconds = 0.0
        self.ended_at: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or canceled."""
        return self.state in ENDED

    def move(self, position: int) -> None:
        """Set the position in the queue."""
        if position != self.position:
            self.position = position
            self._publish(as_json({"position": position}))

    def start(self) -> None:
        """A worker has taken the job."""
        self.state, self.position, self._started = "running", None, time.monotonic()
        self._publish(as_json({"state": "running", "position": None}))

    def receive(self, kind: str, content: str) -> None:
        """Record a part of the results: the subject, the progress, a result, or the best."""
        if not self.ended:
            self._parts.append((kind, content))
            self._publish(f'{{"{kind}":{content}}}')

    def end(self, state: str, error: Refused | None = None) -> None:
        """End the job; only the first call counts."""
        if self.ended:
            return
        self._seconds = self._age()
        self.state, self.position, self.error = state, None, error
        self.ended_at = time.monotonic()
        problem = None if error is None else error.as_dict()
        self._publish(as_json({"state": state, "position": None, "error": problem}))

    def as_json(self) -> str:
        """The job with its results, as the API returns it."""
        state = {
            "id": self.id,
            "state": self.state,
            "position": self.position,
            "error": None if self.error is None else self.error.as_dict(),
            "seconds": round(self._age(), 3),
        }
        empty = {"progress": '{"done":0,"total":0,"doing":""}', "subject": "null", "best": "null"}
        results = ",".join(content for kind, content in self._parts if kind == "result")
        parts = {**empty, **dict(self._parts), "result": f"[{results}]"}
        parts["results"] = parts.pop("result")
        more = "".join(f',"{kind}":{content}' for kind, content in parts.items())
        return f"{as_json(state)[:-1]}{more}}}"

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events, from the start of the job to its end."""
        sent = 0
        while True:
            changed = self._changed
            while sent < len(self._events):
                yield f"event: job\ndata: {self._events[sent]}\n\n"
                sent += 1
            if self.ended and sent == len(self._events):
                break
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    await changed.wait()
            except TimeoutError:
                yield ": still here\n\n"
        yield "event: end\ndata: {}\n\n"

    def _age(self) -> float:
        if self.ended or self._started is None:
            return self._seconds
        return time.monotonic() - self._started

    def _publish(self, event: str) -> None:
        self._events.append(event)
        self.size += 2 * len(event)  # it is kept as an event and as a result
        self._changed.set()
        self._changed = asyncio.Event()


class JobQueue:
    """All jobs that are remembered, and the queue of those that wait."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._added = asyncio.Condition()
        self._listeners = 0

    async def add(self, request: dict[str, Any]) -> Job:
        """A new job, which waits for a worker; Refused if the queue is full."""
        self.forget()
        self.check_capacity()
        job = Job(request)
        self._jobs[job.id] = job
        self._queue.append(job)
        job.move(len(self._queue) - 1)
        async with self._added:
            self._added.notify()
        return job

    def check_capacity(self) -> None:
        """Raise Refused if the queue is full."""
        if len(self._queue) >= self._limits.queue:
            text = f"{len(self._queue)} jobs are waiting already: try again in a few seconds"
            raise Refused("busy", text)

    async def take(self) -> Job:
        """Wait for the next job, and take it out of the queue."""
        async with self._added:
            await self._added.wait_for(lambda: self._queue)
            job = self._queue.popleft()
        self._update_positions()
        job.start()
        return job

    def get(self, id: str) -> Job:
        """A job by its ID, or Refused."""
        self.forget()
        if id not in self._jobs:
            raise Refused("gone", "there is no such job: it never existed, or has been deleted")
        return self._jobs[id]

    def cancel(self, job: Job) -> None:
        """Take a job out of the queue, or have its worker stop it."""
        if job in self._queue:
            self._queue.remove(job)
            self._update_positions()
        job.end("canceled")
        job.cancel_requested.set()

    def listen(self, id: str) -> AsyncIterator[str]:
        """The events of a job, or Refused."""
        if self._listeners >= self._limits.listeners:
            raise Refused("unavailable", "too many event streams are open: get the job itself")
        return self._listen(self.get(id))

    async def _listen(self, job: Job) -> AsyncIterator[str]:
        self._listeners += 1
        try:
            async for event in job.events():
                yield event
        finally:
            self._listeners -= 1

    def forget(self) -> None:
        """Delete finished jobs that are old, and the oldest if they are too many or too large."""
        now, kept = time.monotonic(), self._limits.kept
        finished = [(job.ended_at, job) for job in self._jobs.values() if job.ended_at is not None]
        count, size = len(finished), sum(job.size for _, job in finished)
        for ended_at, job in sorted(finished, key=lambda each: each[0]):
            old = now - ended_at > kept.seconds
            if not (old or count > kept.jobs or size > kept.bytes):
                break
            del self._jobs[job.id]
            count, size = count - 1, size - job.size

    def close(self) -> None:
        """End every job, so that nobody waits for one."""
        for job in list(self._jobs.values()):
            self.cancel(job)

    def _update_positions(self) -> None:
        for position, job in enumerate(self._queue):
            job.move(position)


class WorkerSeat:
    """One worker process after the other: one that has died or used up its memory is replaced."""

    def __init__(self, role: str, settings: Settings) -> None:
        self._role, self._settings = role, settings
        self.worker: Worker | None = None
        self.ready = asyncio.Event()

    async def seat(self) -> Worker:
        """The worker if it is ready, or a new one."""
        pause, warm = _MIN_PAUSE, True
        while self.worker is None or not self.worker.alive or not self.ready.is_set():
            await self.vacate()
            self.worker = Worker(load, self._role, self._settings, warm, fork=False)
            # not canceled with this task: that would interrupt a process that is starting
            outcome = await asyncio.shield(asyncio.wrap_future(self.worker.ready))
            if outcome.error is None:
                self.ready.set()
                break
            _log.warning("a worker process could not start: %s", outcome.error)
            warm = False  # perhaps the model of the warm-up crashes it
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        return self.worker

    async def vacate(self) -> None:
        """End the process."""
        self.ready.clear()
        if self.worker is not None:
            worker, self.worker = self.worker, None
            await asyncio.to_thread(worker.stop)


class QueryClient(WorkerSeat):
    """Asks a worker process quick queries."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("query", settings)
        self._pending = 0
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Keep a worker running until this is canceled."""
        try:
            while True:
                self._ended.clear()
                await self.seat()
                await self._ended.wait()
        finally:
            await self.vacate()

    async def ask(self, query: str, **arguments: Any) -> str:
        """The answer to a query, as JSON.

        Raises
        ------
        Refused
            If the worker refuses the query, or there is no worker at the moment.
        """
        worker = self.worker
        if worker is None or not self.ready.is_set():
            raise _unavailable("the server is still loading its models")
        if self._pending >= self._settings.limits.queries:
            raise Refused("unavailable", "too many requests at once: try again in a moment")
        seconds = _LOAD_SECONDS if query in ("model", "run") else _QUERY_SECONDS
        self._pending += 1
        try:
            asked = worker.submit({"query": query, "arguments": arguments}, timeout=seconds)
            outcome = await asyncio.shield(asyncio.wrap_future(asked))
        finally:
            self._pending -= 1
        content, used_up = outcome.result or (None, True)
        if used_up and worker is self.worker:
            self.ready.clear()
            self._ended.set()
        if outcome.error is not None:
            raise _unavailable(f"there is no answer: {outcome.error}")
        if isinstance(content, Refused):
            raise content
        return str(content)


def _unavailable(reason: str) -> Refused:
    return Refused("unavailable", f"{reason}: try again in a few seconds")


class JobRunner(WorkerSeat):
    """Runs jobs in a worker process, one at a time."""

    def __init__(self, settings: Settings, job_queue: JobQueue) -> None:
        super().__init__("explainer", settings)
        self._job_queue = job_queue

    async def run(self) -> None:
        """Run jobs until this is canceled."""
        try:
            while True:
                await self.seat()
                job = await self._job_queue.take()
                # the worker may have died before it had the job
                await self._run_job(await self.seat(), job)
        finally:
            await self.vacate()

    async def _run_job(self, worker: Worker, job: Job) -> None:
        """Send a job to a worker, and wait until it ends, is canceled or runs out of time."""
        loop, seconds = asyncio.get_running_loop(), self._settings.limits.seconds

        def receive(part: tuple[str, str]) -> None:
            loop.call_soon_threadsafe(job.receive, *part)

        submitted = worker.submit(job.request, on_message=receive)
        running = asyncio.wrap_future(submitted)
        canceling = asyncio.ensure_future(job.cancel_requested.wait())
        ends: set[asyncio.Future[Any]] = {canceling, running}
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                text = f"a job may take {seconds:g} s: try a smaller request"
                job.end("failed", Refused("timeout", text))
                submitted.cancel()
            outcome = await asyncio.shield(running)
        finally:
            canceling.cancel()
        content, used_up = outcome.result or (None, False)
        if outcome.error is not None:
            text = f"{outcome.error}; the server is still running"
            job.end("failed", Refused("crashed", text))
        elif isinstance(content, Refused):
            job.end("failed", content)
        else:
            job.end("done")
        if used_up or not worker.alive:
            self.ready.clear()  # the next job gets another worker


# What follows runs in worker processes.


def load(role: str, settings: Settings, warm: bool) -> Callable[[Any], tuple[str | Refused, bool]]:
    """The function that does a job in this role; the heavy packages are imported here.

    It returns the answer, and whether another process should take over, with the memory that this
    one keeps.
    """
    from gstarx_explorer.explaining import ExplanationWorker, QueryWorker

    answer: Callable[..., Any] = QueryWorker(settings).answer
    if role == "explainer":
        worker = ExplanationWorker(settings)
        answer = worker.answer
        if warm:
            worker.warm_up()

    def send(kind: str, content: Any) -> None:
        send_message((kind, as_json(content)))

    def do(request: Any) -> tuple[str | Refused, bool]:
        content: str | Refused
        try:
            content = as_json(answer(request, send))
        except Refused as error:
            content = error
        except (Exception, SystemExit) as error:  # a model may even call sys.exit()
            content = public_problem(error)
        return content, MEMORY.used_up

    return do


def public_problem(error: BaseException) -> Refused:
    """What users see of an error; an unexpected one is logged in full."""
    if is_out_of_memory(error):
        return MEMORY.problem()
    if isinstance(error, _EXPECTED) and str(error):
        return Refused("failed", public_message(error))
    traceback.print_exception(error, file=sys.stderr)
    return Refused("failed", f"an unexpected error occurred ({type(error).__name__})")


class Memory:
    """How much this process may grow by while it does a job.

    Linux enforces it (``RLIMIT_DATA``, which counts writable memory, not code): an allocation
    beyond it fails. Other systems do not enforce it.
    """

    size = 0
    used_up = False
    _grown = 0

    @contextmanager
    def limited(self, size: int) -> Iterator[None]:
        """Let this process grow by so many bytes inside the block."""
        self.size, before = size, used_bytes()
        limit_memory(size)
        try:
            yield
        finally:
            _lift_limit()
            self._grown += used_bytes() - before
            self.used_up |= self._grown > size // 2

    def problem(self) -> Refused:
        """What to answer after an error that :func:`is_out_of_memory` recognizes."""
        self.used_up = True
        gc.collect()
        return Refused(
            "failed",
            f"a job may use {self.size / _GB:,.1f} GB, which is not enough memory for this: try a "
            "smaller request, or start gstarx serve with a larger --max-memory",
        )


#: One for the process, as the limits of the system are.
MEMORY = Memory()


def _lift_limit() -> None:
    with suppress(ImportError, OSError, ValueError):  # not on Windows
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard_limit, hard_limit))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that there was not enough memory."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)


def used_bytes() -> int:
    """Bytes of this process that count; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def default_memory(workers: int) -> int:
    """Bytes that one job may use, by the memory of this machine and the number of workers."""
    per_process = int(_SHARE * _machine_memory()) // (workers + 1)
    return min(max(per_process - _PROCESS, _MIN), _MAX)


def _machine_memory() -> int:
    """Bytes of this machine, or of the container that the process runs in."""
    size = 4 * _GB  # if the system does not say
    with suppress(AttributeError, OSError, ValueError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # without a limit, the file says "max"
            size = min(size, int(Path(path).read_text("ascii")))
    return size
