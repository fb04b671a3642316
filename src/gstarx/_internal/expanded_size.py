"""What a file may grow to in memory: a few kilobytes can hold gigabytes of zeros."""

from __future__ import annotations

import os
import zipfile

#: What any file may grow to.
LIMIT = 2**30
_TIMES = 4


class TooLargeError(ValueError):
    """A file grows too much."""


def most_bytes(path: str | os.PathLike[str]) -> int:
    """What a file may grow to: 1 GiB, or four times its own size where that is more.

    Numbers that were measured or learned hardly shrink, so that a large file of them passes.
    """
    return max(LIMIT, _TIMES * os.path.getsize(path))


def check_size(path: str | os.PathLike[str], size: int) -> None:
    """Raise TooLargeError where the content of a file takes more than :func:`most_bytes`."""
    most = most_bytes(path)
    if size > most:
        raise TooLargeError(
            f"{os.fspath(path)} is refused: its {os.path.getsize(path):,} bytes grow to {size:,} "
            f"when read, and the limit is {most:,}; if it is meant, store it without compression"
        )


def check_expanded_size(path: str | os.PathLike[str]) -> None:
    """Raise TooLargeError for a zip archive that says it grows to more than :func:`most_bytes`.

    Files of ``np.savez`` and ``torch.save`` are such archives. Nothing is unpacked: readers stop
    where the directory of an archive says that a file ends. Other files pass, damaged ones too.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (OSError, zipfile.BadZipFile):
        return
    check_size(path, size)
