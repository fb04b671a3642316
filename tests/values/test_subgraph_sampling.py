"""The paper's Algorithm 3, against the average it is defined as."""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.games import (
    Game,
    TableGame,
    additive_game,
    random_game,
    restricted_game,
    superadditive_cover,
)
from gstarx.graphs import CommunicationGraph
from gstarx.values import (
    Allocation,
    ConvergenceWarning,
    Subgraphs,
    hn_value,
    hn_value_iterated,
    hn_value_subgraph_sampled,
    myerson_value,
    shapley_value,
    subgraph_sampled,
)
from gstarx.values.subgraph_sampling import _around, _draw
from tests.oracles import as_networkx
from tests.pairs import for_each
from tests.strategies import graphs
from tests.values.definitions import Counting, Numbers, molecule, path, ring, smooth_game, tree

columns = st.sampled_from([None, 2])


def quietly(function: Any, *arguments: Any, **options: Any) -> Allocation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result: Allocation = function(*arguments, **options)
    return result


def iterated(v: Game, graph: CommunicationGraph) -> Allocation:
    return quietly(hn_value_iterated, v, graph)


def shapley(v: Game, graph: CommunicationGraph) -> Allocation:
    return shapley_value(v, graph.num_nodes)


def table_on(v: Game, nodes: list[int], n: int) -> TableGame:
    """The game on some of its players, written down."""
    rows = np.zeros((2 ** len(nodes), n), dtype=np.bool_)
    for mask in range(2 ** len(nodes)):
        rows[mask, [node for place, node in enumerate(nodes) if mask >> place & 1]] = True
    worths = v(rows)
    worths[0] = 0.0
    return TableGame(len(nodes), worths)


def by_hand(
    v: Game, graph: CommunicationGraph, subsets: list[list[int]], value: Any, cover: bool = False
) -> tuple[Numbers, Numbers]:
    """Mean and standard error over the subsets that a node is in, of its value on each."""
    found: list[list[Numbers]] = [[] for _ in range(graph.num_nodes)]
    for nodes in subsets:
        inside = graph.subgraph(nodes)
        game: Game = table_on(v, nodes, graph.num_nodes)
        if cover:
            known = CommunicationGraph.complete(len(nodes)) if value is shapley else inside
            game = superadditive_cover(restricted_game(game, known), len(nodes))
        for node, share in zip(nodes, value(game, inside).values, strict=True):
            found[node].append(share)
    mean = np.array([np.mean(shares, axis=0) for shares in found])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        error = np.array(
            [np.std(shares, axis=0, ddof=1) / np.sqrt(len(shares)) for shares in found]
        )
    return mean, error


@st.composite
def subsets_of(draw: st.DrawFn, n: int, *, max_size: int = 5) -> list[list[int]]:
    """Subsets in which every node is at least once, nodes in any order."""
    order = draw(st.permutations(range(n)))
    size = draw(st.integers(1, max_size))
    cover = [list(order[first : first + size]) for first in range(0, n, size)]
    more = st.lists(st.integers(0, n - 1), unique=True, min_size=1, max_size=max_size)
    return cover + draw(st.lists(more, max_size=4))


# given subsets


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({}, hn_value),
        ({"value": "hn"}, hn_value),
        ({"value": "hn", "inner": "iterated"}, iterated),
        ({"value": "myerson"}, myerson_value),
        ({"value": "shapley"}, shapley),
    ],
    ids=["default", "hn", "hn iterated", "myerson", "shapley"],
)
@settings(max_examples=25)
@given(graph=graphs(min_nodes=1, max_nodes=8), q=columns, cover=st.booleans(), data=st.data())
def test_it_is_the_mean_over_given_subsets(
    options: dict[str, Any],
    value: Any,
    graph: CommunicationGraph,
    q: int | None,
    cover: bool,
    data: st.DataObject,
) -> None:
    n = graph.num_nodes
    game = random_game(n, seed=data.draw(st.integers(0, 2**32)), q=q)
    chosen = data.draw(subsets_of(n))
    found = quietly(subgraph_sampled, game, graph, subsets=chosen, superadditive=cover, **options)
    mean, error = by_hand(game, graph, chosen, value, cover)
    np.testing.assert_allclose(found.values, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.std_error, error, rtol=0, atol=1e-6)
    assert not found.exact


