"""The main program of a local worker process: reads positions and writes rows, a line each.

``python -m gstarx_bench.runs.worker`` reads its setup and then positions from standard input, and
exits when that is closed, so that it never outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import IO, Any


def main() -> None:
    """Explain graphs until there are no more positions."""
    # Ctrl-C is for the parent process, which closes the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = _take_stdout()
    positions: queue.SimpleQueue[int] = queue.SimpleQueue()
    setup = json.loads(sys.stdin.buffer.readline() or b"null")
    if setup is None:
        return
    threading.Thread(target=_listen, args=(positions,), daemon=True).start()
    try:
        resolved, task = _resolve(setup)
    except Exception as error:
        output.write(b"failed %s\n" % json.dumps(f"{type(error).__name__}: {error}").encode())
        output.flush()
        return
    output.write(b"ready\n")
    output.flush()
    while True:
        result = task.run(position := positions.get(), resolved.graph(position))
        try:
            if result.imprecise is not None:
                output.write(b"imprecise %s\n" % json.dumps(result.imprecise).encode())
            output.write(b"%d %d %s\n" % (result.position, result.failed, result.row))
            output.flush()
        except BrokenPipeError:
            # the parent is gone; at a normal exit, Python would try to write the rest
            os._exit(0)


def _take_stdout() -> IO[bytes]:
    """Standard output for rows alone: whatever else is printed goes to standard error."""
    sys.stdout.flush()
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stdout


def _listen(positions: queue.SimpleQueue[int]) -> None:
    for line in sys.stdin.buffer:
        positions.put(int(line))
    # the parent is gone or has closed the pipe, whether or not a graph is being explained
    os._exit(0)


def _resolve(setup: dict[str, Any]) -> tuple[Any, Any]:
    import torch

    from gstarx._internal.progress import hide_bars
    from gstarx_bench.runs.resolution import resolve
    from gstarx_bench.runs.specification import RunSpec

    torch.set_num_threads(1)
    hide_bars()  # the terminal is that of the process that started this one
    baseline = setup["baseline"]
    with warnings.catch_warnings():
        # the process that started this one has read the same files and said it once
        warnings.simplefilter("ignore")
        resolved = resolve(
            RunSpec.model_validate(setup["spec"]),
            tuple(baseline) if isinstance(baseline, list) else baseline,
        )
    if resolved.run != setup["run"]:
        raise RuntimeError("the data, weights or packages have changed since the run was started")
    trained = setup["trained"]
    return resolved, resolved.task(None if trained is None else Path(trained))


if __name__ == "__main__":
    main()
