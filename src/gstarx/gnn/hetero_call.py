"""Calling a model of heterogeneous graphs on many coalitions: a disjoint union for every type.

A model may take ``(x_dict, edge_index_dict)``, further dictionaries or fields of any name that the
data carries, with or without ``_dict`` at the end, ``batch_dict`` and ``batch_size``, or one
``HeteroData`` object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, HeteroData
from torch_geometric.data.storage import recursive_apply

from gstarx._internal.cached import cached_property
from gstarx.gnn.hetero import DISTURBED, ZERO, HeteroGraph
from gstarx.gnn.parameters import Model, is_annotation, match_arguments, warn_of_left_out
from gstarx.gnn.shared_rows import own_copy
from gstarx.gnn.watched_edges import watch_relations

#: Known of every batch, whatever the data carries.
_FROM_BATCH = ("batch", "batch_size", "num_nodes", "edge_index")


@dataclass(frozen=True, eq=False)
class HeteroCall:
    """How a model of a heterogeneous graph wants its arguments.

    Attributes
    ----------
    graph
        The graph.
    takes_data
        Whether the model takes one ``HeteroData`` object.
    positional
        Fields that go in by position.
    keywords
        Names of arguments that go in by keyword, and the fields that they are.
    """

    graph: HeteroGraph
    takes_data: bool
    positional: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, model: Model, graph: HeteroGraph, keywords: Iterable[str] | None = None
    ) -> HeteroCall:
        """Read the signature of a model and match it with what the graph carries."""
        matched = match_arguments(
            model,
            known_fields(graph),
            keywords,
            guesses=partial(_guesses, graph),
            besides="x_dict and edge_index_dict",
            field=_field,
        )
        if matched is None:
            return cls(graph, True)
        by_name = tuple((name, _field(name)) for name in matched.keywords)
        call = cls(graph, False, matched.positional, by_name)
        if matched.left_out:
            warn_of_left_out(model, matched.left_out, call._unused())
        return call

    def _unused(self) -> dict[str, str]:
        """Fields of edges and of the graph that the model is not passed, and what they have."""
        rows = {
            key: "weight" if value.shape[1:].numel() == 1 else "edge"
            for relation in self.graph.edge_types
            for key, value in self.graph.data[relation].items()
            if key in self.graph.edge_fields
        }
        whole = {
            key: "graph"
            for key, value in self.graph.data._global_store.items()
            if isinstance(value, Tensor) and value.is_floating_point()
        }
        return {
            key: kind
            for key, kind in (rows | whole).items()
            if key not in self.fields and not is_annotation(key)
        }

    @property
    def takes_batch(self) -> bool:
        """Whether several graphs can go through the model at once."""
        return self.takes_data or "batch" in self.fields

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the model takes."""
        return (*self.positional, *(field for _, field in self.keywords))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the fields that the model is passed, in this order."""
        return tuple(known_fields(self.graph)) if self.takes_data else self.fields

    @property
    def fixed(self) -> list[str]:
        """Fields of the whole graph that the model takes: the same in every coalition."""
        of_graph = self.graph.data._global_store
        return [name for name in self.fields if isinstance(of_graph.get(name), Tensor)]

    def __call__(self, model: Model, fields: Mapping[str, Any], *, watched: bool = False) -> Any:
        """The model's outputs: a row for every graph, or for every node of all types.

        ``watched`` says that the edges may only be read by message passing.
        """
        union = TypedUnion.of(self.graph, fields)
        output = self._called(model, union, watched=watched)
        if self.graph.output_type is not None:
            return union.for_all_nodes(output, self.graph.output_type)
        if isinstance(output, Tensor) and output.dim() and len(output) < union.count:
            return self._with_last_types(model, union, output)
        return output

    def _with_last_types(self, model: Model, union: TypedUnion, output: Tensor) -> Any:
        """Outputs of a model that counts graphs by the last node of a type, where that is missing.

        ``global_mean_pool(x, batch)`` without ``size`` returns no row for graphs at the end of a
        batch that have none of the nodes. One graph more, of one node of every such type, makes it
        return those rows; it is left out of the result.
        """
        missing = union.absent_from_last()
        if self.takes_batch and missing:
            more = self._called(model, union.with_last_graph(missing))
            if isinstance(more, Tensor) and more.dim() and len(more) == union.count + 1:
                return more[:-1]
        named = f": one of them has no nodes of type {_listed(missing)}" if missing else ""
        raise ValueError(
            f"the model returned {len(output)} rows for {union.count} coalitions{named}. Tell its "
            "readout how many graphs there are, as global_mean_pool(x, batch, size=batch_size) "
            "does with an argument batch_size of the model; GameOptions(fallback=...) gives "
            "coalitions on which it fails a worth of their own"
        )

    def _called(self, model: Model, union: TypedUnion, *, watched: bool = False) -> Any:
        if self.takes_data:
            return model(union.as_batch().apply(union.in_precision))
        made = {
            field: recursive_apply(own_copy(union.field(field)), union.in_precision)
            for field in self.fields
        }
        if watched:
            made = watch_relations(made)
        positional = [made[field] for field in self.positional]
        return model(*positional, **{name: made[field] for name, field in self.keywords})


@dataclass(frozen=True, eq=False)
class TypedUnion:
    """The nodes and edges of a batch of coalitions, sorted by type.

    Attributes
    ----------
    graph
        The graph that they are part of.
    nodes
        For every type, the number among the nodes of that type behind every node of the batch.
    at
        For every type, where its nodes are among those of all types.
    shown
        For every type, whether the features of its nodes show, (n, 1); see ``x`` of a view.
    batch
        The graph of the batch that every node of all types belongs to.
    edges
        For every relation, the number among its edges behind every edge of the batch.
    ends
        For every relation, its edges in the numbers of the batch, (2, E).
    count
        How many graphs there are.
    device
        Where all of this is.
    """

    graph: HeteroGraph
    nodes: dict[str, Tensor]
    at: dict[str, Tensor]
    shown: dict[str, Tensor]
    batch: Tensor
    edges: dict[Any, Tensor]
    ends: dict[Any, Tensor]
    count: int
    device: torch.device

    @classmethod
    def of(cls, graph: HeteroGraph, fields: Mapping[str, Any]) -> TypedUnion:
        """Sort the fields of a batch of the view."""
        ids, edge_ids, ends = fields["node_id"], fields["edge_id"], fields["edge_index"]
        tables = graph.on(ids.device)
        kinds, relations = tables.type_of[ids], tables.relation_of[edge_ids]
        place = torch.empty_like(ids)
        at, nodes, shown = {}, {}, {}
        for t, name in enumerate(graph.node_types):
            at[name] = here = (kinds == t).nonzero()[:, 0]
            place[here] = torch.arange(len(here), device=ids.device)
            nodes[name] = ids[here] - int(graph.first_node[t])
            shown[name] = fields["x"][here]
        edges, by_relation = {}, {}
        for r, relation in enumerate(graph.edge_types):
            chosen = (relations == r).nonzero()[:, 0]
            edges[relation] = edge_ids[chosen] - int(graph.first_edge[r])
            by_relation[relation] = place[ends[:, chosen]]
        count = int(fields["batch_size"])
        batch = fields["batch"]
        return cls(graph, nodes, at, shown, batch, edges, by_relation, count, ids.device)

    @cached_property
    def owner(self) -> dict[str, Tensor]:
        """For every type, the graph of the batch that its nodes belong to."""
        return {name: self.batch[here] for name, here in self.at.items()}

    def in_precision(self, value: Tensor) -> Tensor:
        """A field in double precision where the view is, whose features are single elsewhere."""
        double = any(shown.dtype == torch.float64 for shown in self.shown.values())
        return value.double() if double and value.is_floating_point() else value

    def absent_from_last(self) -> list[str]:
        """Types of the graph that no node of the last coalition has."""
        last = self.count - 1
        return [
            t for t, o in self.owner.items() if self.graph.count(t) and not bool((o == last).any())
        ]

    def with_last_graph(self, types: Iterable[str]) -> TypedUnion:
        """The batch with one graph more, of the first node of some types."""
        nodes, shown, at = dict(self.nodes), dict(self.shown), dict(self.at)
        batch = self.batch
        for name in types:
            nodes[name] = torch.cat([nodes[name], nodes[name].new_zeros(1)])
            shown[name] = torch.cat([shown[name], shown[name].new_ones(1, 1)])
            at[name] = torch.cat([at[name], at[name].new_full((1,), len(batch))])
            batch = torch.cat([batch, batch.new_full((1,), self.count)])
        rest = (self.edges, self.ends, self.count + 1, self.device)
        return TypedUnion(self.graph, nodes, at, shown, batch, *rest)

    def field(self, name: str) -> Any:
        """What the model gets under a name."""
        if name == "batch":
            return self.owner
        if name == "batch_size":
            return self.count
        if name == "num_nodes":
            return {t: len(nodes) for t, nodes in self.nodes.items()}
        if name == "edge_index":
            return self.ends
        tables = self.graph.on(self.device)
        by_type: dict[Any, Tensor] = {
            t: self._rows(t, name, tables.node[t][name])
            for t in self.graph.node_types
            if name in tables.node[t]
        }
        for relation in self.graph.edge_types:
            if name in tables.edge[relation]:
                values = tables.edge[relation][name]
                by_type[relation] = values.index_select(0, self.edges[relation])
        if by_type:
            return by_type
        value = self.graph.data._global_store[name]
        if not isinstance(value, Tensor):
            return value
        value = value.to(self.device)
        expands = value.dim() > 0 and len(value) == 1
        return value.expand(self.count, *value.shape[1:]) if expands else value

    def _rows(self, node_type: str, name: str, table: Tensor) -> Tensor:
        """Rows of a field of nodes: as they are, or zero or with noise where that is asked for."""
        rows = table.index_select(0, self.nodes[node_type])
        shown = self.shown[node_type].reshape(-1, *[1] * (rows.dim() - 1))
        if not len(rows) or bool((shown == 1).all()):
            return rows
        if name == "x":
            rows = rows.masked_fill(shown == ZERO, 0)
        if rows.is_floating_point():
            noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0)).to(rows)
            rows = torch.where(shown == DISTURBED, rows + noise * (1 + table.abs().mean()), rows)
        return rows

    def as_batch(self) -> Batch:
        """One ``HeteroData`` of all graphs, as PyG's loaders make it."""
        batch = Batch(_base_cls=HeteroData)
        tables = self.graph.on(self.device)
        for key in self.graph.data._global_store.keys():  # noqa: SIM118
            batch[key] = own_copy(self.field(key))
        for t in self.graph.node_types:
            for name, table in tables.node[t].items():
                batch[t][name] = self._rows(t, name, table)
            sizes = torch.bincount(self.owner[t], minlength=self.count)
            batch[t].batch = own_copy(self.owner[t])
            batch[t].ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
            batch[t].num_nodes = len(self.nodes[t])
        for relation in self.graph.edge_types:
            batch[relation].edge_index = own_copy(self.ends[relation])
            for name, table in tables.edge[relation].items():
                batch[relation][name] = table.index_select(0, self.edges[relation])
        batch._num_graphs = self.count
        return batch

    def for_all_nodes(self, output: Any, node_type: str) -> Tensor:
        """Outputs for the nodes of one type as rows of the nodes of all types, 0 for the others."""
        rows = output_for_type(output, node_type, len(self.nodes[node_type]))
        total = sum(len(nodes) for nodes in self.nodes.values())
        everywhere = rows.new_zeros(total, *rows.shape[1:])
        everywhere[self.at[node_type]] = rows
        return everywhere


