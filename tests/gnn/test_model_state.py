"""A model is bit for bit as it was, whatever was done with it and however that ended."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.nn import GCNConv, MessagePassing, global_mean_pool

from gstarx import GNNGame, GStarX, expected_output, explain, explain_many
from gstarx.gnn.model_state import masked_layers, remembered, restored, untouched
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, GIN
from tests.gnn.one_by_one import graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class Fragile(nn.Module):
    """Layers of all kinds, hooks, masks, frozen weights; raises when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gin = GIN()
        self.net = GCN(FEATURES, 8, CLASSES)
        self.register_buffer("steps", torch.zeros(3))
        self.register_buffer("nothing", None)
        self.net.classifier.requires_grad_(False)
        #: Not plain attributes, which are put back.
        self.counts = SimpleNamespace(calls=0, hooked=0)
        self.error: BaseException | None = None
        self.gin.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self.counts.hooked += 1

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        assert not any(module.training for module in self.modules())
        assert not torch.is_grad_enabled()
        self.counts.calls += 1
        self.steps += 1  # as careless models do
        if self.error is not None and self.counts.calls > 2:
            raise self.error
        return self.gin(x, edge_index, batch) + self.net(x, edge_index, batch)


def everything(model: nn.Module) -> dict[str, Any]:
    """All that must not change, as far as it can be compared."""
    return {
        "values": {key: value.clone() for key, value in model.state_dict().items()},
        "objects": [id(t) for t in (*model.parameters(), *model.buffers())],
        "grads": [p.grad if p.grad is None else p.grad.clone() for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "inference": [t.is_inference() for t in (*model.parameters(), *model.buffers())],
        "training": [module.training for module in model.modules()],
        "hooks": [
            (dict(m._forward_hooks), dict(m._forward_pre_hooks), dict(m._backward_hooks))
            for m in model.modules()
        ],
        "masks": [
            (m._explain, m._edge_mask, m._loop_mask, m._apply_sigmoid)
            for m in model.modules()
            if isinstance(m, MessagePassing)
        ],
        "caches": [
            {key: value for key, value in vars(m).items() if "cached" in key}
            for m in model.modules()
        ],
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
        "python": random.getstate(),
        "grad mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
    }


def same(before: Any, after: Any) -> bool:
    """Equality to the bit, tensors and arrays included."""
    if isinstance(before, Tensor):
        return before is after or torch.equal(before, after)
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after)
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(same(before[k], after[k]) for k in before)
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(same, before, after))
    return bool(before == after)


def assert_unchanged(model: nn.Module, before: dict[str, Any]) -> None:
    after = everything(model)
    for what, value in before.items():
        assert same(value, after[what]), what


def mixed() -> Fragile:
    """A model halfway through training: frozen layers, gradients, dropout at work."""
    torch.manual_seed(0)
    model = Fragile()
    model.train()
    model.gin.norm.eval()
    model.net.convs[1].eval()
    model.net.convs[0].lin.weight.grad = torch.ones_like(model.net.convs[0].lin.weight)
    return model


def play(model: Fragile) -> None:
    GNNGame(model, graph("ring"), batch_nodes=3)(np.eye(6, dtype=bool))


def explain_one(model: Fragile) -> None:
    explain(model, graph("ring"), batch_nodes=8)


def explain_two(model: Fragile) -> None:
    explain_many(model, [graph("ring"), graph("messy")], progress=False, batch_nodes=8)


def expect(model: Fragile) -> None:
    expected_output(model, [graph("ring")] * 200)


USES = [play, explain_one, explain_two, expect]


@pytest.mark.parametrize("use", USES)
def test_nothing_has_changed(use: Callable[[Fragile], None]) -> None:
    model = mixed()
    before = everything(model)
    use(model)
    assert model.counts.calls > 2
    assert model.counts.hooked == model.counts.calls
    assert_unchanged(model, before)


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
@pytest.mark.parametrize("use", USES)
def test_nothing_has_changed_after_an_error(
    use: Callable[[Fragile], None], error: BaseException
) -> None:
    model = mixed()
    model.error = error
    before = everything(model)
    with pytest.raises(type(error)):
        use(model)
    assert_unchanged(model, before)


def test_an_error_before_the_game_begins_changes_nothing() -> None:
    model = mixed()
    model.error, model.counts.calls = RuntimeError("broken"), 5
    before = everything(model)
    with pytest.raises(RuntimeError, match="broken"):
        GNNGame(model, graph("ring"))
    assert_unchanged(model, before)


def test_pygs_explainer_leaves_it_too() -> None:
    # PyG itself sets the mode of the whole model, so that a mixed one is not kept by it
    model = GIN().train()
    before = everything(model)
    data = graph("ring")
    explainer = Explainer(
        model,
        algorithm=GStarX(),
        explanation_type="model",
        node_mask_type="object",
        model_config=CONFIG,
    )
    explainer(data.x, data.edge_index)
    assert_unchanged(model, before)


def test_dropout_in_training_mode_does_not_act() -> None:
    torch.manual_seed(0)
    model = GIN().train()
    data, rows = graph("messy"), np.eye(7, dtype=bool)
    worths = [GNNGame(model, data, target="all")(rows) for _ in range(2)]
    assert np.array_equal(worths[0], worths[1])
    assert np.array_equal(GNNGame(model.eval(), data, target="all")(rows), worths[0])


