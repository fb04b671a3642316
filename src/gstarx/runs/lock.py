"""One process at a time: a lock that the system takes back when its holder dies."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


#: What file systems say that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)


class StoreInUse(RuntimeError):
    """Another process is writing to the store."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file inside, or say who holds it.

    The lock is the system's, on an open file: it ends with the process, however that ends. The
    file itself stays, and beside it ``<name>.holder`` says who was the last to hold it.

    Raises
    ------
    StoreInUse
        At once when another process, or another thread of this one, holds it.
    """
    holder = path.with_suffix(".holder")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _take(descriptor)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise
            raise StoreInUse(
                f"{path.parent} is in use by {_said(holder)}: wait until it has ended, or use "
                "another store"
            ) from None
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        holder.write_text(json.dumps(who), encoding="utf-8")
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _said(holder: Path) -> str:
    try:
        who = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
        return f"process {who['pid']} on {who['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
