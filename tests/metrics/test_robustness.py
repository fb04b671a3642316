"""Partial deletion, other numberings, other seeds, other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data

from gstarx import Judge, explain
from gstarx.metrics import (
    evaluate,
    randomization_check,
    rank_correlation,
    relabeling_stability,
    seed_stability,
)
from gstarx.metrics.comparison import renumbered
from tests.gnn.networks import build
from tests.gnn.one_by_one import graph
from tests.metrics.by_hand import CHANCES, by_table, path

MODEL = by_table(CHANCES)


def test_certain_deletion_is_the_plain_fidelity() -> None:
    for removal in (
        "remove",
        "split",
        "zero_filling",
    ):
        for nodes in (
            [],
            [0],
            [1, 2, 4],
            list(range(7)),
        ):
            model, data = build("gcn"), graph("messy")
            judge = Judge(model, removal=removal)
            found = judge.robust(
                data, nodes, delete_inside=1, delete_outside=1, samples=3, target=1
            )
            plain = evaluate(model, data, nodes, removal=removal, target=1)
            assert found.fidelity == pytest.approx(plain.fidelity, abs=1e-6)
            assert found.inverse_fidelity == pytest.approx(plain.inverse_fidelity, abs=1e-6)
            assert found.fidelity_std_error == pytest.approx(0, abs=1e-7)


def test_no_deletion_loses_nothing_and_one_has_no_standard_error() -> None:
    found = Judge(MODEL).robust(path(3), [1], delete_inside=0, delete_outside=0, samples=4)
    assert (found.fidelity, found.inverse_fidelity) == (0, 0)

    found = Judge(MODEL).robust(path(3), [1], samples=1, seed=0)
    assert np.isnan(found.fidelity_std_error)


def test_the_mean_by_hand() -> None:
    found = Judge(MODEL).robust(
        path(3), [1], delete_inside=0.5, delete_outside=0.5, samples=4000, seed=0
    )
    # node 1 goes half of the time, and loses 0.7
    assert found.fidelity == pytest.approx(0.35, abs=4 * found.fidelity_std_error)
    assert found.fidelity_std_error == pytest.approx(0.35 / np.sqrt(4000), rel=0.01)
    # with 1 stay both, only 0, only 2, or nobody
    lost = np.mean([0, 0.9 - 0.7, 0.9 - 0.6, 0.9 - 0.4])
    assert found.inverse_fidelity == pytest.approx(lost, abs=4 * found.inverse_fidelity_std_error)


def test_the_same_seed_the_same_deletions() -> None:
    def once(seed: Any) -> Any:
        return Judge(build("gcn")).robust(graph("ring"), [0, 1], samples=5, seed=seed)

    assert once(1) == once(np.random.default_rng(1))
    assert once(1) != once(2)


def test_bad_options() -> None:
    for options, error, words in (
        ({"delete_inside": 1.1}, ValueError, r"delete_inside must lie in \[0, 1\] \(got 1.1\)"),
        ({"delete_outside": -0.1}, ValueError, "delete_outside must lie in"),
        ({"samples": 0}, ValueError, "samples must be at least 1"),
        ({"color": 1}, TypeError, "unexpected keyword argument 'color'"),
    ):
        with pytest.raises(error, match=words):
            Judge(MODEL).robust(path(3), [0], **options)


def by_neighbors(data: Data) -> Any:
    """An explainer that follows the nodes: features of a node and of where its edges come from."""
    total = data.x.sum(dim=1)
    return total.index_add(0, data.edge_index[1], data.x.sum(dim=1)[data.edge_index[0]])


def test_scores_that_follow_the_nodes_are_stable_and_others_are_not() -> None:
    found = relabeling_stability(by_neighbors, graph("messy"), seed=0)
    assert found.largest < 1e-5
    assert found.correlation == pytest.approx(1)
    assert found.runs == 6

    found = relabeling_stability(lambda data: np.arange(6.0), graph("ring"), seed=0)
    assert found.largest > 1
    assert found.correlation < 0.9

    found = relabeling_stability(lambda data: np.full(6, 2.0), graph("ring"), repeats=1)
    assert (found.largest, found.correlation, found.runs) == (0, 1, 2)


def test_scores_of_exact_values_are_stable() -> None:
    model = build("gcn")
    found = relabeling_stability(lambda data: explain(model, data).node_mask, graph("messy"))
    assert found.largest < 1e-5


def test_seeds() -> None:
    def drawn(data: Data, seed: int) -> Any:
        return np.random.default_rng(seed).normal(size=data.num_nodes)

    same = seed_stability(lambda data, seed: drawn(data, 0), graph("ring"))
    assert (same.largest, same.correlation, same.runs) == (0, pytest.approx(1), 5)
    other = seed_stability(drawn, graph("ring"), seeds=[3, 4])
    one, two = drawn(graph("ring"), 3), drawn(graph("ring"), 4)
    assert other.largest == pytest.approx(np.abs(one - two).max())
    assert other.correlation == pytest.approx(rank_correlation(one, two))
    with pytest.raises(ValueError, match=r"at least two runs.*\(got 1\)"):
        seed_stability(drawn, graph("ring"), seeds=[3])
    with pytest.raises(ValueError, match=r"shape \(6,\) \(got \(2,\)\)"):
        seed_stability(lambda data, seed: [1, 2], graph("ring"))


def test_renumbering_moves_everything_that_belongs_to_nodes() -> None:
    data = graph("messy")
    data.refractive_index = torch.tensor(1.33)
    order = np.array([3, 1, 6, 0, 2, 5, 4])
    moved = renumbered(data, order)
    assert torch.equal(moved.x, data.x[order])
    assert torch.equal(torch.from_numpy(order)[moved.edge_index], data.edge_index)
    assert torch.equal(torch.from_numpy(order)[moved.pair_index], data.pair_index)
    assert torch.equal(moved.edge_attr, data.edge_attr)
    assert moved.refractive_index == data.refractive_index
    assert moved.name == data.name
    assert torch.equal(data.x, graph("messy").x)  # the graph itself stays


def test_an_explainer_that_ignores_the_model_fails_the_check() -> None:
    found = randomization_check(lambda model, data: data.x[:, 0], build("gcn"), graph("ring"))
    assert found == pytest.approx(1)


def test_an_explainer_that_looks_at_the_model_passes() -> None:
    model, data = build("gcn"), graph("wide")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seen: list[Any] = []

    def explainer(network: nn.Module, asked: Data) -> Any:
        seen.append([parameter.detach().clone() for parameter in network.parameters()])
        with torch.no_grad():
            gradient_like = network.convs[0].lin.weight.sum(dim=0)
        return asked.x @ gradient_like

    found = randomization_check(explainer, model, data, repeats=4, seed=1)
    assert found < 0.9
    assert randomization_check(explainer, model, data, repeats=4, seed=1) == found
    assert randomization_check(explainer, model, data, repeats=4, seed=2) != found
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    original, *shuffled = seen[:5]
    for weights in shuffled:
        assert not all(map(torch.equal, weights, original))
        for one, other in zip(weights, original, strict=True):
            assert torch.equal(one.flatten().sort().values, other.flatten().sort().values)
    with pytest.raises(ValueError, match=r"repeats must be at least 1 \(got 0\)"):
        randomization_check(explainer, model, data, repeats=0)


COLUMN = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=8)


@given(COLUMN, st.randoms(use_true_random=False))
def test_rank_correlation_by_definition(first: list[float], random: Any) -> None:
    second = random.sample(first, len(first))

    def mean_ranks(column: list[float]) -> Any:
        return [sum(o < v for o in column) + (column.count(v) + 1) / 2 for v in column]

    found = rank_correlation(first, second)
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    if len(set(first)) > 1:
        expected = np.corrcoef(mean_ranks(first), mean_ranks(second))[0, 1]
        assert found == pytest.approx(expected, abs=1e-9)
    else:
        assert found == 1
    assert rank_correlation(first, [v**3 for v in first]) == pytest.approx(1)


def test_rank_correlation_at_its_ends() -> None:
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 1, 1], [3, 2, 1]) == 0
    with pytest.raises(ValueError, match=r"equally long and not empty \(got 2 and 3\)"):
        rank_correlation([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"\(got 0 and 0\)"):
        rank_correlation([], [])
