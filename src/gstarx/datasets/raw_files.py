"""Raw files: where they lie, how they come there, and tables of integers."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def find(root: Path, places: Sequence[str]) -> Path | None:
    """The first of some files that is there, by its path below ``root``."""
    return next((root / place for place in places if (root / place).is_file()), None)


def not_found(title: str, place: Path, why: str = "") -> FileNotFoundError:
    """The error that says which file goes where."""
    reason = f" and could not be downloaded ({why})" if why else ""
    return FileNotFoundError(
        f"{title} is not at {place}{reason}; put it there, or pass root=... or set GSTARX_DATA "
        "to where it is"
    )


def download(title: str, url: str, target: Path) -> Path:
    """Fetch a file by PyG's downloader; the target appears whole or not at all."""
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
        When a line is anything else; it is named. Also for a file without lines.
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


def archive(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name; never pickled objects."""
    try:
        # numpy leaves a file open that turns out to be damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive may fail in any way
        raise ValueError(f"{path} is not a readable archive of arrays: {error}") from error


def line_of_row(path: Path, row: int) -> int:
    """The line, from one, of a row that :func:`integers` has read."""
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
    """Read again, slowly, for the line that is wrong."""
    wanted = "one integer" if columns == 1 else f"{columns} integers"
    said = f"{path} is not a readable table of integers"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                cells = line.split(delimiter)
                if line.strip() and (len(cells) != columns or not all(map(_is_integer, cells))):
                    got = line.rstrip("\n")[:60]
                    return ValueError(f"{said}: line {number}: expected {wanted} (got {got!r})")
    except OSError as error:
        why = str(error)
    return ValueError(f"{said}: {why}")


def _is_integer(cell: str) -> bool:
    try:
        int(cell)
    except ValueError:
        return False
    return True
