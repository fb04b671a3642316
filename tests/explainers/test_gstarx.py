"""GStarX inside PyG's Explainer: every mode, return type and task, and what it refuses."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.nn import GCNConv, global_mean_pool

from gstarx import (
    Contrast,
    GameOptions,
    GNNGame,
    GStarX,
    Passes,
    explain,
    hn_value,
    myerson_value,
    shapley_value,
)
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, GINE, ByKeyword
from tests.gnn.one_by_one import graph
from tests.pairs import for_each, in_turn
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

GRAPH = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class Any1(nn.Module):
    """A network at any level, with outputs of any kind."""

    def __init__(self, level: str, mode: str, return_type: str) -> None:
        super().__init__()
        self.level, self.mode, self.return_type = level, mode, return_type
        columns = CLASSES if mode == "multiclass_classification" else 1
        self.net = GCN(FEATURES, 8, columns, num_layers=2, readout=None)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_label_index: Tensor | None = None,
    ) -> Tensor:
        out = 3 * self.net(x, edge_index) - 1
        if self.level == "graph":
            out = global_mean_pool(out, batch)
        if edge_label_index is not None:
            out = out[edge_label_index[0]] + out[edge_label_index[1]] ** 2
        if self.return_type == "raw":
            return out
        if self.mode == "binary_classification":
            return out.sigmoid()
        return out.softmax(-1) if self.return_type == "probs" else out.log_softmax(-1)


def explainer(
    model: nn.Module,
    config: dict[str, str],
    *,
    kind: str = "model",
    edges: bool = False,
    threshold: Any = None,
    **options: Any,
) -> Explainer:
    return Explainer(
        model,
        algorithm=GStarX(**options),
        explanation_type=kind,
        node_mask_type="object",
        edge_mask_type="object" if edges else None,
        model_config=config,
        threshold_config=threshold,
    )


TASKS = [
    (mode, return_type)
    for mode, returned in {
        "multiclass_classification": ("raw", "probs", "log_probs"),
        "binary_classification": ("raw", "probs"),
        "regression": ("raw",),
    }.items()
    for return_type in returned
]


@pytest.mark.parametrize(
    ("task", "level", "kind"),
    in_turn(TASKS, ["graph", "node", "edge"], ["model", "phenomenon"], each=2),
)
def test_every_task_is_explained_as_by_the_plain_function(
    task: tuple[str, str], level: str, kind: str
) -> None:
    mode, return_type = task
    torch.manual_seed(3)
    data, config = graph("messy"), {"mode": mode, "task_level": level, "return_type": return_type}
    model = Any1(level, mode, return_type)
    extra: dict[str, Any] = {}
    if level != "graph":
        extra["index"] = 2
    if level == "edge":
        extra["edge_label_index"] = torch.tensor([[0, 1, 4], [3, 2, 2]])
    with torch.no_grad():
        out = model(data.x, data.edge_index, edge_label_index=extra.get("edge_label_index"))
    at = out[extra.get("index", 0)]
    if mode == "multiclass_classification":
        predicted = int(at.argmax())
    else:
        predicted = int(at > (0 if return_type == "raw" else 0.5))
    wanted, target = predicted, None
    if kind == "phenomenon":
        wanted = (predicted + 1) % (CLASSES if mode == "multiclass_classification" else 2)
        target = torch.tensor([wanted])
    if mode == "regression":
        wanted, target = 0, out if kind == "phenomenon" else None
    found = explainer(model, config, kind=kind)(data.x, data.edge_index, target=target, **extra)
    plain = Data(x=data.x, edge_index=data.edge_index)
    if level == "edge":
        plain.edge_label_index = extra["edge_label_index"]
    expected = explain(model, plain, target=wanted, index=extra.get("index"), task=config)
    assert isinstance(found, Explanation)
    assert found.node_mask.shape == (7, 1)
    assert torch.equal(found.node_mask, expected.node_mask)
    assert found.node_mask.abs().max() > 1e-4
    assert found.explained == [wanted]
    # and it is the worth that is shared out, component by component
    assert found.node_mask.sum().item() == pytest.approx(found.component_worth.item(), abs=1e-5)


def test_a_target_for_every_node() -> None:
    torch.manual_seed(0)
    data, config = graph("messy"), {**GRAPH, "task_level": "node"}
    model = Any1("node", "multiclass_classification", "raw")
    targets = torch.arange(7) % CLASSES
    found = explainer(model, config, kind="phenomenon")(
        data.x, data.edge_index, target=targets, index=torch.tensor(4)
    )
    assert found.explained == [4 % CLASSES]


def test_what_comes_with_the_scores() -> None:
    torch.manual_seed(0)
    data, model = graph("messy"), GCN(FEATURES, 8, CLASSES)
    how = {"value": "hn", "baseline": "uniform"}
    found = explainer(model, GRAPH, **how)(data.x, data.edge_index)
    connected = GNNGame(model, Data(x=data.x, edge_index=data.edge_index)).graph
    count = connected.count_connected_coalitions()
    assert found.exact is True
    assert found.converged is True
    assert found.estimator == "exact"
    assert found.value == "hn"
    assert found.payoff == "norm_prob"
    assert found.baseline == [1 / CLASSES]
    assert found.baseline_source == "uniform"
    assert found.residual < 1e-9
    assert found.evaluations == count + 1  # the graph is disconnected: the whole is one more
    assert found.batch_nodes > 0
    assert found.players.tolist() == list(range(7))
    assert found.std_errors.shape == (7,)
    assert not found.std_errors.any()
    assert found.worth.shape == found.component_worth.shape == (1,)
    assert found.worth.item() != pytest.approx(found.component_worth.item(), abs=1e-3)
    with torch.no_grad():
        probability = model(data.x, data.edge_index).softmax(-1)[0].max().item()
    assert found.worth.item() == pytest.approx(probability - 1 / CLASSES, abs=1e-6)


def test_keyword_arguments_arrive() -> None:
    torch.manual_seed(0)
    data, model = graph("messy"), GINE()
    found = explainer(model, GRAPH)(data.x, data.edge_index, edge_attr=data.edge_attr)
    del data.edge_weight
    assert torch.equal(found.node_mask, explain(model, data).node_mask)
    assert torch.equal(found.edge_attr, data.edge_attr)
    data = graph("messy")
    many: Any = ByKeyword()
    names = ("pos", "charges", "edge_weight", "u", "scale", "bond_length_of_edge")
    given = {name: data[name] for name in names}
    alone = torch.zeros(7, dtype=torch.long)
    found = explainer(many, GRAPH)(data.x, data.edge_index, batch=alone, **given)
    assert torch.equal(found.node_mask, explain(many, data).node_mask)


def test_only_what_was_passed_is_passed_on() -> None:
    """An argument that the call does not name keeps its default."""
    torch.manual_seed(0)
    data, model = graph("ring"), GCN(FEATURES, 8, CLASSES)
    bare = explainer(model, GRAPH)(data.x, data.edge_index)
    weighted = explainer(model, GRAPH)(data.x, data.edge_index, edge_weight=data.edge_weight)
    nothing = explainer(model, GRAPH)(data.x, data.edge_index, edge_weight=None)
    assert torch.equal(bare.node_mask, nothing.node_mask)
    assert not torch.allclose(bare.node_mask, weighted.node_mask)


def test_a_wrapped_model_gets_the_batch_it_was_called_with() -> None:
    class Insisting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = GCN(FEATURES, 8, CLASSES)

        def forward(self, *args: Any, **kwargs: Any) -> Tensor:
            assert isinstance(kwargs["batch"], Tensor)
            return self.net(*args, **kwargs)

    torch.manual_seed(0)
    data, model = graph("ring"), Insisting()
    alone = torch.zeros(6, dtype=torch.long)
    found = explainer(model, GRAPH)(data.x, data.edge_index, batch=alone)
    expected = explainer(model.net, GRAPH)(data.x, data.edge_index)
    assert torch.allclose(found.node_mask, expected.node_mask, atol=1e-6)


def test_an_edge_mask_on_request() -> None:
    torch.manual_seed(0)
    data, model = graph("messy"), GCN(FEATURES, 8, CLASSES)
    assert "edge_mask" not in explainer(model, GRAPH)(data.x, data.edge_index)
    found = explainer(model, GRAPH, edges=True)(data.x, data.edge_index)
    scores = found.node_mask[:, 0]
    expected = [(scores[a] + scores[b]).item() / 2 for a, b in data.edge_index.t().tolist()]
    assert found.edge_mask.tolist() == pytest.approx(expected)
    assert set(found.available_explanations) == {"node_mask", "edge_mask"}
    assert found.validate()
    plain = explain(model, Data(x=data.x, edge_index=data.edge_index)).score_edges()
    assert torch.equal(plain.edge_mask, found.edge_mask)


@for_each("threshold", [("topk", 2), ("topk_hard", 3), ("hard", 0.01)])
def test_thresholds(threshold: tuple[str, Any]) -> None:
    torch.manual_seed(0)
    data, model = graph("ring"), GCN(FEATURES, 8, CLASSES)
    scores = explainer(model, GRAPH)(data.x, data.edge_index).node_mask[:, 0]
    kept = explainer(model, GRAPH, threshold=threshold)(data.x, data.edge_index).node_mask[:, 0]
    kind, value = threshold
    if kind == "hard":
        assert torch.equal(kept, (scores > value).float())
    else:
        best = scores.topk(value).indices
        assert set(kept.nonzero()[:, 0].tolist()) == set(best.tolist())
        assert torch.equal(kept[best], scores[best] if kind == "topk" else torch.ones(value))


@pytest.mark.parametrize("shape", ["ring", "messy", "one node", "no edges"])
def test_the_subgraph_of_an_explanation(shape: str) -> None:
    torch.manual_seed(0)
    data, model = graph(shape), GCN(FEATURES, 8, CLASSES)
    found = explainer(model, GRAPH, edges=True)(data.x, data.edge_index)
    kept = found.get_explanation_subgraph()
    positive = found.node_mask[:, 0] > 0
    assert torch.equal(kept.x, data.x[positive])
    assert torch.equal(kept.players, found.players[positive])  # the ids they had
    assert kept.worth.shape == (1,)
    rest = found.get_complement_subgraph()
    assert len(rest.x) == int((found.node_mask[:, 0] == 0).sum())


@pytest.mark.parametrize("target", ["all", [0, 1]])
def test_the_subgraph_where_numbers_coincide(target: Any) -> None:
    """As many targets as nodes: what belongs to the game is not taken for nodes' own."""
    torch.manual_seed(0)
    data = Data(x=torch.randn(2, FEATURES), edge_index=torch.tensor([[0, 1], [1, 0]]))
    found = explain(GCN(FEATURES, 8, 2), data, target=target, baseline="uniform")
    kept = found.for_target(0).get_explanation_subgraph()
    assert kept.num_nodes == int((found.scores[:, 0] > 0).sum())
    assert kept.explained == [0]
    assert kept.baseline == [0.5]
    assert kept.worth.shape == kept.component_worth.shape == (1,)
    assert kept.prediction.shape == (1, 2)
    one = Data(x=torch.randn(2, FEATURES), edge_index=torch.tensor([[0], [1]]))
    kept = explain(GCN(FEATURES, 8, 2), one).score_edges().get_explanation_subgraph()
    assert kept.worth.shape == (1,)
    assert kept.prediction.shape == (1, 2)


