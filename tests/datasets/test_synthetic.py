"""BA-2Motifs and BA-Shapes, from archives and from pickles."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from gstarx.datasets import GraphDataset, load
from gstarx_bench.datasets.raw_files import UnlikeThePaperWarning, UnsafePickleError
from tests.shared import DATA

MOTIFS_NPZ = Path("BA_2Motifs", "ba_2motifs.npz")
MOTIFS_PICKLE = Path("BA_2Motifs", "raw", "BA_2Motifs.pkl")
SHAPES_NPZ = Path("BA_Shapes", "ba_shapes.npz")


def real(name: str, place: Path) -> GraphDataset:
    if not (DATA / place).is_file():
        pytest.skip(f"{place} is not in {DATA}")
    return load(name, DATA)


def test_the_papers_motifs() -> None:
    dataset = real("ba_2motifs", MOTIFS_NPZ)
    found = dataset.statistics()
    assert (found.graphs, found.mean_nodes, found.features) == (1_000, 25, 10)
    assert found.mean_edges == pytest.approx(50.96)
    assert [int(graph.y) for graph in dataset] == [0] * 500 + [1] * 500
    assert [len(part) for part in dataset.split_indices.values()] == [800, 100, 100]
    shapes = {0: nx.cycle_graph(5), 1: nx.house_graph()}
    for graph in dataset:
        assert (graph.x == 0.1).all()
        assert graph.truth.nonzero().flatten().tolist() == [20, 21, 22, 23, 24]
        whole = nx.Graph(graph.edge_index.T.tolist())
        motif = whole.subgraph(range(20, 25)).copy()
        motif.remove_edges_from(list(nx.selfloop_edges(motif)))
        assert nx.is_isomorphic(motif, shapes[int(graph.y)])


def test_the_pickle_holds_the_same_motifs(tmp_path: Path) -> None:
    dataset = real("ba_2motifs", MOTIFS_NPZ)
    real("ba_2motifs", MOTIFS_PICKLE)
    (tmp_path / MOTIFS_PICKLE).parent.mkdir(parents=True)
    shutil.copy(DATA / MOTIFS_PICKLE, tmp_path / MOTIFS_PICKLE)
    assert load("ba_2motifs", tmp_path).digest == dataset.digest


def small_motifs() -> tuple[np.ndarray, ...]:
    """A path of 25 nodes and a ring of 25, as the authors store graphs."""
    adjacency = np.zeros((2, 25, 25))
    for graph, edges in enumerate((nx.path_graph(25).edges, nx.cycle_graph(25).edges)):
        for a, b in edges:
            adjacency[graph, a, b] = adjacency[graph, b, a] = 1
    return adjacency, np.full((2, 25, 10), 0.1), np.eye(2)


def put(root: Path, place: Path, content: Any) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **content)
    else:
        path.write_bytes(pickle.dumps(content))
    return root


def test_motifs_from_a_pickle(tmp_path: Path) -> None:
    for name in ("BA_2Motifs.pkl", "BA-2motif.pkl"):
        root = tmp_path / name
        put(root, MOTIFS_PICKLE.with_name(name), small_motifs())
        with pytest.warns(UnlikeThePaperWarning, match=r"2 graphs \(the paper has 1,000\)"):
            dataset = load("ba_2motifs", root)
        assert [graph.num_edges for graph in dataset] == [48, 50]
        assert [int(graph.y) for graph in dataset] == [0, 1]
        assert dataset[0].edge_index[:, :3].tolist() == [[0, 1, 1], [1, 0, 2]]


def small_npz() -> dict[str, np.ndarray]:
    return {
        "edge_index": np.array([[0, 1, 3, 24], [1, 0, 24, 3]], dtype=np.int16),
        "edge_ptr": np.array([0, 2, 4]),
        "y": np.array([1, 0], dtype=np.int8),
    }


def test_motifs_from_an_archive(tmp_path: Path) -> None:
    put(tmp_path, MOTIFS_NPZ, small_npz())
    with pytest.warns(UnlikeThePaperWarning, match="2 graphs"):
        first, second = load("ba_2motifs", tmp_path)
    assert first.edge_index.tolist() == [[0, 1], [1, 0]]
    assert second.edge_index.tolist() == [[3, 24], [24, 3]]
    assert (int(first.y), int(second.y)) == (1, 0)


def test_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"y": None}, r"is not BA_2Motifs: it must hold .* \(got edge_index, edge_ptr\)"),
        ({"y": np.array([0])}, "edge_index, edge_ptr and y do not fit together"),
        ({"edge_ptr": np.array([0, 5, 4])}, "do not fit together"),
        ({"edge_ptr": np.array([1, 2, 4])}, "do not fit together"),
        ({"edge_ptr": np.array([0, 2, 5])}, "do not fit together"),
        ({"y": np.array([0, 2])}, "labels must be a list of numbers 0 to 1"),
        ({"y": np.array([0, -1])}, "labels must be a list of numbers 0 to 1"),
        ({"edge_index": np.full((2, 4), 25)}, "edges must join two nodes numbered 0 to 24"),
        ({"edge_index": np.full((2, 4), -1)}, "edges must join two nodes numbered 0 to 24"),
    ]
    for change, message in changes:
        content = {key: value for key, value in (small_npz() | change).items() if value is not None}
        put(tmp_path, MOTIFS_NPZ, content)
        with pytest.raises(ValueError, match=rf"ba_2motifs\.npz.*{message}"):
            load("ba_2motifs", tmp_path)


def test_an_archive_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "BA_2Motifs").mkdir()
    for content in (b"", b"PK\x03\x04 cut", b"text\n"):
        (tmp_path / MOTIFS_NPZ).write_bytes(content)
        with pytest.raises(ValueError, match=r"motifs\.npz is not a readable archive of arrays"):
            load("ba_2motifs", tmp_path)
    with open(tmp_path / MOTIFS_NPZ, "wb") as file:
        np.save(file, np.ones(3))  # one array is no archive
    with pytest.raises(ValueError, match=r"ba_2motifs\.npz is not a readable archive of arrays"):
        load("ba_2motifs", tmp_path)


def test_an_archive_that_holds_objects(tmp_path: Path) -> None:
    put(tmp_path, MOTIFS_NPZ, small_npz() | {"y": np.array([print, 1], dtype=object)})
    with pytest.raises(ValueError, match=r"not a readable archive of arrays: .*allow_pickle"):
        load("ba_2motifs", tmp_path)


def test_pickles_that_do_not_fit(tmp_path: Path) -> None:
    adjacency, features, labels = small_motifs()
    for content in ((), (adjacency,), (adjacency, features, labels[:1]), np.array(1.0)):
        put(tmp_path, MOTIFS_PICKLE, content)
        with pytest.raises(ValueError, match=r"BA_2Motifs\.pkl is not BA_2Motifs: expected arrays"):
            load("ba_2motifs", tmp_path)
    put(tmp_path, MOTIFS_PICKLE, (adjacency, print, labels))
    with pytest.raises(UnsafePickleError, match=r"refers to builtins\.print"):
        load("ba_2motifs", tmp_path)


def test_motifs_are_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(url: str, folder: str) -> str:
        path = Path(folder) / url.rpartition("/")[2]
        path.write_bytes(pickle.dumps(small_motifs()))
        return str(path)

    monkeypatch.setattr("torch_geometric.data.download_url", fetch)
    with pytest.warns(UnlikeThePaperWarning):
        assert len(load("ba_2motifs", tmp_path)) == 2
    assert (tmp_path / "BA_2Motifs" / "raw" / "BA-2motif.pkl").is_file()


def test_the_papers_shapes() -> None:
    dataset = real("ba_shapes", SHAPES_NPZ)
    (graph,) = dataset
    assert dataset.num_classes == 4
    assert dataset.split("test") == [graph]
    assert (graph.x == torch.ones(700, 10)).all()
    assert graph.num_edges == 4110
    assert graph.is_undirected()
    assert torch.bincount(graph.y).tolist() == [300, 160, 160, 80]
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert masks.sum(dim=1).tolist() == [560, 70, 70]
    assert (masks.sum(dim=0) == 1).all()
    assert torch.equal(graph.truth, graph.y > 0)
    assert torch.equal(graph.motif >= 0, graph.truth)
    whole = nx.Graph(graph.edge_index.T.tolist())
    for house in range(80):
        nodes = (graph.motif == house).nonzero().flatten().tolist()
        assert len(nodes) == 5
        inside = whole.subgraph(nodes)
        assert nx.is_isomorphic(inside, nx.house_graph())
        (top,) = [node for node in nodes if graph.y[node] == 3]
        assert {int(graph.y[node]) for node in inside[top]} == {1}
        middle = [node for node in nodes if graph.y[node] == 1]
        assert [inside.degree(node) for node in middle] == [3, 3]


def small_shapes() -> dict[str, np.ndarray]:
    """Two nodes, a triangle and, apart, one edge more."""
    edges = np.array([[0, 1, 2, 2, 3, 5], [1, 2, 3, 4, 4, 6]])
    return {
        "edge_index": np.concatenate([edges, edges[::-1]], axis=1),
        "motif_edges": edges[:, 2:],
        "y": np.array([0, 0, 1, 2, 3, 1, 1]),
        "train": np.arange(7) < 5,
        "val": np.arange(7) == 5,
        "test": np.arange(7) == 6,
    }


def test_shapes_from_an_archive(tmp_path: Path) -> None:
    (graph,) = load("ba_shapes", put(tmp_path, SHAPES_NPZ, small_shapes()))
    assert graph.motif.tolist() == [-1, -1, 0, 0, 0, 1, 1]
    assert graph.truth.tolist() == [False, False, True, True, True, True, True]
    assert graph.val_mask.tolist() == [False] * 5 + [True, False]
    assert graph.x.tolist() == [[1.0] * 10] * 7


def test_shapes_from_a_pickle(tmp_path: Path) -> None:
    for name in ("BA_shapes.pkl", "syn1.pkl"):
        root = tmp_path / name
        stored = small_shapes()
        adjacency, motifs = np.zeros((2, 7, 7))
        adjacency[tuple(stored["edge_index"])] = 1
        motifs[tuple(stored["motif_edges"])] = 1
        one_hot = np.eye(4)[stored["y"]]
        masks = [stored[side] for side in ("train", "val", "test")]
        labels = [one_hot * mask[:, None] for mask in masks]
        content = (adjacency, np.ones((7, 10)), *labels, *masks, motifs)
        (graph,) = load("ba_shapes", put(root, Path("BA_Shapes", "raw", name), content))
        (other,) = load("ba_shapes", put(tmp_path / "npz", SHAPES_NPZ, stored))
        assert torch.equal(graph.y, other.y)
        assert torch.equal(graph.motif, other.motif)
        assert torch.equal(graph.test_mask, other.test_mask)
        assert sorted(graph.edge_index.T.tolist()) == sorted(other.edge_index.T.tolist())
        put(root, Path("BA_Shapes", "raw", name), content[:8])
        with pytest.raises(ValueError, match=f"{name} is not BA_Shapes: expected arrays of shapes"):
            load("ba_shapes", root)


def test_shapes_that_do_not_fit(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"train": np.ones(3, dtype=bool)}, r"train must have 7 entries \(got \(3,\)\)"),
        ({"y": np.full(7, 4)}, "labels must be a list of numbers 0 to 3"),
        ({"edge_index": np.array([[0], [7]])}, "edges must join two nodes numbered 0 to 6"),
        ({"motif_edges": np.array([[0], [7]])}, "edges must join two nodes numbered 0 to 6"),
        ({"motif_edges": np.array([0, 1])}, "edges must join two nodes"),
    ]
    for change, message in changes:
        put(tmp_path, SHAPES_NPZ, small_shapes() | change)
        with pytest.raises(ValueError, match=rf"ba_shapes\.npz: {message}"):
            load("ba_shapes", tmp_path)


def test_shapes_that_are_nowhere(tmp_path: Path) -> None:
    wanted = rf"ba_shapes\.npz is not at {tmp_path / SHAPES_NPZ}; put it there, or pass root"
    with pytest.raises(FileNotFoundError, match=wanted):
        load("ba_shapes", tmp_path)
