"""What every value returns."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from gstarx.values import Allocation, ConvergenceWarning, PrecisionWarning
from gstarx.values.allocation import warn_if_noisy, warn_if_unknown, within_range
from tests.pairs import for_each


def test_exactly_has_no_error() -> None:
    found = Allocation.exactly(np.array([1.0, 2.0]), 7, 1e-16)
    assert found.values.tolist() == [1.0, 2.0]
    assert found.std_error.tolist() == [0.0, 0.0]
    assert found.exact is True
    assert found.converged is True
    assert (found.evaluations, found.residual) == (7, 1e-16)


def test_it_cannot_be_changed() -> None:
    found = Allocation.exactly(np.zeros(2), 3, 0.0)
    with pytest.raises(FrozenInstanceError):
        found.exact = False  # type: ignore[misc]


@for_each(
    ("allocation", "written"),
    [
        (
            Allocation.exactly(np.array([0.25, 0.5]), 1234567, 0.0),
            "Allocation([0.25, 0.5 ], exact, 1,234,567 evaluations)",
        ),
        (
            Allocation(np.array([1 / 3]), np.array([0.0123]), False, 40, 0.0),
            "Allocation([0.3333], std_error <= 0.012, 40 evaluations)",
        ),
        (
            Allocation(np.array([1.0]), np.array([0.0]), False, 5, 0.2, converged=False),
            "Allocation([1.], std_error <= 0, not converged, 5 evaluations)",
        ),
        (
            Allocation.exactly(np.zeros(0), 0, 0.0),
            "Allocation([], exact, 0 evaluations)",
        ),
    ],
)
def test_it_reads_well(allocation: Allocation, written: str) -> None:
    assert repr(allocation) == written


def test_many_values_are_shortened() -> None:
    assert len(repr(Allocation.exactly(np.arange(1000.0), 5, 0.0))) < 200


def test_the_warning_is_a_user_warning() -> None:
    assert issubclass(ConvergenceWarning, UserWarning)


# warnings


def warned(values: Any, std_error: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = {"value": "myerson", "evaluations": 2_000, **options}
        warn_if_noisy(np.array(values, float), np.array(std_error, float), **settings)
    assert all(one.category is PrecisionWarning for one in caught)
    return [str(one.message) for one in caught]


def test_errors_above_a_quarter_of_the_largest_score_are_reported() -> None:
    assert warned([0.4, -1.0], [0.25, 0.25]) == []
    (said,) = warned([0.4, -1.0], [0.1, 0.5], advice="or take value='banzhaf'")
    assert said.startswith("myerson: the standard errors reach 0.5 and the largest score is 1 ")
    # twice too large: four times as many
    assert "8,000 evaluations instead of 2,000; or take value='banzhaf'" in said
    (said,) = warned([0.0, 0.0], [0.1, 0.1])
    assert "more than a billion evaluations" in said


def test_every_game_is_judged_by_itself() -> None:
    assert warned([[9.0, 1.0], [0.1, 0.5]], [[1.0, 0.1], [1.0, 0.2]]) == []
    (said,) = warned([[9.0, 1.0], [0.1, 0.5]], [[1.0, 0.3], [1.0, 0.2]], evaluations=100)
    assert "reach 0.3 and the largest score is 1 " in said
    assert "about 150 evaluations" in said


def test_rounding_nobody_and_unknown_errors_are_not_noise() -> None:
    assert warned([1e-16, 0.0], [1e-16, 1e-15]) == []
    assert warned([], []) == []
    assert warned([1.0, 2.0], [np.nan, np.nan]) == []


def test_unknown_errors_are_reported_with_the_budget_that_makes_them_known() -> None:
    with pytest.warns(PrecisionWarning, match=r"shapley: .* from budget=17 on they are known"):
        warn_if_unknown(np.array([0.1, np.nan]), value="shapley", budget=17)
    warn_if_unknown(np.array([0.1, 0.0]), value="shapley", budget=17)


# scores beyond the range of all worths


def test_scores_within_the_range_are_left_alone() -> None:
    values = np.array([[1.0, -2.0], [-1.0, 2.0 + 1e-12]])
    span = np.array([1.0, 2.0])
    assert within_range(values, values, span, value="banzhaf", evaluations=9) is values
    nobody = np.zeros((0, 1))
    assert within_range(nobody, nobody, np.zeros(1), value="banzhaf", evaluations=0) is nobody
    nothing = np.full((3, 1), 1e-16)
    assert within_range(nothing, nothing, np.zeros(1), value="banzhaf", evaluations=9) is nothing


def test_scores_beyond_the_range_are_cut_back() -> None:
    values = np.array([[0.5, 3.0], [-0.25, 1.0], [1.0, 0.0], *[[0.0, 0.0]] * 9])
    std_error = np.full((12, 2), 0.5)
    with pytest.warns(PrecisionWarning) as caught:
        found = within_range(values, std_error, np.ones(2), value="banzhaf", evaluations=100)
    assert found.tolist() == [[0.5, 1.0], [-0.25, 1.0], [1.0, 0.0], *[[0.0, 0.0]] * 9]
    (said,) = (str(one.message) for one in caught)
    assert "banzhaf: a score was estimated at 3 in size, beyond the range" in said
    # errors of half the range, to be brought to a quarter
    assert "Take budget=400 or more" in said


def test_the_others_make_up_for_what_was_cut() -> None:
    values = np.array([[3.0], [-0.25], [-0.75], [-0.9]])
    total = values.sum(axis=0)
    # all coalitions of four players are fewer than the errors ask for
    with pytest.warns(PrecisionWarning, match="Take budget=15 or more"):
        found = within_range(
            values, np.full((4, 1), np.nan), np.ones(1), value="v", evaluations=10, total=total
        )
    assert found.sum() == pytest.approx(total[0], abs=1e-12)
    np.testing.assert_allclose(found[:, 0], [1.0, 5 / 12, -1 / 12, -7 / 30], atol=1e-12)