@pytest.mark.parametrize("tau", [0.02, 0.3, 0.6])
def test_every_subset_is_iterated_on_its_own(tau: float) -> None:
    # small subsets settle early, each at its own time
    graph = ring(12)
    game = random_game(12, seed=3)
    chosen = [[0, 1], [2, 3, 4], [5, 6, 7, 8], [9, 10, 11], [0, 2, 4], [1, 3, 5, 7]]
    found = quietly(
        hn_value_subgraph_sampled, game, graph, subsets=chosen, inner="iterated", tau=tau
    )
    mean, _ = by_hand(game, graph, chosen, lambda v, g: quietly(hn_value_iterated, v, g, tau=tau))
    np.testing.assert_allclose(found.values, mean, rtol=0, atol=1e-10)


def test_a_game_that_hardly_moves_is_iterated_as_long_as_the_matrix_moves() -> None:
    # the worths settle at once, the matrix of a subset of nine nodes does not
    graph = CommunicationGraph(24, [(i, j) for i in range(24) for j in range(i) if i - j < 6])
    own, noise = np.random.default_rng(0).normal(size=24), random_game(24, seed=0)
    chosen = [list(range(first, first + 9)) for first in range(0, 16, 3)]

    def game(coalitions: NDArray[np.bool_]) -> Numbers:
        worths: Numbers = coalitions @ own + 1e-2 * noise(coalitions)
        return worths

    found = quietly(hn_value_subgraph_sampled, game, graph, subsets=chosen, inner="iterated")
    np.testing.assert_allclose(
        found.values, by_hand(game, graph, chosen, iterated)[0], rtol=0, atol=1e-10
    )
    assert not found.converged


def test_many_large_subsets() -> None:
    graph = molecule(40, seed=1, chords=6)
    game = smooth_game(40, seed=0)
    generator = np.random.default_rng(0)
    chosen = [sorted(generator.choice(40, 10, replace=False).tolist()) for _ in range(30)]
    chosen += [list(range(first, first + 10)) for first in range(0, 40, 10)]
    for value, function in (("hn", hn_value), ("myerson", myerson_value)):
        found = subgraph_sampled(game, graph, value=value, subsets=chosen)
        mean, error = by_hand(game, graph, chosen, function)
        np.testing.assert_allclose(found.values, mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.std_error, error, rtol=0, atol=1e-7)


def test_a_node_in_one_subset_has_no_standard_error() -> None:
    found = hn_value_subgraph_sampled(
        random_game(4, seed=0), path(4), subsets=[[0, 1, 2], [1, 2, 3]]
    )
    assert np.isnan(found.std_error).tolist() == [True, False, False, True]


def test_nodes_beyond_the_first_word() -> None:
    graph = path(100)
    game = random_game(100, seed=1)
    chosen = [list(range(first, min(first + 8, 100))) for first in range(0, 100, 4)]
    found = hn_value_subgraph_sampled(game, graph, subsets=chosen)
    np.testing.assert_allclose(
        found.values, by_hand(game, graph, chosen, hn_value)[0], rtol=0, atol=1e-10
    )


def test_hn_is_a_case_of_the_general_scheme() -> None:
    game, graph = random_game(14, seed=0), ring(14)
    options: dict[str, Any] = {
        "max_sample_size": 4,
        "num_samples": 9,
        "sampling": "khop",
        "inner": "iterated",
        "tau": 0.2,
        "superadditive": True,
        "seed": 7,
    }
    one = quietly(hn_value_subgraph_sampled, game, graph, **options)
    other = quietly(subgraph_sampled, game, graph, value="hn", **options)
    np.testing.assert_array_equal(one.values, other.values)
    subsets = [[0, 1, 2], list(range(2, 14))]
    np.testing.assert_array_equal(
        hn_value_subgraph_sampled(game, graph, subsets=subsets).values,
        subgraph_sampled(game, graph, subsets=subsets).values,
    )


# what is asked for


def test_a_coalition_in_several_subsets_is_evaluated_once() -> None:
    counting = Counting(random_game(12, seed=0))
    graph = ring(12)
    found = hn_value_subgraph_sampled(counting, graph, max_sample_size=6, seed=1, num_samples=40)
    assert found.evaluations == counting.distinct
    # connected coalitions of at most six nodes, and the whole graph for the residual
    assert counting.distinct <= 6 * 12 + 1


def test_only_the_components_are_evaluated_beyond_the_subsets() -> None:
    counting = Counting(random_game(5, seed=0))
    graph = CommunicationGraph(5, [(0, 1), (1, 2), (3, 4)])
    found = hn_value_subgraph_sampled(counting, graph, subsets=[[0, 1], [2, 3], [4]])
    asked = {frozenset(np.flatnonzero(np.frombuffer(row, np.bool_))) for row in counting.asked}
    singles = {frozenset({i}) for i in range(5)}
    assert asked == singles | {frozenset({0, 1}), frozenset({0, 1, 2}), frozenset({3, 4})}
    assert found.evaluations == counting.distinct == 8


