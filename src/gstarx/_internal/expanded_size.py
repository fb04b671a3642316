"""Limits on the size of a file in memory: a few kilobytes can expand to gigabytes of zeros."""

from __future__ import annotations

import os
import zipfile

#: The size in memory that any file may have.
LIMIT = 2**30
_TIMES = 4


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
