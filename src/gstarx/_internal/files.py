"""Files that are complete or absent when written, and of limited size when read."""

from __future__ import annotations

import errno
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

#: What :func:`atomic_path` calls files that are being written.
_BEING_WRITTEN = re.compile(r"\..*\.part(\.[^.]*)?")
#: The size in memory that any file may have.
LIMIT = 2**30
_TIMES = 4


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file, flush it to disk, and replace the old file with it.

    A reader finds the old content or the new, never a part. Missing directories are created.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the name ``path`` when the block ends without an error.

    It has the same suffix, and a name that starts with a dot. A symbolic link remains one: the
    file that it names is written. Errors of the file system name ``path``.
    """
    named, path = path, written_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{uuid4().hex}.part{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno is None or str(error.filename) not in ("None", str(temporary)):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(named)) from error
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def written_path(path: Path) -> Path:
    """The file that is written under a name, which may be a symbolic link."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        # a device or a pipe, which must not be replaced by a file
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return target


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


class TooLargeError(ValueError):
    """A file is too large once it is expanded."""


def most_bytes(path: str | os.PathLike[str]) -> int:
    """The size that a file may expand to: 1 GiB, or four times its own size if that is more.

    Measured or learned numbers hardly compress, so a large file of them passes.
    """
    return max(LIMIT, _TIMES * os.path.getsize(path))


def check_size(path: str | os.PathLike[str], size: int) -> None:
    """Raise TooLargeError if the content of a file takes more than :func:`most_bytes`."""
    most = most_bytes(path)
    if size > most:
        raise TooLargeError(
            f"{os.fspath(path)} is refused: its {os.path.getsize(path):,} bytes grow to {size:,} "
            f"when read, and the limit is {most:,}; if it is meant, store it without compression"
        )


def check_expanded_size(path: str | os.PathLike[str]) -> None:
    """Raise TooLargeError for a zip archive that declares more than :func:`most_bytes`.

    Files of ``np.savez`` and ``torch.save`` are such archives. Nothing is unpacked: readers stop
    at the size that the directory of the archive declares. Other files pass, even damaged ones.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (OSError, zipfile.BadZipFile):
        return
    check_size(path, size)
