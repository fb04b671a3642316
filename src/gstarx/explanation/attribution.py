"""What a method computes for one graph, and the fields of an explanation that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gstarx.explanation.on_request import NodeMask, NodeScores, UnitMask, UnitPlayers, UnitScores
from gstarx.gnn import ModelTask
from gstarx.players import PlayerSet


@dataclass(frozen=True)
class Attribution:
    """What a method computes for one graph: scores of players, or sets of them.

    :meth:`NodeExplainer.attribute` returns one of these, and :meth:`NodeExplainer.explain` makes an
    :class:`Explanation` of it.

    Attributes
    ----------
    scores
        A score per player, (P,), or (P, q) for q targets; ``None`` if the method finds sets only.
    std_errors
        Standard errors of the scores, same shape: zero where they are exact, ``None`` or ``nan``
        where they are unknown.
    players
        The nodes behind the players, ascending; by default all nodes. A
        :class:`gstarx.gnn.PlayerSet` if players are groups of nodes, edges or features.
    sets
        Sets of nodes that a search found, best first; empty if there are scores.
    target
        The class or output that was explained, or several of them; ``None`` for the prediction.
    edge_mask
        A score per edge (E,), if the method scores edges.
    prediction
        The model's output (1, C) for the whole graph, if the method has computed it.
    exact
        Whether the scores are exact for what they define; ``None`` if that has no meaning.
    estimator
        How they were computed, if there is more than one way.
    evaluations
        Distinct parts of the graph that went through the model, if that is counted.
    details
        Further fields of the explanation by name.
    """

    scores: NDArray[np.float64] | None = None
    std_errors: NDArray[np.float64] | None = None
    players: NDArray[np.int64] | PlayerSet | None = None
    sets: tuple[NDArray[np.int64], ...] = ()
    target: int | Sequence[int] | None = None
    edge_mask: Tensor | None = None
    prediction: Tensor | None = None
    exact: bool | None = None
    estimator: str | None = None
    evaluations: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def score_fields(attribution: Attribution, count: int) -> dict[str, Any]:
    """Scores of players, and what stands for scores and masks of all nodes."""
    if attribution.scores is None:
        marked = torch.zeros(count, 1)
        if attribution.sets:
            # PyG needs a mask: mark a quarter of the nodes
            best = best_of_sets(attribution.sets, max(1, count // 4))
            marked[torch.from_numpy(best)] = 1.0
        sets = [np.sort(np.asarray(nodes, dtype=np.int64)) for nodes in attribution.sets]
        return {"sets": sets, "node_mask": marked}
    scores = np.asarray(attribution.scores, dtype=np.float64)
    errors = attribution.std_errors
    errors = np.full_like(scores, np.nan) if errors is None else np.asarray(errors, np.float64)
    made: dict[str, Any] = {
        name: torch.from_numpy(np.ascontiguousarray(value))
        for name, value in (("scores", scores), ("std_errors", errors))
    }
    made["node_scores"] = NodeScores(count)
    if scores.ndim == 1:
        made["node_mask"] = NodeMask()
    return made


def player_fields(attribution: Attribution, players: PlayerSet) -> dict[str, Any]:
    """Scores and masks of players that are groups, edges or features."""
    scores = torch.from_numpy(np.ascontiguousarray(attribution.scores, dtype=np.float64))
    errors = attribution.std_errors
    made: dict[str, Any] = {
        "player_kind": players.kind,
        "scores": scores,
        "std_errors": torch.full_like(scores, torch.nan)
        if errors is None
        else torch.from_numpy(np.ascontiguousarray(errors, dtype=np.float64)),
        "unit_players": UnitPlayers.of(players.player_of),
        "player_spec": players.spec,
    }
    if players.names:
        made["player_names"] = list(players.names)
    if players.kind == "groups":
        made["groups"] = [nodes.tolist() for nodes in units_of(players.player_of, len(players))]
    if players.edges is not None:
        made["player_edges"] = torch.from_numpy(players.edges)
        made["symmetric"] = not players.spec.directed
    if players.kind == "edges" and not len(players.player_of):
        return made  # which columns of edge_index they are is not known without the graph
    if scores.dim() == 1:
        made |= unit_masks(players.kind)
    elif players.kind == "edges":
        made["edge_scores"] = UnitScores()
    return made


def units_of(player_of: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The units of every player, ascending.

    >>> [units.tolist() for units in units_of(np.array([1, -1, 0, 1]), 2)]
    [[2], [0, 3]]
    """
    units = np.flatnonzero(player_of >= 0)
    units = units[np.argsort(player_of[units], kind="stable")]
    sizes = np.bincount(player_of[units], minlength=count)
    return np.split(units, np.cumsum(sizes)[:-1])[:count]


def unit_masks(kind: str) -> dict[str, UnitMask]:
    """PyG's masks of one target for players that are groups, edges or features, by name."""
    if kind == "edge_features":  # PyG has no mask for them
        return {}
    return {"edge_mask" if kind == "edges" else "node_mask": UnitMask()}


def explained_targets(
    target: int | Sequence[int] | None, task: ModelTask, output: Tensor
) -> list[int]:
    """The classes or outputs explained; by default the predicted class."""
    if target is None:
        target = task.one_target
    if target is not None:
        return [int(target)] if isinstance(target, int | np.integer) else [int(t) for t in target]
    row = output[0 if task.index is None else task.index]
    if task.mode == "multiclass_classification":
        return [int(row.argmax())]
    if task.mode == "binary_classification" and len(row) == 1:
        return [int(task.label(row)[0])]
    return [0]


def best_of_sets(sets: Sequence[NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """The best set of at most ``size`` nodes, or the first nodes of the smallest."""
    small = [nodes for nodes in sets if len(nodes) <= size]
    if small:
        return np.sort(np.asarray(small[0], dtype=np.int64))
    smallest = min(sets, key=len) if sets else np.zeros(0, dtype=np.int64)
    return np.sort(np.asarray(smallest, dtype=np.int64)[:size])
