"""BA-2Motifs and BA-Shapes: random graphs with known motifs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset, random_split_indices
from gstarx_bench.datasets.pickles import read_arrays
from gstarx_bench.datasets.raw_files import (
    archive,
    download,
    find,
    not_found,
    warn_if_unlike_the_paper,
)

Array = NDArray[Any]

_NODES = 25
_BASE = 20


def load_ba_2motifs(root: Path) -> GraphDataset:
    """1,000 graphs of 25 nodes, class 0 with a five-cycle, class 1 with a house.

    Read from ``BA_2Motifs/ba_2motifs.npz`` (``edge_index``, ``edge_ptr``, ``y``) or, without
    running its code, from the authors' pickle in ``BA_2Motifs/raw``. All features are 0.1.
    ``truth`` marks the motif, the last five nodes. Self-loops of the files are kept.
    """
    path = find(
        root,
        [
            "BA_2Motifs/ba_2motifs.npz",
            "BA_2Motifs/raw/BA_2Motifs.pkl",
            "BA_2Motifs/raw/BA-2motif.pkl",
        ],
    )
    path = path or _download(root / "BA_2Motifs" / "raw" / "BA-2motif.pkl")
    features: Any
    if path.suffix == ".npz":
        stored = _arrays(path, "BA_2Motifs", ("edge_index", "edge_ptr", "y"))
        edges, labels = _split_edges(path, stored), stored["y"]
        features = [np.full((_NODES, 10), 0.1)] * len(labels)
    else:
        edges, labels, features = _from_adjacency(path)
    _check_labels(path, labels, 2)
    graphs = [
        Data(
            x=torch.tensor(x, dtype=torch.float),
            edge_index=torch.tensor(ends, dtype=torch.long),
            y=torch.tensor([int(label)]),
            truth=torch.arange(_NODES) >= _BASE,
        )
        for ends, label, x in zip(edges, labels, features, strict=True)
    ]
    dataset = GraphDataset(
        "ba_2motifs",
        tuple(graphs),
        2,
        random_split_indices(len(graphs)),
        source="Luo et al., Parameterized Explainer for Graph Neural Network, NeurIPS 2020",
        license="none stated",
        description="A random tree of 20 nodes with a motif of five; which motif is it?",
        class_names=("five-cycle", "house"),
    )
    return warn_if_unlike_the_paper(dataset)


def load_ba_shapes(root: Path) -> GraphDataset:
    """One graph of 700 nodes: a random graph of 300 and 80 houses; nodes have four classes.

    Read from ``BA_Shapes/ba_shapes.npz`` or, without running its code, from the authors' pickle.
    Every node has ten features, all one. ``train_mask``, ``val_mask`` and ``test_mask`` split the
    nodes, so every split holds the one graph. ``truth`` marks the nodes of houses, and ``motif``
    is the number of each node's house, -1 for none.
    """
    path = find(
        root,
        ["BA_Shapes/ba_shapes.npz", "BA_Shapes/raw/BA_shapes.pkl", "BA_Shapes/raw/syn1.pkl"],
    )
    if path is None:
        raise not_found("ba_shapes.npz", root / "BA_Shapes" / "ba_shapes.npz")
    if path.suffix == ".npz":
        names = ("edge_index", "y", "train", "val", "test", "motif_edges")
        stored = _arrays(path, "BA_Shapes", names)
        stored["x"] = np.ones((len(stored["y"]), 10))
    else:
        stored = _shapes_pickle(path)
    _check_labels(path, stored["y"], 4)
    count = len(stored["y"])
    for name in ("edge_index", "motif_edges"):
        _check_edges(path, stored[name], count)
    graph = Data(
        x=torch.tensor(stored["x"], dtype=torch.float),
        edge_index=torch.tensor(stored["edge_index"], dtype=torch.long),
        y=torch.tensor(stored["y"], dtype=torch.long),
        truth=torch.tensor(stored["y"] > 0),
        motif=torch.from_numpy(_houses(stored["motif_edges"], count)),
    )
    for name in ("train", "val", "test"):
        if stored[name].shape != (count,):
            raise ValueError(f"{path}: {name} must have {count} entries (got {stored[name].shape})")
        graph[f"{name}_mask"] = torch.tensor(stored[name], dtype=torch.bool)
    return GraphDataset(
        "ba_shapes",
        (graph,),
        4,
        {"train": [0], "val": [0], "test": [0]},
        source="Ying et al., GNNExplainer, NeurIPS 2019; file of Luo et al., NeurIPS 2020",
        license="none stated",
        description="A random graph with 80 houses attached; what part of a house is a node?",
        class_names=("none", "middle", "bottom", "top"),
    )


def _arrays(path: Path, title: str, names: tuple[str, ...]) -> dict[str, Array]:
    arrays = archive(path)
    if not set(names) <= set(arrays):
        raise ValueError(
            f"{path} is not {title}: it must hold {', '.join(names)} (got {', '.join(arrays)})"
        )
    return arrays


def _split_edges(path: Path, stored: dict[str, Array]) -> list[Array]:
    ends, bounds = stored["edge_index"].astype(np.int64), stored["edge_ptr"]
    fits = (
        bounds.shape == (len(stored["y"]) + 1,) and bounds[0] == 0 and (np.diff(bounds) >= 0).all()
    )
    if not fits or ends.shape != (2, bounds[-1]):
        raise ValueError(f"{path}: edge_index, edge_ptr and y do not fit together")
    _check_edges(path, ends, _NODES)
    return np.split(ends, bounds[1:-1], axis=1)


def _from_adjacency(path: Path) -> tuple[list[Array], Array, Array]:
    arrays = read_arrays(path)
    count = len(arrays[0]) if arrays and arrays[0].ndim else 0
    shapes = [array.shape for array in arrays]
    expected = [(count, _NODES, _NODES), (count, _NODES, 10), (count, 2)]
    if shapes != expected:
        raise ValueError(
            f"{path} is not BA_2Motifs: expected arrays of shapes (n, 25, 25), (n, 25, 10), "
            f"(n, 2) (got {', '.join(map(str, shapes))})"
        )
    adjacency, features, one_hot = arrays
    return [np.stack(np.nonzero(matrix)) for matrix in adjacency], one_hot.argmax(1), features


def _shapes_pickle(path: Path) -> dict[str, Array]:
    arrays = read_arrays(path)
    count = len(arrays[0]) if arrays and arrays[0].ndim else 0
    if len(arrays) != 9 or any(array.shape[:1] != (count,) for array in arrays):
        raise ValueError(
            f"{path} is not BA_Shapes: expected nine arrays of one length "
            f"(got {', '.join(str(array.shape) for array in arrays)})"
        )
    adjacency, features, *labels = arrays[:5]
    return {
        "x": features,
        "edge_index": np.stack(np.nonzero(adjacency)),
        "y": np.sum(labels, axis=0).argmax(axis=1),
        **dict(zip(("train", "val", "test"), arrays[5:8], strict=True)),
        "motif_edges": np.stack(np.nonzero(arrays[8])),
    }


def _check_labels(path: Path, labels: Array, classes: int) -> None:
    if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"{path}: labels must be a list of numbers 0 to {classes - 1}")


def _check_edges(path: Path, ends: Array, count: int) -> None:
    if (
        ends.ndim != 2
        or len(ends) != 2
        or (ends.size and not 0 <= ends.min() <= ends.max() < count)
    ):
        raise ValueError(f"{path}: edges must join two nodes numbered 0 to {count - 1}")


def _houses(motif_edges: Array, count: int) -> NDArray[np.int64]:
    """For each node, its component among the edges of motifs; -1 if it has no such edge."""
    first = np.arange(count)
    while True:
        before = first.copy()
        np.minimum.at(first, motif_edges[0], first[motif_edges[1]])
        np.minimum.at(first, motif_edges[1], first[motif_edges[0]])
        if (first == before).all():
            break
    inside = np.zeros(count, dtype=bool)
    inside[motif_edges.reshape(-1)] = True
    houses = np.full(count, -1, dtype=np.int64)
    houses[inside] = np.unique(first[inside], return_inverse=True)[1]
    return houses


def _download(target: Path) -> Path:
    from torch_geometric.datasets import BA2MotifDataset

    return download(target.name, f"{BA2MotifDataset.url}/{BA2MotifDataset.filename}", target)
