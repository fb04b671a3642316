"""From a model, one graph and a task to the players of a game and what evaluates them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx.gnn.baseline import BaselineLike
from gstarx.gnn.evaluator import Evaluator, default_batch_nodes
from gstarx.gnn.fields import GraphTensors, Roles, roles_of
from gstarx.gnn.hetero import HeteroGraph, view_of
from gstarx.gnn.k_hop import induced
from gstarx.gnn.local_part import (
    LocalPart,
    WholeGraph,
    check_computation_graph,
    local_kind,
    local_part,
)
from gstarx.gnn.model_state import masked_layers
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.players import Playing, choose_players, target_nodes
from gstarx.gnn.removal import RemovalLike, removal_of, resolve_removal
from gstarx.gnn.signature import Model, Signature, model_device
from gstarx.graphs import CommunicationGraph
from gstarx.players import Edges, Features, NoPlayersError, PlayerSet, player_set, reference_rows

log = logging.getLogger("gstarx")


def set_up(
    model: Model,
    data: Data,
    task: ModelTask,
    kind: Any,
    *,
    index: int | Tensor | None,
    keywords: Iterable[str] | None,
    communication: CommunicationGraph | None,
    baseline: BaselineLike,
    removal: RemovalLike,
    num_hops: int | None,
    computation_graph: str,
    whole_graph: WholeGraph | None,
    batch_nodes: int | None,
) -> tuple[Playing, ModelTask]:
    """Who plays and how coalitions are evaluated, and the task with the target that is explained.

    The game of a node is played on the part of the graph that sends it messages, if that can be cut
    out; its players are then those of the whole graph again.
    """
    roles = roles_of(data)
    gnnshap = check_computation_graph(computation_graph, task.task_level) == "gnnshap"
    part: LocalPart | None = None
    if task.task_level == "node" and local_kind(kind, communication, removal, gnnshap):
        keyed = replace(task, keywords=None if keywords is None else list(keywords))
        node = int(target_nodes(data, task.task_level, index)[0])
        whole_graph = whole_graph or WholeGraph.of(model, data, keyed)
        part = local_part(model, data, keyed, roles, whole_graph, node, num_hops, gnnshap)
    if part is not None:
        if isinstance(kind, Edges) and not part.data.edge_index.numel():
            raise NoPlayersError(f"no edge brings a message to node {node}: there are no players")
        data, index = part.data, part.index
    everyone = player_set(data, kind, communication, one_way=gnnshap)
    everyone = replace(everyone, anchored=task.task_level != "graph")
    if not everyone.of_nodes:
        _refuse_node_options(everyone, removal, baseline)
    if masked_layers(model):
        log.warning("the model carries edge masks of another explainer: they are set aside")
    anchors = target_nodes(data, task.task_level, index)
    if task.task_level == "edge" and not everyone.touched:  # the position value has its definition
        everyone = replace(everyone, pair=tuple(anchors.tolist()))
    evaluators = _Evaluators(
        model, data, task, roles, anchors, removal, everyone, keywords, batch_nodes
    )
    if gnnshap:
        assert part is not None
        assert whole_graph is not None
        task = replace(task, target=whole_graph.target(task, node))
        on_part = evaluators(everyone.player_of)
        playing = Playing(on_part, everyone, propagation=whole_graph.propagation)
    else:
        playing = choose_players(
            model, data, task.task_level, anchors, num_hops, evaluators, everyone
        )
    if part is not None and whole_graph is not None:
        lifted, outputs = part.lifted(playing.players), whole_graph.node_outputs
        playing = replace(playing, players=lifted, node_outputs=outputs)
    return playing, task


class _Evaluators:
    """Makes evaluators of coalitions on one graph and on parts of it.

    What absent features are replaced by is that of the whole graph on every part of it.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        task: ModelTask,
        roles: Roles,
        anchors: NDArray[np.int64],
        removal: RemovalLike,
        players: PlayerSet,
        keywords: Iterable[str] | None,
        batch_nodes: int | None,
    ) -> None:
        self.model, self.data, self.task, self.roles = model, data, task, roles
        self.anchors, self.removal, self.players = anchors, removal, players
        self.signature = Signature.of(model, data, keywords)
        self.device = model_device(model, data.edge_index.device)
        self.batch_nodes = _checked_batch_nodes(batch_nodes, model, self.device)
        spec = players.spec
        self.reference = reference_rows(spec, data) if isinstance(spec, Features) else None

    def __call__(
        self, player_of: NDArray[np.int64], inside: NDArray[np.bool_] | None = None
    ) -> Evaluator:
        """The evaluator on the graph or on some of its nodes, with the player of every unit."""
        part, anchors, reference = self.data, self.anchors, self.reference
        if inside is not None:
            part = induced(self.data, inside, self.roles)
            anchors = np.searchsorted(np.flatnonzero(inside), self.anchors)
            rows = inside
            if self.players.kind in ("edges", "edge_features"):
                rows = inside[self.data.edge_index.cpu().numpy()].all(axis=0)
            if reference is None:
                player_of = player_of[rows]
            else:
                reference = reference[:, torch.from_numpy(rows).to(reference.device)]
        tensors = GraphTensors(part, self.device, self.roles)
        if self.players.of_nodes:
            removal = resolve_removal(self.removal, part, tensors, anchors)
        else:
            removal = removal_of(self.players.spec, part, tensors, anchors, reference)
        return Evaluator(
            self.model,
            self.signature,
            removal,
            task_level=self.task.task_level,
            batch_nodes=self.batch_nodes,
            player_of=player_of,
        )


