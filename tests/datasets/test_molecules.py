"""Molecules from tables of SMILES: the paper's and one's own."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx.datasets import GraphDataset, load
from gstarx.datasets.dataset import UnreadableRow, scaffold_split_indices
from gstarx.datasets.molecules import smiles_graph
from gstarx_bench.datasets import from_table
from gstarx_bench.datasets.raw_files import TABLE_5, UnlikeThePaperWarning
from gstarx_bench.datasets.tables import WrongColumnsError
from tests.shared import DATA

pytest.importorskip("rdkit", reason="needs the molecules extra")

NAMES = {"bbbp": Path("BBBP", "BBBP.csv"), "bace": Path("BACE", "bace.csv")}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GSTARX_CACHE", str(tmp_path_factory.mktemp("processed")))
        yield


def real(name: str, **options: Any) -> GraphDataset:
    if not (DATA / NAMES[name]).is_file():
        pytest.skip(f"{NAMES[name]} is not in {DATA}")
    return load(name, DATA, **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    rows = ["CCO,1", "c1ccccc1O,0", "not a molecule,1", "C[N+](=O)[O-],0", "CCO,0", "C(C,1", "O,1"]
    path.write_text("smiles,label\n" + "\n".join(rows) + "\n")
    return path


def test_a_molecule() -> None:
    graph = smiles_graph("CC(=O)[O-]", bond_features=True)
    assert graph.x.dtype == torch.float
    # atomic number, chirality, degree, charge + 5, hydrogens, radicals, hybridisation, rings
    assert graph.x.tolist() == [
        [6, 0, 4, 5, 3, 0, 4, 0, 0],
        [6, 0, 3, 5, 0, 0, 3, 0, 0],
        [8, 0, 1, 5, 0, 0, 3, 0, 0],
        [8, 0, 1, 4, 0, 0, 3, 0, 0],
    ]
    assert graph.edge_index.tolist() == [[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]]
    assert graph.atoms == ["C", "C", "O", "O"]
    assert graph.smiles == "CC(=O)[O-]"
    assert graph.edge_attr.shape == (6, 3)
    single = smiles_graph("[Na+]")
    assert single.edge_index.shape == (2, 0)
    assert single.atoms == ["Na"]
    assert "edge_attr" not in single


def test_what_is_no_molecule() -> None:
    for smiles in ("", "nonsense", "c1ccccc", "C(C)(C)(C)(C)C"):
        with pytest.raises(ValueError, match=re.escape(repr(smiles))):
            smiles_graph(smiles)


def test_a_table_of_ones_own(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        dataset = from_table(table)
    assert dataset.name == "mine"
    assert dataset.source == str(table)
    assert dataset.class_names == ("0", "1")
    assert [graph.smiles for graph in dataset] == ["CCO", "c1ccccc1O", "C[N+](=O)[O-]", "CCO", "O"]
    assert [int(graph.y) for graph in dataset] == [1, 0, 0, 0, 1]
    assert dataset.unreadable == (
        UnreadableRow(4, "not a molecule", "syntax error"),
        UnreadableRow(7, "C(C", "extra open parentheses"),
    )
    assert "2 unreadable molecules, lines 4, 7" in caplog.text
    assert sorted(sum(dataset.split_indices.values(), [])) == list(range(5))  # noqa: RUF017
    again = from_table(table, name="other")
    assert again.name == "other"
    assert again.digest == dataset.digest
    assert again.unreadable == dataset.unreadable


def test_classes(tmp_path: Path) -> None:
    for labels, names, classes in (
        (["yes", "no", "yes"], ("no", "yes"), [1, 0, 1]),
        (["-1", "1", "-1"], ("-1", "1"), [0, 1, 0]),
        (["10", "9", "2"], ("2", "9", "10"), [2, 1, 0]),
        (["1.0", "0.0", "1"], ("0", "1"), [1, 0, 1]),
        (["1", "low", "high"], ("1", "high", "low"), [0, 2, 1]),
    ):
        path = tmp_path / "mine.tsv"
        lines = [f"{label}\tnote\tCC" for label in labels]
        path.write_text("\n".join(["toxic\tremark\tmolecule", *lines]), encoding="utf-8-sig")
        dataset = from_table(path, smiles="molecule", label="toxic", delimiter="\t")
        assert dataset.class_names == names
        assert dataset.num_classes == len(names)
        assert [int(graph.y) for graph in dataset] == classes


def test_bond_features_are_a_choice(table: Path) -> None:
    assert "edge_attr" not in from_table(table)[0]
    graph = from_table(table, features="molecule+bonds")[0]
    assert graph.edge_attr.shape == (graph.num_edges, 3)


def test_a_table_that_does_not_fit(tmp_path: Path) -> None:
    for content, message in (
        (b"", "is empty"),
        (b" \n\r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"smiles,label\n", "holds no molecules"),
        (b"a,b\nC,1\n", r"has no column 'smiles' \(its columns: a, b\): name the column of mol"),
        (b"smiles,smiles\nC,1\n", "has two columns of one name: smiles"),
        (b"smiles,label\nC,\xc3\xa9\n\xff,1\n", "line 3: not a text in UTF-8"),
        (b'smiles,label\nC,1\n"C,1\nCC,0\n', r"line 3: unexpected end of data; expected cells in"),
        (b"smiles,label\nC,1\nC\x00,1\n", r"line 3: not a text in UTF-8 \(got the byte 0x00\)"),
        ("smiles,label\nC,1\n".encode("utf-16")[:-1], "is not a text in utf-16"),
        ("smiles,label\nC,1\n".encode("utf-16-le"), "line 1: not a text in UTF-8"),
        (b"\xef\xbb\xbfsmiles,label\n\xe9,1\n", r"line 2: not a text in .* \(got the byte 0xe9\)"),
        (b"\x80\x02]q\x00.", r"line 1: not a text in UTF-8 \(got the byte 0x80\)"),
        (b"smiles,label\nC,1\nC,1.0\n", r"needs at least two classes in 'label' \(got only 1\)"),
        (b"smiles,label\nC,1\nC, \n", r"needs at least two classes in 'label' \(got only 1\)"),
        (b"smiles,label\nX,1\nY,0\n", "holds no molecule that can be read: line 2: syntax error"),
    ):
        path = tmp_path / "mine.csv"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"mine\.csv:? {message}") as caught:
            from_table(path)
        assert len(str(caught.value)) < 500


def test_a_bad_row_does_not_cost_the_others(tmp_path: Path) -> None:
    for row, reason in (
        (b"CC", "1 cells where the header has 3"),
        (b"C,1,a,b", "4 cells where the header has 3"),
        (b",1,a", "no SMILES"),
        (b"C, ,a", "no label"),
        (b"C,n/a,a", r"no label \(got 'n/a'\)"),
        (b"C,0.5,a", r"a class is a whole number or a word \(got '0.5'\)"),
        (b'"C",1,"a', "unexpected end of data"),
        (b"C" * 200_000 + b",1,a", "field larger than field limit"),
        (b"C1CC,1,a", "unclosed ring"),
        (b"CN(C)(C)C,1,a", "Explicit valence for atom # 1 N, 4, is greater than permitted"),
        (b"c1cccc1,1,a", "Can't kekulize mol"),
    ):
        path = tmp_path / "mine.csv"
        path.write_bytes(b"smiles,label,name\nC,1,methane\nCC,x,ethane\n" + row + b"\n")
        dataset = from_table(path, task="classification")
        assert [graph.name for graph in dataset] == ["methane", "ethane"]
        (problem,) = dataset.unreadable
        assert problem.line == 4
        assert re.match(reason, problem.reason)
        assert problem.name == ("a" if row.endswith(b",a") and len(row) < 9_999 else None)
        assert len(str(problem)) < 300


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a directory, where a file of molecules is exp"):
        from_table(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no table of molecules at .*mine\.csv"):
        from_table(tmp_path / "mine.csv")
    path = tmp_path / "wide.csv"
    path.write_text(",".join(map(str, range(1_000_000))) + "\n")
    with pytest.raises(ValueError, match=r"has no column 'smiles' \(its columns: 0, .* in all"):
        from_table(path)


def test_splits_have_names(table: Path) -> None:
    with pytest.raises(ValueError, match=r"has no column 'x' \(its columns: "):
        from_table(table, split="x")
    assert from_table(table, split="scaffold").split_indices != from_table(table).split_indices


def test_scaffolds_are_not_torn_apart() -> None:
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCC1", "c1ccc2ccccc2c1"]
    smiles = [f"{tail}{ring}" for tail in ("C", "O", "N", "F") for ring in rings]
    split = scaffold_split_indices(smiles)
    assert {name: len(part) for name, part in split.items()} == {"train": 16, "val": 0, "test": 4}
    assert split["test"] == [4, 9, 14, 19]
    assert scaffold_split_indices([]) == {"train": [], "val": [], "test": []}
    chains = scaffold_split_indices(["C", "CC", "CCC"])  # no ring: one scaffold
    assert chains == {"train": [], "val": [], "test": [0, 1, 2]}


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "unreadable", "split"),
    [
        ("bbbp", 24.06, 25.95, [479, 1560], 11, [1631, 203, 205]),
        ("bace", 34.09, 36.86, [822, 691], 0, [1210, 151, 152]),
    ],
)
def test_the_papers_molecules(
    name: str, nodes: float, edges: float, classes: list[int], unreadable: int, split: list[int]
) -> None:
    dataset = real(name)
    found = dataset.statistics()
    assert (found.graphs, found.features) == (TABLE_5[name].graphs, TABLE_5[name].features)
    assert found.mean_nodes == pytest.approx(nodes, abs=0.005)
    assert found.mean_undirected_edges == pytest.approx(edges, abs=0.005)
    labels = [int(graph.y) for graph in dataset]
    assert [labels.count(0), labels.count(1)] == classes
    assert len(dataset.unreadable) == unreadable
    assert [len(part) for part in dataset.split_indices.values()] == split
    assert all(len(graph.atoms) == graph.num_nodes for graph in dataset)
    assert all(text for text in (dataset.source, dataset.license, dataset.description))
    assert real(name).digest == dataset.digest  # the second time from disk


def test_scaffold_split_of_real_molecules() -> None:
    murcko = pytest.importorskip("rdkit.Chem.Scaffolds.MurckoScaffold")
    dataset = real("bace", split="scaffold")
    sides = [
        {murcko.MurckoScaffoldSmiles(graph.smiles) for graph in dataset.split(name)}
        for name in ("train", "val", "test")
    ]
    assert sum(map(len, sides)) == len(set.union(*sides))
    assert [len(part) for part in dataset.split_indices.values()] == [1210, 151, 152]
    assert dataset.digest == real("bace").digest


def small_bbbp(root: Path, *rows: str, header: str = "num,name,p_np,smiles") -> Path:
    path = root / "BBBP" / "BBBP.csv"
    path.parent.mkdir()
    path.write_text("\n".join([header, *rows]) + "\n")
    return root


def test_names_with_commas(tmp_path: Path) -> None:
    root = small_bbbp(tmp_path, '1,"1,2-a ""b""",1,CC', "2,c,0,CO")
    with pytest.warns(UnlikeThePaperWarning, match=r"2 graphs \(the paper has 2,039\)"):
        dataset = load("bbbp", root)
    assert [(graph.smiles, int(graph.y)) for graph in dataset] == [("CC", 1), ("CO", 0)]


