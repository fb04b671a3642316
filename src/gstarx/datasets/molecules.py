"""Molecules as graphs: atoms are nodes, bonds are edges. BBBP, BACE, and any CSV of SMILES."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric import __version__ as _pyg_version
from torch_geometric.data import Data
from tqdm import tqdm

from gstarx._internal.optional import require
from gstarx._internal.quoting import quoted
from gstarx.datasets.cache import cached_graphs
from gstarx.datasets.dataset import GraphDataset
from gstarx.datasets.labels import Labels, normal_label, read_labels
from gstarx.datasets.paper import TABLE_5, warn_if_unlike_the_paper
from gstarx.datasets.raw_files import download, find
from gstarx.datasets.splits import split_molecules
from gstarx.datasets.tables import (
    Columns,
    TableRow,
    UnreadableRow,
    WrongColumnsError,
    open_table,
    read_molecule,
    selected_rows,
)

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


def from_table(
    path: str | os.PathLike[str],
    *,
    smiles: str | None = None,
    label: str | None = None,
    name_column: str | None = None,
    task: str | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    split: str = "random",
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    salts: str = "keep",
    bond_features: bool = False,
    progress: bool = False,
) -> GraphDataset:
    """A dataset out of your own table of molecules.

    A row that cannot be read is skipped and listed in ``unreadable`` with its line, its name and
    the reason.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file with a header line, a ``.smi`` file (a SMILES and perhaps a name
        in each line), an ``.sdf`` or a ``.parquet`` file.
    smiles, name_column
        The columns of molecules and of their names; by default found by their usual names.
    label
        The column of labels, or several columns separated by commas. By default a column of a
        usual name such as ``label``; without one, the molecules have no labels.
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``; by default what
        the labels look like. Classes are whole numbers or words; sorted, they become the classes
        0, 1, ..., and the ``class_names``.
    name
        Name of the dataset; by default that of the file.
    delimiter
        What separates the columns of a CSV file; by default found out.
    split
        ``"random"``: 80/10/10 by a fixed seed, as in the paper. ``"scaffold"``: 80/10/10 with no
        Bemis–Murcko scaffold on two sides. Otherwise a column whose cells are ``train``, ``val`` or
        ``valid``, and ``test``.
    limit
        Read the first rows only, and look no further.
    sample
        Read so many rows, drawn at random by ``seed`` after the file was counted.
    salts
        ``"largest"`` keeps the largest part of a molecule that has several; ``"keep"`` keeps all.
    bond_features
        Whether graphs carry PyG's bond features as ``edge_attr``.
    progress
        Show a bar.

    Returns
    -------
    GraphDataset
        Graphs as :func:`molecule_graph` makes them, each with its ``name`` where it has one.

    Raises
    ------
    FileNotFoundError, ValueError
        When the file is missing, has no such columns, or no row can be read.

    Notes
    -----
    Needs RDKit: ``pip install 'gstarx[molecules]'``. Graphs are kept on disk, see
    :func:`gstarx.datasets.cache.cached_graphs`.
    """
    path = Path(path)
    if salts not in ("keep", "largest", "warn"):
        raise ValueError(f"salts must be one of 'keep', 'largest', 'warn' (got {salts!r})")
    by_column = split not in ("random", "scaffold")
    table = open_table(path, delimiter=delimiter)
    columns = table.columns(
        smiles=smiles, name=name_column, label=label, split=split if by_column else None
    )
    chosen = selected_rows(path, table, limit=limit, sample=sample, seed=seed)
    rows = list(tqdm(chosen, desc="reading", unit="row", disable=not progress))
    if not rows and not table.problems:
        raise ValueError(f"{path} holds no molecules")
    labels = None
    if columns.labels and rows:
        cells = [[row.cells[column] for column in columns.labels] for row in rows]
        labels = read_labels(path, columns.labels, cells, task)
    graphs, problems = _labeled_graphs(
        name or path.stem,
        rows,
        columns,
        labels,
        largest=salts == "largest",
        bond_features=bond_features,
        progress=progress,
    )
    problems = sorted([*table.problems, *problems], key=lambda row: row.line)
    if not graphs:
        raise ValueError(f"{path} holds no molecule that can be read: {problems[0]}")
    _warn(path, problems)
    if by_column:
        split_indices = _named_splits(path, split, [str(graph.pop("split")) for graph in graphs])
    else:
        split_indices = split_molecules([graph.smiles for graph in graphs], split)
    return GraphDataset(
        name or path.stem,
        graphs,
        0 if labels is None else len(labels.class_names),
        split_indices,
        source=str(path),
        unreadable=tuple(problems),
        class_names=() if labels is None else labels.class_names,
        task="classification" if labels is None else labels.task,
        target_names=() if labels is None else labels.target_names,
    )


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
    graph, _ = graph_or_reason(smiles, bond_features=bond_features)
    return graph


def graph_or_reason(smiles: str, *, bond_features: bool = False) -> tuple[Data | None, str]:
    """A molecule as :func:`molecule_graph` makes it, or ``None`` and why not."""
    chem = require("rdkit.Chem", extra="molecules")
    from torch_geometric.utils import from_rdmol

    molecule, reason = read_molecule(smiles)
    if molecule is None:
        return None, reason
    try:
        parsed = from_rdmol(molecule)
    except ValueError as error:
        return None, f"an atom or bond that PyG has no features for ({error})"
    symbol = chem.GetPeriodicTable().GetElementSymbol
    graph = Data(
        x=parsed.x.float(),
        edge_index=parsed.edge_index,
        smiles=smiles,
        atoms=[symbol(number) for number in parsed.x[:, 0].tolist()],
    )
    if bond_features:
        graph.edge_attr = parsed.edge_attr.float()
    return graph, ""


def largest_part(smiles: str) -> str:
    """The part of a molecule with the most heavy atoms, as SMILES; what cannot be read stays.

    >>> largest_part("CC(=O)[O-].[Na+]"), largest_part("CCO")
    ('CC(=O)[O-]', 'CCO')
    """
    molecule, _ = read_molecule(smiles) if "." in smiles else (None, "")
    if molecule is None:
        return smiles
    chem = require("rdkit.Chem", extra="molecules")
    parts = chem.GetMolFrags(molecule, asMols=True)
    best = max(parts, key=lambda part: (part.GetNumHeavyAtoms(), chem.MolToSmiles(part)))
    return str(chem.MolToSmiles(best))


def _moleculenet(
    about: GraphDataset, path: Path, columns: tuple[str, str], *, split: str, bond_features: bool
) -> GraphDataset:
    smiles, label = columns
    table = open_table(path, delimiter=",")
    try:
        known = table.columns(smiles=smiles, label=label)
    except WrongColumnsError as error:
        raise WrongColumnsError(f"this is not the file of {about.name}: {error}") from error
    rows = list(table.rows)
    if table.problems:  # of a file that is known, no row has a reason to be wrong
        raise ValueError(f"{path} {table.problems[0]}; the file may be cut short")
    for row in rows:
        if normal_label(row.cells[label]) not in ("0", "1"):
            raise ValueError(
                f"{path} line {row.line}: {label} must be 0 or 1 (got {quoted(row.cells[label])})"
            )
    if len(rows) < TABLE_5[about.name].graphs and not path.read_bytes().endswith(b"\n"):
        raise ValueError(f"{path} line {rows[-1].line}: the line has no end, the file is cut short")
    values: list[Any] = [torch.tensor([int(normal_label(row.cells[label]))]) for row in rows]
    graphs, problems = _labeled_graphs(
        about.name,
        rows,
        replace(known, name=None),
        Labels(about.task, values),
        bond_features=bond_features,
    )
    _LOG.info("%s: %d unreadable molecules", path, len(problems))
    return warn_if_unlike_the_paper(
        about.replace(
            graphs=tuple(graphs),
            split_indices=split_molecules([graph.smiles for graph in graphs], split),
            unreadable=tuple(problems),
        )
    )


def _labeled_graphs(
    name: str,
    rows: Sequence[TableRow],
    columns: Columns,
    labels: Labels | None,
    *,
    largest: bool = False,
    bond_features: bool,
    progress: bool = False,
) -> tuple[list[Data], list[UnreadableRow]]:
    """The graphs of rows, with their labels and names, and the rows that gave none."""
    written = [row.cells[columns.smiles] for row in rows]
    smiles = [largest_part(text) for text in written] if largest else written
    made = iter(_graphs(name, smiles, bond_features=bond_features, progress=progress))
    values = [None] * len(rows) if labels is None else labels.values
    graphs, problems = [], []
    following = next(made, None)
    for row, text, value in zip(rows, smiles, values, strict=True):
        own_name = row.cells[columns.name] if columns.name else ""
        reason = value if isinstance(value, str) else ""
        # equal SMILES are read alike, so what is missing shows where the two lists part
        if following is not None and following.smiles == text:
            graph, following = following, next(made, None)
        else:
            reason = graph_or_reason(text)[1]
        if reason:
            problems.append(UnreadableRow(row.line, text, reason, own_name or None))
            continue
        if isinstance(value, Tensor):
            graph.y = value
        if own_name:
            graph.name = own_name
        if columns.split:
            graph.split = row.cells[columns.split]
        graphs.append(graph)
    return graphs, problems


def _graphs(name: str, smiles: Sequence[str], *, bond_features: bool, progress: bool) -> list[Data]:
    """The molecules that can be read, in order, from disk where they were made before."""
    versions = [require("rdkit", extra="molecules").__version__, _pyg_version]

    def build() -> list[Data]:
        bar = tqdm(smiles, desc="molecules", unit="molecule", disable=not progress)
        made = [molecule_graph(text, bond_features=bond_features) for text in bar]
        return [graph for graph in made if graph is not None]

    options = {"rows": list(smiles), "bonds": bond_features, "with": versions}
    return cached_graphs(name, [], options, _VERSION, build)


def _named_splits(path: Path, column: str, cells: Sequence[str]) -> dict[str, list[int]]:
    usual = {"train": "train", "training": "train", "val": "val", "valid": "val"}
    usual |= {"validation": "val", "test": "test"}
    splits: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for at, cell in enumerate(cells):
        side = usual.get(cell.strip().lower())
        if side is None:
            raise ValueError(
                f"{path}: cells of the split column {quoted(column)} must be train, val or test "
                f"(got {quoted(cell)})"
            )
        splits[side].append(at)
    return splits


def _warn(path: Path, problems: Sequence[UnreadableRow]) -> None:
    if problems:
        lines = ", ".join(str(row.line) for row in problems[:20])
        _LOG.warning("%s: %d unreadable molecules, lines %s", path, len(problems), lines)


def _download(name: str, target: Path) -> Path:
    from torch_geometric.datasets import MoleculeNet

    return download(target.name, MoleculeNet.url.format(MoleculeNet.names[name][1]), target)