def _refuse_node_options(players: PlayerSet, removal: Any, baseline: Any) -> None:
    """Raise where a game of edges or features is given options of a game of nodes."""
    if removal != "remove":
        raise ValueError(
            f"removal says how nodes are taken away, and the players are {players.kind} "
            f"(got removal={removal!r})"
        )
    if baseline is not None and players.without_baseline:
        raise ValueError(
            f"for players={players.kind!r} the baseline is the output with no player present, and "
            f"no other is accepted (got baseline={baseline!r})"
        )


def _checked_batch_nodes(batch_nodes: int | None, model: Model, device: torch.device) -> int:
    """Nodes per forward pass: the given number, or the rule by device and model width."""
    if batch_nodes is None:
        return default_batch_nodes(model, device)
    if not isinstance(batch_nodes, int | np.integer):
        raise TypeError(f"batch_nodes must be an integer (got {batch_nodes!r})")
    if batch_nodes < 1:
        raise ValueError(f"batch_nodes must be at least 1 (got {batch_nodes})")
    return int(batch_nodes)


Task = TypeVar("Task", bound=ModelTask)


def with_view(model: Model, data: Any, task: Task) -> tuple[Any, Task]:
    """A graph and its task; of a heterogeneous graph its view, and the task in numbers of it."""
    if not isinstance(data, HeteroData):
        if task.node_type is not None and isinstance(data, Data):
            raise ValueError(
                "node_type is for heterogeneous graphs, and the data is a homogeneous one "
                f"(got node_type={task.node_type!r})"
            )
        return data, task
    if task.task_level == "edge":
        raise ValueError(
            "task_level='edge' is for homogeneous graphs: of a heterogeneous one, the output for "
            "a node or for the graph can be explained"
        )
    if task.task_level == "graph":
        if task.node_type is not None:
            raise ValueError(
                "node_type is for task_level='node', and this is task_level='graph' "
                f"(got node_type={task.node_type!r})"
            )
        return view_of(data), task
    graph = HeteroGraph.of(data)
    node_type = task.node_type
    if node_type is None:
        node_type = output_type_of(model, data, graph, task)
    view = view_of(data, node_type)
    index = task.index
    if index is not None:
        index = graph.number(node_type, index)
    return view, replace(task, index=index, node_type=None)


def output_type_of(model: Model, data: HeteroData, graph: HeteroGraph, task: ModelTask) -> str:
    """The type of nodes that a model has outputs for, if that shows, or an error."""
    of_graph = replace(task, task_level="graph", index=None, node_type=None)
    output = of_graph.raw_output(model, view_of(data))
    if isinstance(output, Mapping):
        fitting = [name for name in graph.node_types if name in output]
        what = f"the model has outputs for {len(fitting)} types of nodes"
    elif isinstance(output, Tensor) and output.dim():
        fitting = [name for name in graph.node_types if graph.count(name) == len(output)]
        what = f"the model returns {len(output)} rows, as many as there are nodes of"
        what += f" {len(fitting)} types"
    else:
        raise TypeError(
            "the model must return a tensor, or a dictionary of tensors by type of node "
            f"(got {type(output).__name__})"
        )
    if len(fitting) != 1:
        among = " or ".join(f"node_type={name!r}" for name in fitting or graph.node_types)
        listed = f" ({', '.join(fitting)})" if fitting else ""
        raise ValueError(f"{what}{listed}: choose the type of the node with {among}")
    return fitting[0]
