"""A dataset out of the user's own table of molecules."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric import __version__ as _pyg_version
from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx._internal.progress import tqdm
from gstarx.datasets import (
    MOLECULE_FEATURES,
    GraphDataset,
    UnreadableRow,
    graph_or_reason,
    largest_part,
    split_molecules,
)
from gstarx.registry import DatasetSource
from gstarx_bench.datasets.cache import cached_graphs
from gstarx_bench.datasets.labels import Labels, read_known_labels, read_labels
from gstarx_bench.datasets.tables import Columns, Table, TableRow, open_table, selected_rows

_LOG = logging.getLogger(__name__)

#: Version of the graphs for stored files.
_VERSION = 2


def from_table(
    path: str | os.PathLike[str],
    *,
    smiles: str | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    progress: bool = False,
    **options: Any,
) -> GraphDataset:
    """A dataset out of your own table of molecules.

    A row that cannot be read is skipped and listed in ``unreadable`` with its line, its name and
    the reason. Classes are whole numbers or words; sorted, they become the classes 0, 1, ..., and
    the ``class_names``.

    Parameters
    ----------
    path
        A ``.csv`` or ``.tsv`` file with a header line, a ``.smi`` file (a SMILES and perhaps a name
        in each line), an ``.sdf``, ``.parquet`` or ``.xlsx`` file.
    smiles
        The column of molecules; by default found by its usual names.
    name
        Name of the dataset; by default that of the file.
    delimiter
        The separator between the columns of a CSV file; detected by default.
    progress
        Show a bar.
    **options
        ``name_column``, ``label``, ``task``, ``split``, ``limit``, ``sample``, ``seed``, ``salts``,
        ``features`` and ``encoding``, as for :class:`gstarx.registry.DatasetSource`.

    Returns
    -------
    GraphDataset
        Graphs as :func:`smiles_graph` makes them, each with its ``name`` where it has one.

    Raises
    ------
    FileNotFoundError, ValueError
        When the file is missing, has no such columns, or no row can be read.

    Notes
    -----
    Needs RDKit: ``pip install 'gstarx[molecules]'``. Graphs are kept on disk, see
    :func:`gstarx_bench.datasets.cache.cached_graphs`.
    """
    source = DatasetSource(file=os.fspath(path), smiles_column=smiles, **options)
    dataset = read_table(source, name=name, delimiter=delimiter, progress=progress)
    if dataset.unreadable:
        lines = ", ".join(str(row.line) for row in dataset.unreadable[:20])
        _LOG.warning("%s: %d unreadable molecules, lines %s", path, len(dataset.unreadable), lines)
    return dataset


def read_table(
    source: DatasetSource,
    *,
    name: str | None = None,
    delimiter: str | None = None,
    progress: bool = False,
) -> GraphDataset:
    """The dataset of a table; nothing is logged about rows that cannot be read."""
    assert source.file is not None
    path = Path(source.file)
    name = source.title if name is None else name
    one_of(source.salts, ("keep", "largest", "warn"), name="salts")
    one_of(source.features, MOLECULE_FEATURES, name="features")
    by_column = source.split not in ("none", "random", "scaffold")
    table = open_table(path, delimiter=delimiter, encoding=source.encoding)
    columns = table.columns(
        smiles=source.smiles_column,
        name=source.name_column,
        label=source.label,
        split=source.split if by_column else None,
    )
    selection = selected_rows(
        table,
        delimiter=delimiter,
        encoding=source.encoding,
        limit=source.limit,
        sample=source.sample,
        seed=source.seed,
    )
    read = list(tqdm(selection, desc="reading", unit="row", disable=not progress))
    if not read:
        raise ValueError(f"{path} holds no molecules")
    rows = [row for row in read if isinstance(row, TableRow)]
    broken = [row for row in read if not isinstance(row, TableRow)]
    labels = _labels(table, source, columns, rows)
    graphs, problems = labeled_graphs(
        name,
        rows,
        columns,
        labels,
        optional=source.class_names is not None,
        largest=source.salts == "largest",
        features=source.features,
        progress=progress,
    )
    problems = sorted([*broken, *problems], key=lambda row: row.line)
    if not graphs:
        raise ValueError(f"{path} holds no molecule that can be read: {problems[0]}")
    if by_column:
        cells_of_split = [str(graph.pop("split")) for graph in graphs]
        split_indices = _named_splits(path, source.split, cells_of_split)
    else:
        split_indices = split_molecules([graph.smiles for graph in graphs], source.split)
    return GraphDataset(
        name,
        graphs,
        0 if labels is None else len(labels.class_names),
        split_indices,
        source=str(path),
        unreadable=tuple(problems),
        class_names=() if labels is None else labels.class_names,
        task="classification" if labels is None else labels.task,
        target_names=() if labels is None else labels.target_names,
    )


def _labels(
    table: Table, source: DatasetSource, columns: Columns, rows: Sequence[TableRow]
) -> Labels | None:
    """The labels of all rows, if the table has a column of them."""
    if not columns.labels or not rows:
        return None
    cells = [[row.cells[column] for column in columns.labels] for row in rows]
    if source.class_names is None:
        return read_labels(table, columns.labels, cells, source.task)
    named = source.label is not None
    known = source.class_names
    return read_known_labels(table, columns.labels, cells, source.task, known, named=named)


def labeled_graphs(
    name: str,
    rows: Sequence[TableRow],
    columns: Columns,
    labels: Labels | None,
    *,
    optional: bool = False,
    largest: bool = False,
    features: str,
    progress: bool = False,
) -> tuple[list[Data], list[UnreadableRow]]:
    """The graphs of rows, with their labels and names, and the rows that gave none.

    A row without a proper label is such a row unless labels are ``optional``.
    """
    written = [row.cells[columns.smiles] for row in rows]
    smiles = [largest_part(text) for text in written] if largest else written
    made = iter(_graphs(name, smiles, features=features, progress=progress))
    values = [None] * len(rows) if labels is None else labels.values
    graphs, problems = [], []
    following = next(made, None)
    for row, text, value in zip(rows, smiles, values, strict=True):
        own_name = row.cells[columns.name] if columns.name else ""
        reason = value if isinstance(value, str) and not optional else ""
        # equal SMILES are read alike, so what is missing shows where the two lists part
        if following is not None and following.smiles == text:
            graph, following = following, next(made, None)
        else:
            reason = graph_or_reason(text, features)[1]
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


def _graphs(name: str, smiles: Sequence[str], *, features: str, progress: bool) -> list[Data]:
    """The molecules that can be read, in order, from disk where they were made before."""
    versions = [require("rdkit", extra="molecules").__version__, _pyg_version]

    def build() -> list[Data]:
        bar = tqdm(smiles, desc="molecules", unit="molecule", disable=not progress)
        graphs = [graph_or_reason(text, features)[0] for text in bar]
        return [graph for graph in graphs if graph is not None]

    options = {"rows": list(smiles), "features": features, "with": versions}
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
