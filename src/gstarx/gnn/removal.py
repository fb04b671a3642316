"""What it means that a node is not there: three ways, and the user's own.

| name | features | edges | nodes the readout sees |
|---|---|---|---|
| `remove` | absent rows dropped | induced on the coalition | the coalition |
| `split` | unchanged | kept where both ends are in the coalition | all |
| `zero_filling` | absent rows set to zero | unchanged | all |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx.gnn.batching import UnionBatch
from gstarx.gnn.fields import GraphTensors, edges_moved
from gstarx.graphs import Masks, pack, unpack

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
        Nodes that are there whatever the coalition; their edges only when the coalition has them.
    """

    name: str
    data: Data
    tensors: GraphTensors
    anchors: NDArray[np.int64]
    function: Callable[[Data, Tensor], Data] | None = None

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
            asked=np.concatenate([self.anchors, self.tensors.named]),
        )
        at_anchors, at_named = np.split(batch.places, [len(self.anchors)], axis=1)
        fields = self.tensors.part(batch, at_named)
        if self.name == "zero_filling":
            inside = unpack(masks, self.tensors.num_nodes)
            inside[:, self.anchors] = True
            x = fields["x"]
            gone = torch.from_numpy(~inside.reshape(-1)).to(x.device)
            fields["x"] = x.masked_fill(gone.reshape(-1, *[1] * (x.dim() - 1)), 0)
        return fields, at_anchors

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


def resolve_removal(
    removal: RemovalLike, data: Data, tensors: GraphTensors, anchors: NDArray[np.int64]
) -> Removal:
    """The removal asked for, or an error that lists the names."""
    if callable(removal):
        return Removal("callable", data, tensors, anchors, removal)
    if removal not in REMOVALS:
        valid = ", ".join(map(repr, REMOVALS))
        raise ValueError(f"removal must be a function or one of {valid} (got {removal!r})")
    if removal == "zero_filling" and "x" not in tensors.node:
        raise ValueError("removal='zero_filling' needs node features x, and the data has none")
    return Removal(removal, data, tensors, anchors)
