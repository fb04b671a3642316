"""A heterogeneous graph as one homogeneous graph, on which games are played as on any other.

The nodes of all types are numbered one after the other, and so are the edges of all relations. A
coalition is a set of these nodes. Only when the model is called are they sorted by type again, see
:mod:`gstarx.gnn.hetero_call`.

| field of the view | a row for every | |
|---|---|---|
| `node_id` | node | its number among the nodes of all types |
| `x` | node | 1 if its features show, 0 if they are set to zero, 2 if they are disturbed |
| `node_type` | node | the name of its type |
| `edge_id` | edge | its number among the edges of all relations |
| `hetero` | | the :class:`HeteroGraph` that these numbers refer to |
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gstarx._internal.cached import cached_property
from gstarx._internal.messages import unknown

EdgeType = tuple[str, str, str]
#: Values of ``x`` in a view: features as they are, set to zero, and with noise.
SHOWN, ZERO, DISTURBED = 1.0, 0.0, 2.0


@dataclass(frozen=True, eq=False)
class HeteroGraph:
    """A heterogeneous graph and the numbers of its nodes and edges in the homogeneous view.

    Attributes
    ----------
    data
        The graph.
    node_types, first_node
        The types of nodes, and the number of the first node of each, and of all nodes.
    edge_types, first_edge
        The same for the relations.
    output_type
        For node tasks: the type of the nodes that the model has outputs for.
    """

    data: HeteroData
    node_types: tuple[str, ...]
    first_node: NDArray[np.int64]
    edge_types: tuple[EdgeType, ...]
    first_edge: NDArray[np.int64]
    output_type: str | None = None
    _on_device: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: HeteroData, output_type: str | None = None) -> HeteroGraph:
        """Number the nodes and edges of a graph, or raise if something is wrong with it."""
        if isinstance(data, Batch) and data.num_graphs > 1:
            raise ValueError(
                f"data holds {data.num_graphs} graphs: explain one at a time, or use explain_many"
            )
        node_types = tuple(data.node_types)
        counts = {name: _num_nodes(data, name) for name in node_types}
        if not sum(counts.values()):
            raise ValueError("the graph has no nodes: there is nothing to explain")
        edge_types = tuple(tuple(relation) for relation in data.edge_types)
        sizes = [_num_edges(data, relation, counts) for relation in edge_types]
        made = cls(
            data,
            node_types,
            np.concatenate([[0], np.cumsum(list(counts.values()))]).astype(np.int64),
            edge_types,
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        )
        return made if output_type is None else made.with_output(output_type)

    def with_output(self, output_type: str) -> HeteroGraph:
        """The same graph, for a model with outputs for the nodes of a type."""
        self.require_type(output_type, "node_type")
        return replace(self, output_type=output_type)

    @property
    def num_nodes(self) -> int:
        """The number of nodes of all types."""
        return int(self.first_node[-1])

    def count(self, node_type: str) -> int:
        """The number of nodes of a type."""
        at = self.node_types.index(node_type)
        return int(self.first_node[at + 1] - self.first_node[at])

    def rows(self, node_type: str) -> slice:
        """Where the nodes of a type are among those of all types."""
        at = self.node_types.index(node_type)
        return slice(int(self.first_node[at]), int(self.first_node[at + 1]))

    @cached_property
    def type_of(self) -> NDArray[np.int64]:
        """The position in ``node_types`` of the type of every node."""
        return np.repeat(np.arange(len(self.node_types)), np.diff(self.first_node))

    @cached_property
    def relation_of(self) -> NDArray[np.int64]:
        """The position in ``edge_types`` of the relation of every edge."""
        return np.repeat(np.arange(len(self.edge_types)), np.diff(self.first_edge))

    def pair(self, number: int) -> tuple[str, int]:
        """The type of a node and its number among the nodes of that type."""
        at = int(self.type_of[number])
        return self.node_types[at], int(number - self.first_node[at])

    def name(self, number: int) -> str:
        """What a node is called: its type and number."""
        node_type, node = self.pair(number)
        return f"{node_type} {node}"

    def number(self, node_type: str, node: int, name: str = "node_type") -> int:
        """The number of a node among those of all types."""
        self.require_type(node_type, name)
        if not 0 <= node < self.count(node_type):
            raise ValueError(
                f"{node_type!r} has nodes in 0..{self.count(node_type) - 1} (got {node})"
            )
        return int(self.rows(node_type).start) + node

    def numbers(self, nodes: Any) -> Any:
        """Numbers of nodes given as pairs of a type and a node, or as nodes or a mask by type.

        What is neither is taken for numbers or a mask already.
        """
        if isinstance(nodes, Mapping):
            chosen: list[int] = []
            for node_type, listed in nodes.items():
                self.require_type(node_type, "a type of nodes")
                values = np.asarray(listed.cpu() if isinstance(listed, Tensor) else listed)
                if values.dtype == np.bool_:
                    if values.shape != (self.count(node_type),):
                        raise ValueError(
                            f"a mask of {node_type!r} must have {self.count(node_type)} entries "
                            f"(got shape {values.shape})"
                        )
                    values = np.flatnonzero(values)
                chosen += [self.number(node_type, int(node)) for node in values.reshape(-1)]
            return np.array(chosen, dtype=np.int64)
        if isinstance(nodes, list | tuple | set | frozenset) and any(map(_is_pair, nodes)):
            wrong = [entry for entry in nodes if not _is_pair(entry)]
            if wrong:
                raise TypeError(f"nodes must be pairs of a type and a number (got {wrong[0]!r})")
            return np.array([self.number(*entry) for entry in nodes], dtype=np.int64)
        return nodes

    def require_type(self, name: Any, parameter: str) -> None:
        """Raise unless the graph has nodes of a type of that name."""
        if name not in self.node_types:
            raise ValueError(f"{parameter}: {unknown('type of nodes', str(name), self.node_types)}")

    def relations_named(self, relations: Iterable[Any]) -> list[int]:
        """Positions of relations given as triples, or by the name in the middle."""
        if isinstance(relations, str) or _is_triple(relations):
            raise TypeError(f"relations must be a list of them (got {relations!r})")
        numbers: list[int] = []
        for relation in relations:
            named = [
                at
                for at, (source, name, target) in enumerate(self.edge_types)
                if relation in (name, (source, name, target), [source, name, target])
            ]
            if not named:
                known = ["__".join(triple) for triple in self.edge_types]
                wanted = relation if isinstance(relation, str) else "__".join(map(str, relation))
                names = {name: None for _, name, _ in self.edge_types} | dict.fromkeys(known)
                raise ValueError(f"relations: {unknown('relation', wanted, names)}")
            numbers += named
        return sorted(set(numbers))

    @cached_property
    def node_fields(self) -> set[str]:
        """Names of fields with a row for every node of some type."""
        return {key for name in self.node_types for key, _ in _node_fields(self, name)}

    @cached_property
    def edge_fields(self) -> set[str]:
        """Names of fields with a row for every edge of some relation."""
        return {key for at in range(len(self.edge_types)) for key, _ in _edge_fields(self, at)}

    def digest(self) -> bytes:
        """A digest of the names of types and of all their tensors."""
        sha = hashlib.sha256()
        for kind in (*self.node_types, *self.edge_types):
            for key, value in sorted(self.data[kind].items()):
                sha.update(f"{kind} {key} {getattr(value, 'shape', value)}".encode())
                if isinstance(value, Tensor):
                    sha.update(value.detach().cpu().contiguous().numpy().tobytes())
        return sha.digest()

    def on(self, device: torch.device) -> DeviceTables:
        """The fields of nodes and edges on a device, moved there once."""
        key = str(device)
        if key not in self._on_device:
            self._on_device[key] = DeviceTables.of(self, device)
        tables: DeviceTables = self._on_device[key]
        return tables

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_on_device": {}}

    def __deepcopy__(self, memo: Any) -> HeteroGraph:
        return self


@dataclass(frozen=True)
class DeviceTables:
    """Fields of nodes and edges by type and name, on one device.

    Attributes
    ----------
    type_of, relation_of
        The type of every node and the relation of every edge, by position.
    node, edge
        Fields with a row for every node of a type, and for every edge of a relation.
    """

    type_of: Tensor
    relation_of: Tensor
    node: dict[str, dict[str, Tensor]]
    edge: dict[EdgeType, dict[str, Tensor]]

    @classmethod
    def of(cls, graph: HeteroGraph, device: torch.device) -> DeviceTables:
        """The tables of a graph."""
        node = {
            name: {key: value.to(device) for key, value in _node_fields(graph, name)}
            for name in graph.node_types
        }
        edge = {
            relation: {key: value.to(device) for key, value in _edge_fields(graph, at)}
            for at, relation in enumerate(graph.edge_types)
        }
        type_of, relation_of = (
            torch.from_numpy(array).to(device) for array in (graph.type_of, graph.relation_of)
        )
        return cls(type_of, relation_of, node, edge)


#: Made anew for every batch of coalitions.
_FROM_BATCH = frozenset({"batch", "ptr"})


def _node_fields(graph: HeteroGraph, name: str) -> Iterator[tuple[str, Tensor]]:
    """Fields with a row for every node of a type."""
    for key, value in graph.data[name].items():
        if _is_dense(value) and len(value) == graph.count(name) and key not in _FROM_BATCH:
            yield key, value


def _edge_fields(graph: HeteroGraph, at: int) -> Iterator[tuple[str, Tensor]]:
    """Fields with a row for every edge of a relation."""
    size = int(graph.first_edge[at + 1] - graph.first_edge[at])
    for key, value in graph.data[graph.edge_types[at]].items():
        if _is_dense(value) and len(value) == size and "index" not in key:
            yield key, value


def view_of(data: HeteroData, output_type: str | None = None) -> Data:
    """The homogeneous view of a heterogeneous graph.

    >>> data = HeteroData()
    >>> data["author"].x, data["paper"].x = torch.ones(2, 3), torch.ones(1, 5)
    >>> data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [0, 0]])
    >>> view = view_of(data)
    >>> view.edge_index.tolist(), view.hetero.name(2)
    ([[0, 1], [2, 2]], 'paper 0')
    """
    graph = HeteroGraph.of(data, output_type)
    first = dict(zip(graph.node_types, graph.first_node.tolist(), strict=False))
    ends = [
        data[source, name, target].edge_index.cpu().long()
        + torch.tensor([[first[source]], [first[target]]])
        for source, name, target in graph.edge_types
    ]
    kept = {key: value for key, value in data._global_store.items() if isinstance(value, str)}
    if isinstance(data._global_store.get("y"), Tensor):
        kept["y"] = data._global_store["y"]
    return Data(
        x=torch.full((graph.num_nodes, 1), SHOWN),
        edge_index=torch.cat(ends, dim=1) if ends else torch.zeros(2, 0, dtype=torch.long),
        node_id=torch.arange(graph.num_nodes),
        node_type=[graph.node_types[kind] for kind in graph.type_of.tolist()],
        edge_id=torch.arange(int(graph.first_edge[-1])),
        num_nodes=graph.num_nodes,
        hetero=graph,
        **{key: value for key, value in kept.items() if key not in _OF_VIEW},
    )


_OF_VIEW = frozenset({"x", "edge_index", "node_id", "node_type", "edge_id", "num_nodes", "hetero"})


def hetero_of(data: Any) -> HeteroGraph | None:
    """The heterogeneous graph behind a view, or None for any other graph."""
    graph = data.get("hetero") if isinstance(data, Data) else None
    return graph if isinstance(graph, HeteroGraph) else None


def disturbed(
    graph: HeteroGraph, fields: dict[str, Any], outside: NDArray[np.bool_], *, noise: bool
) -> dict[str, Any]:
    """Fields of a view in which some nodes have the features of others of their type, and noise."""
    rows = np.flatnonzero(outside)
    ids = fields["node_id"].clone()
    own = ids.cpu().numpy()[rows]
    kinds = graph.type_of[own]
    drawn = np.random.default_rng(0).random(len(rows))
    first, count = graph.first_node[kinds], np.diff(graph.first_node)[kinds]
    others = torch.from_numpy(first + (drawn * count).astype(np.int64)).to(ids.device)
    there = torch.from_numpy(rows).to(ids.device)
    ids[there] = others
    x = fields["x"].clone()
    if noise:
        x[there] = DISTURBED
    return {**fields, "node_id": ids, "x": x}


def _is_dense(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and value.dim() > 0


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str)


def _is_triple(relation: Any) -> bool:
    return (
        isinstance(relation, tuple)
        and len(relation) == 3
        and all(isinstance(part, str) for part in relation)
        and relation[1] != relation[0]
    )


def counted_nodes(store: Any) -> int:
    """PyG's number of nodes, with its warning that it only guessed turned into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return int(store.num_nodes or 0)


