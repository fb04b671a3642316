"""Worker processes as the server sees them: started, spoken to, killed and replaced."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gstarx.web.messages import LONGEST, Answer
from gstarx.web.settings import Settings

#: Seconds that a worker has to end after its last word.
_LAST_MOMENTS = 1.0


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
