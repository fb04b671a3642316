"""Probabilities of parts: which way they are asked for, and what the model is asked."""

from __future__ import annotations

from collections import UserList
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gstarx.metrics import probabilities
from gstarx.metrics.probabilities import PartTask, part_probabilities
from tests.gnn.networks import CLASSES, NETWORKS, build
from tests.gnn.one_by_one import coalitions, graph, outputs

#: Networks whose parts of different graphs can share a pass.
SHARED = {
    "gcn",
    "gcn unnormalized",
    "gin",
    "gat",
    "gine",
    "graph norm",
    "function",
    "positions",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_both_ways_give_what_the_model_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graphs = build(name), [graph("messy"), graph("ring", seed=1), graph("one node")]
    parts = [coalitions(data.num_nodes, at_most=4)[1:] for data in graphs]
    one_by_one: list[Any] = []
    game = probabilities._from_game

    def watched(*arguments: Any) -> Any:
        one_by_one.append(arguments)
        return game(*arguments)

    monkeypatch.setattr(probabilities, "_from_game", watched)
    found = part_probabilities(model, graphs, parts, [None] * 3, PartTask())
    assert len(one_by_one) == (0 if name in SHARED else 3)
    for data, own, got in zip(graphs, parts, found, strict=True):
        everybody = np.ones(data.num_nodes, bool)
        whole = torch.from_numpy(outputs(name, model, data, [everybody])).softmax(1)[0]
        chances = torch.from_numpy(outputs(name, model, data, own)).softmax(1)
        np.testing.assert_allclose(got.whole, whole, atol=1e-6)
        np.testing.assert_allclose(got.parts, chances, atol=1e-6)
        assert got.target == int(whole.argmax())
        assert got.players.tolist() == list(range(data.num_nodes))


class Counting(nn.Module):
    """A model that remembers how many graphs every call had."""

    def __init__(self) -> None:
        super().__init__()
        self.net = build("gcn")
        self.graphs: UserList[int] = UserList()  # a list would be put back

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = self.net(x, edge_index, batch)
        self.graphs.append(len(out))
        return out


def test_parts_of_all_graphs_go_through_the_model_at_once() -> None:
    model, graphs = Counting(), [graph("ring"), graph("messy"), graph("no edges")]
    parts = [np.eye(data.num_nodes, dtype=bool)[:2] for data in graphs]
    parts[0] = np.concatenate([parts[0], np.zeros((1, 6), bool)])
    found = part_probabilities(model, graphs, parts, [None] * 3, PartTask())
    # three graphs and two parts of each; a part of nobody is not asked for
    # and the largest and the smallest of them alone, the others once more without them
    assert model.graphs == [9, 1, 1, 7]
    assert not found[0].parts[2].any()
    assert found[0].parts.shape == (3, CLASSES)


def test_tasks() -> None:
    with pytest.raises(ValueError, match="need reference="):
        PartTask(mode="regression")
    with pytest.raises(ValueError, match="batch_nodes must be at least 1"):
        PartTask(batch_nodes=-1)
