"""The C-Shapley value: the corrected formula, and what is wrong with the printed ones."""

from __future__ import annotations

from math import factorial, prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, additive_game, random_game, unanimity_game
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.values import c_shapley_value, myerson_value
from tests.oracles import as_integer, as_networkx, as_rows, connected_sets, parts
from tests.pairs import for_each
from tests.strategies import REAL, graph_games, graphs
from tests.values.definitions import Counting, Numbers, molecule, path, ring

STAR = CommunicationGraph(4, [(0, 1), (0, 2), (0, 3)])


def marginal(game: TableGame, graph: CommunicationGraph, U: frozenset[int], i: int) -> float:
    """``m(U, i)``: the worth of ``U`` less that of the components that ``i`` leaves behind."""
    left = sum(game.worths[as_integer(part)] for part in parts(graph, U - {i}))
    return float(game.worths[as_integer(U)] - left)


def printed(
    game: TableGame, graph: CommunicationGraph, *, factorials: bool, edges: bool, whole: bool
) -> Numbers:
    """The appendix's formula, with its slips mended one at a time.

    ``l`` over a product where ``l!`` is needed unless ``factorials``; edges counted instead of
    boundary nodes if ``edges``; ``1 / d`` for a component instead of ``1 / |U|`` if ``whole``.
    """
    n = graph.num_nodes
    other = as_networkx(graph)
    values = np.zeros(n)
    for U in connected_sets(graph):
        u = len(U)
        count = nx.cut_size(other, U) if edges else len(set(nx.node_boundary(other, U)))
        if count:
            top = factorial(count) if factorials else count
            weight = top / prod(range(u, u + count + 1))
        else:
            weight = 1 / n if whole else 1 / u
        for i in U:
            values[i] += weight * marginal(game, graph, U, i)
    return values


def random_table(n: int, seed: int) -> TableGame:
    return TableGame(n, np.random.default_rng(seed).uniform(-1, 1, 2**n))


# the appendix's example


@for_each(
    ("coalition", "weight"),
    [({0}, 1 / 2), ({0, 1}, 1 / 6), ({0, 2}, 0), ({0, 1, 2}, 1 / 3)],
)
def test_coefficients_of_node_0_on_the_path_of_three(coalition: set[int], weight: float) -> None:
    table = np.zeros(8)
    table[as_integer(coalition)] = 1.0
    found = c_shapley_value(TableGame(3, table), path(3)).values[0]
    assert found == pytest.approx(weight, abs=1e-15)


def test_the_node_in_the_middle() -> None:
    # {1} with both neighbors outside, {0, 1} and {1, 2} with one, and everybody
    game = random_table(3, seed=0)
    graph = path(3)
    expected = (
        marginal(game, graph, frozenset({1}), 1) / 3
        + marginal(game, graph, frozenset({0, 1}), 1) / 6
        + marginal(game, graph, frozenset({1, 2}), 1) / 6
        + marginal(game, graph, frozenset({0, 1, 2}), 1) / 3
    )
    assert c_shapley_value(game, graph).values[1] == pytest.approx(expected, abs=1e-15)


# it is the Myerson value


@settings(max_examples=40)
@given(st.sampled_from([None, 1, 3]), st.data())
def test_it_equals_the_myerson_value(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(max_nodes=6, q=q, elements=REAL))
    found = c_shapley_value(game, graph)
    exact = myerson_value(game, graph)
    assert found.values.shape == exact.values.shape
    np.testing.assert_allclose(found.values, exact.values, rtol=0, atol=1e-9)
    assert found.exact
    assert not found.std_error.any()
    assert found.residual < 1e-9
    assert found.evaluations == graph.count_connected_coalitions()


def test_larger_graphs() -> None:
    for graph in (molecule(14, seed=1), ring(40), path(70)):
        game = random_game(graph.num_nodes, seed=2)
        np.testing.assert_allclose(
            c_shapley_value(game, graph).values,
            myerson_value(game, graph).values,
            rtol=0,
            atol=1e-10,
        )


