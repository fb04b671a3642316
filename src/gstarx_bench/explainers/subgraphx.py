"""SubgraphX: a tree search for the connected set of nodes with the highest Shapley value.

Yuan et al., "On Explainability of Graph Neural Networks via Subgraph Explorations", ICML 2021. The
search starts from the whole graph and removes nodes. States are shared between the branches that
reach them, all children of an expansion are scored in one batch, and every part of the graph goes
through the model once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.arguments import as_flag, one_of
from gstarx.explainers.base import (
    NodeExplainer,
    game_attribution,
    one_target_game,
    output_payoff,
)
from gstarx.explanation import Attribution
from gstarx.games import Game, evaluate
from gstarx.gnn import GameOptions, ModelTask, Passes, restored
from gstarx.graphs import Coalitions, CommunicationGraph, unpack
from gstarx.values import Seed

#: Lower bound of the rewards that guide exploration, since Shapley values may be negative and a
#: state would never be visited again.
_LEAST_PRIOR = 0.01
REWARDS = ("gnn_score", "l_shapley", "mc_l_shapley", "mc_shapley", "nc_mc_l_shapley")
#: The most nodes around a candidate whose subsets are all listed on request.
_MAX_AROUND = 16


class SubgraphX(NodeExplainer):
    """Monte-Carlo tree search over connected sets of nodes.

    Parameters
    ----------
    reward
        The reward of a set, see :class:`gstarx_bench.explainers.subgraphx.Reward`.
    rollouts
        Walks from the whole graph down to a leaf.
    min_atoms
        A set of at most this many nodes is a leaf. The best leaf is then reduced greedily, so that
        there is a set of every size.
    expand_atoms
        The most nodes that an expansion considers for removal.
    c_puct
        Weight of exploration.
    high2low
        Consider nodes with many neighbors first rather than last.
    local_radius, sample_num
        Of the reward.
    removal
        As in :class:`gstarx.GNNGame`. The published experiments used ``"zero_filling"``.
    batch_nodes, share
        As in :class:`gstarx.GNNGame`.
    seed
        Inside PyG's ``Explainer``: the seed; :meth:`explain` takes its own.

    Notes
    -----
    In a graph with several components, removing a node leaves the largest component of the rest.
    """

    heterogeneous = True

    def __init__(
        self,
        *,
        reward: str = "mc_l_shapley",
        rollouts: int = 20,
        min_atoms: int = 5,
        expand_atoms: int = 14,
        c_puct: float = 10.0,
        high2low: bool = False,
        local_radius: int = 4,
        sample_num: int = 100,
        removal: Any = "remove",
        batch_nodes: int | None = None,
        share: bool | str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.reward = one_of(reward, REWARDS, name="reward")
        self.local_radius = local_radius
        self.sample_num = sample_num
        self.search = SearchSettings(rollouts, min_atoms, expand_atoms, c_puct, high2low)
        self.game = GameOptions(removal=removal)
        self.passes = Passes(batch_nodes=batch_nodes, share=share)
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Connected sets of nodes, found by tree search."""
        with restored(model):
            game = one_target_game(
                model,
                data,
                task,
                payoff=output_payoff(task),
                game=self.game,
                passes=self.passes,
            )
            anchor = None
            if task.task_level == "node":
                anchor = int(np.flatnonzero(game.nodes == task.index)[0])
            reward = Reward(
                self.reward, game, game.graph, self.local_radius, self.sample_num, anchor
            )
            states = search_subgraphs(reward, self.search, np.random.default_rng(seed))
        return game_attribution(
            game,
            None,
            sets=tuple(game.nodes[state.members] for state in states),
            details={"rewards": [state.reward for state in states]},
        )


