"""What a model does, in the words of PyG's ``ModelConfig``, and which output is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain.config import ModelConfig

from gstarx._internal.arguments import one_of
from gstarx._internal.messages import unknown
from gstarx.gnn.fields import graphs_in
from gstarx.gnn.hetero import HeteroGraph, hetero_of, view_of
from gstarx.gnn.model_state import restored
from gstarx.gnn.payoff import (
    MODES,
    RETURN_TYPES,
    TargetLike,
    check_outputs,
    check_task,
    outputs_matrix,
)
from gstarx.gnn.signature import Model, Signature, call_model, model_device
from gstarx.registry import TASKS

TASK_LEVELS = ("graph", "node", "edge")


#: Tasks that have a word.
_WORDS = {
    "graph": {"task_level": "graph"},
    "node": {"task_level": "node"},
    "edge": {"task_level": "edge"},
    **{word: {"mode": word} for word in (*MODES, *TASKS)},
}


@dataclass(frozen=True)
class Task:
    """What a model does, in the words of PyG's ``ModelConfig``, and how it takes its inputs.

    Attributes
    ----------
    mode
        As in ``ModelConfig``, or ``"classification"``, ``"binary"`` (one logit, for two classes) or
        ``"multilabel"`` (a logit for each of several targets). By default what the model itself
        says, as wrapped models do by an attribute ``mode``, or else multiclass classification.
    task_level, return_type
        As in ``ModelConfig``: ``"graph"``, ``"node"`` or ``"edge"``; ``"raw"``, ``"probs"`` or
        ``"log_probs"``. By default what the model says, or else ``"graph"`` and ``"raw"``.
    node_type
        For node tasks on heterogeneous graphs: the type of node that ``index`` belongs to. By
        default the one with as many nodes as the model's output has rows, if there is only one.
    keywords
        Names of the fields to pass to the model by keyword, instead of those in its signature.
        Needed if a signature with ``*args`` or ``**kwargs`` does not name them.
    """

    mode: str | None = None
    task_level: str | None = None
    return_type: str | None = None
    node_type: str | None = None
    keywords: Sequence[str] | None = None


#: What can be given as ``task``: a word, PyG's ``ModelConfig``, its dictionary, or a task.
TaskLike = Task | Mapping[str, Any] | str | None


def as_task(task: TaskLike) -> Task:
    """The task that is meant, or an error that names what is valid.

    >>> as_task("regression").mode, as_task({"task_level": "node"}).task_level
    ('regression', 'node')
    """
    if task is None:
        return Task()
    if isinstance(task, Task):
        return task
    if isinstance(task, str):
        if task not in _WORDS:
            raise ValueError(unknown("task", task, _WORDS))
        return Task(**_WORDS[task])
    if isinstance(task, ModelConfig):
        names = ("mode", "task_level", "return_type")
        return Task(*(str(getattr(task, name).value) for name in names))
    if not isinstance(task, Mapping):
        raise TypeError(
            "task must be a word such as 'node', PyG's ModelConfig, a dictionary of its fields, or "
            f"a gstarx.Task(...) (got {type(task).__name__})"
        )
    valid = [field.name for field in fields(Task)]
    for name in task:
        if name not in valid:
            raise ValueError(unknown("field of a task", str(name), valid))
    return Task(**task)


@dataclass(frozen=True)
class ModelTask(Task):
    """The task of a model with nothing left open, and the output to explain.

    Attributes
    ----------
    target
        The class or output to explain, several of them, or ``None`` for the predicted class.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    """

    mode: str = MODES[0]
    task_level: str = "graph"
    return_type: str = "raw"
    target: TargetLike = None
    index: int | None = None

    def __post_init__(self) -> None:
        mode, return_type = check_task(self.mode, self.return_type)
        level = check_level(self.task_level)
        checked = {"mode": mode, "return_type": return_type, "task_level": level}
        for name, value in {**checked, "index": check_index(self.index, level)}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls, model: Any, task: TaskLike = None, target: TargetLike = None, index: Any = None
    ) -> Self:
        """The task of a model, with what the model itself says where nothing else was said."""
        if isinstance(task, ModelTask) and target is None and index is None:
            return task  # type: ignore[return-value]
        given, fields_of_task = as_task(task), {}
        valid = {
            "mode": (*MODES, *TASKS),
            "task_level": TASK_LEVELS,
            "return_type": RETURN_TYPES,
        }
        for name, names in valid.items():
            own, asked = getattr(model, name, None), getattr(given, name)
            if asked is not None:
                fields_of_task[name] = asked
            elif isinstance(own, str) and own in names:
                fields_of_task[name] = own
        keywords = None if given.keywords is None else list(given.keywords)
        made = cls(**fields_of_task, node_type=given.node_type, keywords=keywords)
        own = getattr(model, "mode", None)
        if isinstance(own, str) and own in valid["mode"] and made.mode != TASKS.get(own, own):
            raise ValueError(
                f"the model says that its mode is {own!r}, and task says {made.mode!r}: leave the "
                "mode out of the task"
            )
        return replace(made, target=target, index=index)

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
                f"task={self.task_level!r} needs index=..., the {self.task_level} to explain"
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
            raise ValueError("task='edge' needs data.edge_label_index of shape (2, K)")

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
            f"index is for task='node' or 'edge', and this is task='graph' (got index={index!r})"
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


AnyTask = TypeVar("AnyTask", bound=ModelTask)


def as_graph(model: Model, data: Any) -> Any:
    """The data, or what a model makes of a SMILES or a molecule of RDKit."""
    if not isinstance(data, str) and type(data).__module__.partition(".")[0] != "rdkit":
        return data
    featurize = getattr(model, "featurize", None)
    if featurize is None:
        raise TypeError(
            f"{type(model).__name__} does not say how molecules become graphs: pass a Data, such "
            "as gstarx.datasets.smiles_graph(...) returns, or give the model a method "
            f"featurize(molecule) (got {data!r})"
        )
    return featurize(data)


def with_view(model: Model, data: Any, task: AnyTask) -> tuple[Any, AnyTask]:
    """A graph and its task; of a heterogeneous graph its view, and the task in numbers of it.

    A SMILES or a molecule becomes the graph that the model makes of it.
    """
    data = as_graph(model, data)
    if not isinstance(data, HeteroData):
        if task.node_type is not None and isinstance(data, Data):
            raise ValueError(
                "node_type is for heterogeneous graphs, and the data is a homogeneous one "
                f"(got node_type={task.node_type!r})"
            )
        return data, task
    if task.task_level == "edge":
        raise ValueError(
            "task='edge' is for homogeneous graphs: of a heterogeneous one, the output for "
            "a node or for the graph can be explained"
        )
    if task.task_level == "graph":
        if task.node_type is not None:
            raise ValueError(
                "node_type is for task='node', and this is task='graph' "
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
