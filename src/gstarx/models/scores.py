"""How good predictions are: accuracy, AUROC, average precision, RMSE and R².

A label that is nan was not measured and does not count. Where a number is not defined, because all
labels are the same or there are none, it is nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from gstarx.metrics import auroc as auroc_of_nodes

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
