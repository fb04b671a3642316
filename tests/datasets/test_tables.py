"""Tables of molecules in every format, and rows that are broken."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from gstarx.datasets import from_table, present_columns
from gstarx.datasets.tables import TableRow, UnreadableRow, open_table, selected_rows

Chem = pytest.importorskip("rdkit.Chem", reason="needs the molecules extra")

#: Names, SMILES and labels; the second cannot be read.
ROWS = [
    ("ethanol", "CCO", "0.5"),
    ("open ring", "C1CC", "1.5"),
    ("benzene", "c1ccccc1", "2.5"),
    ("aniline", "Nc1ccccc1", "-1.25"),
]
#: A record of an SDF whose atoms do not add up.
BROKEN = "broken\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\nnothing\nM  END\n$$$$\n"


def delimited(path: Path, delimiter: str) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["name", "smiles", "logP"])
        writer.writerows(ROWS)


def structures(path: Path) -> None:
    with path.open("w") as file:
        for name, smiles, label in ROWS:
            if name == "open ring":
                file.write(BROKEN.replace("broken", name))
                continue
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", name)
            block = Chem.MolToMolBlock(molecule)
            file.write(f"{block}>  <logP>\n{label}\n\n$$$$\n")


def parquet(path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs the runs extra")
    names = ("name", "smiles", "logP")
    columns = dict(zip(names, zip(*ROWS, strict=True), strict=True))
    columns["logP"] = tuple(map(float, columns["logP"]))
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "t.csv": lambda path: delimited(path, ","),
    "semicolons.csv": lambda path: delimited(path, ";"),
    "t.tsv": lambda path: delimited(path, "\t"),
    "t.sdf": structures,
    "t.parquet": parquet,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_molecules_names_and_labels(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    dataset = from_table(tmp_path / name, label="logP")
    assert dataset.task == "regression"
    assert dataset.target_names == ("logP",)
    assert [graph.name for graph in dataset] == ["ethanol", "benzene", "aniline"]
    assert [float(graph.y) for graph in dataset] == [0.5, 2.5, -1.25]
    assert [graph.num_nodes for graph in dataset] == [3, 6, 7]
    (row,) = dataset.unreadable
    assert row.name == "open ring"
    assert row.reason


def test_a_smiles_file_has_names_and_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.smi"
    path.write_text("".join(f"{smiles} {name}\n" for name, smiles, _ in ROWS))
    dataset = from_table(path)
    assert [graph.name for graph in dataset] == ["ethanol", "benzene", "aniline"]
    assert "y" not in dataset[0]
    assert str(dataset.unreadable[0]) == "line 2 (open ring): unclosed ring: 'C1CC'"


def endless_csv(path: Path) -> None:
    path.write_text("smiles,label\n" + "CCO,1,too many cells\n" * 5_000)


def endless_sdf(path: Path) -> None:
    path.write_text(BROKEN * 5_000)


@pytest.mark.parametrize(("name", "write"), [("t.csv", endless_csv), ("t.sdf", endless_sdf)])
def test_a_limit_counts_broken_rows_and_looks_no_further(
    name: str, write: Callable[[Path], None], tmp_path: Path
) -> None:
    write(tmp_path / name)
    table = open_table(tmp_path / name)
    selected = list(selected_rows(table, limit=7, sample=None, seed=0))
    assert len(selected) == 7
    assert all(isinstance(row, UnreadableRow) for row in selected)
    # the eighth row is the next one: nothing after the seventh has been read
    following = next(table.rows)
    assert isinstance(following, UnreadableRow)
    lines = [row.line for row in (*selected, following)]
    assert len({lines[at + 1] - lines[at] for at in range(7)}) == 1
    with pytest.raises(ValueError, match="holds no molecule that can be read"):
        from_table(tmp_path / name, limit=7)


def test_a_sample_is_drawn_from_all_rows_of_any_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{'C' * (at + 1)}|a,b;c" for at in range(40)]
    path.write_text("\n".join(["smiles|label", *rows]))
    drawn = [
        {row.cells["smiles"] for row in rows if isinstance(row, TableRow)}
        for rows in (
            selected_rows(
                open_table(path, delimiter="|"), delimiter="|", limit=None, sample=10, seed=seed
            )
            for seed in range(8)
        )
    ]
    assert {len(smiles) for smiles in drawn} == {10}
    # a row is missed by eight samples with a chance of 0.75 to the eighth
    assert len(set().union(*drawn)) > 30


def test_columns_are_used_only_if_all_are_present(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    delimited(path, ",")
    assert present_columns(path, ("logP",)) == "logP"
    assert present_columns(path, ("logP", "toxic")) is None
    assert present_columns(path, ()) is None
    assert present_columns(tmp_path / "none.csv", ("logP",)) is None
    assert present_columns(tmp_path, ("logP",)) is None


@pytest.mark.parametrize(
    ("cells", "task", "message"),
    [
        (["1", "1", "1.0", "1"], None, "needs at least two classes in 'logP'"),
        (["", "na", "?", "-"], "classification", "no row has a class in 'logP': no label"),
        (["a", "b", "c", "d"], "regression", "no row has a label for regression in logP"),
        (["a", "b", "c", "d"], "binary", "a binary label has two values"),
        (["2", "3", "5", "7"], "multilabel", "no row has a label for multilabel in logP"),
    ],
)
def test_labels_that_cannot_be_learned(
    cells: list[str], task: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    smiles = ("C", "CC", "CCC", "CCCC")
    rows = (f"{text},{cell}" for text, cell in zip(smiles, cells, strict=True))
    path.write_text("\n".join(["smiles,logP", *rows]))
    with pytest.raises(ValueError, match=message):
        from_table(path, label="logP", task=task)


def test_text_in_a_column_of_numbers_costs_its_row_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,logP\nC,1.5\nCC,about two\nCCC,\nCCCC,inf\nCCCCC,2\n")
    dataset = from_table(path, label="logP", task="regression")
    assert [float(graph.y) for graph in dataset] == [1.5, 2.0]
    assert [row.line for row in dataset.unreadable] == [3, 4, 5]
    assert "is a number (got 'about two')" in dataset.unreadable[0].reason


def test_a_target_that_was_not_measured_is_nan(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,a,b\nC,1,\nCC,0,1\nCCC,,\n")
    dataset = from_table(path, label="a,b")
    assert (dataset.task, dataset.target_names) == ("multilabel", ("a", "b"))
    assert dataset[0].y[0, 0] == 1
    assert math.isnan(dataset[0].y[0, 1])
    assert [row.line for row in dataset.unreadable] == [4]


def test_a_column_says_the_split(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("smiles,label,part\nC,1,test\nCC,0,train\nCCC,1,valid\nCCCC,0,train\n")
    dataset = from_table(path, split="part")
    assert dataset.split_indices == {"train": [1, 3], "val": [2], "test": [0]}
    path.write_text("smiles,label,part\nC,1,test\nCC,0,later\n")
    with pytest.raises(ValueError, match=r"must be train, val or test \(got 'later'\)"):
        from_table(path, split="part")
