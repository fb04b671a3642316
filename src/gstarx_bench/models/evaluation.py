"""How well a model predicts labels: scores, and the loss that a task is trained for.

A label that is nan was not measured and does not count. Where a score is not defined, because all
labels are the same or there are none, it is nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gstarx.gnn import model_device, untouched
from gstarx.metrics import auroc as auroc_of_nodes
from gstarx.models import Network
from gstarx_bench.models.collation import CollatedGraphs, GraphBatch

#: Graphs that are evaluated at once.
_BATCH = 512


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
    data = CollatedGraphs.of(graphs)
    node_mask = None
    if mask is not None:
        if mask not in data.masks or not data.node_level:
            valid = ", ".join(map(repr, data.masks)) if data.node_level and data.masks else "none"
            raise ValueError(f"mask must be one that the graphs have: {valid} (got {mask!r})")
        node_mask = data.masks[mask]
    return evaluate(model, data, torch.arange(len(data)), node_mask)[1]


def evaluate(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None = None
) -> tuple[float, float]:
    """Cross-entropy and accuracy over some of the graphs, every label with the same weight."""
    loss = correct = count = 0.0
    for logits, y in _chunks(model, data, ids, mask):
        loss += float(functional.cross_entropy(logits, y, reduction="sum"))
        correct += int((logits.argmax(dim=1) == y).sum())
        count += len(y)
    if not count:
        raise ValueError("there must be at least one label to predict (got none)")
    return loss / count, correct / count


def outputs_of(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs and labels of some of the graphs, a row for each label."""
    outputs, labels = zip(*_chunks(model, data, ids, mask), strict=True)
    return torch.cat(outputs), torch.cat(labels)


def _chunks(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None
) -> list[tuple[Tensor, Tensor]]:
    device, dtype = model_device(model, torch.device("cpu")), float_type(model)
    outputs = []
    with untouched(model):
        for chunk in torch.split(ids, _BATCH):
            batch = data.batch(chunk, device=device, dtype=dtype, mask=mask)
            outputs.append((predict(model, batch), batch.y))
    return outputs


def predict(model: nn.Module, batch: GraphBatch) -> Tensor:
    """Outputs (labels, classes) for a batch; raises if they have another shape."""
    outputs: Any = model(batch.x, batch.edge_index, batch.batch)
    if batch.y.dim() == 2:
        if isinstance(outputs, Tensor) and outputs.dim() == 1:
            outputs = outputs[:, None]
        if not isinstance(outputs, Tensor) or outputs.shape != batch.y.shape:
            got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise ValueError(
                f"the model must return an output for each target of {len(batch.y)} graphs, "
                f"{tuple(batch.y.shape)} (got {got})"
            )
        return outputs
    expected = len(batch.y) if batch.rows is None else len(batch.x)
    if not isinstance(outputs, Tensor) or outputs.dim() != 2 or len(outputs) != expected:
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        noun = "graphs" if batch.rows is None else "nodes"
        raise ValueError(
            f"the labels are those of {expected} {noun}, for which the model must return "
            f"({expected}, classes) (got {got})"
        )
    return outputs if batch.rows is None else outputs[batch.rows]


def float_type(model: nn.Module) -> torch.dtype:
    """The dtype of the model's weights, which its features must have."""
    types = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(types, torch.float32)


Column = NDArray[np.float64]


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
        labels = functional.one_hot(labels, outputs.shape[1])[
            :, -1 if outputs.shape[1] == 2 else 0 :
        ]
        outputs = outputs.double().softmax(dim=1)[:, -labels.shape[1] :]
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
    finite = [number for number in numbers if not math.isnan(number)]
    return sum(finite) / len(finite) if finite else math.nan


def _known(scores: ArrayLike, labels: ArrayLike) -> tuple[Column, Column]:
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    truth = np.asarray(labels, dtype=np.float64).reshape(-1)
    if len(values) != len(truth):
        raise ValueError(f"every label needs one score (got {len(values)} for {len(truth)})")
    has_label = ~np.isnan(truth)
    return values[has_label], truth[has_label]


