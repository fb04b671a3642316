"""Graphs that lie behind each other, as a batch vector of PyG says, taken apart again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn.fields import graphs_in, roles_of
from gstarx.gnn.self_check import difference, rounding, size_of


def as_one_graph(data: Data) -> Data:
    """The same nodes and edges without the fields of a batch."""
    of_batch = ("batch", "batch_size", "ptr")
    kept = {key: value for key, value in data if key not in of_batch}
    return Data(**{"num_nodes": int(data.num_nodes or 0), **kept})


@dataclass(frozen=True, eq=False)
class SeparateGraph:
    """One of several graphs.

    Attributes
    ----------
    data
        The graph.
    nodes, edges
        Numbers of its nodes and edges among those of all graphs.
    """

    data: Data
    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]

    @classmethod
    def of(cls, data: Data, number: int, pair: int | None = None) -> SeparateGraph:
        """A graph by its number in the batch vector, with one column of ``edge_label_index``.

        Of a field with a row for every graph it has its own row.
        """
        batch = data.batch.cpu().numpy()
        nodes = np.flatnonzero(batch == number)
        edges = np.flatnonzero(batch[data.edge_index[0].cpu().numpy()] == number)
        at = {"node": torch.from_numpy(nodes), "edge": torch.from_numpy(edges)}
        count = graphs_in(data)
        fields = {}
        for key, role in roles_of(as_one_graph(data)).items():
            value = data[key]
            if role in at:
                value = value[at[role].to(value.device)]
            elif role != "rest":
                raise ValueError(
                    f"{key!r} names nodes or edges of {count} graphs, which cannot be told apart: "
                    "explain one graph at a time"
                )
            elif isinstance(value, Tensor) and value.dim() and len(value) == count:
                value = value[number : number + 1]
            fields[key] = value
        if pair is not None:
            fields["edge_label_index"] = _moved(data.edge_label_index[:, [pair]], nodes)
        ends = _moved(data.edge_index[:, at["edge"].to(data.edge_index.device)], nodes)
        made = Data(edge_index=ends, num_nodes=len(nodes), **fields)
        return cls(made, nodes, edges)


def _moved(ends: Tensor, nodes: NDArray[np.int64]) -> Tensor:
    places = np.searchsorted(nodes, ends.cpu().numpy())
    return torch.from_numpy(places).to(ends.device)


def edge_between_graphs(data: Data) -> int | None:
    """A column of ``edge_index`` that joins nodes of different graphs, if there is one."""
    of_graph = data.batch[data.edge_index.to(data.batch.device)]
    columns = (of_graph[0] != of_graph[1]).nonzero()
    return int(columns[0]) if len(columns) else None


def same_outputs(one: Tensor, other: Tensor, everything: Tensor) -> bool:
    """Whether outputs are the same up to rounding, given all outputs of the model."""
    return difference(one, other) <= rounding(other.dtype) * size_of(everything)
