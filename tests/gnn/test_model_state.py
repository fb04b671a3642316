"""A model is bit for bit as it was, whatever was done with it and however that ended."""

from __future__ import annotations

import copy
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.nn import GCNConv, MessagePassing, SAGEConv, global_mean_pool

from gstarx import GNNGame, GStarX, Passes, expected_output, explain, explain_many, models
from gstarx.gnn import model_state
from gstarx.gnn.model_state import masked_layers, remembered, restored, untouched
from gstarx.gnn.self_check import doubled
from gstarx.models import GAT, GCN
from tests.gnn.networks import CLASSES, FEATURES, GIN
from tests.gnn.one_by_one import graph
from tests.pairs import for_each

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


def contents(value: Any) -> Any:
    """What is in an attribute that can be changed in place."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: id(inner) for key, inner in value.items()}
    return [*map(id, value)] if isinstance(value, list | set) else None


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
        "attributes": [
            {name: (id(value), contents(value)) for name, value in vars(m).items()}
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
    GNNGame(model, graph("ring"), passes=Passes(batch_nodes=3))(np.eye(6, dtype=bool))


def explain_one(model: Fragile) -> None:
    explain(model, graph("ring"), passes=Passes(batch_nodes=8))


def explain_two(model: Fragile) -> None:
    explain_many(
        model, [graph("ring"), graph("messy")], progress=False, passes=Passes(batch_nodes=8)
    )


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
    expected = explain(plain, data, index=2, task="node")
    if used_before:
        model(data.x, data.edge_index)
    assert (model.convs[0]._cached_edge_index is not None) == used_before
    before = everything(model)
    found = explain(model, data, index=2, task="node")
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
    explain(
        model, graph("ring"), passes=Passes(check=False)
    )  # what it says depends on how often it was asked
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


class Writing(nn.Module):
    """A model that keeps what it makes on first use, wherever that can be kept."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES)
        self.scale = torch.ones(1)
        self.ratio: Tensor | None = None
        self.sizes: set[int] = set()
        self.seen: list[int] = []
        self.known: dict[Any, Any] = {"first": 1, "second": 2}

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        if self.ratio is None:
            self.ratio = torch.full((1,), 0.5)
            self.extra = nn.Identity()
            self.register_buffer("made", torch.zeros(2))
            self.net.register_forward_hook(lambda *_: None)
        self.scale *= 1.0
        self.scale.add_(1).sub_(1)
        self.sizes.add(len(x))
        self.seen.append(len(x))
        self.known[len(x)] = self.known.pop("first", 1)
        return self.net(x * self.ratio, edge_index, batch) * self.scale


def test_what_a_model_makes_on_first_use_is_taken_away() -> None:
    torch.manual_seed(0)
    model = Writing()
    before = everything(model)
    explain(model, graph("ring"))
    assert_unchanged(model, before)
    assert [*model.known] == ["first", "second"]
    # and what it makes now, autograd can use
    model(graph("ring").x, graph("ring").edge_index).sum().backward()


@functools.lru_cache
def positions(count: int) -> Tensor:
    return torch.linspace(0, 1, count)[:, None]


