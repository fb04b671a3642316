"""A dataset as the rest of the package sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from torch_geometric.data import Data


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
    """

    name: str
    graphs: tuple[Data, ...]
    num_classes: int
    split_indices: dict[str, list[int]]

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
