"""Molecules as graphs: atoms are nodes, bonds are edges. BBBP, BACE, and any CSV of SMILES."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric import __version__ as _pyg_version
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx._internal.quoting import quoted
from gstarx.datasets.cache import cached_graphs
from gstarx.datasets.dataset import GraphDataset, UnreadableRow
from gstarx.datasets.paper import TABLE_5, warn_if_unlike_the_paper
from gstarx.datasets.raw_files import download, find
from gstarx.datasets.smiles_tables import (
    MoleculeRow,
    WrongColumnsError,
    class_names,
    normal_label,
    read_rows,
)
from gstarx.datasets.splits import split_molecules

_LOG = logging.getLogger(__name__)

#: Version of :func:`molecule_graph` for stored graphs.
_VERSION = 1


def load_bbbp(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """2,039 molecules, class 1 if it passes the blood–brain barrier (``BBBP/BBBP.csv``).

    RDKit cannot read eleven of the 2,050 rows; they are ``unreadable``. Nodes and options as for
    :func:`from_csv`.
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

    Nodes and options as for :func:`from_csv`.
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


def from_csv(
    path: str | os.PathLike[str],
    *,
    smiles: str = "smiles",
    label: str = "label",
    name: str | None = None,
    delimiter: str = ",",
    split: str = "random",
    bond_features: bool = False,
) -> GraphDataset:
    """A dataset from your own table of molecules and their classes.

    Parameters
    ----------
    path
        A CSV file in UTF-8 with a header line.
    smiles, label
        The columns that hold the SMILES and the class. Classes are whole numbers or words; sorted,
        they become the classes 0, 1, ..., and the ``class_names``.
    name
        Name of the dataset; by default that of the file.
    delimiter
        What separates the columns.
    split
        ``"random"``: 80/10/10 by a fixed seed, as in the paper. ``"scaffold"``: 80/10/10 with no
        Bemis–Murcko scaffold on two sides.
    bond_features
        Whether graphs carry PyG's bond features as ``edge_attr``.

    Returns
    -------
    GraphDataset
        Graphs as :func:`molecule_graph` makes them. What RDKit cannot read is left out, logged,
        and listed in ``unreadable``.

    Raises
    ------
    FileNotFoundError, ValueError
        When the file is missing, has no such columns, or has an invalid line, which the message
        names.

    Notes
    -----
    Needs RDKit: ``pip install 'gstarx[molecules]'``. Graphs are kept on disk, see
    :func:`gstarx.datasets.cache.cached_graphs`.
    """
    path = Path(path)
    rows = read_rows(path, smiles=smiles, label=label, delimiter=delimiter)
    names = class_names(path, rows)
    about = GraphDataset(name or path.stem, (), len(names), {}, source=str(path), class_names=names)
    labels = [names.index(normal_label(row.label)) for row in rows]
    return _filled(about, path, rows, labels, split=split, bond_features=bond_features)


def molecule_graph(smiles: str, *, bond_features: bool = False) -> Data | None:
    """One molecule as PyG's ``from_smiles`` has it, with features as floats.

    Parameters
    ----------
    smiles
        The molecule. Hydrogens are not nodes.
    bond_features
        Whether to keep PyG's bond features as ``edge_attr``.

    Returns
    -------
    Data or None
        ``x`` holds nine numbers for each atom: atomic number, chirality, degree, charge + 5,
        hydrogens, radical electrons, hybridization, aromatic, in a ring. Edges run both ways,
        ordered by source and target. ``atoms`` are the symbols. None if RDKit cannot read it.

    Examples
    --------
    >>> graph = molecule_graph("CC(=O)O")
    >>> graph.atoms, graph.x.shape
    (['C', 'C', 'O', 'O'], torch.Size([4, 9]))
    >>> molecule_graph("C(") is None
    True
    """
    chem = require("rdkit.Chem", extra="molecules")
    from torch_geometric.utils import from_smiles

    try:
        parsed = from_smiles(smiles)
    except ValueError:  # an atom whose features PyG has no number for
        return None
    if not parsed.num_nodes:
        return None
    symbol = chem.GetPeriodicTable().GetElementSymbol
    graph = Data(
        x=parsed.x.float(),
        edge_index=parsed.edge_index,
        smiles=smiles,
        atoms=[symbol(number) for number in parsed.x[:, 0].tolist()],
    )
    if bond_features:
        graph.edge_attr = parsed.edge_attr.float()
    return graph


def _moleculenet(
    about: GraphDataset, path: Path, columns: tuple[str, str], *, split: str, bond_features: bool
) -> GraphDataset:
    smiles, label = columns
    try:
        rows = read_rows(path, smiles=smiles, label=label)
    except WrongColumnsError as error:
        raise WrongColumnsError(f"this is not the file of {about.name}: {error}") from error
    for row in rows:
        if normal_label(row.label) not in ("0", "1"):
            raise ValueError(
                f"{path} line {row.line}: {label} must be 0 or 1 (got {quoted(row.label)})"
            )
    if len(rows) < TABLE_5[about.name].graphs and not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} line {rows[-1].line}: the line has no end, the file is cut short")
    labels = [int(normal_label(row.label)) for row in rows]
    return warn_if_unlike_the_paper(
        _filled(about, path, rows, labels, split=split, bond_features=bond_features)
    )


def _filled(
    about: GraphDataset,
    path: Path,
    rows: Sequence[MoleculeRow],
    labels: Sequence[int],
    *,
    split: str,
    bond_features: bool,
) -> GraphDataset:
    """The dataset that ``about`` describes, with its graphs."""
    versions = [require("rdkit", extra="molecules").__version__, _pyg_version]

    def build() -> list[Data]:
        made = [molecule_graph(row.smiles, bond_features=bond_features) for row in rows]
        return [graph for graph in made if graph is not None]

    options = {"rows": [row.smiles for row in rows], "bonds": bond_features, "with": versions}
    graphs = cached_graphs(about.name, [path], options, _VERSION, build)
    unreadable: list[UnreadableRow] = []
    for at, (row, label) in enumerate(zip(rows, labels, strict=True)):
        # Equal SMILES are read alike, so a row is missing where the two lists differ.
        position = at - len(unreadable)
        if position < len(graphs) and graphs[position].smiles == row.smiles:
            graphs[position].y = torch.tensor([label])
        else:
            unreadable.append(UnreadableRow(row.line, row.smiles))
    if not graphs:
        raise ValueError(f"{path} holds no molecule that RDKit can read")
    if unreadable:
        lines = ", ".join(str(row.line) for row in unreadable[:20])
        level = logging.INFO if about.name in TABLE_5 else logging.WARNING  # the paper's are known
        _LOG.log(level, "%s: %d unreadable molecules, lines %s", path, len(unreadable), lines)
    return about.replace(
        graphs=tuple(graphs),
        split_indices=split_molecules([graph.smiles for graph in graphs], split),
        unreadable=tuple(unreadable),
    )


def _download(name: str, target: Path) -> Path:
    from torch_geometric.datasets import MoleculeNet

    return download(target.name, MoleculeNet.url.format(MoleculeNet.names[name][1]), target)
