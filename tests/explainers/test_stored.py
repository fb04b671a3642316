"""The one dictionary of an explanation, and files of it: the same numbers of the same types."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import gstarx
from gstarx import Explanation, HeteroExplanation, explain
from gstarx.explainers import create
from gstarx.players import Edges, Features, Groups, Nodes
from tests.explainers.small import graph, network
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

#: Of the graph, not of the explanation.
OF_THE_GRAPH = {"x", "edge_index", "batch", "hetero", "node_id", "edge_id", "node_type"}
VALID = jsonschema.Draft202012Validator(gstarx.schema())


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


def restored(found: Any, directory: Path) -> Any:
    """The explanation again, from a file that holds exactly the dictionary."""
    stored = found.to_dict()
    VALID.validate(stored)
    path = directory / "explanation.json"
    found.save(path)
    assert json.loads(path.read_text()) == stored
    assert type(found).from_dict(stored).to_dict() == stored
    return type(found).load(path)


def of_a_node(**options: Any) -> Explanation:
    model = network("gcn")
    model.readout = None
    return explain(model, graph("components"), index=1, task="node", **options)


def of_doubles() -> Explanation:
    data = graph("components")
    data.x = data.x.double()
    return explain(network("gcn").double(), data)


def on(**options: Any) -> Explanation:
    return explain(network("gcn"), graph("components"), **options)


def by(name: str) -> Explanation:
    return create(name).explain(network("gcn"), graph("components"), seed=0)


MADE: dict[str, Any] = {
    "nodes": on,
    "several targets": lambda: on(target=[0, 1]).score_edges(),
    "estimated": lambda: on(value="shapley", budget=20, seed=0),
    "with edges": lambda: on().score_edges(),
    "edges": lambda: on(players="edges"),
    "directed edges": lambda: on(players=Edges(directed=True)),
    "position": lambda: on(players="edges", value="position"),
    "groups": lambda: on(players=[[0, 1], [2, 3]]).score_edges(),
    "named groups": lambda: on(players=Groups([{0}, {2, 3}], names=["a", "b"], rest="present")),
    "features": lambda: on(players="features"),
    "feature groups": lambda: on(
        players=Features(groups={"a": [0, 2]}, reference=[graph("path")], draws=2)
    ),
    "a node": of_a_node,
    "edges of a node": lambda: of_a_node(players="edges"),
    "doubles": of_doubles,
    "subgraphx": lambda: by("subgraphx"),
    "random": lambda: by("random"),
    "gnnexplainer": lambda: by("gnnexplainer"),
}


@pytest.mark.parametrize("name", MADE)
def test_every_field_comes_back(name: str, tmp_path: Path) -> None:
    found = MADE[name]()
    again = restored(found, tmp_path)
    for key in set(found.keys()) - OF_THE_GRAPH - {"player_spec"}:
        assert_same(found[key], again[key])
    if name != "feature groups":  # data to draw from becomes its rows
        assert found.get("player_spec") == again.get("player_spec")
    if len(found.explained) > 1:
        found, again = found.for_target(1), again.for_target(1)
        assert_same(found.edge_mask, again.edge_mask)
    assert again.top(2).tolist() == found.top(2).tolist()
    if found.player_kind != "nodes":
        assert again.nodes_of([0]).tolist() == found.nodes_of([0]).tolist()


def test_data_that_features_are_drawn_from_becomes_rows() -> None:
    again = Explanation.from_dict(MADE["feature groups"]().to_dict())
    assert torch.equal(torch.tensor(again.player_spec.reference), graph("path").x)
    assert dict(again.player_spec.groups) == {"a": [0, 2]}


@pytest.mark.parametrize("task", ["graph", "node"])
@pytest.mark.parametrize("edge_mask", [False, True])
def test_heterogeneous_graphs(task: str, edge_mask: bool, tmp_path: Path) -> None:
    data = small()
    types = ("author", "paper")
    if task == "graph":
        players = Nodes(types=types, relations=("writes",))
        found = explain(seeded(OnGraphs), data, players=players)
    else:
        of_paper = {"task_level": "node", "node_type": "paper"}
        found = explain(seeded(OnPapers), data, players=Nodes(types), task=of_paper, index=1)
    if edge_mask:
        found = found.score_edges()
    again = restored(found, tmp_path)
    assert isinstance(again, HeteroExplanation)
    assert again.players == found.players
    for key in set(found.view.keys()) - OF_THE_GRAPH:
        assert_same(found.view[key], again.view[key])
    for name in data.node_types:
        assert_same(found[name].node_scores, again[name].node_scores)
        assert_same(found[name].node_mask, again[name].node_mask)
    for relation in data.edge_types if edge_mask else ():
        assert_same(found[relation].edge_mask, again[relation].edge_mask)
    if task == "node":
        assert (again.node_type, again.index.tolist()) == ("paper", [1])
    assert_same(found.target, again.target)
    assert again.top(2) == found.top(2)


def test_outputs_of_other_nodes_may_be_left_out() -> None:
    task = {"task_level": "node", "node_type": "paper"}
    for found in (of_a_node(), explain(seeded(OnPapers), small(), task=task, index=1)):
        stored = found.to_dict(all_outputs=False)
        VALID.validate(stored)
        assert "prediction" not in stored
        again = type(found).from_dict(stored)
        assert again.prediction.shape == found.prediction.shape
        assert torch.equal(again.prediction[1], found.prediction[1])
        assert int(again.prediction.isnan().all(dim=1).sum()) == len(found.prediction) - 1
        assert again.target[1] == found.target[1]
        assert set(again.target.tolist()) <= {-1, int(found.target[1])}
        assert again.to_dict(all_outputs=False) == stored


def test_infinite_outputs_stay_infinite() -> None:
    found = on()
    found.prediction = torch.tensor([[0.0, -torch.inf]])
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    VALID.validate(stored)
    assert torch.equal(Explanation.from_dict(stored).prediction, found.prediction)


def test_the_schema_refuses_what_it_does_not_know() -> None:
    jsonschema.Draft202012Validator.check_schema(gstarx.schema())
    stored = on().to_dict()
    for wrong in ({"format": 0}, {"scores": ["a"]}, {"unknown": 1}, {"player_kind": "atoms"}):
        assert not VALID.is_valid({**stored, **wrong})
    assert not VALID.is_valid({name: stored[name] for name in stored if name != "players"})


def test_what_is_no_explanation(tmp_path: Path) -> None:
    found = explain(seeded(OnGraphs), small())
    plain = on()
    with pytest.raises(ValueError, match=r"heterogeneous graph.*author.*HeteroExplanation"):
        Explanation.from_dict(found.to_dict())
    with pytest.raises(ValueError, match="not scores of a heterogeneous graph"):
        HeteroExplanation.from_dict(plain.to_dict())
    with pytest.raises(ValueError, match=r"those of to_dict.*no 'format'"):
        Explanation.from_dict({"x": 1})
    with pytest.raises(ValueError, match="has format 0, and this version reads 1"):
        Explanation.from_dict({**plain.to_dict(), "format": 0})
    path = tmp_path / "other.json"
    contents = (b"", b"import torch\n", b"PK\x03\x04 cut off", b"[1]", b"{}", pickle.dumps(plain))
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"other\.json holds no explanation"):
            Explanation.load(path)


def test_without_a_graph_there_is_no_picture_of_it(tmp_path: Path) -> None:
    from gstarx.drawing import draw

    data = graph("components")
    found = explain(network("gcn"), data)
    again = restored(found, tmp_path)
    assert draw(data, again).svg == draw(data, found).svg
    for way in ("draw", "to_networkx", "visualize_graph"):
        with pytest.raises(ValueError, match=r"has no graph.*explanation\.update\(data\)"):
            getattr(again, way)()
    assert again._repr_svg_() is None
    again.update(data)
    assert again.draw().svg == found.draw().svg
    assert again.to_networkx().edges == found.to_networkx().edges


def test_pickles_and_copies_stay_light_and_the_same() -> None:
    count = 5_000
    ring = torch.arange(count)
    data = Data(x=torch.ones(count, 4), edge_index=torch.stack([ring, (ring + 1) % count]))
    model = network("gcn")
    model.readout = None
    found = explain(model, data, index=3, task="node").score_edges()
    again = pickle.loads(pickle.dumps(found))
    for one in (again, found.clone()):
        for key in ("node_scores", "node_mask", "edge_mask", "target", "prediction"):
            assert_same(found[key], one[key])
    bare = copy.copy(found)
    for key in ("x", "edge_index", "prediction", "batch"):
        bare[key] = None
    assert len(pickle.dumps(bare)) < 20_000
