"""What a worker process may hold, and what it says when that is not enough."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gstarx.web.problems import Problem

_GB = 1 << 30
#: The share of the machine's memory that all processes may fill together.
_SHARE = 0.75
#: What a process holds before it is asked anything, and bounds of what is left of its part.
_PROCESS, _LEAST, _MOST = _GB // 2, _GB // 2, 4 * _GB
#: Where Linux says how much memory a container has, now and formerly.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: How errors that are no MemoryError say the same: torch, C++ and threads.
_WORDS = ("allocate memory", "not enough memory", "bad_alloc", "can't start new thread")

#: What always helps.
LARGER = "start gstarx serve with a larger --max-memory"


def default_memory(workers: int) -> int:
    """Bytes that one job may use, by the memory of this machine and the number of workers."""
    part = int(_SHARE * _machine_memory()) // (workers + 1)
    return min(max(part - _PROCESS, _LEAST), _MOST)


def _machine_memory() -> int:
    """Bytes of this machine, or of the container that we are in."""
    found = 4 * _GB  # where the system does not say
    with suppress(AttributeError, OSError, ValueError):
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # where there is no limit, it says "max"
            found = min(found, int(Path(path).read_text("ascii")))
    return found


def in_gb(size: float) -> str:
    """A number of bytes for people.

    >>> in_gb(1.5 * (1 << 30)), in_gb(20 << 20)
    ('1.5 GB', '0.02 GB')
    """
    return f"{size / _GB:,.{1 if size >= _GB else 2}f} GB"


class Allowance:
    """How much this process may grow by.

    On Linux the system holds it to that (``RLIMIT_DATA``, which counts what a process could write
    to, and no code): an allocation beyond it fails, whoever asks. Elsewhere nothing does.
    """

    def __init__(self) -> None:
        self._size: int | None = None
        self._start = 0
        self._ran_out = False

    def begin(self, size: int) -> None:
        """From now on this process may grow by so many bytes."""
        self._size, self._start, self._ran_out = size, held(), False
        self._limit(self._start + size)

    @property
    def used_up(self) -> bool:
        """Whether another process had better take over, which has what this one keeps."""
        if self._size is None:
            return False
        return self._ran_out or held() - self._start > self._size // 2

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is loaded inside was chosen by whoever started the server: it does not count."""
        before = held()
        self._limit(None)
        try:
            yield
        finally:
            self._start += held() - before
            if self._size is not None:
                self._limit(self._start + self._size)

    def problem(self) -> Problem:
        """What to say of an error that :func:`ran_out` recognizes."""
        self._ran_out = True
        gc.collect()  # what comes next shall have what this had
        what = "there is" if self._size is None else f"a job may use {in_gb(self._size)}, which is"
        text = f"{what} not enough memory for this: ask for less, or {LARGER}"
        return Problem("failed", text)

    def _limit(self, size: int | None) -> None:
        if not held():
            return
        import resource  # here only: Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = resource.RLIM_INFINITY if size is None else size
        if most != resource.RLIM_INFINITY:
            wanted = most if size is None else min(size, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


#: Limits are those of a process, so there is one.
ALLOWANCE = Allowance()


def ran_out(error: BaseException) -> bool:
    """Whether an error means that there was not enough memory."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _WORDS)


def held() -> int:
    """Bytes of this process that count; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
