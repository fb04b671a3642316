"""What it means that a node, an edge or a column of features is not there.

For nodes there are three ways, and the user's own:

| name | features | edges | nodes the readout sees |
|---|---|---|---|
| `remove` | absent rows dropped | induced on the coalition | the coalition |
| `split` | unchanged | kept where both ends are in the coalition | all |
| `zero_filling` | absent rows set to zero | unchanged | all |

A removal takes packed coalitions of *units*: nodes, columns of ``edge_index``, or columns of
features. Which units belong to which player is not its business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx._internal.cached import cached_property
from gstarx.gnn.batching import UnionBatch, coalition_sizes, with_edges
from gstarx.gnn.fields import GraphTensors, edges_moved
from gstarx.gnn.hetero import hetero_of
from gstarx.graphs import Masks, pack, unpack
from gstarx.players import Edges, Features

REMOVALS = ("remove", "split", "zero_filling")
#: A name, or a function from a graph and a boolean coalition (n,) to the graph it leaves.
RemovalLike = str | Callable[[Data, Tensor], Data]


@dataclass(frozen=True)
class Removal:
    """One way of taking nodes away, for a graph with some nodes that always stay.

    Attributes
    ----------
    name
        ``"remove"``, ``"split"``, ``"zero_filling"`` or ``"callable"``.
    anchors
        Nodes that are present whatever the coalition; their edges only when the coalition has them.
    """

    name: str
    data: Data
    tensors: GraphTensors
    anchors: NDArray[np.int64]
    function: Callable[[Data, Tensor], Data] | None = None

    @property
    def num_units(self) -> int:
        """How many nodes, edges or columns can be present or absent."""
        return self.tensors.num_nodes

    @property
    def by_edges(self) -> bool:
        """Whether edges are the units, so that all nodes are present."""
        return False

    @property
    def draws(self) -> int:
        """How many graphs stand for one coalition, where absent features are drawn."""
        return 1

    @property
    def entire(self) -> Removal:
        """The removal that leaves the whole graph where everybody is present."""
        return self

    def of_draw(self, at: int) -> Removal:
        """The removal with one of its draws only."""
        return self

    def with_edges(self, masks: Masks) -> NDArray[np.bool_]:
        """Which of packed coalitions of units leave an edge of the graph, (k,)."""
        if self.function is not None:
            return np.ones(len(masks), dtype=np.bool_)  # nobody knows what it leaves
        return with_edges(masks, self.tensors.edge_index, self.linked)

    def sizes(self, masks: Masks) -> NDArray[np.int64]:
        """Nodes that go through the model for every packed coalition of units."""
        return coalition_sizes(masks, self.present)

    @cached_property
    def present(self) -> Masks:
        """Nodes that every coalition keeps, packed (1, words)."""
        kept = np.zeros((1, self.tensors.num_nodes), dtype=np.bool_)
        kept[0, self.anchors if self.name == "remove" else slice(None)] = True
        return pack(kept)

    @cached_property
    def linked(self) -> Masks | None:
        """Nodes whose edges every coalition keeps, packed (1, words)."""
        if self.name != "zero_filling":
            return None
        kept = np.ones((1, self.tensors.num_nodes), dtype=np.bool_)
        kept[0, self.anchors] = False
        return pack(kept)

    def fields(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for packed coalitions, and each anchor's place in the batch (k, anchors)."""
        if self.function is not None:
            return self._called(masks)
        batch = UnionBatch.of(
            masks,
            self.tensors.num_nodes,
            self.tensors.edge_index,
            present=self.present,
            linked=self.linked,
            wanted=self._wanted,
        )
        fields, at_anchors = self._part(batch)
        if self.name == "zero_filling":
            inside = unpack(masks, self.tensors.num_nodes)
            inside[:, self.anchors] = True
            x = fields["x"]
            gone = torch.from_numpy(~inside.reshape(-1)).to(x.device)
            fields["x"] = x.masked_fill(gone.reshape(-1, *[1] * (x.dim() - 1)), 0)
        return fields, at_anchors

    @property
    def _wanted(self) -> NDArray[np.int64]:
        """Nodes whose places in a batch are asked for: anchors, and those that fields name."""
        return np.concatenate([self.anchors, self.tensors.named])

    def _part(self, batch: UnionBatch) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for a batch, and each anchor's place in it."""
        at_anchors, at_named = np.split(batch.places, [len(self.anchors)], axis=1)
        return self.tensors.part(batch, at_named), at_anchors

    def _called(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        graphs = [self._left(inside) for inside in unpack(masks, self.tensors.num_nodes)]
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        if len(self.anchors) and (sizes != self.tensors.num_nodes).any():
            raise ValueError(
                "a removal of your own must keep the number of nodes where an output is read at a "
                f"node (got {sizes[sizes != self.tensors.num_nodes][0]} of "
                f"{self.tensors.num_nodes})"
            )
        union = Batch.from_data_list(graphs).to(self.tensors.device)
        places = (np.cumsum(sizes) - sizes)[:, None] + self.anchors
        fields = {key: value for key, value in union if key != "ptr"}
        # numbers and words are passed as they are, not as a tensor or list of them
        fields |= {key: value for key, value in graphs[0] if not isinstance(value, Tensor)}
        # PyG adds numbers of edges to these only where the class of the data says so
        before = np.cumsum([0, *(graph.edge_index.shape[1] for graph in graphs)]).tolist()
        for key in self.tensors.edge_ids:
            moved = [graph[key] + first for graph, first in zip(graphs, before, strict=False)]
            fields[key] = torch.cat(moved, dim=-1).to(self.tensors.device)
        return fields | {"batch_size": len(graphs), "num_nodes": int(sizes.sum())}, places

    def _left(self, inside: NDArray[np.bool_]) -> Data:
        """What the user's function leaves of the graph, less the edges of absent anchors."""
        assert self.function is not None
        nodes = inside.copy()
        nodes[self.anchors] = True
        left = self.function(self.data, torch.from_numpy(nodes))
        if not isinstance(left, Data):
            raise TypeError(f"a removal must return a Data object (got {type(left).__name__})")
        absent = torch.from_numpy(self.anchors[~inside[self.anchors]]).to(left.edge_index.device)
        if len(absent):
            kept = ~torch.isin(left.edge_index, absent).any(dim=0)
            named = {key: edges_moved(key, left[key].cpu(), kept) for key in self.tensors.edge_ids}
            left = left.edge_subgraph(kept)
            for key, edges in named.items():
                left[key] = edges
        return left


@dataclass(frozen=True)
class EdgeRemoval(Removal):
    """All nodes stay, and only some of the columns of ``edge_index`` with them."""

    @property
    def num_units(self) -> int:
        """The number of edges."""
        return int(self.tensors.edge_index.shape[1])

    @property
    def by_edges(self) -> bool:
        """Edges are the units."""
        return True

    def with_edges(self, masks: Masks) -> NDArray[np.bool_]:
        """Which of packed coalitions of edges have one, (k,)."""
        return np.asarray(masks.any(axis=1))

    def sizes(self, masks: Masks) -> NDArray[np.int64]:
        """All nodes for every coalition."""
        return np.full(len(masks), self.tensors.num_nodes)

    @cached_property
    def present(self) -> Masks:
        """All nodes, packed (1, words)."""
        return pack(np.ones((1, self.tensors.num_nodes), dtype=np.bool_))

    @cached_property
    def linked(self) -> Masks | None:
        """All nodes: whether an edge is present does not depend on its ends."""
        return self.present

    def fields(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for packed coalitions of edges, and the anchors' places."""
        kept = unpack(masks, self.num_units)
        return self._fields(kept, np.ones((len(kept), self.tensors.num_nodes), dtype=np.bool_))

    def _fields(
        self, kept: NDArray[np.bool_], there: NDArray[np.bool_]
    ) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for edges (k, E) and nodes (k, n), which have all ends of the edges."""
        place = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
        owner, nodes = np.nonzero(there)
        row, edges = np.nonzero(kept)
        ends = place[row, self.tensors.edge_index[:, edges]]
        return self._part(UnionBatch(nodes, owner, ends, edges, place[:, self._wanted]))


@dataclass(frozen=True)
class TouchedRemoval(EdgeRemoval):
    """Only some of the edges stay, and the nodes at their ends with them."""

    @property
    def entire(self) -> Removal:
        """Nodes without edges are there as well."""
        return EdgeRemoval(**{field.name: getattr(self, field.name) for field in fields(self)})

    def sizes(self, masks: Masks) -> NDArray[np.int64]:
        """The nodes that the edges of every coalition touch."""
        there = self._there(unpack(masks, self.num_units))
        return np.asarray(there.sum(axis=1), dtype=np.int64)

    def fields(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for packed coalitions of edges, and the anchors' places."""
        kept = unpack(masks, self.num_units)
        there = self._there(kept)
        return self._fields(kept & there[:, self.tensors.edge_index].all(axis=1), there)

    def _there(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        source, target = self.tensors.edge_index
        there = np.zeros((len(kept), self.tensors.num_nodes), dtype=np.bool_)
        row, edge = np.nonzero(kept & (source != target))
        there[row, source[edge]] = there[row, target[edge]] = True
        there[:, self.anchors] = True
        return there


@dataclass(frozen=True)
class FeatureRemoval(Removal):
    """All nodes and edges stay, and absent columns of features are replaced.

    Attributes
    ----------
    replaced
        The field that loses columns.
    reference
        What its values are replaced by, (draws, rows, columns).
    """

    replaced: str = "x"
    reference: Tensor | None = None

    @property
    def num_units(self) -> int:
        """The number of columns."""
        assert self.reference is not None
        return self.reference.shape[2]

    @property
    def draws(self) -> int:
        """How many graphs stand for one coalition."""
        assert self.reference is not None
        return self.reference.shape[0]

    def of_draw(self, at: int) -> Removal:
        """The removal with one of its draws only."""
        assert self.reference is not None
        return replace(self, reference=self.reference[at : at + 1])

    def with_edges(self, masks: Masks) -> NDArray[np.bool_]:
        """All edges stay."""
        return np.ones(len(masks), dtype=np.bool_)

    def sizes(self, masks: Masks) -> NDArray[np.int64]:
        """All nodes for every coalition and draw."""
        return np.full(len(masks), self.tensors.num_nodes * self.draws)

    def fields(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for packed coalitions of columns, and the anchors' places."""
        assert self.reference is not None
        kept = torch.from_numpy(unpack(masks, self.num_units)).to(self.tensors.device)
        count = len(masks) * self.draws
        size, edges = self.tensors.num_nodes, self.tensors.edge_index
        fields, at_anchors = self._part(UnionBatch.copies(size, edges, count, self._wanted))
        own = fields[self.replaced]
        shape = (len(masks), *self.reference.shape)
        mixed = torch.where(kept[:, None, None], own.reshape(shape), self.reference.to(own))
        fields[self.replaced] = mixed.reshape(own.shape)
        return fields, at_anchors


def resolve_removal(
    removal: RemovalLike, data: Data, tensors: GraphTensors, anchors: NDArray[np.int64]
) -> Removal:
    """The requested removal, or an error that lists the names."""
    graph = hetero_of(data)
    if callable(removal):
        if graph is not None:
            raise ValueError(
                "a removal of your own is for homogeneous graphs: for heterogeneous ones it is one "
                f"of {', '.join(map(repr, REMOVALS))}"
            )
        return Removal("callable", data, tensors, anchors, removal)
    if removal not in REMOVALS:
        valid = ", ".join(map(repr, REMOVALS))
        raise ValueError(f"removal must be a function or one of {valid} (got {removal!r})")
    if removal == "zero_filling" and "x" not in tensors.node:
        raise ValueError("removal='zero_filling' needs node features x, and the data has none")
    if removal == "zero_filling" and graph is not None:
        without = [t for t in graph.node_types if graph.count(t) and "x" not in graph.data[t]]
        if without:
            raise ValueError(
                "removal='zero_filling' needs node features x of every type, and "
                f"{' and '.join(map(repr, without))} has none"
            )
    return Removal(removal, data, tensors, anchors)


def removal_of(
    players: Edges | Features,
    data: Data,
    tensors: GraphTensors,
    anchors: NDArray[np.int64],
    reference: Tensor | None,
) -> Removal:
    """The removal of players that are edges, or features with what replaces them."""
    if isinstance(players, Edges):
        kind = TouchedRemoval if players.touched else EdgeRemoval
        return kind("edges", data, tensors, anchors)
    assert reference is not None
    rows = reference.to(tensors.device)
    return FeatureRemoval("features", data, tensors, anchors, None, players.field, rows)