def test_a_label_that_is_none(tmp_path: Path) -> None:
    root = small_bbbp(tmp_path, "1,a,1,CC", "2,b,2,CO")
    with pytest.raises(ValueError, match=r"BBBP\.csv: p_np must be 0 or 1 \(got 1, 2\)"):
        load("bbbp", root)


def test_the_file_of_another_dataset(tmp_path: Path) -> None:
    root = small_bbbp(tmp_path, "CC,1,1,Train", header="mol,CID,Class,Model")
    with pytest.raises(WrongColumnsError, match=r"not the file of bbbp: .*BBBP\.csv has no column"):
        load("bbbp", root)


def test_a_file_that_is_cut(tmp_path: Path) -> None:
    real("bace")
    path = tmp_path / NAMES["bace"]
    path.parent.mkdir()
    lines = (DATA / NAMES["bace"]).read_text().split("\n")[:1000]
    lines[-1] = lines[-1][: lines[-1].rindex(",")]
    path.write_text("\n".join(lines))
    with pytest.warns(UnlikeThePaperWarning, match=r"998 graphs \(the paper has 1,513\)"):
        dataset = load("bace", tmp_path)
    assert "cells where the header has" in str(dataset.unreadable[0])


def test_what_is_missing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "bbbp"
    real(name)
    asked: list[str] = []

    def fetch(url: str, folder: str) -> str:
        asked.append(url)
        return shutil.copy(DATA / NAMES[name], folder)

    monkeypatch.setattr("torch_geometric.data.download_url", fetch)
    assert load(name, tmp_path).digest == real(name).digest
    assert load(name, tmp_path).digest == real(name).digest
    assert len(asked) == 1
    assert asked[0].endswith(f"/{NAMES[name].name}")
    assert [path.name for path in (tmp_path / NAMES[name]).parent.iterdir()] == [NAMES[name].name]


def test_what_cannot_be_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "bbbp"

    def refuse(url: str, folder: str) -> str:
        (Path(folder) / "half").write_text("half a file")
        raise OSError("no network")

    monkeypatch.setattr("torch_geometric.data.download_url", refuse)
    wanted = rf"{tmp_path / NAMES[name]} and could not be downloaded \(no network\); put it there"
    with pytest.raises(FileNotFoundError, match=wanted):
        load(name, tmp_path)
    assert list((tmp_path / NAMES[name]).parent.iterdir()) == []


def test_without_rdkit(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"needs rdkit: pip install 'gstarx\[molecules\]'"):
        from_table(table)
