"""Explainer processes: each carries out one job at a time, and is replaced when it dies."""

from __future__ import annotations

import asyncio
import time

from gstarx.web.jobs import Job, JobQueue
from gstarx.web.problems import Problem
from gstarx.web.processes import Worker
from gstarx.web.settings import Settings

#: Seconds that a worker has to stop by itself.
_GRACE = 1.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0


class JobRunner:
    """One worker process after the other, and the jobs that they carry out."""

    def __init__(self, settings: Settings, book: JobQueue) -> None:
        self._settings = settings
        self._book = book
        self._worker: Worker | None = None
        self._last = 0
        self.ready = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        return None if self._worker is None else self._worker.pid

    async def run(self) -> None:
        """Take jobs until this is cancelled."""
        try:
            while True:
                worker = await self._prepared()
                job = await self._book.take()
                if not worker.alive:
                    worker = await self._prepared()  # not the fault of this job
                await self._carry_out(worker, job)
        finally:
            if self._worker is not None:
                await self._worker.stop()

    async def _prepared(self) -> Worker:
        """A worker that waits for a job."""
        pause, role = _SHORTEST_PAUSE, "explainer"
        while self._worker is None or not self._worker.alive or not self.ready.is_set():
            self.ready.clear()
            if self._worker is not None:
                await self._worker.stop()
            self._worker = await Worker.started(role, self._settings)
            answer = await self._worker.answer()
            if answer is not None and answer.kind == "ready":
                self.ready.set()
                break
            role = "cold explainer"  # perhaps a model takes it down, which nobody has asked for
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        assert self._worker is not None
        return self._worker

    async def _carry_out(self, worker: Worker, job: Job) -> None:
        """Give a job to a worker and listen to it, until it is done or has to stop."""
        self._last += 1
        number = self._last
        worker.say({"number": number, **job.request})
        end = time.monotonic() + self._settings.limits.seconds
        unwanted = asyncio.create_task(job.unwanted.wait())
        hearing = asyncio.create_task(self._listen(worker, job, number))
        try:
            await asyncio.wait(
                {unwanted, hearing},
                timeout=end - time.monotonic(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not hearing.done():
                if not job.ended:
                    text = f"a job may take {self._settings.limits.seconds:g} s: ask for less"
                    job.end("failed", Problem("timeout", text))
                worker.say({"stop": number})
                await asyncio.wait({hearing}, timeout=_GRACE)
            if not hearing.done():
                worker.kill()
            await hearing
        finally:
            unwanted.cancel()
            hearing.cancel()

    async def _listen(self, worker: Worker, job: Job, number: int) -> None:
        while True:
            answer = await worker.answer()
            if answer is None:
                self.ready.clear()
                why = await worker.ended()
                text = f"the process that worked on it ended {why}; the server goes on"
                job.end("failed", Problem("crashed", text))
                return
            if answer.number != number:
                continue
            if answer.kind == "tired":
                self.ready.clear()  # the next job gets another worker
            elif answer.last or not job.ended:
                job.heard(answer)
            if answer.last:
                return
