"""Jobs, their results so far, and the queue of those that wait."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from typing import Any

from gstarx_explorer.messages import Answer, Problem, Refused, as_json
from gstarx_explorer.settings import Limits

ENDED = frozenset({"done", "failed", "canceled"})
#: Seconds after which an idle stream of events sends a comment, so that it is not cut off.
_HEARTBEAT = 10.0


class Job:
    """One job.

    The results of workers are kept as JSON text; the server never parses them.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.id = secrets.token_urlsafe(12)
        self.request = request
        self.state = "queued"
        self.position: int | None = None
        self.error: Problem | None = None
        self.cancel_requested = asyncio.Event()
        self.size = 0
        self._progress = as_json({"done": 0, "total": 0, "doing": ""})
        self._subject = self._best = "null"
        self._results: list[str] = []
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

    def receive(self, answer: Answer) -> None:
        """Record an answer of the worker."""
        content = answer.content
        if answer.kind == "refused":
            self.end("failed", Problem(**json.loads(content)))
        elif answer.kind == "done":
            self.end("done")
        elif answer.kind in ("subject", "progress", "best"):
            setattr(self, f"_{answer.kind}", content)
            self._publish(f'{{"{answer.kind}":{content}}}')
        elif answer.kind == "result":
            self._results.append(content)
            self._publish(f'{{"result":{content}}}')

    def end(self, state: str, error: Problem | None = None) -> None:
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
        results = (
            f'"progress":{self._progress},"subject":{self._subject},'
            f'"results":[{",".join(self._results)}],"best":{self._best}'
        )
        return f"{as_json(state)[:-1]},{results}}}"

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
        """A new job, which waits for a worker.

        Raises
        ------
        Refused
            If the queue is full.
        """
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
        if job.ended:
            return
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
        now = time.monotonic()
        finished = [job for job in self._jobs.values() if job.ended_at is not None]
        size = sum(job.size for job in finished)
        count = len(finished)
        for job in sorted(finished, key=lambda job: job.ended_at or 0.0):
            old = now - (job.ended_at or now) > self._limits.kept_seconds
            if not (old or count > self._limits.kept_jobs or size > self._limits.kept_bytes):
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
