"""Rows as they come: an append-only file with a checksum on every line.

A line is handed to the system at once, so that it outlives the process, and to the disk every
second, so that it outlives the machine.
"""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self

#: Seconds between two times that what was written is pushed to the disk.
SYNC_SECONDS = 1.0


class Journal:
    """A new journal file, open for writing."""

    def __init__(self, path: Path, *, sync_seconds: float = SYNC_SECONDS) -> None:
        self.path = path
        self.lines = 0
        self._sync_seconds = sync_seconds
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._synced = time.monotonic()

    def append(self, content: bytes) -> None:
        """Add a line, which must have no line break inside."""
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        written = os.write(self._descriptor, line)
        while written < len(line):  # a disk that is almost full takes a part, then says so
            written += os.write(self._descriptor, line[written:])
        self.lines += 1
        if time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Push everything to the disk."""
        os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Push everything to the disk, and close; nothing happens the second time."""
        if self._descriptor >= 0:
            try:
                os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(path: Path) -> tuple[list[bytes], list[bytes]]:
    """The lines that are whole, and the remains of those that are not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal")
    ...     with Journal(path) as journal:
    ...         journal.append(b"first")
    ...         journal.append(b"second")
    ...     _ = path.write_bytes(path.read_bytes()[:-3])
    ...     read_journal(path)
    ([b'first'], [b'... seco'])
    """
    whole: list[bytes] = []
    broken: list[bytes] = []
    with path.open("rb") as file:
        for line in file:
            check, _, content = line[:-1].partition(b" ")
            if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(content):
                whole.append(content)
            else:
                broken.append(line)
    return whole, broken
