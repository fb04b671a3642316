"""The simplest scores, against which every other has to stand: random, one node out, one alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.coalitions.game import GNNGame
from gstarx.coalitions.guard import restored
from gstarx.explainers.base import NodeExplainer, NodeResult
from gstarx.explainers.tasks import ModelTask, Seed


class RandomNodes(NodeExplainer):
    """A random score for every node: what an explainer must do better than.

    Parameters
    ----------
    seed
        Inside PyG's ``Explainer``: the seed; :meth:`explain` takes its own.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    def _explain(
        self, model: Any, data: Data, seed: Seed, target: int | None, task: ModelTask
    ) -> NodeResult:
        scores = np.random.default_rng(seed).random(int(data.num_nodes or 0))
        return NodeResult(scores, target=target, evaluations=0)


class _OneNode(NodeExplainer):
    """Scores from coalitions that are one node, or all but one."""

    def __init__(
        self, *, payoff: Any = "auto", baseline: Any = None, removal: Any = "remove"
    ) -> None:
        super().__init__()
        self.game_options = {"payoff": payoff, "baseline": baseline, "removal": removal}

    def _explain(
        self, model: Any, data: Data, seed: Seed, target: int | None, task: ModelTask
    ) -> NodeResult:
        with restored(model):
            game = task.game(model, data, target, **self.game_options)
            scores = np.zeros(game.num_nodes)
            scores[game.nodes] = self._scores(game)
        return NodeResult(scores, target=game.payoff.columns[0], evaluations=game.evaluations)

    @abstractmethod
    def _scores(self, game: GNNGame) -> Any:
        """Scores of the players."""


class LeaveOneOut(_OneNode):
    """What the prediction loses without the node: ``v(N) - v(N without i)`` (section 3.1).

    Parameters
    ----------
    payoff, baseline, removal
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
    payoff, baseline, removal
        As in :class:`gstarx.GNNGame`.
    """

    def _scores(self, game: GNNGame) -> Any:
        return game(np.eye(game.n, dtype=np.bool_))
