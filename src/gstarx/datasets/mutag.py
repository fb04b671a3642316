"""MUTAG, from the text files of the TU collection."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.datasets.dataset import GraphDataset
from gstarx.datasets.paper import warn_if_unlike_the_paper
from gstarx.datasets.raw_files import integers, misfit, not_found, unpack
from gstarx.datasets.splits import random_split_indices

#: The atom that each of the seven MUTAG node features stands for.
MUTAG_ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
#: Orders of the kinds of bonds: aromatic, single, double, triple.
_ORDERS = (1.5, 1.0, 2.0, 3.0)
_FILES = {"A": 2, "graph_indicator": 1, "graph_labels": 1, "node_labels": 1}


def load_mutag(root: Path) -> GraphDataset:
    """188 nitroaromatic molecules, class 1 mutagenic (TU text files in ``MUTAG/raw``).

    Node features are the one-hot atom; edges run both ways, ordered by source and target. Each
    graph has ``atoms``, the symbols of its atoms, and, if their file exists, ``bonds``, the order
    of every edge (1.5 for aromatic ones), which networks do not see.
    """
    raw = root / "MUTAG" / "raw"
    if not (raw / "MUTAG_A.txt").is_file():
        _download(root)
    missing = [name for name in _FILES if not (raw / f"MUTAG_{name}.txt").is_file()]
    if missing:
        raise FileNotFoundError(f"{raw} lacks MUTAG_{missing[0]}.txt")
    read = {n: integers(raw / f"MUTAG_{n}.txt", columns=columns) for n, columns in _FILES.items()}
    _check(raw, read)
    owner, atoms = read["graph_indicator"][:, 0] - 1, read["node_labels"][:, 0]
    labels, bonds = read["graph_labels"][:, 0], read["A"] - 1
    orders = _bond_orders(raw / "MUTAG_edge_labels.txt", len(bonds))
    graphs = []
    for graph in range(len(labels)):
        nodes = np.flatnonzero(owner == graph)
        edges = np.flatnonzero(owner[bonds[:, 0]] == graph)
        edges = edges[np.lexsort((bonds[edges, 1], bonds[edges, 0]))]
        ends = bonds[edges] - nodes[0]
        known = {} if orders is None else {"bonds": orders[edges].tolist()}
        graphs.append(
            Data(
                x=torch.eye(len(MUTAG_ATOMS))[torch.from_numpy(atoms[nodes])],
                edge_index=torch.from_numpy(np.ascontiguousarray(ends.T)),
                y=torch.tensor([int(labels[graph] == 1)]),
                atoms=[MUTAG_ATOMS[atom] for atom in atoms[nodes]],
                **known,
            )
        )
    dataset = GraphDataset(
        "mutag",
        tuple(graphs),
        2,
        random_split_indices(len(graphs)),
        source="TU Dortmund graph collection; Debnath et al., J. Med. Chem. 34 (1991) 786-797",
        license="none stated",
        description="Aromatic and heteroaromatic nitro compounds; is it mutagenic on Salmonella?",
        class_names=("not mutagenic", "mutagenic"),
    )
    return warn_if_unlike_the_paper(dataset)


def _bond_orders(path: Path, bonds: int) -> NDArray[np.float64] | None:
    """The order of every bond, for pictures; networks do not see it. None without the file."""
    if not path.is_file():
        return None
    kinds = integers(path, columns=1)[:, 0]
    wrong = np.flatnonzero((kinds < 0) | (kinds >= len(_ORDERS)))
    if len(wrong):
        problem = f"kind of bond must be 0 to {len(_ORDERS) - 1} (got {kinds[wrong[0]]})"
        raise misfit(path, wrong[0], problem)
    if len(kinds) != bonds:
        raise ValueError(
            f"{path} does not fit together with the files beside it: it has {len(kinds)} lines "
            f"for {bonds} bonds"
        )
    return np.array(_ORDERS)[kinds]


def _check(raw: Path, read: dict[str, NDArray[np.int64]]) -> None:
    """Raise unless atoms are known and in order, and bonds go both ways within one molecule."""
    owner, kinds = read["graph_indicator"][:, 0], read["node_labels"][:, 0]
    labels, bonds = read["graph_labels"][:, 0], read["A"]
    paths = {name: raw / f"MUTAG_{name}.txt" for name in read}
    jumps = np.flatnonzero(~np.isin(np.diff(owner, prepend=0), (0, 1)) | (owner < 1))
    if len(jumps):
        got = owner[jumps[0]]
        raise misfit(paths["graph_indicator"], jumps[0], f"molecule {got} is out of order")
    counts = {
        "node_labels": (len(kinds), len(owner), "atoms"),
        "graph_labels": (len(labels), owner[-1], "molecules"),
    }
    for name, (lines, expected, noun) in counts.items():
        if lines != expected:
            raise ValueError(
                f"{paths[name]} does not fit together with the files beside it: "
                f"it has {lines} lines for {expected} {noun}"
            )
    unknown = np.flatnonzero((kinds < 0) | (kinds >= len(MUTAG_ATOMS)))
    if len(unknown):
        problem = f"kind of atom must be 0 to {len(MUTAG_ATOMS) - 1} (got {kinds[unknown[0]]})"
        raise misfit(paths["node_labels"], unknown[0], problem)
    unlabeled = np.flatnonzero(~np.isin(labels, (-1, 0, 1)))
    if len(unlabeled):
        problem = f"label must be 1, or -1 or 0 (got {labels[unlabeled[0]]})"
        raise misfit(paths["graph_labels"], unlabeled[0], problem)
    outside = np.flatnonzero(((bonds < 1) | (bonds > len(owner))).any(axis=1))
    if len(outside):
        problem = f"atoms are numbered 1 to {len(owner)} (got {bonds[outside[0]].tolist()})"
        raise misfit(paths["A"], outside[0], problem)
    across = np.flatnonzero(owner[bonds[:, 0] - 1] != owner[bonds[:, 1] - 1])
    if len(across):
        problem = f"atoms {bonds[across[0]].tolist()} belong to two molecules"
        raise misfit(paths["A"], across[0], problem)
    there, back = (bonds @ factors for factors in ([len(owner) + 1, 1], [1, len(owner) + 1]))
    single = np.flatnonzero(~np.isin(back, there))
    if len(single):
        problem = f"bond {bonds[single[0]].tolist()} has no reverse"
        raise misfit(paths["A"], single[0], problem)


def _download(root: Path) -> None:
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    raw = root / "MUTAG" / "raw"
    try:
        with TemporaryDirectory() as folder:
            packed = Path(download_url(f"{TUDataset.url}/MUTAG.zip", folder))
            # MUTAG_A.txt is written last: if it exists, nothing is downloaded again
            names = ["edge_labels", *reversed(_FILES)]
            unpack(packed, raw, [f"MUTAG_{name}.txt" for name in names])
    except Exception as error:
        raise not_found("MUTAG", raw / "MUTAG_A.txt", str(error)) from error
