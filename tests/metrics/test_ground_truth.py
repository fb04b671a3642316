"""Against known nodes: by brute force over pairs and by counting."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gstarx.datasets import load
from gstarx.metrics import (
    attribution_auroc,
    attribution_tau,
    auroc,
    iou,
    precision,
    precision_at_k,
    recall,
)
from tests.oracles import subsets
from tests.shared import DATA

SCORED = st.lists(st.tuples(st.integers(-2, 2).map(float), st.booleans()), min_size=1, max_size=10)


@given(SCORED)
def test_auroc_counts_pairs(nodes: list[tuple[float, bool]]) -> None:
    true = [score for score, inside in nodes if inside]
    other = [score for score, inside in nodes if not inside]
    assume(true and other)
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(true, other)]
    scores, truth = [score for score, _ in nodes], np.array([inside for _, inside in nodes])
    assert auroc(scores, truth) == pytest.approx(sum(wins) / len(wins))
    assert auroc(scores, np.flatnonzero(truth)) == auroc(scores, truth)
    assert auroc(scores, truth) + auroc(scores, ~truth) == pytest.approx(1)


def test_auroc_at_its_ends() -> None:
    assert auroc([3, 2, 1, 0], [0, 1]) == 1
    assert auroc([3, 2, 1, 0], [2, 3]) == 0
    assert auroc([7, 7, 7, 7], [0, 1]) == 0.5


@given(SCORED, st.data())
def test_precision_at_k_counts(nodes: list[tuple[float, bool]], data: st.DataObject) -> None:
    scores, truth = [score for score, _ in nodes], [inside for _, inside in nodes]
    order = sorted(range(len(nodes)), key=lambda node: (-scores[node], node))
    k = data.draw(st.integers(1, len(nodes)))
    assert precision_at_k(scores, truth, k) == pytest.approx(
        sum(truth[node] for node in order[:k]) / k
    )
    if any(truth):
        assert precision_at_k(scores, truth) == precision_at_k(scores, truth, sum(truth))


def test_precision_recall_and_overlap_of_every_pair_of_sets() -> None:
    for chosen in subsets(range(4)):
        for truth in subsets(range(4)):
            both, either = len(chosen & truth), len(chosen | truth)
            assert precision(chosen, truth, 4) == (both / len(chosen) if chosen else 0)
            if truth:
                assert recall(chosen, truth, 4) == both / len(truth)
            if either:
                assert iou(chosen, truth, 4) == both / either


def test_bad_input() -> None:
    for call, words in (
        (lambda: auroc([1, 2], []), r"some but not all of the 2 nodes \(got 0\)"),
        (lambda: auroc([1, 2], [0, 1]), r"but not all of the 2 nodes \(got 2\)"),
        (lambda: auroc([1, float("nan")], [0]), "must be finite"),
        (lambda: auroc([1, 2], [2]), r"must lie in 0\.\.1"),
        (lambda: auroc([1, 2], [True]), r"shape \(2,\) \(got \(1,\)\)"),
        (lambda: precision_at_k([1, 2], [0], 0), r"k must lie in 1\.\.2 \(got 0\)"),
        (lambda: precision_at_k([1, 2], [0], 3), r"k must lie in 1\.\.2 \(got 3\)"),
        (lambda: precision_at_k([1, 2], []), r"k must lie in 1\.\.2 \(got 0\)"),
        (lambda: recall([0], [], 2), "at least one node"),
        (lambda: iou([], [], 2), "must not both be empty"),
        (lambda: precision([0, 0], [1], 2), "must not repeat"),
    ):
        with pytest.raises(ValueError, match=words):
            call()

    for call, message in (
        (lambda: attribution_auroc([1, np.nan], [[0, 1]]), "scores must be finite"),
        (lambda: attribution_auroc([1, 2], [[0, 1, 1]]), r"shape \(alternatives, 2\).*\(1, 3\)"),
        (lambda: attribution_auroc([1, 2], [[0.5, 1]]), "truths must be masks of 0 and 1"),
        (lambda: attribution_auroc([1, 2], [[np.nan, 1]]), "truths must be finite"),
        (lambda: attribution_auroc([1, 2], [[0, 1]], edge_scores=[1]), "need edge_index"),
        (
            lambda: attribution_auroc([1, 2], [[0, 1]], edge_scores=[1], edge_index=[[0, 1]]),
            r"edge_index must have shape \(2, 1\)",
        ),
        (
            lambda: attribution_auroc([1, 2], [[0, 1]], edge_scores=[1], edge_index=[[0], [5]]),
            r"edge_index must name nodes in 0\.\.1",
        ),
        (lambda: attribution_tau([1, 2], [[0, 1], [1, 0]]), r"one row of contributions \(got 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


MASKS = st.integers(2, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-2, 2).map(float), min_size=n, max_size=n),
        st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=5),
    )
)


@given(MASKS)
def test_attribution_auroc_is_that_of_the_best_alternative(
    given: tuple[list[float], list[list[bool]]],
) -> None:
    scores, masks = given
    defined = [mask for mask in masks if any(mask) and not all(mask)]
    area = attribution_auroc(scores, masks)
    if not defined:
        assert np.isnan(area)
    else:
        assert area == pytest.approx(max(auroc(scores, np.array(mask)) for mask in defined))


@given(MASKS, st.data())
def test_scores_of_edges_go_to_the_nodes_they_point_to(
    given: tuple[list[float], list[list[bool]]], data: st.DataObject
) -> None:
    scores, masks = given
    node = st.integers(0, len(scores) - 1)
    edges = data.draw(st.lists(st.tuples(node, node, st.integers(-3, 3)), min_size=1, max_size=9))
    totals = list(scores)
    for _, target, weight in edges:
        totals[target] += weight
    weights, ends = [w for _, _, w in edges], np.array([e[:2] for e in edges]).T
    both = {"edge_scores": weights, "edge_index": ends}
    assert attribution_auroc(scores, masks, **both) == pytest.approx(
        attribution_auroc(totals, masks), nan_ok=True
    )
    assert attribution_tau(scores, totals, **both) == pytest.approx(
        attribution_tau(totals, totals), nan_ok=True
    )


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=9))
def test_tau_counts_pairs(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs, dtype=float).T
    concordant, first, second = 0.0, 0, 0
    for a in range(len(pairs)):
        for b in range(a):
            signs = np.sign(one[a] - one[b]), np.sign(other[a] - other[b])
            concordant += signs[0] * signs[1]
            first, second = first + (signs[0] != 0), second + (signs[1] != 0)
    tau = attribution_tau(one, other)
    if first and second:
        assert tau == pytest.approx(concordant / np.sqrt(first * second))
    else:
        assert np.isnan(tau)


#: The published metric on whole test splits: by number of neighbors, and by number of the atom.
CHECKED = {
    "benzene": (0.643935, 0.588001),
    "logic7": (0.335465, 0.713962),
    "logic8": (0.436037, 0.473745),
    "crippen": (0.190701, -0.154511),
}
#: Random scores of atoms and edges, the mean of 20 draws; published .614, .423, .498, .131.
RANDOM = {"benzene": 0.613, "logic7": 0.425, "logic8": 0.497, "crippen": 0.132}


@pytest.mark.parametrize("name", CHECKED)
def test_known_values_on_the_attribution_tasks_come_out(name: str) -> None:
    if not (DATA / "attribution" / f"{name}.npz").is_file():
        pytest.skip(f"the attribution tasks are not in {DATA}")
    graphs = load(name, DATA).split("test")
    metric = attribution_tau if name == "crippen" else attribution_auroc
    degree, number, random = [], [], []
    generator = np.random.default_rng(0)
    for graph in graphs:
        nodes = int(graph.num_nodes)
        if name != "crippen" and not graph.truth.any():
            assert np.isnan(metric(np.arange(nodes), graph.truths))
            continue
        degree.append(metric(np.bincount(graph.edge_index[1], minlength=nodes), graph.truths))
        number.append(metric(np.arange(nodes), graph.truths))
        for _ in range(3):
            edges = generator.random(graph.num_edges)
            of_edges = {"edge_scores": edges, "edge_index": graph.edge_index}
            random.append(metric(generator.random(nodes), graph.truths, **of_edges))
    assert np.nanmean(degree) == pytest.approx(CHECKED[name][0], abs=1e-6)
    assert np.nanmean(number) == pytest.approx(CHECKED[name][1], abs=1e-6)
    assert np.nanmean(random) == pytest.approx(RANDOM[name], abs=0.03)
