"""What a model does, in the words of PyG's ``ModelConfig``, and which output is explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn.fields import graphs_in
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.model_state import restored
from gstarx.gnn.payoff import TargetLike, check_outputs, check_task, outputs_matrix
from gstarx.gnn.players import check_index, check_level
from gstarx.gnn.signature import Model, Signature, call_model, model_device


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
