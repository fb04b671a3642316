"""CPU time of a call, best of several, so that a busy machine distorts little."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_seconds(call: Callable[[], object], *, repeats: int = 5, least: float = 0.05) -> float:
    """Least CPU seconds per call over ``repeats`` rounds of at least ``least`` seconds each."""
    call()
    loops = 1
    while True:
        start = time.process_time()
        for _ in range(loops):
            call()
        spent = time.process_time() - start
        if spent >= least:
            break
        loops = max(2 * loops, int(loops * least / max(spent, 1e-6)))
    best = spent / loops
    for _ in range(repeats - 1):
        start = time.process_time()
        for _ in range(loops):
            call()
        best = min(best, (time.process_time() - start) / loops)
    return best
