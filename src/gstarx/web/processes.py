"""Worker processes as the server sees them: started, spoken to, killed and replaced."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gstarx.web.jobs import Job, JobQueue
from gstarx.web.messages import LONGEST, Answer, Problem, Refused
from gstarx.web.settings import Settings

#: Seconds that a worker has to end after its last word.
_LAST_MOMENTS = 1.0
#: Seconds after which an answer is not a quick one; the first sentence loads a large model.
PATIENCE = 60.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
#: Seconds that a worker has to stop by itself.
_GRACE = 1.0


class Worker:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._why: str | None = None

    @classmethod
    async def started(cls, role: str, settings: Settings) -> Worker:
        """A process that has been told what it is for, and is not ready yet."""
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", "-m", "gstarx.web.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST,
            env={**os.environ, **one_thread, "PYTHONPATH": path},
            # in a group of its own: Ctrl-C is for the server, which sees to its workers
            start_new_session=True,
        )
        worker = cls(process)
        worker._write(base64.b64encode(pickle.dumps((role, settings))))
        return worker

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended, as far as we know."""
        return self._process.returncode is None

    def say(self, question: Mapping[str, Any]) -> None:
        """Send a question."""
        self._write(json.dumps(question).encode())

    async def answer(self) -> Answer | None:
        """The next line of the worker; None when it has ended."""
        assert self._process.stdout is not None
        line = b""
        with suppress(ValueError):  # a line without end
            line = await self._process.stdout.readline()
        try:
            return Answer.decoded(line)
        except ValueError:
            await self._bury()
            return None

    async def _bury(self) -> None:
        """Wait for the end of a worker that says nothing more, or nothing that makes sense."""
        try:
            async with asyncio.timeout(_LAST_MOMENTS):
                await self._process.wait()
        except TimeoutError:
            self.kill("because it fell silent")
            await self._process.wait()

    async def ended(self) -> str:
        """Why it ended, in words; waits for it."""
        code = await self._process.wait()
        if self._why is not None:
            return self._why
        if code == -getattr(signal, "SIGKILL", 9):
            return "because it was killed, as the system does when memory runs out"
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def kill(self, why: str = "because it was stopped") -> None:
        """End the process at once; ``why`` is what :meth:`ended` says then."""
        # not by the process object, which would take its exit code away from whoever waits for it
        if self.alive:
            self._why = why
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    async def stop(self) -> None:
        """End the process and wait for that."""
        self.kill()
        await self._process.wait()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        # where it is gone, we are about to hear
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(line + b"\n")


class QueryClient:
    """Puts questions to a desk process, and puts another in its place when it dies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker: Worker | None = None
        self._waiting: dict[int, tuple[dict[str, Any], asyncio.Future[str]]] = {}
        self._last = 0
        self._up = asyncio.Event()
        self._pause = _SHORTEST_PAUSE

    async def run(self) -> None:
        """Keep a desk going until this is cancelled."""
        try:
            while True:
                self._worker = await Worker.started("desk", self._settings)
                if await self._serve(self._worker):
                    continue
                why = await self._worker.ended()
                for _, future in self._waiting.values():
                    if not future.done():
                        future.set_exception(_away(f"the process that was to answer ended {why}"))
                self._waiting.clear()
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        finally:
            if self._worker is not None:
                await self._worker.stop()

    async def _serve(self, worker: Worker) -> bool:
        """Listen to a desk until it ends; whether it only had enough, and another goes on."""
        tired = False
        while (answer := await worker.answer()) is not None:
            if answer.kind == "ready":
                self._pause = _SHORTEST_PAUSE
                self._up.set()
                for question, _ in self._waiting.values():
                    worker.say(question)
            elif answer.kind == "tired":
                tired = True
            else:
                self._heard(answer)
                if tired:
                    # what it has not come to is asked again, of the next one
                    self._waiting.pop(answer.number, None)
                    self._up.clear()
                    await worker.stop()
                    return True
        self._up.clear()
        return False

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        return None if self._worker is None else self._worker.pid

    async def ready(self) -> None:
        """Wait for a desk."""
        await self._up.wait()

    async def ask(self, ask: str, **content: Any) -> str:
        """The answer to a question, as JSON.

        Raises
        ------
        Refused
            What the desk says, or that there is none just now.
        """
        if not self._up.is_set() or self._worker is None:
            raise _away("the server is still loading its models")
        if len(self._waiting) >= self._settings.limits.questions:
            raise Refused("unavailable", "too many questions at once: try again in a moment")
        self._last += 1
        number = self._last
        question = {"number": number, "ask": ask, "with": content}
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (question, future)
        self._worker.say(question)
        try:
            async with asyncio.timeout(PATIENCE):
                return await future
        except TimeoutError:
            # it hangs, and everybody behind this question with it
            self._worker.kill("because something took too long")
            raise _away("this took too long") from None
        finally:
            self._waiting.pop(number, None)

    def _heard(self, answer: Answer) -> None:
        _, future = self._waiting.get(answer.number, (None, None))
        if future is None or future.done():
            return
        if answer.kind == "done":
            future.set_result(answer.content)
        else:
            future.set_exception(Refused(**json.loads(answer.content)))


def _away(reason: str) -> Refused:
    return Refused("unavailable", f"{reason}: try again in a few seconds")


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
