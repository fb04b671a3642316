"""The tree search, against brute force on games small enough to know everything about."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gstarx.games import Game, random_game, restricted_game
from gstarx.graphs import CommunicationGraph
from gstarx.models import GCN
from gstarx_bench.explainers.subgraphx import (
    REWARDS,
    Reward,
    SearchSettings,
    SubgraphX,
    search_subgraphs,
)
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph


def shapley_of_set(
    v: Game, n: int, candidate: tuple[int, ...], around: list[int], rest: list[int]
) -> float:
    """The Shapley value of a set as one player among others, by all orders of arrival."""
    players: list[tuple[int, ...]] = [candidate, *[(node,) for node in around]]
    total, orders = 0.0, 0
    for order in permutations(players):
        before = np.zeros((1, n), dtype=np.bool_)
        before[0, rest] = True
        for player in order:
            if player == candidate:
                after = before.copy()
                after[0, list(candidate)] = True
                worth = float(v(before)[0]) if before.any() else 0.0
                total += float(v(after)[0]) - worth
                break
            before[0, list(player)] = True
        orders += 1
    return total / orders


def small_graph(seed: int, n: int = 7) -> CommunicationGraph:
    """A random connected graph."""
    rng = np.random.default_rng(seed)
    tree = [(int(rng.integers(i)), i) for i in range(1, n)]
    extra = [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(3)]
    return CommunicationGraph(n, np.array([*tree, *extra]))


def as_row(n: int, nodes: tuple[int, ...]) -> NDArray[np.bool_]:
    row = np.zeros(n, dtype=np.bool_)
    row[list(nodes)] = True
    return row


@pytest.mark.parametrize(("seed", "radius"), [(0, 1), (1, 2), (2, 3), (3, 1), (4, 2), (5, 3)])
def test_the_exact_reward_is_the_shapley_value_of_the_set(seed: int, radius: int) -> None:
    net = small_graph(seed)
    n = net.num_nodes
    v = random_game(n, seed=seed)
    candidate = (0, *np.flatnonzero(net.boundary(as_row(n, (0,))))[:1].tolist())
    region = as_row(n, candidate)
    for _ in range(radius - 1):
        region |= net.boundary(region)
    around = [i for i in np.flatnonzero(region).tolist() if i not in candidate]
    rest = np.flatnonzero(~region).tolist()
    expected = shapley_of_set(v, n, candidate, around, rest)
    rng = np.random.default_rng(0)
    for name, samples in (("l_shapley", 100), ("mc_l_shapley", 2 ** len(around))):
        reward = Reward(name, v, net, local_radius=radius, sample_num=samples)
        assert reward.of(as_row(n, candidate)[None], rng)[0] == pytest.approx(expected, abs=1e-10)


def test_random_orders_estimate_the_same_value() -> None:
    net = small_graph(3, n=8)
    v = random_game(8, seed=1)
    candidates = np.array([as_row(8, (0, 1)), as_row(8, (2,))])
    exact = Reward("l_shapley", v, net, local_radius=8).of(candidates, np.random.default_rng(0))
    for name in ("mc_l_shapley", "mc_shapley"):
        reward = Reward(name, v, net, local_radius=8, sample_num=40)
        drawn = [reward.of(candidates, np.random.default_rng(seed)) for seed in range(300)]
        error = np.std(drawn, axis=0) / np.sqrt(300)
        assert np.all(np.abs(np.mean(drawn, axis=0) - exact) < 5 * error), name
        assert np.all(error > 0)


def test_the_plain_score_is_the_worth() -> None:
    net = small_graph(0)
    v = random_game(7, seed=0)
    sets = np.array([as_row(7, (0,)), as_row(7, (1, 2, 3))])
    found = Reward("gnn_score", v, net).of(sets, np.random.default_rng(0))
    assert np.array_equal(found, v(sets))


def test_the_classified_node_is_there_throughout() -> None:
    net = small_graph(0)
    asked: list[NDArray[np.bool_]] = []

    def v(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        asked.append(coalitions)
        return coalitions.sum(axis=1).astype(float)

    reward = Reward("nc_mc_l_shapley", v, net, anchor=2)
    assert reward.of(as_row(7, (2, 3))[None], np.random.default_rng(0))[0] == pytest.approx(1.0)
    assert np.concatenate(asked)[:, 2].all()
    with pytest.raises(ValueError, match="for node classification"):
        Reward("nc_mc_l_shapley", v, net)


def connected_sets(net: CommunicationGraph, size: int) -> list[tuple[int, ...]]:
    return [
        nodes
        for nodes in combinations(range(net.num_nodes), size)
        if len(set(net.component_labels(as_row(net.num_nodes, nodes))) - {-1}) == 1
    ]


@pytest.mark.parametrize("seed", range(6))
def test_enough_rollouts_find_the_best_connected_set_of_every_size(seed: int) -> None:
    net = small_graph(seed, n=6)
    v = random_game(6, seed=seed)
    reward = Reward("gnn_score", v, net)
    settings = SearchSettings(rollouts=400, min_atoms=1, expand_atoms=6, c_puct=50.0)
    states = search_subgraphs(reward, settings, np.random.default_rng(0))
    for size in range(1, 6):
        best = max(float(v(as_row(6, nodes)[None])[0]) for nodes in connected_sets(net, size))
        found = max(state.reward for state in states if state.size == size)
        assert found == pytest.approx(best), size
    assert all(len(set(net.component_labels(s.members)) - {-1}) == 1 for s in states)
    assert [s.reward for s in states] == sorted((s.reward for s in states), reverse=True)


def test_every_state_is_scored_once() -> None:
    net = small_graph(1, n=8)
    asked: list[bytes] = []

    def v(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        asked.extend(row.tobytes() for row in coalitions)
        return coalitions.mean(axis=1)

    states = search_subgraphs(
        Reward("gnn_score", v, net), SearchSettings(rollouts=30), np.random.default_rng(0)
    )
    assert len(asked) == len(set(asked)) == len(states)


@pytest.mark.parametrize("reward", ["gnn_score", "l_shapley"])
def test_numbering_does_not_matter_with_exact_rewards(reward: str) -> None:
    net = small_graph(4, n=7)
    v = restricted_game(random_game(7, seed=4), net)
    order = np.random.default_rng(1).permutation(7)
    place = np.argsort(order)
    moved = CommunicationGraph(7, place[net.edges])
    everything = SearchSettings(rollouts=600, min_atoms=1, expand_atoms=7, c_puct=50.0)
    one = search_subgraphs(Reward(reward, v, net), everything, np.random.default_rng(0))
    other = search_subgraphs(
        Reward(reward, lambda rows: v(rows[:, place]), moved), everything, np.random.default_rng(0)
    )
    for size in range(1, 7):
        best = next(s for s in one if s.size == size)
        same = next(s for s in other if s.size == size)
        assert same.reward == pytest.approx(best.reward)
        assert sorted(order[np.flatnonzero(same.members)]) == np.flatnonzero(best.members).tolist()


def test_one_search_serves_all_sizes() -> None:
    model = GCN(FEATURES, 8, CLASSES)
    data = graph("wide")
    found = SubgraphX(rollouts=5, sample_num=10).explain(model, data, seed=0)
    assert found.node_scores is None
    rewards = found.rewards
    for size in range(int(data.num_nodes) + 1):
        chosen = found.select(size=size)
        assert len(chosen) <= size
        fitting = [r for r, nodes in zip(rewards, found.sets, strict=True) if len(nodes) <= size]
        if fitting:
            place = [nodes.tolist() for nodes in found.sets].index(chosen.tolist())
            assert rewards[place] == max(fitting)
    assert len(found.select(size=1)) == 1


def test_the_same_seed_gives_the_same_search() -> None:
    model, data = GCN(FEATURES, 8, CLASSES), graph("wide")
    explainer = SubgraphX(rollouts=4, sample_num=8)
    runs = [explainer.explain(model, data, seed=seed) for seed in (0, 0, 1)]
    assert runs[0].rewards == runs[1].rewards
    assert runs[0].rewards != runs[2].rewards


def test_nodes_are_classified_around_their_node() -> None:
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    data = graph("wide")
    for reward in ("nc_mc_l_shapley", "mc_l_shapley"):
        found = SubgraphX(reward=reward, rollouts=3, sample_num=5).explain(
            model, data, seed=0, index=0, task="node"
        )
        assert all(0 in nodes for nodes in found.sets)


def test_edge_cases() -> None:
    model = GCN(FEATURES, 8, CLASSES)
    alone = SubgraphX().explain(model, graph("one node"), seed=0)
    assert alone.select(size=1).tolist() == [0]
    assert alone.select(size=0).tolist() == []
    apart = SubgraphX(rollouts=3, sample_num=4).explain(model, graph("messy"), seed=0)
    assert len(apart.select(size=2)) <= 2


def test_bad_options() -> None:
    for options, message in (
        ({"reward": "shapley"}, "reward must be one of"),
        ({"rollouts": 0}, "rollouts must be at least 1"),
        ({"c_puct": -1.0}, "c_puct must be at least 0"),
        ({"expand_atoms": 0}, "expand_atoms must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            SubgraphX(**options)  # type: ignore[arg-type]


def test_listing_has_a_limit() -> None:
    net = CommunicationGraph.complete(20)
    reward = Reward("l_shapley", random_game(20, seed=0), net)
    with pytest.raises(ValueError, match=r"lists 2\^19 coalitions"):
        reward.of(as_row(20, (0,))[None], np.random.default_rng(0))
    assert set(REWARDS) >= {"l_shapley", "mc_shapley"}


def test_it_does_not_touch_the_generator_of_torch() -> None:
    before = torch.get_rng_state()
    SubgraphX(rollouts=1).explain(GCN(FEATURES, 8, CLASSES).train(), graph("ring"), seed=0)
    after = torch.get_rng_state()
    assert before.shape == after.shape
