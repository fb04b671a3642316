"""MUTAG as the paper has it, and files that are missing or garbled."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx.datasets import GraphDataset, load, names
from gstarx.datasets.dataset import random_split_indices
from gstarx.datasets.molecules import MUTAG_ATOMS
from gstarx_bench.datasets.raw_files import UnlikeThePaperWarning
from tests.shared import DATA, mutag

TEST_SPLIT = [25, 49, 28, 151, 78, 146, 39, 89, 187, 157, 137, 10, 51, 120, 80, 116, 11, 92, 139]
TEST_SPLIT += [142]


def raw(name: str) -> list[list[int]]:
    mutag()
    lines = (DATA / "MUTAG" / "raw" / f"MUTAG_{name}.txt").read_text().split("\n")
    return [[int(cell) for cell in line.split(",")] for line in lines if line.strip()]


def test_the_test_split_is_the_papers() -> None:
    split = mutag().split_indices
    assert split["test"] == TEST_SPLIT
    assert {name: len(part) for name, part in split.items()} == {
        "train": 150,
        "val": 18,
        "test": 20,
    }
    assert sorted(sum(split.values(), [])) == list(range(188))  # noqa: RUF017


def test_every_molecule_is_what_the_files_say() -> None:
    owner = [row[0] for row in raw("graph_indicator")]
    atoms = [row[0] for row in raw("node_labels")]
    bonds: list[set[tuple[int, int]]] = [set() for _ in range(188)]
    first = [owner.index(number) for number in range(1, 189)]
    for a, b in raw("A"):
        start = first[owner[a - 1] - 1]
        bonds[owner[a - 1] - 1].add((a - 1 - start, b - 1 - start))
    for number, graph in enumerate(mutag()):
        mine = [atom for atom, at in zip(atoms, owner, strict=True) if at == number + 1]
        assert graph.x.argmax(dim=1).tolist() == mine
        assert graph.x.sum().item() == len(mine)
        assert graph.x.shape == (len(mine), len(MUTAG_ATOMS))
        assert graph.atoms == [MUTAG_ATOMS[atom] for atom in mine]
        # row-major order, both directions
        assert [tuple(edge) for edge in graph.edge_index.t().tolist()] == sorted(bonds[number])
        assert graph.is_undirected()
        assert int(graph.y) == (1 if raw_labels()[number] == 1 else 0)


def raw_labels() -> list[int]:
    return [row[0] for row in raw("graph_labels")]


def test_indexing_and_splits() -> None:
    data = mutag()
    assert data[3] is data.graphs[3]
    assert data[-1] is data.graphs[187]
    assert list(data[2:4]) == [data.graphs[2], data.graphs[3]]
    assert [id(graph) for graph in data.split("test")] == [id(data[i]) for i in TEST_SPLIT]
    with pytest.raises(ValueError, match=r"one of 'train', 'val', 'test' \(got 'dev'\)"):
        data.split("dev")


def test_the_digest_is_of_the_content() -> None:
    data = mutag()
    assert data.digest == load("mutag", DATA).digest
    assert len(data.digest) == 64
    int(data.digest, 16)
    for field, change in (("x", 1.0), ("edge_index", 1), ("y", 1)):
        graphs = [graph.clone() for graph in data]
        graphs[7][field].view(-1)[0] += change
        assert GraphDataset("mutag", tuple(graphs), 2, {}).digest != data.digest
    turned = (data[1], data[0], *data[2:])
    assert GraphDataset("mutag", turned, 2, {}).digest != data.digest
    assert GraphDataset("other", data.graphs, 3, {}).digest == data.digest


def test_splits_are_torchs_and_leave_its_generator_alone() -> None:
    before = torch.get_rng_state()
    split = random_split_indices(188)
    assert split["test"] == TEST_SPLIT
    assert torch.equal(torch.get_rng_state(), before)
    assert {len(part) for part in random_split_indices(10).values()} == {8, 1}
    assert random_split_indices(0) == {"train": [], "val": [], "test": []}


def test_where_data_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutag()
    monkeypatch.setenv("GSTARX_DATA", str(DATA))
    assert load("mutag").digest == mutag().digest
    monkeypatch.setenv("GSTARX_DATA", str(tmp_path))
    assert load("mutag", str(DATA)).digest == mutag().digest  # what is said goes first
    looked: list[Path] = []
    monkeypatch.setattr(
        "gstarx_bench.datasets.published.load_mutag", lambda root: looked.append(root)
    )
    load("mutag")
    monkeypatch.delenv("GSTARX_DATA")
    load("mutag")
    monkeypatch.setenv("GSTARX_DATA", "")
    load("mutag")
    cache = Path.home() / ".cache" / "gstarx"
    assert looked == [tmp_path, cache, cache]


def test_names() -> None:
    assert names() == (
        *("motifs", "nitro"),
        *("mutag", "bbbp", "bace", "ba_2motifs", "ba_shapes", "graph_sst2", "twitter"),
        *("sst2", "tweets", "benzene", "logic7", "logic8", "crippen"),
        *("cora", "citeseer", "coauthor_cs", "coauthor_physics"),
    )
    with pytest.raises(ValueError, match=r"name must be one of 'motifs'.* \(got 'MUTAG2'\)"):
        load("MUTAG2")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of MUTAG's files to spoil."""
    mutag()
    target = tmp_path / "MUTAG" / "raw"
    shutil.copytree(DATA / "MUTAG" / "raw", target)
    return target


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """No network: a download fails, and is remembered."""
    asked: list[tuple[Any, ...]] = []

    def refuse(*args: Any) -> None:
        asked.append(args)
        raise OSError("no network")

    monkeypatch.setattr("torch_geometric.data.download_url", refuse)
    return asked


