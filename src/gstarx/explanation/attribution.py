"""What a method computes for one graph, and the fields of an explanation that follow from it.

A node of a large graph has few players. Scores and masks of all nodes and edges, kept with the
explanation of each of thousands of nodes, would take megabytes each and say nothing more: they are
made when somebody asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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


class OnRequest(ABC):
    """Stands for a field that follows from others."""

    @abstractmethod
    def made(self, fields: Mapping[str, Any]) -> Any:
        """The field, from the others of the same explanation."""


class Fields(dict[str, Any]):
    """Fields by name, the dictionary behind a PyG store; those on request are made anew each time.

    Copies and pickles hold what stands for them, because they read the entries as they are.
    """

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return value.made(self) if isinstance(value, OnRequest) else value

    def get(self, key: str, default: Any = None) -> Any:
        """A field, or something else where there is none."""
        return self[key] if key in self else default  # noqa: SIM401

    def on_request(self, key: str) -> bool:
        """Whether a field follows from others."""
        return isinstance(super().get(key), OnRequest)


def install(store: Any) -> None:
    """Let a store of PyG hold fields on request."""
    store._mapping = Fields(store._mapping)


@dataclass(frozen=True)
class NodeScores(OnRequest):
    """A score for each of ``count`` nodes, 0 for those that are not players."""

    count: int

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """Scores (N,), or (N, q)."""
        scores: Tensor = fields["scores"]
        everywhere = scores.new_zeros((self.count, *scores.shape[1:]))
        everywhere[fields["players"]] = scores
        return everywhere


class NodeMask(OnRequest):
    """The scores of nodes as PyG has them."""

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """A mask [N, 1] in single precision."""
        mask: Tensor = fields["node_scores"].float()[:, None]
        return mask


@dataclass(frozen=True, eq=False)
class UnitPlayers(OnRequest):
    """The player of each of ``count`` units, where few of them have one."""

    count: int
    units: NDArray[np.int64]
    players: NDArray[np.int64]

    @classmethod
    def of(cls, player_of: NDArray[np.int64]) -> UnitPlayers | Tensor:
        """What stands for the players of units, or the players themselves if most units play."""
        units = np.flatnonzero(player_of >= 0)
        if 2 * len(units) > len(player_of):
            return torch.from_numpy(player_of)
        return cls(len(player_of), units, player_of[units])

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """Players (U,), -1 for units without one."""
        player_of = torch.full((self.count,), -1)
        player_of[torch.from_numpy(self.units)] = torch.from_numpy(self.players)
        return player_of


class UnitScores(OnRequest):
    """The scores of all units of players that are groups, edges or features."""

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """Scores (U,), or (U, q)."""
        return scores_by_unit(fields["scores"], fields["unit_players"])


class UnitMask(UnitScores):
    """The same as PyG has them: an edge mask [E], or a node mask [N, 1] or [1, F]."""

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """A mask in single precision."""
        by_unit, kind = super().made(fields).float(), fields["player_kind"]
        if kind == "edges":
            return by_unit
        return by_unit[:, None] if kind == "groups" else by_unit[None]


class MeanOfEnds(OnRequest):
    """A score for every edge from those of nodes, or of the groups that they are in."""

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """Scores [E] in single precision, or (E, q) for q targets."""
        scores = fields.get("node_scores")
        if scores is None:
            scores = fields.get("node_mask")
        if scores is None:  # several targets, and groups whose nodes have no scores
            scores = scores_by_unit(fields["scores"], fields["unit_players"])
        means = edge_scores(scores, fields["edge_index"])
        return means.float() if means.dim() == 1 else means


class Labels(OnRequest):
    """The target as PyG has it, with the class that was explained in its place."""

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """A label for every row of the prediction; for regression, the prediction."""
        task = ModelTask(fields["mode"], return_type=fields["return_type"])
        output, explained, index = fields["prediction"], fields["explained"], fields.get("index")
        labels = task.label(output).clone()
        # the columns of a custom payoff are not classes
        classes = task.mode != "regression" and fields.get("payoff") != "callable"
        if classes and labels.numel() == len(output) and len(explained) == 1:
            labels[output.isnan().any(dim=1)] = -1  # outputs that were not kept
            labels[0 if index is None else index] = explained[0]
        return labels


@dataclass(frozen=True)
class OneGraph(OnRequest):
    """The batch vector of one graph."""

    count: int

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """Zeros [N]."""
        return torch.zeros(self.count, dtype=torch.long)


@dataclass(frozen=True, eq=False)
class RowsOf(OnRequest):
    """Some rows of a field of another explanation."""

    fields: Fields
    name: str
    rows: slice

    def made(self, fields: Mapping[str, Any]) -> Tensor:
        """The rows."""
        rows: Tensor = self.fields[self.name][self.rows]
        return rows


def scores_by_unit(scores: Tensor, unit_players: Tensor) -> Tensor:
    """Scores of nodes, edges or columns from those of players; 0 where nobody plays."""
    playing = unit_players >= 0
    by_unit = scores.new_zeros((len(unit_players), *scores.shape[1:]))
    by_unit[playing] = scores[unit_players[playing]]
    return by_unit


def edge_scores(node_scores: Tensor, edge_index: Tensor) -> Tensor:
    """A score per edge, the mean of those of its two ends; a column per target for several."""
    scores = (
        node_scores[:, 0] if node_scores.dim() == 2 and node_scores.shape[1] == 1 else node_scores
    )
    ends = edge_index.to(scores.device)
    return (scores[ends[0]] + scores[ends[1]]) / 2
