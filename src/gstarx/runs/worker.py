"""A worker process of the local engine: positions come in, rows go out, a line each.

``python -m gstarx.runs.worker`` reads its set-up and then positions from standard input, and ends
when that does: it never outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any


def main() -> None:
    """Work until there are no more positions."""
    # an interrupt is for the process at the other end, which closes the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = _own_output()
    positions: queue.SimpleQueue[int] = queue.SimpleQueue()
    setup = json.loads(sys.stdin.buffer.readline() or b"null")
    if setup is None:
        return
    threading.Thread(target=_listen, args=(positions,), daemon=True).start()
    try:
        resolved, task = _resolved(setup)
    except Exception as error:
        answers.write(b"failed %s\n" % json.dumps(f"{type(error).__name__}: {error}").encode())
        answers.flush()
        return
    answers.write(b"ready\n")
    answers.flush()
    while True:
        done = task.run(position := positions.get(), resolved.graph(position))
        try:
            answers.write(b"%d %d %s\n" % (done.position, done.failed, done.row))
            answers.flush()
        except BrokenPipeError:
            # nobody is there to take it; nothing of it is left to be written at exit
            os._exit(0)


def _own_output() -> IO[bytes]:
    """Standard output for us alone: what anybody else prints goes to standard error."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _listen(positions: queue.SimpleQueue[int]) -> None:
    for line in sys.stdin.buffer:
        positions.put(int(line))
    # the other end is gone, or wants us gone, in the middle of a graph or not
    os._exit(0)


def _resolved(setup: dict[str, Any]) -> tuple[Any, Any]:
    import torch

    from gstarx.runs.resolution import resolve
    from gstarx.runs.specification import RunSpec

    torch.set_num_threads(1)
    baseline = setup["baseline"]
    resolved = resolve(
        RunSpec.model_validate(setup["spec"]), None if baseline is None else tuple(baseline)
    )
    if resolved.run != setup["run"]:
        raise RuntimeError("a worker must find what the run was begun with: something changed")
    trained = setup["trained"]
    return resolved, resolved.task(None if trained is None else Path(trained))


if __name__ == "__main__":
    main()
