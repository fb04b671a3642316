"""Parts of many graphs in few forward passes.

A game evaluates the coalitions of one graph. Where every graph has only a few of them, as when an
explanation is checked, the passes would be small and their number would decide the time. Here parts
of different graphs share a pass: all graphs are put behind each other once, and a batch of parts
keeps some of their nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn.evaluator import Evaluator, default_batch_nodes, takes_batch_statistics
from gstarx.gnn.fields import GraphTensors, roles_of
from gstarx.gnn.model_state import untouched
from gstarx.gnn.options import ShareLike
from gstarx.gnn.payoff import outputs_matrix
from gstarx.gnn.removal import REMOVALS, Removal, RemovalLike
from gstarx.gnn.self_check import (
    SelfCheck,
    doubled,
    doubled_fields,
    require_apart,
    smallest_and_largest,
)
from gstarx.gnn.shared_rows import SharedRows
from gstarx.gnn.sharing import SharedPasses, Sharing
from gstarx.gnn.signature import Model, Signature, call_model, model_device
from gstarx.gnn.watched_edges import NotShareable
from gstarx.graphs import Coalitions, Masks, pack, sharing_order

_FROM_THE_BATCH = frozenset({"edge_index", "batch", "batch_size", "num_nodes", "ptr"})


class ManyGraphs:
    """Graphs behind each other, and the arguments that a model takes of them."""

    def __init__(
        self, graphs: Sequence[Data], fields: dict[str, str], device: torch.device
    ) -> None:
        self.device = device
        self.fields = {
            name: torch.cat([graph[name] for graph in graphs]).to(device) for name in fields
        }
        self._rows = {name: SharedRows(value) for name, value in self.fields.items()}
        self.roles = fields
        sizes = [int(graph.num_nodes or 0) for graph in graphs]
        edges = [graph.edge_index.cpu().numpy() for graph in graphs]
        self.edge_index = np.ascontiguousarray(np.concatenate(edges, axis=1), dtype=np.int64)
        self.first_node = np.cumsum([0, *sizes])
        self.first_edge = np.cumsum([0, *[part.shape[1] for part in edges]])

    @classmethod
    def sharing(
        cls,
        model: Model,
        graphs: Sequence[Data],
        removal: RemovalLike,
        keywords: Sequence[str] | None = None,
    ) -> tuple[ManyGraphs, Signature] | None:
        """The graphs with the signature of the model, or None where parts cannot share a pass.

        They can where the model takes ``batch`` and arguments that are cut down with nodes or
        edges, and keeps the graphs of a batch apart.
        """
        if removal not in REMOVALS or takes_batch_statistics(model) or not graphs:
            return None
        known: dict[tuple[str, ...], Signature] = {}
        fields: dict[str, str] | None = None
        for graph in graphs:
            keys = tuple(graph.keys())
            signature = known.setdefault(
                keys, known.get(keys) or Signature.of(model, graph, keywords)
            )
            if signature.takes_data or not signature.takes_batch or signature.hetero is not None:
                return None
            wanted = {*signature.positional, *signature.keywords} - _FROM_THE_BATCH
            roles = roles_of(graph)
            own = {name: roles.get(name, "missing") for name in sorted(wanted)}
            if not set(own.values()) <= {"node", "edge"} or (fields is not None and own != fields):
                return None
            fields = own
        if len(set(known.values())) != 1 or (
            removal == "zero_filling" and "x" not in (fields or {})
        ):
            return None
        device = model_device(model, graphs[0].edge_index.device)
        return cls(graphs, fields or {}, device), signature

    def inputs(
        self, rows: NDArray[np.int64], parts: list[Coalitions], removal: str
    ) -> dict[str, Any]:
        """Model inputs for some parts: ``rows`` (k, 2) are numbers of a graph and of its part."""
        inside = np.concatenate([parts[graph][part] for graph, part in rows.tolist()])
        everything = np.ones_like(inside)
        # all nodes and edges of the graphs, in the order of the parts; then those that are kept
        first_node, first_edge = self.first_node[rows[:, 0]], self.first_edge[rows[:, 0]]
        sizes = self.first_node[rows[:, 0] + 1] - first_node
        links = self.first_edge[rows[:, 0] + 1] - first_edge
        begins = np.cumsum(sizes) - sizes
        there = inside if removal == "remove" else everything
        chosen = (np.arange(len(inside)) + np.repeat(first_node - begins, sizes))[there]
        owner = np.repeat(np.arange(len(rows)), sizes)[there]
        taken = np.arange(links.sum()) + np.repeat(first_edge - (np.cumsum(links) - links), links)
        ends = self.edge_index[:, taken] + np.repeat(begins, links)
        kept = (everything if removal == "zero_filling" else inside)[ends].all(axis=0)
        ends, taken = (np.cumsum(there) - 1)[ends[:, kept]], taken[kept]
        at = {"node": self._tensor(chosen), "edge": self._tensor(taken)}
        fields: dict[str, Any] = {
            name: rows.gathered(at[self.roles[name]]) for name, rows in self._rows.items()
        }
        if removal == "zero_filling":
            gone = self._tensor(~inside)
            fields["x"] = fields["x"].masked_fill(
                gone.reshape(-1, *[1] * (fields["x"].dim() - 1)), 0
            )
        fields |= {"edge_index": self._tensor(ends), "batch": self._tensor(owner)}
        return fields | {"batch_size": len(rows), "num_nodes": len(chosen)}

    def union(self) -> Data:
        """All graphs as one, without an edge between them."""
        moved = np.repeat(self.first_node[:-1], np.diff(self.first_edge))
        ends = torch.from_numpy(self.edge_index + moved)
        return Data(edge_index=ends, num_nodes=int(self.first_node[-1]), **self.fields)

    def packed(self, parts: list[Coalitions]) -> Masks:
        """Parts of every graph as packed coalitions of nodes of the union."""
        members = np.zeros((sum(map(len, parts)), int(self.first_node[-1])), dtype=np.bool_)
        row = 0
        for part, first in zip(parts, self.first_node.tolist(), strict=False):
            members[row : row + len(part), first : first + part.shape[1]] = part
            row += len(part)
        return pack(members)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)


def outputs_and_sharing(
    model: Model,
    graphs: ManyGraphs,
    signature: Signature,
    parts: list[Coalitions],
    removal: str,
    batch_nodes: int | None = None,
    *,
    check: bool = True,
    share: ShareLike = "auto",
) -> tuple[Tensor, Sharing]:
    """Outputs of a graph-level model for parts (k, n) of every graph, and whether they shared.

    Rows are in the order of the graphs and their parts. Some parts of the first batch are also
    evaluated in other company: a model that mixes the graphs of a batch raises
    :class:`BatchMixing`.
    """
    capacity = default_batch_nodes(model, graphs.device) if batch_nodes is None else batch_nodes
    with untouched(model):
        by_states, sharing = _by_states(model, graphs, signature, parts, removal, capacity, share)
    if by_states is not None:
        return by_states, sharing

    def outputs(rows: NDArray[np.int64]) -> Tensor:
        fields = graphs.inputs(rows, parts, removal)
        return outputs_matrix(call_model(model, signature, fields), len(rows))

    def again(rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> Tensor:
        return outputs(rows[chosen])

    def in_double(rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> Tensor:
        fields = doubled_fields(graphs.inputs(rows[chosen], parts, removal))
        with doubled(model):
            return outputs_matrix(call_model(model, signature, fields), len(chosen))

    batches: list[Tensor] = []
    ends = _ends(graphs, parts) if check else np.zeros((0, 2), dtype=np.int64)
    with untouched(model):
        for rows in _batches(parts, removal, capacity):
            batches.append(outputs(rows))
            here = (rows[:, None] == ends).all(axis=2).any(axis=1).nonzero()[0].tolist()
            if check and (len(batches) == 1 or here):
                sizes = np.array([parts[graph][part].sum() for graph, part in rows.tolist()])
                comparisons = partial(again, rows), SelfCheck(), partial(in_double, rows)
                require_apart(batches[-1], [*here, *smallest_and_largest(sizes)], *comparisons)
    return torch.cat(batches), sharing


def _ends(graphs: ManyGraphs, parts: list[Coalitions]) -> NDArray[np.int64]:
    """The smallest, the largest and the first part without edges, by graph and part (k, 2)."""
    ends = smallest_and_largest(np.concatenate([part.sum(axis=1) for part in parts]))
    first = 0
    for begin, end, part in zip(graphs.first_edge, graphs.first_edge[1:], parts, strict=False):
        ends_inside = np.asarray(part[:, graphs.edge_index[:, begin:end]])
        linked = np.asarray(ends_inside.all(axis=1)).any(axis=1)
        if not linked.all():
            ends.append(first + int(linked.argmin()))
            break
        first += len(part)
    return _numbered(parts)[ends]


def _numbered(parts: list[Coalitions]) -> NDArray[np.int64]:
    """The numbers of the graph and the part, for all parts (k, 2)."""
    graph = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    return np.stack([graph, np.concatenate([np.arange(len(p)) for p in parts])], axis=1)


def _by_states(
    model: Model,
    graphs: ManyGraphs,
    signature: Signature,
    parts: list[Coalitions],
    removal: str,
    capacity: int,
    share: ShareLike,
) -> tuple[Tensor | None, Sharing]:
    """Outputs of all parts from shared embeddings, or None; and what came of it."""
    if removal != "remove" and share is not False:
        return None, Sharing(reason=f"several graphs together share with 'remove', not {removal!r}")
    union = graphs.union()
    tensors = GraphTensors(union, graphs.device, graphs.roles)
    taken = Removal("remove", union, tensors, np.zeros(0, dtype=np.int64))
    evaluator = Evaluator(model, signature, taken, task_level="graph", batch_nodes=capacity)
    shared = SharedPasses(evaluator, share, SelfCheck())
    masks = graphs.packed(parts)
    if not shared.consider(masks):
        return None, shared.sharing
    order = sharing_order(masks, tensors.edge_index, tensors.num_nodes)
    try:
        blocks = list(shared.outputs(masks[order]))
    except NotShareable as error:
        shared.forget(str(error))
        return None, shared.sharing
    if not blocks:
        return None, shared.sharing
    outputs = torch.cat(blocks)
    back = torch.from_numpy(np.argsort(order)).to(outputs.device)
    return outputs[back], shared.sharing


def _batches(parts: list[Coalitions], removal: str, capacity: int) -> Iterator[NDArray[np.int64]]:
    """Consecutive parts with at most ``capacity`` nodes together, at least one each."""
    sizes = np.concatenate(
        [p.sum(axis=1) if removal == "remove" else np.full(len(p), p.shape[1]) for p in parts]
    )
    rows, ends = _numbered(parts), np.cumsum(sizes)
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + capacity, "right")))
        yield rows[start:stop]
        start = stop
