"""What a model does, in the words of PyG's ``ModelConfig``, and which output is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import one_of
from gstarx.gnn.fields import graphs_in
from gstarx.gnn.hetero import HeteroGraph, hetero_of, view_of
from gstarx.gnn.model_state import restored
from gstarx.gnn.payoff import TargetLike, check_outputs, check_task, outputs_matrix
from gstarx.gnn.signature import Model, Signature, call_model, model_device

TASK_LEVELS = ("graph", "node", "edge")


@dataclass(frozen=True)
class ModelTask:
    """The task of a model, the output to explain, and the inputs the model takes.

    Attributes
    ----------
    mode, task_level, return_type
        As in PyG's ``ModelConfig``; a mode may also be ``"classification"``, ``"binary"`` (one
        logit, for two classes), ``"multilabel"`` (a logit for each of several targets).
    target
        The class or output to explain, several of them, or ``None`` for the predicted class.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    keywords
        Names of the fields to pass to the model by keyword, where its signature leaves that open.
    node_type
        For node tasks on heterogeneous graphs: the type of node that ``index`` belongs to.
    """

    mode: str = "multiclass_classification"
    task_level: str = "graph"
    return_type: str = "raw"
    target: TargetLike = None
    index: int | None = None
    keywords: Sequence[str] | None = None
    node_type: str | None = None

    def __post_init__(self) -> None:
        mode, return_type = check_task(self.mode, self.return_type)
        level = check_level(self.task_level)
        checked = {"mode": mode, "return_type": return_type, "task_level": level}
        for name, value in {**checked, "index": check_index(self.index, level)}.items():
            object.__setattr__(self, name, value)

    @property
    def one_target(self) -> int | None:
        """The target as one class, for methods that explain one at a time."""
        target = self.target.tolist() if isinstance(self.target, Tensor) else self.target
        if isinstance(target, Sequence) and not isinstance(target, str) and len(target) == 1:
            target = target[0]
        if target is not None and (isinstance(target, bool) or not isinstance(target, int)):
            raise ValueError(f"explain one target at a time: an integer (got {self.target!r})")
        return target

    def output(self, model: Model, data: Data) -> Tensor:
        """The model's output for the whole graph: one row, or one for every node or pair."""
        outputs = outputs_matrix(self.raw_output(model, data), self.rows(data)).detach()
        graph, rows = hetero_of(data), outputs
        if graph is not None and graph.output_type is not None:
            rows = outputs[graph.rows(graph.output_type)]  # nodes of other types have no outputs
        check_outputs(rows, self.mode, self.return_type)
        return outputs

    def raw_output(self, model: Model, data: Data) -> Any:
        """What the model returns for the whole graph."""
        signature = Signature.of(model, data, self.keywords)
        device = model_device(model, data.edge_index.device)
        count = int(data.num_nodes or 0)
        fields: dict[str, Any] = {
            key: value.to(device) if isinstance(value, Tensor) else value for key, value in data
        }
        graphs = graphs_in(data)
        if graphs == 1:
            fields["batch"] = torch.zeros(count, dtype=torch.long, device=device)
        fields |= {"batch_size": graphs, "num_nodes": count}
        with restored(model), torch.no_grad():
            return call_model(model, signature, fields)

    def rows(self, data: Data) -> int:
        """How many rows the model's output for a graph has."""
        if self.task_level == "edge":
            return int(data.edge_label_index.shape[1])
        return graphs_in(data) if self.task_level == "graph" else int(data.num_nodes or 0)

    def row(self, count: int) -> int:
        """Which of so many rows of the output is explained."""
        if self.task_level == "graph":
            return 0
        if self.index is None:
            raise ValueError(
                f"task_level={self.task_level!r} needs index=..., the {self.task_level} to explain"
            )
        if not 0 <= self.index < count:
            raise ValueError(f"index must lie in 0..{count - 1} (got {self.index})")
        return self.index

    def anchors(self, data: Data) -> NDArray[np.int64]:
        """The target node, the two ends of the target pair, or nobody."""
        if self.task_level == "graph":
            return np.zeros(0, dtype=np.int64)
        if self.task_level == "node":
            return np.array([self.row(self.rows(data))])
        self.require_pairs(data)
        pair = self.row(self.rows(data))
        ends: NDArray[np.int64] = data.edge_label_index[:, pair].cpu().numpy().astype(np.int64)
        return ends

    def require_pairs(self, data: Data) -> None:
        """Raise if pairs of nodes are asked for, and the data names none."""
        if self.task_level == "edge" and not isinstance(data.get("edge_label_index"), Tensor):
            raise ValueError("task_level='edge' needs data.edge_label_index of shape (2, K)")

    def label(self, output: Tensor) -> Tensor:
        """What PyG takes for the target of outputs (rows, columns): labels, or the outputs."""
        if self.mode == "regression":
            return output
        if self.mode == "binary_classification":
            return (output > (0.5 if self.return_type == "probs" else 0.0)).long().view(-1)
        return output.argmax(dim=-1)


