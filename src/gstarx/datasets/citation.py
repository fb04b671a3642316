"""One large graph whose nodes are classified: citation and co-author networks, and your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.datasets.dataset import GraphDataset
from gstarx.datasets.raw_files import archive, find, not_found

Arrays = Mapping[str, NDArray[Any]]
#: Arrays of a feature matrix in compressed rows.
SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
_SPLITS = ("train", "val", "test")


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
    for name in _SPLITS:
        if name in stored:
            graph[f"{name}_mask"] = torch.from_numpy(_one_each(stored, name, count, path, "b"))
    return graph


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
        {side: [0] for side in _SPLITS},
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
    kept = ("x", "edge_index", "y", *(f"{side}_mask" for side in _SPLITS))
    return Data(**{key: graph[key] for key in kept if key in graph})


def _features(stored: Arrays, path: Path) -> Tensor:
    """Features as a dense matrix (N, F) of floats."""
    if "x" in stored:
        x = np.asarray(stored["x"])
        if x.ndim != 2 or x.dtype.kind not in "fiub":
            raise ValueError(
                f"{path}: x must be numbers of shape (N, F) (got {x.dtype}, {x.shape})"
            )
        return torch.from_numpy(x.astype(np.float32, copy=False))
    values, columns, begins, shape = (_required(stored, name, path) for name in SPARSE)
    if shape.shape != (2,) or len(begins) != shape[0] + 1 or values.shape != columns.shape:
        raise ValueError(
            f"{path}: x_data, x_indices, x_indptr and x_shape must be compressed rows (got lengths "
            f"{len(values)}, {len(columns)}, {len(begins)} and shape {shape.tolist()})"
        )
    counts = np.diff(begins)
    if (counts < 0).any() or begins[0] != 0 or begins[-1] != len(values):
        raise ValueError(f"{path}: x_indptr must ascend from 0 to {len(values)}")
    if columns.size and not 0 <= columns.min() <= columns.max() < shape[1]:
        raise ValueError(f"{path}: x_indices must lie in 0..{int(shape[1]) - 1}")
    x = np.zeros((int(shape[0]), int(shape[1])), dtype=np.float32)
    # entries of the same place add up, as in compressed rows
    np.add.at(x, (np.repeat(np.arange(len(counts)), counts), columns), values)
    return torch.from_numpy(x)


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
