"""Simple baselines: random scores, leave-one-out, occlusion, single nodes, local Shapley values."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.explainers.base import NodeExplainer, game_attribution, one_target_game
from gstarx.explanation import Attribution
from gstarx.gnn import GameOptions, GNNGame, ModelTask, Passes, restored
from gstarx.players import PlayersLike, as_players, player_set
from gstarx.values import Seed


class RandomNodes(NodeExplainer):
    """A random score for every node, or other player, which any explainer must beat.

    Parameters
    ----------
    players
        Who gets a score, as in :class:`gstarx.GNNGame`.
    seed
        Inside PyG's ``Explainer``: the seed; :meth:`explain` takes its own.
    """

    heterogeneous = True

    def __init__(self, *, players: PlayersLike = "nodes", seed: int | None = None) -> None:
        super().__init__()
        self.players = as_players(players)
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Random numbers as scores."""
        players = player_set(data, self.players)
        scores = np.random.default_rng(seed).random(len(players))
        return Attribution(scores, players=players, evaluations=0)


class _OneNode(NodeExplainer):
    """Scores from coalitions that are one player, or all but one."""

    heterogeneous = True

    def __init__(
        self,
        *,
        players: PlayersLike = "nodes",
        payoff: Any = "auto",
        baseline: Any = None,
        removal: Any = "remove",
        share: bool | str = "auto",
    ) -> None:
        super().__init__()
        self.game_options = {
            "players": as_players(players),
            "payoff": payoff,
            "baseline": baseline,
            "game": GameOptions(removal=removal),
            "passes": Passes(share=share),
        }

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Scores from coalitions that are one player, or all but one."""
        with restored(model):
            game = one_target_game(model, data, task, **self.game_options)
            scores = np.asarray(self._scores(game), dtype=np.float64)
        return game_attribution(game, scores, std_errors=np.zeros_like(scores), exact=True)

    @abstractmethod
    def _scores(self, game: GNNGame) -> Any:
        """Scores of the players."""


class LeaveOneOut(_OneNode):
    """What the prediction loses without the node: ``v(N) - v(N without i)`` (section 3.1).

    Parameters
    ----------
    players, payoff, baseline, removal, share
        As in :class:`gstarx.GNNGame`.
    """

    def _scores(self, game: GNNGame) -> Any:
        everybody = np.ones((1, game.n), dtype=np.bool_)
        worths = game(np.concatenate([everybody, ~np.eye(game.n, dtype=np.bool_)]))
        return worths[0] - worths[1:]


class SingleNode(_OneNode):
    """What the node is worth alone: ``v({i})``, the other simple score of section 3.1.

    Parameters
    ----------
    players, payoff, baseline, removal, share
        As in :class:`gstarx.GNNGame`.
    """

    def _scores(self, game: GNNGame) -> Any:
        return game(np.eye(game.n, dtype=np.bool_))


class Occlusion(_OneNode):
    """What the prediction loses without the neighborhood of a node: ``v(N) - v(N without B_i)``.

    Occlusion of image regions (Zeiler and Fergus, Visualizing and Understanding Convolutional
    Networks, ECCV 2014), with the nodes within some hops of a node as its region.

    Parameters
    ----------
    hops
        Radius of a neighborhood; 0 is :class:`LeaveOneOut`.
    payoff, baseline, removal, share
        As in :class:`gstarx.GNNGame`.
    """

    def __init__(
        self,
        *,
        hops: int = 1,
        payoff: Any = "auto",
        baseline: Any = None,
        removal: Any = "remove",
        share: bool | str = "auto",
    ) -> None:
        super().__init__(payoff=payoff, baseline=baseline, removal=removal, share=share)
        if hops < 0:
            raise ValueError(f"hops must be at least 0 (got {hops!r})")
        self.hops = hops

    def _scores(self, game: GNNGame) -> Any:
        adjacent = np.eye(game.n, dtype=np.bool_)
        for a, b in game.graph.edges:
            adjacent[a, b] = adjacent[b, a] = True
        near = np.eye(game.n, dtype=np.bool_)
        for _ in range(self.hops):
            near = near @ adjacent
        rest = ~near
        worth = game(np.ones((1, game.n), dtype=np.bool_))[0]
        scores = np.full(game.n, worth)
        nonempty = rest.any(axis=1)  # the empty coalition has worth 0 by definition
        if nonempty.any():
            scores[nonempty] -= game(rest[nonempty])
        return scores
