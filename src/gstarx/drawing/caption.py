"""What a picture says about the prediction: the class and its probability, or the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gstarx._internal import rounding
from gstarx.gnn import check_task, class_scores


def prediction_caption(
    output: Tensor,
    target: int | None = None,
    *,
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
) -> str:
    """The prediction for one graph in words.

    Parameters
    ----------
    output
        The model's output (1, C) or (C,).
    target
        The class or output that was explained; by default the predicted class, or the first output.
    mode, return_type
        What the model does, as for :func:`gstarx.explain`.
    class_names, target_names
        Names of the classes, or of the outputs of a multilabel or regression model.

    Examples
    --------
    >>> import torch
    >>> prediction_caption(torch.tensor([[0.0, 2.0]]), class_names=("inactive", "active"))
    'predicted: active, probability 0.881'
    >>> prediction_caption(torch.tensor([[1.25]]), mode="regression", target_names=("logP",))
    'logP: predicted 1.25'
    """
    row = output.detach().reshape(1, -1)
    mode, return_type = check_task(mode, return_type)
    if mode == "regression" or (mode == "binary_classification" and row.shape[1] > 1):
        column = target or 0
        name = output_name(column, target_names, row.shape[1])
        value = float(class_scores(row, mode, return_type, "prob")[0, column])
        if mode == "regression":
            return f"{name}: predicted {rounding.output(value)}"
        return f"{name}: probability {rounding.probability(value)}"
    shares = class_scores(row, mode, return_type, "prob")[0]
    best = int(shares.argmax())

    def named(number: int) -> str:
        share = rounding.probability(float(shares[number]))
        return f"{class_name(number, class_names)}, probability {share}"

    if target is None or target == best:
        return f"predicted: {named(best)}"
    return f"explained: {named(target)}; predicted: {named(best)}"


def caption_of(
    explanation: Any, *, class_names: Sequence[str] = (), target_names: Sequence[str] = ()
) -> str | None:
    """The caption of an explanation; ``None`` if it does not know the model's output."""
    output = explanation.get("prediction")
    if output is None or explanation.get("mode") is None:
        return None
    if explanation.get("index") is not None:
        output = output[int(explanation.index)]
    own_payoff = explanation.get("payoff") == "callable"
    explained = [] if own_payoff else explanation.explained
    return prediction_caption(
        output,
        int(explained[0]) if len(explained) == 1 else None,
        mode=explanation.mode,
        return_type=explanation.return_type,
        class_names=class_names,
        target_names=target_names,
    )


def class_name(number: int, names: Sequence[str]) -> str:
    """The name of a class, or its number."""
    return str(names[number]) if 0 <= number < len(names) else f"class {number}"


def output_name(number: int, names: Sequence[str], count: int = 2) -> str:
    """The name of an output of a model with ``count`` of them, or its number."""
    if 0 <= number < len(names):
        return str(names[number])
    return "value" if count == 1 else f"output {number}"
