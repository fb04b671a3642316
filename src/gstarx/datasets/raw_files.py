"""Raw files: finding and downloading them, and reading arrays and tables of integers."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.atomic_write import write_atomically
from gstarx._internal.expanded_size import check_expanded_size


def find(root: Path, places: Sequence[str]) -> Path | None:
    """The first of several paths below ``root`` that is a file."""
    return next((root / place for place in places if (root / place).is_file()), None)


def not_found(title: str, place: Path, why: str = "") -> FileNotFoundError:
    """The error that says which file goes where."""
    reason = f" and could not be downloaded ({why})" if why else ""
    return FileNotFoundError(
        f"{title} is not at {place}{reason}; put it there, or pass root=... or set GSTARX_DATA "
        "to where it is"
    )


def download(title: str, url: str, target: Path) -> Path:
    """Fetch a file with PyG's downloader; the target appears complete or not at all."""
    from torch_geometric.data import download_url

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as folder:
            os.replace(download_url(url, folder), target)
    except Exception as error:
        raise not_found(title, target, str(error)) from error
    return target


def integers(path: Path, *, columns: int, delimiter: str | None = ",") -> NDArray[np.int64]:
    """A text file of integers, ``columns`` to a line; blank lines are skipped.

    Raises
    ------
    ValueError
        When a line is anything else; the message names it. Also for a file without lines.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of an empty file
            table = np.loadtxt(path, delimiter=delimiter, dtype=np.int64, ndmin=2)
    except (OSError, ValueError, OverflowError, UserWarning) as error:
        raise _unreadable(path, columns, delimiter, str(error)) from error
    if table.shape[1] != columns:
        raise _unreadable(path, columns, delimiter, f"it has {table.shape[1]} columns")
    return table


def unpack(packed: Path, folder: Path, names: Sequence[str]) -> None:
    """Write files of a zip archive into a folder, in order; directories in names are ignored."""
    check_expanded_size(packed)
    with zipfile.ZipFile(packed) as stored:
        members = {member.filename.rpartition("/")[2]: member for member in stored.infolist()}
        for name in names:
            if name in members:
                write_atomically(folder / name, stored.read(members[name]))


def archive(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name; never pickled objects.

    Raises
    ------
    ValueError
        When it cannot be read, or is too large, see :mod:`gstarx._internal.expanded_size`.
    """
    check_expanded_size(path)
    try:
        # numpy leaves a damaged file open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            for member in stored.zip.infolist():
                with stored.zip.open(member) as content:
                    _check_header(member.filename, content, member.file_size)
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive may fail in any way
        raise ValueError(f"{path} is not a readable archive of arrays: {error}") from error


def array(path: Path) -> NDArray[Any]:
    """The array of an ``.npy`` file; never pickled objects."""
    try:
        with open(path, "rb") as file:
            _check_header("it", file, os.path.getsize(path))
        stored: NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a readable array: {error}") from error
    return stored


def _check_header(name: str, file: IO[bytes], size: int) -> None:
    """Raise if an array claims to be larger than its file: numpy would allocate memory for it."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    claimed = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and claimed > size:
        raise ValueError(f"{name} claims an array of {claimed:,} bytes and has {size:,}")


def line_of_row(path: Path, row: int) -> int:
    """The line number, from one, of a row that :func:`integers` has read."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [number for number, line in enumerate(file, start=1) if line.strip()]
    return lines[row]


def misfit(path: Path, row: int, what: str) -> ValueError:
    """The error for a row of a table that contradicts the other files."""
    return ValueError(
        f"{path} does not fit together with the files beside it: "
        f"line {line_of_row(path, row)}: {what}"
    )


def _unreadable(path: Path, columns: int, delimiter: str | None, why: str) -> ValueError:
    """The error for an unreadable table: read it again, slowly, to find the wrong line."""
    expected = "one integer" if columns == 1 else f"{columns} integers"
    message = f"{path} is not a readable table of integers"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                cells = line.split(delimiter)
                if line.strip() and (len(cells) != columns or not all(map(_is_integer, cells))):
                    got = line.rstrip("\n")[:60]
                    return ValueError(
                        f"{message}: line {number}: expected {expected} (got {got!r})"
                    )
    except OSError as error:
        why = str(error)
    return ValueError(f"{message}: {why}")


def _is_integer(cell: str) -> bool:
    try:
        int(cell)
    except ValueError:
        return False
    return True
