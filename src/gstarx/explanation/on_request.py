"""Fields of the whole graph that follow from those of the players, made when somebody asks.

A node of a large graph has few players. Scores and masks of all nodes and edges, kept with the
explanation of each of thousands of nodes, would take megabytes each and say nothing more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gstarx.gnn import ModelTask


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
