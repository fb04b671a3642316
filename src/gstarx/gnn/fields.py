"""The fields of a graph: what each belongs to, and what a batch of coalitions keeps of it.

Which tensors belong to nodes and which to edges, and which name nodes or edges, follows PyG's own
conventions for ``Data``:

| role | a field that | in a coalition |
|---|---|---|
| `node` | has a row for every node | the rows of its nodes |
| `edge` | has a row for every edge | the rows of its edges |
| `ids` | names nodes | renumbered; columns that name an absent node are dropped |
| `edge_ids` | names edges | renumbered; columns that name an absent edge are dropped |
| `rest` | belongs to the whole graph | unchanged |

A class of ``Data`` says what a field names by ``__inc__``, the number that PyG's loaders add to it
for the next graph: the number of nodes, the number of edges, or 0. A plain ``Data`` says it by the
field's name: ``index`` or ``face`` names nodes, except that a field of one dimension whose name
ends in ``edge_index``, such as ``rev_edge_index``, names edges.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gstarx.gnn.batching import UnionBatch
from gstarx.gnn.hetero import check_edge_index, check_ends, counted_nodes, view_of
from gstarx.gnn.shared_rows import SharedRows

#: Set by the batch, never taken from the data.
FROM_BATCH = frozenset(
    {"batch", "batch_size", "ptr", "num_nodes", "edge_index", "edge_label_index"}
)
#: What every field of a graph belongs to, by name.
Roles = dict[str, str]


def roles_of(data: Data) -> Roles:
    """What every field of a graph belongs to.

    To be asked of the whole graph only: the sizes of a part of it may coincide.

    Examples
    --------
    >>> edges = torch.tensor([[0, 1], [1, 0]])
    >>> roles_of(Data(torch.ones(2, 1), edges, rev_edge_index=torch.tensor([1, 0])))
    {'x': 'node', 'rev_edge_index': 'edge_ids'}
    """
    declared = _with_unmistakable_size(data) if _has_own_inc(data) else None
    roles: Roles = {}
    for key, value in data:
        if key in FROM_BATCH:
            continue
        dense = isinstance(value, Tensor) and value.layout == torch.strided
        named = _named_by(key, value, declared) if dense else ""
        if named:
            roles[key] = named
        elif dense and value.dim() > 0 and data.is_node_attr(key):
            roles[key] = "node"
        elif dense and value.dim() > 0 and data.is_edge_attr(key):
            roles[key] = "edge"
        else:
            roles[key] = "rest"
        if roles[key] == "edge_ids":
            _check_edge_ids(key, value, int(data.edge_index.shape[1]))
    return roles


def graphs_in(data: Data) -> int:
    """How many graphs a batch holds, or its batch vector tells apart; one where there is none."""
    if isinstance(data, Batch):
        return int(data.num_graphs)
    batch = data.get("batch")
    return int(batch.max()) + 1 if isinstance(batch, Tensor) and batch.numel() else 1


def check_data(data: Any) -> Data:
    """One homogeneous graph with nodes, or an error that says what it is instead.

    Of a heterogeneous graph, its homogeneous view.
    """
    if isinstance(data, HeteroData):
        return view_of(data)
    if not isinstance(data, Data):
        raise TypeError(
            f"data must be a torch_geometric.data.Data or HeteroData (got {type(data).__name__})"
        )
    if data.get("x") is not None and not isinstance(data.x, Tensor):
        raise TypeError(
            f"data.x must be a tensor (got {type(data.x).__name__}): use torch.as_tensor(x) or "
            "torch_geometric.data.Data(x=torch.as_tensor(x), ...)"
        )
    check_edge_index(data.edge_index, "data.edge_index", _where_edges_go(data))
    count = _num_nodes(data)
    check_ends(data.edge_index, "data.edge_index", (count, count))
    if graphs_in(data) > 1:
        raise ValueError(
            f"data holds {graphs_in(data)} graphs: explain one at a time, or use explain_many"
        )
    return data


def _where_edges_go(data: Data) -> str:
    """How to go on where the edges have another name or are a sparse adjacency matrix."""
    if "adj_t" not in data:
        fields = ", ".join(sorted(data.keys())) or "nothing"
        return (
            f". The data has {fields}. Edges belong in edge_index and features of nodes in x, "
            "whatever the model calls its first two arguments, which get them"
        )
    return (
        ". The data has adj_t: give it edge_index with "
        "torch_geometric.utils.to_edge_index(data.adj_t)[0].flip(0), and let the model take "
        "edge_index, or wrap it in a function that builds adj_t from edge_index"
    )


def _num_nodes(data: Data) -> int:
    """Number of nodes, which has to be known: isolated nodes are in no edge."""
    try:
        count = int(data.num_nodes or 0) if "x" in data else counted_nodes(data)
    except UserWarning:
        raise ValueError(
            f"the number of nodes is not known: give the data x or num_nodes (it has "
            f"{', '.join(sorted(data.keys()))})"
        ) from None
    if not count:
        raise ValueError("the graph has no nodes: there is nothing to explain")
    return count


def cut(data: Data, roles: Roles, nodes: NDArray[np.int64], edges: NDArray[np.int64]) -> Data:
    """The part of a graph with some nodes and edges, ascending, and all its fields cut down.

    Those that name nodes or edges are renumbered, less the columns that name an absent one.
    """
    at = {"node": torch.from_numpy(nodes), "edge": torch.from_numpy(edges)}
    fields = {}
    for key, role in roles.items():
        value = data[key]
        if role in at:
            value = value[at[role].to(value.device)]
        elif role == "ids":
            place = torch.full((int(data.num_nodes or 0),), -1, dtype=torch.long)
            place[at["node"]] = torch.arange(len(nodes))
            value = _present(place[_as_row(value.cpu())])
        elif role == "edge_ids":
            kept = torch.zeros(data.edge_index.shape[1], dtype=torch.bool)
            kept[at["edge"]] = True
            value = edges_moved(key, value.cpu(), kept)
        fields[key] = value
    ends = np.searchsorted(nodes, data.edge_index.cpu()[:, at["edge"]].numpy())
    return Data(edge_index=torch.from_numpy(ends), num_nodes=len(nodes), **fields)


def _as_row(ids: Tensor) -> Tensor:
    return ids.reshape(1) if ids.dim() == 0 else ids


def _present(columns: Tensor) -> Tensor:
    """The columns of renumbered ids in which all are present."""
    return columns[..., (columns[None].flatten(0, -2) >= 0).all(dim=0)]


class EdgeNamingData(Data):  # type: ignore[misc]
    """A graph whose fields that name edges PyG's loaders renumber by edges, not by nodes.

    They are those of one dimension whose names end in ``edge_index``.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key != "edge_index" and key.endswith("edge_index") and value.dim() == 1:
            return self.edge_index.shape[1]
        return super().__inc__(key, value, *args, **kwargs)


