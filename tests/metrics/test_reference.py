"""Metrics of regression: by hand, by brute force, bounded, and the same in other units."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, astuple
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

from gstarx import Judge, Task, metrics
from gstarx.evaluation import Pipeline
from gstarx.explainers import create
from gstarx.metrics import METRICS, Faithfulness, Reference, average, evaluate
from tests.metrics.by_hand import harmonic, path

#: Output for every set of nodes of a path 0 - 1 - 2.
OUTPUTS = {
    (0,): 1.0,
    (1,): 7.0,
    (2,): 2.0,
    (0, 1): 4.5,
    (0, 2): -3.0,
    (1, 2): 6.0,
    (0, 1, 2): 5.0,
}
REFERENCE = Reference(range=4.0, mean=2.0)


def by_table(outputs: dict[tuple[int, ...], Any]) -> Callable[..., Tensor]:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        there = [x[batch == g].sum(dim=0).nonzero()[:, 0] for g in batch.unique()]
        found = [outputs[tuple(nodes.tolist())] for nodes in there]
        return torch.tensor(found, dtype=torch.double).reshape(len(found), -1)

    return model


def judged(model: Any, nodes: Any, reference: Reference = REFERENCE, **options: Any) -> Any:
    return evaluate(model, path(3), nodes, reference=reference, task="regression", **options)


def by_definition(
    outputs: dict[tuple[int, ...], float], nodes: tuple[int, ...], reference: Reference
) -> dict[str, float]:
    """The definition, word for word."""
    everybody = max(outputs, key=len)
    table = {**outputs, (): reference.mean}
    whole, width, mean = outputs[everybody], reference.range, reference.mean
    rest = tuple(i for i in everybody if i not in nodes)
    sign = np.sign(whole - mean)
    both = [sign * (whole - table[part]) / width for part in (rest, tuple(nodes))]
    fidelity, inverse = (min(1.0, max(-1.0, one)) for one in both)
    sparsity = 1 - len(nodes) / len(everybody)
    up, down = 1 + fidelity * sparsity, 1 - inverse * (1 - sparsity)
    return {
        "fidelity": fidelity,
        "inverse_fidelity": inverse,
        "sparsity": sparsity,
        "harmonic_fidelity": up * down / (up + down) if up + down else 0.0,
        "clipped": float(any(abs(one) > 1 for one in both)),
    }


def test_by_hand() -> None:
    for nodes, fidelity, inverse, clipped in (
        ([1], 1.0, -0.5, 1),  # without 1: (5 + 3) / 4 is clipped; alone (5 - 7) / 4
        ([2], 0.125, 0.75, 0),  # without 2: (5 - 4.5) / 4; alone (5 - 2) / 4
        ([0, 1, 2], 0.75, 0.0, 0),  # nothing left counts as 2
        ([], 0.0, 0.75, 0),
    ):
        found = judged(by_table(OUTPUTS), nodes)
        assert (found.fidelity, found.inverse_fidelity, found.clipped) == (
            fidelity,
            inverse,
            clipped,
        )
        share = 1 - len(nodes) / 3
        assert found.harmonic_fidelity == pytest.approx(
            harmonic(0.0, -fidelity, -inverse, share), abs=1e-12
        )
        assert found.undefined == 0


def test_below_the_mean_a_rise_is_a_loss() -> None:
    below = judged(by_table(OUTPUTS), [2], Reference(range=4.0, mean=20.0))
    assert (below.fidelity, below.inverse_fidelity) == (-0.125, -0.75)
    nothing = judged(by_table(OUTPUTS), [], Reference(range=20.0, mean=15.0))
    assert nothing.inverse_fidelity == 0.5


def test_one_of_several_outputs() -> None:
    outputs = {nodes: (0.0, value, 9.0) for nodes, value in OUTPUTS.items()}
    several = Reference((0.0, 4.0, 1.0), (0.0, 2.0, 9.0))
    for nodes in ([1], [2], []):
        one = judged(by_table(OUTPUTS), nodes)
        assert judged(by_table(outputs), nodes, several, target=1) == one
        # one number stands for all outputs
        assert judged(by_table(outputs), nodes, target=1) == one
    with pytest.raises(ValueError, match="has 3 outputs: choose one with target"):
        judged(by_table(outputs), [1], several)
    with pytest.raises(ValueError, match=r"each of the model's 3 outputs \(got 2\)"):
        judged(by_table(outputs), [1], Reference((1, 1), (0, 0)), target=1)
    with pytest.raises(ValueError, match=r"above 0 \(got 0 for output 0\): the model's outputs do"):
        judged(by_table(outputs), [1], several, target=0)


def test_a_prediction_that_is_the_mean_is_counted_apart() -> None:
    model = by_table(OUTPUTS)
    tie = judged(model, [1], Reference(range=4.0, mean=5.0))
    assert tie.undefined == 1
    assert tie.clipped == 0
    assert tie.sparsity == pytest.approx(2 / 3)
    assert all(np.isnan(getattr(tie, name)) for name in METRICS if name != "sparsity")
    usual = [judged(model, [1]), judged(model, [2]), judged(model, [0, 1])]
    expected = average(usual)
    assert expected.clipped == pytest.approx(1 / 3)
    found = average([*usual[:2], tie, usual[2]])
    assert found.undefined == 0.25
    for name in (*METRICS, "clipped"):
        assert getattr(found, name) == getattr(expected, name)
    nothing = average([tie, tie])
    assert nothing.undefined == 1
    assert np.isnan(nothing.harmonic_fidelity)
    # means of means, as of random selections, count graphs
    assert average([average([tie, tie]), average(usual)]).undefined == 0.5
    judge = Judge(model, task="regression", reference=Reference(4.0, 5.0))
    best = judge.best(path(3), 2)
    assert best.evaluation.undefined == 1
    assert np.isnan(best.evaluation.harmonic_fidelity)
    assert np.isnan(judge.refine(path(3), [0]).after.harmonic_fidelity)
    assert np.isnan(judge.robust(path(3), [0], seed=0).fidelity)


numbers = st.floats(-100, 100).map(lambda number: round(number, 3))
tables = st.tuples(*[numbers] * 7).map(lambda values: dict(zip(OUTPUTS, values, strict=True)))
references = st.builds(Reference, st.floats(0.01, 300), numbers)


@settings(max_examples=60, deadline=None)
@given(tables, references)
def test_by_brute_force(outputs: dict[tuple[int, ...], float], reference: Reference) -> None:
    if outputs[0, 1, 2] == reference.mean:
        return
    model = by_table(outputs)
    sets = [list(nodes) for size in range(4) for nodes in combinations(range(3), size)]
    (found,) = Judge(model, task="regression", reference=reference).many([path(3)], [sets])
    for nodes, one in zip(sets, found, strict=True):
        for name, value in by_definition(outputs, tuple(nodes), reference).items():
            assert getattr(one, name) == pytest.approx(value, abs=1e-9)
        assert -1 <= one.fidelity <= 1
        assert -1 <= one.inverse_fidelity <= 1
        assert 0 <= one.harmonic_fidelity <= 1
    best = Judge(model, task="regression", reference=reference).best(path(3), 3)
    assert best.evaluation.harmonic_fidelity == pytest.approx(
        max(one.harmonic_fidelity for one in found), abs=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(tables, references, st.floats(0.1, 10), numbers, st.booleans())
def test_other_units_do_not_matter(
    outputs: dict[tuple[int, ...], float],
    reference: Reference,
    factor: float,
    shift: float,
    mirrored: bool,
) -> None:
    if abs(outputs[0, 1, 2] - reference.mean) < 1e-6:  # type: ignore[operator]
        return
    sign = -1 if mirrored else 1
    changed = {nodes: sign * factor * value + shift for nodes, value in outputs.items()}
    moved = Reference(reference.range * factor, sign * factor * reference.mean + shift)  # type: ignore[operator]
    for nodes in ([1], [0, 2], []):
        one, other = (
            judged(by_table(table), nodes, scale)
            for table, scale in ((outputs, reference), (changed, moved))
        )
        measured = [astuple(found)[: len(METRICS)] for found in (one, other)]
        assert measured[0] == pytest.approx(measured[1], abs=1e-6)


def test_every_function_says_the_same() -> None:
    model, data = by_table(OUTPUTS), path(3)
    options: dict[str, Any] = {"task": "regression", "reference": REFERENCE}
    judge = Judge(model, **options)
    one = evaluate(model, data, [1], **options)
    assert judge(data, [1]) == one
    curve = judge.curve(data, [0.0, 1.0, 0.5], sparsities=[0.6])
    assert curve.points == (one,)
    assert curve.points[0].clipped == 1
    robust = judge.robust(data, [1], delete_inside=1, delete_outside=1, seed=0)
    assert (robust.fidelity, robust.inverse_fidelity) == (one.fidelity, one.inverse_fidelity)
    refined = judge.refine(data, [0])
    assert refined.before == evaluate(model, data, [0], **options)
    assert refined.after == evaluate(model, data, refined.nodes, **options)
    best = dict(judge.best_of_sizes(data, [1]))[1]
    assert best.nodes.tolist() == [1]
    assert best.evaluation == one
    nothing = judge.best(data, 0).evaluation
    assert nothing == evaluate(model, data, [], **options)
    assert nothing.inverse_fidelity == 0.75
    ((found,),) = Pipeline(model, **options).evaluate_selections([data], [[[1]]])
    assert found == one
    for given_as in (REFERENCE, asdict(REFERENCE)):
        oracle = create("best_found", sparsities=[0.6], reference=given_as)
        assert oracle.explain(model, data, task="regression").select(size=1).tolist() == [1]
        oracle = create("refined", sparsities=[0.6], reference=given_as)
        selected = oracle.explain(model, data, seed=0, task="regression").select(size=1)
        assert selected.tolist() == [1]
    with pytest.raises(ValueError, match=r"need reference=.*for nodes or edges .*Reference\.of"):
        create("best_found").explain(model, data, task="regression")
    with pytest.raises(ValueError, match="predicts no labels"):
        judge.labels(data, [1])


def test_nodes_can_be_judged_as_well() -> None:
    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        out = x.sum(dim=1, keepdim=True)
        return out.index_add(0, edge_index[1], out[edge_index[0]])

    data = Data(x=torch.tensor([[1.0], [2.0], [4.0]]), edge_index=path(3).edge_index)
    task = Task(mode="regression", task_level="node")
    judge = Judge(model, task=task, reference=Reference(10.0, 1.0))
    found = evaluate(model, data, [0], reference=Reference(10.0, 1.0), task=task, index=1)
    # node 1 sums up 1 + 2 + 4; without node 0 it is 6, with node 0 alone 3
    assert found.fidelity == pytest.approx(0.1)
    alone = judge.best(data, 1, index=1)
    again = judge(data, alone.nodes, index=1)
    assert astuple(alone.evaluation) == pytest.approx(astuple(again))


def test_keywords_reach_the_model() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor, **more: Tensor) -> Tensor:
        return global_add_pool(more["weight"], batch)

    data = path(3)
    data.weight = torch.tensor([[1.0], [5.0], [2.0]])
    judge = Judge(model, task=Task("regression", keywords=["weight"]), reference=REFERENCE)
    assert judge.best(data, 1).nodes.tolist() == [1]


def test_short_names_of_tasks() -> None:
    def logits(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(x, batch)[:, :2]

    def one_logit(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(x, batch)[:, :1]

    for short, name, model, target in (
        ("classification", "multiclass_classification", logits, None),
        ("multilabel", "binary_classification", logits, 1),
        ("binary", "binary_classification", one_logit, None),
    ):
        one, other = (
            evaluate(model, path(3), [0], target=target, task=mode) for mode in (short, name)
        )
        assert one == other
    with pytest.raises(ValueError, match="2 outputs: choose one"):
        evaluate(logits, path(3), [0], task="multilabel")
    with pytest.raises(ValueError, match=r"no task 'guess'; did you mean 'regression'\?"):
        evaluate(logits, path(3), [0], task="guess")


def mean_and_sum(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
    total = global_add_pool(x, batch)
    return torch.cat([total, -2 * total], dim=1)


def sizes(*counts: int) -> list[Data]:
    none = torch.zeros(2, 0, dtype=torch.long)
    return [Data(x=torch.ones(n, 1), edge_index=none) for n in counts]


def test_the_reference_of_a_model() -> None:
    counts = np.random.default_rng(0).integers(1, 30, 150)
    found = metrics.reference_of(mean_and_sum, sizes(*counts))
    low, high = np.percentile(counts, [5, 95])
    assert found.range == pytest.approx((high - low, 2 * (high - low)))
    assert found.mean == pytest.approx((counts.mean(), -2 * counts.mean()))
    assert Reference(**json.loads(json.dumps(asdict(found)))) == found
    one = metrics.reference_of(lambda x, edge_index, batch: global_add_pool(x, batch), sizes(1, 3))
    assert isinstance(one.range, float)
    assert (one.range, one.mean) == pytest.approx((1.8, 2.0))
    constant = metrics.reference_of(mean_and_sum, sizes(4, 4))
    assert constant.range == (0.0, 0.0)


def test_references_that_are_none() -> None:
    for fields, words in (
        ({"range": None, "mean": 1.0}, r"range of a reference must be a finite number.*got None"),
        ({"range": 1.0, "mean": None}, r"mean of a reference must be"),
        ({"range": 1.0, "mean": "x"}, r"mean of a reference must be"),
        ({"range": np.nan, "mean": 1.0}, "must be a finite number"),
        ({"range": np.inf, "mean": 1.0}, "must be a finite number"),
        ({"range": -1.0, "mean": 1.0}, "at least 0"),
        ({"range": (1.0, 2.0), "mean": 1.0}, "must be of the same outputs"),
        ({"range": (), "mean": ()}, "must be a finite number"),
    ):
        with pytest.raises(ValueError, match=words):
            Reference(**fields)


def test_bad_input() -> None:
    model = by_table(OUTPUTS)
    with pytest.raises(ValueError, match="range of the reference must be above 0"):
        judged(model, [1], Reference(0.0, 1.0))
    with pytest.raises(ValueError, match="range of the reference must be above 0"):
        Judge(model, task="regression", reference=Reference(0.0, 1.0)).best(path(3), 1)
    with pytest.raises(TypeError, match=r"must be a metrics.Reference, or a mapping"):
        judged(model, [1], {"range": 1.0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no graphs"):
        metrics.reference_of(mean_and_sum, [])
    with pytest.raises(ValueError, match="only regression needs a reference"):
        metrics.reference_of(mean_and_sum, sizes(1), task="binary")
    with pytest.raises(ValueError, match=r"outputs for graph 1 are .*must be finite"):
        metrics.reference_of(lambda x, edge_index: x.sum()[None] / (len(x) - 2), sizes(3, 2))
    with pytest.raises(ValueError, match=r"gives values .* must be finite"):
        judged(by_table({**OUTPUTS, (1,): np.nan}), [1])


def test_classification_is_not_clipped() -> None:
    # a probability in single precision may be above 1 by rounding, and stays so
    assert Faithfulness.of(1.0000001, 0.0, 1.0, 0.5).fidelity == 1.0000001