def _num_nodes(data: HeteroData, name: str) -> int:
    """Number of nodes of a type, which has to be known: isolated nodes are in no edge."""
    try:
        return counted_nodes(data[name])
    except UserWarning:
        has = ", ".join(sorted(data[name].keys())) or "nothing"
        raise ValueError(
            f"the number of nodes of type {name!r} is not known: give data[{name!r}] x or "
            f"num_nodes (it has {has})"
        ) from None


def _num_edges(data: HeteroData, relation: Any, counts: Mapping[str, int]) -> int:
    """Number of edges of a relation, after all of them were checked."""
    source, _, target = relation
    edge_index, name = data[relation].get("edge_index"), f"data[{relation!r}].edge_index"
    check_edge_index(edge_index, name)
    for end in (source, target):
        if end not in counts:
            raise ValueError(
                f"relation {relation!r} joins nodes of type {end!r}, and the data has none: give "
                f"data[{end!r}] x or num_nodes"
            )
    sizes = counts[source], counts[target]
    check_ends(edge_index, name, sizes, (f" of type {source!r}", f" of type {target!r}"))
    return int(edge_index.shape[1])


def check_edge_index(edge_index: Any, name: str, hint: str = "") -> None:
    """Raise unless it is a dense tensor of integers of shape (2, E)."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        of_layout = f"a tensor of layout {getattr(edge_index, 'layout', None)}"
        got = of_layout if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise TypeError(f"{name} must be a dense tensor of shape (2, E) (got {got}){hint}")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"{name} must have shape (2, E) (got {tuple(edge_index.shape)})")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise TypeError(f"{name} must be integers (got {edge_index.dtype})")


def check_ends(
    edge_index: Tensor, name: str, counts: tuple[int, int], of: tuple[str, str] = ("", "")
) -> None:
    """Raise unless the first and the second row name some of so many nodes."""
    for row, count, kind in zip(edge_index, counts, of, strict=True):
        for node in (int(row.min()), int(row.max())) if row.numel() else ():
            if not 0 <= node < count:
                raise ValueError(f"{name} names node {node} of {count} nodes{kind}")