def batched(graphs: Iterable[Data]) -> Batch:
    """A batch of graphs in which fields that name edges name those of the batch."""
    listed = list(graphs)
    if listed and "edge_ids" in roles_of(listed[0]).values():
        listed = [
            graph if _has_own_inc(graph) else EdgeNamingData.from_dict(graph.to_dict())
            for graph in listed
        ]
    return Batch.from_data_list(listed)


def _has_own_inc(data: Data) -> bool:
    """Whether the class of a graph says by itself what its fields name."""
    return type(data).__inc__ is not Data.__inc__


def _with_unmistakable_size(data: Data) -> Data:
    """The graph with another number of nodes than edges, to tell what ``__inc__`` returns."""
    declared = copy.copy(data)
    if data.num_nodes == data.edge_index.shape[1]:
        declared.num_nodes = int(data.num_nodes or 0) + 1
    return declared


def _named_by(key: str, value: Tensor, declared: Data | None) -> str:
    """``"ids"`` of a field that names nodes, ``"edge_ids"`` of one that names edges, or nothing."""
    if value.is_floating_point() or value.dtype == torch.bool:
        return ""
    if declared is not None:
        added = declared.__inc__(key, value)
        if isinstance(added, int | np.integer) or (isinstance(added, Tensor) and added.dim() == 0):
            counts = {int(declared.num_nodes or 0): "ids", declared.edge_index.shape[1]: "edge_ids"}
            return "" if int(added) == 0 else counts.get(int(added), "")
    if key.endswith("edge_index") and value.dim() == 1:
        return "edge_ids"
    return "ids" if "index" in key or key == "face" else ""


def _check_edge_ids(key: str, value: Tensor, count: int) -> None:
    for edge in (int(value.min()), int(value.max())) if value.numel() else ():
        if not 0 <= edge < count:
            raise ValueError(
                f"data.{key} names edges, so it must hold numbers in 0..{count - 1} (got {edge})"
            )


