"""From a heterogeneous graph and its task to the view on which games are played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx.gnn.hetero import HeteroGraph, view_of
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.signature import Model

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
        raise ValueError(f"{what}{listed}: say which type index belongs to with {among}")
    return fitting[0]