def test_the_residual_is_the_gap_to_whole_components() -> None:
    graph = CommunicationGraph(5, [(0, 1), (1, 2), (3, 4)])
    game = random_game(5, seed=4)
    found = hn_value_subgraph_sampled(game, graph, subsets=[[0, 1], [2, 3], [4]])
    gaps = [
        abs(found.values[:3].sum() - game(np.array([[1, 1, 1, 0, 0]], dtype=bool))[0]),
        abs(found.values[3:].sum() - game(np.array([[0, 0, 0, 1, 1]], dtype=bool))[0]),
    ]
    assert found.residual == pytest.approx(max(gaps), rel=1e-12)


# graphs solved whole


@settings(max_examples=25)
@given(graphs(max_nodes=8), columns, st.integers(0, 2**32))
def test_a_small_graph_is_solved_exactly(
    graph: CommunicationGraph, q: int | None, seed: int
) -> None:
    n = graph.num_nodes
    game = random_game(n, seed=seed, q=q)
    for name, value in (("hn", hn_value), ("myerson", myerson_value), ("shapley", shapley)):
        counting = Counting(game)
        found = subgraph_sampled(counting, graph, value=name, max_sample_size=max(n, 1))
        np.testing.assert_allclose(found.values, value(game, graph).values, rtol=0, atol=1e-12)
        assert found.exact
        assert not found.std_error.any()
        if name != "shapley":
            assert found.residual < 1e-11
            assert found.evaluations == counting.distinct == graph.count_connected_coalitions()


def test_a_small_graph_iterated_is_not_exact() -> None:
    game = random_game(6, seed=0)
    found = quietly(hn_value_subgraph_sampled, game, ring(6), inner="iterated")
    np.testing.assert_allclose(found.values, iterated(game, ring(6)).values, rtol=0, atol=1e-13)
    assert not found.exact
    assert not found.converged
    assert not found.std_error.any()
    assert found.residual > 1e-3


def test_one_node_more_than_fits_is_sampled() -> None:
    game = random_game(11, seed=0)
    assert not hn_value_subgraph_sampled(game, ring(11), seed=0).exact
    assert hn_value_subgraph_sampled(game, ring(11), max_sample_size=11, seed=0).exact


def test_given_subsets_are_used_on_small_graphs_too() -> None:
    game = random_game(4, seed=0)
    found = hn_value_subgraph_sampled(game, ring(4), subsets=[[0, 1], [2, 3]])
    np.testing.assert_allclose(
        found.values, by_hand(game, ring(4), [[0, 1], [2, 3]], hn_value)[0], rtol=0, atol=1e-13
    )
    assert not found.exact


# the superadditive cover


def test_the_cover_is_that_of_the_restricted_game() -> None:
    graph = molecule(9, seed=2)
    game = random_game(9, seed=1, q=2)
    covered = superadditive_cover(restricted_game(game, graph), 9)
    for name, value in (("hn", hn_value), ("myerson", myerson_value)):
        found = subgraph_sampled(game, graph, value=name, superadditive=True)
        np.testing.assert_allclose(found.values, value(covered, graph).values, rtol=0, atol=1e-11)
        plain = subgraph_sampled(game, graph, value=name)
        assert np.abs(found.values - plain.values).max() > 0.01


def test_a_cover_asks_for_connected_coalitions_only() -> None:
    counting = Counting(random_game(7, seed=0))
    found = hn_value_subgraph_sampled(counting, ring(7), superadditive=True)
    assert found.evaluations == counting.distinct == 43


def test_a_cover_of_too_many_nodes() -> None:
    with pytest.raises(ValueError, match=r"takes at most 14 players \(got n=15\)"):
        hn_value_subgraph_sampled(
            random_game(15, seed=0), path(15), max_sample_size=15, superadditive=True
        )


# drawing subsets


def drawn(graph: CommunicationGraph, size: int, sampling: str, seed: int, **options: Any) -> Any:
    generator = np.random.default_rng(seed)
    asked = Subgraphs(max_sample_size=size, sampling=sampling, **options)
    return _draw(graph, asked, generator)


