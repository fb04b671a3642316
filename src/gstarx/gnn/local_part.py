"""The part of a large graph whose messages reach one node, cut out before anything else is done.

What the nodes of a graph have in common, the model's outputs for all of them and who sends messages
to whom, is found once (:class:`WholeGraph`). Everything else of a node's game costs as much as its
own part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn.fields import Roles, cut, roles_of
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.k_hop import Incoming, Propagation, watch_propagation
from gstarx.gnn.model_state import untouched
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.own_code import wants_all
from gstarx.gnn.payoff import choose_columns, class_scores
from gstarx.gnn.self_check import same_outputs
from gstarx.gnn.signature import Model
from gstarx.players import Edges, Nodes, PlayerSet

#: Roles of fields that name nodes or edges.
_NAMING = {"ids", "edge_ids"}


@dataclass(frozen=True)
class WholeGraph:
    """What the games of all nodes of one graph have in common.

    Attributes
    ----------
    node_outputs
        The model's outputs (N, columns) for all nodes.
    propagation
        How messages went.
    incoming
        Who sends messages to whom.
    divisible
        Whether the model treats a small graph as it treats a part of a large one.
    """

    node_outputs: Tensor
    propagation: Propagation
    incoming: Incoming
    divisible: bool = True

    @classmethod
    def of(cls, model: Model, data: Data, task: ModelTask) -> WholeGraph:
        """Run the model on the whole graph, and once more to see whether parts are like it."""
        with untouched(model):
            with watch_propagation(model) as seen:
                outputs = task.output(model, data).clone()  # of its own, whatever a model keeps
            edges, count = data.edge_index.cpu().numpy(), int(data.num_nodes or 0)
            divisible = hetero_of(data) is not None or (
                not wants_all(model, count) and _small_is_alike(model, data, task)
            )
        return cls(outputs, seen, Incoming(edges, count, seen.flow), divisible)

    def target(self, task: ModelTask, node: int) -> Any:
        """The requested target, or the class that is predicted for a node."""
        if task.target is not None or task.mode == "regression":
            return task.target
        scores = class_scores(self.node_outputs[[node]], task.mode, task.return_type, "prob")
        single = task.mode == "binary_classification" and self.node_outputs.shape[1] == 1
        return choose_columns(None, scores, task.mode, single)[0]


@dataclass(frozen=True)
class LocalPart:
    """A part of a graph as a graph of its own.

    Attributes
    ----------
    data
        The part.
    nodes, edges
        Numbers of its nodes and edges in the whole graph.
    index
        The node that is explained, in the part.
    sizes
        Numbers of nodes and edges of the whole graph.
    """

    data: Data
    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    index: int
    sizes: tuple[int, int]

    def lifted(self, players: PlayerSet) -> PlayerSet:
        """Players of the part as players of the whole graph."""
        of_nodes = players.kind == "nodes"
        units, count = (self.nodes, self.sizes[0]) if of_nodes else (self.edges, self.sizes[1])
        player_of = np.full(count, -1, dtype=np.int64)
        player_of[units] = players.player_of
        return replace(
            players,
            player_of=player_of,
            ids=self.nodes[players.ids] if of_nodes else players.ids,
            links=self.nodes[players.links],
            edges=None if players.edges is None else self.nodes[players.edges],
        )


def local_kind(kind: Any, communication: Any, removal: Any, gnnshap: bool) -> bool:
    """Whether a part of the graph is enough to find the players and to take them away.

    It is for nodes and edges. A removal of the user's own may look at the whole graph.
    """
    local = communication is None and isinstance(kind, Nodes | Edges)
    if gnnshap and not local:
        what = type(kind).__name__.lower() if communication is None else "communication=..."
        raise ValueError(
            f"computation_graph='gnnshap' is for players='nodes' and players='edges' (got {what})"
        )
    if gnnshap and callable(removal):
        raise ValueError(
            "computation_graph='gnnshap' leaves only a part of the graph, and a removal of your "
            "own is given the whole graph: choose one of them"
        )
    return local and not callable(removal)


def local_part(
    model: Model,
    data: Data,
    task: ModelTask,
    roles: Roles,
    whole_graph: WholeGraph,
    node: int,
    num_hops: int | None,
    gnnshap: bool,
) -> LocalPart | None:
    """The part of the graph on which the game of a node is played, None for all of it."""
    hops = whole_graph.propagation.hops if num_hops is None else num_hops
    if gnnshap:
        return message_graph(data, roles, whole_graph, node, hops)
    return surroundings(model, data, task, roles, whole_graph, node, hops)


def message_graph(
    data: Data, roles: Roles, whole_graph: WholeGraph, node: int, hops: int
) -> LocalPart:
    """The edges that carry a message to a node within some hops, and the nodes they touch.

    Nothing else of the graph is left: nodes at the rim have lost the edges that reach them.
    """
    for key, role in roles.items():
        if role in _NAMING:
            raise ValueError(
                f"computation_graph='gnnshap' cuts out a part of the graph, in which {key!r} "
                "has no meaning: leave it out of the data"
            )
    near = whole_graph.incoming.within(node, max(hops - 1, 0))
    edges = np.sort(whole_graph.incoming.edges_to(near)) if hops else np.zeros(0, dtype=np.int64)
    ends = data.edge_index.cpu().numpy()[:, edges]
    joining = ends[0] != ends[1]
    nodes = np.unique(np.append(ends[:, joining], node))
    return _cut(data, roles, nodes, edges[joining], node)


def surroundings(
    model: Model,
    data: Data,
    task: ModelTask,
    roles: Roles,
    whole_graph: WholeGraph,
    node: int,
    hops: int,
) -> LocalPart | None:
    """A part of the graph on which the model's output for a node is that on the whole graph.

    All nodes whose messages arrive, and one hop more, because normalized convolutions look at
    degrees. None if that does not do, or is the whole graph.
    """
    seen = whole_graph.propagation
    if seen.flow == "both" or not whole_graph.divisible:
        return None
    if _NAMING & set(roles.values()):
        return None
    nodes = whole_graph.incoming.within(node, max(hops, seen.hops) + 1)
    if len(nodes) >= whole_graph.incoming.num_nodes:
        return None
    edges = np.sort(whole_graph.incoming.edges_to(nodes))
    edges = edges[np.isin(whole_graph.incoming.senders(edges), nodes)]
    part = _cut(data, roles, nodes, edges, node)
    expected = whole_graph.node_outputs[[node]]
    try:
        with untouched(model):
            on_part = task.output(model, part.data)[[part.index]]
    except Exception:
        return None
    return part if same_outputs(on_part, expected, expected) else None


def _small_is_alike(model: Model, data: Data, task: ModelTask) -> bool:
    """Whether a node without edges has the same output in the whole graph and by itself."""
    roles = roles_of(data)
    if _NAMING & set(roles.values()):
        return False
    count = int(data.num_nodes or 0)
    apart = (data.edge_index != 0).all(dim=0).nonzero()[:, 0].cpu().numpy()
    try:
        inside = task.output(model, _cut(data, roles, np.arange(count), apart, 0).data)[[0]]
        alone = task.output(model, _cut(data, roles, np.arange(1), apart[:0], 0).data)
    except Exception:
        return False
    return same_outputs(alone, inside, inside)


def _cut(
    data: Data, roles: Roles, nodes: NDArray[np.int64], edges: NDArray[np.int64], node: int
) -> LocalPart:
    sizes = int(data.num_nodes or 0), int(data.edge_index.shape[1])
    index = int(np.searchsorted(nodes, node))
    return LocalPart(cut(data, roles, nodes, edges), nodes, edges, index, sizes)
