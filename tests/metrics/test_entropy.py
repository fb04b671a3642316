"""Entropy of scores: bounds, golden values, and the reference rows of the paper's Table 4."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx import datasets
from gstarx.metrics import entropy_sparsity, poisson_entropy, uniform_entropy
from tests.shared import DATA, mutag

SCORES = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=12)


def test_by_hand() -> None:
    # shares 1/2, 1/4, 1/4
    assert entropy_sparsity([2, 1, 1]) == pytest.approx(1.5 * math.log(2))
    assert entropy_sparsity([2, 1, -1, 1]) == pytest.approx(1.5 * math.log(2))
    assert entropy_sparsity([2, 0, -2], negative="clip") == 0
    assert entropy_sparsity([2, 0, -2], negative="absolute") == pytest.approx(math.log(2))
    assert entropy_sparsity([5]) == 0


@given(SCORES, st.sampled_from(["clip", "absolute"]))
def test_bounds(scores: list[float], negative: str) -> None:
    assert 0 <= entropy_sparsity(scores, negative=negative) <= math.log(len(scores)) + 1e-12


@given(SCORES, st.permutations(range(12)), st.sampled_from([1e-200, 0.5, 1e200]))
def test_order_and_scale_do_not_matter(scores: list[float], order: list[int], scale: float) -> None:
    moved = [scale * scores[place] for place in order if place < len(scores)]
    # a score that the scale turns into nothing is nothing already
    kept = [score if scale * score else 0.0 for score in scores]
    assert entropy_sparsity(moved) == pytest.approx(entropy_sparsity(kept), abs=1e-9)


@given(st.integers(1, 40), st.integers(0, 40))
def test_equal_scores(count: int, nought: int) -> None:
    found = entropy_sparsity([3.0] * count + [0.0] * nought)
    assert found == pytest.approx(math.log(count), abs=1e-12)
    assert found == pytest.approx(uniform_entropy(count), abs=1e-12)


def test_where_nothing_is_positive_no_node_stands_out() -> None:
    assert entropy_sparsity([0, 0, 0]) == entropy_sparsity([-1, -2, -3]) == math.log(3)
    assert entropy_sparsity([-1, -1, 0], negative="absolute") == pytest.approx(math.log(2))


def test_the_reference_rows_for_25_nodes() -> None:
    """BA_2Motifs: all of its graphs have 25 nodes."""
    found = uniform_entropy(25), uniform_entropy(25, 0.25), poisson_entropy(25)
    assert found == pytest.approx((3.2189, 1.8326, 2.3204), abs=5e-5)


def test_the_reference_rows_for_mutag() -> None:
    sizes = [int(graph.num_nodes) for graph in mutag().split("test")]
    rows: list[Callable[[int], float]] = [
        uniform_entropy,
        lambda n: uniform_entropy(n, 0.25),
        poisson_entropy,
    ]
    found = [np.mean([row(n) for n in sizes]) for row in rows]
    assert found == pytest.approx([2.8612, 1.4749, 2.1323], abs=5e-5)


def test_a_share_is_at_least_one_node() -> None:
    # as in the paper: its rows for datasets with graphs of fewer than four nodes come out so
    assert uniform_entropy(3, 0.25) == 0.0
    assert poisson_entropy(1) == poisson_entropy(4)


BBBP = ((3.0728, 1.6893, 2.2416), "bbbp")
BACE = ((3.5080, 2.1217, 2.4686), "bace")


def test_the_rows_of_table_4_for_drugs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for expected, name in (
        BBBP,
        BACE,
    ):
        pytest.importorskip("rdkit")
        if not (DATA / name.upper()).is_dir():
            pytest.skip(f"{name} is not in {DATA}")
        monkeypatch.setenv("GSTARX_CACHE", str(tmp_path))
        sizes = [int(graph.num_nodes) for graph in datasets.load(name, DATA).split("test")]
        found = (
            np.mean([uniform_entropy(n) for n in sizes]),
            np.mean([uniform_entropy(n, 0.25) for n in sizes]),
            np.mean([poisson_entropy(n) for n in sizes]),
        )
        assert found == pytest.approx(expected, abs=5e-5)


def test_poisson_by_its_definition() -> None:
    for mean in (
        1.0,
        6.25,
        250.0,
    ):
        chances = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(1000)]
        expected = -sum(p * math.log(p) for p in chances if p > 0)
        n = round(mean / 0.25)
        assert poisson_entropy(n) == pytest.approx(expected, abs=1e-9)
        assert poisson_entropy(1000, mean / 1000) == pytest.approx(expected, abs=1e-9)


def test_bad_input() -> None:
    for call, words in (
        (lambda: entropy_sparsity([]), "must not be empty"),
        (lambda: entropy_sparsity([1, float("nan")]), "must be finite"),
        (lambda: entropy_sparsity([[1, 2], [3, 4]]), "must have shape"),
        (lambda: entropy_sparsity([1], negative="ignore"), "one of 'clip', 'absolute'"),
        (lambda: uniform_entropy(0), r"at least 1 \(got 0\)"),
        (lambda: poisson_entropy(0), r"at least 1 \(got 0\)"),
        (lambda: uniform_entropy(4, 0.0), r"share must lie in \(0, 1\] \(got 0.0\)"),
        (lambda: poisson_entropy(4, 1.5), "share must lie in"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