@pytest.mark.parametrize("cells", [1, 500, 4000])
def test_coalitions_in_blocks(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = molecule(9, seed=3)
    game = random_game(9, seed=0, q=2)
    whole = c_shapley_value(game, graph).values
    monkeypatch.setattr("gstarx.values.shapley._CELLS", cells)
    np.testing.assert_allclose(c_shapley_value(game, graph).values, whole, rtol=0, atol=1e-13)


@settings(max_examples=25)
@given(graphs(max_nodes=6), st.data())
def test_additive_games_keep_what_they_have(graph: CommunicationGraph, data: st.DataObject) -> None:
    n = graph.num_nodes
    own = np.array(data.draw(st.lists(REAL, min_size=n, max_size=n)))
    np.testing.assert_allclose(
        c_shapley_value(additive_game(own), graph).values, own, rtol=0, atol=1e-9
    )


def test_every_connected_coalition_is_evaluated_once() -> None:
    counting = Counting(random_game(7, seed=0))
    assert c_shapley_value(counting, ring(7)).evaluations == counting.distinct == 43


# the printed formulas


@settings(max_examples=25)
@given(graphs(min_nodes=1, max_nodes=5), st.integers(0, 2**32))
def test_with_all_errors_corrected_the_printed_formula_is_ours(
    graph: CommunicationGraph, seed: int
) -> None:
    game = random_table(graph.num_nodes, seed)
    mended = printed(game, graph, factorials=True, edges=False, whole=False)
    np.testing.assert_allclose(mended, c_shapley_value(game, graph).values, rtol=0, atol=1e-11)


@for_each("n", [2, 3, 4, 6])
def test_as_printed_it_is_right_on_lines(n: int) -> None:
    game = random_table(n, seed=1)
    as_printed = printed(game, path(n), factorials=False, edges=True, whole=True)
    np.testing.assert_allclose(as_printed, myerson_value(game, path(n)).values, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("graph", "slip"),
    [
        # three neighbors: 3 is not 3!
        pytest.param(STAR, {"factorials": False, "edges": False, "whole": False}, id="l for l!"),
        # two neighbors behind three edges
        pytest.param(
            CommunicationGraph(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]),
            {"factorials": True, "edges": True, "whole": False},
            id="edges for boundary nodes",
        ),
        # a component that is not everybody
        pytest.param(
            CommunicationGraph(4, [(0, 1), (2, 3)]),
            {"factorials": True, "edges": False, "whole": True},
            id="1/d for 1/|U|",
        ),
    ],
)
def test_each_slip_alone_misses_the_myerson_value(
    graph: CommunicationGraph, slip: dict[str, bool]
) -> None:
    gaps = []
    for seed in range(5):
        game = random_table(graph.num_nodes, seed)
        gaps.append(np.abs(printed(game, graph, **slip) - myerson_value(game, graph).values).max())
    assert max(gaps) > 0.02


def test_l_without_its_factorial_is_not_even_efficient() -> None:
    game = unanimity_game(4, [0])
    values = printed(
        TableGame(4, [0.0, *game(as_rows(_all_coalitions(4), 4))]),
        STAR,
        factorials=False,
        edges=False,
        whole=False,
    )
    assert values.sum() != pytest.approx(1.0, abs=0.05)


def _all_coalitions(n: int) -> list[list[int]]:
    return [[i for i in range(n) if mask >> i & 1] for mask in range(1, 2**n)]


def test_the_formula_of_chen_and_others_on_the_path_of_three() -> None:
    # 2 / ((u + 2)(u + 1) u) as if every coalition had two neighbors
    weights = [2 / ((u + 2) * (u + 1) * u) for u in (1, 2, 3)]
    np.testing.assert_allclose(weights, [1 / 3, 1 / 12, 1 / 30])
    assert sum(weights) != pytest.approx(1.0, abs=0.1)


# bad input


def test_too_many_coalitions_name_the_sampler() -> None:
    message = r"the limit is 100: raise max_coalitions, or estimate with myerson_value_sampled"
    with pytest.raises(TooManyCoalitions, match=message):
        c_shapley_value(random_game(9, seed=0), CommunicationGraph.complete(9), max_coalitions=100)


def test_one_node_and_no_node() -> None:
    assert c_shapley_value(TableGame(1, [0, 3]), CommunicationGraph(1)).values.tolist() == [3.0]
    assert c_shapley_value(TableGame(0, [0]), CommunicationGraph(0)).values.shape == (0,)
