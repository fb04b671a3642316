"""The main program of a worker process: reads queries and writes answers, a line each.

``python -m gstarx_explorer.worker`` reads its settings and then queries from standard input, and
exits when that is closed, so that it never outlives the server.
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
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from gstarx_explorer.memory import MEMORY_LIMIT, is_out_of_memory
from gstarx_explorer.messages import Answer, Problem, Refused, as_json, public_message

#: Errors whose messages are written for users.
_EXPECTED = (ValueError, TypeError, ImportError)


class Stopped(BaseException):
    """The job was canceled; not an Exception, so that no handler on the way swallows it."""


class OutOfTime(BaseException):
    """The time limit of a part of a job has passed."""


class Interrupter:
    """Interrupts the main thread, as Ctrl-C does, inside the blocks that allow it.

    :meth:`handle_signal` has to be the handler of SIGINT.
    """

    def __init__(self) -> None:
        self._current: int | None = None
        self._stopped: int | None = None
        self._part: object | None = None
        self._expired: object | None = None

    def stop(self, number: int) -> None:
        """Stop the job of that number; from any thread."""
        self._stopped = number
        _thread.interrupt_main(signal.SIGINT)

    def handle_signal(self, *_: Any) -> None:
        """Raise in the main thread if its job was stopped or the time of its part is over."""
        if self._current is not None and self._stopped == self._current:
            self._stopped = None
            raise Stopped
        if self._part is not None and self._expired is self._part:
            self._expired = None
            raise OutOfTime

    @contextmanager
    def stoppable(self, number: int) -> Iterator[None]:
        """Inside the block, :meth:`stop` with this number raises :class:`Stopped`."""
        try:
            self._current = number
            self.handle_signal()  # it may have been stopped before this
            yield
        finally:
            self._current = None

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Leave the block after this many seconds."""
        part = object()
        timer = threading.Timer(seconds, self._expire, args=(part,))
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

    def _expire(self, part: object) -> None:
        self._expired = part
        _thread.interrupt_main(signal.SIGINT)


def main() -> None:
    """Answer queries until there are no more."""
    interrupter = Interrupter()
    signal.signal(signal.SIGINT, interrupter.handle_signal)
    out = _take_stdout()
    # pickled by the process that started this one, and by nobody else
    role, settings = pickle.loads(base64.b64decode(sys.stdin.buffer.readline()))
    queries: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(queries, interrupter), daemon=True).start()
    answer = _load(role, settings, interrupter)

    def send(number: int, kind: str, content: Any) -> None:
        try:
            out.write(Answer(number, kind, as_json(content)).encode())
            out.flush()
        except BrokenPipeError:
            os._exit(0)  # the server is gone

    MEMORY_LIMIT.start(settings.limits.memory)
    send(0, "ready", None)
    while True:
        query = queries.get()
        number = query["number"]
        kind, content = _final_answer(answer, query, interrupter, send)
        if MEMORY_LIMIT.used_up:
            send(number, "exhausted", None)  # a new process has the memory that this one keeps
        send(number, kind, content)


def _final_answer(
    answer: Callable[..., Any],
    query: dict[str, Any],
    interrupter: Interrupter,
    send: Callable[..., None],
) -> tuple[str, Any]:
    """The kind and the content of the final answer to a query."""
    number = query["number"]
    try:
        with interrupter.stoppable(number):
            return "done", answer(query, lambda kind, content: send(number, kind, content))
    except Stopped:
        return "stopped", None
    except Refused as error:
        return "refused", error.problem.as_dict()
    except BaseException as error:  # a model may even call sys.exit()
        return "refused", public_problem(error).as_dict()


def public_problem(error: BaseException) -> Problem:
    """What users see of an error; an unexpected one is logged in full."""
    if is_out_of_memory(error):
        return MEMORY_LIMIT.problem()
    if isinstance(error, _EXPECTED) and str(error):
        return Problem("failed", public_message(error))
    traceback.print_exception(error, file=sys.stderr)
    return Problem("failed", f"an unexpected error occurred ({type(error).__name__})")


def _load(role: str, settings: Any, interrupter: Interrupter) -> Callable[..., Any]:
    """The function that answers queries in this role; the heavy packages are imported here."""
    import torch

    from gstarx._internal.progress import hide_bars

    torch.set_num_threads(1)
    hide_bars()  # the terminal is the server's
    if role == "query":
        from gstarx_explorer.queries import QueryWorker

        return QueryWorker(settings).answer
    from gstarx_explorer.explaining import ExplanationWorker

    worker = ExplanationWorker(settings, interrupter)
    if role == "explainer":
        worker.warm_up()
    return worker.answer


def _take_stdout() -> IO[bytes]:
    """Standard output for answers alone: whatever else is printed goes to standard error."""
    sys.stdout.flush()
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stdout


def _listen(queries: queue.SimpleQueue[dict[str, Any]], interrupter: Interrupter) -> None:
    for line in sys.stdin.buffer:
        query = json.loads(line)
        if "stop" in query:
            interrupter.stop(query["stop"])
        else:
            queries.put(query)
    # the server is gone or has closed the pipe, whether or not a query is being answered
    os._exit(0)


if __name__ == "__main__":
    main()
