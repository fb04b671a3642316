"""Graphs in files of torch, numpy, safetensors or JSON, read without running code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from gstarx._internal.files import TooLargeError, check_expanded_size, check_size
from gstarx._internal.messages import quoted, shortened
from gstarx.datasets.citation import graph_from_arrays
from gstarx.datasets.raw_files import archive
from gstarx.datasets.tables import SUFFIXES as TABLES

#: What graphs are read from; no file is unpickled.
GRAPH_FILES = (".pt", ".pth", ".npz", ".safetensors", ".json")
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
