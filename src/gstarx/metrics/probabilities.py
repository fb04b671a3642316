"""What a model says of parts of graphs: the one place where every metric asks it."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn import (
    BatchMixing,
    GNNGame,
    ManyGraphs,
    Model,
    ModelTask,
    RemovalLike,
    Signature,
    choose_columns,
    class_scores,
    looks_like_probabilities,
    restored,
    shared_outputs,
)
from gstarx.graphs import Coalitions


@dataclass(frozen=True)
class PartTask(ModelTask):
    """What the model does, and how parts of a graph are made and evaluated."""

    removal: RemovalLike = "remove"
    num_hops: int | None = None
    batch_nodes: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "regression":
            raise ValueError(
                "fidelity is a difference of probabilities of a class, which a regression model "
                "does not have; compare its outputs for parts of the graph with "
                "GNNGame(..., mode='regression') instead"
            )
        if self.batch_nodes is not None and self.batch_nodes < 1:
            raise ValueError(f"batch_nodes must be at least 1 (got {self.batch_nodes})")


@dataclass(frozen=True)
class Parts:
    """Probabilities of one graph and of parts of it.

    Attributes
    ----------
    players
        The nodes that can be removed: all of a graph, or those around the node explained.
    whole
        Probability of every class, (classes,).
    parts
        The same for every part, (k, classes); 0 for a part without nodes.
    target
        The class in question.
    """

    players: NDArray[np.int64]
    whole: NDArray[np.float64]
    parts: NDArray[np.float64]
    target: int


def part_probabilities(
    model: Model,
    graphs: Sequence[Data],
    parts: Sequence[Coalitions],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[Parts]:
    """Probabilities of graphs and of boolean parts (k, n) of them, in few forward passes."""
    with restored(model):
        shared = None
        if task.task_level == "graph":
            shared = ManyGraphs.sharing(model, graphs, task.removal, task.keywords)
        if shared is not None:
            with suppress(BatchMixing):
                return _shared(model, *shared, parts, targets, task)
        return [
            _from_game(model, graph, part, target, task)
            for graph, part, target in zip(graphs, parts, targets, strict=True)
        ]


def _shared(
    model: Model,
    graphs: ManyGraphs,
    signature: Signature,
    parts: Sequence[Coalitions],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[Parts]:
    # the whole graph goes in front of its parts; a part without nodes is not asked for
    asked = [np.concatenate([np.ones((1, p.shape[1]), bool), p[p.any(axis=1)]]) for p in parts]
    outputs, _ = shared_outputs(
        model, graphs, signature, asked, str(task.removal), task.batch_nodes
    )
    _check_outputs(outputs, task)
    scores = class_scores(outputs, task.mode, task.return_type, "prob")
    probabilities = scores.double().cpu().numpy()
    _check_finite(probabilities)
    ends = np.cumsum([len(rows) for rows in asked])
    columns = outputs.shape[1]
    return [
        _from_rows(rows, part, _target(rows[0], target, task.mode, columns))
        for rows, part, target in zip(
            np.split(probabilities, ends[:-1]), parts, targets, strict=True
        )
    ]


def _from_rows(rows: NDArray[np.float64], part: Coalitions, target: int) -> Parts:
    inside = np.zeros((len(part), rows.shape[1]))
    inside[part.any(axis=1)] = rows[1:]
    return Parts(np.arange(part.shape[1]), rows[0], inside, target)


def _from_game(
    model: Model, graph: Data, part: Coalitions, target: int | None, task: PartTask
) -> Parts:
    game = GNNGame(
        model,
        graph,
        target="all",
        payoff="prob",
        removal=task.removal,
        mode=task.mode,
        task_level=task.task_level,
        return_type=task.return_type,
        index=task.index,
        num_hops=task.num_hops,
        batch_nodes=task.batch_nodes,
        keywords=task.keywords,
        lazy=True,
    )
    everybody = np.ones((1, game.n), dtype=np.bool_)
    rows = game(np.concatenate([everybody, part[:, game.nodes]]))
    chosen = _target(rows[0], target, task.mode, len(game.prediction))
    return Parts(game.nodes, rows[0], rows[1:], chosen)


def _target(whole: NDArray[np.float64], target: int | None, mode: str, columns: int) -> int:
    """The class asked for or predicted, for a model of so many columns."""
    if target is None and mode == "multiclass_classification":
        return int(whole.argmax())
    # one binary output has become two classes by now
    single = mode == "binary_classification" and columns == 1
    scores = torch.from_numpy(whole.copy())[None]
    return choose_columns(as_target(target), scores, mode, single)[0]


def as_target(target: Any) -> int | None:
    """One class, or None for the predicted one; a metric has no list of them."""
    try:
        return None if target is None else operator.index(target)
    except TypeError:
        raise TypeError(f"target must be one class (got {target!r})") from None


def _check_outputs(outputs: Tensor, task: PartTask) -> None:
    """Outputs of classes that are not probabilities already, as a game would want them."""
    if task.mode != "multiclass_classification":
        return
    if outputs.shape[1] == 1:
        raise ValueError(
            "the model returns one output per graph: say mode='binary_classification' "
            "(got 'multiclass_classification')"
        )
    if task.return_type == "raw" and looks_like_probabilities(outputs, task.mode):
        warnings.warn(
            "outputs were declared raw but look like probabilities: if they are, say "
            "return_type='probs'",
            stacklevel=2,
        )


def _check_finite(probabilities: NDArray[np.float64]) -> None:
    if not np.isfinite(probabilities).all():
        row = int(np.argmin(np.isfinite(probabilities).all(axis=1)))
        raise ValueError(
            f"the model's output gives probabilities {probabilities[row].tolist()}: they must be "
            "finite"
        )