WHOLE = "GStarX scores whole nodes: node_mask_type must be 'object'"


@pytest.mark.parametrize(
    ("node_mask_type", "edge_mask_type", "reason"),
    [
        (None, "object", "for these masks, pass GStarX(players='edges')"),
        ("common_attributes", None, "for these masks, pass GStarX(players='features')"),
        ("attributes", "object", WHOLE),
        ("common_attributes", "object", WHOLE),
    ],
)
def test_other_masks_are_refused_with_the_reason(
    node_mask_type: str | None,
    edge_mask_type: str | None,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.ERROR, logger="gstarx"),
        pytest.raises(ValueError, match="does not support"),
    ):
        Explainer(
            GCN(FEATURES, 8, CLASSES),
            algorithm=GStarX(),
            explanation_type="model",
            node_mask_type=node_mask_type,
            edge_mask_type=edge_mask_type,
            model_config=GRAPH,
        )
    assert caplog.messages == [reason]


def test_a_dictionary_of_features_needs_one_of_edges() -> None:
    class Hetero(nn.Module):
        def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
            return x_dict["a"].mean(dim=0, keepdim=True)

    x = {"a": torch.randn(3, 2)}
    with pytest.raises(ValueError, match="both be tensors, or both dictionaries"):
        explainer(Hetero(), GRAPH)(x, torch.tensor([[0, 1], [1, 2]]))


