"""Atomic writes: a file is complete or absent, whenever the process or the machine stops."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

#: What :func:`atomic_path` calls files that are being written.
_BEING_WRITTEN = re.compile(r"\..*\.part(\.[^.]*)?")


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file, flush it to disk, and replace the old file with it.

    A reader finds the old content or the new, never a part. Missing directories are created.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the name ``path`` when the block ends without an error.

    It has the same suffix, and a name that starts with a dot.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{uuid4().hex}.part{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def unfinished_files(directory: Path) -> list[Path]:
    """Temporary files that a killed process left in a directory.

    Valid only while no other process writes there.
    """
    entries = directory.iterdir() if directory.is_dir() else ()
    return sorted(path for path in entries if _BEING_WRITTEN.fullmatch(path.name))


def _sync_directory(directory: Path) -> None:
    """Flush the new name of a file to disk, where the system lets a directory be opened."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
