"""The best set by brute force, searches that come near it, and refined selections."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gstarx import Judge
from gstarx.metrics import evaluate
from gstarx.metrics.optimum import _neighbors, _sets_of
from gstarx.models import GCN
from tests.gnn.networks import FEATURES, build
from tests.gnn.one_by_one import graph
from tests.metrics.by_hand import by_bitmask, harmonic, path, random_chances
from tests.oracles import as_integer, as_sets, subsets


def brute_force(chances: Any, n: int, sizes: range) -> tuple[float, list[frozenset[int]]]:
    """The highest harmonic fidelity of class 1, and all sets of some sizes that reach it."""
    every = as_integer(range(n))
    found = {}
    for nodes in subsets(range(n)):
        if len(nodes) in sizes:
            mask = as_integer(nodes)
            alone, without = chances[mask], chances[every & ~mask]
            found[nodes] = harmonic(chances[every], without, alone, 1 - len(nodes) / n)
    best = max(found.values())
    return best, [nodes for nodes, h in found.items() if h > best - 1e-9]


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(0, 10**6), st.data())
def test_exhaustion_is_brute_force(n: int, seed: int, data: st.DataObject) -> None:
    size, exact = data.draw(st.integers(0, n)), data.draw(st.booleans())
    chances = random_chances(n, seed=seed)
    found = Judge(by_bitmask(chances)).best(path(n), size, exact_size=exact)
    best, sets = brute_force(chances, n, range(size, size + 1) if exact else range(size + 1))
    assert found.evaluation.harmonic_fidelity == pytest.approx(best, abs=1e-9)
    assert frozenset(found.nodes.tolist()) in sets
    assert found.optimal
    assert found.status == "optimal"
    assert found.nodes.tolist() == sorted(found.nodes.tolist())


def test_nine_nodes_by_brute_force() -> None:
    chances = random_chances(9, seed=4)
    found = Judge(by_bitmask(chances)).best(path(9), 4)
    best, sets = brute_force(chances, 9, range(5))
    assert [set(nodes) for nodes in sets] == [set(found.nodes.tolist())]
    assert found.evaluation.harmonic_fidelity == pytest.approx(best, abs=1e-9)
    # sets of at most four nodes and their complements are all sets; nobody is not evaluated
    assert found.evaluations == 2**9 - 1


def test_the_metrics_are_those_of_evaluate() -> None:
    model, data = build("gin"), graph("messy")
    for removal in ("remove", "split", "zero_filling"):
        judge = Judge(model, removal=removal)
        found = judge.best(data, 3, target=1)
        expected = evaluate(model, data, found.nodes, removal=removal, target=1)
        assert astuple(found.evaluation) == pytest.approx(astuple(expected), abs=1e-6)
        other = judge(data, [0, 1, 2], target=1)
        assert found.evaluation.harmonic_fidelity >= other.harmonic_fidelity - 1e-6


def test_searching_comes_near_the_best() -> None:
    reached = 0
    for seed in range(20):
        model, data = by_bitmask(random_chances(8, seed=seed)), path(8)
        best = Judge(model).best(data, 3)
        found = Judge(model).best(data, 3, exhaustive_up_to=0, starts=6, seed=seed)
        assert found.status == "best found"
        assert not found.optimal
        assert len(found.nodes) <= 3
        below = best.evaluation.harmonic_fidelity - found.evaluation.harmonic_fidelity
        assert below >= -1e-9
        reached += below < 1e-9
    assert reached >= 14


def test_more_starts_are_never_worse() -> None:
    for seed in range(5):
        model, data = by_bitmask(random_chances(9, seed=seed)), path(9)
        few, many = (
            Judge(model).best(data, 4, exhaustive_up_to=0, starts=starts, seed=7)
            for starts in (1, 6)
        )
        assert many.evaluation.harmonic_fidelity >= few.evaluation.harmonic_fidelity


def test_exactly_so_many_nodes() -> None:
    for exhaustive_up_to in (
        0,
        20_000,
    ):
        model, data = by_bitmask(random_chances(7, seed=2)), path(7)
        for size in range(8):
            found = Judge(model).best(
                data, size, exact_size=True, exhaustive_up_to=exhaustive_up_to, seed=0
            )
            assert len(found.nodes) == size


def test_nobody_and_everybody() -> None:
    for exhaustive_up_to in (
        0,
        20_000,
    ):
        judge, data = Judge(by_bitmask(random_chances(5, seed=2))), path(5)
        options: dict[str, Any] = {"exhaustive_up_to": exhaustive_up_to, "seed": 0}
        nobody = judge.best(data, 0, **options)
        assert nobody.nodes.tolist() == []
        assert nobody.evaluation.harmonic_fidelity == 0.5
        everybody = judge.best(data, 5, exact_size=True, **options)
        assert everybody.nodes.tolist() == [0, 1, 2, 3, 4]
        assert everybody.evaluation.harmonic_fidelity == 0.5


def test_what_counts_as_few_enough_to_try() -> None:
    model, data = by_bitmask(random_chances(6, seed=2)), path(6)
    # 1 + 6 + 15 sets of at most two nodes
    assert Judge(model).best(data, 2, exhaustive_up_to=22).optimal
    assert not Judge(model).best(data, 2, exhaustive_up_to=21, seed=0).optimal
    assert Judge(model).best(data, 2, exact_size=True, exhaustive_up_to=15).optimal


def test_the_same_seed_the_same_set() -> None:
    model, data = by_bitmask(random_chances(9, seed=3)), path(9)

    def once(seed: Any) -> Any:
        found = Judge(model).best(data, 4, exhaustive_up_to=0, starts=3, seed=seed)
        return found.nodes.tolist(), found.evaluations

    assert once(5) == once(5) == once(np.random.default_rng(5))
    assert len({str(once(seed)) for seed in range(8)}) > 1


def test_of_equals_the_smallest_set_is_taken() -> None:
    def undecided(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return torch.zeros(int(batch.max()) + 1, 2)

    # probability one half of anything: to leave everything out is as good as it gets
    assert Judge(undecided).best(path(4), 2).nodes.tolist() == []


def test_around_a_node() -> None:
    torch.manual_seed(0)
    model, data = GCN(FEATURES, 8, 3, num_layers=1, readout=None), graph("ring")
    del data.edge_weight, data.bond_length_of_edge
    judge = Judge(model, task="node", num_hops=1)
    found = judge.best(data, 2, exact_size=True, index=3)
    assert set(found.nodes.tolist()) <= {2, 3, 4}
    assert found.evaluation.sparsity == pytest.approx(1 / 3)
    expected = evaluate(model, data, found.nodes, task="node", index=3, num_hops=1)
    assert astuple(found.evaluation) == pytest.approx(astuple(expected), abs=1e-6)
    refined = judge.refine(data, [2, 3], index=3)
    assert refined.after == found.evaluation


def test_all_sets_of_some_sizes() -> None:
    for sizes in (range(4), range(2, 3), range(0, 1), range(3, 5)):
        found = as_sets(_sets_of(4, sizes))
        assert found == [nodes for nodes in subsets(range(4)) if len(nodes) in sizes]


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_neighbors_are_one_change_away(inside: list[bool], data: st.DataObject) -> None:
    current, held = np.array(inside), sum(inside)
    size = data.draw(st.integers(held, len(inside)))
    here = frozenset(np.flatnonzero(current).tolist())
    swaps = {
        nodes
        for nodes in subsets(range(len(inside)))
        if len(nodes) == held and len(nodes ^ here) == 2
    }
    exact = as_sets(_neighbors(current, size, True))
    assert set(exact) == swaps
    assert len(exact) == len(swaps)
    flips = {
        nodes
        for nodes in subsets(range(len(inside)))
        if len(nodes ^ here) == 1 and len(nodes) <= size
    }
    assert set(as_sets(_neighbors(current, size, False))) == swaps | flips


@settings(max_examples=40)
@given(st.integers(2, 8), st.integers(0, 10**6), st.integers(3, 60), st.data())
def test_refining(n: int, seed: int, budget: int, data: st.DataObject) -> None:
    inside = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    model = by_bitmask(random_chances(n, seed=seed))
    found = Judge(model).refine(path(n), inside, budget=budget)
    assert found.refined
    assert len(found.nodes) == sum(inside)
    assert found.evaluations <= budget
    assert found.after.harmonic_fidelity >= found.before.harmonic_fidelity - 1e-12
    for given_nodes, reported in ((inside, found.before), (found.nodes, found.after)):
        expected = evaluate(model, path(n), given_nodes)
        assert astuple(reported) == pytest.approx(astuple(expected), abs=1e-9)


def test_refining_stops_where_no_swap_helps() -> None:
    chances = random_chances(7, seed=1)
    model = by_bitmask(chances)
    found = Judge(model).refine(path(7), [0, 1, 2])
    chosen = set(found.nodes.tolist())
    assert found.after.harmonic_fidelity > found.before.harmonic_fidelity
    for leave in chosen:
        for enter in set(range(7)) - chosen:
            near = evaluate(model, path(7), chosen - {leave} | {enter})
            assert near.harmonic_fidelity <= found.after.harmonic_fidelity + 1e-9
    assert Judge(model).refine(path(7), found.nodes).nodes.tolist() == sorted(chosen)


def test_the_best_selection_cannot_be_refined() -> None:
    for seed in range(5):
        model = by_bitmask(random_chances(7, seed=seed))
        best = Judge(model).best(path(7), 3, exact_size=True)
        assert Judge(model).refine(path(7), best.nodes).after == best.evaluation


def test_a_budget_of_nothing_but_the_start() -> None:
    model = by_bitmask(random_chances(7, seed=1))
    found = Judge(model).refine(path(7), [0, 1, 2], budget=3)
    assert found.nodes.tolist() == [0, 1, 2]
    assert found.before == found.after
    assert found.evaluations == 3


def test_bad_input() -> None:
    for size, options, error, words in (
        (5, {}, ValueError, r"size must lie in 0\.\.4, the number of nodes \(got 5\)"),
        (-1, {}, ValueError, r"size must lie in 0\.\.4"),
        (1.5, {}, TypeError, r"size must be an integer \(got 1.5\)"),
        (True, {}, TypeError, "size must be an integer"),
        (1, {"color": 1}, TypeError, "unexpected keyword argument 'color'"),
        (1, {"target": "all"}, TypeError, "target must be one class"),
        (1, {"target": 7}, ValueError, r"0\.\.1 \(got 7\)"),
    ):
        with pytest.raises(error, match=words):
            Judge(by_bitmask(random_chances(4, seed=0))).best(path(4), size, **options)


def test_bad_input_for_refining() -> None:
    model = by_bitmask(random_chances(4, seed=0))
    with pytest.raises(ValueError, match=r"budget must be at least 3.*\(got 2\)"):
        Judge(model).refine(path(4), [0], budget=2)
    with pytest.raises(ValueError, match=r"nodes must lie in 0\.\.3"):
        Judge(model).refine(path(4), [4])
    with pytest.raises(ValueError, match="must not repeat"):
        Judge(model).refine(path(4), [1, 1])
