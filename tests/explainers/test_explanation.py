"""The one result type: what PyG's tools, JSON, pandas, networkx and notebooks take of it."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.metric import characterization_score, fidelity, unfaithfulness

import gstarx
from gstarx import Explanation, explain, explain_many, hn_value
from gstarx.explainers import create
from gstarx.gnn import GNNGame
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from tests.pairs import for_each, in_turn
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

GRAPH_TASK = {
    "mode": "multiclass_classification",
    "task_level": "graph",
    "return_type": "raw",
}
NODE_TASK = {**GRAPH_TASK, "task_level": "node"}


def network(**options: Any) -> GCN:
    torch.manual_seed(0)
    return GCN(FEATURES, 8, CLASSES, **options).eval()


def plain(name: str = "ring") -> Data:
    data = graph("ring")
    edges = data.edge_index
    if name == "path":
        one_way = torch.stack([torch.arange(5), torch.arange(1, 6)])
        edges = torch.cat([one_way, one_way.flip(0)], dim=1)
    return Data(x=data.x, edge_index=edges)


def pyg_explainer(model: Any, task: dict[str, str]) -> Explainer:
    return Explainer(
        model,
        algorithm=gstarx.GStarX(),
        explanation_type="model",
        node_mask_type="object",
        model_config=task,
    )


def test_all_entry_points_return_it() -> None:
    model, data = network(), plain()
    one = explain(model, data)
    (many,) = explain_many(model, [data], progress=False)
    created = create("gstarx").explain(model, data)
    inside = pyg_explainer(model, GRAPH_TASK)(data.x, data.edge_index)
    for found in (one, many, created, inside):
        assert type(found) is Explanation
        assert isinstance(found, PyGExplanation)
        assert found.validate()
        assert torch.equal(found.scores, one.scores)
        assert found.method == "gstarx"
    assert [create(name).explain(model, data).method for name in ("myerson", "random")] == [
        "myerson",
        "random",
    ]


def test_scores_are_never_rounded() -> None:
    model, data = network().double(), plain()
    data.x = data.x.double()
    game = GNNGame(model, data)
    exact = hn_value(game, game.graph).values
    how = {"value": "hn", "baseline": "uniform"}
    for found in (explain(model, data, **how), create("gstarx", **how).explain(model, data)):
        assert found.scores.dtype == torch.float64
        np.testing.assert_array_equal(found.scores.numpy(), exact)
        assert found.node_mask.dtype == torch.float32
        assert found.node_mask.shape == (data.num_nodes, 1)
        assert not found.std_errors.any()


def test_standard_errors_that_are_unknown_are_nan() -> None:
    found = create("graphsvx").explain(network(), plain(), seed=0)
    assert found.std_errors.isnan().all()
    assert found.exact is None
    assert found.worth is None
    exact = create("leave_one_out").explain(network(), plain())
    assert exact.exact
    assert not exact.std_errors.any()


def test_players_of_a_node_task() -> None:
    model = network(readout=None)
    data = plain("path")
    found = explain(model, data, index=0, task="node", game=gstarx.GameOptions(num_hops=1))
    assert found.players.tolist() == [0, 1]
    assert found.scores.shape == (2,)
    assert found.node_scores.shape == (data.num_nodes,)
    assert torch.equal(found.node_scores[found.players], found.scores)
    assert set(found.select(size=1).tolist()) <= {0, 1}
    assert found.select(sparsity=0.5).tolist() == found.select(size=1).tolist()


@for_each(
    ("name", "level"),
    in_turn(["gstarx", "leave_one_out", "gnnexplainer", "subgraphx"], ["graph", "node"]),
)
def test_pygs_metrics_take_it(name: str, level: str) -> None:
    model = network(readout=None) if level == "node" else network()
    data = plain()
    explainer = create(name, **({"epochs": 5} if name == "gnnexplainer" else {}))
    where: dict[str, Any] = {"index": 2} if level == "node" else {}
    ours = explainer.explain(model, data, seed=0, task=level, **where)
    task = NODE_TASK if level == "node" else GRAPH_TASK
    wrapped = pyg_explainer(model, task)
    theirs = wrapped(data.x, data.edge_index, **where)
    torch.testing.assert_close(ours.prediction, theirs.prediction)
    assert torch.equal(ours.target, theirs.target)
    assert ours.get("index") == theirs.get("index")
    hard = ours.threshold("topk_hard", 3)
    found = fidelity(wrapped, hard)
    score = characterization_score(*(torch.tensor(one) for one in found))
    assert set(found) <= {0.0, 1.0}
    assert 0 <= score <= 1
    assert 0 <= unfaithfulness(wrapped, hard) <= 1
    if name == "gstarx":
        theirs = theirs.threshold("topk_hard", 3)
        assert fidelity(wrapped, theirs) == found
        assert unfaithfulness(wrapped, theirs) == unfaithfulness(wrapped, hard)


def test_pygs_metrics_know_the_models_arguments() -> None:
    model, data = network(), graph("messy")
    found = explain(model, data)
    assert "edge_weight" in found._model_args
    wrapped = pyg_explainer(model, GRAPH_TASK)
    fidelity(wrapped, found.threshold("topk_hard", 3))
    kwargs = {key: found[key] for key in found._model_args}
    torch.testing.assert_close(model(found.x, found.edge_index, **kwargs), found.prediction)


def test_the_subgraph_and_pygs_picture(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    found = explain(network(), plain())
    kept = found.get_explanation_subgraph()
    assert kept.num_nodes == int((found.scores > 0).sum())
    assert torch.equal(kept.scores, found.scores[found.scores > 0])
    assert "edge_mask" not in found
    path = tmp_path / "graph.png"
    found.visualize_graph(str(path), backend="networkx")
    assert path.stat().st_size > 1000
    assert "edge_mask" not in found


@for_each("name", ["gstarx", "subgraphx", "random"])
def test_as_a_dictionary(name: str) -> None:
    found = create(name).explain(network(), plain(), seed=0)
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["method"] == name
    assert said["players"] == list(range(found.num_nodes))
    if name == "subgraphx":
        assert said["scores"] is None
        assert said["sets"][0] == found.sets[0].tolist()
    else:
        assert said["scores"] == found.scores.tolist()
    assert (said["std_errors"] is None) == (name != "gstarx")
    assert said["prediction"] == found.prediction.tolist()
    assert found.inputs == ("x", "edge_index", "batch", "batch_size")
    assert said["inputs"] == list(found.inputs)
    assert not said.get("fixed")
    if name == "gstarx":
        assert (said["value"], said["two_sided"]) == ("myerson", False)
        assert said["baseline_source"] == "singletons"


def test_as_a_table() -> None:
    found = explain(network(), plain())
    frame = found.to_frame()
    assert list(frame.columns) == ["node", "score", "std_error"]
    assert frame["node"].tolist() == found.top(found.num_nodes).tolist()
    several = explain(network(), plain(), target=[2, 0]).to_frame()
    assert list(several.columns) == ["node", "score_2", "score_0", "std_error_2", "std_error_0"]
    sets = create("subgraphx").explain(network(), plain(), seed=0).to_frame()
    assert list(sets.columns) == ["rank", "node"]


def test_as_a_networkx_graph() -> None:
    data = plain()
    found = explain(network(), data).score_edges()
    made = found.to_networkx()
    assert made.number_of_nodes() == data.num_nodes
    assert made.nodes[2]["score"] == float(found.scores[2])
    a, b = data.edge_index[:, 0].tolist()
    expected = float(found.scores[a] + found.scores[b]) / 2
    assert made.edges[a, b]["score"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["gstarx", "subgraphx"])
def test_in_a_notebook(name: str) -> None:
    found = create(name).explain(network(), plain(), seed=0)
    assert found.draw().svg.startswith("<svg")
    page = found._repr_html_()
    assert "<svg" in page
    assert name in page
    several = explain(network(), plain(), target="all")
    with pytest.raises(ValueError, match=r"scores for 3 targets: choose one with for_target"):
        several.draw()
    with pytest.raises(ValueError, match=r"target must be one of \[0, 1, 2\] \(got 7\)"):
        several.for_target(7)


def test_a_copy_is_independent() -> None:
    found = explain(network(), plain())
    other = copy.copy(found)
    other.scores[0] = 5  # a copy is shallow, as PyG's are
    other.method = "changed"
    assert found.method == "gstarx"
    deep = copy.deepcopy(found)
    deep.scores[1] = 7
    assert found.scores[1] != 7


def test_the_gap_selects_what_is_above_noise() -> None:
    scores, errors = np.array([0.1, 0.9, 0.0, 0.8]), np.array([0.0, 0.5, 0.0, 0.1])
    exact = Explanation.from_scores(scores, num_nodes=4)
    assert exact.select(rule="gap").tolist() == [1, 3]
    sampled = Explanation.from_scores(scores, num_nodes=4, std_errors=errors)
    assert sampled.select(rule="gap").tolist() == [3]
    assert Explanation.from_scores(-scores, num_nodes=4).select(rule="gap").tolist() == []
    sets = [np.array([2, 0]), np.array([1])]
    assert Explanation.from_scores(None, num_nodes=4, sets=sets).select(rule="gap").tolist() == [
        0,
        2,
    ]
    with pytest.raises(TypeError, match=r"give neither sparsity nor size \(got sparsity=0.5"):
        exact.select(sparsity=0.5, rule="gap")


def test_selections_along_the_edges() -> None:
    found = explain(network(), plain("path"))
    chosen = found.select(size=3, rule="connected")
    assert np.diff(chosen).tolist() == [1, 1]
    assert found.top(1)[0] in chosen


def test_the_explainers_own_seed_counts() -> None:
    model, data = network(), plain()
    options: dict[str, Any] = {"value": gstarx.Shapley(estimator="sampled"), "budget": 40}
    first, again = (gstarx.GStarX(seed=0, **options).explain(model, data) for _ in range(2))
    other = gstarx.GStarX(seed=1, **options).explain(model, data)
    assert torch.equal(first.scores, again.scores)
    assert not torch.equal(first.scores, other.scores)
    given = gstarx.GStarX(seed=1, **options).explain(model, data, seed=0)
    assert torch.equal(first.scores, given.scores)


def test_the_numbers_of_a_payoff_are_not_classes() -> None:
    model, data = network(), plain()
    predicted = model(data.x, data.edge_index).argmax(dim=1)
    for payoff in (lambda out: out.amax(dim=1), lambda out: out[:, :2]):
        found = explain(model, data, payoff=payoff, baseline=0.0)
        assert torch.equal(found.target, predicted)
        for number in found.explained:
            assert torch.equal(found.for_target(number).target, predicted)
    other = (int(predicted) + 1) % CLASSES
    assert explain(model, data, target=other).target.tolist() == [other]
