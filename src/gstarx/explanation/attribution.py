"""What a method computes for one graph, and the fields of an explanation that follow from it.

A node of a large graph has few players. Scores and masks of all nodes and edges, kept with the
explanation of each of thousands of nodes, would take megabytes each and say nothing more: they are
made when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils import scatter

from gstarx.gnn import ModelTask
from gstarx.players import Nodes, PlayerSet


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


def result_fields(attribution: Attribution, count: int) -> dict[str, Any]:
    """Players with their scores, and what stands for scores and masks of all of ``count`` nodes."""
    players, made = attribution.players, _scores(attribution)
    if isinstance(players, PlayerSet) and players.kind == "nodes":
        if players.spec not in (None, Nodes()):
            made["player_spec"] = players.spec
        players = players.ids
    if isinstance(players, PlayerSet):
        return made | _of_player_set(players, several=made["scores"].dim() > 1)
    ids = np.arange(count) if players is None else np.asarray(players, dtype=np.int64)
    made["players"] = torch.from_numpy(ids)
    if attribution.scores is None:
        marked = torch.zeros(count, 1)
        if attribution.sets:
            # PyG needs a mask: mark a quarter of the nodes
            best = best_of_sets(attribution.sets, max(1, count // 4))
            marked[torch.from_numpy(best)] = 1.0
        sets = [np.sort(np.asarray(nodes, dtype=np.int64)) for nodes in attribution.sets]
        return made | {"sets": sets, "node_mask": marked}
    made["node_scores"] = OnRequest(node_scores, count)
    if made["scores"].dim() == 1:
        made["node_mask"] = OnRequest(node_mask)
    return made


def _scores(attribution: Attribution) -> dict[str, Any]:
    """Scores and their standard errors in double precision, if there are any."""
    if attribution.scores is None:
        return {}
    scores = np.asarray(attribution.scores, dtype=np.float64)
    errors = attribution.std_errors
    errors = np.full_like(scores, np.nan) if errors is None else np.asarray(errors, np.float64)
    return {
        name: torch.from_numpy(np.ascontiguousarray(value))
        for name, value in (("scores", scores), ("std_errors", errors))
    }


def _of_player_set(players: PlayerSet, *, several: bool) -> dict[str, Any]:
    """What players that are groups, edges or features are, and their masks."""
    made: dict[str, Any] = {
        "player_kind": players.kind,
        "players": torch.from_numpy(players.ids),
        "player_spec": players.spec,
    }
    units = np.flatnonzero(players.player_of >= 0)
    if 2 * len(units) > len(players.player_of):
        made["unit_players"] = torch.from_numpy(players.player_of)
    else:  # few units have a player
        given = (len(players.player_of), units, players.player_of[units])
        made["unit_players"] = OnRequest(unit_players, *given)
    if players.names:
        made["player_names"] = list(players.names)
    if players.kind == "groups":
        made["groups"] = [nodes.tolist() for nodes in units_of(players.player_of, len(players))]
    if players.edges is not None:
        made["player_edges"] = torch.from_numpy(players.edges)
        made["symmetric"] = not players.spec.directed
    if players.kind == "edges" and not len(players.player_of):
        return made  # which columns of edge_index they are is not known without the graph
    if not several:
        made |= unit_masks(players.kind)
    elif players.kind == "edges":
        made["edge_scores"] = OnRequest(unit_scores)
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


def unit_masks(kind: str) -> dict[str, OnRequest]:
    """PyG's masks of one target for players that are groups, edges or features, by name."""
    if kind == "edge_features":  # PyG has no mask for them
        return {}
    return {"edge_mask" if kind == "edges" else "node_mask": OnRequest(unit_mask)}


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


class OnRequest:
    """Stands for a field that a function makes of the others, and of what is ``given``."""

    def __init__(self, make: Callable[..., Any], *given: Any) -> None:
        self._make, self._given = make, given

    def made(self, fields: Mapping[str, Any]) -> Any:
        """The field, from the others of the same explanation."""
        return self._make(fields, *self._given)


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


def node_scores(fields: Mapping[str, Any], count: int) -> Tensor:
    """A score for each of ``count`` nodes, (N,) or (N, q), 0 for those that are not players."""
    scores: Tensor = fields["scores"]
    everywhere = scores.new_zeros((count, *scores.shape[1:]))
    everywhere[fields["players"]] = scores
    return everywhere


