"""Parts of many graphs in shared passes: what each part is alone, in batches of bounded size."""

from __future__ import annotations

from collections import UserList
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data

from gstarx.gnn.multi_graph import ManyGraphs, outputs_and_sharing
from tests.gnn.networks import CLASSES, FEATURES, GIN, NETWORKS, build
from tests.gnn.one_by_one import EDGES, REMOVALS, coalitions, graph, outputs
from tests.pairs import for_each, in_turn
from tests.strategies import edge_lists

SHAPES = ("messy", "as many nodes as edges", "no edges", "one node", "ring", "wide")
#: Those that take a batch vector, and beside it only what belongs to nodes or edges.
CAN_SHARE = (
    "gcn",
    "gcn unnormalized",
    "gin",
    "gat",
    "gine",
    "graph norm",
    "function",
    "positions",
)


def shared(
    model: Any,
    graphs: list[Data],
    parts: list[Any],
    removal: str,
    room: int | None = None,
    *,
    check: bool = True,
) -> Any:
    found = ManyGraphs.sharing(model, graphs, removal)
    assert found is not None
    outputs, _ = outputs_and_sharing(model, *found, parts, removal, room, check=check)
    return outputs.double().numpy()


@pytest.mark.parametrize(
    ("name", "removal"),
    [
        # it does not take the features that would be set to zero
        (name, "split" if (name, removal) == ("positions", "zero_filling") else removal)
        for name, removal in in_turn(CAN_SHARE, ["remove", "split", "zero_filling"])
    ],
)
def test_shared_is_one_by_one(name: str, removal: str) -> None:
    model, graphs = build(name), [graph(shape, seed=i) for i, shape in enumerate(SHAPES)]
    parts = [coalitions(data.num_nodes, at_most=3, seed=i)[-5:] for i, data in enumerate(graphs)]
    alone = np.concatenate(
        [
            outputs(name, model, data, own, removal=removal)
            for data, own in zip(graphs, parts, strict=True)
        ]
    )
    assert alone.std() > 1e-3
    found = shared(model, graphs, parts, removal)
    np.testing.assert_allclose(found, alone, atol=1e-6, rtol=1e-6)


@settings(max_examples=25)
@given(
    st.lists(edge_lists(max_nodes=5), min_size=1, max_size=4),
    st.sampled_from(["remove", "split", "zero_filling"]),
    st.sampled_from([1, 7, 40]),
)
def test_shared_is_one_by_one_on_any_graphs(
    shapes: list[tuple[int, list[tuple[int, int]]]], removal: str, room: int
) -> None:
    graphs, model = [], build("gine")
    for place, shape in enumerate(shapes):
        EDGES["drawn"] = shape
        try:
            graphs.append(graph("drawn", seed=place))
        finally:
            del EDGES["drawn"]
    parts = [coalitions(data.num_nodes, at_most=2)[1:] for data in graphs]
    alone = [
        outputs("gine", model, data, own, removal=removal)
        for data, own in zip(graphs, parts, strict=True)
    ]
    found = shared(model, graphs, parts, removal, room)
    np.testing.assert_allclose(found, np.concatenate(alone), atol=1e-6)


