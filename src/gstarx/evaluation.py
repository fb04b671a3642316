"""Explain a graph, select nodes, evaluate the selections, and record what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.explainers import NodeExplainer, graph_generator
from gstarx.explanation import Explanation
from gstarx.gnn import ModelTask, TaskLike, check_task, class_scores
from gstarx.metrics import Faithfulness, Judge, Reference
from gstarx.players import Edges, Features, Nodes, PlayersLike, as_players

__all__ = ["Evaluated", "Pipeline", "class_probabilities", "recorded"]


@dataclass(frozen=True)
class Evaluated:
    """Selections of an explanation and their metrics, in the same order."""

    selections: list[NDArray[np.int64]]
    metrics: list[Faithfulness]


@dataclass(frozen=True)
class Pipeline:
    """How the graphs of one model are explained and evaluated.

    Attributes
    ----------
    model
        Any PyG model or callable that classifies graphs or predicts numbers.
    seed
        Random numbers follow from it and a graph's position, see :func:`graph_generator`.
    target
        The class to explain, by default the predicted one of every graph; of a model with several
        targets, which of them.
    removal
        How nodes are removed when selections are evaluated.
    task
        What the model does, as for :func:`gstarx.explain`.
    reference
        For metrics of a regression model, see :func:`gstarx.metrics.reference_of`.
    players
        Who is selected and removed where no explanation says so.
    """

    model: Any
    seed: int | None = None
    target: int | None = None
    removal: Any = "remove"
    task: TaskLike = None
    reference: Reference | None = None
    players: PlayersLike = "nodes"

    def explain(self, explainer: NodeExplainer, data: Data, position: int) -> Explanation:
        """Explain the graph at a position of its dataset."""
        return explainer.explain(
            self.model,
            data,
            target=self.target,
            task=self.task,
            seed=graph_generator(self.seed, position),
        )

    def evaluate(
        self,
        data: Data,
        explanation: Explanation,
        *,
        sparsities: Sequence[float] | None = None,
        sizes: Sequence[int] | None = None,
        rules: Sequence[str] = ("top",),
    ) -> dict[str, Evaluated]:
        """Select nodes at sparsities or of sizes and evaluate them, by the rule of selection.

        Selections that are the same set of nodes are evaluated once.
        """
        extents: list[dict[str, Any]] = [{"sparsity": level} for level in sparsities or ()]
        extents += [{"size": size} for size in sizes or ()]
        chosen = {rule: [explanation.select(**e, rule=rule) for e in extents] for rule in rules}
        distinct = {nodes.tobytes(): nodes for sets in chosen.values() for nodes in sets}
        (metrics,) = self.evaluate_selections([data], [list(distinct.values())], [explanation])
        by_nodes = dict(zip(distinct, metrics, strict=True))
        return {
            rule: Evaluated(sets, [by_nodes[nodes.tobytes()] for nodes in sets])
            for rule, sets in chosen.items()
        }

    def evaluate_selections(
        self,
        graphs: Sequence[Data],
        selections: Sequence[Sequence[Any]],
        explanations: Sequence[Explanation | None] | None = None,
    ) -> list[list[Faithfulness]]:
        """Metrics of sets of nodes or players of every graph, for the classes explained."""
        targets = [self.target] * len(graphs)
        for i, explanation in enumerate(explanations or ()):
            if explanation is not None and explanation.explained:
                targets[i] = explanation.target_class
        known = explanations or [None] * len(graphs)
        playing = [
            self.players if one is None else one.get("player_spec") or "nodes" for one in known
        ]
        if any(as_players(players) != Nodes() for players in playing):
            everything = zip(graphs, selections, targets, playing, strict=True)
            return [self._evaluated(graph, list(s), t, p) for graph, s, t, p in everything]
        return self.judge().many(graphs, [list(sets) for sets in selections], target=targets)

    def _evaluated(
        self, data: Data, sets: list[Any], target: int | None, players: Any
    ) -> list[Faithfulness]:
        """Metrics of sets of players: to remove means what it means in their game."""
        (metrics,) = self.judge(players).many([data], [sets], target=target)
        return metrics  # type: ignore[no-any-return]

    def judge(self, players: PlayersLike = "nodes") -> Judge:
        """What evaluates selections of players."""
        of_nodes = not isinstance(as_players(players), Edges | Features)
        return Judge(
            self.model,
            task=self.task,
            removal=self.removal if of_nodes else "remove",
            players=players,
            reference=self.reference,
        )

    @property
    def model_task(self) -> ModelTask:
        """The task with what the model itself says."""
        return ModelTask.of(self.model, self.task)

    def probabilities(self, output: Tensor) -> list[float]:
        """Probabilities of all classes, or values, from the model's output (1, C) for a graph."""
        return class_probabilities(output, self.model_task.mode, self.model_task.return_type)


def class_probabilities(output: Tensor, mode: str, return_type: str) -> list[float]:
    """Probabilities of all classes or targets from a model's output (1, C); values of a regression.

    >>> import torch
    >>> class_probabilities(torch.tensor([[0.0, 0.0]]), "multiclass_classification", "raw")
    [0.5, 0.5]
    >>> class_probabilities(torch.tensor([[2.5]]), "regression", "raw")
    [2.5]
    """
    mode, return_type = check_task(mode, return_type)
    scores = class_scores(output, mode, return_type, "prob")[0].double()
    if not scores.isfinite().all():
        noun = "values" if mode == "regression" else "probabilities"
        raise ValueError(f"the model's output gives {noun} {scores.tolist()}: they must be finite")
    return [float(score) for score in scores]


def recorded(explanation: Explanation) -> dict[str, Any]:
    """What is kept of an explanation: the fields that files, pages and the command line share.

    Numbers are plain Python ones; ``std_errors`` is ``None`` where no error is known. Where players
    are not nodes, ``scores`` are those of nodes if there are any, of groups otherwise their own.
    """
    scores, errors = explanation.node_scores, None
    of_nodes = explanation.player_kind == "nodes"
    if scores is None and explanation.player_kind == "groups":
        scores = explanation.node_mask[:, 0]
    known = explanation.scores is not None and not explanation.std_errors.isnan().all()
    if known and of_nodes:
        everywhere = np.zeros(int(explanation.num_nodes or 0))
        everywhere[explanation.players.numpy()] = explanation.std_errors.numpy()
        errors = everywhere.tolist()
    exact, estimator = explanation.exact, explanation.estimator
    evaluations = explanation.evaluations
    return {
        "target": explanation.target_class if explanation.explained else None,
        "scores": None if scores is None else scores.tolist(),
        "std_errors": errors,
        "exact": None if exact is None else bool(exact),
        "estimator": None if estimator is None else str(estimator),
        "evaluations": None if evaluations is None else index(evaluations),
        "cpu_seconds": float(explanation.seconds),
    }
