"""Message passing over the states of a block: only the messages that count, added up at once.

Three things make a pass over a graph of states cheaper than one over a graph of the user's:

- **Later rounds reach fewer nodes.** Messages of the ``r``-th call of ``propagate`` matter at nodes
  from which ``calls - r`` further calls lead to the target node. All others are left
  out, whatever the layer.
- **Messages that are rows of the nodes, with or without a weight, are never formed**: a sum over
  them reads the rows where they are (:mod:`gstarx.gnn.shared_rows`).
- **Degrees are counted once**: every :class:`torch_geometric.nn.GCNConv` of a model normalizes the
  same edges.

What comes out is compared with the ordinary path like everything that is shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.nn import GCNConv, MessagePassing

from gstarx.gnn.known_layers import declares_rounds
from gstarx.gnn.shared_rows import GatheredRows, gathered_now
from gstarx.gnn.signature import Model, submodules
from gstarx.gnn.watched_edges import NotShareable
from gstarx.graphs import compiled

#: Messages are left out where at least this share of them is.
_LEAST_SAVED = 0.25
_FLOATS = (torch.float32, torch.float64)


@contextmanager
def needed_messages(model: Model, level: NDArray[np.int64], calls: int) -> Iterator[None]:
    """Let a model pass only messages that count inside this block.

    ``level`` (N,) says in how many calls of ``propagate`` messages to a node count. There must be
    ``calls`` of them, as in the pass by which they were counted.
    """
    rounds = _Rounds(level)
    norms = _Norms()
    with ExitStack() as stack:
        for layer in submodules(model):
            if isinstance(layer, MessagePassing):
                for handle in (
                    layer.register_propagate_forward_pre_hook(rounds.before),
                    layer.register_propagate_forward_hook(_gathered),
                ):
                    stack.callback(handle.remove)
            elif declares_rounds(layer):
                handle = layer.register_forward_pre_hook(rounds.declared)
                stack.callback(handle.remove)
            if type(layer) is GCNConv:
                for handle in (
                    layer.register_forward_pre_hook(norms.before, with_kwargs=True),
                    layer.register_forward_hook(norms.after, always_call=True),
                ):
                    stack.callback(handle.remove)
                # on Ctrl-C a hook is not called
                stack.callback(norms.after, layer)
        yield
    if rounds.call != calls:
        raise NotShareable(
            f"the model passes messages {rounds.call} times over one graph and {calls} times over "
            "another"
        )


class _Rounds:
    """Leaves out the messages of later rounds that reach no node that counts."""

    def __init__(self, level: NDArray[np.int64]) -> None:
        self._level = torch.from_numpy(level)
        self._lowest = int(level.min(initial=0))
        self.call = 0

    def declared(self, module: Any, _: Any) -> None:
        """A layer that says how many rounds a call of it stands for."""
        self.call += module.message_rounds

    def before(self, module: Any, inputs: Any) -> Any:
        """The edges, size and arguments that a call of ``propagate`` gets instead."""
        self.call += 1
        edge_index, size, arguments = inputs
        nodes = len(self._level)
        if type(edge_index) is not Tensor or edge_index.dim() != 2 or len(edge_index) != 2:
            return None
        count = edge_index.shape[1]
        if self.call > self._lowest and _by_edge(arguments, count, nodes):
            hearers = edge_index[1 if module.flow == "source_to_target" else 0]
            kept = self._counting(hearers)
            if len(kept) <= (1 - _LEAST_SAVED) * count:
                edge_index = edge_index.index_select(1, kept)
                arguments = {key: _cut(v, kept, count) for key, v in arguments.items()}
        x = arguments.get("x")
        # messages of a layer of one's own may leave torch
        known = type(module).message.__module__.startswith("torch_geometric.")
        if known and type(x) is Tensor and x.dim() == 2 and len(x) == nodes and count > nodes:
            arguments = {**arguments, "x": GatheredRows.all_of(x)}
        return edge_index, size, arguments

    def _counting(self, hearers: Tensor) -> Tensor:
        """Numbers of the messages that count in this call."""
        if hearers.device.type == "cpu":
            kept = np.empty(len(hearers), dtype=np.int64)
            used = _reaching(hearers.numpy(), self._level.numpy(), self.call, kept)
            return torch.from_numpy(kept[:used])
        level = self._level.to(hearers.device)
        return (level >= self.call)[hearers].nonzero()[:, 0]


def _by_edge(arguments: dict[str, Any], count: int, nodes: int) -> bool:
    """Whether it is clear which arguments have a row for every edge."""
    inner = [v for value in arguments.values() if isinstance(value, tuple | list) for v in value]
    return count != nodes and all(not isinstance(v, Tensor) or len(v) == nodes for v in inner)


def _gathered(module: Any, inputs: Any, output: Any) -> Any:
    """What a layer returns as an ordinary tensor."""
    return gathered_now(output) if isinstance(output, GatheredRows) else None


def _cut(value: Any, kept: Tensor, count: int) -> Any:
    """The rows of some edges, of what has a row for every edge."""
    if isinstance(value, Tensor) and value.dim() and value.shape[0] == count:
        return value.index_select(0, kept)
    return value


class _Norms:
    """The normalized edges of the graph, which are the same for all layers that ask for them.

    A layer gets them as what it remembers of a graph (``cached=True``), for the time of a call.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Tensor, tuple[Tensor, Tensor]]] = {}

    def before(self, layer: Any, args: Any, kwargs: Any) -> None:
        """Give the layer what it would compute."""
        given = dict(zip(("x", "edge_index", "edge_weight"), args, strict=False)) | kwargs
        x, edge_index = given.get("x"), given.get("edge_index")
        plain = (
            isinstance(x, Tensor)
            and x.dtype in _FLOATS
            and type(edge_index) is Tensor
            and edge_index.dtype == torch.long
            and edge_index.device.type == "cpu"
            and given.get("edge_weight") is None
        )
        if not plain or layer._cached_edge_index is not None:
            return
        assert x is not None
        assert edge_index is not None
        if not layer.normalize or layer.improved or layer.flow != "source_to_target":
            return
        nodes = x.shape[layer.node_dim]
        key = id(edge_index), nodes, x.dtype, layer.add_self_loops
        if key not in self._known:
            made = _normalized(edge_index, nodes, x.dtype, layer.add_self_loops)
            # the edges are kept, so that no other ones take their place in memory
            self._known[key] = edge_index, made
        layer._cached_edge_index = self._known[key][1]

    def after(self, layer: Any, *_: Any) -> None:
        """Let the layer forget it."""
        layer._cached_edge_index = None


