"""Worker processes as the server sees them: started, given queries and jobs, and replaced."""

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

from gstarx._internal.processes import worker_environment
from gstarx_explorer.jobs import Job, JobQueue
from gstarx_explorer.messages import MAX_LINE, Answer, Problem, Refused
from gstarx_explorer.settings import Settings

#: Seconds that a worker may take to exit after its last line.
_EXIT_SECONDS = 1.0
#: Seconds that a worker may take to stop a job by itself.
_STOP_SECONDS = 1.0
#: Seconds that a query may take; the first sentence loads a large model.
_QUERY_SECONDS = 60.0
#: Seconds that loading a model and its graphs may take.
_LOAD_SECONDS = 600.0
#: Seconds before a worker that died is replaced; doubled each time.
_MIN_PAUSE, _MAX_PAUSE = 0.2, 30.0


class Worker:
    """One worker process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._kill_reason: str | None = None

    @classmethod
    async def start(cls, role: str, settings: Settings) -> Worker:
        """Start a process in a role; it sends an answer when it is ready."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", "-m", "gstarx_explorer.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_LINE,
            env=worker_environment(),
            # in a group of its own: Ctrl-C is for the server, which stops its workers
            start_new_session=True,
        )
        worker = cls(process)
        worker._write(base64.b64encode(pickle.dumps((role, settings))))
        return worker

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not exited, as far as we know."""
        return self._process.returncode is None

    def send(self, query: Mapping[str, Any]) -> None:
        """Send a query."""
        self._write(json.dumps(query).encode())

    async def receive(self) -> Answer | None:
        """The next answer of the worker; None when it has exited."""
        assert self._process.stdout is not None
        line = b""
        with suppress(ValueError):  # longer than MAX_LINE
            line = await self._process.stdout.readline()
        try:
            return Answer.decode(line)
        except ValueError:
            await self._wait_or_kill()
            return None

    async def _wait_or_kill(self) -> None:
        try:
            async with asyncio.timeout(_EXIT_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill("because it stopped answering")
            await self._process.wait()

    async def exit_reason(self) -> str:
        """Wait for the process to exit, and say why it did."""
        code = await self._process.wait()
        if self._kill_reason is not None:
            return self._kill_reason
        if code == -getattr(signal, "SIGKILL", 9):
            return "because it was killed, as the system does when memory runs out"
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def kill(self, reason: str = "because it was stopped") -> None:
        """Kill the process, with the ``reason`` that :meth:`exit_reason` returns then."""
        # not through the process object, which would take the exit code away from whoever waits
        if self.alive:
            self._kill_reason = reason
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    async def stop(self) -> None:
        """Kill the process and wait until it has exited."""
        self.kill()
        await self._process.wait()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        # if the process is gone, receive() says so
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(line + b"\n")


class QueryClient:
    """Sends queries to a worker process, and replaces the process when it dies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker: Worker | None = None
        self._pending: dict[int, tuple[dict[str, Any], asyncio.Future[str]]] = {}
        self._last_number = 0
        self._ready = asyncio.Event()
        self._pause = _MIN_PAUSE

    async def run(self) -> None:
        """Keep a worker running until this is canceled."""
        try:
            while True:
                self._worker = await Worker.start("query", self._settings)
                if await self._listen(self._worker):
                    continue
                reason = await self._worker.exit_reason()
                for _, future in self._pending.values():
                    if not future.done():
                        future.set_exception(
                            _unavailable(f"the process that was to answer ended {reason}")
                        )
                self._pending.clear()
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _MAX_PAUSE)
        finally:
            if self._worker is not None:
                await self._worker.stop()

    async def _listen(self, worker: Worker) -> bool:
        """Receive answers until the worker ends; whether it only used up its memory."""
        exhausted = False
        while (answer := await worker.receive()) is not None:
            if answer.kind == "ready":
                self._pause = _MIN_PAUSE
                self._ready.set()
                for query, _ in self._pending.values():
                    worker.send(query)
            elif answer.kind == "exhausted":
                exhausted = True
            else:
                self._resolve(answer)
                if exhausted:
                    # the next worker gets the queries that this one has not answered
                    self._pending.pop(answer.number, None)
                    self._ready.clear()
                    await worker.stop()
                    return True
        self._ready.clear()
        return False

    @property
    def pid(self) -> int | None:
        """The process ID of the worker."""
        return None if self._worker is None else self._worker.pid

    async def ready(self) -> None:
        """Wait until there is a worker that answers."""
        await self._ready.wait()

    async def ask(self, query: str, **arguments: Any) -> str:
        """The answer to a query, as JSON.

        Raises
        ------
        Refused
            If the worker refuses the query, or there is no worker at the moment.
        """
        if not self._ready.is_set() or self._worker is None:
            raise _unavailable("the server is still loading its models")
        if len(self._pending) >= self._settings.limits.queries:
            raise Refused("unavailable", "too many requests at once: try again in a moment")
        self._last_number += 1
        number = self._last_number
        message = {"number": number, "query": query, "arguments": arguments}
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._pending[number] = (message, future)
        self._worker.send(message)
        try:
            loads = query in ("model", "run")
            async with asyncio.timeout(_LOAD_SECONDS if loads else _QUERY_SECONDS):
                return await future
        except TimeoutError:
            # it hangs, and with it all queries behind this one
            self._worker.kill("because a request took too long")
            raise _unavailable("this took too long") from None
        finally:
            self._pending.pop(number, None)

    def _resolve(self, answer: Answer) -> None:
        _, future = self._pending.get(answer.number, (None, None))
        if future is None or future.done():
            return
        if answer.kind == "done":
            future.set_result(answer.content)
        else:
            future.set_exception(Refused(**json.loads(answer.content)))


