"""The result of every explainer: a PyG explanation with scores of players."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.explain import Explanation as PyGExplanation

from gstarx.explanation import stored
from gstarx.explanation.attribution import (
    Attribution,
    OnRequest,
    best_of_sets,
    edge_scores,
    explained_targets,
    install,
    labels,
    mean_of_ends,
    node_mask,
    one_graph,
    result_fields,
    unit_masks,
    unit_range,
)
from gstarx.explanation.export import Exports, require_graph
from gstarx.gnn import ModelTask, hetero_of, model_arguments, model_inputs
from gstarx.graphs import CommunicationGraph
from gstarx.metrics import above_noise, largest_gap, select_best, selection_size
from gstarx.players import parallel_mark

#: How :meth:`Explanation.select` chooses players.
RULES = ("top", "positive", "connected", "gap")
#: Fields that are ``None`` where a method does not have them.
_OPTIONAL = frozenset({"node_scores", "player_names", "player_edges", "groups", "group_remainder"})
#: Fields that hold one row per player, which are rows of nodes where all nodes play.
_PER_PLAYER = frozenset({"scores", "std_errors", "players"})
_PER_NODE = frozenset({"node_mask", "node_scores"})
#: Fields of the explanation as a whole, however many entries they happen to have.
_PER_EXPLANATION = frozenset(
    {"worth", "component_worth", "baseline", "prediction", "target", "index", "explained"}
    | {"sets", "rewards", "player_edges", "player_names", "groups", "group_remainder"}
    | {"unit_players", "player_spec", "fixed", "inputs"}
)


class Explanation(Exports, PyGExplanation):  # type: ignore[misc]
    """The explanation of a model's output for one graph.

    A PyG explanation: it holds the fields of the graph that was explained, has the masks that PyG's
    metrics and visualizations use, and passes ``validate()``.

    Attributes
    ----------
    scores
        A score per player in double precision, (P,), or (P, q) for q targets; ``None`` if the
        method finds sets of nodes instead.
    std_errors
        Standard errors of the scores, same shape: zero where exact, ``nan`` where unknown.
    player_kind
        ``"nodes"``, ``"groups"``, ``"edges"``, ``"features"`` or ``"edge_features"``.
    players
        The node behind every player, (P,), or the numbers of the players if they are not nodes.
    player_names
        The names of the players, if they are groups of nodes or features.
    groups
        The nodes of every player, if players are groups.
    player_edges
        The two ends of every player, (P, 2), if players are edges.
    node_scores
        A score per node, (N,) or (N, q): zero for nodes that are not players. If players are
        groups, each node's part of the score of its group, if it was computed; if they are edges,
        only defined for the position value.
    group_remainder
        The part of each group's score that is not assigned to its nodes, same shape as ``scores``.
    node_mask
        The scores in PyG's format, [N, 1] in single precision; for one target only, see
        :meth:`for_target`. For a method that finds sets, 1 for the nodes of the best set. If
        players are groups, every node has the score of its group; if they are features, [1, F].
    edge_mask
        A score per edge [E], if edges are the players, or were scored or requested.
    sets
        Sets of nodes, best first, if the method finds sets.
    method, exact, estimator, evaluations, seconds
        The method and how it computed the scores: ``exact`` is ``None`` if that has no meaning for
        the method, ``evaluations`` is the number of distinct parts of the graph that went through
        the model, ``seconds`` are CPU seconds.
    prediction, target, index
        The model's output (1, C) for the graph, or (N, C) for node tasks; the class explained, as a
        tensor, as in PyG; the node or edge explained.
    explained
        The classes or outputs that were explained, a list of integers.
    sharing
        For methods that evaluate a game: whether coalitions shared embeddings and how many, or why
        not, a :class:`gstarx.gnn.Sharing`.
    inputs
        The fields of the graph that the model was passed, in this order, a tuple of names.
    fixed
        For methods that evaluate a game: fields of the whole graph that the model takes, such as
        descriptors of a molecule, which are the same in every coalition.
    worth, component_worth, baseline, baseline_source
        For methods that evaluate a game: the worth of the whole graph (what Shapley values sum to),
        the worths of its components (what HN and Myerson values sum to), the baseline that was
        subtracted, and where it came from.
    value, two_sided, payoff
        Of :class:`gstarx.GStarX`: the value, whether it counts both sides, and the payoff.
    """

    _optional = Exports._optional | _OPTIONAL

    def __init__(self, *fields: Any, **named: Any) -> None:
        super().__init__(*fields, **named)
        install(self._store)

    @classmethod
    def of(
        cls,
        attribution: Attribution,
        model: Any,
        data: Data,
        task: ModelTask,
        *,
        method: str,
        seconds: float,
    ) -> Explanation:
        """Build the explanation of a graph from the result of a method."""
        output = attribution.prediction
        if output is None or len(output) != task.rows(data):
            output = task.output(model, data).clone()
        made = cls(
            **result_fields(attribution, int(data.num_nodes or 0)),
            # not copied, because explanations of many nodes of one graph have it in common
            prediction=output.detach() if output.requires_grad else output,
            target=OnRequest(labels),
            explained=explained_targets(attribution.target, task, output),
            method=method,
            seconds=seconds,
            mode=task.mode,
            return_type=task.return_type,
        )
        made.exact, made.estimator = attribution.exact, attribution.estimator
        made.evaluations = attribution.evaluations
        if attribution.edge_mask is not None:
            made.edge_mask = attribution.edge_mask.detach().float().cpu()
        if task.index is not None:
            made.index = torch.tensor([task.index])
        for key, value in attribution.details.items():
            made[key] = value
        made.inputs = model_inputs(model, data, task.keywords)
        made._add_inputs(data, model_arguments(model, data, task.keywords))
        return made

    def _add_inputs(self, data: Data, arguments: list[str]) -> None:
        """Add the fields of the graph, and which of them PyG passes to the model."""
        # an edge mask of the data, as PyG's datasets with a ground truth have, is not a result
        known = {*self.keys(), "edge_mask", "node_mask"}
        for key, value in data:
            if key not in known:
                self[key] = value
        if "batch" in arguments and "batch" not in self:
            self.batch = OnRequest(one_graph, int(data.num_nodes or 0))
        self._model_args = [name for name in arguments if name in self]

    @classmethod
    def from_scores(
        cls,
        scores: NDArray[np.float64] | None,
        *,
        num_nodes: int,
        std_errors: NDArray[np.float64] | None = None,
        sets: Sequence[NDArray[np.int64]] = (),
        target: int | None = None,
        evaluations: int | None = None,
    ) -> Explanation:
        """An explanation without its graph, from scores of all nodes, or from sets of them.

        >>> Explanation.from_scores(np.array([0.2, 0.7, 0.1]), num_nodes=3).top(2)
        array([1, 0])
        """
        return cls(
            **result_fields(Attribution(scores, std_errors, sets=tuple(sets)), num_nodes),
            num_nodes=num_nodes,
            explained=[] if target is None else [target],
            evaluations=evaluations,
            method="",
            seconds=0.0,
        )

    @property
    def player_kind(self) -> str:
        """What the players are."""
        return self._store.get("player_kind") or "nodes"

    @property
    def sets(self) -> list[NDArray[np.int64]]:
        """Sets of nodes that a search found, best first."""
        return self._store.get("sets") or []

    @property
    def target_class(self) -> int:
        """The class or output that was explained, if there is only one."""
        if len(self.explained) != 1:
            raise ValueError(f"the explanation has {len(self.explained)} targets: {self.explained}")
        return int(self.explained[0])

    def for_target(self, target: int) -> Explanation:
        """The explanation of one of several targets, with PyG's masks."""
        if target not in self.explained:
            raise ValueError(f"target must be one of {self.explained} (got {target!r})")
        if len(self.explained) > 1 and self.scores is not None and self.scores.dim() == 1:
            raise ValueError(
                f"the scores are sums over {len(self.explained)} outputs, explained together for "
                f"{self.explained}: explain the one of target {target} by itself"
            )
        one = copy.copy(self)
        column = self.explained.index(target)
        for key in ("scores", "std_errors", "node_scores", "group_remainder"):
            # what is made on request follows from the scores
            value = None if self._store._mapping.on_request(key) else self._store.get(key)
            if value is not None and value.dim() == 2:
                one[key] = value[:, column]
        for key in ("worth", "component_worth", "baseline"):
            value = self._store.get(key)
            if value is not None and len(value) == len(self.explained):
                one[key] = value[column : column + 1]
        one.explained = [target]
        one.update(unit_masks(self.player_kind) if self.player_kind != "nodes" else {})
        if self.player_kind == "nodes":
            one.node_mask = OnRequest(node_mask)
        if self.get("edge_scores") is not None and self.player_kind != "edges":
            made = self._store._mapping.on_request("edge_scores")
            one.edge_mask = OnRequest(mean_of_ends) if made else self.edge_scores[:, column].float()
        one.edge_scores = None
        return one

    def score_edges(self) -> Self:
        """Add a score for every edge, the mean of its two ends: PyG's ``edge_mask``.

        With several targets it is ``edge_scores``, a column for each of them, because PyG has no
        mask of several columns. Edges that the method scored itself keep their scores.
        """
        if self.get("edge_mask") is not None or self.get("edge_scores") is not None:
            return self
        if self.player_kind not in ("nodes", "groups"):
            raise ValueError(
                "the mean of the two ends is for scores of nodes (these players are "
                f"{self.player_kind})"
            )
        several = self.scores is not None and self.scores.dim() > 1
        self["edge_scores" if several else "edge_mask"] = OnRequest(mean_of_ends)
        return self

    def in_unit_range(self) -> Self:
        """The same explanation with masks between 0 and 1, as PyG's metrics need them.

        They multiply features and messages by masks: positive scores are divided by the largest one
        of their graph, and all others become 0. Scores stay as they are.
        """
        made, batch = copy.copy(self), self.get("batch")
        node_mask, edge_mask = self.get("node_mask"), self.get("edge_mask")
        if node_mask is not None:
            of_nodes = batch is not None and len(node_mask) == len(batch)
            made.node_mask = unit_range(node_mask, batch if of_nodes else None)
        if edge_mask is not None:
            owner = None if batch is None else batch[self.edge_index[0]]
            made.edge_mask = unit_range(edge_mask, owner)
        return made

    def select(
        self, *, sparsity: float | None = None, size: int | None = None, rule: str = "top"
    ) -> NDArray[np.int64]:
        """Select the players that form the explanation, as ascending ids.

        Parameters
        ----------
        sparsity
            The share of players that is left out: ``floor((1 - sparsity) P)`` are kept; at least
            one if players are groups, edges or features, unless ``sparsity`` is 1.
        size
            The number of players to keep, instead of a sparsity.
        rule
            ``"top"``: those with the highest scores, ties go to the smaller id (Algorithm 1).
            ``"positive"``: the same, but never a player without a positive score, as the published
            code does. ``"connected"``: grown along the edges from the best player. ``"gap"``,
            without sparsity and size: those above the largest gap of the sorted scores, see
            :func:`gstarx.metrics.largest_gap`, and only scores whose 95% interval lies above 0.

        Returns
        -------
        ndarray
            Node ids; for other players, their numbers, for instance positions in ``player_edges``.
            For a method that finds sets, the best set of at most that size; if all are larger, the
            first nodes of the smallest. With ``"gap"``, its best set.
        """
        if rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))} (got {rule!r})")
        if rule == "gap":
            if sparsity is not None or size is not None:
                raise TypeError(
                    "rule='gap' finds the size from the scores: give neither sparsity nor size "
                    f"(got sparsity={sparsity!r}, size={size!r})"
                )
            return self._above_gap()
        if (sparsity is None) == (size is None):
            raise TypeError(f"give sparsity or size (got sparsity={sparsity!r}, size={size!r})")
        if size is None:
            assert sparsity is not None
            of_nodes = self.player_kind == "nodes"
            size = selection_size(len(self.players), sparsity, of_nodes=of_nodes)
        size = _checked_size(size, "size")
        if self.scores is None:
            return best_of_sets(self.sets, size)
        graph = self._player_graph() if rule == "connected" else None
        best = select_best(self._one_column(), size, positive_only=rule == "positive", graph=graph)
        return np.sort(self.players.numpy()[best])

    def top(self, k: int) -> NDArray[np.int64]:
        """The ``k`` best players, best first; for a method that finds sets, its best set."""
        if self.scores is None:
            return self.select(size=k)
        order = np.argsort(-self._one_column(), kind="stable")[: _checked_size(k, "k")]
        return np.asarray(self.players.numpy()[order])

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Explanation:
        """The explanation, without its graph, from the result of :meth:`to_dict`.

        Every number is the same again; ``None`` among numbers becomes ``nan``.

        >>> found = Explanation.from_scores(np.array([0.2, 0.7, 0.1]), num_nodes=3)
        >>> torch.equal(Explanation.from_dict(found.to_dict()).node_scores, found.node_scores)
        True
        """
        return cls(**stored.fields_of(mapping))

    def visualize_graph(
        self,
        path: str | None = None,
        backend: str | None = None,
        node_labels: list[str] | None = None,
    ) -> None:
        """PyG's picture of the graph; edges that were not scored show the mean of their ends."""
        require_graph(self)
        if self.get("edge_mask") is None and self.get("node_mask") is not None:
            shown = copy.copy(self)
            shown.edge_mask = edge_scores(self.node_mask, self.edge_index).clamp(min=0)
            shown.visualize_graph(path, backend, node_labels)
        else:
            super().visualize_graph(path, backend, node_labels)

    def is_node_attr(self, key: str) -> bool:
        """Whether a field holds something for every node."""
        if key in _PER_PLAYER:
            return self.player_kind == "nodes" and bool(len(self.players) == self.num_nodes)
        if key in _PER_NODE:
            return not (key == "node_mask" and self.player_kind == "features")
        return key not in _PER_EXPLANATION and super().is_node_attr(key)

    def is_edge_attr(self, key: str) -> bool:
        """Whether a field holds something for every edge."""
        game = _PER_PLAYER | _PER_NODE | _PER_EXPLANATION
        return key not in game and super().is_edge_attr(key)

    def _above_gap(self) -> NDArray[np.int64]:
        if self.scores is None:
            return np.sort(self.sets[0]) if self.sets else np.zeros(0, dtype=np.int64)
        scores = self._one_column()
        # only what is above noise may be selected, whatever the gaps are
        clear = np.flatnonzero(above_noise(scores, self.std_errors))
        best = clear[select_best(scores[clear], largest_gap(scores[clear]))]
        return np.sort(self.players.numpy()[best])

    def _one_column(self) -> NDArray[np.float64]:
        if self.scores.dim() == 2:
            raise ValueError(
                f"there are scores for {self.scores.shape[1]} targets: choose one with "
                f"for_target(target), one of {self.explained}"
            )
        column: NDArray[np.float64] = self.scores.numpy()
        return column

    def _player_graph(self) -> CommunicationGraph:
        if self.player_edges is not None:
            return CommunicationGraph.line_graph(self.player_edges.numpy())
        if self.player_kind.endswith("features"):
            return CommunicationGraph.complete(len(self.players))
        if self.player_kind == "groups":
            ends = self.unit_players[self.edge_index.cpu()].numpy().T
            return CommunicationGraph(len(self.players), ends[(ends >= 0).all(axis=1)])
        count = int(self.num_nodes or 0)
        links, spec = self.edge_index, self.get("player_spec")
        if spec is not None and spec.relations is not None and (typed := hetero_of(self)):
            kept = np.isin(typed.relation_of, typed.relations_named(spec.relations))
            links = links[:, torch.from_numpy(kept)]
        graph = CommunicationGraph.from_edge_index(links, count)
        return graph.subgraph(self.players.numpy())

    def nodes_of(self, players: Any) -> NDArray[np.int64]:
        """The nodes that some players are, contain or touch, ascending; none for features."""
        chosen = np.asarray(players, dtype=np.int64)
        if self.player_edges is not None:
            return np.unique(self.player_edges.numpy()[chosen])
        if self.player_kind == "groups":
            return np.flatnonzero(np.isin(self.unit_players.numpy(), chosen))
        return chosen if self.player_kind == "nodes" else np.zeros(0, dtype=np.int64)

    def name_of(self, player: int) -> str:
        """What a player is called: a node's number, the two ends of an edge, or a name."""
        if self.player_edges is not None:
            edges = self.player_edges.numpy()
            (a, b), mark = edges[int(player)].tolist(), parallel_mark(edges, int(player))
            return f"{a}-{b}{mark}" if self.symmetric else f"{a} to {b}{mark}"
        graph = hetero_of(self)
        if graph is not None:
            return graph.name(int(player))
        return str(int(player)) if self.player_names is None else self.player_names[int(player)]


def _checked_size(size: Any, name: str) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise TypeError(f"{name} must be an integer (got {size!r})")
    if size < 0:
        raise ValueError(f"{name} must be at least 0 (got {size})")
    return int(size)
