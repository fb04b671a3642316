"""The conformance test: every registered explainer passes it, broken ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gstarx.explainers import NodeExplainer, create, names, registry
from gstarx.explanation import Attribution
from gstarx.models import GAT
from gstarx.testing import ExplainerCheckError, check_explainer
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

#: So that all of them take seconds, not minutes.
QUICK: dict[str, dict[str, Any]] = {
    "gstarx_published": {"baseline": 1 / 3},
    "subgraphx": {"rollouts": 3, "sample_num": 5},
    "orphicx": {"epochs": 2},
    "gnnexplainer": {"epochs": 5},
    "pgexplainer": {"epochs": 2},
    "integrated_gradients": {"steps": 5},
    "best_found": {"sparsities": (0.5,)},
    "refined": {"sparsities": (0.5,), "budget": 20},
}
#: Networks for explainers that do not apply to every one.
NETWORKS = {"attention": lambda: GAT(4, 4, 3, heads=2)}


@pytest.mark.parametrize("name", names(oracles=True))
def test_every_registered_explainer_conforms(name: str) -> None:
    model = NETWORKS[name]() if name in NETWORKS else None
    check_explainer(create(name, **QUICK.get(name, {})), model=model)


class Right(NodeExplainer):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.random.default_rng(seed).random(data.num_nodes))


class GlobalRandomness(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(torch.rand(data.num_nodes).double().numpy())


class ChangesTheModel(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        model.eval()
        return super().attribute(model, data, task=task, seed=seed)


class ChangesTheGraph(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        data.x += 1
        return super().attribute(model, data, task=task, seed=seed)


class NotFinite(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.full(data.num_nodes, np.nan))


class AlwaysTheFirstClass(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.zeros(data.num_nodes), target=0)


class IgnoresItsSeed(Right):
    def explain(self, *args: Any, seed: Any = None, **options: Any) -> Any:
        return super().explain(*args, seed=0 if seed is None else seed, **options)


class NegativeErrors(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.zeros(data.num_nodes), -np.ones(data.num_nodes))


class TooFewScores(Right):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.zeros(data.num_nodes - 1))


def test_the_right_one_passes() -> None:
    check_explainer(Right())
    check_explainer(Right)


@for_each(
    ("broken", "message"),
    [
        (GlobalRandomness, "seed: .* other results for the same seed"),
        (ChangesTheModel, r"changes the model \(.*training\)"),
        (ChangesTheGraph, r"changes the graph \(x\)"),
        (AlwaysTheFirstClass, "target: the explainer explains"),
        (IgnoresItsSeed, "own seed: the explainer does not obey its own seed"),
        (NegativeErrors, "std_errors: the explainer gives negative standard errors"),
    ],
)
def test_broken_ones_do_not(broken: type[NodeExplainer], message: str) -> None:
    with pytest.raises(ExplainerCheckError, match=message):
        check_explainer(broken())


@pytest.mark.parametrize("broken", [NotFinite, TooFewScores])
def test_results_that_are_refused_right_away(broken: type[NodeExplainer]) -> None:
    with pytest.raises(ValueError, match=f"scores of {broken.__name__} must be"):
        check_explainer(broken())


def test_what_is_no_explainer() -> None:
    with pytest.raises(ExplainerCheckError, match="type: the explainer is not a"):
        check_explainer(dict)  # type: ignore[arg-type]


def test_the_registry_is_not_empty() -> None:
    assert len(registry.names(oracles=True)) >= 18
