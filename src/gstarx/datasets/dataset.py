"""A dataset as the rest of the package sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import torch
from torch_geometric.data import Data


@dataclass(frozen=True)
class UnreadableRow:
    """A row of a raw file that gave no graph.

    Attributes
    ----------
    line
        Its line in the file, from one.
    text
        What could not be read, as it is written there.
    """

    line: int
    text: str


@dataclass(frozen=True)
class Statistics:
    """The size of a dataset, as papers print it.

    Attributes
    ----------
    graphs
        Number of graphs.
    mean_nodes
        Nodes of a graph, on average.
    mean_edges
        Directed edges of a graph, on average: the columns of ``edge_index``.
    mean_undirected_edges
        Pairs of nodes joined by an edge, on average. A self-loop is such a pair.
    features
        Features of a node.
    classes
        Number of classes.
    """

    graphs: int
    mean_nodes: float
    mean_edges: float
    mean_undirected_edges: float
    features: int
    classes: int


@dataclass(frozen=True)
class GraphDataset(Sequence[Data]):
    """Graphs, and how they are split; indexes and iterates like a list of PyG ``Data``.

    Attributes
    ----------
    name
        The name it was loaded by.
    graphs
        The graphs.
    num_classes
        Number of classes.
    split_indices
        Positions of the ``"train"``, ``"val"`` and ``"test"`` graphs.
    source
        Where the data comes from.
    license
        On what terms.
    description
        What a graph is, and what its label says.
    unreadable
        Rows of the raw file that gave no graph.
    class_names
        What each class stands for, in order; empty where nobody said.
    """

    name: str
    graphs: tuple[Data, ...]
    num_classes: int
    split_indices: dict[str, list[int]]
    source: str = ""
    license: str = ""
    description: str = ""
    unreadable: tuple[UnreadableRow, ...] = ()
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Data]: ...
    def __getitem__(self, index: int | slice) -> Data | Sequence[Data]:
        return self.graphs[index]

    def split(self, name: str) -> list[Data]:
        """The graphs of one split: ``"train"``, ``"val"`` or ``"test"``."""
        if name not in self.split_indices:
            valid = ", ".join(map(repr, self.split_indices))
            raise ValueError(f"split must be one of {valid} (got {name!r})")
        return [self.graphs[i] for i in self.split_indices[name]]

    def statistics(self) -> Statistics:
        """Number and mean size of the graphs.

        >>> path = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> statistics = GraphDataset("path", (path,), 2, {}).statistics()
        >>> statistics.mean_edges, statistics.mean_undirected_edges
        (4.0, 2.0)
        """
        count = len(self.graphs)
        if not count:
            raise ValueError(f"{self.name!r} holds no graphs: they have no mean")
        nodes = torch.tensor([graph.x.shape[0] for graph in self.graphs])
        starts = nodes.cumsum(0) - nodes
        edges = torch.cat(
            [g.edge_index + at for g, at in zip(self.graphs, starts.tolist(), strict=True)], dim=1
        )
        pairs = edges.min(dim=0).values * int(nodes.sum()) + edges.max(dim=0).values
        return Statistics(
            graphs=count,
            mean_nodes=int(nodes.sum()) / count,
            mean_edges=edges.shape[1] / count,
            mean_undirected_edges=len(torch.unique(pairs)) / count,
            features=self.graphs[0].x.shape[1],
            classes=self.num_classes,
        )

    @cached_property
    def digest(self) -> str:
        """A digest of features, edges and labels: equal content, equal digest."""
        sha = hashlib.sha256()
        for graph in self.graphs:
            for part in (graph.x, graph.edge_index, graph.y):
                sha.update(str(tuple(part.shape)).encode())
                sha.update(part.contiguous().numpy().tobytes())
        return sha.hexdigest()

    def __repr__(self) -> str:
        return f"GraphDataset({self.name!r}, {len(self)} graphs, {self.num_classes} classes)"
