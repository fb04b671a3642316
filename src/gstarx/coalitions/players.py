"""Who plays: all nodes of a graph, or those around the node or pair that is explained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx.coalitions.ego import count_layers, grow_hops, induced
from gstarx.coalitions.evaluator import Evaluator
from gstarx.coalitions.guard import untouched
from gstarx.coalitions.signature import Model, Roles
from gstarx.graphs.bitmasks import pack

TASK_LEVELS = ("graph", "node", "edge")
#: An ego-graph is large enough when its prediction is that of the whole graph to this much.
_SAME = 1e-5
_MakeEvaluator = Callable[[Data, NDArray[np.int64]], Evaluator]
_Players = tuple[Evaluator, NDArray[np.int64], Tensor | None]


def check_data(data: Any) -> Data:
    """One homogeneous graph with nodes, or an error that says what it is instead."""
    if isinstance(data, HeteroData):
        raise TypeError("heterogeneous graphs are not supported (got HeteroData)")
    if not isinstance(data, Data):
        raise TypeError(f"data must be a torch_geometric.data.Data (got {type(data).__name__})")
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise TypeError("data.edge_index must be a dense tensor of shape (2, E)")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"data.edge_index must have shape (2, E) (got {tuple(edge_index.shape)})")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise TypeError(f"data.edge_index must be integers (got {edge_index.dtype})")
    count = _num_nodes(data)
    for node in (int(edge_index.min()), int(edge_index.max())) if edge_index.numel() else ():
        if not 0 <= node < count:
            raise ValueError(f"data.edge_index names node {node} of {count} nodes")
    batch = data.get("batch")
    if isinstance(batch, Tensor) and batch.numel() and int(batch.max()) > 0:
        raise ValueError(
            f"data holds {int(batch.max()) + 1} graphs: explain one at a time, or use explain_many"
        )
    return data


def check_level(task_level: str) -> str:
    """A task level by PyG's name, or an error that lists them."""
    level = str(getattr(task_level, "value", task_level))
    if level not in TASK_LEVELS:
        valid = ", ".join(map(repr, TASK_LEVELS))
        raise ValueError(f"task_level must be one of {valid} (got {level!r})")
    return level


def _num_nodes(data: Data) -> int:
    """Number of nodes, which has to be known: isolated nodes are in no edge."""
    try:
        count = int(data.num_nodes or 0) if "x" in data else _guessed_num_nodes(data)
    except UserWarning:
        raise ValueError(
            f"the number of nodes is not known: give the data x or num_nodes (it has "
            f"{', '.join(sorted(data.keys()))})"
        ) from None
    if not count:
        raise ValueError("the graph has no nodes: there is nothing to explain")
    return count


def _guessed_num_nodes(data: Data) -> int:
    """PyG's count, with its warning that it only guessed turned into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return int(data.num_nodes or 0)


def choose_players(
    model: Model,
    data: Data,
    task_level: str,
    index: int | Tensor | None,
    num_hops: int | None,
    roles: Roles,
    evaluator: _MakeEvaluator,
) -> _Players:
    """An evaluator on the part of the graph that plays, its node ids, and the prediction (1, C).

    The prediction for a whole graph is left to be found together with that of its parts.
    """
    everywhere = np.arange(int(data.num_nodes or 0))
    anchors = _anchors(data, task_level, index)
    on_all = evaluator(data, anchors)
    if task_level == "graph":
        return on_all, everywhere, None
    with untouched(model):
        return _around(model, data, num_hops, roles, evaluator, on_all, anchors)


def _around(
    model: Model,
    data: Data,
    num_hops: int | None,
    roles: Roles,
    evaluator: _MakeEvaluator,
    on_all: Evaluator,
    anchors: NDArray[np.int64],
) -> _Players:
    """The ego-graph of the anchors: as many hops as asked for, or as many as it takes."""
    whole = whole_output(on_all)
    if num_hops is not None and num_hops < 0:
        raise ValueError(f"num_hops must be None or at least 0 (got {num_hops})")
    hops = grow_hops(data.edge_index.cpu().numpy(), int(data.num_nodes or 0), anchors)
    wanted = count_layers(model) if num_hops is None else num_hops
    reached = np.zeros(0, dtype=np.bool_)
    for hop, reached in enumerate(hops):
        if hop < wanted:
            continue
        nodes = np.flatnonzero(reached)
        part = evaluator(induced(data, reached, roles), np.searchsorted(nodes, anchors))
        if num_hops is not None:
            return part, nodes, whole
        if float((whole_output(part) - whole).abs().max()) <= _SAME:
            return part, nodes, whole
    # all that is connected to the target
    nodes = np.flatnonzero(reached)
    return evaluator(induced(data, reached, roles), np.searchsorted(nodes, anchors)), nodes, whole


def whole_output(evaluator: Evaluator) -> Tensor:
    """Output (1, columns) with everybody there."""
    everybody = np.ones((1, evaluator.removal.tensors.num_nodes), dtype=np.bool_)
    return evaluator.outputs(pack(everybody))


def _anchors(data: Data, task_level: str, index: int | Tensor | None) -> NDArray[np.int64]:
    """The target node, the two ends of the target pair, or nobody."""
    if task_level == "graph":
        return np.zeros(0, dtype=np.int64)
    if isinstance(index, Tensor):
        if index.numel() != 1:
            raise ValueError(f"index must name one {task_level} (got {index.numel()})")
        index = int(index)
    if index is None:
        raise ValueError(f"task_level={task_level!r} needs index=..., the {task_level} to explain")
    pairs = data.get("edge_label_index")
    if task_level == "edge" and not isinstance(pairs, Tensor):
        raise ValueError("task_level='edge' needs data.edge_label_index of shape (2, K)")
    count = int(data.num_nodes or 0) if task_level == "node" else int(pairs.shape[1])
    if not 0 <= index < count:
        raise ValueError(f"index must lie in 0..{count - 1} (got {index})")
    if task_level == "node":
        return np.array([index])
    ends: NDArray[np.int64] = pairs[:, index].cpu().numpy().astype(np.int64)
    return ends
