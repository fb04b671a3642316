"""The result of explaining a heterogeneous graph: PyG's explanation, with scores of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

from gstarx.explanation import stored
from gstarx.explanation.attribution import OnRequest, install, rows_of
from gstarx.explanation.explanation import Explanation
from gstarx.explanation.export import Exports
from gstarx.gnn import HeteroGraph, hetero_of

#: A node of a heterogeneous graph: its type, and its number among the nodes of that type.
TypedNode = tuple[str, int]
#: Masks of the data, as datasets with a ground truth have them, are not a result.
_MASKS = ("node_mask", "edge_mask")


class HeteroExplanation(Exports, PyGHeteroExplanation):  # type: ignore[misc]
    """Why a model decided as it did about one heterogeneous graph.

    A PyG explanation: it holds the fields of the graph that was explained and a ``node_mask`` for
    every type of nodes, and passes ``validate()``. What a :class:`gstarx.Explanation` has besides
    that, it has too, with nodes named by their type and number.

    Attributes
    ----------
    scores, std_errors
        A score per player in double precision, (P,), or (P, q) for q targets, and its standard
        error: zero where exact, ``nan`` where unknown.
    players
        The type and the number of the node behind every player, a list of pairs.
    node_mask
        Of every type, as PyG takes it: ``explanation["author"].node_mask`` is [N, 1] in single
        precision, zero for nodes that are not players; for one target only, see
        :meth:`for_target`.
    node_scores
        Of every type: the same in double precision, (N,), or (N, q).
    edge_mask
        Of every relation, if edges were scored too, by the mean of their two ends.
    node_type, index
        For node tasks: the node that was explained.
    prediction, target
        The model's output, (1, C) for the graph, or a row for every node of ``node_type``; the
        class explained, as a tensor, as in PyG.
    explained
        The classes or outputs that were explained, a list of integers.
    method, value, two_sided, payoff, exact, estimator, evaluations, seconds, sharing, inputs,
    fixed, worth, component_worth, baseline, baseline_source, sets
        As in :class:`gstarx.Explanation`.
    view
        The same explanation of the homogeneous view of the graph, in which the nodes of all types
        are numbered one after the other.
    """

    @classmethod
    def of(cls, view: Explanation, data: HeteroData) -> HeteroExplanation:
        """An explanation of a graph from that of its homogeneous view."""
        graph = hetero_of(view)
        assert graph is not None
        made, fields = cls(), view._store._mapping
        for key, value in data._global_store.items():
            made[key] = value
        for kind in (*data.node_types, *data.edge_types):
            for key, value in data[kind].items():
                if key not in _MASKS:
                    made[kind][key] = value
        made.__dict__["_view"] = view
        for name in graph.node_types:
            made[name].num_nodes = graph.count(name)
            install(made[name])
            for key in ("node_scores", "node_mask"):
                if key in view:
                    made[name][key] = OnRequest(rows_of, fields, key, graph.rows(name))
        made._show_edge_mask()
        rows = slice(None)
        if view.get("index") is not None:
            pairs = [graph.pair(number) for number in view.index.tolist()]
            made.node_type = pairs[0][0]
            made.index = torch.tensor([node for _, node in pairs])
            rows = graph.rows(made.node_type)
        install(made._global_store)
        made.prediction = OnRequest(rows_of, fields, "prediction", rows)
        made.target = OnRequest(rows_of, fields, "target", rows)
        return made

    def __repr__(self) -> str:
        own = {"scores": list(self.scores.shape), "std_errors": list(self.std_errors.shape)}
        own |= {"method": self.method, "value": self.value, "exact": self.exact}
        lines = "".join(f"  {name}={value!r},\n" for name, value in own.items())
        start, line, rest = super().__repr__().partition("(\n")
        return f"{start}{line}{lines}{rest}"

    @property
    def view(self) -> Explanation:
        """The explanation of the homogeneous view."""
        view: Explanation = self.__dict__["_view"]
        return view

    @property
    def _homogeneous(self) -> Explanation:
        return self.view

    @property
    def _graph(self) -> HeteroGraph:
        graph = hetero_of(self.view)
        assert graph is not None
        return graph

    target_class = property(lambda self: self.view.target_class)
    player_kind = property(lambda self: self.view.player_kind)

    @property
    def players(self) -> list[TypedNode]:
        """The type and the number of the node behind every player."""
        return self._pairs(self.view.players.numpy())

    @property
    def sets(self) -> list[list[TypedNode]]:
        """Sets of nodes that a search found, best first."""
        return [self._pairs(nodes) for nodes in self.view.sets]

    def for_target(self, target: int) -> HeteroExplanation:
        """The explanation of one of several targets, with PyG's masks."""
        return self._again(self.view.for_target(target))

    def score_edges(self) -> HeteroExplanation:
        """Add a score for every edge, the mean of its two ends: PyG's ``edge_mask``."""
        self.view.score_edges()
        self._show_edge_mask()
        return self

    def _show_edge_mask(self) -> None:
        """Give every relation its part of the mask of all edges, if there is one."""
        if "edge_mask" not in self.view:
            return
        graph, fields = self._graph, self.view._store._mapping
        for at, relation in enumerate(graph.edge_types):
            install(self[relation])
            first, last = graph.first_edge[at : at + 2].tolist()
            self[relation].edge_mask = OnRequest(rows_of, fields, "edge_mask", slice(first, last))

    def in_unit_range(self) -> HeteroExplanation:
        """The same explanation with masks between 0 and 1, as PyG's metrics need them."""
        return self._again(self.view.in_unit_range())

    def _again(self, view: Explanation) -> HeteroExplanation:
        return type(self).of(view, self._graph.data)

    def select(
        self, *, sparsity: float | None = None, size: int | None = None, rule: str = "top"
    ) -> list[TypedNode]:
        """The players an explanation keeps, type by type, as in :meth:`gstarx.Explanation.select`.

        Metrics take the result as it is.
        """
        return self._pairs(self.view.select(sparsity=sparsity, size=size, rule=rule))

    def top(self, k: int) -> list[TypedNode]:
        """The ``k`` best players, best first; for a method that finds sets, its best set."""
        return self._pairs(self.view.top(k))

    def _pairs(self, numbers: NDArray[Any]) -> list[TypedNode]:
        return [self._graph.pair(number) for number in numbers.tolist()]

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> HeteroExplanation:
        """The explanation, without its graph, from the result of :meth:`to_dict`."""
        fields, graph = stored.hetero_fields_of(mapping)
        return cls.of(Explanation(**fields, hetero=graph), graph.data)