def test_what_is_kept_elsewhere_can_be_trained_with() -> None:
    class Positioned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.place, self.net = nn.Linear(1, FEATURES), GCN(FEATURES, 8, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
            at = self.place(positions(FEATURES)).mean(dim=0)
            return self.net(x + at, edge_index, batch)

    positions.cache_clear()
    model, data = Positioned(), graph("ring")
    explain(model, data)
    expected_output(model, [data])
    model(data.x, data.edge_index).sum().backward()
    assert model.place.weight.grad is not None


@for_each("lazy", [nn.LazyLinear(CLASSES), SAGEConv((-1, -1), CLASSES)])
@for_each("use", [play, explain_one, expect])
def test_a_model_without_weights_is_refused(lazy: nn.Module, use: Callable[[Any], None]) -> None:
    class Waiting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = copy.deepcopy(lazy)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            edges = () if isinstance(self.layer, nn.Linear) else (edge_index,)
            return global_mean_pool(self.layer(x, *edges), batch)

    model = Waiting()
    with pytest.raises(ValueError, match=r"not been initialized: 'layer\.\w.*Run the model once"):
        use(model)  # type: ignore[arg-type]
    data = graph("ring")
    model(data.x, data.edge_index, torch.zeros(data.num_nodes, dtype=torch.long))
    explain(model, data)


# -- interrupts ------------------------------------------------------------------------------------

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCN(FEATURES, 8, CLASSES),
    "gat": lambda: GAT(FEATURES, 8, CLASSES),
    "gin": lambda: models.GIN(FEATURES, 8, CLASSES),
    "batch norm": GIN,
    "cached": Caching,
    "writing": Writing,
}


