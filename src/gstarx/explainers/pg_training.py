"""Training of PyG's PGExplainer: many graphs at once, and one optimizer step per epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gstarx.explainers.edge_masks import (
    Inputs,
    PlainModel,
    check_features,
    check_model_task,
    check_width,
)
from gstarx.gnn import ModelTask, Signature, model_device


class OneStepPerEpoch:
    """Replaces PyG's optimizer, which would take a step for every call.

    Gradients are summed, each times its ``share``, until :meth:`finish`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.share = 1.0
        self._sums: list[Tensor | None] | None = None

    @property
    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def zero_grad(self) -> None:
        """Clear the gradient of the last call."""
        self.optimizer.zero_grad()

    def step(self) -> None:
        """Add the gradient of this call to the sum."""
        gradients = [self.share * p.grad if p.grad is not None else None for p in self._parameters]
        if self._sums is not None:
            gradients = [
                a if b is None else b if a is None else a + b
                for a, b in zip(gradients, self._sums, strict=True)
            ]
        self._sums = gradients

    def finish(self) -> None:
        """Take the step, and start over."""
        for parameter, gradient in zip(self._parameters, self._sums or [], strict=True):
            parameter.grad = gradient
        self._sums = None
        self.optimizer.step()


@dataclass(frozen=True)
class Example:
    """Graphs, or one node, that PyG's explainer trains on in one call."""

    network: Any
    graphs: Sequence[Data]
    task: ModelTask
    target: Tensor
    index: Tensor | None = None

    @property
    def count(self) -> int:
        """Number of graphs, or one for a node."""
        return len(self.graphs)

    def train(self, algorithm: Any, epoch: int) -> float:
        """Train PyG's explainer on it, and return the loss."""
        model, x = _union(self.network, self.graphs, self.task)
        with warnings.catch_warnings():
            # PyG turns its loss into a number without detaching it
            warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad")
            loss: float = algorithm.train(
                epoch, model, x, model.edges, target=self.target, index=self.index
            )
        return loss


def _union(network: Any, graphs: Sequence[Data], task: ModelTask) -> tuple[PlainModel, Tensor]:
    x = check_features(graphs[0], "PGExplainer")
    device = model_device(network, x.device)
    signature = Signature.of(network, graphs[0], task.keywords)
    inputs = (
        Inputs.copies(graphs[0], device)
        if len(graphs) == 1
        else Inputs.union(graphs, signature, device)
    )
    return PlainModel(network, signature, inputs, task, "log_prob"), inputs.fields["x"]


def examples_of(
    network: Any, graphs: Sequence[Data], task: ModelTask, batch_nodes: int
) -> list[Example]:
    """What to train on in one epoch, with the predictions as targets."""
    check_classes(task)
    useful = [g for g in graphs if bool((g.edge_index[0] != g.edge_index[1]).any())]
    if not useful:
        raise ValueError(
            f"PGExplainer learns from edges: at least one graph must have some (got {len(graphs)} "
            "graphs without any)"
        )
    for graph in useful:
        check_model_task(task, graph)
        check_features(graph, "PGExplainer")
    takes_batch = (
        Signature.of(network, useful[0], task.keywords).takes_batch and task.task_level == "graph"
    )
    examples = []
    for chunk in in_chunks(useful, batch_nodes if takes_batch else 0):
        model, x = _union(network, chunk, task)
        with torch.no_grad():
            target = model(x).argmax(dim=1)
        check_width(model)
        if task.mode == "binary_classification" and model.width > 1:
            raise ValueError(
                f"PGExplainer trains on predicted classes: a binary classifier must have one "
                f"output (got {model.width})"
            )
        if task.task_level == "graph":
            examples.append(Example(network, chunk, task, target))
            continue
        training_nodes = chunk[0].get("train_mask", torch.ones(len(target), dtype=torch.bool))
        examples += [
            Example(network, chunk, task, target, torch.tensor([node], device=target.device))
            for node in training_nodes.nonzero()[:, 0].tolist()
        ]
    return examples


def in_chunks(graphs: Sequence[Data], batch_nodes: int) -> Iterator[list[Data]]:
    """Graphs in order, in chunks of at most ``batch_nodes`` nodes, or of one graph.

    >>> graphs = [Data(num_nodes=n) for n in (3, 4, 9, 2, 2)]
    >>> [[g.num_nodes for g in chunk] for chunk in in_chunks(graphs, 8)]
    [[3, 4], [9], [2, 2]]
    """
    chunk: list[Data] = []
    nodes = 0
    for graph in graphs:
        size = int(graph.num_nodes or 0)
        if chunk and nodes + size > batch_nodes:
            yield chunk
            chunk, nodes = [], 0
        chunk.append(graph)
        nodes += size
    if chunk:
        yield chunk


def check_classes(task: ModelTask) -> None:
    """Raise unless a task is classification of graphs or nodes."""
    if task.mode == "regression":
        raise ValueError("PGExplainer explains classes (got mode='regression')")
    if task.task_level == "edge":
        raise ValueError(
            "PGExplainer explains graphs and nodes: task_level must be 'graph' or 'node' "
            "(got 'edge')"
        )
