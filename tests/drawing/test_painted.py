"""Scores and selections in words."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx.drawing.painted import Painted, Scored, color_limit


def painted(scores: list[float], selected: object = None) -> Painted:
    drawn = Scored(np.array(scores), selected)  # type: ignore[arg-type]
    return Painted.of(drawn, None, [f"n{i}" for i in range(len(scores))])


def test_five_of_each_end_are_named_best_first() -> None:
    said = painted([-0.1, 0.7, 0.1, 0.2, 0.3, 0.4, 0.5, -0.9]).described()
    assert said == (
        "8 nodes. Highest scores: n1 +0.7, n6 +0.5, n5 +0.4, n4 +0.3, n3 +0.2. "
        "Lowest scores: n7 −0.9, n0 −0.1."
    )


def test_zero_is_neither_high_nor_low() -> None:
    assert painted([0.0]).described() == "1 node. All scores are 0."
    assert painted([0.0, 1.0]).described() == "2 nodes. Highest scores: n1 +1."


def test_rounding_errors_are_zero() -> None:
    rounded = painted([0.5, -9.6e-16, -0.5, 2e-15])
    assert rounded.described() == "4 nodes. Highest scores: n0 +0.5. Lowest scores: n2 −0.5."
    assert rounded.caption(1) == "n1 0"
    # small scores are no errors if all are small, or if they are not that small
    assert painted([1e-15, -2e-15]).caption(0) == "n0 +1e-15"
    assert painted([1.0, -1e-9]).caption(1) == "n1 −1e-09"


def test_a_long_selection_is_cut() -> None:
    said = painted([1.0] * 25, np.arange(23)).described()
    assert said.endswith("n18, n19 and 3 more.")
    assert painted([1.0] * 25, np.arange(20)).described().endswith("n18, n19.")


def test_limits_and_selections_must_fit() -> None:
    for limit in (
        "1",
        True,
        [1],
    ):
        with pytest.raises(TypeError, match="limit must be a number above 0"):
            color_limit([], limit)  # type: ignore[arg-type]

    assert color_limit([np.array([5e-324])], None) == 1.0

    for selected in (
        [3],
        [-1],
        [0, 0],
        [True, False],
    ):
        with pytest.raises(ValueError, match=r"node|mask"):
            painted([0.0, 1.0, 2.0], selected)


def by_score(scores: list[float], selected: list[int], errors: object = None) -> Painted:
    names = [f"n{i}" for i in range(len(scores))]
    drawn = Scored(np.array(scores), selected, errors)  # type: ignore[arg-type]
    return Painted.of(drawn, None, names, by_score=True)


def test_what_is_not_above_noise_has_no_outline() -> None:
    drawn = by_score([0.5, 0.4, 0.0, -0.1], [0, 1, 2], [0.1, 0.3, 0.0, 0.0])
    assert drawn.selected.tolist() == [True, False, False, False]
    assert drawn.uncertain.tolist() == [False, True, False, False]
    assert drawn.marks == ("selected", "uncertain")
    said = drawn.described()
    assert "n1 +0.4, interval includes 0" in said
    assert "2 more selected nodes without an outline: not above noise." in said
    # a selection of one's own is drawn as it is
    assert painted([0.5, 0.4, 0.0, -0.1], [0, 1, 2]).selected.tolist() == [True, True, True, False]


def test_ties_at_the_cut_are_shown_as_ties_and_zeros_are_noise() -> None:
    drawn = by_score([0.9, 0.4, 0.4, 0.4], [0, 1])
    assert drawn.selected.tolist() == [True, False, False, False]
    assert drawn.tied.tolist() == [False, True, True, True]
    assert drawn.marks == ("selected", "tie")
    assert "Tied at the cut: n1, n2, n3." in drawn.described()
    assert not by_score([0.9, 0.4, 0.4], [0, 1, 2]).tied.any()

    drawn = by_score([0.9, 0.0, 0.0], [0, 1])
    assert not drawn.tied.any()
    assert drawn.unmarked == 1


def test_the_largest_gap_is_suggested_where_it_differs() -> None:
    assert by_score([0.9, 0.8, 0.1, 0.0], [0]).notes() == [
        "Suggested cut, the largest gap of the scores: 2 nodes."
    ]
    assert by_score([0.9, 0.8, 0.1, 0.0], [0, 1]).notes() == []
