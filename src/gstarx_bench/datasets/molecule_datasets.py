"""The paper's molecules: MUTAG of the TU collection, and BBBP and BACE of MoleculeNet."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.messages import quoted
from gstarx.datasets import MUTAG_ATOMS, GraphDataset, random_split_indices, split_molecules
from gstarx_bench.datasets.labels import Labels, normal_label
from gstarx_bench.datasets.molecule_tables import labeled_graphs
from gstarx_bench.datasets.raw_files import (
    TABLE_5,
    download,
    find,
    integers,
    misfit,
    not_found,
    unpack,
    warn_if_unlike_the_paper,
)
from gstarx_bench.datasets.tables import TableRow, WrongColumnsError, open_table

_LOG = logging.getLogger(__name__)
#: Orders of the kinds of bonds: aromatic, single, double, triple.
_BOND_ORDERS = (1.5, 1.0, 2.0, 3.0)
_MUTAG_FILES = {"A": 2, "graph_indicator": 1, "graph_labels": 1, "node_labels": 1}


def load_bbbp(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """2,039 molecules, class 1 if it passes the blood–brain barrier (``BBBP/BBBP.csv``).

    RDKit cannot read eleven of the 2,050 rows; they are ``unreadable``. Nodes and options as for
    :func:`gstarx_bench.datasets.from_table`.
    """
    return _moleculenet(
        GraphDataset(
            "bbbp",
            (),
            2,
            {},
            source="MoleculeNet; Martins et al., J. Chem. Inf. Model. 52 (2012) 1686-1697",
            license="MoleculeNet states none for this file; its code is under the MIT license",
            description="Drug-like molecules; does it pass the blood-brain barrier?",
            class_names=("does not pass", "passes"),
        ),
        find(root, ["BBBP/BBBP.csv", "BBBP/raw/BBBP.csv", "bbbp/raw/BBBP.csv"])
        or _download_moleculenet("bbbp", root / "BBBP" / "BBBP.csv"),
        ("smiles", "p_np"),
        split=split,
        bond_features=bond_features,
    )


def load_bace(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """1,513 molecules, class 1 if it inhibits human β-secretase 1 (``BACE/bace.csv``).

    Nodes and options as for :func:`gstarx_bench.datasets.from_table`.
    """
    return _moleculenet(
        GraphDataset(
            "bace",
            (),
            2,
            {},
            source="MoleculeNet; Subramanian et al., J. Chem. Inf. Model. 56 (2016) 1936-1949",
            license="CC0 as published with AttentiveFP",
            description="Candidate drugs; does it inhibit human beta-secretase 1?",
            class_names=("does not inhibit", "inhibits"),
        ),
        find(root, ["BACE/bace.csv", "BACE/raw/bace.csv", "bace/raw/bace.csv"])
        or _download_moleculenet("bace", root / "BACE" / "bace.csv"),
        ("mol", "Class"),
        split=split,
        bond_features=bond_features,
    )


def _moleculenet(
    about: GraphDataset, path: Path, columns: tuple[str, str], *, split: str, bond_features: bool
) -> GraphDataset:
    smiles, label = columns
    table = open_table(path, delimiter=",")
    try:
        known = table.columns(smiles=smiles, label=label)
    except WrongColumnsError as error:
        raise WrongColumnsError(f"this is not the file of {about.name}: {error}") from error
    rows = []
    for row in table.rows:
        if not isinstance(row, TableRow):  # no row of a file that is known has a reason to be wrong
            raise ValueError(f"{path} {row}; the file may be cut short")
        rows.append(row)
        if normal_label(row.cells[label]) not in ("0", "1"):
            raise ValueError(
                f"{path} line {row.line}: {label} must be 0 or 1 (got {quoted(row.cells[label])})"
            )
    if len(rows) < TABLE_5[about.name].graphs and not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} line {rows[-1].line}: the line has no end, the file is cut short")
    values: list[Any] = [torch.tensor([int(normal_label(row.cells[label]))]) for row in rows]
    graphs, problems = labeled_graphs(
        about.name,
        rows,
        replace(known, name=None),
        Labels(about.task, values),
        features="molecule+bonds" if bond_features else "molecule",
    )
    _LOG.info("%s: %d unreadable molecules", path, len(problems))
    return warn_if_unlike_the_paper(
        about.replace(
            graphs=tuple(graphs),
            split_indices=split_molecules([graph.smiles for graph in graphs], split),
            unreadable=tuple(problems),
        )
    )


def _download_moleculenet(name: str, target: Path) -> Path:
    from torch_geometric.datasets import MoleculeNet

    return download(target.name, MoleculeNet.url.format(MoleculeNet.names[name][1]), target)


def load_mutag(root: Path) -> GraphDataset:
    """188 nitroaromatic molecules, class 1 mutagenic (TU text files in ``MUTAG/raw``).

    Node features are the one-hot atom; edges run both ways, ordered by source and target. Each
    graph has ``atoms``, the symbols of its atoms, and, if their file exists, ``bonds``, the order
    of every edge (1.5 for aromatic ones), which networks do not see.
    """
    raw = root / "MUTAG" / "raw"
    if not (raw / "MUTAG_A.txt").is_file():
        _download_mutag(root)
    missing = [name for name in _MUTAG_FILES if not (raw / f"MUTAG_{name}.txt").is_file()]
    if missing:
        raise FileNotFoundError(f"{raw} lacks MUTAG_{missing[0]}.txt")
    read = {
        n: integers(raw / f"MUTAG_{n}.txt", columns=columns) for n, columns in _MUTAG_FILES.items()
    }
    _check_mutag(raw, read)
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
    wrong = np.flatnonzero((kinds < 0) | (kinds >= len(_BOND_ORDERS)))
    if len(wrong):
        problem = f"kind of bond must be 0 to {len(_BOND_ORDERS) - 1} (got {kinds[wrong[0]]})"
        raise misfit(path, wrong[0], problem)
    if len(kinds) != bonds:
        raise ValueError(
            f"{path} does not fit together with the files beside it: it has {len(kinds)} lines "
            f"for {bonds} bonds"
        )
    return np.array(_BOND_ORDERS)[kinds]


def _check_mutag(raw: Path, read: dict[str, NDArray[np.int64]]) -> None:
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


def _download_mutag(root: Path) -> None:
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    raw = root / "MUTAG" / "raw"
    try:
        with TemporaryDirectory() as folder:
            packed = Path(download_url(f"{TUDataset.url}/MUTAG.zip", folder))
            # MUTAG_A.txt is written last: if it exists, nothing is downloaded again
            names = ["edge_labels", *reversed(_MUTAG_FILES)]
            unpack(packed, raw, [f"MUTAG_{name}.txt" for name in names])
    except Exception as error:
        raise not_found("MUTAG", raw / "MUTAG_A.txt", str(error)) from error