def node_mask(fields: Mapping[str, Any]) -> Tensor:
    """The scores of nodes as PyG has them: [N, 1] in single precision."""
    mask: Tensor = fields["node_scores"].float()[:, None]
    return mask


def unit_players(
    fields: Mapping[str, Any], count: int, units: NDArray[np.int64], players: NDArray[np.int64]
) -> Tensor:
    """The player of each of ``count`` units (U,), -1 for those without one."""
    player_of = torch.full((count,), -1)
    player_of[torch.from_numpy(units)] = torch.from_numpy(players)
    return player_of


def unit_scores(fields: Mapping[str, Any]) -> Tensor:
    """The scores of all units of players that are groups, edges or features: (U,), or (U, q)."""
    return scores_by_unit(fields["scores"], fields["unit_players"])


def unit_mask(fields: Mapping[str, Any]) -> Tensor:
    """The same as PyG has them, in single precision: an edge mask [E], or [N, 1] or [1, F]."""
    by_unit, kind = unit_scores(fields).float(), fields["player_kind"]
    if kind == "edges":
        return by_unit
    return by_unit[:, None] if kind == "groups" else by_unit[None]


def mean_of_ends(fields: Mapping[str, Any]) -> Tensor:
    """A score for every edge from those of nodes, or of the groups that they are in.

    [E] in single precision, or (E, q) for q targets.
    """
    scores = fields.get("node_scores")
    if scores is None:
        scores = fields.get("node_mask")
    if scores is None:  # several targets, and groups whose nodes have no scores
        scores = unit_scores(fields)
    means = edge_scores(scores, fields["edge_index"])
    return means.float() if means.dim() == 1 else means


def labels(fields: Mapping[str, Any]) -> Tensor:
    """The target as PyG has it, with the class that was explained in its place.

    A label for every row of the prediction; for regression, the prediction.
    """
    task = ModelTask(fields["mode"], return_type=fields["return_type"])
    output, explained, index = fields["prediction"], fields["explained"], fields.get("index")
    found = task.label(output).clone()
    # the columns of a custom payoff are not classes
    classes = task.mode != "regression" and fields.get("payoff") != "callable"
    if classes and found.numel() == len(output) and len(explained) == 1:
        found[output.isnan().any(dim=1)] = -1  # outputs that were not kept
        found[0 if index is None else index] = explained[0]
    return found


def one_graph(fields: Mapping[str, Any], count: int) -> Tensor:
    """The batch vector of one graph: zeros [N]."""
    return torch.zeros(count, dtype=torch.long)


def rows_of(fields: Mapping[str, Any], other: Fields, name: str, rows: slice) -> Tensor:
    """Some rows of a field of another explanation."""
    whole: Tensor = other[name]
    return whole[rows]


def scores_by_unit(scores: Tensor, unit_players: Tensor) -> Tensor:
    """Scores of nodes, edges or columns from those of players; 0 where nobody plays."""
    playing = unit_players >= 0
    by_unit = scores.new_zeros((len(unit_players), *scores.shape[1:]))
    by_unit[playing] = scores[unit_players[playing]]
    return by_unit


def unit_range(mask: Tensor, graph_of: Tensor | None = None) -> Tensor:
    """A mask between 0 and 1: what counts for the output, relative to what counts most.

    Scores below 0 become 0. ``graph_of`` has the graph of every row, whose largest score becomes 1.

    >>> unit_range(torch.tensor([0.5, -0.3, 0.25]))
    tensor([1.0000, 0.0000, 0.5000])
    >>> unit_range(torch.tensor([0.5, -0.3, 0.25]), torch.tensor([0, 0, 1]))
    tensor([1., 0., 1.])
    """
    positive = mask.clamp(min=0)
    if not positive.numel():
        return positive
    if graph_of is None:
        largest = positive.max()
    else:
        largest = scatter(positive, graph_of, reduce="max")[graph_of]
    return positive / largest.where(largest > 0, 1.0)


def edge_scores(node_scores: Tensor, edge_index: Tensor) -> Tensor:
    """A score per edge, the mean of those of its two ends; a column per target for several."""
    scores = (
        node_scores[:, 0] if node_scores.dim() == 2 and node_scores.shape[1] == 1 else node_scores
    )
    ends = edge_index.to(scores.device)
    return (scores[ends[0]] + scores[ends[1]]) / 2