def hetero_data(
    x: dict[str, Tensor], edge_index: dict[tuple[str, str, str], Tensor], **fields: Any
) -> HeteroData:
    """The graph that PyG's ``Explainer`` hands over as dictionaries."""
    data = HeteroData()
    for name, value in {"x": x, "edge_index": edge_index, **fields}.items():
        if isinstance(value, dict):
            for kind, rows in value.items():
                data[kind][name.removesuffix("_dict")] = rows
                _require_a_row_each(data, kind, name)
        elif value is not None:
            data[name] = value
    batches = [store.batch for store in data.node_stores if isinstance(store.get("batch"), Tensor)]
    graphs = max((int(batch.max()) + 1 for batch in batches if batch.numel()), default=1)
    if graphs > 1:
        raise ValueError(f"data holds {graphs} heterogeneous graphs: explain one at a time")
    return data


def _require_a_row_each(data: HeteroData, kind: Any, name: str) -> None:
    """Refuse an argument by type that is not cut with the nodes or edges of that type."""
    store, key = data[kind], name.removesuffix("_dict")
    rows, of_nodes = store[key], kind in data.node_types
    if key == "edge_index" or not isinstance(rows, Tensor):
        return
    if not of_nodes and not isinstance(store.get("edge_index"), Tensor):
        return  # what is no edge_index is refused with the graph
    count = store.num_nodes if of_nodes else store.num_edges
    if count is not None and rows.shape[:1] != (count,):
        raise ValueError(
            f"{name} must have a row for each of the {count} {'nodes' if of_nodes else 'edges'} of "
            f"{kind!r} (got shape {tuple(rows.shape)}): a model is called on parts of the graph, "
            "for which other arguments by type have no meaning. Leave it out, or fix it inside the "
            "model"
        )


def as_explained(made: Explanation, data: Data | HeteroData) -> Any:
    """The result for a graph: of a heterogeneous one its own kind of explanation."""
    return HeteroExplanation.of(made, data) if isinstance(data, HeteroData) else made
