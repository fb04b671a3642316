"""One torch thread: graphs are small, and sums depend on how many threads there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread, so that commands, runs and their workers give the same numbers.

    More threads would only wait for each other: no graph is large enough to be split among them.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def worker_environment() -> dict[str, str]:
    """Environment variables of a worker process: one thread, and the modules of this process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**os.environ, **threads, "PYTHONPATH": path}