def test_several_targets_are_refused() -> None:
    class Labels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = GCN(FEATURES, 8, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.net(x, edge_index)

    data = graph("ring")
    config = {**GRAPH, "mode": "binary_classification"}
    with pytest.raises(ValueError, match=r"one target at a time \(got 4\)"):
        explainer(Labels(), config)(data.x, data.edge_index)
    found = explainer(Labels(), config, kind="phenomenon")(
        data.x, data.edge_index, target=torch.tensor([2])
    )
    assert found.explained == [2]


def test_a_link_needs_to_be_named() -> None:
    data = graph("ring")
    model = Any1("edge", "multiclass_classification", "raw")
    with pytest.raises(ValueError, match="needs edge_label_index"):
        explainer(model, {**GRAPH, "task_level": "edge"})(data.x, data.edge_index, index=0)


# -- options ---------------------------------------------------------------------------------------


def test_options_reach_the_game() -> None:
    torch.manual_seed(0)
    data, model = graph("ring"), GCN(FEATURES, 8, CLASSES)
    plain = Data(x=data.x, edge_index=data.edge_index)
    for options in (
        {"payoff": "log_prob", "baseline": 0.0},
        {"payoff": Contrast(0, 2), "baseline": 0.0},
        {"payoff": lambda out: out[:, 0] - out[:, 1], "baseline": 0.0},
        {"baseline": [0.1, 0.2, 0.7]},
        {"game": GameOptions(removal="split")},
        {"passes": Passes(batch_nodes=5)},
        {"value": "myerson"},
        {"value": "shapley"},
    ):
        found = explainer(model, GRAPH, **options)(data.x, data.edge_index)
        expected = explain(model, plain, **options)
        assert torch.equal(found.node_mask, expected.node_mask), options
        assert found.batch_nodes == expected.batch_nodes


@pytest.mark.parametrize("value", ["hn", "myerson", "shapley"])
def test_scores_are_the_value_of_the_game(value: str) -> None:
    torch.manual_seed(0)
    data, model = graph("messy"), GCN(FEATURES, 8, CLASSES)
    game = GNNGame(model, data, target="all")
    if value == "shapley":
        expected = shapley_value(game, game.n).values
    else:
        expected = {"hn": hn_value, "myerson": myerson_value}[value](game, game.graph).values
    found = explain(model, data, target="all", value=value, baseline="uniform")
    np.testing.assert_allclose(found.scores.numpy(), expected, atol=1e-12)


def test_a_fallback_reaches_the_game() -> None:
    class Fussy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            if len(x) == 1:
                raise RuntimeError("too small")
            return self.conv(x, edge_index).mean(dim=0, keepdim=True)

    data = graph("ring")
    with pytest.raises(RuntimeError, match="too small"):
        explainer(Fussy(), GRAPH)(data.x, data.edge_index)
    with pytest.raises(ValueError, match="fails on each of 6 single nodes"):
        explainer(Fussy(), GRAPH, game=GameOptions(fallback=0.25))(data.x, data.edge_index)
    found = explainer(Fussy(), GRAPH, game=GameOptions(fallback=0.25), baseline=0.3)(
        data.x, data.edge_index
    )
    assert found.node_mask.isfinite().all()


def test_hops_reach_the_game() -> None:
    data = graph("wide")
    model = Any1("node", "multiclass_classification", "raw")
    found = explainer(model, {**GRAPH, "task_level": "node"}, game=GameOptions(num_hops=1))(
        data.x, data.edge_index, index=5
    )
    near = set(data.edge_index[:, data.edge_index[1] == 5].flatten().tolist())
    assert set(found.players.tolist()) == near


def test_a_progress_bar_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    data, model = graph("ring"), GCN(FEATURES, 8, CLASSES)
    explainer(model, GRAPH)(data.x, data.edge_index)
    assert capsys.readouterr().err == ""
    explainer(model, GRAPH, progress=True)(data.x, data.edge_index)
    assert "coalitions: 100%" in capsys.readouterr().err


def test_the_same_seed_gives_the_same_numbers() -> None:
    torch.manual_seed(0)
    data, model = graph("wide"), GCN(FEATURES, 8, CLASSES)

    def scores(seed: int) -> Tensor:
        algorithm = explainer(model, GRAPH, value="hn", budget=150, seed=seed)
        first = algorithm(data.x, data.edge_index)
        assert first.estimator == "growth"
        assert not first.exact
        assert first.std_errors.any()
        assert torch.equal(first.node_mask, algorithm(data.x, data.edge_index).node_mask)
        return first.node_mask

    assert torch.equal(scores(1), scores(1))
    assert not torch.equal(scores(1), scores(2))
