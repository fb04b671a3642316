"""Many graphs as a few long tensors, which mini-batches are sliced from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

_MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class GraphBatch:
    """A mini-batch.

    Attributes
    ----------
    x, edge_index, batch
        Features, edges, and the graph of every node, as in PyG batches.
    y
        Labels of the graphs, or of the nodes that count; a row of numbers for several targets.
    rows
        The nodes that count, for labels of nodes; ``None`` for labels of graphs.
    """

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor
    rows: Tensor | None


@dataclass(frozen=True)
class CollatedGraphs:
    """Graphs concatenated into long tensors.

    A batch takes a few tensor operations, however many graphs it has, and its features are
    converted at that point: they may be stored here in half precision.

    Attributes
    ----------
    x, edge_index, y
        Features, edges and labels of all graphs; nodes are numbered within their graph.
    node_offsets, edge_offsets
        Where the nodes and edges of every graph begin, and after the last one where they end.
    masks
        Masks over all nodes by name, if the graphs have them.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    node_offsets: Tensor
    edge_offsets: Tensor
    masks: dict[str, Tensor]

    @classmethod
    def of(cls, graphs: Sequence[Data], *, targets: int | None = None) -> CollatedGraphs:
        """Concatenate graphs; every one needs ``x``, ``edge_index`` and ``y``.

        Labels are classes, or with ``targets`` so many numbers for every graph.
        """
        if not len(graphs):
            raise ValueError("there must be at least one graph (got none)")
        xs, edges, ys = [], [], []
        for position, graph in enumerate(graphs):
            missing = [name for name in ("x", "edge_index", "y") if graph.get(name) is None]
            if missing or not len(graph.x):
                problem = f"no {missing[0]}" if missing else "no nodes"
                raise ValueError(f"graph {position} of {len(graphs)} has {problem}")
            xs.append(graph.x.cpu())
            edges.append(graph.edge_index.cpu())
            ys.append(graph.y.reshape(-1).cpu())
            if targets is not None and len(ys[-1]) != targets:
                raise ValueError(
                    f"graph {position} of {len(graphs)} must have {targets} labels, one for each "
                    f"target (got {len(ys[-1])})"
                )
        sizes = [len(x) for x in xs]
        one_each = targets is not None or all(len(y) == 1 for y in ys)
        if not one_each and [len(y) for y in ys] != sizes:
            raise ValueError("every graph must have one label, or every graph one for each node")
        named = [name for name in _MASKS if all(name in graph for graph in graphs)]
        return cls(
            x=torch.cat(xs),
            edge_index=torch.cat(edges, dim=1),
            y=torch.cat(ys).long() if targets is None else torch.stack(ys).float(),
            node_offsets=_offsets(sizes),
            edge_offsets=_offsets([e.shape[1] for e in edges]),
            masks={name: torch.cat([g[name].cpu() for g in graphs]).bool() for name in named},
        )

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def node_level(self) -> bool:
        """Whether the labels are node labels."""
        return len(self.y) != len(self)

    def batch(
        self,
        ids: Tensor,
        *,
        device: torch.device,
        dtype: torch.dtype,
        mask: Tensor | None = None,
    ) -> GraphBatch:
        """The graphs at positions ``ids``; ``mask`` says which nodes count, by default all."""
        nodes, sizes = _ranges(self.node_offsets, ids)
        edges, edge_counts = _ranges(self.edge_offsets, ids)
        begins = sizes.cumsum(0) - sizes
        ends = self.edge_index[:, edges] + torch.repeat_interleave(begins, edge_counts)
        owner = torch.repeat_interleave(torch.arange(len(ids)), sizes)
        rows = None
        labels = self.y[ids if not self.node_level else nodes]
        if self.node_level:
            rows = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask[nodes]
            labels = labels[rows]
        return GraphBatch(
            x=self.x[nodes].to(device=device, dtype=dtype),
            edge_index=ends.to(device),
            batch=owner.to(device),
            y=labels.to(device),
            rows=None if rows is None else rows.to(device),
        )


def _offsets(sizes: list[int]) -> Tensor:
    return torch.tensor([0, *sizes]).cumsum(0)


def _ranges(offsets: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The positions from one offset to the next for every id, in a row; and how many for each."""
    starts = offsets[ids]
    sizes = offsets[ids + 1] - starts
    ends = sizes.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    return torch.arange(total) + torch.repeat_interleave(starts - ends + sizes, sizes), sizes