def output_for_type(output: Any, node_type: str, count: int) -> Tensor:
    """A model's output for the nodes of a type, or an error that says what came instead."""
    if isinstance(output, Mapping):
        if node_type not in output:
            raise ValueError(
                f"the model has no output for node_type={node_type!r}: it has outputs for "
                f"{_listed(output)}"
            )
        output = output[node_type]
    if not isinstance(output, Tensor) or output.dim() == 0 or len(output) != count:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"the model must return a row for each of {count} nodes of type {node_type!r} "
            f"(got {got})"
        )
    return output


def known_fields(graph: HeteroGraph) -> list[str]:
    """Names of everything a model of the graph can be given."""
    carried = {*graph.node_fields, *graph.edge_fields, *graph.data._global_store.keys()}
    return [*_FROM_BATCH, *sorted(carried - set(_FROM_BATCH))]


def _field(name: str) -> str:
    """The field behind an argument, which may be named ``x`` or ``x_dict``."""
    return name.removesuffix("_dict")


def _guesses(graph: HeteroGraph, shown: set[str]) -> list[str]:
    """Fields that may be inputs or not; labels and masks of splits are not."""
    inputs = {"x", "y", *_FROM_BATCH, *shown}
    return [
        name
        for name in known_fields(graph)
        if name not in inputs and not name.endswith("_mask") and not name.endswith("label")
    ]


def _listed(names: Iterable[Any]) -> str:
    return " and ".join(map(repr, names))