def path() -> Data:
    """Long enough for coalitions to share embeddings."""
    at = torch.arange(11)
    ends = torch.stack([at, at + 1])
    x = torch.randn(12, FEATURES, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def test_an_interrupt_inside_a_layer_leaves_no_edges_in_it() -> None:
    model = GCN(FEATURES, 8, CLASSES)
    layer, interrupts = model.convs[0], []

    def interrupt(*_: Any) -> None:
        if layer._cached_edge_index is not None:
            interrupts.append(1)
            raise KeyboardInterrupt

    handle = layer.lin.register_forward_pre_hook(interrupt)
    before = everything(model)
    with pytest.raises(KeyboardInterrupt):
        explain(model, path(), value="shapley", passes=Passes(share=True))
    assert interrupts
    assert_unchanged(model, before)
    handle.remove()


def interrupted(model: nn.Module, after: float, **options: Any) -> bool:
    """Whether an explanation was interrupted, by a signal after so many seconds."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        explain(model, path(), **options)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        # whatever else is raised, no signal may come when nobody expects it
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    return False


def hits(name: str, count: int) -> int:
    """How many of some interrupts at random times hit; after each, everything is as it was."""
    data, hit = path(), 0
    options: dict[str, Any] = {"value": "shapley", "baseline": "singletons"}
    if name == "cached":
        options |= {"task": "node", "index": 2}
    times = random.Random(name)
    for number in range(count):
        torch.manual_seed(number)
        model = NETWORKS[name]().train(number % 2 == 0)
        if number == 0:
            explain(model, data, **options)
            begins = []
            for _ in range(4):
                begins.append(time.perf_counter())
                explain(model, data, **options)
            longest = float(np.diff(begins).min())  # other processes may get in between
        expected = copy.deepcopy(model).eval()(data.x, data.edge_index)
        before = everything(model)
        hit += interrupted(model, times.uniform(1e-4, longest), **options)
        assert_unchanged(model, before)
        assert torch.equal(copy.deepcopy(model).eval()(data.x, data.edge_index), expected)
    return hit


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are those of POSIX")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", NETWORKS)
def test_interrupts_at_random_times_change_nothing(name: str) -> None:
    assert hits(name, 10) > 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are those of POSIX")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", NETWORKS)
def test_many_interrupts_at_random_times_change_nothing(name: str) -> None:
    hit = hits(name, 100)
    print(f"{hit} of 100 interrupts hit")
    assert hit > 50


# -- threads and processes -------------------------------------------------------------------------


def test_an_interrupt_keeps_no_other_thread_waiting() -> None:
    model, data = GCN(FEATURES, 8, CLASSES), graph("ring")
    with restored(model):
        model_state._ended.acquire()  # an interrupt came right after the lock was taken
    thread = threading.Thread(target=explain, args=(model, data))
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_other_threads_draw_no_number_twice() -> None:
    model, data, done = GCN(FEATURES, 8, CLASSES), graph("ring"), threading.Event()

    def explaining() -> None:
        while not done.is_set():
            explain(model, data)

    thread = threading.Thread(target=explaining)
    thread.start()
    drawn: list[tuple[float, ...]] = []
    end = time.monotonic() + 1
    while time.monotonic() < end:
        drawn.append((torch.rand(1).item(), np.random.random(), random.random()))  # noqa: NPY002
        time.sleep(0)
    done.set()
    thread.join(timeout=60)
    assert not thread.is_alive()
    doubles = [row[1:] for row in drawn]
    assert len(set(doubles)) == len(drawn)
    # single precision repeats by chance, but not three in a row
    singles = [row[0] for row in drawn]
    triples = set(zip(singles, singles[1:], singles[2:], strict=False))
    assert len(triples) == len(drawn) - 2


FORK = """
import os, signal, threading, time, torch
from gstarx import explain
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from gstarx.models import GCN

torch.set_num_threads(1)
model, data, done = GCN(FEATURES, 8, CLASSES).train(), graph("ring"), threading.Event()
expected = explain(model, data).scores

def explaining():
    while not done.is_set():
        explain(model, data)

thread = threading.Thread(target=explaining)
thread.start()
for number in range(20):
    time.sleep(0.003 * number)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        right = model.training and not any(m._forward_hooks for m in model.modules())
        right &= torch.equal(explain(model, data).scores, expected)
        os._exit(0 if right else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        break
done.set()
thread.join()
print("child", number, "ended with", status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are those of POSIX")
def test_a_fork_beside_an_explanation_can_explain() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.stdout == "child 19 ended with 0\n", found.stderr


def test_an_interrupt_in_double_precision() -> None:
    class Interrupted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            raise KeyboardInterrupt

    model = Interrupted()
    attributes, weight = vars(model), model.layer.weight
    with pytest.raises(KeyboardInterrupt), restored(model), doubled(model):  # noqa: PT012
        assert model.layer.weight.dtype == torch.float64
        model(torch.ones(1, 2))
    assert vars(model) is attributes
    assert model.layer.weight is weight
    with restored(model):
        # as if the interrupt had come while the copy was put back
        object.__setattr__(model, "__dict__", copy.deepcopy(model).double().__dict__)
    assert vars(model) is attributes


class Normalizing(nn.Module):
    """Counts what it sees in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = GCNConv(FEATURES, CLASSES), nn.BatchNorm1d(CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.norm(self.conv(x, edge_index))


HELD: dict[str, nn.Module] = {}


@functools.cache
def held() -> nn.Module:
    """Known to nobody before it is asked for."""
    return Normalizing()


def test_a_network_in_a_dictionary_is_found() -> None:
    HELD["first"] = Normalizing()
    before = copy.deepcopy(HELD["first"].state_dict())

    def hidden(x: Tensor, edge_index: Tensor) -> Tensor:
        return HELD["first"](x, edge_index)

    def shown(x: Tensor, edge_index: Tensor) -> Tensor:
        return network(x, edge_index)

    network, data = HELD["first"], graph("ring")
    found, known = (explain(model, data, index=1, task="node") for model in (hidden, shown))
    assert torch.equal(found.scores, known.scores)
    assert found.players.tolist() == known.players.tolist()
    assert network.training
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_network_that_cannot_be_found_is_refused_and_left_alone() -> None:
    before = copy.deepcopy(held().state_dict())

    def hidden(x: Tensor, edge_index: Tensor) -> Tensor:
        return nn.ReLU()(held()(x, edge_index))

    with pytest.raises(ValueError, match=r"runs a network \(Normalizing\) that cannot be found"):
        explain(hidden, graph("ring"), index=1, task="node")
    for name, value in held().state_dict().items():
        assert torch.equal(value, before[name])
    torch.nn.Linear(2, 2)(torch.ones(1, 2))  # no hook is left
    assert not torch.nn.modules.module._global_forward_pre_hooks
