"""From outputs to worths: every payoff, mode, return type, target and baseline."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.explain.config import (
    ModelConfig,
    ModelMode,
    ModelReturnType,
    ModelTaskLevel,
)
from torch_geometric.nn import global_mean_pool

from gstarx import Contrast, GNNGame, Judge, Task, expected_output, explain, explain_many
from gstarx.gnn.payoff import check_outputs, looks_like_probabilities
from gstarx.metrics import evaluate
from tests.gnn.one_by_one import coalitions, graph
from tests.pairs import for_each

ROWS = coalitions(6, at_most=10)
MULTICLASS, BINARY = Task("multiclass_classification"), Task("binary_classification")


def logits() -> NDArray[np.float64]:
    """What the model says of every coalition: the mean features of its nodes, (k, 4)."""
    x = graph("ring").x.double().numpy()
    return np.stack([2 * x[row].mean(axis=0) + 0.3 for row in ROWS])


def model(columns: int, how: str = "raw", *, binary: bool = False) -> Any:
    def network(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = 2 * global_mean_pool(x[:, :columns].double(), batch) + 0.3
        if how == "raw":
            return out
        if binary:
            return out.sigmoid()
        return out.softmax(1) if how == "probs" else out.log_softmax(1)

    return network


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def sigmoid(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-scores))


def worths(network: Any, **options: Any) -> NDArray[np.float64]:
    return np.asarray(GNNGame(network, graph("ring"), **options)(ROWS))


def near(found: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-6)


# -- several classes -------------------------------------------------------------------------------


@pytest.mark.parametrize("return_type", ["raw", "probs", "log_probs"])
def test_probabilities_of_several_classes(return_type: str) -> None:
    net, p = model(4, return_type), softmax(logits())
    task = replace(MULTICLASS, return_type=return_type)
    near(worths(net, target="all", payoff="prob", task=task), p)
    near(worths(net, target="all", payoff="log_prob", task=task), np.log(p))
    near(worths(net, target="all", payoff="norm_prob", task=task), p - 0.25)
    near(worths(net, target="all", task=task), p - 0.25)
    near(worths(net, target=2, payoff="prob", task=task), p[:, 2])
    raw = {"raw": logits(), "probs": p, "log_probs": np.log(p)}[return_type]
    near(worths(net, target="all", payoff="raw", task=task), raw)
    predicted = p[0].argmax()  # the first row is everybody
    near(worths(net, payoff="prob", task=task), p[:, predicted])


@for_each(
    ("target", "columns"),
    [
        (1, 1),
        (torch.tensor(1), 1),
        ([1], [1]),
        ((3, 0), [3, 0]),
        ([np.int64(2), torch.tensor(0)], [2, 0]),
        ("all", [0, 1, 2, 3]),
    ],
)
def test_targets(target: Any, columns: Any) -> None:
    game = GNNGame(model(4), graph("ring"), target=target, payoff="prob")
    near(game(ROWS), softmax(logits())[:, columns])
    assert game.single == (not isinstance(columns, list))
    assert list(game.payoff.columns) == np.atleast_1d(columns).tolist()


def test_a_contrast_of_two_classes() -> None:
    p = softmax(logits())
    near(worths(model(4), payoff=Contrast(2, 0)), p[:, 2] - p[:, 0])
    game = GNNGame(model(4), graph("ring"), payoff=Contrast(2, 0))
    assert game.payoff.name == "contrast"
    assert game.payoff.baseline == (0.0,)
    given = worths(model(4), payoff=Contrast(2, 0), baseline=[0.1, 0.2, 0.3, 0.4])
    near(given, p[:, 2] - p[:, 0] - 0.2)
    near(worths(model(4), payoff=Contrast(2, 0), baseline=0.05), p[:, 2] - p[:, 0] - 0.05)
    for wrong in (Contrast(0, 4), Contrast(-1, 0)):
        with pytest.raises(ValueError, match=r"target must name a class in 0\.\.3"):
            GNNGame(model(4), graph("ring"), payoff=wrong)


def test_a_function_of_the_outputs() -> None:
    s = logits()
    near(worths(model(4), payoff=lambda out: out[:, 0] * out[:, 1]), s[:, 0] * s[:, 1])
    two = worths(model(4), payoff=lambda out: out[:, :2] ** 2)
    near(two, s[:, :2] ** 2)
    assert two.shape == (len(ROWS), 2)
    shifted = worths(model(4), payoff=lambda out: out[:, :2], baseline=[1.0, 2.0])
    near(shifted, s[:, :2] - [1.0, 2.0])
    near(worths(model(4), payoff=lambda out: out[:, :2], baseline=3), s[:, :2] - 3)
    with pytest.raises(ValueError, match=r"one for each of 2 classes \(got 4 numbers\)"):
        worths(model(4), payoff=lambda out: out[:, :2], baseline=[0.1] * 4)


# -- two classes, and several labels ---------------------------------------------------------------


@pytest.mark.parametrize("return_type", ["raw", "probs"])
def test_one_output_for_two_classes(return_type: str) -> None:
    p = sigmoid(logits()[:, :1])
    both = np.hstack([1 - p, p])
    net = model(1, return_type, binary=True)
    task = replace(BINARY, return_type=return_type)
    near(worths(net, target="all", payoff="prob", task=task), both)
    near(worths(net, target="all", payoff="log_prob", task=task), np.log(both))
    near(worths(net, target="all", task=task), both - 0.5)
    near(worths(net, target=0, payoff="prob", task=task), both[:, 0])
    near(worths(net, payoff="prob", task=task), both[:, both[0].argmax()])
    near(worths(net, target=1, baseline=[0.6, 0.4], task=task), both[:, 1] - 0.4)
    near(worths(net, target=0, baseline=[0.6, 0.4], task=task), both[:, 0] - 0.6)
    near(worths(net, payoff=Contrast(1, 0), task=task), both[:, 1] - both[:, 0])
    raw = logits()[:, :1]
    expected = np.hstack([-raw, raw]) if return_type == "raw" else both
    near(worths(net, target="all", payoff="raw", task=task), expected)
    with pytest.raises(ValueError, match=r"name a class in 0\.\.1 \(got 2\)"):
        worths(net, target=2, task=task)


def test_one_output_may_come_without_a_column() -> None:
    def flat(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return model(1)(x, edge_index, batch)[:, 0]

    near(worths(flat, target=1, payoff="prob", task=BINARY), sigmoid(logits()[:, 0]))

    def scalar(x: Tensor, edge_index: Tensor) -> Tensor:
        return 2 * x[:, 0].double().mean() + 0.3

    near(worths(scalar, target=1, payoff="prob", task=BINARY), sigmoid(logits()[:, 0]))


@pytest.mark.parametrize("return_type", ["raw", "probs"])
def test_several_labels(return_type: str) -> None:
    p = sigmoid(logits())
    net = model(4, return_type, binary=True)
    task = replace(BINARY, return_type=return_type)
    near(worths(net, target="all", payoff="prob", task=task), p)
    near(worths(net, target=2, payoff="log_prob", task=task), np.log(p[:, 2]))
    near(worths(net, target=[1, 3], task=task), p[:, [1, 3]] - 0.5)
    near(worths(net, target=1, baseline=[0.1, 0.2, 0.3, 0.4], task=task), p[:, 1] - 0.2)
    with pytest.raises(ValueError, match="the model has 4 outputs: choose one with target="):
        worths(net, task=task)


# -- numbers ---------------------------------------------------------------------------------------


def test_regression() -> None:
    s = logits()
    task = "regression"
    near(worths(model(1), task=task), s[:, 0])
    near(worths(model(1), payoff="raw", task=task), s[:, 0])
    near(worths(model(1), baseline=0.7, task=task), s[:, 0] - 0.7)
    near(worths(model(1), baseline=torch.tensor([0.7]), task=task), s[:, 0] - 0.7)
    near(worths(model(4), target=2, task=task), s[:, 2])
    near(worths(model(4), target="all", baseline=[1, 2, 3, 4], task=task), s - [1, 2, 3, 4])
    near(worths(model(4), target=0, payoff=Contrast(3, 1), task=task), s[:, 3] - s[:, 1])
    whole = GNNGame(lambda x, edge_index: x.sum(dim=0).long()[:1], graph("ring"), task=task)
    assert whole.prediction.dtype == torch.float32  # integers are numbers too


# -- baselines -------------------------------------------------------------------------------------


@for_each(
    "baseline",
    [
        [0.1, 0.2, 0.3, 0.4],
        (0.1, 0.2, 0.3, 0.4),
        np.array([0.1, 0.2, 0.3, 0.4]),
        torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True),
        torch.tensor([[0.1, 0.2, 0.3, 0.4]]),
    ],
)
def test_a_baseline_per_class(baseline: Any) -> None:
    p = softmax(logits())
    game = GNNGame(model(4), graph("ring"), target=[3, 1], baseline=baseline)
    near(game(ROWS), p[:, [3, 1]] - [0.4, 0.2])
    assert game.payoff.baseline == pytest.approx((0.4, 0.2))
    assert game.payoff.baseline_source == "given"
    predicted = p[0].argmax()
    near(worths(model(4), baseline=baseline), p[:, predicted] - (predicted + 1) / 10)


@for_each("baseline", [0.3, np.float32(0.3), torch.tensor(0.3), [0.3]])
def test_one_baseline_for_all(baseline: Any) -> None:
    near(worths(model(4), target="all", baseline=baseline), softmax(logits()) - 0.3)
    near(worths(model(4), target=1, payoff="raw", baseline=baseline), logits()[:, 1] - 0.3)


def test_without_a_baseline_the_log_names_the_one_used(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="gstarx"):
        game = GNNGame(model(4), graph("ring"))
        assert game.payoff.baseline_source == "uniform"
        assert caplog.messages == ["no baseline given: using the uniform probability 1/4"]
        caplog.clear()
        GNNGame(model(4), graph("ring"), target=1, task=BINARY)
        assert caplog.messages == ["no baseline given: using the uniform probability 1/2"]
        caplog.clear()
        for options in ({"payoff": "prob"}, {"payoff": "raw"}, {"baseline": 0.1}):
            GNNGame(model(4), graph("ring"), **options)
        assert not caplog.messages


# -- names -----------------------------------------------------------------------------------------


def test_pygs_own_names_do() -> None:
    by_name = worths(model(1), target=1, task=BINARY)
    fields = {
        "mode": ModelMode.binary_classification,
        "return_type": ModelReturnType.raw,
        "task_level": ModelTaskLevel.graph,
    }
    for task in (fields, Task(**fields), ModelConfig(**fields)):
        assert np.array_equal(by_name, worths(model(1), target=1, task=task))


def test_what_a_game_says_of_itself() -> None:
    game = GNNGame(model(4), graph("ring"), target=[1, 3])
    assert repr(game) == "GNNGame(6 players, payoff='norm_prob', columns=[1, 3], 0 evaluations)"


# -- probabilities by mistake ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "task", "target"), [(4, MULTICLASS, None), (1, BINARY, 1), (4, BINARY, 1)]
)
def test_raw_outputs_that_look_like_probabilities_warn(
    columns: int, task: Task, target: int | None
) -> None:
    net = model(columns, "probs", binary=task == BINARY)
    with pytest.warns(UserWarning, match="declared raw but look like probabilities .*'probs'"):
        GNNGame(net, graph("ring"), task=task, target=target)
    GNNGame(net, graph("ring"), task=replace(task, return_type="probs"), target=target)


def test_a_single_logit_between_nought_and_one_is_common() -> None:
    data = graph("ring")
    data.x[:, 0] = torch.tensor([-2.0, 2.0, -1.0, 1.0, 0.5, 1.0])
    game = GNNGame(
        lambda x, edge_index, batch: global_mean_pool(x[:, :1], batch), data, task=BINARY
    )
    assert 0 < game.prediction.item() < 1


def test_what_looks_like_probabilities() -> None:
    def looks(numbers: list[float], mode: str = "multiclass_classification") -> bool:
        return looks_like_probabilities(torch.tensor([numbers]), mode)

    assert looks([0.2, 0.8])
    assert looks([0.0, 1.0])
    assert looks([0.33335, 0.33335, 0.33335])
    assert not looks([0.2, 0.7])
    assert not looks([-0.2, 1.2])
    assert not looks([0.2, 0.8], "regression")
    assert looks([0.9], "binary_classification")
    assert not looks([1.9], "binary_classification")
    assert not looks([-0.1], "binary_classification")
    assert looks([0.9, 0.8], "binary_classification")
    assert not looks([0.9, 0.0], "binary_classification")


# -- logits by mistake -----------------------------------------------------------------------------


@for_each(
    ("columns", "task", "target"),
    [
        (4, replace(MULTICLASS, return_type="probs"), None),
        (4, replace(MULTICLASS, return_type="log_probs"), None),
        (1, replace(BINARY, return_type="probs"), None),
        (4, replace(BINARY, return_type="probs"), 1),
    ],
)
def test_logits_that_were_declared_probabilities_are_refused(
    columns: int, task: Task, target: int | None
) -> None:
    net, data = model(columns), graph("ring")
    data.x *= 3
    kind = "log-probabilities" if task.return_type == "log_probs" else "probabilities"
    message = f"return_type='{task.return_type}' says.* returns {kind}.*got .*return_type='raw'"
    what: dict[str, Any] = {"task": task, "target": target}
    calls: list[Any] = [
        lambda: GNNGame(net, data, **what),
        lambda: GNNGame(net, data, payoff=lambda outputs: outputs[:, 0], **what),
        lambda: explain(net, data, **what),
        lambda: explain_many(net, [data, data], **what, progress=False),
        lambda: evaluate(net, data, [0, 1], **what),
        lambda: Judge(net, task=task).many([data, data], [[0], [1]], target=target),
    ]
    if target is None:
        calls.append(lambda: expected_output(net, [data, data], task=task))
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_logits_of_a_node_that_were_declared_probabilities_are_refused() -> None:
    for players in ("nodes", "edges", "features"):
        with pytest.raises(ValueError, match="return_type='probs' says"):
            explain(
                lambda x, edge_index: x[:, :3] * 3,
                graph("ring"),
                index=1,
                players=players,
                task={"task_level": "node", "return_type": "probs"},
            )


def test_a_coalition_without_probabilities_is_named() -> None:
    def net(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        counts = torch.bincount(batch)[:, None]
        even = torch.full((len(counts), 2), 0.5)
        return torch.where(counts > 1, even, even * 3)

    game = GNNGame(net, graph("ring"), task={"return_type": "probs"})
    game(np.ones((1, 6), dtype=bool))
    with pytest.raises(ValueError, match=r"says.*got 1\.5, 1\.5") as caught:
        game(np.eye(6, dtype=bool)[2:3])
    assert any("2" in note for note in caught.value.__notes__)


def test_what_are_probabilities() -> None:
    def check(
        numbers: list[float], mode: str, return_type: str, dtype: Any = torch.float32
    ) -> None:
        check_outputs(torch.tensor([numbers], dtype=dtype), mode, return_type)

    for numbers, dtype in (
        ([0.0, 1.0], torch.float32),
        ([1 / 3] * 3, torch.float64),
        ([0.3333, 0.3333, 0.3333], torch.float16),
        ([float("nan"), 0.1], torch.float32),
    ):
        check(numbers, "multiclass_classification", "probs", dtype)
    check([0.0, -float("inf")], "multiclass_classification", "log_probs")
    check([0.9, 0.8], "binary_classification", "probs")
    check([2.0, 3.0], "regression", "raw")
    for numbers, mode, return_type in (
        ([0.4, 0.4], "multiclass_classification", "probs"),
        ([1.5, -0.5], "multiclass_classification", "probs"),
        ([-2.0, -3.0], "multiclass_classification", "log_probs"),
        ([1.0, -3.0], "multiclass_classification", "log_probs"),
        ([1.001], "binary_classification", "probs"),
        ([-0.001, 0.5], "binary_classification", "probs"),
    ):
        with pytest.raises(ValueError, match="return_type"):
            check(numbers, mode, return_type)
