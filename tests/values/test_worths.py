"""Worths of all connected coalitions, and what every value does with a game that misbehaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gstarx.games import random_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph
from gstarx.values import (
    c_shapley_value,
    coalition_weights,
    hn_value,
    hn_value_growth_sampled,
    hn_value_iterated,
    hn_value_subgraph_sampled,
    limit_game,
    myerson_value,
    myerson_value_sampled,
    shapley_value,
    shapley_value_sampled,
    subgraph_sampled,
)
from gstarx.values.worths import check_budget, component_gap, in_columns, listing_limit, worths_of
from tests.pairs import for_each
from tests.values.definitions import molecule, ring

#: Every way to ask a game, on a graph of nine nodes.
ASKING = {
    "hn": hn_value,
    "hn iterated": hn_value_iterated,
    "hn growth": lambda v, graph: hn_value_growth_sampled(v, graph, budget=40, seed=0),
    "hn subgraphs": lambda v, graph: hn_value_subgraph_sampled(v, graph, max_sample_size=5, seed=0),
    "myerson subgraphs": lambda v, graph: subgraph_sampled(
        v, graph, value="myerson", max_sample_size=5, seed=0
    ),
    "myerson": myerson_value,
    "myerson sampled": lambda v, graph: myerson_value_sampled(v, graph, budget=40, seed=0),
    "c-shapley": c_shapley_value,
    "shapley": lambda v, graph: shapley_value(v, graph.num_nodes),
    "shapley sampled": lambda v, graph: shapley_value_sampled(v, 9, budget=40, seed=0),
    "limit game": limit_game,
}
asking = for_each("ask", ASKING.values())


@pytest.fixture(params=[0, 10**6], ids=["unlisted", "listed"])
def _listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", request.param)


# games that misbehave


@pytest.mark.usefixtures("_listing")
@asking
def test_worths_that_are_not_finite(ask: Any) -> None:
    for bad in (np.nan, np.inf, -np.inf):

        def game(coalitions: np.ndarray, bad: float = bad) -> np.ndarray:
            # every method looks at a whole component
            return np.where(coalitions.all(axis=1), bad, 1.0)

        message = (
            rf"worths must be finite \(got {bad} for coalition \{{0, 1, 2, 3, 4, 5, 6, 7, 8\}}\)"
        )
        with pytest.raises(ValueError, match=message):
            ask(game, ring(9))


@asking
def test_worths_of_a_wrong_shape_or_kind(ask: Any) -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (
            lambda rows: np.zeros(len(rows) - 1),
            ValueError,
            r"a game asked for \d+ coalitions must return worths of shape \(\d+,\)",
        ),
        (lambda rows: 1.0, ValueError, r"must return worths of shape .* \(got \(\)\)"),
        (lambda rows: np.zeros((len(rows), 1, 1)), ValueError, r"\(got \(\d+, 1, 1\)\)"),
        (lambda rows: ["words"] * len(rows), TypeError, "a game must return numbers"),
        (lambda rows: [{"a": 1}] * len(rows), TypeError, "a game must return numbers"),
        (3.0, TypeError, "a game must be a callable"),
    ]
    for game, error, message in wrong:
        with pytest.raises(error, match=message):
            ask(game, ring(9))


@asking
def test_a_game_that_raises_gets_a_note_with_the_coalition(ask: Any) -> None:
    def game(coalitions: np.ndarray) -> np.ndarray:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory") as caught:
        ask(game, ring(9))
    (note,) = caught.value.__notes__
    assert note.startswith("raised by the game when asked for ")
    assert "of 9 nodes, the first being {" in note


@asking
def test_whole_numbers_are_worths_too(ask: Any) -> None:
    if ask in (ASKING["limit game"], ASKING["hn iterated"]):
        ask = hn_value
    whole = ask(lambda coalitions: coalitions.sum(axis=1), ring(9))
    np.testing.assert_allclose(whole.values, 1.0, rtol=0, atol=1e-9)


# what they share


def test_worths_in_the_order_of_the_lattice() -> None:
    graph = molecule(8, seed=1)
    lattice = CoalitionLattice.of(graph)
    for q in (None, 2):
        game = random_game(8, seed=0, q=q)
        np.testing.assert_array_equal(worths_of(game, lattice), game(graph.connected_coalitions()))


def test_one_game_is_one_column() -> None:
    assert in_columns(np.arange(3.0)).shape == (3, 1)
    assert in_columns(np.zeros((3, 2))).shape == (3, 2)
    assert in_columns(np.zeros((2, 3)).T).flags.c_contiguous


def test_the_gap_is_the_largest_over_components_and_games() -> None:
    graph = CommunicationGraph(4, [(0, 1), (1, 2)])
    lattice = CoalitionLattice.of(graph)
    worths = np.zeros((len(lattice), 2))
    values = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, -1.0], [0.5, -7.0]])
    assert component_gap(values, worths, lattice) == 7.0
    assert component_gap(values[:, 0], worths[:, 0], lattice) == 6.0
    worths[lattice.tops] = 6.0
    assert component_gap(values[:, 0], worths[:, 0], lattice) == 5.5
    nobody = CoalitionLattice.of(CommunicationGraph(0))
    assert component_gap(np.zeros(0), np.zeros(0), nobody) == 0.0


def test_weights_need_no_game() -> None:
    assert coalition_weights(ring(9)).shape == (9, 73)


def test_a_budget_sees_every_node() -> None:
    for budget in (5, 10**9, np.int64(7)):
        found = check_budget(budget, 5)
        assert found == budget
        assert type(found) is int
    for budget in (4, -1):
        message = rf"budget must be at least the number of nodes, 5: .* \(got {budget}\)"
        with pytest.raises(ValueError, match=message):
            check_budget(budget, 5)
    for wrong in (5.0, "5", None, True):
        with pytest.raises(TypeError, match=r"budget must be an integer \(got "):
            check_budget(wrong, 0)


def test_a_listing_grows_with_the_budget_and_is_bounded() -> None:
    assert listing_limit(100, 20) > 100
    assert listing_limit(200, 20) == 2 * listing_limit(100, 20)
    assert listing_limit(10**9, 20) < 10**9
    assert listing_limit(10**9, 20) == pytest.approx(10 * listing_limit(10**9, 200), rel=1e-3)
    assert listing_limit(100, 0) > 0
