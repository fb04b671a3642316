"""Explanations as dictionaries and files, and back: the same numbers of the same types."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gstarx import Explanation, HeteroExplanation, explain
from gstarx.explainers import create
from tests.explainers.small import graph, network
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

#: Of the graph or of the program, not of the explanation.
NOT_STORED = {"x", "edge_index", "batch", "player_spec", "hetero", "node_id", "edge_id"}
NOT_STORED |= {"node_type", "converged", "residual", "batch_nodes", "fixed", "edge_scores"}


def assert_same(one: Any, other: Any) -> None:
    """The same value of the same type, ``nan`` being equal to itself."""
    assert type(one) is type(other)
    if isinstance(one, Tensor):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one.nan_to_num(12345.0), other.nan_to_num(12345.0))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif isinstance(one, list):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    else:
        assert one == other


def restored(found: Any, way: str, directory: Path) -> Any:
    if way == "json":
        return type(found).from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    if way == "dict":
        return type(found).from_dict(found.to_dict())
    path = directory / "explanation.pt"
    found.save(path)
    assert isinstance(torch.load(path, weights_only=True), dict)
    return type(found).load(path)


WAYS = pytest.mark.parametrize("way", ["dict", "json", "file"])
PLAYERS: dict[str, dict[str, Any]] = {
    "nodes": {},
    "several targets": {"target": [0, 1]},
    "estimated": {"value": "shapley", "budget": 20, "seed": 0},
    "edges": {"players": "edges", "edge_mask": False},
    "groups": {"players": [[0, 1], [2, 3]]},
    "features": {"players": "features"},
    "with edges": {"edge_mask": True},
    "position": {"players": "edges", "value": "position"},
}


@WAYS
@pytest.mark.parametrize("players", PLAYERS)
def test_every_field_comes_back(players: str, way: str, tmp_path: Path) -> None:
    found = explain(network("gcn"), graph("components"), **PLAYERS[players])
    again = restored(found, way, tmp_path)
    for key in set(found.keys()) - NOT_STORED:
        assert_same(found[key], again[key])
    assert again.to_dict() == found.to_dict()


@WAYS
@pytest.mark.parametrize("name", ["subgraphx", "random", "gnnexplainer"])
def test_other_methods_come_back(name: str, way: str, tmp_path: Path) -> None:
    found = create(name).explain(network("gcn"), graph("components"), seed=0)
    again = restored(found, way, tmp_path)
    assert_same(found.sets, again.sets)
    assert_same(found.node_mask, again.node_mask)
    assert again.to_dict() == found.to_dict()
    assert again.top(2).tolist() == found.top(2).tolist()


@WAYS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_types_of_numbers_are_kept(dtype: torch.dtype, way: str, tmp_path: Path) -> None:
    data = graph("components")
    data.x = data.x.to(dtype)
    found = explain(network("gcn").to(dtype), data)
    again = restored(found, way, tmp_path)
    assert found.prediction.dtype == again.prediction.dtype == dtype
    assert torch.equal(found.prediction, again.prediction)


@WAYS
def test_a_node_comes_back(way: str, tmp_path: Path) -> None:
    model = network("gcn")
    model.readout = None
    found = explain(model, graph("components"), task_level="node", index=1)
    again = restored(found, way, tmp_path)
    for key in ("scores", "players", "node_scores", "node_mask", "index", "target", "prediction"):
        assert_same(found[key], again[key])


@WAYS
@pytest.mark.parametrize("task", ["graph", "node"])
@pytest.mark.parametrize("edge_mask", [False, True])
def test_heterogeneous_graphs(task: str, edge_mask: bool, way: str, tmp_path: Path) -> None:
    data = small()
    if task == "graph":
        found = explain(seeded(OnGraphs), data, edge_mask=edge_mask)
    else:
        options: dict[str, Any] = {"task_level": "node", "node_type": "paper", "index": 1}
        found = explain(seeded(OnPapers), data, edge_mask=edge_mask, **options)
    again = restored(found, way, tmp_path)
    assert isinstance(again, HeteroExplanation)
    assert again.players == found.players
    assert_same(found.scores, again.scores)
    assert_same(found.std_errors, again.std_errors)
    assert_same(found.prediction, again.prediction)
    assert_same(found.target, again.target)
    for name in data.node_types:
        assert_same(found[name].node_scores, again[name].node_scores)
        assert_same(found[name].node_mask, again[name].node_mask)
    for relation in data.edge_types if edge_mask else ():
        assert_same(found[relation].edge_mask, again[relation].edge_mask)
    if task == "node":
        assert (again.node_type, again.index.tolist()) == ("paper", [1])
    assert again.to_dict() == found.to_dict()
    assert again.top(2) == found.top(2)


def test_what_is_no_explanation(tmp_path: Path) -> None:
    found = explain(seeded(OnGraphs), small())
    plain = explain(network("gcn"), graph("path"))
    with pytest.raises(ValueError, match=r"heterogeneous graph.*author.*HeteroExplanation"):
        Explanation.from_dict(found.to_dict())
    with pytest.raises(ValueError, match="not scores of a heterogeneous graph"):
        HeteroExplanation.from_dict(plain.to_dict())
    with pytest.raises(ValueError, match=r"those of to_dict.*no 'players'"):
        Explanation.from_dict({"x": 1})
    path = tmp_path / "other.pt"
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(ValueError, match=r"other\.pt holds no explanation"):
        Explanation.load(path)
    path.write_bytes(pickle.dumps(plain))
    with pytest.raises(Exception, match=r"[Ww]eights"):
        Explanation.load(path)


@pytest.mark.parametrize("content", [b"", b"import torch\n", b"PK\x03\x04 cut off"])
def test_a_file_of_another_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"notes\.txt holds no explanation") as caught:
        Explanation.load(path)
    assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("way", ["draw", "to_networkx", "visualize_graph"])
def test_without_a_graph_there_is_no_picture_of_it(way: str, tmp_path: Path) -> None:
    data = graph("components")
    found = explain(network("gcn"), data)
    found.save(tmp_path / "one.pt")
    again = Explanation.load(tmp_path / "one.pt")
    with pytest.raises(ValueError, match=r"has no graph.*explanation\.update\(data\)"):
        getattr(again, way)()
    assert again._repr_svg_() is None
    again.update(data)
    assert again.draw().svg == found.draw().svg
    assert again.to_networkx().edges == found.to_networkx().edges


def test_a_graph_can_be_added_for_a_picture(tmp_path: Path) -> None:
    from gstarx.drawing import draw

    data = graph("components")
    found = explain(network("gcn"), data)
    found.save(tmp_path / "one.pt")
    assert draw(data, Explanation.load(tmp_path / "one.pt")).svg == draw(data, found).svg


def test_pickles_and_copies_stay_light_and_the_same() -> None:
    count = 5_000
    ring = torch.arange(count)
    data = Data(x=torch.ones(count, 4), edge_index=torch.stack([ring, (ring + 1) % count]))
    model = network("gcn")
    model.readout = None
    found = explain(model, data, task_level="node", index=3, edge_mask=True)
    again = pickle.loads(pickle.dumps(found))
    for one in (again, found.clone()):
        for key in ("node_scores", "node_mask", "edge_mask", "target", "prediction"):
            assert_same(found[key], one[key])
    bare = copy.copy(found)
    for key in ("x", "edge_index", "prediction", "batch"):
        bare[key] = None
    assert len(pickle.dumps(bare)) < 20_000
