"""Scores and selections in words."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx.drawing.painted import Painted, color_limit


def painted(scores: list[float], selected: object = None) -> Painted:
    return Painted.of(scores, selected, None, [f"n{i}" for i in range(len(scores))])


def test_five_of_each_end_are_named_best_first() -> None:
    said = painted([-0.1, 0.7, 0.1, 0.2, 0.3, 0.4, 0.5, -0.9]).described()
    assert said == (
        "8 nodes. Highest scores: n1 +0.7, n6 +0.5, n5 +0.4, n4 +0.3, n3 +0.2. "
        "Lowest scores: n7 −0.9, n0 −0.1."
    )


def test_zero_is_neither_high_nor_low() -> None:
    assert painted([0.0]).described("word") == "1 word. All scores are 0."
    assert painted([0.0, 1.0]).described() == "2 nodes. Highest scores: n1 +1."


def test_a_long_selection_is_cut() -> None:
    said = painted([1.0] * 25, np.arange(23)).described()
    assert said.endswith("n18, n19 and 3 more.")
    assert painted([1.0] * 25, np.arange(20)).described().endswith("n18, n19.")


@pytest.mark.parametrize("limit", ["1", True, [1]])
def test_a_limit_must_be_a_number(limit: object) -> None:
    with pytest.raises(TypeError, match="limit must be a number above 0"):
        color_limit([], limit)  # type: ignore[arg-type]


def test_scores_too_small_to_divide_by_are_taken_for_zero() -> None:
    assert color_limit([np.array([5e-324])], None) == 1.0


@pytest.mark.parametrize("selected", [[3], [-1], [0, 0], [True, False]])
def test_a_selection_must_fit(selected: list[int]) -> None:
    with pytest.raises(ValueError, match=r"node|mask"):
        painted([0.0, 1.0, 2.0], selected)