def _normalized(
    edge_index: Tensor, nodes: int, dtype: torch.dtype, loops: bool
) -> tuple[Tensor, Tensor]:
    """What PyG's ``gcn_norm`` gives: edges without loops and one loop for every node, or as is."""
    ends = edge_index.numpy()
    count = ends.shape[1] + (nodes if loops else 0)
    kept = np.empty((2, count), dtype=np.int64)
    weights = np.empty(count, dtype=np.float32 if dtype == torch.float32 else np.float64)
    used = _normalize(ends, nodes, loops, kept, weights)
    if used < 0:
        raise IndexError(f"edges must join nodes 0..{nodes - 1} (got {int(ends.max())})")
    return torch.from_numpy(kept[:, :used]), torch.from_numpy(weights[:used])


@compiled
def _reaching(hearers, level, call, kept):  # type: ignore[no-untyped-def]
    """Edges to nodes of at least a level; those to no node of the graph are left to the layer."""
    count = 0
    for e in range(len(hearers)):
        v = hearers[e]
        kept[count] = e
        count += v < 0 or v >= len(level) or level[v] >= call
    return count


@compiled
def _normalize(ends, nodes, loops, kept, weights):  # type: ignore[no-untyped-def]
    degree = np.zeros(nodes)
    count = 0
    for e in range(ends.shape[1]):
        source, target = ends[0, e], ends[1, e]
        if min(source, target) < 0 or max(source, target) >= nodes:
            return -1
        kept[0, count], kept[1, count] = source, target
        keep = source != target or not loops
        degree[target] += keep
        count += keep
    if loops:
        for v in range(nodes):
            kept[0, count] = kept[1, count] = v
            degree[v] += 1
            count += 1
    scale = np.zeros(nodes, dtype=weights.dtype)
    for v in range(nodes):
        if degree[v] > 0:
            scale[v] = 1 / np.sqrt(degree[v])
    for e in range(count):
        weights[e] = scale[kept[0, e]] * scale[kept[1, e]]
    return count