@pytest.mark.parametrize("learned", [False, True])
def test_edge_masks_of_another_explainer_stay_and_do_not_act(
    learned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    model, data = GCN(FEATURES, 8, CLASSES), graph("ring")
    expected = explain(model, data).node_mask
    assert masked_layers(model) == 0
    mask = torch.rand(data.num_edges)
    set_masks(model, nn.Parameter(mask) if learned else mask, data.edge_index)
    model.convs[2].explain = False
    before, masked = everything(model), model(data.x, data.edge_index)
    assert torch.equal(explain(model, data).node_mask, expected)
    assert_unchanged(model, before)
    assert torch.equal(model(data.x, data.edge_index), masked)
    assert masked_layers(model) == 2
    assert any("edge masks" in message for message in caplog.messages)


def test_after_gnn_explainer() -> None:
    torch.manual_seed(0)
    model, data = GCN(FEATURES, 8, CLASSES), graph("ring")
    expected = explain(model, data).node_mask
    other = Explainer(
        model,
        algorithm=GNNExplainer(epochs=2),
        explanation_type="model",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    other(data.x, data.edge_index)
    assert torch.equal(explain(model, data).node_mask, expected)


class Caching(nn.Module):
    """A transductive model, whose layers keep the graph they were trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([GCNConv(FEATURES, 8, cached=True), GCNConv(8, CLASSES)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.convs[0](x, edge_index).relu()
        return self.convs[1](hidden, edge_index)


@pytest.mark.parametrize("used_before", [False, True])
def test_layers_that_cache_a_graph_do_not_answer_from_it(used_before: bool) -> None:
    torch.manual_seed(0)
    model, data = Caching(), graph("ring")
    plain = copy.deepcopy(model)
    plain.convs[0].cached = False
    expected = explain(plain, data, task_level="node", index=2)
    if used_before:
        model(data.x, data.edge_index)
    assert (model.convs[0]._cached_edge_index is not None) == used_before
    before = everything(model)
    found = explain(model, data, task_level="node", index=2)
    assert torch.equal(found.node_mask, expected.node_mask)
    assert_unchanged(model, before)


def test_a_buffer_that_is_replaced_comes_back() -> None:
    class Replacing(GIN):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            self.seen = self.seen + 1
            self.norm.running_mean.data += 1
            return super().forward(x, edge_index, batch)

    model = Replacing()
    before = everything(model)
    explain(model, graph("ring"), check=False)  # what it says depends on how often it was asked
    assert_unchanged(model, before)


def test_a_model_may_override_eval() -> None:
    class Proud(GIN):
        def eval(self) -> Any:
            raise AssertionError("not asked to")

        train = eval

    model = Proud()
    explain(model, graph("ring"))
    assert model.training


def test_a_plain_function_is_guarded_as_well() -> None:
    def plain(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        return global_mean_pool(x, batch)

    before = torch.get_rng_state()
    explain(plain, graph("ring"))
    assert torch.equal(torch.get_rng_state(), before)
    assert masked_layers(plain) == 0


def test_the_explanation_can_be_trained_through() -> None:
    """No tensor that comes out is an inference tensor, which autograd refuses."""
    found = explain(GIN(), graph("ring"))
    for _, value in found:
        assert not (isinstance(value, Tensor) and value.is_inference())
    assert not expected_output(GIN(), [graph("ring")]).is_inference()


def test_guards_can_be_nested() -> None:
    model = mixed()
    before = everything(model)
    with untouched(model), untouched(model):
        assert not model.training
    assert_unchanged(model, before)


def test_one_block_inside_another_leaves_the_rest_to_the_outer_one() -> None:
    model = Fragile().train()
    with restored(model):
        assert not model.training
        assert torch.is_grad_enabled()
        with untouched(model):
            model.steps += 1
            assert not torch.is_grad_enabled()
        # still inside: nothing has been given back
        assert not model.training
        assert model.steps.tolist() == [1, 1, 1]
    assert model.training
    assert model.steps.tolist() == [0, 0, 0]


def test_another_model_has_a_block_of_its_own() -> None:
    one, other = Fragile().train(), Fragile().train()
    with restored(one), restored(other):
        assert not one.training
        assert not other.training
    assert one.training
    assert other.training


def test_a_property_is_computed_once_inside_and_anew_outside() -> None:
    asked: list[int] = []

    @remembered
    def width(model: nn.Module, times: int) -> int:
        asked.append(times)
        return times * len(asked)

    model = Fragile()
    with restored(model):
        assert [width(model, 2), width(model, 2), width(model, 3)] == [2, 2, 6]
    assert width(model, 2) == 6
    with restored(model):
        assert width(model, 2) == 8


def test_masks_are_seen_while_they_are_set_aside() -> None:
    data = graph("ring")
    model = GCN(FEATURES, 8, CLASSES)
    set_masks(model, torch.ones(data.num_edges), data.edge_index)
    with restored(model):
        assert masked_layers(model) == 3
    assert masked_layers(model) == 3
