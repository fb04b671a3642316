"""How far messages go in a model, and along the edges of a graph (Appendix B of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.nn import MessagePassing

from gstarx.gnn.known_layers import declares_rounds
from gstarx.gnn.own_code import watch_own_code
from gstarx.gnn.signature import Model, submodules


class Propagation:
    """How far and which way messages went in a forward pass.

    ``hops`` is the number of calls of ``propagate``, at least one: layers used twice, and layers
    that propagate several times, count as often as they do. Layers for the relations of a
    heterogeneous graph that work side by side, those of a ``HeteroConv``, of a layer that
    ``to_hetero`` made many of, or of another ``ModuleDict`` with relations as its keys, count
    together as one, and so do the calls of one layer that takes dictionaries, such as ``HANConv``.
    ``flow`` is ``"source_to_target"``, ``"target_to_source"``, or ``"both"`` where layers differ or
    none was seen.

    A layer that is no ``MessagePassing`` of PyG, and that sends messages from the first to the
    second row of ``edge_index``, may say in an attribute ``message_rounds`` how many times a call
    of it does so. ``total`` counts all calls, those side by side included.
    """

    def __init__(self) -> None:
        self._alone = self.total = 0
        self._side_by_side: dict[int, Counter[str]] = {}
        self._flows: set[str] = set()

    def count(self, flow: str, rounds: int = 1, *, relation: tuple[int, str] | None = None) -> None:
        """Note one call of a layer: of all messages, or of those of one relation of a group."""
        if relation is None:
            self._alone += rounds
        else:
            group, name = relation
            self._side_by_side.setdefault(group, Counter())[name] += rounds
        self._flows.add(flow)

    @property
    def calls(self) -> int:
        """How often messages were passed on, one after the other."""
        return self._alone + sum(max(calls.values()) for calls in self._side_by_side.values())

    @property
    def hops(self) -> int:
        """How far messages went at most."""
        return max(1, self.calls)

    @property
    def flow(self) -> str:
        """Which way messages went."""
        return next(iter(self._flows)) if len(self._flows) == 1 else "both"


@contextmanager
def watch_propagation(model: Model) -> Iterator[Propagation]:
    """Count the calls of ``propagate`` of a model's layers inside this block.

    What the model does between its layers is watched as well (:mod:`gstarx.gnn.own_code`).
    """
    seen = Propagation()

    def declared(module: Any, _: Any) -> None:
        seen.total += module.message_rounds
        seen.count("source_to_target", module.message_rounds)

    groups = _side_by_side(model)
    by_dictionary: set[int] = set()

    def called(module: Any, args: Any) -> None:
        if args and isinstance(args[0], Mapping):
            by_dictionary.add(id(module))
            seen.count(module.flow)

    def propagated(module: Any, _: Any) -> None:
        seen.total += 1
        if id(module) not in by_dictionary:
            seen.count(module.flow, relation=groups.get(id(module)))

    hooks: list[Any] = []
    for layer in submodules(model):
        if isinstance(layer, MessagePassing):
            hooks.append(layer.register_forward_pre_hook(called))
            hooks.append(layer.register_propagate_forward_pre_hook(propagated))
        elif declares_rounds(layer):
            hooks.append(layer.register_forward_pre_hook(declared))
    try:
        with watch_own_code(model):
            yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _side_by_side(model: Model) -> dict[int, tuple[int, str]]:
    """For layers of relations, the dictionary of layers they are in, and the relation.

    PyG keeps the layers for the relations of a heterogeneous graph in dictionaries whose keys have
    three parts.
    """
    return {
        id(layer): (id(modules), key)
        for modules in submodules(model)
        if isinstance(modules, torch.nn.ModuleDict)
        for key, branch in modules.named_children()
        if len(key.strip("<>").replace("___", "__").split("__")) == 3
        for layer in branch.modules()
        if isinstance(layer, MessagePassing)
    }


class Incoming:
    """Which edges bring messages to a node, for all nodes of a graph.

    The flow ``"both"`` reads every edge both ways; numbers beyond those of the edges are then those
    of the same edges the other way around.
    """

    def __init__(self, edge_index: NDArray[np.int64], num_nodes: int, flow: str) -> None:
        if flow == "both":
            edge_index = np.concatenate([edge_index, edge_index[::-1]], axis=1)
        self._senders, hearers = edge_index[::-1] if flow == "target_to_source" else edge_index
        self.num_nodes = num_nodes
        self._order = np.argsort(hearers, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(np.bincount(hearers, minlength=num_nodes))])

    def edges_to(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the edges that bring messages to some nodes."""
        counts = self._first[nodes + 1] - self._first[nodes]
        begins = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(self._first[nodes] - begins, counts)
        return np.asarray(self._order[places])

    def senders(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes that messages come from."""
        return np.asarray(self._senders[edges])

    def hops(self, start: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The nodes that are reached first after 0, 1, 2, ... hops, until nothing is new.

        The cost of a hop is that of the nodes that were reached, not of the graph.
        """
        reached = front = np.unique(start)
        while True:
            yield front
            heard = np.unique(self.senders(self.edges_to(front)))
            front = heard[~np.isin(heard, reached)]
            if not len(front):
                return
            reached = np.union1d(reached, front)

    def within(self, node: int, hops: int) -> NDArray[np.int64]:
        """Nodes whose messages reach a node within some hops, and the node itself, ascending."""
        return np.sort(np.concatenate(list(islice(self.hops(np.array([node])), hops + 1))))


def grow_hops(
    edge_index: NDArray[np.int64], num_nodes: int, start: NDArray[np.int64], flow: str = "both"
) -> Iterator[NDArray[np.bool_]]:
    """Nodes within 0, 1, 2, ... hops of the start, until nothing is new.

    Edges are read both ways, or only against the flow of messages: then it is the nodes whose
    messages reach the start.
    """
    inside = np.zeros(num_nodes, dtype=np.bool_)
    for front in Incoming(edge_index, num_nodes, flow).hops(np.asarray(start)):
        inside = inside.copy()
        inside[front] = True
        yield inside