class Watching(nn.Module):
    """A model that remembers how many nodes and graphs it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.net = build("gcn")
        self.shown: UserList[tuple[int, int]] = UserList()  # a list would be put back

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = self.net(x, edge_index, batch)
        self.shown.append((len(x), len(out)))
        return out


@for_each(("room", "removal"), in_turn([1, 7, 20, 1000], ["split", "remove"]))
def test_batches_fill_the_capacity(removal: str, room: int) -> None:
    model, graphs = Watching(), [graph("ring"), graph("messy"), graph("one node")]
    parts = [coalitions(data.num_nodes, at_most=5) for data in graphs]
    shared(model, graphs, parts, removal, room, check=False)
    sizes = [int(row.sum()) if removal == "remove" else len(row) for own in parts for row in own]
    assert sum(nodes for nodes, _ in model.shown) == sum(sizes)
    assert sum(count for _, count in model.shown) == len(sizes)
    start = 0
    for nodes, count in model.shown:
        assert nodes == sum(sizes[start : start + count])
        assert nodes <= room or count == 1
        start += count
        # the next part would not have fitted
        assert start == len(sizes) or nodes + sizes[start] > room


def test_graphs_without_parts() -> None:
    model, graphs = build("gcn"), [graph("ring"), graph("messy"), graph("ring", seed=1)]
    parts = [coalitions(6, at_most=2), np.zeros((0, 7), bool), coalitions(6, at_most=1)]
    found = shared(model, graphs, parts, "remove")
    alone = [
        outputs("gcn", model, graphs[0], parts[0]),
        outputs("gcn", model, graphs[2], parts[2]),
    ]
    np.testing.assert_allclose(found, np.concatenate(alone), atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - set(CAN_SHARE)))
def test_what_cannot_share_is_reported(name: str) -> None:
    assert ManyGraphs.sharing(build(name), [graph("ring")], "remove") is None


def test_when_nothing_can_be_shared() -> None:
    model, data = build("gcn"), graph("ring")
    assert ManyGraphs.sharing(model, [data], "remove") is not None
    assert ManyGraphs.sharing(model, [], "remove") is None
    assert ManyGraphs.sharing(model, [data], REMOVALS["averaged"]) is None
    assert ManyGraphs.sharing(model, [data], "unheard of") is None
    torch.manual_seed(0)
    by_batch = GIN(track_running_stats=False).eval()
    assert ManyGraphs.sharing(by_batch, [data], "remove") is None
    plain = Data(x=data.x, edge_index=data.edge_index)
    assert ManyGraphs.sharing(model, [plain], "remove") is not None
    assert ManyGraphs.sharing(model, [plain, data], "remove") is None
    # the features have to be there to be set to zero
    positions = build("positions")
    assert ManyGraphs.sharing(positions, [data], "split") is not None
    assert ManyGraphs.sharing(positions, [data], "zero_filling") is None


def test_arguments_that_follow_from_the_batch() -> None:
    seen: dict[str, Any] = {}

    def model(
        x: Tensor, edge_index: Tensor, batch: Tensor, ptr: Tensor, batch_size: int, num_nodes: int
    ) -> Tensor:
        seen.update(ptr=ptr.tolist(), batch_size=batch_size, num_nodes=num_nodes)
        return torch.zeros(batch_size, CLASSES)

    graphs = [graph("ring"), graph("one node")]
    parts = [np.eye(6, dtype=bool)[:1] | np.eye(6, dtype=bool)[1:2], np.ones((1, 1), bool)]
    found = shared(model, graphs, parts, "remove", check=False)
    assert found.shape == (2, CLASSES)
    assert seen == {"ptr": [0, 2, 3], "batch_size": 2, "num_nodes": 3}


def test_features_with_more_axes_are_set_to_zero() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = torch.zeros(int(batch.max()) + 1, FEATURES)
        return out.index_add(0, batch, x.sum(dim=1))

    data = Data(x=torch.rand(3, 2, FEATURES), edge_index=torch.tensor([[0], [1]]))
    part = np.array([[True, False, True]])
    found = shared(model, [data], [part], "zero_filling")
    np.testing.assert_allclose(found[0], data.x[[0, 2]].sum(dim=(0, 1)), atol=1e-6)


def test_the_model_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = GIN().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    parts = [coalitions(6, at_most=3)]
    one, other = (shared(model, [graph("ring")], parts, "remove") for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_model_that_returns_too_few_rows() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return torch.zeros(1, 2)

    with pytest.raises(ValueError, match="one row for each of 3 graphs"):
        shared(model, [graph("ring")], [np.eye(6, dtype=bool)[:3]], "remove")
