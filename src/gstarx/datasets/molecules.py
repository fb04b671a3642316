"""Molecules as graphs: atoms are nodes, bonds are edges."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.datasets.collection import GraphDataset
from gstarx.datasets.splits import random_split_indices

#: Atom behind each of the seven MUTAG node features.
MUTAG_ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
_MUTAG_FILES = ("A", "graph_indicator", "graph_labels", "node_labels")


def load_mutag(root: Path) -> GraphDataset:
    """188 nitroaromatic molecules, class 1 mutagenic (TU text files in ``MUTAG/raw``).

    Node features are the one-hot atom; edges run both ways, ordered by source and target.
    """
    raw = root / "MUTAG" / "raw"
    if not (raw / "MUTAG_A.txt").is_file():
        _download_mutag(root)
    missing = [name for name in _MUTAG_FILES if not (raw / f"MUTAG_{name}.txt").is_file()]
    if missing:
        raise FileNotFoundError(f"{raw} lacks MUTAG_{missing[0]}.txt")
    read = {n: _integers(raw / f"MUTAG_{n}.txt") for n in _MUTAG_FILES}
    columns = {name: table.shape[1] for name, table in read.items()}
    if columns != {name: 2 if name == "A" else 1 for name in _MUTAG_FILES}:
        raise ValueError(f"the files in {raw} do not fit together (got columns {columns})")
    owner = read["graph_indicator"][:, 0] - 1
    atoms = read["node_labels"][:, 0]
    labels = read["graph_labels"][:, 0]
    bonds = read["A"] - 1
    if not _fit_together(owner, atoms, labels, bonds):
        raise ValueError(f"the files in {raw} do not fit together")
    graphs = []
    for graph in range(len(labels)):
        nodes = np.flatnonzero(owner == graph)
        ends = bonds[owner[bonds[:, 0]] == graph] - nodes[0]
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        graphs.append(
            Data(
                x=torch.eye(len(MUTAG_ATOMS))[torch.from_numpy(atoms[nodes])],
                edge_index=torch.from_numpy(np.ascontiguousarray(ends.T)),
                y=torch.tensor([int(labels[graph] == 1)]),
            )
        )
    return GraphDataset("mutag", tuple(graphs), 2, random_split_indices(len(graphs)))


def _fit_together(
    owner: NDArray[np.int64],
    atoms: NDArray[np.int64],
    labels: NDArray[np.int64],
    bonds: NDArray[np.int64],
) -> bool:
    """Whether every atom is of a known kind, and every bond between two of one molecule."""
    in_order = owner[0] == 0 and set(np.diff(owner).tolist()) <= {0, 1}
    known = len(atoms) == len(owner) and set(atoms.tolist()) <= set(range(len(MUTAG_ATOMS)))
    if not in_order or not known or owner[-1] + 1 != len(labels):
        return False
    inside = bonds.min() >= 0 and bonds.max() < len(owner)
    return bool(inside and (owner[bonds[:, 0]] == owner[bonds[:, 1]]).all())


def _integers(path: Path) -> NDArray[np.int64]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of an empty file
            return np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    except (OSError, ValueError, UserWarning) as error:
        raise ValueError(f"{path} is not a readable table of integers: {error}") from error


def _download_mutag(root: Path) -> None:
    from torch_geometric.datasets import TUDataset

    try:
        TUDataset(str(root), "MUTAG")
    except Exception as error:
        raise FileNotFoundError(
            f"MUTAG is not in {root / 'MUTAG' / 'raw'} and could not be downloaded ({error}); "
            "put its files there, or pass root=... or set GSTARX_DATA to where they are"
        ) from error
