"""Citation and co-author graphs, and large graphs of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gstarx.datasets import load, load_source
from gstarx.registry import DatasetSource
from tests.shared import DATA

CLASSES = {"cora": 7, "citeseer": 6, "coauthor_cs": 15, "coauthor_physics": 5}


def small() -> dict[str, NDArray[Any]]:
    """Four nodes with three features, in compressed rows; the last node has none."""
    return {
        "x_data": np.ones(6, np.float32),
        "x_indices": np.array([0, 2, 1, 0, 1, 2], np.int32),
        "x_indptr": np.array([0, 2, 3, 6, 6]),
        "x_shape": np.array([4, 3]),
        "edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]], np.int32),
        "y": np.array([0, 1, 1, 4]),
        "train": np.array([True, False, False, False]),
        "val": np.array([False, True, False, False]),
        "test": np.array([False, False, True, True]),
    }


def put(root: Path, name: str, **changes: Any) -> Path:
    stored = {key: value for key, value in (small() | changes).items() if value is not None}
    path = root / "citation" / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **stored)
    return path


def test_every_citation_graph_is_loaded_alike(tmp_path: Path) -> None:
    for name, classes in CLASSES.items():
        put(tmp_path, name)
        assert load(name, tmp_path).num_classes == classes


def test_rows_of_features_sum_to_one_and_masks_split_the_nodes(tmp_path: Path) -> None:
    name = "coauthor_physics"
    put(tmp_path, name)
    dataset = load(name, tmp_path)
    (graph,) = dataset
    assert dataset.num_classes == CLASSES[name]
    third = 1 / 3
    expected = torch.tensor([[0.5, 0, 0.5], [0, 1, 0], [third, third, third], [0, 0, 0]])
    torch.testing.assert_close(graph.x, expected)
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.edge_index.dtype == torch.long
    assert graph.y.tolist() == [0, 1, 1, 4]
    assert graph.test_mask.tolist() == [False, False, True, True]


def test_a_dense_matrix_does_as_well_and_the_file_may_lie_at_the_top(tmp_path: Path) -> None:
    sparse = dict.fromkeys(("x_data", "x_indices", "x_indptr", "x_shape"))
    dense = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]])
    path = put(tmp_path, "cora", **sparse, x=dense)
    path.rename(tmp_path / "cora.npz")
    put(tmp_path / "other", "cora")
    assert torch.equal(load("cora", tmp_path)[0].x, load("cora", tmp_path / "other")[0].x)


def test_your_own_large_graph_in_compressed_rows(tmp_path: Path) -> None:
    path = put(tmp_path, "mine", x_data=np.arange(1, 7, dtype=np.float32))
    (graph,) = load_source(DatasetSource(file=str(path)))
    # features are yours, and are not divided by anything
    assert graph.x.tolist() == [[1, 0, 2], [0, 3, 0], [4, 5, 6], [0, 0, 0]]
    assert graph.val_mask.tolist() == [False, True, False, False]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    damaged: list[tuple[dict[str, Any], str]] = [
        ({"edge_index": None}, "edge_index is missing"),
        ({"x_indptr": None}, "x_indptr is missing"),
        ({"y": None}, "y is missing"),
        ({"edge_index": np.array([[0], [4]])}, r"must name nodes in 0..3 \(got 0..4\)"),
        ({"edge_index": np.zeros((3, 2), int)}, r"shape \(2, E\)"),
        ({"x_indices": np.full(6, 3)}, "must be compressed rows"),
        ({"x_indptr": np.array([0, 2, 1, 6, 6])}, "must be compressed rows"),
        ({"x_shape": np.array([3, 3])}, "compressed rows"),
        ({"train": np.zeros(3, bool)}, "train must be 4 booleans"),
        ({"y": np.array([0, 1, 2, 7])}, r"y must lie in 0..6 \(got 7\)"),
    ]
    for changes, message in damaged:
        put(tmp_path, "cora", **changes)
        with pytest.raises(ValueError, match=message):
            load("cora", tmp_path)


@pytest.mark.parametrize("name", ["cora", "coauthor_cs"])
def test_a_missing_file_is_named_with_its_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    family = "Planetoid" if name in ("cora", "citeseer") else "Coauthor"
    monkeypatch.setattr(f"torch_geometric.datasets.{family}", offline)
    wanted = rf"{name}\.npz is not at .*citation.{name}\.npz and could not be downloaded .*{family}"
    with pytest.raises(FileNotFoundError, match=wanted):
        load(name, tmp_path)


def test_what_pyg_downloads_gives_the_same_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "file", "coauthor_cs")
    graph = load("coauthor_cs", tmp_path / "file")[0]
    counts = graph.clone()
    counts.x = 5 * (graph.x > 0).float()
    monkeypatch.setattr("torch_geometric.datasets.Coauthor", lambda root, name: [counts])
    downloaded = load("coauthor_cs", tmp_path)[0]
    assert torch.equal(downloaded.x, graph.x)
    assert torch.equal(downloaded.edge_index, graph.edge_index)


@pytest.mark.skipif(not (DATA / "citation" / "cora.npz").is_file(), reason="needs the real file")
def test_the_real_cora() -> None:
    (graph,) = load("cora", DATA)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (2708, 10556, 1433)
    assert [int(graph[f"{side}_mask"].sum()) for side in ("train", "val", "test")] == [
        140,
        500,
        1000,
    ]
    torch.testing.assert_close(graph.x.sum(dim=1), torch.ones(2708), atol=1e-5, rtol=0)
