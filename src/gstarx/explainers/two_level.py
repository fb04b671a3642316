"""Scores of nodes inside groups: what a group gets, shared among its nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import factorial

import numpy as np
from numpy.typing import NDArray

from gstarx.explainers.settings import ValueSettings
from gstarx.games import Worths
from gstarx.gnn import GNNGame
from gstarx.graphs import Coalitions

#: Boolean cells of coalitions of nodes that are evaluated in one call.
_CELLS = 1 << 24


def two_level_scores(
    game: GNNGame, settings: ValueSettings, limit: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Scores of nodes (N, q) and what is left of every group (P, q), or ``None`` if it costs more.

    The nodes of group ``k`` share its score by the Shapley value of ``w(T)``, the score of the
    group when only its nodes ``T`` show. ``w`` of no nodes is not zero under values that look at
    the structure, where an emptied group still joins others: it is what is left. ``limit`` is the
    most coalitions of nodes to evaluate.
    """
    members = [
        np.flatnonzero(game.players.player_of == player) for player in range(len(game.players))
    ]
    if game.task_level != "graph" or _cost(game, settings, members, limit) > limit:
        return None
    nodes_game = game.on_nodes()
    exact = replace(settings, estimator="exact", budget=None)
    q = len(game.payoff.baseline)
    scores = np.zeros((nodes_game.n, q))
    remainder = np.zeros((len(members), q))
    for player, nodes in enumerate(members):
        restricted = _restricted(game, nodes_game, player, nodes)
        allocation, _ = exact.allocate(restricted, game.graph, seed=None)
        shown = allocation.values[player].reshape(1 << len(nodes), q)
        remainder[player] = shown[0]
        scores[nodes] = _shapley(shown)
    return scores, remainder


def _cost(
    game: GNNGame, settings: ValueSettings, members: list[NDArray[np.int64]], limit: int
) -> float:
    """Coalitions of nodes that are evaluated at most."""
    if max(map(len, members)) > 30:
        return float("inf")
    if settings.value in ("shapley", "banzhaf"):
        with_player = [2.0 ** (len(members) - 1)] * len(members)
    elif game.graph.count_connected_coalitions(limit) > limit:
        return float("inf")
    else:
        with_player = game.graph.connected_coalitions().sum(axis=0).tolist()
    sides = 2 if settings.two_sided else 1
    return sides * float(sum(2.0 ** len(n) * k for n, k in zip(members, with_player, strict=True)))


def _restricted(
    game: GNNGame, nodes_game: GNNGame, player: int, nodes: NDArray[np.int64]
) -> Callable[[Coalitions], Worths]:
    """The games in which only some nodes of a group show, for all sets of them, as columns."""
    owner = game.players.player_of
    subsets = (np.arange(1 << len(nodes))[:, None] >> np.arange(len(nodes)) & 1).astype(np.bool_)
    q = len(game.payoff.baseline)

    def worth(coalitions: Coalitions) -> Worths:
        without = np.asarray(game(coalitions)).reshape(len(coalitions), 1, q)
        worths = np.repeat(without, len(subsets), axis=1)
        inside = np.flatnonzero(coalitions[:, player])
        at_once = max(1, _CELLS // (len(subsets) * len(owner)))
        for first in range(0, len(inside), at_once):
            rows = inside[first : first + at_once]
            there = np.where(owner >= 0, coalitions[rows][:, owner], True)
            there = np.repeat(there[:, None], len(subsets), axis=1)
            there[:, :, nodes] = subsets
            # nobody is worth nothing, whoever is always there
            somebody = np.any(there & (owner >= 0), axis=2, keepdims=True)
            shown = np.asarray(nodes_game(there.reshape(-1, len(owner))))
            worths[rows] = shown.reshape(len(rows), len(subsets), q) * somebody
        return worths.reshape(len(coalitions), -1)

    return worth


def _shapley(worths: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Shapley value (s, q) from the worths (2^s, q) of all subsets, by bitmask.

    That of nobody is not zero, and is not shared.
    """
    count = len(worths).bit_length() - 1
    masks = np.arange(len(worths))
    sizes = np.array([int(mask).bit_count() for mask in masks])
    weight = [factorial(k) * factorial(count - k - 1) / factorial(count) for k in range(count)]
    values = np.zeros((count, worths.shape[1]))
    for node in range(count):
        before = masks[masks >> node & 1 == 0]
        gained = worths[before | 1 << node] - worths[before]
        values[node] = np.array(weight)[sizes[before]] @ gained
    return values
