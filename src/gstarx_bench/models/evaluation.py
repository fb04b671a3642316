"""How well a model predicts labels.

A label that is nan was not measured and does not count. Where a score is not defined, because all
labels are the same or there are none, it is nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Batch, Data

from gstarx.gnn import model_device, untouched
from gstarx.metrics import auroc as auroc_of_nodes

#: Graphs that are evaluated at once.
_BATCH = 512
_MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class LabeledGraphs:
    """Graphs with nothing but features, edges, labels and masks.

    Attributes
    ----------
    graphs
        The graphs; ``y`` has one class, one number for each target, or a class for each node.
    of_nodes
        Whether the labels are those of nodes.
    masks
        The masks that all graphs have.
    """

    graphs: tuple[Data, ...]
    of_nodes: bool
    masks: tuple[str, ...]

    @classmethod
    def of(cls, graphs: Sequence[Data], *, targets: int | None = None) -> LabeledGraphs:
        """Check graphs, whose labels are classes or, with ``targets``, so many numbers each."""
        if not len(graphs):
            raise ValueError("there must be at least one graph (got none)")
        masks = tuple(name for name in _MASKS if all(name in graph for graph in graphs))
        kept = []
        for position, graph in enumerate(graphs):
            missing = [name for name in ("x", "edge_index", "y") if graph.get(name) is None]
            if missing or not len(graph.x):
                problem = f"no {missing[0]}" if missing else "no nodes"
                raise ValueError(f"graph {position} of {len(graphs)} has {problem}")
            if targets is not None and graph.y.numel() != targets:
                raise ValueError(
                    f"graph {position} of {len(graphs)} must have {targets} labels, one for each "
                    f"target (got {graph.y.numel()})"
                )
            y = graph.y.reshape(-1).long() if targets is None else graph.y.reshape(1, -1).float()
            its_masks = {name: graph[name].bool() for name in masks}
            kept.append(Data(x=graph.x, edge_index=graph.edge_index, y=y, **its_masks))
        of_nodes = targets is None and any(len(graph.y) != 1 for graph in kept)
        if of_nodes and any(len(graph.y) != len(graph.x) for graph in kept):
            raise ValueError("every graph must have one label, or every graph one for each node")
        return cls(tuple(kept), of_nodes, masks)

    def part(self, ids: Sequence[int] | None = None, mask: str | None = None) -> list[Data]:
        """Some of the graphs; for labels of nodes, ``rows`` marks those of the mask, or all."""
        chosen = self.graphs if ids is None else [self.graphs[i] for i in ids]
        if not self.of_nodes:
            return list(chosen)
        every = [torch.ones_like(graph.y, dtype=torch.bool) for graph in chosen]
        rows = every if mask is None else [graph[mask] for graph in chosen]
        return [
            Data(x=graph.x, edge_index=graph.edge_index, y=graph.y, rows=own)
            for graph, own in zip(chosen, rows, strict=True)
        ]


def accuracy(model: nn.Module, graphs: Sequence[Data], *, mask: str | None = None) -> float:
    """The share of labels that are the model's highest output.

    The model is called as ``model(x, edge_index, batch)``, in evaluation mode, and then restored.
    The length of ``y`` tells whether it labels graphs or nodes.

    Parameters
    ----------
    model
        A classifier with one output for each class.
    graphs
        Graphs with ``x``, ``edge_index`` and ``y``.
    mask
        For node labels: the mask of the nodes that count, for instance ``"test_mask"``. By default
        all nodes count.

    Examples
    --------
    >>> from gstarx.models import GCN
    >>> _ = torch.manual_seed(0)
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> graphs = [Data(x=torch.eye(2), edge_index=edge, y=torch.tensor([k])) for k in (0, 1)]
    >>> accuracy(GCN(2, 4, 2), graphs)
    0.5
    """
    data = LabeledGraphs.of(graphs)
    valid = data.masks if data.of_nodes else ()
    if mask is not None and mask not in valid:
        names = ", ".join(map(repr, valid)) or "none"
        raise ValueError(f"mask must be one that the graphs have: {names} (got {mask!r})")
    return loss_and_accuracy(model, data.part(mask=mask))[1]


def loss_and_accuracy(model: nn.Module, graphs: Sequence[Data]) -> tuple[float, float]:
    """Cross-entropy and accuracy, every label with the same weight."""
    loss = correct = count = 0.0
    for logits, y in _chunks(model, graphs):
        loss += float(functional.cross_entropy(logits, y, reduction="sum"))
        correct += int((logits.argmax(dim=1) == y).sum())
        count += len(y)
    if not count:
        raise ValueError("there must be at least one label to predict (got none)")
    return loss / count, correct / count


def outputs_of(model: nn.Module, graphs: Sequence[Data]) -> tuple[Tensor, Tensor]:
    """Outputs and labels, a row for each label."""
    outputs, labels = zip(*_chunks(model, graphs), strict=True)
    return torch.cat(outputs), torch.cat(labels)


def _chunks(model: nn.Module, graphs: Sequence[Data]) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, len(graphs), _BATCH):
        batch = batch_for(model, graphs[start : start + _BATCH])
        with untouched(model):
            yield predict(model, batch), batch.y


def batch_for(model: nn.Module, graphs: Sequence[Data]) -> Batch:
    """A mini-batch on the model's device, whose ``y`` are the labels that count.

    Features get the type of the model's weights here: they may be stored in half precision.
    """
    batch = Batch.from_data_list(graphs)
    types = (p.dtype for p in model.parameters() if p.is_floating_point())
    batch.x = batch.x.to(next(types, torch.float32))
    if "rows" in batch:
        batch.y = batch.y[batch.rows]
    return batch.to(model_device(model, torch.device("cpu")))


def predict(model: nn.Module, batch: Batch) -> Tensor:
    """Outputs (labels, columns) of a mini-batch; raises if they have another shape."""
    outputs: Any = model(batch.x, batch.edge_index, batch.batch)
    if batch.y.dim() == 2 and isinstance(outputs, Tensor) and outputs.dim() == 1:
        outputs = outputs[:, None]
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if batch.y.dim() == 2 and got != tuple(batch.y.shape):
        raise ValueError(
            f"the model must return an output for each target of {len(batch.y)} graphs, "
            f"{tuple(batch.y.shape)} (got {got})"
        )
    noun, count = ("nodes", len(batch.x)) if "rows" in batch else ("graphs", len(batch.y))
    if not isinstance(outputs, Tensor) or outputs.dim() != 2 or len(outputs) != count:
        raise ValueError(
            f"the labels are those of {count} {noun}, for which the model must return "
            f"({count}, classes) (got {got})"
        )
    return outputs[batch.rows] if "rows" in batch else outputs


def auroc(scores: ArrayLike, labels: ArrayLike) -> float:
    """The chance that a positive gets a higher score than a negative; ties count half.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), auroc([0.1, 0.4], [1, 1])
    (0.75, nan)
    """
    values, truth = _known(scores, labels)
    positive = truth > 0.5
    if positive.all() or not positive.any() or not np.isfinite(values).all():
        return math.nan
    return auroc_of_nodes(values, positive)


def average_precision(scores: ArrayLike, labels: ArrayLike) -> float:
    """Precision at every threshold, weighted by the recall gained there; nan without positives.

    >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 4)
    0.8333
    """
    values, truth = _known(scores, labels)
    positives = int((truth > 0.5).sum())
    if not positives or np.isnan(values).any():
        return math.nan
    order = np.argsort(-values, kind="stable")
    true_positives = np.cumsum(truth[order] > 0.5)
    # equal scores are one threshold
    last = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    gained = np.diff(true_positives[last], prepend=0)
    return float((gained * true_positives[last] / (last + 1)).sum() / positives)


def rmse(outputs: ArrayLike, targets: ArrayLike) -> float:
    """The root of the mean squared error.

    >>> rmse([1.0, 2.0, 5.0], [1.0, 4.0, float("nan")])
    1.4142135623730951
    """
    values, truth = _known(outputs, targets)
    return float(np.sqrt(((values - truth) ** 2).mean())) if len(truth) else math.nan


def r2(outputs: ArrayLike, targets: ArrayLike) -> float:
    """The share of the targets' variance that the outputs explain; nan if all are the same.

    >>> r2([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), r2([2.0, 2.0, 2.0], [1.0, 2.0, 3.0])
    (1.0, 0.0)
    """
    values, truth = _known(outputs, targets)
    spread = float(((truth - truth.mean()) ** 2).sum()) if len(truth) else 0.0
    return 1 - float(((values - truth) ** 2).sum()) / spread if spread else math.nan


def scores_of(
    task: str, outputs: Tensor, labels: Tensor, targets: Sequence[str] = ()
) -> dict[str, float]:
    """All scores for a task, by name: means over the targets, and those of each of several.

    Parameters
    ----------
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``.
    outputs
        The model's outputs (graphs, columns), logits or values.
    labels
        Classes (graphs,), or a number for each target (graphs, targets).
    targets
        Names of the targets.
    """
    scores: dict[str, float] = {}
    if task == "classification":
        scores["accuracy"] = int((outputs.argmax(dim=1) == labels).sum()) / len(labels)
        # every class against the others; of two classes one says it all
        first = 1 if outputs.shape[1] == 2 else 0
        labels = functional.one_hot(labels, outputs.shape[1])[:, first:]
        outputs = outputs.double().softmax(dim=1)[:, first:]
    elif task != "regression":
        has_label = ~labels.isnan()
        right = (outputs > 0) == (labels > 0.5)
        scores["accuracy"] = int(right[has_label].sum()) / max(1, int(has_label.sum()))
    functions: dict[str, Callable[..., float]] = {"rmse": rmse, "r2": r2}
    if task != "regression":
        functions = {"auroc": auroc, "average_precision": average_precision}
    predicted, truth = (tensor.detach().double().cpu().numpy().T for tensor in (outputs, labels))
    columns = {
        name: [function(*pair) for pair in zip(predicted, truth, strict=True)]
        for name, function in functions.items()
    }
    scores |= {name: mean_known(column) for name, column in columns.items()}
    if len(targets) > 1 and task in ("multilabel", "regression"):
        for at, target in enumerate(targets):
            scores |= {f"{name} {target}": column[at] for name, column in columns.items()}
    return scores


def mean_known(numbers: Sequence[float]) -> float:
    """The mean of those that are not nan, or nan."""
    known = [number for number in numbers if not math.isnan(number)]
    return sum(known) / len(known) if known else math.nan


def _known(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    truth = np.asarray(labels, dtype=np.float64).reshape(-1)
    if len(values) != len(truth):
        raise ValueError(f"every label needs one score (got {len(values)} for {len(truth)})")
    has_label = ~np.isnan(truth)
    return values[has_label], truth[has_label]