@dataclass(frozen=True)
class SearchSettings:
    """The options of the search, as :class:`SubgraphX` documents them."""

    rollouts: int = 20
    min_atoms: int = 5
    expand_atoms: int = 14
    c_puct: float = 10.0
    high2low: bool = False

    def __post_init__(self) -> None:
        for name in ("rollouts", "min_atoms", "expand_atoms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)!r})")
        if not self.c_puct >= 0:
            raise ValueError(f"c_puct must be at least 0 (got {self.c_puct!r})")
        as_flag(self.high2low, name="high2low")


@dataclass(eq=False)
class State:
    """A set of nodes in the search, with its reward and the rewards of the walks through it."""

    members: NDArray[np.bool_]
    reward: float
    visits: int = 0
    total: float = 0.0
    children: list[State] | None = None
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = int(self.members.sum())

    @property
    def mean(self) -> float:
        """The mean reward of the walks through this state."""
        return self.total / self.visits if self.visits else 0.0


def search_subgraphs(
    reward: Reward, settings: SearchSettings, generator: np.random.Generator
) -> list[State]:
    """All states that the search visited, best reward first; ties by size, then nodes."""
    tree = _Tree(reward, settings, generator)
    for _ in range(settings.rollouts):
        tree.walk()
    tree.cut_down()
    states = [state for state in tree.states.values() if state is not tree.root]
    if not states and tree.root.size:
        # a single node has no smaller sets
        tree.root.reward = float(reward.of(tree.root.members[None], generator)[0])
        states = [tree.root]
    return sorted(states, key=lambda s: (-s.reward, s.size, np.flatnonzero(s.members).tolist()))


