"""Graphs in files of torch, numpy, safetensors or JSON, read without running code.

Among them the citation and co-author networks: one large graph each, whose nodes are classified.
"""

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
from gstarx.datasets import TABLES, GraphDataset
from gstarx_bench.datasets.raw_files import archive, find, not_found

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


def load_cora(root: Path) -> GraphDataset:
    """2,708 papers that cite each other, in seven classes; the words of a paper are its features.

    Read from ``citation/cora.npz``, in the layout of :func:`graph_from_arrays`, or downloaded by
    PyG's ``Planetoid``. Every row of features sums to one, as PyG's ``NormalizeFeatures`` makes it.
    """
    return _load(root, "cora", 7, "Planetoid", "Cora", "Yang et al., ICML 2016 (Planetoid)")


def load_citeseer(root: Path) -> GraphDataset:
    """3,327 papers that cite each other, in six classes; see :func:`load_cora`."""
    return _load(root, "citeseer", 6, "Planetoid", "CiteSeer", "Yang et al., ICML 2016 (Planetoid)")


def load_coauthor_cs(root: Path) -> GraphDataset:
    """18,333 authors who wrote papers together, in 15 fields; see :func:`load_cora`.

    Downloaded by PyG's ``Coauthor`` if ``citation/coauthor_cs.npz`` is not there, without splits.
    """
    return _load(root, "coauthor_cs", 15, "Coauthor", "CS", "Shchur et al., 2018")


def load_coauthor_physics(root: Path) -> GraphDataset:
    """34,493 authors who wrote papers together, in five fields; see :func:`load_coauthor_cs`."""
    return _load(root, "coauthor_physics", 5, "Coauthor", "Physics", "Shchur et al., 2018")


def _load(
    root: Path, name: str, classes: int, family: str, title: str, source: str
) -> GraphDataset:
    path = find(root, [f"citation/{name}.npz", f"{name}.npz"])
    if path is not None:
        graph = graph_from_arrays(archive(path), path)
        if "y" not in graph:
            raise ValueError(f"{path}: y is missing, the class of every node")
    else:
        graph = _downloaded(root, name, family, title)
    graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp_(min=1.0)
    highest = int(graph.y.max()) if graph.y.numel() else -1
    if highest >= classes or (graph.y.numel() and int(graph.y.min()) < 0):
        raise ValueError(f"{path or name}: y must lie in 0..{classes - 1} (got {highest})")
    return GraphDataset(
        name,
        (graph,),
        classes,
        {side: [0] for side in SPLITS},
        source=source,
        license="see the source",
        description="One graph; which class is a node?",
    )


def _downloaded(root: Path, name: str, family: str, title: str) -> Data:
    """The graph as PyG downloads it, or an error that says where to put the file."""
    from torch_geometric import datasets as pyg

    place = root / "citation" / f"{name}.npz"
    try:
        (graph,) = getattr(pyg, family)(str(root / family), title)
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise not_found(f"{name}.npz", place, f"PyG's {family}: {reason}") from error
    # PyG sets the counts of words to one
    graph.x = (graph.x > 0).float()
    kept = ("x", "edge_index", "y", *(f"{side}_mask" for side in SPLITS))
    return Data(**{key: graph[key] for key in kept if key in graph})
