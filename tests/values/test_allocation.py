"""What every value returns."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from gstarx.values import Allocation, ConvergenceWarning


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


@pytest.mark.parametrize(
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
