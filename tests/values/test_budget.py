"""What a sampler may spend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gstarx.values.budget import check_budget, listing_limit


@pytest.mark.parametrize("budget", [5, 6, 10**9, np.int64(7)])
def test_a_budget_for_every_node(budget: Any) -> None:
    found = check_budget(budget, 5)
    assert found == budget
    assert type(found) is int


@pytest.mark.parametrize("budget", [4, 0, -1])
def test_a_budget_that_cannot_see_every_node(budget: int) -> None:
    message = rf"budget must be at least the number of nodes, 5: .* \(got {budget}\)"
    with pytest.raises(ValueError, match=message):
        check_budget(budget, 5)


@pytest.mark.parametrize("budget", [5.0, "5", None, True])
def test_a_budget_that_is_no_number(budget: Any) -> None:
    with pytest.raises(TypeError, match=r"budget must be an integer \(got "):
        check_budget(budget, 0)


def test_a_listing_grows_with_the_budget_and_is_bounded() -> None:
    assert listing_limit(100, 20) > 100
    assert listing_limit(200, 20) == 2 * listing_limit(100, 20)
    assert listing_limit(10**9, 20) < 10**9
    assert listing_limit(10**9, 20) == pytest.approx(10 * listing_limit(10**9, 200), rel=1e-3)
    assert listing_limit(100, 0) > 0
