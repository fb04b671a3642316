"""BBBP and BACE, the molecules of MoleculeNet that the paper uses."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gstarx._internal.quoting import quoted
from gstarx.datasets.dataset import GraphDataset
from gstarx.datasets.labels import Labels, normal_label
from gstarx.datasets.molecule_tables import labeled_graphs
from gstarx.datasets.paper import TABLE_5, warn_if_unlike_the_paper
from gstarx.datasets.raw_files import download, find
from gstarx.datasets.splits import split_molecules
from gstarx.datasets.tables import TableRow, WrongColumnsError, open_table

_LOG = logging.getLogger(__name__)


def load_bbbp(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """2,039 molecules, class 1 if it passes the blood–brain barrier (``BBBP/BBBP.csv``).

    RDKit cannot read eleven of the 2,050 rows; they are ``unreadable``. Nodes and options as for
    :func:`gstarx.datasets.from_table`.
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
        or _download("bbbp", root / "BBBP" / "BBBP.csv"),
        ("smiles", "p_np"),
        split=split,
        bond_features=bond_features,
    )


def load_bace(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """1,513 molecules, class 1 if it inhibits human β-secretase 1 (``BACE/bace.csv``).

    Nodes and options as for :func:`gstarx.datasets.from_table`.
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
        or _download("bace", root / "BACE" / "bace.csv"),
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


def _download(name: str, target: Path) -> Path:
    from torch_geometric.datasets import MoleculeNet

    return download(target.name, MoleculeNet.url.format(MoleculeNet.names[name][1]), target)
