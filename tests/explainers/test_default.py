"""What is computed if nothing is said: the Myerson value with the baseline of singletons."""

from __future__ import annotations

import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import global_add_pool, global_mean_pool

from gstarx import HN, GNNGame, GStarX, Task, explain, explain_many, explain_nodes
from gstarx.datasets import load
from gstarx.explainers import create
from gstarx.models import GCN, pretrained
from gstarx.players import Groups
from gstarx_bench.runs import RunSpec, read, run
from tests.explainers.small import FEATURES, graph, network

WRITTEN_OUT: dict[str, Any] = {"value": "myerson", "baseline": "singletons"}
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
CONSTANT = "outputs for all evaluated parts of the graph are about equal and far from"


def test_every_entry_point_has_the_same_default() -> None:
    model, data = pretrained("nitro")[0], load("nitro")[0]
    expected = explain(model, data, **WRITTEN_OUT)
    inside = Explainer(
        model,
        algorithm=GStarX(),
        explanation_type="model",
        node_mask_type="object",
        model_config=CONFIG,
    )
    (many,) = explain_many(model, [data], progress=False)
    found = {
        "explain": explain(model, data),
        "explain_many": many,
        "GStarX": GStarX().explain(model, data),
        "PyG": inside(data.x, data.edge_index),
        "gstarx": create("gstarx").explain(model, data),
        "myerson": create("myerson").explain(model, data),
    }
    for name, one in found.items():
        assert torch.equal(one.scores, expected.scores), name
        assert (one.value, one.baseline_source) == ("myerson", "singletons"), name


def test_hn_has_the_same_baseline() -> None:
    model, data = network("gcn"), graph("path")
    expected = explain(model, data, value="hn", baseline="singletons")
    for one in (explain(model, data, value="hn"), create("hn").explain(model, data)):
        assert torch.equal(one.scores, expected.scores)
        assert (one.value, one.baseline_source) == ("hn", "singletons")


def test_a_game_has_no_value_to_choose_its_baseline() -> None:
    assert GNNGame(network("gcn"), graph("path")).payoff.baseline_source == "uniform"


@pytest.mark.parametrize("value", ["hn", "myerson"])
def test_where_no_player_can_be_absent_from_the_baseline_it_stays(value: str) -> None:
    data = graph("path")
    nodes = GCN(FEATURES, 8, 2, readout=None)
    of_node = explain(nodes, data, index=2, value=value, task="node")
    assert of_node.baseline_source == "isolated target"
    (listed,) = explain_nodes(nodes, data, [2], value=value, progress=False)
    assert listed.baseline_source == "isolated target"
    model = network("gcn")
    for players in ("edges", "features"):
        found = explain(model, data, value=value, players=players)
        assert found.baseline_source == "no player present", players
    groups: dict[str, Any] = {"players": [[0, 1], [2]], "value": value}
    assert explain(model, data, **groups).baseline_source == "singletons"
    kept = explain(model, data, value=value, players=Groups([[0, 1], [2]], rest="present"))
    assert kept.baseline_source == "no player present"
    covered = explain(model, data, value=value, players=Groups([[0, 1], [2, 3, 4]], rest="present"))
    assert covered.baseline_source == "singletons"


def test_scores_of_every_component_sum_to_its_payoff_minus_the_baseline() -> None:
    model, data = network("gin"), graph("components")
    one = explain(model, data)
    game = GNNGame(model, data, payoff="prob", baseline=0.0, target=one.target_class)
    parts = game.graph.component_coalitions
    assert len(parts) > 1
    for part, payoff in zip(parts, game(parts), strict=True):
        total = float(one.scores.numpy()[part].sum())
        assert total == pytest.approx(payoff - one.baseline[0], abs=1e-6)


# the paper's baselines, a word away


@pytest.mark.filterwarnings(f"ignore:.*{CONSTANT}")
def test_uniform_is_a_word() -> None:
    model, data = network("gcn"), graph("path")
    one, other = (explain(model, data, value="hn", baseline=b) for b in ("uniform", 0.5))
    assert torch.equal(one.scores, other.scores)
    assert (one.baseline, one.baseline_source) == ([0.5], "uniform")
    for value in ("shapley", "banzhaf"):
        by_default = explain(model, data, value=value)
        assert by_default.baseline_source == "uniform"
        same = explain(model, data, value=value, baseline="uniform")
        assert torch.equal(by_default.scores, same.scores)
    logit = explain(GCN(FEATURES, 8, 1), data, target=1, baseline="uniform", task="binary")
    assert logit.baseline == [0.5]


