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
asking = pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING.keys())


@pytest.fixture(params=[0, 10**6], ids=["unlisted", "listed"])
def _listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", request.param)


# games that misbehave


@asking
@pytest.mark.usefixtures("_listing")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_worths_that_are_not_finite(ask: Any, bad: float) -> None:
    def game(coalitions: np.ndarray) -> np.ndarray:
        # every method looks at a whole component
        return np.where(coalitions.all(axis=1), bad, 1.0)

    message = rf"worths must be finite \(got {bad} for coalition \{{0, 1, 2, 3, 4, 5, 6, 7, 8\}}\)"
    with pytest.raises(ValueError, match=message):
        ask(game, ring(9))


@asking
def test_too_few_worths(ask: Any) -> None:
    message = r"a game asked for \d+ coalitions must return worths of shape \(\d+,\)"
    with pytest.raises(ValueError, match=message):
        ask(lambda coalitions: np.zeros(len(coalitions) - 1), ring(9))


@asking
def test_one_worth_for_everybody(ask: Any) -> None:
    with pytest.raises(ValueError, match=r"must return worths of shape .* \(got \(\)\)"):
        ask(lambda coalitions: 1.0, ring(9))


@asking
def test_three_dimensions_of_worths(ask: Any) -> None:
    with pytest.raises(ValueError, match=r"\(got \(\d+, 1, 1\)\)"):
        ask(lambda coalitions: np.zeros((len(coalitions), 1, 1)), ring(9))


@asking
@pytest.mark.parametrize("answer", ["words", {"a": 1}, None])
def test_worths_that_are_no_numbers(ask: Any, answer: Any) -> None:
    def game(coalitions: np.ndarray) -> Any:
        return [answer] * len(coalitions) if answer is not None else ["x"] * len(coalitions)

    with pytest.raises(TypeError, match="a game must return numbers"):
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
@pytest.mark.parametrize("game", [None, 3.0, [0.0, 1.0]])
def test_a_game_that_cannot_be_called(ask: Any, game: Any) -> None:
    with pytest.raises(TypeError, match="a game must be a callable"):
        ask(game, ring(9))


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