def model_inputs(model: Model, data: Data, keywords: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the fields that the model is passed, in this order."""
    return Signature.of(model, data, keywords).inputs


def model_arguments(model: Model, data: Data, keywords: Sequence[str] | None) -> list[str]:
    """Names of the fields that the model takes besides ``x`` and ``edge_index``.

    Empty for a model that takes a ``Data`` object.
    """
    signature = Signature.of(model, data, keywords)
    taken = (*signature.positional, *signature.keywords)
    derived = ("x", "edge_index", "batch_size", "ptr", "num_nodes")
    return [] if signature.takes_data else [name for name in taken if name not in derived]


def check_level(task_level: str) -> str:
    """A task level by PyG's name, or an error that lists them."""
    level = str(getattr(task_level, "value", task_level))
    return str(one_of(level, TASK_LEVELS, name="task_level"))


def check_index(index: Any, task_level: str) -> int | None:
    """An index as an integer, whatever integer type it has, where the task has one; or an error."""
    if index is None:
        return None
    if task_level == "graph":
        raise ValueError(
            "index is for task_level='node' or 'edge', and this is task_level='graph' "
            f"(got index={index!r})"
        )
    if isinstance(index, Tensor | np.ndarray) and np.prod(index.shape) == 1:
        index = index.item()
    if isinstance(index, bool | np.bool_) or not isinstance(index, int | np.integer):
        what = "a node" if task_level == "node" else "a column of edge_label_index"
        raise TypeError(
            f"index must be one integer, {what} (got {index!r}); explain several nodes with "
            "explain_nodes, and several edges by calling once for each"
        )
    return int(index)


Task = TypeVar("Task", bound=ModelTask)


def with_view(model: Model, data: Any, task: Task) -> tuple[Any, Task]:
    """A graph and its task; of a heterogeneous graph its view, and the task in numbers of it."""
    if not isinstance(data, HeteroData):
        if task.node_type is not None and isinstance(data, Data):
            raise ValueError(
                "node_type is for heterogeneous graphs, and the data is a homogeneous one "
                f"(got node_type={task.node_type!r})"
            )
        return data, task
    if task.task_level == "edge":
        raise ValueError(
            "task_level='edge' is for homogeneous graphs: of a heterogeneous one, the output for "
            "a node or for the graph can be explained"
        )
    if task.task_level == "graph":
        if task.node_type is not None:
            raise ValueError(
                "node_type is for task_level='node', and this is task_level='graph' "
                f"(got node_type={task.node_type!r})"
            )
        return view_of(data), task
    graph = HeteroGraph.of(data)
    node_type = task.node_type
    if node_type is None:
        node_type = output_type_of(model, data, graph, task)
    view = view_of(data, node_type)
    index = task.index
    if index is not None:
        index = graph.number(node_type, index)
    return view, replace(task, index=index, node_type=None)


def output_type_of(model: Model, data: HeteroData, graph: HeteroGraph, task: ModelTask) -> str:
    """The type of nodes that a model has outputs for, if that shows, or an error."""
    of_graph = replace(task, task_level="graph", index=None, node_type=None)
    output = of_graph.raw_output(model, view_of(data))
    if isinstance(output, Mapping):
        fitting = [name for name in graph.node_types if name in output]
        what = f"the model has outputs for {len(fitting)} types of nodes"
    elif isinstance(output, Tensor) and output.dim():
        fitting = [name for name in graph.node_types if graph.count(name) == len(output)]
        what = f"the model returns {len(output)} rows, as many as there are nodes of"
        what += f" {len(fitting)} types"
    else:
        raise TypeError(
            "the model must return a tensor, or a dictionary of tensors by type of node "
            f"(got {type(output).__name__})"
        )
    if len(fitting) != 1:
        among = " or ".join(f"node_type={name!r}" for name in fitting or graph.node_types)
        listed = f" ({', '.join(fitting)})" if fitting else ""
        raise ValueError(f"{what}{listed}: choose the type of the node with {among}")
    return fitting[0]
