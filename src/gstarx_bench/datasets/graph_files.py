"""Graphs in files of torch, numpy, safetensors or JSON, read without running code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from gstarx._internal.files import TooLargeError, check_expanded_size, check_size
from gstarx._internal.messages import quoted, shortened
from gstarx.datasets import TABLES
from gstarx_bench.datasets.raw_files import archive

#: What graphs are read from; no file is unpickled.
GRAPH_FILES = (".pt", ".pth", ".npz", ".safetensors", ".json")
Arrays = Mapping[str, NDArray[Any]]
#: Arrays of a feature matrix in compressed rows.
SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
SPLITS = ("train", "val", "test")
_FIELDS = ("x", "edge_index", "edge_attr", "y", "pos")


class GraphFileError(ValueError):
    """A file of graphs cannot be read."""


def read_graphs(path: Path) -> list[Data]:
    """The graphs in a file of torch, numpy, safetensors or JSON, read without running code.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If there is no file.
    GraphFileError, TooLargeError
        If it holds something else, or would take too much memory.
    """
    readers: dict[str, Callable[[Path], list[Any]]] = {
        ".pt": _torch_file,
        ".pth": _torch_file,
        ".npz": _npz_file,
        ".safetensors": _safetensors_file,
        ".json": _json_file,
    }
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, where a file of graphs is expected")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix not in readers:
        valid = ", ".join((*GRAPH_FILES, *TABLES))
        raise GraphFileError(f"{path}: graphs are read from {valid} (got {path.suffix!r})")
    try:
        check_expanded_size(path)
        items = readers[path.suffix](path)
        check_size(path, sum(map(_size, items)))  # a small stored tensor can expand to any shape
        graphs = [_graph(item, path) for item in items]
    except (GraphFileError, TooLargeError):
        raise
    except Exception as error:  # an unexpected file can fail in any way
        message = shortened(str(error), 400)
        raise GraphFileError(f"{path} cannot be read: {type(error).__name__}: {message}") from error
    if not graphs:
        raise GraphFileError(f"{path} holds no graph")
    return graphs


def _torch_file(path: Path) -> list[Any]:
    # the classes that a Data consists of; nothing else in a file is built or run
    torch.serialization.add_safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise GraphFileError(
            f"{path} holds something else than PyG Data, lists and tensors, or is no file of "
            "torch.save: it is not read, because such a file can run code"
        ) from error
    return list(content) if isinstance(content, list | tuple) else [content]


def _npz_file(path: Path) -> list[Any]:
    stored = archive(path)
    if "x_indptr" in stored:
        return [graph_from_arrays(stored, path)]
    return [{name: torch.from_numpy(array) for name, array in stored.items()}]


def _safetensors_file(path: Path) -> list[Any]:
    from safetensors.torch import load_file

    return [load_file(path)]


def _json_file(path: Path) -> list[Any]:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    return content if isinstance(content, list) else [content]


def _size(item: Any) -> int:
    """Bytes that copies of a graph's tensors take."""
    fields = item.to_dict() if isinstance(item, Data) else item
    values = fields.values() if isinstance(fields, dict) else ()
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def _graph(item: Any, path: Path) -> Data:
    """A ``Data``, as it is or built from its fields by name."""
    if isinstance(item, Data):
        graph = item
    elif isinstance(item, dict) and {"x", "edge_index"} <= item.keys():
        fields = {
            key: torch.as_tensor(value) if key in _FIELDS else value for key, value in item.items()
        }
        graph = Data.from_dict(fields)
    else:
        got = quoted(sorted(item), 300) if isinstance(item, dict) else type(item).__name__
        raise GraphFileError(f"{path}: a graph has x and edge_index (got {got})")
    if graph.x is None or graph.edge_index is None:
        raise GraphFileError(f"{path}: a graph has x and edge_index (got {quoted(graph, 300)})")
    graph.x = graph.x.float()
    graph.edge_index = graph.edge_index.long()
    return graph


def graph_from_arrays(stored: Arrays, path: Path) -> Data:
    """One graph from arrays by name, as they are in an ``.npz`` file.

    ``edge_index`` (2, E), ``y`` (N,), and features ``x`` (N, F) or, as compressed sparse rows,
    ``x_data``, ``x_indices``, ``x_indptr`` and ``x_shape``. Boolean ``train``, ``val`` and ``test``
    (N,) become masks. Other arrays are left out. Errors name ``path``.
    """
    x = _features(stored, path)
    count = len(x)
    edges = np.asarray(_required(stored, "edge_index", path))
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: edge_index must be integers of shape (2, E) (got {edges.dtype}, "
            f"{edges.shape})"
        )
    if edges.size and not 0 <= edges.min() <= edges.max() < count:
        raise ValueError(
            f"{path}: edge_index must name nodes in 0..{count - 1} "
            f"(got {edges.min()}..{edges.max()})"
        )
    graph = Data(x=x, edge_index=torch.from_numpy(edges.astype(np.int64)))
    if "y" in stored:
        graph.y = torch.from_numpy(_one_each(stored, "y", count, path, "iu").astype(np.int64))
    for name in SPLITS:
        if name in stored:
            graph[f"{name}_mask"] = torch.from_numpy(_one_each(stored, name, count, path, "b"))
    return graph


def _features(stored: Arrays, path: Path) -> Tensor:
    """Features as a dense matrix (N, F) of floats."""
    if "x" in stored:
        x = np.asarray(stored["x"])
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise ValueError(
                f"{path}: x must be numbers of shape (N, F) (got {x.dtype}, {x.shape})"
            )
        return torch.from_numpy(x.astype(np.float32, copy=False))
    values, columns, begins, shape = (
        torch.from_numpy(_required(stored, name, path)) for name in SPARSE
    )
    try:
        if len(begins) != int(shape[0]) + 1:
            raise ValueError(f"x_indptr must have {int(shape[0]) + 1} entries (got {len(begins)})")
        rows = torch.repeat_interleave(begins.long().diff())
        places = torch.stack([rows, columns.long()])
        sparse = torch.sparse_coo_tensor(
            places, values.float(), shape.tolist(), check_invariants=True
        )
        # entries of the same place add up
        return sparse.to_dense()
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: x_data, x_indices, x_indptr and x_shape must be compressed rows: {error}"
        ) from error


def _required(stored: Arrays, name: str, path: Path) -> NDArray[Any]:
    if name not in stored:
        valid = "edge_index, y, and x or " + ", ".join(SPARSE)
        raise ValueError(f"{path}: {name} is missing; a graph has {valid} (got {sorted(stored)})")
    return stored[name]


def _one_each(stored: Arrays, name: str, count: int, path: Path, kinds: str) -> NDArray[Any]:
    values = stored[name]
    if values.shape != (count,) or values.dtype.kind not in kinds:
        what = "booleans" if kinds == "b" else "integers"
        raise ValueError(
            f"{path}: {name} must be {count} {what}, one for each node "
            f"(got {values.dtype}, {values.shape})"
        )
    return values
