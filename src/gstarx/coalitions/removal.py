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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx.coalitions.batching import UnionBatch
from gstarx.coalitions.signature import GraphTensors
from gstarx.graphs.bitmasks import Masks, pack, unpack

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

    @property
    def present(self) -> Masks:
        """Nodes that every coalition keeps, packed (1, words)."""
        kept = np.zeros((1, self.tensors.num_nodes), dtype=np.bool_)
        kept[0, self.anchors if self.name == "remove" else slice(None)] = True
        return pack(kept)

    def fields(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Model inputs for packed coalitions, and each graph node's place in the batch (k, n)."""
        if self.function is not None:
            return self._called(masks)
        present = self.present
        everything = present if self.name == "zero_filling" else None
        ends = self.tensors.edge_index.cpu().numpy()
        batch = UnionBatch.of(
            masks, self.tensors.num_nodes, ends, present=present, linked=everything
        )
        fields = self.tensors.part(batch, len(masks))
        if self.name == "zero_filling":
            inside = unpack(masks, self.tensors.num_nodes)
            inside[:, self.anchors] = True
            x = fields["x"]
            keep = torch.from_numpy(inside.reshape(-1)).to(x.device)
            fields["x"] = x * keep.reshape(-1, *[1] * (x.dim() - 1))
        return fields, batch.places

    def _called(self, masks: Masks) -> tuple[dict[str, Any], NDArray[np.int64]]:
        assert self.function is not None
        device = self.tensors.edge_index.device
        graphs = []
        for inside in unpack(masks, self.tensors.num_nodes):
            kept = inside.copy()
            kept[self.anchors] = True
            left = self.function(self.data, torch.from_numpy(kept))
            if not isinstance(left, Data):
                raise TypeError(f"a removal must return a Data object (got {type(left).__name__})")
            graphs.append(left)
        union = Batch.from_data_list(graphs).to(device)
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        places = (np.cumsum(sizes) - sizes)[:, None] + np.arange(self.tensors.num_nodes)
        if len(self.anchors) and (sizes != self.tensors.num_nodes).any():
            raise ValueError(
                "a removal of your own must keep the number of nodes where an output is read at a "
                f"node (got {sizes[sizes != self.tensors.num_nodes][0]} of "
                f"{self.tensors.num_nodes})"
            )
        fields = {key: value for key, value in union if key != "ptr"}
        return fields | {"batch_size": len(graphs)}, places


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
