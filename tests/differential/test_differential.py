"""Scores of random combinations of models, graphs and options are those of brute force."""

from __future__ import annotations

import pytest

from tests.differential.combinations import outcome

PER_TEST, SLOW_PER_TEST = 30, 200


def _agree(first: int, count: int) -> None:
    outcomes = [outcome(number) for number in range(first, first + count)]
    wrong = [made for made in outcomes if made.problems]
    assert not wrong, "\n\n".join(map(str, wrong))
    # over all numbers four in ten do; with none, shared embeddings would not be tested
    assert sum(made.shared for made in outcomes) >= count // 10


@pytest.mark.parametrize("first", range(0, 10 * PER_TEST, PER_TEST))
def test_scores_are_those_of_brute_force(first: int) -> None:
    _agree(first, PER_TEST)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100 * SLOW_PER_TEST, SLOW_PER_TEST))
def test_many_scores_are_those_of_brute_force(first: int) -> None:
    _agree(first, SLOW_PER_TEST)
