"""Jobs: what each has found, who waits for it, and which comes next."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from typing import Any

from gstarx.web.messages import Answer, Problem, Refused, as_json
from gstarx.web.settings import Limits

ENDED = frozenset({"done", "failed", "cancelled"})
_HEARTBEAT = 10.0


class Job:
    """One job.

    What workers say is kept as the JSON that it is; the server never looks into it.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.id = secrets.token_urlsafe(12)
        self.request = request
        self.state = "queued"
        self.position: int | None = None
        self.error: Problem | None = None
        self.unwanted = asyncio.Event()
        self.size = 0
        self._progress = as_json({"done": 0, "total": 0, "doing": ""})
        self._subject = self._best = "null"
        self._results: list[str] = []
        self._events: list[str] = []
        self._news = asyncio.Event()
        self._started: float | None = None
        self._seconds = 0.0
        self.ended_at: float | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is going to happen."""
        return self.state in ENDED

    def moved(self, position: int) -> None:
        """Say where in the queue it is."""
        if position != self.position:
            self.position = position
            self._tell(position=position)

    def began(self) -> None:
        """A worker has it."""
        self.state, self.position, self._started = "running", None, time.monotonic()
        self._tell(state="running", position=None)

    def heard(self, answer: Answer) -> None:
        """Take in what a worker says."""
        content = answer.content
        if answer.kind == "refused":
            self.end("failed", Problem(**json.loads(content)))
        elif answer.kind == "done":
            self.end("done")
        elif answer.kind in ("subject", "progress", "best"):
            setattr(self, f"_{answer.kind}", content)
            self._add(f'{{"{answer.kind}":{content}}}')
        elif answer.kind == "result":
            self._results.append(content)
            self._add(f'{{"result":{content}}}')

    def end(self, state: str, error: Problem | None = None) -> None:
        """Nothing more is going to happen; only the first word of that counts."""
        if self.ended:
            return
        self._seconds = self._age()
        self.state, self.position, self.error = state, None, error
        self.ended_at = time.monotonic()
        self._tell(state=state, position=None, error=None if error is None else error.as_dict())

    def as_json(self) -> str:
        """The whole job, as it goes over the wire."""
        plain = {
            "id": self.id,
            "state": self.state,
            "position": self.position,
            "error": None if self.error is None else self.error.as_dict(),
            "seconds": round(self._age(), 3),
        }
        found = (
            f'"progress":{self._progress},"subject":{self._subject},'
            f'"results":[{",".join(self._results)}],"best":{self._best}'
        )
        return f"{as_json(plain)[:-1]},{found}}}"

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events from the beginning to the end."""
        told = 0
        while True:
            news = self._news
            while told < len(self._events):
                yield f"event: job\ndata: {self._events[told]}\n\n"
                told += 1
            if self.ended and told == len(self._events):
                break
            try:
                async with asyncio.timeout(_HEARTBEAT):
                    await news.wait()
            except TimeoutError:
                yield ": still here\n\n"
        yield "event: end\ndata: {}\n\n"

    def _age(self) -> float:
        if self.ended or self._started is None:
            return self._seconds
        return time.monotonic() - self._started

    def _tell(self, **news: Any) -> None:
        self._add(as_json(news))

    def _add(self, event: str) -> None:
        self._events.append(event)
        self.size += 2 * len(event)  # once here, once by its kind
        self._news.set()
        self._news = asyncio.Event()


class JobQueue:
    """All jobs that are remembered, and the queue of those that wait."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._arrived = asyncio.Condition()
        self._listeners = 0

    async def add(self, request: dict[str, Any]) -> Job:
        """A new job, which waits for a worker.

        Raises
        ------
        Refused
            When too many wait already.
        """
        self.forget()
        self.check_room()
        job = Job(request)
        self._jobs[job.id] = job
        self._queue.append(job)
        job.moved(len(self._queue) - 1)
        async with self._arrived:
            self._arrived.notify()
        return job

    def check_room(self) -> None:
        """Refuse where too many wait already."""
        if len(self._queue) >= self._limits.queue:
            text = f"{len(self._queue)} jobs wait already: try again in a few seconds"
            raise Refused("busy", text)

    async def take(self) -> Job:
        """The job whose turn it is; waits for one."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self._queue)
            job = self._queue.popleft()
        self._move_up()
        job.began()
        return job

    def get(self, id: str) -> Job:
        """A job by its id, or Refused."""
        self.forget()
        if id not in self._jobs:
            raise Refused("gone", "there is no such job: it was never here, or is forgotten")
        return self._jobs[id]

    def cancel(self, job: Job) -> None:
        """Take a job out of the queue, or tell its worker to stop."""
        if job.ended:
            return
        if job in self._queue:
            self._queue.remove(job)
            self._move_up()
        job.end("cancelled")
        job.unwanted.set()

    def listen(self, id: str) -> AsyncIterator[str]:
        """The events of a job, or Refused."""
        if self._listeners >= self._limits.listeners:
            raise Refused("unavailable", "too many listen already: ask for the job itself")
        return self._counted(self.get(id))

    async def _counted(self, job: Job) -> AsyncIterator[str]:
        self._listeners += 1
        try:
            async for event in job.events():
                yield event
        finally:
            self._listeners -= 1

    def forget(self) -> None:
        """Forget finished jobs: old ones, and the oldest where they are too many or too large."""
        now = time.monotonic()
        finished = [job for job in self._jobs.values() if job.ended_at is not None]
        size = sum(job.size for job in finished)
        many = len(finished)
        for job in sorted(finished, key=lambda job: job.ended_at or 0.0):
            old = now - (job.ended_at or now) > self._limits.kept_seconds
            if not (old or many > self._limits.kept_jobs or size > self._limits.kept_bytes):
                break
            del self._jobs[job.id]
            many, size = many - 1, size - job.size

    def close(self) -> None:
        """End every job, so that nobody waits for one."""
        for job in list(self._jobs.values()):
            self.cancel(job)

    def _move_up(self) -> None:
        for place, job in enumerate(self._queue):
            job.moved(place)
