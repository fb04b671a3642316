"""A worker process: questions come in, answers go out, a line each.

``python -m gstarx.web.worker`` reads its set-up and then questions from standard input, and ends
when that does: it never outlives the server.
"""

from __future__ import annotations

import _thread
import base64
import json
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from gstarx.web.memory import ALLOWANCE, ran_out
from gstarx.web.messages import Answer, Problem, Refused, as_json, said

#: Errors whose words were written for users.
_EXPECTED = (ValueError, TypeError, ImportError)


class Stopped(BaseException):
    """Somebody wants no more of this; not an Exception, so that nothing on the way swallows it."""


class OutOfTime(BaseException):
    """The time for this part is over."""


class Interrupter:
    """Interrupts the main thread, as Ctrl-C does, where it says that it may be.

    The handler of SIGINT has to be :meth:`rung`.
    """

    def __init__(self) -> None:
        self._at: int | None = None
        self._unwanted: int | None = None
        self._part: object | None = None
        self._over: object | None = None

    def stop(self, number: int) -> None:
        """Stop the work of that number, wherever it is; from any thread."""
        self._unwanted = number
        _thread.interrupt_main(signal.SIGINT)

    def rung(self, *_: Any) -> None:
        """Raise in the main thread if it is at something that is not wanted any more."""
        if self._at is not None and self._unwanted == self._at:
            self._unwanted = None
            raise Stopped
        if self._part is not None and self._over is self._part:
            self._over = None
            raise OutOfTime

    @contextmanager
    def heard_by(self, number: int) -> Iterator[None]:
        """Inside, :meth:`stop` with this number raises :class:`Stopped`."""
        try:
            self._at = number
            self.rung()  # it may have come before us
            yield
        finally:
            self._at = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Inside, :class:`OutOfTime` is raised after so many seconds; caught here."""
        part = object()
        timer = threading.Timer(seconds, self._end, args=(part,))
        timer.daemon = True
        try:
            self._part = part
            timer.start()
            yield
        except OutOfTime:
            pass
        finally:
            self._part = None
            timer.cancel()

    def _end(self, part: object) -> None:
        self._over = part
        _thread.interrupt_main(signal.SIGINT)


def main() -> None:
    """Answer until there are no more questions."""
    bell = Interrupter()
    signal.signal(signal.SIGINT, bell.rung)
    out = _own_output()
    # written by the process that started this one, and by nobody else
    role, settings = pickle.loads(base64.b64decode(sys.stdin.buffer.readline()))
    questions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions, bell), daemon=True).start()
    answer = _role(role, settings, bell)

    def say(number: int, kind: str, content: Any) -> None:
        try:
            out.write(Answer(number, kind, as_json(content)).encoded())
            out.flush()
        except BrokenPipeError:
            os._exit(0)  # nobody is there to take it

    ALLOWANCE.begin(settings.limits.memory)
    say(0, "ready", None)
    while True:
        question = questions.get()
        number = question["number"]
        kind, content = _answered(answer, question, bell, say)
        if ALLOWANCE.used_up:
            say(number, "tired", None)  # another process has the memory that this one keeps
        say(number, kind, content)


def _answered(
    answer: Callable[..., Any],
    question: dict[str, Any],
    bell: Interrupter,
    say: Callable[..., None],
) -> tuple[str, Any]:
    """The last word on a question: what kind it is, and its content."""
    number = question["number"]
    try:
        with bell.heard_by(number):
            return "done", answer(question, lambda kind, got: say(number, kind, got))
    except Stopped:
        return "stopped", None
    except Refused as error:
        return "refused", error.problem.as_dict()
    except BaseException as error:  # a model may even say sys.exit()
        return "refused", unexpected(error).as_dict()


def unexpected(error: BaseException) -> Problem:
    """What users are told of an error, and what the log is told of one that nobody foresaw."""
    if ran_out(error):
        return ALLOWANCE.problem()
    if isinstance(error, _EXPECTED) and str(error):
        return Problem("failed", said(error))
    _log(error)
    return Problem("failed", f"something unexpected happened ({type(error).__name__})")


def _log(error: BaseException) -> None:
    import traceback

    traceback.print_exception(error, file=sys.stderr)


def _role(role: str, settings: Any, bell: Interrupter) -> Callable[..., Any]:
    """What this process answers; the heavy packages are loaded here."""
    import torch

    torch.set_num_threads(1)
    if role == "desk":
        from gstarx.web.queries import QueryWorker

        return QueryWorker(settings).answer
    from gstarx.web.explaining import Explaining

    found = Explaining(settings, bell)
    if role == "explainer":
        found.warm_up()
    return found.answer


def _own_output() -> IO[bytes]:
    """Standard output for us alone: what anybody else prints goes to standard error."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _listen(questions: queue.SimpleQueue[dict[str, Any]], bell: Interrupter) -> None:
    for line in sys.stdin.buffer:
        question = json.loads(line)
        if "stop" in question:
            bell.stop(question["stop"])
        else:
            questions.put(question)
    # the server is gone, or wants us gone, in the middle of something or not
    os._exit(0)


if __name__ == "__main__":
    main()
