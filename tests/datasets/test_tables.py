"""Tables of molecules in every format, and rows that are broken."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gstarx.datasets import load_source
from gstarx.datasets.dataset import UnreadableRow
from gstarx.registry import DatasetSource
from gstarx_bench.datasets import from_table, present_columns
from gstarx_bench.datasets.tables import TableError, TableRow, open_table, selected_rows

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


def test_labels_that_cannot_be_learned(tmp_path: Path) -> None:
    for cells, task, message in (
        (["1", "1", "1.0", "1"], None, "needs at least two classes in 'logP'"),
        (["", "na", "?", "-"], "classification", "no row has a class in 'logP': no label"),
        (["a", "b", "c", "d"], "regression", "no row has a label for regression in logP"),
        (["a", "b", "c", "d"], "binary", "a binary label has two values"),
        (["2", "3", "5", "7"], "multilabel", "no row has a label for multilabel in logP"),
    ):
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


def test_usual_words_are_one_class_however_they_are_written(tmp_path: Path) -> None:
    table = tmp_path / "words.csv"
    table.write_text(
        "smiles,active\n"
        + "".join(
            f"CC{'C' * at},{word}\n"
            for at, word in enumerate(["yes", "no", "Yes", "NO", "YES ", "no"])
        )
    )
    data = from_table(table, label="active")
    assert data.class_names == ("no", "yes")
    assert [int(graph.y) for graph in data] == [1, 0, 1, 0, 1, 0]
    # of other words the case may matter
    table.write_text("smiles,metal\nCC,Co\nCCC,CO\n")
    with pytest.warns(UserWarning, match=r"'metal' .* differ only in case \('CO' and 'Co'\)"):
        assert from_table(table, label="metal").class_names == ("CO", "Co")


def test_usual_words_of_other_languages_are_one_class(tmp_path: Path) -> None:
    for positive, negative in (
        ("Ja", "Nein"),
        ("Wahr", "FALSCH"),
        ("oui", "Non"),
        ("Sí", "no"),
        ("Aktiv", "inaktiv"),
    ):
        table = tmp_path / "worte.csv"
        forms = [
            form(word) for form in (str, str.lower, str.upper) for word in (positive, negative)
        ]
        rows = [f"C{'C' * at};{word}" for at, word in enumerate(forms)]
        table.write_text("\n".join(["smiles;Aktiv", *rows]), encoding="utf-8")
        data = from_table(table, label="Aktiv")
        assert set(data.class_names) == {positive.lower(), negative.lower()}
        assert [data.class_names[int(graph.y)] for graph in data] == [
            word.lower() for word in forms
        ]


def known(table: Path, classes: tuple[str, ...], **more: Any) -> list[int | float | None]:
    """The labels that a network with these classes finds in a table."""
    source = DatasetSource(file=str(table), class_names=classes, split="none", **more)
    return [None if graph.get("y") is None else graph.y.item() for graph in load_source(source)]


def test_classes_of_a_network_are_found_however_they_are_written(tmp_path: Path) -> None:
    table = tmp_path / "later.csv"
    words = ["NEIN", "nein", "Ja", "JA", ""]
    rows = [f"C{'C' * at};{word}" for at, word in enumerate(words)]
    table.write_text("\n".join(["smiles;Aktiv", *rows]))
    for classes in (("Ja", "Nein"), ("ja", "nein")):
        assert known(table, classes, label="Aktiv") == [1, 1, 0, 0, None]
    # a column that nobody named and that holds no class is about something else
    table.write_text("smiles;target\nC;kinase\nCC;GPCR\n")
    assert known(table, ("ja", "nein")) == [None, None]
    with pytest.warns(UserWarning, match="in target of 2 of 2 rows"):
        assert known(table, ("ja", "nein"), label="target") == [None, None]
    table.write_text("\n".join(["smiles;Aktiv", *rows]))
    # a network that told words apart by their case still does
    with pytest.warns(UserWarning, match=r"in Aktiv of 2 of 5 rows \(such as 'NEIN'; its classes"):
        assert known(table, ("JA", "Ja", "Nein", "ja", "NeIn"), label="Aktiv") == [
            *(None, None, 1, 0, None)
        ]
    table.write_text("\n".join(["smiles;Aktiv", *rows, "CO;toxisch", "CN;unklar"]))
    with pytest.warns(UserWarning, match="2 of 7 rows .*'toxisch'; its classes: ja, nein"):
        assert known(table, ("ja", "nein"), label="Aktiv")[-2:] == [None, None]


def test_decimal_commas_are_numbers_unless_commas_separate_cells(tmp_path: Path) -> None:
    table = tmp_path / "werte.csv"
    table.write_text("smiles;pKi (Messung)\nC;6,32\nCC;7\nCCC;\nCCCC;-0,5\n")
    said = r"in pKi \(Messung\) are read as decimal commas \('6,32' as 6.32\)"
    with pytest.warns(UserWarning, match=said) as warned:
        data = from_table(table, label="pKi (Messung)")
    assert len(warned) == 1
    assert (data.task, data.target_names) == ("regression", ("pKi (Messung)",))
    assert [float(graph.y) for graph in data] == pytest.approx([6.32, 7, -0.5])
    with pytest.warns(UserWarning, match=said):
        labels = known(table, (), label="pKi (Messung)", task="regression")
    assert labels == pytest.approx([6.32, 7, None, -0.5])
    # beside a number with a point, and in cells that commas separate, they may be thousands
    table.write_text("smiles;y\nC;1,234\nCC;2.5\n")
    assert [row.line for row in from_table(table, task="regression").unreadable] == [2]
    table.write_text('smiles,y\nC,"1,234"\nCC,2\n')
    assert [row.line for row in from_table(table, task="regression").unreadable] == [2]


def test_nearly_as_many_classes_as_rows_are_an_error(tmp_path: Path) -> None:
    table = tmp_path / "werte.csv"
    rows = [f'C{"C" * at},"{at},5",x' for at in range(40)]
    table.write_text("\n".join(["smiles,pKi,note", *rows]))
    said = "'pKi' has 40 different values in 40 rows, .*--task regression.*decimal commas.*smiles, "
    with pytest.raises(ValueError, match=said):
        from_table(table, label="pKi")


def test_a_class_of_one_row_among_many_is_warned_of(tmp_path: Path) -> None:
    table = tmp_path / "words.csv"
    rows = [f"C{'C' * (at % 7)},{('yes', 'no')[at % 2]}" for at in range(30)]
    table.write_text("\n".join(["smiles,active", *rows, "CO,maybe"]) + "\n")
    with pytest.warns(UserWarning, match="'active' has 3 classes, some .*'maybe' 1; .* one 15"):
        assert from_table(table, label="active").class_names == ("maybe", "no", "yes")
    # two classes may be of any size
    table.write_text("\n".join(["smiles,active", *rows[::2], "CO,no"]) + "\n")
    assert from_table(table, label="active").class_names == ("no", "yes")


@pytest.mark.parametrize("suffix", [".csv", ".smi", ".sdf"])
def test_texts_are_read_in_their_encoding(tmp_path: Path, suffix: str) -> None:
    for encoding in (
        "utf-8",
        "utf-8-sig",
        "utf-16",
        "latin-1",
        "cp1252",
    ):
        names = (
            ["Caféine", "Äthanol rein"] if encoding == "latin-1" else ["Caféine", "Äthanol – rein"]
        )
        block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")).partition("\n")[2]
        texts = {
            ".csv": "name;smiles;label\n" + "".join(f"{name};CCO;1\n" for name in names),
            ".smi": "".join(f"CCO {name}\n" for name in names),
            ".sdf": "".join(f"{name}\n{block}$$$$\n" for name in names),
        }
        path = tmp_path / f"own{suffix}"
        path.write_bytes(texts[suffix].encode(encoding))
        for named in (None, encoding):
            guessed = named is None and encoding in ("latin-1", "cp1252")
            said = (
                pytest.warns(UserWarning, match="is read as cp1252") if guessed else nullcontext()
            )
            with said:
                table = open_table(path, encoding=named)
                assert [row.cells["name"] for row in table.rows] == names  # type: ignore[union-attr]


def test_bytes_that_windows_does_not_have_are_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(b"name,smiles\n\x81\xe9,C\n")
    with pytest.warns(UserWarning, match=r"line 2 .* byte 0x81\): the file is read as latin-1"):
        (row,) = open_table(path).rows
    assert row.cells["name"] == "\x81é"  # type: ignore[union-attr]


def test_an_encoding_must_be_one_of_text(tmp_path: Path) -> None:
    for wrong in (
        "latin-15½",
        "hex",
        "rot13",
    ):
        path = tmp_path / "own.csv"
        path.write_text("smiles\nC\n")
        with pytest.raises(TableError, match=r"such as 'latin-1', 'cp1252' or 'utf-16' \(got"):
            open_table(path, encoding=wrong)
        path.write_bytes(b"smiles\nC\xe9\n")
        with pytest.raises(TableError, match="is not a text in ascii"):
            list(open_table(path, encoding="ascii").rows)


def test_a_workbook_is_a_table(tmp_path: Path) -> None:
    excel = pytest.importorskip("openpyxl")
    book = excel.Workbook()
    sheet = book.active
    for row in ([], ["ID", "SMILES", "active"], ["Caféine", "CN", 1.0], [], [7, "CCO", 0]):
        sheet.append(row)
    book.create_sheet("other").append(["x"])
    path = tmp_path / "own.xlsx"
    book.save(path)
    dataset = from_table(path)
    assert [(graph.name, graph.smiles, int(graph.y)) for graph in dataset] == [
        ("Caféine", "CN", 1),
        ("7", "CCO", 0),
    ]
    assert dataset.class_names == ("0", "1")
    path.write_bytes(b"no workbook")
    with pytest.raises(TableError, match="is no readable Excel workbook"):
        open_table(path)


def test_a_workbook_without_its_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "own.xlsx").write_bytes(b"")
    with pytest.raises(ImportError, match=r"needs openpyxl: pip install 'gstarx\[excel\]'"):
        open_table(tmp_path / "own.xlsx")
