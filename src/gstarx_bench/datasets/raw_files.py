"""Raw files: finding and downloading them, and reading them without running code."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.files import check_expanded_size
from gstarx.datasets import GraphDataset

# The printed mean of BACE differs from that of its 1,513 molecules in the second digit.
_NODES_TOLERANCE = 0.1


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


def archive(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name; never pickled objects.

    Raises
    ------
    ValueError
        When it cannot be read, or is too large, see :mod:`gstarx._internal.files`.
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


class UnlikeThePaperWarning(UserWarning):
    """A dataset is readable, but differs from the paper's."""


class PaperRow(NamedTuple):
    """A row of the paper's Table 5: graphs in all and for testing, mean sizes, widths.

    ``edges`` are directed for BACE and Twitter, and undirected for the others.
    """

    graphs: int
    test_graphs: int
    nodes: float
    edges: float
    features: int
    classes: int


#: The paper's Table 5.
TABLE_5 = {
    "mutag": PaperRow(188, 20, 17.93, 19.79, 7, 2),
    "bace": PaperRow(1513, 152, 34.01, 73.72, 9, 2),
    "bbbp": PaperRow(2039, 200, 24.06, 25.95, 9, 2),
    "graph_sst2": PaperRow(70042, 1821, 9.20, 10.19, 768, 2),
    "twitter": PaperRow(6940, 692, 21.10, 40.20, 768, 3),
    "ba_2motifs": PaperRow(1000, 100, 25, 25.48, 10, 2),
}


def warn_if_unlike_the_paper(dataset: GraphDataset) -> GraphDataset:
    """Return the dataset, with a warning if its numbers are not those of Table 5.

    It compares the numbers of graphs, features and classes, and the mean number of nodes.
    Different graphs mean a different random split, so the paper's figures cannot be expected.
    """
    row = TABLE_5[dataset.name]
    statistics = dataset.statistics()
    differences = [
        f"{getattr(statistics, what):,} {what} (the paper has {getattr(row, what):,})"
        for what in ("graphs", "features", "classes")
        if getattr(statistics, what) != getattr(row, what)
    ]
    # sentences are trees, with one edge fewer than nodes: their row has the two columns swapped
    nodes = row.edges if dataset.name == "graph_sst2" else row.nodes
    if abs(statistics.mean_nodes - nodes) > _NODES_TOLERANCE:
        differences.append(f"{statistics.mean_nodes:.2f} nodes on average (the paper has {nodes})")
    if differences:
        warnings.warn(
            f"this {dataset.name} is not the paper's: {', '.join(differences)}",
            UnlikeThePaperWarning,
            stacklevel=3,
        )
    return dataset