def _unavailable(reason: str) -> Refused:
    return Refused("unavailable", f"{reason}: try again in a few seconds")


class JobRunner:
    """Runs jobs in a worker process, one at a time, and replaces the process when it dies."""

    def __init__(self, settings: Settings, job_queue: JobQueue) -> None:
        self._settings = settings
        self._job_queue = job_queue
        self._worker: Worker | None = None
        self._last_number = 0
        self.ready = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process ID of the worker."""
        return None if self._worker is None else self._worker.pid

    async def run(self) -> None:
        """Run jobs until this is canceled."""
        try:
            while True:
                worker = await self._ready_worker()
                job = await self._job_queue.take()
                if not worker.alive:
                    worker = await self._ready_worker()  # it died before it had the job
                await self._run_job(worker, job)
        finally:
            if self._worker is not None:
                await self._worker.stop()

    async def _ready_worker(self) -> Worker:
        """The worker if it is ready, or a new one."""
        pause, role = _MIN_PAUSE, "explainer"
        while self._worker is None or not self._worker.alive or not self.ready.is_set():
            self.ready.clear()
            if self._worker is not None:
                await self._worker.stop()
            self._worker = await Worker.start(role, self._settings)
            answer = await self._worker.receive()
            if answer is not None and answer.kind == "ready":
                self.ready.set()
                break
            role = "cold explainer"  # perhaps the model of the warm-up crashes it
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
        assert self._worker is not None
        return self._worker

    async def _run_job(self, worker: Worker, job: Job) -> None:
        """Send a job to a worker, and wait until it ends, is canceled or runs out of time."""
        self._last_number += 1
        number = self._last_number
        worker.send({"number": number, **job.request})
        end = time.monotonic() + self._settings.limits.seconds
        canceling = asyncio.create_task(job.cancel_requested.wait())
        listening = asyncio.create_task(self._listen(worker, job, number))
        try:
            await asyncio.wait(
                {canceling, listening},
                timeout=end - time.monotonic(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not listening.done():
                if not job.ended:
                    seconds = self._settings.limits.seconds
                    text = f"a job may take {seconds:g} s: try a smaller request"
                    job.end("failed", Problem("timeout", text))
                worker.send({"stop": number})
                await asyncio.wait({listening}, timeout=_STOP_SECONDS)
            if not listening.done():
                worker.kill()
            await listening
        finally:
            canceling.cancel()
            listening.cancel()

    async def _listen(self, worker: Worker, job: Job, number: int) -> None:
        while True:
            answer = await worker.receive()
            if answer is None:
                self.ready.clear()
                reason = await worker.exit_reason()
                text = f"the process that worked on it ended {reason}; the server is still running"
                job.end("failed", Problem("crashed", text))
                return
            if answer.number != number:
                continue
            if answer.kind == "exhausted":
                self.ready.clear()  # the next job gets another worker
            elif answer.last or not job.ended:
                job.receive(answer)
            if answer.last:
                return
