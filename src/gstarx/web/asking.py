"""The desk as the server sees it: a question, and its answer a moment later."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from gstarx.web.messages import Answer
from gstarx.web.problems import Refused
from gstarx.web.processes import Worker
from gstarx.web.settings import Settings

#: Seconds after which an answer is not a quick one; the first sentence loads a large model.
PATIENCE = 60.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0


class Enquiries:
    """Puts questions to a desk process, and puts another in its place when it dies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._worker: Worker | None = None
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._last = 0
        self._up = asyncio.Event()

    async def run(self) -> None:
        """Keep a desk going until this is cancelled."""
        pause = _SHORTEST_PAUSE
        try:
            while True:
                self._worker = await Worker.started("desk", self._settings)
                while (answer := await self._worker.answer()) is not None:
                    if answer.kind == "ready":
                        pause = _SHORTEST_PAUSE
                        self._up.set()
                    else:
                        self._heard(answer)
                self._up.clear()
                why = await self._worker.ended()
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(_away(f"the process that was to answer ended {why}"))
                self._waiting.clear()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            if self._worker is not None:
                await self._worker.stop()

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
        number, worker = self._last, self._worker
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        worker.say({"number": number, "ask": ask, "with": content})
        try:
            async with asyncio.timeout(PATIENCE):
                return await future
        except TimeoutError:
            worker.kill()  # it hangs, and everybody behind this question with it
            raise _away("this took too long") from None
        finally:
            self._waiting.pop(number, None)

    def _heard(self, answer: Answer) -> None:
        future = self._waiting.get(answer.number)
        if future is None or future.done():
            return
        if answer.kind == "done":
            future.set_result(answer.content)
        else:
            future.set_exception(Refused(**json.loads(answer.content)))


def _away(reason: str) -> Refused:
    return Refused("unavailable", f"{reason}: try again in a few seconds")