@pytest.mark.parametrize(
    "options", [{"payoff": "raw"}, {"payoff": "log_prob"}, {"task": "regression", "target": 0}]
)
def test_uniform_is_a_probability(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is a probability, for payoff='norm_prob' or 'prob'"):
        explain(network("gcn"), graph("path"), baseline="uniform", **options)


# what a baseline leaves


class Constant(nn.Module):
    """Says the same of every graph, or about the same."""

    def __init__(self, scale: float = 0.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        own = self.scale * global_mean_pool(x[:, :1], batch)
        return torch.cat([own, own.new_full(own.shape, 2.0)], dim=1)


@pytest.mark.parametrize("scale", [0.0, 0.01])
def test_nothing_is_made_of_a_constant_by_default(scale: float) -> None:
    data = graph("path")
    for value in ("myerson", "hn"):
        one = explain(Constant(scale), data, value=value)
        assert one.scores.abs().max() <= 1e-6 + scale
        for baseline in ("uniform", 0.1, [0.9, 0.1]):
            with pytest.warns(UserWarning, match=CONSTANT):
                constant = explain(Constant(scale), data, value=value, baseline=baseline)
            assert constant.scores.abs().max() > 0.04


def test_all_values_warn_of_a_constant_that_they_divide() -> None:
    data = graph("path")
    for options in (
        {"value": "shapley"},
        {"value": "banzhaf"},
        {"value": "position", "players": "edges"},
        {"value": "shapley", "payoff": "prob"},
        {"value": HN(two_sided=True), "baseline": 0.0},
    ):
        with pytest.warns(UserWarning, match=CONSTANT):
            explain(Constant(), data, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            explain(Constant(), data, **{**options, "baseline": "singletons"})


def test_banzhaf_values_hardly_divide_a_constant() -> None:
    data = graph("path")
    with pytest.warns(UserWarning, match=CONSTANT):
        explain(Constant(0.5), data, value="shapley")
    # five players share 5/16 of it
    fine = explain(Constant(0.5), data, value="banzhaf")
    exact = explain(Constant(0.5), data, value="banzhaf", baseline="singletons")
    constant = abs(fine.baseline[0] - exact.baseline[0])
    assert (fine.scores - exact.scores).abs().max() == pytest.approx(constant / 16, abs=1e-9)


def test_a_baseline_that_the_model_was_asked_for_leaves_no_constant() -> None:
    class Connected(nn.Module):
        """Says yes to a node with any neighbor."""

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            any_edge = torch.zeros(len(x)).index_fill(0, edge_index[1], 1.0)
            return torch.stack([-3 * any_edge, 3 * any_edge], dim=1)

    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 2], [1, 1]]))
    one = explain(Connected(), data, index=1, task="node")
    assert one.scores.sum() > 0.4


# one player


def test_one_player_scores_zero_and_the_result_says_why() -> None:
    alone = Data(x=torch.ones(1, FEATURES), edge_index=torch.zeros((2, 0), dtype=torch.long))
    with pytest.warns(UserWarning, match=r"only one player, which is its own baseline.*'uniform'"):
        one = explain(network("gcn"), alone)
    assert one.scores.tolist() == [0.0]
    assert one.baseline_source == "the only player"
    assert one.to_dict()["baseline_source"] == "the only player"
    scored = explain(network("gcn"), alone, baseline="uniform")
    assert scored.scores.tolist() != [0.0]
    with pytest.warns(UserWarning, match="only one player"):
        group = explain(network("gcn"), graph("path"), players=[[0, 1, 2, 3, 4]])
    assert group.scores.tolist() == [0.0]


# regressions


class Offset(nn.Module):
    """An intercept, and a sum over nodes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return 120 + global_add_pool(x[:, :1], batch)


@pytest.mark.parametrize(
    "options",
    [
        *({"value": value} for value in ("myerson", "hn", "shapley", "banzhaf")),
        {"value": "position", "players": "edges"},
        {"value": "shapley", "players": [[0, 1], [2]]},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_an_intercept_is_not_shared_out(options: dict[str, Any]) -> None:
    data = Data(x=torch.tensor([[1.0], [2.0], [6.0]]), edge_index=PATH)
    one = explain(Offset(), data, task="regression", **options)
    assert one.baseline_source == "singletons"
    assert one.scores.abs().max() < 9
    same = explain(Offset(), data, baseline="singletons", task="regression", **options)
    assert torch.equal(one.scores, same.scores)


def test_a_regression_of_nodes_keeps_the_isolated_node() -> None:
    class OfNodes(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return 120 + x.index_add(0, edge_index[1], x[edge_index[0]])

    data = Data(x=torch.tensor([[1.0], [2.0], [6.0]]), edge_index=PATH)
    task = Task(mode="regression", task_level="node")
    one = explain(OfNodes(), data, value="shapley", task=task, index=1)
    assert one.baseline_source == "isolated target"
    np.testing.assert_allclose(one.scores.sum(), 7.0, atol=1e-4)


def test_runs_have_the_same_default_and_other_names_than_before(tmp_path: Path) -> None:
    weights = str(files("gstarx.models") / "trained" / "nitro-gcn.safetensors")
    data = load("nitro")

    def rows(explainer: Any, **more: Any) -> Any:
        spec = RunSpec(
            **{"dataset": "nitro", "model": weights, "split": "all", "graphs": (0,)},
            explainer=explainer,
            **more,
        )
        report = run(spec, tmp_path, workers=1, progress=False)
        return report.run, read(tmp_path, run=report.run)["scores"][0].as_py()

    name, scores = rows("gstarx")
    model = pretrained("nitro")[0]
    assert scores == explain(model, data[0], **WRITTEN_OUT).scores.tolist()
    assert scores == rows("gstarx", baseline="singletons")[1]
    assert rows({"name": "gstarx", "options": {"value": "myerson"}}) == (name, scores)
    former, other = rows("hn", baseline="uniform")
    assert other == explain(model, data[0], value="hn", baseline="uniform").scores.tolist()
    assert former != name