@settings(max_examples=40)
@given(
    graphs(min_nodes=2, max_nodes=12),
    st.sampled_from(["random", "khop"]),
    st.none() | st.integers(1, 30),
    st.data(),
)
def test_subsets_cover_every_node(
    graph: CommunicationGraph, sampling: str, num_samples: int | None, data: st.DataObject
) -> None:
    n = graph.num_nodes
    size = data.draw(st.integers(1, n - 1))
    subsets = drawn(graph, size, sampling, data.draw(st.integers(0, 99)), num_samples=num_samples)
    wanted = n if num_samples is None else num_samples
    assert len(subsets) >= wanted
    assert set(np.concatenate(subsets).tolist()) == set(range(n))
    for nodes in subsets:
        assert (np.diff(nodes) > 0).all()
        assert len(nodes) == size if sampling == "random" else len(nodes) <= size
    # no more than needed: without the last one, too few or a node not covered
    if len(subsets) > wanted:
        assert set(np.concatenate(subsets[:-1]).tolist()) < set(range(n))


@pytest.mark.parametrize("sampling", ["random", "khop"])
def test_one_subset_per_node_by_default(sampling: str) -> None:
    subsets = drawn(ring(30), 20, sampling, 0)
    assert len(subsets) == 30
    assert len(drawn(ring(30), 20, sampling, 0, num_samples=20)) == 20


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=12), st.integers(0, 99), st.data())
def test_hops_around_a_node(graph: CommunicationGraph, seed: int, data: st.DataObject) -> None:
    n = graph.num_nodes
    center = data.draw(st.integers(0, n - 1))
    size = data.draw(st.integers(1, n))
    nodes = _around(graph, center, size, np.random.default_rng(seed)).tolist()
    far = nx.single_source_shortest_path_length(as_networkx(graph), center)
    assert center in nodes
    assert len(nodes) == min(size, len(far))
    assert set(nodes) <= set(far)
    # nearer nodes first: whoever is left out is at least as far as whoever is in
    left_out = [hops for node, hops in far.items() if node not in nodes]
    assert max(far[node] for node in nodes) <= min(left_out, default=n)


def test_the_last_hop_is_drawn_from_at_random() -> None:
    star = CommunicationGraph(9, [(0, i) for i in range(1, 9)])
    found = {tuple(_around(star, 0, 4, np.random.default_rng(s)).tolist()) for s in range(60)}
    assert len(found) > 20
    counts = np.bincount(np.concatenate([list(nodes) for nodes in found]), minlength=9)
    assert (counts[1:] > 0).all()


def test_khop_takes_every_node_in_turn() -> None:
    subsets = drawn(path(10), 3, "khop", 0)
    for center, nodes in enumerate(subsets[:10]):
        assert center in nodes
        assert np.ptp(nodes) <= 2 or center in (0, 9)
    again = drawn(path(10), 3, "khop", 0, num_samples=12)
    assert 0 in again[10]
    assert 1 in again[11]


def test_random_subsets_are_uniform() -> None:
    subsets = drawn(ring(8), 3, "random", 1, num_samples=4000)
    counts = np.bincount(np.concatenate(subsets), minlength=8) / len(subsets)
    np.testing.assert_allclose(counts, 3 / 8, rtol=0, atol=0.04)
    assert len({tuple(nodes.tolist()) for nodes in subsets}) == 56


def test_an_isolated_node_is_a_subset_of_its_own() -> None:
    graph = CommunicationGraph(12, path(11).edges)
    game = random_game(12, seed=0)
    found = hn_value_subgraph_sampled(game, graph, sampling="khop", max_sample_size=4, seed=0)
    alone: NDArray[np.bool_] = np.eye(12, dtype=bool)[11:]
    assert found.values[11] == game(alone)[0]


# randomness


@pytest.mark.parametrize("sampling", ["random", "khop"])
def test_seeds(sampling: str) -> None:
    game, graph = random_game(16, seed=0), tree(16, seed=1)
    options: dict[str, Any] = {"sampling": sampling, "max_sample_size": 5}
    one, same, other, generator = (
        hn_value_subgraph_sampled(game, graph, seed=seed, **options).values
        for seed in (4, 4, 5, np.random.default_rng(4))
    )
    np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(one, generator)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("value", "sampling", "seed"),
    [("hn", "random", 0), ("myerson", "khop", 1), ("shapley", "random", 2), ("hn", "khop", 2)],
)
def test_additive_games_are_exact_whatever_is_drawn(value: str, sampling: str, seed: int) -> None:
    own = np.random.default_rng(seed).normal(size=(20, 2))
    for graph in (molecule(20, seed=seed), CommunicationGraph(20, path(15).edges)):
        found = subgraph_sampled(
            additive_game(own),
            graph,
            value=value,
            sampling=sampling,
            max_sample_size=6,
            superadditive=seed == 2,
            seed=seed,
        )
        np.testing.assert_allclose(found.values, own, rtol=0, atol=1e-10)
        assert found.residual < 1e-9


