"""Attribution tasks: files of truths, and rules that make the same truths from SMILES."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.loader import DataLoader

from gstarx.datasets import GraphDataset, load
from gstarx_bench.datasets import (
    TruthData,
    attribution_task,
    contribution_task,
    load_attribution,
    save_attribution,
)
from tests.shared import DATA

pytest.importorskip("rdkit")

RULES: dict[str, Any] = {
    "benzene": "c1ccccc1",
    "logic7": ["[FX1]", "[CX3]=O"],
    "logic8": ["[R0;D2,D1][R0;D2][R0;D2,D1]", "[CX3]=O"],
}
SIZES = {"benzene": (12_000, 2_000), "logic7": (4_326, 486), "logic8": (8_671, 918)}
SMILES = ["FCC(C)=O", "FCF", "O=CCC(F)F", "c1ccccc1", "CC(=O)C(F)C(F)C=O", "CCF", "OC=O", "C"]
SMILES += [f"{'C' * n}F" for n in range(2, 8)]


def task(name: str) -> GraphDataset:
    if not (DATA / "attribution" / f"{name}.npz").is_file():
        pytest.skip(f"the attribution tasks are not in {DATA}")
    return load(name, DATA)


def small() -> GraphDataset:
    return attribution_task(SMILES, RULES["logic7"], name="small")


def test_truths_are_alternatives_by_nodes_and_survive_pyg() -> None:
    dataset = small()
    shapes = [tuple(graph.truths.shape) for graph in dataset]
    assert shapes[0] == (1, 5)
    assert shapes[2] == (3, 6)
    assert shapes[4] == (9, 9)
    assert len({rows for rows, _ in shapes}) > 1
    (batch,) = DataLoader(list(dataset), batch_size=len(dataset))
    assert [tuple(truths.shape) for truths in batch.truths] == shapes
    for graph, again in zip(dataset, batch.to_data_list(), strict=True):
        assert torch.equal(graph.truths, again.truths)
    _, slices = InMemoryDataset.collate(list(dataset))
    assert slices["truth_rows"][-1] == sum(rows * nodes for rows, nodes in shapes)
    assert torch.equal(pickle.loads(pickle.dumps(dataset[4])).truths, dataset[4].truths)
    assert torch.equal(dataset[dataset.y == 1][-1].truths, dataset[4].truths)
    assert isinstance(Batch.from_data_list([dataset[0]])[0], TruthData)


def test_truths_of_another_shape_are_refused() -> None:
    graph = small()[0]
    with pytest.raises(ValueError, match=r"truths must have the shape \(alternatives, 5\)"):
        graph.truths = torch.ones(1, 4)
    with pytest.raises(ValueError, match=r"got \(0, 5\)"):
        graph.truths = torch.ones(0, 5)


def test_alternatives_are_all_ways_to_choose_occurrences() -> None:
    graph = small()[2]  # O=CCC(F)F: one carbonyl, two fluorides
    carbonyl = {0, 1}
    expected = [carbonyl | {4}, carbonyl | {5}, carbonyl | {4, 5}]
    assert [set(mask.nonzero().flatten().tolist()) for mask in graph.truths] == expected
    assert torch.equal(graph.truth, graph.truths[-1])
    negative = small()[1]
    assert int(negative.y) == 0
    assert not negative.truths.any()
    assert negative.truths.shape == (1, 3)


def test_what_cannot_be_read_is_left_out_and_listed() -> None:
    dataset = attribution_task(["C(", "CF", "F" + "C(F)" * 13 + "F", *SMILES], "[FX1]")
    assert [row.line for row in dataset.unreadable] == [1, 3]
    assert "4,095 alternative truths (got 32,767)" in dataset.unreadable[1].reason
    assert len(dataset) == 1 + len(SMILES)
    with pytest.raises(ValueError, match="none of 1 SMILES gives a graph: unclosed"):
        attribution_task(["C1CC"], "C")
    with pytest.raises(ValueError, match=r"cannot read the SMARTS '\[C'"):
        attribution_task(SMILES, "[C")
    with pytest.raises(ValueError, match=r"at least one SMARTS in each part \(got \[\]\)"):
        attribution_task(SMILES, [])
    with pytest.raises(TypeError, match=r"a SMARTS must be a string \(got int\)"):
        attribution_task(SMILES, [[3]])  # type: ignore[list-item]


def test_a_file_of_truths_is_read_as_it_was_written(tmp_path: Path) -> None:
    for dataset in (small(), contribution_task(SMILES)):
        save_attribution(tmp_path / "some.npz", dataset)
        again = load_attribution(tmp_path / "some.npz", validation=0.25)
        assert (again.name, again.task) == ("some", dataset.task)
        assert again.num_classes == dataset.num_classes
        for one, other in zip(dataset, again, strict=True):
            assert one.smiles == other.smiles
            for field in ("x", "edge_index", "edge_attr", "y", "truths"):
                assert torch.equal(one[field], other[field])
        assert again.split_indices["test"] == dataset.split_indices["test"]
        train = {*again.split_indices["train"], *again.split_indices["val"]}
        before = {*dataset.split_indices["train"], *dataset.split_indices["val"]}
        assert train == before
        assert len(again.split_indices["val"]) == round(0.25 * len(before))


def test_a_file_that_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    for key, change, message in (
        ("truth", lambda a: a[:-1], r"truth_ptr must rise from 0 to \d+ in 14 steps"),
        (
            "alternatives",
            lambda a: a + 1,
            "do not fit together: truths must have the shape|invalid for input of size",
        ),
        ("edge_index", lambda a: a + 99, "do not fit together: .*edge_index"),
        ("x", lambda a: np.full_like(a, np.nan), "x must hold finite numbers"),
        ("edge_attr", lambda a: a[1:], r"edge_attr must have \d+ rows"),
        ("test", lambda a: a * 0 - 1, r"train and test must be distinct positions in 0\.\.13"),
        ("node_ptr", lambda a: a[::-1], "node_ptr must rise from 0"),
    ):
        save_attribution(tmp_path / "whole.npz", small())
        with np.load(tmp_path / "whole.npz") as stored:
            arrays = dict(stored)
        np.savez(tmp_path / "other.npz", **{**arrays, key: change(arrays[key])})
        with pytest.raises(ValueError, match=message):
            load_attribution(tmp_path / "other.npz")
        del arrays["truth"]
        np.savez(tmp_path / "less.npz", **arrays)
        with pytest.raises(ValueError, match="it must hold x, node_ptr"):
            load_attribution(tmp_path / "less.npz")


def test_missing_files_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="google-research/graph-attribution") as raised:
        load("benzene", tmp_path)
    assert "attribution_task" in str(raised.value)
    assert str(tmp_path / "attribution" / "benzene.npz") in str(raised.value)
    with pytest.raises(FileNotFoundError, match="there is no attribution task at"):
        load_attribution(tmp_path / "none.npz")
    save_attribution(tmp_path / "attribution" / "benzene.npz", contribution_task(SMILES))
    with pytest.raises(ValueError, match="is not benzene: it holds a regression task"):
        load("benzene", tmp_path)
    with pytest.raises(ValueError, match=r"validation must be a share.*\(got 1\.5\)"):
        load_attribution(tmp_path / "attribution" / "benzene.npz", validation=1.5)


def assert_same_truths(dataset: GraphDataset, positions: list[int], rule: Any) -> None:
    graphs = [dataset[at] for at in positions]
    made = attribution_task([graph.smiles for graph in graphs], rule)
    assert not made.unreadable
    for one, other in zip(graphs, made, strict=True):
        for field in ("x", "edge_index", "edge_attr", "y", "truth_rows", "truth"):
            assert torch.equal(one[field], other[field]), (one.smiles, field)


@pytest.mark.parametrize("name", RULES)
def test_rules_reproduce_labels_and_truths_of_a_sample(name: str) -> None:
    dataset = task(name)
    assert (len(dataset), len(dataset.split("test"))) == SIZES[name]
    assert_same_truths(dataset, list(range(0, len(dataset), 17)), RULES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_rules_reproduce_labels_and_truths_of_all_molecules(name: str) -> None:
    dataset = task(name)
    assert_same_truths(dataset, list(range(len(dataset))), RULES[name])


def test_contributions_reproduce_crippen() -> None:
    dataset = task("crippen")
    assert dataset.task == "regression"
    made = contribution_task([graph.smiles for graph in dataset])
    for one, other in zip(dataset, made, strict=True):
        assert torch.equal(one.edge_index, other.edge_index)
        assert one.truths == pytest.approx(other.truths, abs=1e-5)
        assert float(one.y) == pytest.approx(float(one.truths.sum()), abs=1e-3)


def test_a_validation_split_is_cut_from_the_training_graphs() -> None:
    dataset = task("logic7")
    sizes = {side: len(part) for side, part in dataset.split_indices.items()}
    assert sizes == {"train": 3_456, "val": 384, "test": 486}
    everything = [at for part in dataset.split_indices.values() for at in part]
    assert sorted(everything) == list(range(len(dataset)))
    assert sum(int(graph.y) for graph in dataset.split("test")) == 47
    with np.load(DATA / "attribution" / "logic7.npz") as stored:
        assert dataset.split_indices["test"] == stored["test"].tolist()
