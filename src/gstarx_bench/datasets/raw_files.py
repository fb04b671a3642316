"""Raw files: finding and downloading them, and reading arrays without running code.

Pickles too: nothing in one is ever called.
"""

from __future__ import annotations

import math
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.files import check_expanded_size, most_bytes
from gstarx.datasets import GraphDataset

Array = NDArray[Any]

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


def archive(path: Path) -> dict[str, Array]:
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


def array(path: Path) -> Array:
    """The array of an ``.npy`` file; never pickled objects."""
    try:
        with open(path, "rb") as file:
            _check_header("it", file, os.path.getsize(path))
        stored: Array = np.load(path, allow_pickle=False)
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


class UnsafePickleError(ValueError):
    """A pickle asks for more than numbers in arrays."""


def read_arrays(path: Path) -> tuple[Array, ...]:
    """The arrays of numbers in a pickled array, or in a tuple, list or dictionary of arrays.

    A pickle is a program, and reading it with ``pickle.load`` runs it. Here the few instructions
    that numpy writes for an array of numbers are executed by stand-ins that copy bytes, and every
    other instruction is refused. numpy's own functions are not called either, since they trust
    what a pickle says about memory.

    Parameters
    ----------
    path
        A pickle of any protocol, written with numpy 1 or 2, by Python 2 or 3.

    Returns
    -------
    tuple of arrays
        In the order of the pickle; one for a lone array.

    Raises
    ------
    UnsafePickleError
        When the pickle refers to anything but arrays of numbers, or repeats the same bytes so
        often that they exceed :func:`gstarx._internal.files.most_bytes`.
    ValueError
        When the file is damaged or not a pickle.
    """
    try:
        with open(path, "rb") as file:
            content = _ArrayUnpickler(file, most_bytes(path)).load()
    except OSError:
        raise
    except UnsafePickleError as error:
        raise UnsafePickleError(f"{path} is refused: {error}") from error
    except Exception as error:  # a garbled pickle may fail in any way
        raise ValueError(f"{path} is not a readable pickle: {error}") from error
    items = [content] if isinstance(content, _Array) else content
    items = list(items.values()) if isinstance(items, dict) else items
    if not isinstance(items, tuple | list) or not all(isinstance(item, _Array) for item in items):
        raise UnsafePickleError(
            f"{path} is refused: it must hold an array, or a tuple, list or dictionary of arrays"
        )
    if any(item.values is None for item in items):
        raise ValueError(f"{path} is not a readable pickle: an array has no content")
    return tuple(item.values for item in items)


class _DType:
    """Stands in for ``numpy.dtype``: plain numbers only."""

    def __init__(self, code: Any, *_: Any) -> None:
        dtype = np.dtype(code) if isinstance(code, str) else None
        if dtype is None or dtype.kind not in "biufc":
            raise UnsafePickleError(f"arrays must hold numbers (got type {code!r})")
        self.dtype = dtype

    def __setstate__(self, state: Any) -> None:
        order, *extra = state[1:5]
        if order not in ("<", ">", "|", "=") or extra != [None] * 3:
            raise UnsafePickleError("arrays must hold plain numbers")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands in for ``numpy.ndarray``."""

    values: Array | None = None

    def __init__(self, count: Callable[[int], None]) -> None:
        self.count = count

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        content = content.encode("latin1") if isinstance(content, str) else content
        self.fill(content, dtype, shape, "F" if fortran else "C")

    def fill(self, content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        if not isinstance(dtype, _DType) or not isinstance(content, bytes | bytearray):
            raise UnsafePickleError("arrays must be written as bytes of numbers")
        if len(content) != dtype.dtype.itemsize * math.prod(shape):
            raise ValueError(f"{len(content)} bytes are not an array of shape {shape}")
        self.count(len(content))
        values = np.frombuffer(bytes(content), dtype.dtype).reshape(shape, order=order)
        self.values = values.astype(values.dtype.newbyteorder("="))
        return self


class _ArrayUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], most: int) -> None:
        super().__init__(file, encoding="latin1")
        self.most, self.made = most, 0

    def count(self, size: int) -> None:
        """Count the bytes of the arrays."""
        self.made += size
        if self.made > self.most:
            raise UnsafePickleError(f"its arrays grow to more than {self.most:,} bytes")

    def encode(self, text: Any, encoding: Any) -> bytes:
        """Decode bytes as old protocols write them."""
        if not isinstance(text, str) or encoding != "latin1":
            raise UnsafePickleError("bytes must be written as latin1 text")
        self.count(len(text))
        return text.encode("latin1")

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name in the pickle."""
        # new functions for every pickle: attributes it sets on them are discarded with it
        plain = module.replace("numpy._core", "numpy.core").replace("__builtin__", "builtins")
        admitted: dict[tuple[str, str], Callable[..., Any] | str] = {
            ("numpy", "ndarray"): "the type of arrays",
            ("numpy", "dtype"): lambda *args: _DType(*args),
            ("_codecs", "encode"): lambda *args: self.encode(*args),
            ("builtins", "bytes"): lambda: b"",
            ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(self.count),
            ("numpy.core.numeric", "_frombuffer"): lambda *args: _Array(self.count).fill(*args),
        }
        if (plain, name) not in admitted:
            raise UnsafePickleError(f"it refers to {module}.{name}, and only arrays are read")
        return admitted[plain, name]


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
