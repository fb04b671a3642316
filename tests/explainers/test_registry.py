"""Every explainer by its name: they answer alike, and leave the model as it was."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer

import gstarx.registry.specs
from gstarx import Myerson, Shapley
from gstarx.explainers import GStarX, NodeExplainer, create, names, registry
from gstarx.explainers.registry import options_for
from gstarx.explanation import Explanation
from gstarx.models import GAT, GCN, GIN
from gstarx.registry import DATASETS, EXPLAINERS
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from tests.gnn.test_model_state import assert_unchanged, everything
from tests.pairs import in_turn
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

#: Little work, so that all of them are tried on all networks.
QUICK: dict[str, dict[str, Any]] = {
    "gstarx_published": {"baseline": 1 / 3},
    "subgraphx": {"rollouts": 2, "sample_num": 4},
    "gnnexplainer": {"epochs": 3},
    "pgexplainer": {"epochs": 2},
    "orphicx": {"epochs": 2, "alphas": 2, "betas": 2},
}
NETWORKS = {
    "gcn": lambda: GCN(FEATURES, 8, CLASSES),
    "gin": lambda: GIN(FEATURES, 8, CLASSES),
    "gat": lambda: GAT(FEATURES, 4, CLASSES, heads=2),
}
GRAPHS = ("ring", "wide", "messy", "one node")


def network(name: str) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[name]().train()


def ready(name: str, model: nn.Module, **options: Any) -> NodeExplainer:
    if name in ("gradient_x_input", "integrated_gradients"):
        pytest.importorskip("captum")
    explainer = create(name, **{**QUICK.get(name, {}), **options})
    if explainer.requires_training:
        explainer.fit(model, [graph("ring"), graph("wide")] * 3, seed=0)
    return explainer


@pytest.mark.parametrize(("name", "kind"), in_turn(names(), NETWORKS))
def test_all_answer_alike_and_leave_the_model_alone(name: str, kind: str) -> None:
    model = network("gat" if name == "attention" else kind)
    before = everything(model)
    explainer = ready(name, model)
    assert_unchanged(model, before)
    for shape in GRAPHS:
        data = graph(shape)
        found = explainer.explain(model, data, seed=3)
        assert_unchanged(model, before)
        assert type(found) is Explanation
        count = int(data.num_nodes)
        if found.node_scores is not None:
            assert found.node_scores.shape == (count,)
            assert found.node_scores.isfinite().all()
        for size in range(count + 1):
            chosen = found.select(size=size)
            assert len(chosen) <= size
            assert len(set(chosen.tolist())) == len(chosen)
            assert set(chosen.tolist()) <= set(range(count))
        again = explainer.explain(model, data, seed=3)
        if found.node_scores is not None:
            assert torch.equal(found.node_scores, again.node_scores)
        assert [s.tolist() for s in found.sets] == [s.tolist() for s in again.sets]
    with pytest.raises(ValueError, match="return_type='probs' says that the model returns"):
        explainer.explain(model, graph("ring"), seed=0, task={"return_type": "probs"})
    data = graph("ring")
    inside_pyg = Explainer(
        model.eval(),
        algorithm=explainer,
        explanation_type="model",
        node_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    assert inside_pyg(data.x, data.edge_index).node_mask.shape == (data.num_nodes, 1)


def test_select_takes_the_best_scores() -> None:
    found = Explanation.from_scores(np.array([0.5, -1.0, 0.5, 2.0]), num_nodes=4)
    assert found.top(3).tolist() == [3, 0, 2]
    assert found.select(size=2).tolist() == [0, 3]
    assert found.select(size=4, rule="positive").tolist() == [0, 2, 3]
    assert found.select(size=9).tolist() == [0, 1, 2, 3]
    assert found.select(sparsity=0.5).tolist() == [0, 3]
    assert found.select(size=2).dtype == np.int64
    with pytest.raises(ValueError, match="size must be at least 0"):
        found.select(size=-1)
    with pytest.raises(TypeError, match="size must be an integer"):
        found.select(size=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"give sparsity or size \(got sparsity=0.5, size=2\)"):
        found.select(sparsity=0.5, size=2)
    with pytest.raises(ValueError, match="rule must be one of 'top', 'positive', 'connected'"):
        found.select(size=2, rule="best")


def test_select_takes_the_best_set_that_fits() -> None:
    sets = [np.array([1, 2, 3]), np.array([0, 1]), np.array([4])]
    found = Explanation.from_scores(None, num_nodes=7, sets=sets)
    assert [found.select(size=size).tolist() for size in range(5)] == [
        [],
        [4],
        [0, 1],
        [1, 2, 3],
        [1, 2, 3],
    ]
    larger = Explanation.from_scores(None, num_nodes=7, sets=[np.array([5, 6])])
    assert larger.select(size=1).tolist() == [5]
    assert Explanation.from_scores(None, num_nodes=7).select(size=2).tolist() == []


def test_settings_of_a_dataset_apply_unless_overridden() -> None:
    assert create("subgraphx", dataset="ba_2motifs").search.high2low
    assert not create("subgraphx", dataset="ba_2motifs", high2low=False).search.high2low
    assert create("shapley").value == Shapley()
    assert create("myerson", dataset="mutag").value == Myerson()
    assert options_for("pgexplainer", "tweets") == options_for("pgexplainer", "twitter")
    with pytest.raises(ValueError, match=r"no dataset .* 'mutga'; did you mean 'mutag'\?.*leave"):
        create("pgexplainer", dataset="mutga")


def test_every_setting_is_an_option() -> None:
    for name, spec in EXPLAINERS.items():
        for options in spec.presets.values():
            assert set(options) <= set(registry.options_of(name)), name
    alike = {spec.like for spec in DATASETS.values() if spec.like}
    assert alike
    assert alike <= set(EXPLAINERS["subgraphx"].presets)


def test_unknown_names_and_options_are_said_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="no explainer 'subgrafx'; did you mean 'subgraphx'"):
        create("subgrafx")
    with pytest.raises(
        TypeError, match="there is no option of 'subgraphx' 'rollout'; did you mean 'rollouts'"
    ):
        create("subgraphx", rollout=3)
    for options in ({}, {"baseline": None}):
        with pytest.raises(ValueError, match="needs a baseline"):
            create("gstarx_published", **options)


class Added(GStarX):
    """An explainer of another package."""


def test_other_packages_add_explainers(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [
        EntryPoint("added", "tests.explainers.test_registry:Added", registry.GROUP),
        EntryPoint("wrong", "builtins:dict", registry.GROUP),
    ]
    monkeypatch.setattr(gstarx.registry.specs, "entry_points", lambda group: here)
    assert names()[-2:] == ("added", "wrong")
    assert type(create("added", value="myerson")).__name__ == "Added"
    with pytest.raises(TypeError, match=r"must be a gstarx\.explainers\.NodeExplainer"):
        create("wrong")


@pytest.mark.parametrize("name", ["pgexplainer", "orphicx"])
def test_what_has_to_be_trained_says_so(name: str) -> None:
    explainer = create(name, **QUICK[name])
    assert explainer.requires_training
    with pytest.raises((RuntimeError, ValueError), match="fit"):
        explainer.explain(network("gcn"), graph("ring"), seed=0)


@pytest.mark.parametrize(
    "name", ["gstarx", "leave_one_out", "single_node", "graphsvx", "subgraphx"]
)
def test_the_target_may_be_chosen(name: str) -> None:
    model = network("gcn")
    explainer = ready(name, model)
    for target in range(CLASSES):
        assert explainer.explain(model, graph("ring"), seed=0, target=target).target == target
    with pytest.raises(TypeError, match="no keyword 'modus'; did you mean 'model'"):
        explainer.explain(model, graph("ring"), modus="x")


def test_a_graph_is_checked_first() -> None:
    for name in ("gstarx", "random"):
        with pytest.raises(ValueError, match="no nodes"):
            create(name).explain(
                network("gcn"),
                Data(x=torch.zeros(0, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.long)),
            )
