"""The part of a large graph that decides an output at one node (Appendix B of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from gstarx.gnn.fields import Roles, edges_moved
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


def grow_hops(
    edge_index: NDArray[np.int64], num_nodes: int, start: NDArray[np.int64], flow: str = "both"
) -> Iterator[NDArray[np.bool_]]:
    """Nodes within 0, 1, 2, ... hops of the start, until nothing is new.

    Edges are read both ways, or only against the flow of messages: then it is the nodes whose
    messages reach the start. The cost of a hop is that of the nodes it reaches, not of the graph.
    """
    heads, tails = edge_index if flow == "target_to_source" else edge_index[::-1]
    if flow == "both":
        heads, tails = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    order = np.argsort(heads, kind="stable")
    sources = tails[order]
    starts = np.searchsorted(heads[order], np.arange(num_nodes + 1))
    inside = np.zeros(num_nodes, dtype=np.bool_)
    inside[start] = True
    front = np.asarray(start)
    while True:
        yield inside
        reached = [sources[starts[node] : starts[node + 1]] for node in front]
        fresh = np.unique(np.concatenate(reached)) if reached else np.zeros(0, dtype=np.int64)
        front = fresh[~inside[fresh]]
        if not len(front):
            return
        inside = inside.copy()
        inside[front] = True


def induced(data: Data, inside: NDArray[np.bool_], roles: Roles) -> Data:
    """The subgraph on some nodes, all node and edge fields cut down, ids moved."""
    keep = torch.from_numpy(np.flatnonzero(inside))
    place = torch.full((len(inside),), -1, dtype=torch.long)
    place[keep] = torch.arange(len(keep))
    moved = place[data.edge_index.cpu()]
    edges = (moved >= 0).all(dim=0)
    fields = {key: data[key] for key, role in roles.items() if role == "rest"}
    for key, role in roles.items():
        if role == "node":
            fields[key] = data[key].cpu()[keep]
        elif role == "edge":
            fields[key] = data[key].cpu()[edges]
        elif role == "ids":
            ids = data[key].cpu()
            columns = place[ids.reshape(1) if ids.dim() == 0 else ids]
            present = (columns[None].flatten(0, -2) >= 0).all(dim=0)
            fields[key] = columns[..., present]
        elif role == "edge_ids":
            fields[key] = edges_moved(key, data[key].cpu(), edges)
    return Data(edge_index=moved[:, edges], num_nodes=len(keep), **fields)
