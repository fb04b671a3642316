"""Batches cut out of long tensors against PyG's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx_bench.models.collation import CollatedGraphs, GraphBatch
from tests.gnn.one_by_one import graph

CPU = torch.device("cpu")
SHAPES = ["messy", "ring", "no edges", "one node", "wide"]


def graphs() -> list[Data]:
    found = [graph(name, seed=i) for i, name in enumerate(SHAPES)]
    for label, data in enumerate(found):
        data.y = torch.tensor([[label]])
    return found


def cut(data: CollatedGraphs, ids: list[int], mask: Tensor | None = None) -> GraphBatch:
    return data.batch(torch.tensor(ids), device=CPU, dtype=torch.float32, mask=mask)


@pytest.mark.parametrize("ids", [[0, 1, 2, 3, 4], [4, 2, 0], [3], [2], [1, 1, 3, 1]])
def test_a_batch_is_pygs(ids: list[int]) -> None:
    data = CollatedGraphs.of(graphs())
    found = cut(data, ids)
    expected = Batch.from_data_list([graphs()[i] for i in ids])
    assert len(data) == 5
    assert not data.node_level
    assert torch.equal(found.x, expected.x)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert torch.equal(found.batch, expected.batch)
    assert found.y.tolist() == ids
    assert found.rows is None


def test_features_are_converted_when_they_are_needed() -> None:
    halves = graphs()
    for data in halves:
        data.x = data.x.half()
    collated = CollatedGraphs.of(halves)
    assert collated.x.dtype == torch.float16
    batch = collated.batch(torch.tensor([1]), device=CPU, dtype=torch.float64)
    assert batch.x.dtype == torch.float64
    assert torch.equal(batch.x, halves[1].x.double())
    counted = [
        Data(x=torch.tensor([[3], [4]]), edge_index=torch.ones(2, 0).long(), y=torch.ones(1))
    ]
    batch = cut(CollatedGraphs.of(counted), [0])
    assert batch.x.tolist() == [[3.0], [4.0]]
    assert batch.y.dtype == torch.long


def test_labels_of_nodes() -> None:
    labeled = graphs()
    for data in labeled:
        data.y = torch.arange(data.num_nodes)
        data.train_mask = torch.arange(data.num_nodes) % 2 == 0
        data.val_mask = (~data.train_mask).long()
    collated = CollatedGraphs.of(labeled)
    assert collated.node_level
    assert set(collated.masks) == {"train_mask", "val_mask"}
    assert collated.masks["val_mask"].dtype == torch.bool
    found = cut(collated, [1, 2])
    assert found.y.tolist() == [*range(6), *range(3)]
    assert found.rows is not None
    assert found.rows.all()
    found = cut(collated, [1, 2], collated.masks["train_mask"])
    assert found.y.tolist() == [0, 2, 4, 0, 2]
    assert found.rows is not None
    assert found.rows.nonzero()[:, 0].tolist() == [0, 2, 4, 6, 8]


def test_a_mask_that_only_some_have_is_none() -> None:
    some = graphs()
    some[0].train_mask = torch.ones(7, dtype=torch.bool)
    assert CollatedGraphs.of(some).masks == {}


def test_graphs_that_cannot_be_used() -> None:
    with pytest.raises(ValueError, match=r"at least one graph \(got none\)"):
        CollatedGraphs.of([])
    for field in ("x", "edge_index", "y"):
        bad = graphs()
        del bad[3][field]
        with pytest.raises(ValueError, match=f"graph 3 of 5 has no {field}"):
            CollatedGraphs.of(bad)
    bad = graphs()
    bad[2].x = torch.ones(0, 4)
    with pytest.raises(ValueError, match="graph 2 of 5 has no nodes"):
        CollatedGraphs.of(bad)
    bad = graphs()
    bad[1].y = torch.zeros(6)
    with pytest.raises(ValueError, match="one label, or every graph one for each node"):
        CollatedGraphs.of(bad)