class GraphTensors:
    """The tensors of one graph on a device, sorted by what they belong to."""

    def __init__(self, data: Data, device: torch.device, roles: Roles) -> None:
        self.num_nodes = int(data.num_nodes or 0)
        self.device = device
        self.edge_index = np.ascontiguousarray(data.edge_index.cpu().numpy(), dtype=np.int64)
        fields: dict[str, dict[str, Any]] = {
            role: {} for role in ("node", "edge", "ids", "edge_ids", "rest")
        }
        for key, role in roles.items():
            value = data[key]
            fields[role][key] = value.to(device) if isinstance(value, Tensor) else value
        self.node, self.edge, self.rest = fields["node"], fields["edge"], fields["rest"]
        self._rows = {key: SharedRows(value) for key, value in self.node.items()}
        self.edge_ids: dict[str, NDArray[np.int64]] = {
            key: value.cpu().numpy().astype(np.int64) for key, value in fields["edge_ids"].items()
        }
        #: Nodes that some field names.
        self.named: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        if fields["ids"]:
            listed = [ids.cpu().numpy().reshape(-1) for ids in fields["ids"].values()]
            self.named = np.unique(np.concatenate(listed)).astype(np.int64)
        # a field of ids, in positions of ``named``
        lookup = torch.from_numpy(self.named).to(device)
        self.ids = {
            key: torch.searchsorted(lookup, _as_row(ids).contiguous())
            for key, ids in fields["ids"].items()
        }

    def part(self, batch: UnionBatch, named: NDArray[np.int64]) -> dict[str, Any]:
        """All fields for a batch of coalitions by name, given the places (k, m) of named nodes."""
        fields = self.chosen(batch.nodes, batch.edges, batch.ends, len(named))
        if self.ids:
            places = torch.from_numpy(np.ascontiguousarray(named)).to(self.device)
            fields |= {key: _inside(value, places) for key, value in self.ids.items()}
        if self.edge_ids:
            places_of = _EdgePlaces(batch, self.edge_index.shape[1], len(named))
            fields |= {
                key: torch.from_numpy(places_of(key, ids)).to(self.device)
                for key, ids in self.edge_ids.items()
            }
        return fields | {"batch": torch.from_numpy(batch.owner).to(self.device)}

    def chosen(
        self,
        nodes: NDArray[np.int64],
        edges: NDArray[np.int64],
        ends: NDArray[np.int64],
        count: int,
    ) -> dict[str, Any]:
        """Fields of some nodes and edges by name, and those of a graph for ``count`` graphs.

        Fields that name nodes or edges are not among them.
        """
        at_nodes, at_edges, edge_index = (
            torch.from_numpy(array).to(self.device) for array in (nodes, edges, ends)
        )
        fields: dict[str, Any] = {
            key: value.expand(count, *value.shape[1:])
            if isinstance(value, Tensor) and value.dim() > 0 and len(value) == 1
            else value
            for key, value in self.rest.items()
        }
        fields |= {key: rows.gathered(at_nodes) for key, rows in self._rows.items()}
        fields |= {key: value.index_select(0, at_edges) for key, value in self.edge.items()}
        return fields | {"edge_index": edge_index, "batch_size": count, "num_nodes": len(nodes)}


def _inside(ids: Tensor, places: Tensor) -> Tensor:
    """Node ids (K,) or (r, K) in the batch's numbering, where all of a column are present."""
    moved = places[:, ids[None].flatten(0, -2)]
    kept = moved.permute(1, 0, 2)[:, (moved >= 0).all(dim=1)]
    return kept.reshape(*ids.shape[:-1], -1)


class _EdgePlaces:
    """From edges of the graph to those of a batch of coalitions."""

    def __init__(self, batch: UnionBatch, edges: int, coalitions: int) -> None:
        self._edges, self._coalitions, self._kept = edges, coalitions, batch.edges
        self._owner = batch.owner[batch.ends[0]]
        #: Coalition and edge of every edge of the batch in one number, ascending.
        self._known = self._owner * edges + batch.edges

    def __call__(self, key: str, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """A field of edge ids in the batch's numbering."""
        if ids.shape == (self._edges,):
            places, present = self._look_up(self._owner * self._edges + ids[self._kept])
            _require_all(key, present, self._kept, ids)
            return places
        columns = ids.reshape(-1, ids.shape[-1] if ids.ndim else 1)
        first = np.arange(self._coalitions)[:, None, None] * self._edges
        places, present = self._look_up(first + columns)
        kept = places.transpose(1, 0, 2)[:, present.all(axis=1)]
        return np.ascontiguousarray(kept.reshape(*ids.shape[:-1], -1))

    def _look_up(self, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self._known):
            return np.zeros_like(wanted), np.zeros(wanted.shape, dtype=np.bool_)
        places = np.searchsorted(self._known, wanted)
        nearest = self._known[np.minimum(places, len(self._known) - 1)]
        return places.astype(np.int64), nearest == wanted


def edges_moved(key: str, ids: Tensor, kept: Tensor) -> Tensor:
    """A field of edge ids after some edges were dropped; ``kept`` (E,) says which were not."""
    place = torch.full((len(kept),), -1, dtype=torch.long)
    place[kept] = torch.arange(int(kept.sum()))
    if ids.shape == kept.shape:
        moved = place[ids[kept]]
        _require_all(key, (moved >= 0).numpy(), np.flatnonzero(kept.numpy()), ids.numpy())
        return moved
    return _present(place[_as_row(ids)])


def _require_all(
    key: str, present: NDArray[np.bool_], edges: NDArray[np.int64], ids: NDArray[np.int64]
) -> None:
    """Raise unless all edges that kept edges name are kept as well."""
    if not present.all():
        edge = int(edges[np.flatnonzero(~present)[0]])
        raise ValueError(
            f"data.{key} names edge {int(ids[edge])} for edge {edge}, and a coalition can hold one "
            "without the other: the two must join the same nodes"
        )
