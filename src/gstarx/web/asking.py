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