def test_the_standard_error_falls_with_more_subsets() -> None:
    game, graph = smooth_game(20, seed=1), molecule(20, seed=3)
    few, many = (
        hn_value_subgraph_sampled(game, graph, max_sample_size=6, num_samples=m, seed=0).std_error
        for m in (30, 480)
    )
    assert np.nanmean(many) == pytest.approx(np.nanmean(few) / 4, rel=0.4)


# warnings


def test_truncation_inside_subsets_warns_once() -> None:
    message = r"truncated at 7 squarings before it converged.*inner='exact' gives its limit"
    for function in (hn_value_subgraph_sampled, subgraph_sampled):
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            found = function(
                random_game(12, seed=0), ring(12), max_sample_size=5, inner="iterated", seed=0
            )
        assert len(caught) == 1
        assert not found.converged


def test_subsets_that_converge_do_not_warn() -> None:
    found = hn_value_subgraph_sampled(
        random_game(8, seed=0), path(8), max_sample_size=2, inner="iterated", tau=0.4, seed=0
    )
    assert found.converged


# bad input


@for_each(
    ("options", "error", "message"),
    [
        (
            {"value": "HN"},
            ValueError,
            r"value must be one of 'hn', 'myerson', 'shapley' \(got 'HN'\)",
        ),
        (
            {"sampling": "hops"},
            ValueError,
            r"sampling must be one of 'random', 'khop' \(got 'hops'\)",
        ),
        ({"inner": None}, ValueError, r"inner must be one of 'exact', 'iterated' \(got None\)"),
        ({"max_sample_size": 0}, ValueError, r"max_sample_size must be at least 1 \(got 0\)"),
        ({"num_samples": 0}, ValueError, r"num_samples must be None or at least 1 \(got 0\)"),
        ({"num_samples": -3}, ValueError, r"num_samples must be None or at least 1 \(got -3\)"),
        (
            {"inner": "iterated", "value": "myerson"},
            ValueError,
            r"inner='iterated' is for value='hn' only \(got value='myerson'\)",
        ),
        ({"tau": 0.0}, ValueError, r"tau must lie in \(0, 1\] \(got 0\.0\)"),
        ({"tau": 1.5, "inner": "iterated"}, ValueError, r"tau must lie in \(0, 1\] \(got 1\.5\)"),
        (
            {"subsets": [[0, 1, 1], [2, 3, 4]]},
            ValueError,
            r"subsets\[0\] must not repeat a node \(got \[0, 1, 1\]\)",
        ),
        (
            {"subsets": [[0, 1, 2, 3], [4, 5]]},
            ValueError,
            r"subsets\[1\] must lie in 0\.\.4 \(got \[4, 5\]\)",
        ),
        ({"subsets": [[0, 1, 2, 3], [-1, 4]]}, ValueError, r"subsets\[1\] must lie in 0\.\.4"),
        (
            {"subsets": [[0, 1, 2, 3, 4], []]},
            ValueError,
            r"subsets\[1\] must name at least one node \(got none\)",
        ),
        (
            {"subsets": [[0, 1], [4]]},
            ValueError,
            r"every node must be in a subset \(got none with \[2, 3\]\)",
        ),
        ({"subsets": []}, ValueError, r"every node must be in a subset \(got none with \[0, 1,"),
        (
            {"subsets": [[0.5, 1.0], [2, 3, 4]]},
            TypeError,
            r"subsets\[0\] must be a list of node ids",
        ),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        subgraph_sampled(random_game(5, seed=0), path(5), **options)


def test_a_subset_that_is_not_small() -> None:
    message = r"the limit is 2,000,000: .* a smaller max_sample_size"
    with pytest.raises(ValueError, match=message):
        hn_value_subgraph_sampled(
            random_game(30, seed=0), CommunicationGraph.complete(30), max_sample_size=25, seed=0
        )


def test_as_an_object_it_is_the_published_scheme_and_has_no_exact_value() -> None:
    game, graph = random_game(12, seed=0), ring(12)
    published = Subgraphs().sampled(game, graph, seed=0)
    expected = quietly(hn_value_subgraph_sampled, game, graph, inner="iterated", seed=0)
    np.testing.assert_array_equal(published.values, expected.values)
    assert [Subgraphs(value=value).inner for value in ("hn", "myerson")] == ["iterated", "exact"]
    assert Subgraphs().count(graph, 10**6) > 10**6
    with pytest.raises(ValueError, match="Subgraphs has no exact value: use value='hn'"):
        Subgraphs().exact(game, graph, max_coalitions=10**6)
