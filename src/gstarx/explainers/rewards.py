"""Rewards of node sets in SubgraphX: the score of a set, or its Shapley value as one player.

The candidate set is one player. The others are the nodes around it; nodes further away are always
present.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, evaluate
from gstarx.graphs import Coalitions, CommunicationGraph, unpack

REWARDS = ("gnn_score", "l_shapley", "mc_l_shapley", "mc_shapley", "nc_mc_l_shapley")
#: The most nodes around a candidate whose subsets are all listed on request.
_MAX_AROUND = 16


@dataclass(frozen=True)
class Reward:
    """The reward of candidate sets in one game.

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
        if self.name not in REWARDS:
            valid = ", ".join(map(repr, REWARDS))
            raise ValueError(f"reward must be one of {valid} (got {self.name!r})")
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