@dataclass(frozen=True)
class Objective:
    """A task as training needs it.

    Attributes
    ----------
    task
        ``"classification"`` (cross-entropy), ``"binary"`` or ``"multilabel"`` (binary cross-entropy
        with logits), or ``"regression"`` (squared error). Labels that are nan do not count.
    center, spread
        Of a regression: mean and standard deviation of every target; the network learns targets
        that are standardized by them.
    """

    task: str = "classification"
    center: Tensor | None = None
    spread: Tensor | None = None

    @classmethod
    def of(cls, task: str, labels: Tensor, names: Sequence[str]) -> Objective:
        """The objective of a task, from the labels to train on.

        Raises
        ------
        ValueError
            When there is nothing to learn: one class or one value only, or a target without labels.
        """
        columns = labels[:, None] if labels.dim() == 1 else labels
        named = dict(zip(range(columns.shape[1]), names, strict=False))
        for at, column in enumerate(columns.T):
            labeled = column[~column.isnan()] if column.is_floating_point() else column
            noun = f"target {named[at]!r}" if at in named else "the label"
            if not len(labeled):
                raise ValueError(f"no training graph has a value of {noun}")
            if task != "multilabel" and bool((labeled == labeled[0]).all()):
                raise ValueError(
                    f"{noun} must differ between training graphs to be learned (got only "
                    f"{labeled[0].item():g} for {len(labeled)} of them)"
                )
        if task != "regression":
            return cls(task)
        labeled = ~labels.isnan()
        values = labels.double().nan_to_num()
        count = labeled.sum(dim=0)
        center = values.sum(dim=0) / count
        variance = (((values - center) ** 2) * labeled).sum(dim=0) / count
        return cls(task, center, variance.sqrt())

    def count(self, y: Tensor) -> int:
        """How many labels count."""
        return len(y) if self.task == "classification" else int((~y.isnan()).sum())

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss over the labels that count, of which there must be one."""
        if self.task == "classification":
            return functional.cross_entropy(outputs, y)
        has_label = ~y.isnan()
        expected = self.standardized(y)[has_label].to(outputs.dtype)
        if self.task == "regression":
            return functional.mse_loss(outputs[has_label], expected)
        return functional.binary_cross_entropy_with_logits(outputs[has_label], expected)

    def validate(
        self, model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None
    ) -> tuple[float, float]:
        """Loss and score on some graphs: accuracy, AUROC, or minus the RMSE of standard targets."""
        if self.task == "classification":
            return evaluate(model, data, ids, mask)
        outputs, y = outputs_of(model, data, ids, mask)
        pairs = list(zip(outputs.cpu().T, self.standardized(y).cpu().T, strict=True))
        score = auroc if self.task != "regression" else (lambda *pair: -rmse(*pair))
        return float(self.loss(outputs, y)), mean_known([score(*pair) for pair in pairs])

    def standardized(self, y: Tensor) -> Tensor:
        """Labels as the network learns them."""
        if self.center is None or self.spread is None:
            return y
        return (y.double() - self.center.to(y.device)) / self.spread.to(y.device)

    def fitting(self, model: nn.Module, data: CollatedGraphs, ids: Tensor) -> Objective:
        """Itself, or without standardization for a model whose last layer cannot undo it."""
        if self.center is None or isinstance(model, Network):
            return self
        sample = ids[:8]
        before, _ = outputs_of(model, data, sample)
        copy = deepcopy(model)
        trial = Objective(self.task, torch.ones_like(self.center), 2 * torch.ones_like(self.center))
        if trial.fold(copy):
            after, _ = outputs_of(copy, data, sample)
            if torch.allclose(after, 2 * before + 1, rtol=1e-3, atol=1e-3):
                return self
        return Objective(self.task)

    def fold(self, model: nn.Module) -> bool:
        """Let the last linear layer undo the standardization; whether there is such a layer."""
        if self.center is None or self.spread is None:
            return True
        linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
        if isinstance(model, Network):
            linear = [model.classifier]
        last: Any = linear[-1] if linear else None
        if last is None or last.out_features != len(self.center) or last.bias is None:
            return False
        with torch.no_grad():
            weight, bias = last.weight.double(), last.bias.double()
            spread, center = self.spread.to(bias.device), self.center.to(bias.device)
            last.weight.copy_(weight * spread[:, None])
            last.bias.copy_(bias * spread + center)
        return True
