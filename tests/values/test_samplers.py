"""What every estimate from a budget must do, whichever value it estimates and however it draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import Game, additive_game, random_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import (
    Allocation,
    hn_value,
    hn_value_growth_sampled,
    myerson_value,
    myerson_value_sampled,
    shapley_value,
    shapley_value_sampled,
)
from tests.strategies import graphs
from tests.values.definitions import (
    Counting,
    Numbers,
    molecule,
    path,
    ring,
    smooth_game,
    tree,
)

Estimate = Callable[..., Allocation]

# worths that follow from nothing, and tiny budgets: that estimates are rough is no news here
pytestmark = pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")


def shapley_on_a_graph(v: Game, graph: CommunicationGraph, **options: Any) -> Allocation:
    return shapley_value_sampled(v, graph.num_nodes, **options)


def exact_shapley_on_a_graph(v: Game, graph: CommunicationGraph) -> Allocation:
    return shapley_value(v, graph.num_nodes)


class Sampler(NamedTuple):
    """An estimate, what it estimates, and whether it may list the coalitions to choose from."""

    estimate: Estimate
    exact: Callable[[Game, CommunicationGraph], Allocation]
    lists: bool


SAMPLERS = {
    "hn from a list": Sampler(hn_value_growth_sampled, hn_value, True),
    "hn from fronts": Sampler(hn_value_growth_sampled, hn_value, False),
    "myerson from a list": Sampler(myerson_value_sampled, myerson_value, True),
    "myerson from orders": Sampler(myerson_value_sampled, myerson_value, False),
    "shapley from a list": Sampler(shapley_on_a_graph, exact_shapley_on_a_graph, True),
    "shapley from pairs": Sampler(shapley_on_a_graph, exact_shapley_on_a_graph, False),
}


@pytest.fixture(params=list(SAMPLERS))
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sampler:
    chosen = SAMPLERS[request.param]
    monkeypatch.setattr("gstarx.values.worths._LISTED_PER_EVALUATION", 10**6 if chosen.lists else 0)
    return chosen


def number_of_coalitions(sampler: Sampler, graph: CommunicationGraph) -> int:
    if sampler.estimate is shapley_on_a_graph:
        return int(2**graph.num_nodes - 1)
    return graph.count_connected_coalitions()


#: Trees, rings and in between; the last one has three components, among them a node on its own.
GRAPHS = (
    tree(12, seed=5),
    ring(12),
    molecule(12, seed=0),
    molecule(11, seed=3, chords=5),
    CommunicationGraph(12, [*molecule(9, seed=1).edges.tolist(), (9, 10)]),
)


# randomness and budget


def test_the_same_seed_gives_the_same_numbers(sampler: Sampler) -> None:
    game = smooth_game(12, q=2)
    for graph in GRAPHS[1:3]:
        one = sampler.estimate(game, graph, budget=50, seed=3)
        other = sampler.estimate(game, graph, budget=50, seed=3)
        generator = sampler.estimate(game, graph, budget=50, seed=np.random.default_rng(3))
        for again in (other, generator):
            np.testing.assert_array_equal(one.values, again.values)
            np.testing.assert_array_equal(one.std_error, again.std_error)
            assert one.evaluations == again.evaluations


def test_other_seeds_give_other_numbers(sampler: Sampler) -> None:
    game = random_game(12, seed=0)
    for graph in GRAPHS[1:3]:
        found = {
            sampler.estimate(game, graph, budget=50, seed=s).values.tobytes() for s in range(5)
        }
        assert len(found) == 5


def test_no_seed_is_a_new_seed_every_time(sampler: Sampler) -> None:
    game = random_game(12, seed=0)
    one, other = (sampler.estimate(game, GRAPHS[2], budget=40) for _ in range(2))
    assert not np.array_equal(one.values, other.values)


def test_the_budget_is_kept_and_no_coalition_is_evaluated_twice(sampler: Sampler) -> None:
    for graph, spend in product(GRAPHS, (12, 13, 14, 17, 24, 40, 90, 97, 130)):
        counting = Counting(random_game(graph.num_nodes, seed=1))
        found = sampler.estimate(counting, graph, budget=spend, seed=spend)
        assert found.evaluations == counting.distinct <= spend
        if sampler.lists:
            assert found.evaluations == min(spend, number_of_coalitions(sampler, graph))
        assert found.values.shape == found.std_error.shape == (graph.num_nodes,)
        assert np.isfinite(found.values).all()
        assert found.converged


def test_connected_coalitions_only(sampler: Sampler) -> None:
    for graph in GRAPHS if sampler.estimate is not shapley_on_a_graph else ():
        counting = Counting(random_game(graph.num_nodes, seed=1))
        sampler.estimate(counting, graph, budget=40, seed=0)
        asked = np.array([np.frombuffer(row, np.bool_) for row in counting.asked])
        labels = graph.component_labels(asked)
        assert all(len(set(row[row >= 0])) == 1 for row in labels)


def test_a_budget_for_everything_is_exact(sampler: Sampler) -> None:
    game = random_game(8, seed=2, q=2)
    for graph in (ring(8), CommunicationGraph(8, [(0, 1), (1, 2), (4, 5)])):
        total = number_of_coalitions(sampler, graph)
        for spend in (total, total + 1, 10 * total):
            found = sampler.estimate(game, graph, budget=spend, seed=0)
            assert found.exact
            assert found.evaluations == total
            assert not found.std_error.any()
            np.testing.assert_array_equal(found.values, sampler.exact(game, graph).values)
        short = sampler.estimate(game, graph, budget=total - 1, seed=0)
        assert not short.exact
        assert short.evaluations <= total - 1


def test_isolated_nodes_one_node_and_no_node(sampler: Sampler) -> None:
    game = additive_game([1.0, 2, 3])
    assert sampler.estimate(game, CommunicationGraph(3), budget=7).values.tolist() == [1, 2, 3]
    assert sampler.estimate(additive_game([4.0]), CommunicationGraph(1), budget=1).values == [4.0]
    nobody = sampler.estimate(additive_game([]), CommunicationGraph(0), budget=0)
    assert nobody.values.shape == (0,)


# what the estimates are worth


def test_additive_games_are_exact_whatever_is_drawn(sampler: Sampler) -> None:
    for seed, graph in enumerate(GRAPHS):
        n = graph.num_nodes
        own = np.random.default_rng(seed).normal(size=(n, 2))
        for spend in (n, n + 1, n + 2, n + 4, 2 * n, 3 * n, 7 * n):
            found = sampler.estimate(additive_game(own), graph, budget=spend, seed=seed)
            np.testing.assert_allclose(found.values, own, rtol=0, atol=1e-9)
            assert np.nan_to_num(found.std_error).max() < 1e-5


def test_components_share_their_own_worth(sampler: Sampler) -> None:
    for graph in GRAPHS:
        components = graph.components
        if sampler.estimate is shapley_on_a_graph:
            components = (tuple(range(graph.num_nodes)),)
        game = random_game(graph.num_nodes, seed=5, q=2)
        for spend in (12, 13, 15, 40, 97):
            found = sampler.estimate(game, graph, budget=spend, seed=spend)
            assert found.residual < 1e-10
            for component in components:
                whole = np.zeros((1, graph.num_nodes), dtype=bool)
                whole[0, list(component)] = True
                shares = found.values[list(component)].sum(axis=0)
                np.testing.assert_allclose(shares, game(whole)[0], rtol=0, atol=1e-10)


def test_several_games_at_once_are_each_game_alone(sampler: Sampler) -> None:
    # the games do not decide what is drawn
    game = smooth_game(12, seed=3, q=3)
    graph = GRAPHS[2]
    together = sampler.estimate(game, graph, budget=60, seed=1)
    for column in range(3):
        alone = sampler.estimate(lambda c, g=column: game(c)[:, g], graph, budget=60, seed=1)
        np.testing.assert_allclose(together.values[:, column], alone.values, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            together.std_error[:, column], alone.std_error, rtol=0, atol=1e-9
        )


def gather(
    sampler: Sampler, graph: CommunicationGraph, game: Game, spend: int, seeds: int
) -> tuple[Numbers, Numbers]:
    """Errors and standard errors of many estimates, (seeds, n)."""
    exact = sampler.exact(game, graph).values
    found = [sampler.estimate(game, graph, budget=spend, seed=s) for s in range(seeds)]
    return (
        np.array([one.values - exact for one in found]),
        np.array([one.std_error for one in found]),
    )


def test_errors_fall_as_the_budget_grows(sampler: Sampler) -> None:
    total = 0.0
    for graph in GRAPHS[2:4]:
        game = smooth_game(graph.num_nodes, seed=2)
        budgets = (3 * graph.num_nodes, 8 * graph.num_nodes, 20 * graph.num_nodes)
        errors = np.array(
            [(gather(sampler, graph, game, spend, 20)[0] ** 2).mean() for spend in budgets]
        )
        total = total + np.sqrt(errors / sampler.exact(game, graph).values.var())
    assert total[0] > 1.4 * total[1] > 2 * total[2]
    assert total[2] / 2 < 0.15


def test_standard_errors_cover(sampler: Sampler) -> None:
    off: list[Numbers] = []
    for graph in (*GRAPHS, molecule(13, seed=4, chords=4)):
        n = graph.num_nodes
        total = number_of_coalitions(sampler, graph)
        spend = max(5 * n, total // 5) if total > 6 * n else 3 * n
        errors, std_errors = gather(sampler, graph, smooth_game(n, seed=2), spend, 30)
        assert np.isfinite(std_errors).all()
        known = std_errors < 1e-12
        assert (np.abs(errors[known]) < 1e-9).all()
        off.append(np.abs(errors[~known]) / std_errors[~known])
    pooled = np.concatenate(off)
    assert len(pooled) > 1000
    assert 0.85 < (pooled <= 2).mean() < 0.995
    assert (pooled <= 4).mean() > 0.98
    # and not because they are all far too large
    assert np.median(pooled) > 0.3


def test_the_mean_over_many_seeds_is_the_value(sampler: Sampler) -> None:
    graph = molecule(11, seed=3, chords=5)
    spend = number_of_coalitions(sampler, graph) // 5
    errors, std_errors = gather(sampler, graph, smooth_game(11, seed=4), spend, 80)
    drift = np.abs(errors.mean(axis=0)) / (errors.std(axis=0, ddof=1) / np.sqrt(80))
    assert np.sqrt((drift**2).mean()) < 2
    assert drift.max() < 4.5
    assert np.sqrt((std_errors**2).mean()) == pytest.approx(errors.std(), rel=0.7)


@settings(max_examples=15)
@given(graphs(min_nodes=1, max_nodes=9), st.integers(0, 2**32), st.data())
def test_any_graph_and_budget(graph: CommunicationGraph, seed: int, data: st.DataObject) -> None:
    spend = data.draw(st.integers(graph.num_nodes, 6 * graph.num_nodes))
    game = random_game(graph.num_nodes, seed=seed, q=data.draw(st.sampled_from([None, 2])))
    for estimate, exact, _ in SAMPLERS.values():
        counting = Counting(game)
        found = estimate(counting, graph, budget=spend, seed=seed)
        assert found.evaluations == counting.distinct <= spend
        assert found.residual < 1e-9
        assert found.values.shape == exact(game, graph).values.shape
        if found.exact:
            np.testing.assert_array_equal(found.values, exact(game, graph).values)


# bad input


def test_budgets_are_checked(sampler: Sampler) -> None:
    message = (
        r"budget must be at least the number of nodes, 12: every node has to be seen \(got 11\)"
    )
    with pytest.raises(ValueError, match=message):
        sampler.estimate(random_game(12, seed=0), ring(12), budget=11)
    with pytest.raises(TypeError, match=r"budget must be an integer \(got True\)"):
        sampler.estimate(random_game(1, seed=0), path(1), budget=True)
    found = sampler.estimate(random_game(12, seed=0), ring(12), budget=np.int32(30), seed=0)
    assert isinstance(found.evaluations, int)


def test_a_small_budget_admits_that_it_knows_no_error(sampler: Sampler) -> None:
    # as many coalitions as nodes leave nothing to compare with
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sampler.estimate(random_game(12, seed=0), ring(12), budget=12, seed=0)
    if sampler.estimate is not hn_value_growth_sampled:
        assert any("nan; from budget=" in str(one.message) for one in caught)
    assert not found.exact
    assert np.isnan(found.std_error).all()
    assert "nan" in repr(found)