def test_data_that_is_nowhere(tmp_path: Path, offline: list[tuple[Any, ...]]) -> None:
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded \(no network") as caught:
        load("mutag", tmp_path)
    assert str(tmp_path / "MUTAG" / "raw") in str(caught.value)
    assert "pass root=... or set GSTARX_DATA" in str(caught.value)
    (asked,) = offline
    assert asked[0].endswith("/MUTAG.zip")


def test_what_can_be_downloaded_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutag()

    def download(url: str, folder: str) -> str:
        return shutil.make_archive(f"{folder}/MUTAG", "zip", DATA / "MUTAG", "raw")

    monkeypatch.setattr("torch_geometric.data.download_url", download)
    loaded = load("mutag", tmp_path)
    assert loaded.digest == mutag().digest
    assert loaded[0].bonds == mutag()[0].bonds
    assert [path.name for path in (tmp_path / "MUTAG").iterdir()] == ["raw"]


def test_a_download_that_grows_too_much_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(url: str, folder: str) -> str:
        packed = Path(folder, "MUTAG.zip")
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("MUTAG/MUTAG_A.txt", bytes(5_000_000))
            archive.writestr("../../MUTAG_A.txt", b"1, 2")
        return str(packed)

    monkeypatch.setattr("torch_geometric.data.download_url", download)
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000_000)
    with pytest.raises(
        FileNotFoundError, match=r"grow to 5,000,004 when read, and the limit is 1,000,000"
    ):
        load("mutag", tmp_path / "data")
    assert list(tmp_path.rglob("*.txt")) == []


def test_a_file_that_is_missing(copied: Path, offline: list[tuple[Any, ...]]) -> None:
    (copied / "MUTAG_graph_indicator.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"MUTAG_graph_indicator\.txt"):
        load("mutag", copied.parent.parent)
    assert offline == []


def test_files_that_are_garbled_or_do_not_fit_together(copied: Path) -> None:
    wrong: list[tuple[str, int, str | None]] = [
        ("A", 3, "one, two"),
        ("A", 5, "9999, 1"),
        ("A", 5, "0, 1"),
        ("A", 5, "100, 1"),
        ("A", 7442, None),
        ("node_labels", 3371, None),
        ("node_labels", 17, "7"),
        ("graph_labels", 188, None),
        ("graph_indicator", 1, "2"),
        ("edge_labels", 2, "4"),
        ("edge_labels", 7442, None),
    ]
    for name, line, new in wrong:
        path = copied / f"MUTAG_{name}.txt"
        whole = path.read_text()
        lines = whole.split("\n")
        lines[line - 1 : line] = [] if new is None else [new]
        path.write_text("\n".join(lines))
        with pytest.raises(ValueError, match=rf"{copied} does not hold the files of MUTAG: "):
            load("mutag", copied.parent.parent)
        path.write_text(whole)


def test_a_copy_that_is_not_the_papers(copied: Path) -> None:
    owner = [row[0] for row in raw("graph_indicator")]
    atoms = owner.index(188)
    for name, lines in (("graph_indicator", atoms), ("node_labels", atoms), ("graph_labels", 187)):
        path = copied / f"MUTAG_{name}.txt"
        path.write_text("\n".join([*path.read_text().split("\n")[:lines], ""]))
    bonds = [f"{a}, {b}" for a, b in raw("A") if a <= atoms]
    (copied / "MUTAG_A.txt").write_text("\n".join([*bonds, ""]))
    (copied / "MUTAG_edge_labels.txt").unlink()
    with pytest.warns(
        UnlikeThePaperWarning, match=r"mutag is not the paper's: 187 graphs \(.*188\)"
    ):
        dataset = load("mutag", copied.parent.parent)
    assert len(dataset) == 187


def test_options_are_those_of_the_dataset() -> None:
    with pytest.raises(TypeError, match=r"options of 'bbbp': 'split', .* \(got 'spilt'\)"):
        load("bbbp", spilt="scaffold")
    with pytest.raises(TypeError, match=r"options of 'mutag': none \(got 'split'\)"):
        load("mutag", split="scaffold")


def test_bonds_have_their_orders_where_the_file_is_there(copied: Path) -> None:
    kinds = [kind for (kind,) in raw("edge_labels")]
    known = load("mutag", copied.parent.parent)
    assert sorted(order for graph in known for order in graph.bonds) == sorted(
        {0: 1.5, 1: 1.0, 2: 2.0, 3: 3.0}[kind] for kind in kinds
    )
    for graph in known:
        assert len(graph.bonds) == graph.num_edges
        # as many both ways, each with the order it has
        ways = {
            (int(a), int(b)): o for (a, b), o in zip(graph.edge_index.T, graph.bonds, strict=True)
        }
        assert all(ways[b, a] == order for (a, b), order in ways.items())
    # a nitrogen and an oxygen that is nowhere else are joined by a double bond in a nitro group
    assert 2.0 in known[0].bonds
    (copied / "MUTAG_edge_labels.txt").unlink()
    assert "bonds" not in load("mutag", copied.parent.parent)[0]