class _Tree:
    """The states by their nodes, and the moves between them."""

    def __init__(
        self, reward: Reward, settings: SearchSettings, generator: np.random.Generator
    ) -> None:
        self.reward = reward
        self.graph = reward.graph
        self.settings = settings
        self.generator = generator
        self.root = State(np.ones(self.graph.num_nodes, dtype=np.bool_), 0.0)
        self.states = {self.root.members.tobytes(): self.root}

    def walk(self) -> None:
        """Walk from the whole graph to a leaf, and add its reward to all states on the way."""
        state, path = self.root, []
        while state.size > self.settings.min_atoms:
            if state.children is None:
                state.children = self._expanded(state.members, self.settings.expand_atoms)
            if not state.children:
                break
            state = self._most_promising(state.children)
            path.append(state)
        for passed in path:
            passed.visits += 1
            passed.total += state.reward

    def cut_down(self) -> None:
        """Reduce the best leaf greedily, so that there is a state of every size down to one."""
        small = [state for state in self.states.values() if state.size <= self.settings.min_atoms]
        if not small:
            small = [min(self.states.values(), key=lambda state: state.size)]
        state = max(small, key=lambda state: state.reward)
        while state.size > 1:
            children = self._expanded(state.members, state.size)
            if not children:
                return
            state = max(children, key=lambda child: child.reward)

    def _most_promising(self, children: list[State]) -> State:
        visits = sum(child.visits for child in children)
        explore = self.settings.c_puct * np.sqrt(visits)
        values = [
            child.mean + explore * max(child.reward, _LEAST_PRIOR) / (1 + child.visits)
            for child in children
        ]
        return children[int(np.argmax(values))]

    def _expanded(self, members: NDArray[np.bool_], most: int) -> list[State]:
        """The states with one node removed, or more if the set falls apart; new ones are scored."""
        sets = _without_one(self.graph, members, self._candidates(members)[:most], self.anchor)
        keys = [one.tobytes() for one in sets]
        fresh = [i for i, key in enumerate(keys) if key not in self.states]
        fresh = list({keys[i]: i for i in reversed(fresh)}.values())[::-1]
        if fresh:
            for i, score in zip(fresh, self.reward.of(sets[fresh], self.generator), strict=True):
                self.states[keys[i]] = State(sets[i], float(score))
        return [self.states[key] for key in dict.fromkeys(keys)]

    @property
    def anchor(self) -> int | None:
        """The node that is never removed."""
        return self.reward.anchor

    def _candidates(self, members: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Nodes to remove, ordered by their degree within the set."""
        nodes = np.flatnonzero(members)
        both = members[self.graph.edges].all(axis=1)
        degrees = np.bincount(self.graph.edges[both].ravel(), minlength=len(members))[nodes]
        order = np.argsort(-degrees if self.settings.high2low else degrees, kind="stable")
        ranked = nodes[order]
        return ranked if self.anchor is None else ranked[ranked != self.anchor]


def _without_one(
    graph: CommunicationGraph,
    members: NDArray[np.bool_],
    candidates: NDArray[np.int64],
    anchor: int | None,
) -> Coalitions:
    """The set without each candidate: the largest component of the rest, or the anchor's."""
    if int(members.sum()) < 2:
        return np.zeros((0, len(members)), dtype=np.bool_)
    smaller = np.repeat(members[None], len(candidates), axis=0)
    smaller[np.arange(len(candidates)), candidates] = False
    labels = graph.component_labels(smaller)
    for row, components in enumerate(labels):
        if anchor is None:
            # labels are smallest nodes, so ties go to the component with the smallest node
            component = int(np.argmax(np.bincount(components[components >= 0])))
        else:
            component = int(components[anchor])
        smaller[row] = components == component
    return smaller


@dataclass(frozen=True)
class Reward:
    """The reward of candidate sets in one game: the score of a set, or its Shapley value.

    The candidate set is one player. The others are the nodes around it; nodes further away are
    always present.

    Attributes
    ----------
    name
        ``"gnn_score"``: the worth of the set. ``"l_shapley"``: its exact Shapley value among the
        nodes around it. ``"mc_l_shapley"``: the same from ``sample_num`` random orders, or exactly
        if that takes fewer evaluations. ``"mc_shapley"``: among all nodes.
        ``"nc_mc_l_shapley"``: for node classification, where the classified node is always present.
    game
        From boolean coalitions (k, n) to worths (k,).
    graph
        The graph that defines which nodes are around a set.
    local_radius
        Nodes within ``local_radius - 1`` hops are around.
    sample_num
        Random orders.
    anchor
        The node that is classified, for ``"nc_mc_l_shapley"``.
    """

    name: str
    game: Game
    graph: CommunicationGraph
    local_radius: int = 4
    sample_num: int = 100
    anchor: int | None = None

    def __post_init__(self) -> None:
        one_of(self.name, REWARDS, name="reward")
        if self.name == "nc_mc_l_shapley" and self.anchor is None:
            raise ValueError("reward='nc_mc_l_shapley' is for node classification: give an index")
        for name in ("local_radius", "sample_num"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1 (got {getattr(self, name)!r})")

    def of(self, candidates: Coalitions, generator: np.random.Generator) -> NDArray[np.float64]:
        """Rewards (m,) of candidate sets (m, n), all evaluated in one call of the game."""
        if self.name == "gnn_score":
            return evaluate(self.game, candidates)
        around = self._around(candidates)
        exact = self._enumerated(around)
        blocks = [
            self._every_subset(one, near) if listed else self._orders(one, near, generator)
            for one, near, listed in zip(candidates, around, exact, strict=True)
        ]
        coalitions = np.concatenate([rows for rows, _ in blocks])
        worths, nonempty = np.zeros(len(coalitions)), coalitions.any(axis=1)
        worths[nonempty] = evaluate(self.game, coalitions[nonempty])
        rewards, start = np.empty(len(candidates)), 0
        for place, (rows, weights) in enumerate(blocks):
            without, joined = np.split(worths[start : start + len(rows)], 2)
            rewards[place] = weights @ (joined - without)
            start += len(rows)
        return rewards

    def _around(self, candidates: Coalitions) -> Coalitions:
        """The other players: the nodes around every candidate set."""
        if self.name == "mc_shapley":
            return ~candidates
        region = candidates.copy()
        for _ in range(self.local_radius - 1):
            region |= self.graph.boundary(region)
        around = region & ~candidates
        if self.anchor is not None:
            around[:, self.anchor] = False
        return around

    def _enumerated(self, around: Coalitions) -> NDArray[np.bool_]:
        """Which candidates have all their subsets enumerated."""
        sizes = around.sum(axis=1)
        if self.name != "l_shapley":
            limit = int(np.log2(self.sample_num))
            return np.asarray(sizes <= limit)
        if sizes.max(initial=0) > _MAX_AROUND:
            raise ValueError(
                f"reward='l_shapley' lists 2^{sizes.max()} coalitions here, and 2^{_MAX_AROUND} is "
                "the most: take 'mc_l_shapley', or a smaller local_radius"
            )
        return np.ones(len(around), dtype=np.bool_)

    def _every_subset(
        self, candidate: NDArray[np.bool_], around: NDArray[np.bool_]
    ) -> tuple[Coalitions, NDArray[np.float64]]:
        """Coalitions without and with the candidate, and Shapley's weight of each pair."""
        players = np.flatnonzero(around)
        count = len(players)
        subsets = unpack(np.arange(2**count, dtype=np.uint64)[:, None], count)
        joined = np.zeros((len(subsets), len(around)), dtype=np.bool_)
        joined[:, players] = subsets
        sizes = subsets.sum(axis=1)
        weights = np.array([1 / (comb(count, t) * (count + 1)) for t in range(count + 1)])
        return self._pairs(candidate, around, joined), weights[sizes]

    def _orders(
        self,
        candidate: NDArray[np.bool_],
        around: NDArray[np.bool_],
        generator: np.random.Generator,
    ) -> tuple[Coalitions, NDArray[np.float64]]:
        """The same with the players that precede the candidate in random orders."""
        arrival = generator.random((self.sample_num, len(around) + 1))
        before = (arrival[:, :-1] < arrival[:, -1:]) & around
        return self._pairs(candidate, around, before), np.full(len(before), 1 / len(before))

    def _pairs(
        self, candidate: NDArray[np.bool_], around: NDArray[np.bool_], joined: Coalitions
    ) -> Coalitions:
        without = joined | ~(around | candidate)
        if self.anchor is not None:
            without[:, self.anchor] = True
        return np.concatenate([without, without | candidate])


class LocalShapley(NodeExplainer):
    """The Shapley value of every node among the nodes within some hops (appendix G of the paper).

    Nodes further away are always present, as in SubgraphX. Values are estimated from random orders
    of arrival, or exact if there are few enough nodes around.

    Parameters
    ----------
    hops
        The radius in hops; the paper suggests the number of layers.
    sample_num
        Random orders for every node.
    payoff, baseline, removal, share
        As in :class:`gstarx.GNNGame`.
    """

    heterogeneous = True

    def __init__(
        self,
        *,
        hops: int = 3,
        sample_num: int = 50,
        payoff: Any = "auto",
        baseline: Any = None,
        removal: Any = "remove",
        share: bool | str = "auto",
    ) -> None:
        super().__init__()
        if hops < 0:
            raise ValueError(f"hops must be at least 0 (got {hops!r})")
        self.hops, self.sample_num = hops, sample_num
        self.game_options = {
            "payoff": payoff,
            "baseline": baseline,
            "game": GameOptions(removal=removal),
            "passes": Passes(share=share),
        }

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Shapley values among the nodes nearby."""
        with restored(model):
            game = one_target_game(model, data, task, **self.game_options)
            reward = Reward(
                "mc_l_shapley",
                game,
                game.graph,
                local_radius=self.hops + 1,
                sample_num=self.sample_num,
            )
            alone = np.eye(game.n, dtype=np.bool_)
            scores = reward.of(alone, np.random.default_rng(seed))
        return game_attribution(game, scores)
