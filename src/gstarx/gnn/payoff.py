"""From a model's outputs to the worth of a coalition."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gstarx._internal.arguments import one_of
from gstarx.registry import TASKS

MODES = ("multiclass_classification", "binary_classification", "regression")
RETURN_TYPES = ("raw", "probs", "log_probs")
PAYOFFS = ("auto", "norm_prob", "prob", "log_prob", "raw")


@dataclass(frozen=True)
class Contrast:
    """A payoff: the probability of class ``a`` less that of class ``b``.

    >>> Contrast(1, 0)
    Contrast(a=1, b=0)
    """

    a: int
    b: int


#: Valid values of ``payoff``.
PayoffLike = str | Contrast | Callable[[Tensor], Tensor]
#: Valid values of ``target``.
TargetLike = int | Sequence[int] | str | Tensor | None


def check_task(mode: str, return_type: str) -> tuple[str, str]:
    """Mode and return type by PyG's names, or an error that lists them.

    A mode may also have the name that datasets and the command line use.

    >>> check_task("classification", "raw"), check_task("multilabel", "probs")
    (('multiclass_classification', 'raw'), ('binary_classification', 'probs'))
    """
    mode, return_type = (str(getattr(name, "value", name)) for name in (mode, return_type))
    modes = tuple(dict.fromkeys((*MODES, *TASKS)))
    one_of(return_type, RETURN_TYPES, name="return_type")
    mode = TASKS.get(mode, one_of(mode, modes, name="mode"))
    if mode == "regression" and return_type != "raw":
        raise ValueError(
            f"a regression model returns raw outputs (got return_type={return_type!r})"
        )
    if mode == "binary_classification" and return_type == "log_probs":
        raise ValueError("a binary classifier returns 'raw' outputs or 'probs' (got 'log_probs')")
    return mode, return_type


def outputs_matrix(outputs: Any, rows: int) -> Tensor:
    """Outputs as a float matrix (rows, columns), or an error that says what came instead."""
    if not isinstance(outputs, Tensor):
        raise TypeError(
            f"the model must return a tensor (got {_described(outputs)}); wrap it in a function "
            "that picks the tensor to explain, such as "
            f"lambda x, edge_index, batch: model(x, edge_index, batch)[{_first_key(outputs)}]"
        )
    if outputs.dim() == 0 and rows == 1:
        outputs = outputs.reshape(1, 1)
    if outputs.dim() == 1 and len(outputs) == rows:
        outputs = outputs[:, None]
    if outputs.dim() == 1 and rows == 1:
        outputs = outputs[None]
    if outputs.dim() != 2 or len(outputs) != rows or outputs.shape[1] == 0:
        several = rows == 1 and outputs.dim() == 2 and len(outputs) > 1
        hint = "; for a model with a row per node, pass task='node' and index=..., a node"
        raise ValueError(
            f"the model must return one row for each of {rows} graphs or nodes, shape ({rows},) or "
            f"({rows}, columns) (got {tuple(outputs.shape)}){hint if several else ''}"
        )
    matrix: Tensor = outputs if outputs.is_floating_point() else outputs.float()
    return matrix


def _described(outputs: Any) -> str:
    if isinstance(outputs, Mapping):
        return f"{type(outputs).__name__} with {', '.join(map(repr, outputs))}"
    if isinstance(outputs, tuple | list):
        return f"{type(outputs).__name__} of {len(outputs)}"
    return type(outputs).__name__


def _first_key(outputs: Any) -> str:
    return repr(next(iter(outputs), "logits")) if isinstance(outputs, Mapping) else "0"


def check_outputs(outputs: Tensor, mode: str, return_type: str) -> None:
    """Raise unless outputs are the probabilities or log-probabilities that they are declared to be.

    Rows that are not numbers are left to whoever needs numbers.

    >>> check_outputs(torch.tensor([[0.25, 0.75]]), "multiclass_classification", "probs")
    """
    if mode == "regression" or return_type == "raw":
        return
    rows = outputs.detach()[~outputs.isnan().any(dim=1)]
    if not rows.numel():
        return
    shares = rows.exp() if return_type == "log_probs" else rows
    wrong = torch.maximum(-shares.amin(dim=1), shares.amax(dim=1) - 1)
    exclusive = mode == "multiclass_classification" and rows.shape[1] > 1
    if exclusive:
        wrong = torch.maximum(wrong, (shares.sum(dim=1) - 1).abs())
    if float(wrong.max()) <= max(1e-4, float(torch.finfo(rows.dtype).eps) ** 0.5):
        return
    worst = rows[int(wrong.argmax())].tolist()
    shown = ", ".join(f"{value:.4g}" for value in worst[:8]) + ", ..." * (len(worst) > 8)
    kind = "log-probabilities" if return_type == "log_probs" else "probabilities"
    together = ", which sum to 1 over the classes" if exclusive else ""
    raise ValueError(
        f"return_type={return_type!r} says that the model returns {kind}{together}, and it does "
        f"not (got {shown}): pass task=Task(return_type='raw') for logits, or let the model return "
        f"{kind}"
    )


def class_scores(outputs: Tensor, mode: str, return_type: str, kind: str) -> Tensor:
    """Probabilities, log-probabilities or raw scores, a column per class (or label, or target).

    A single binary output becomes two columns, one for each class. Outputs that are not what
    ``return_type`` says are an error.
    """
    check_outputs(outputs, mode, return_type)
    if mode == "regression":
        return outputs
    single = mode == "binary_classification" and outputs.shape[1] == 1
    if mode == "binary_classification":
        if return_type == "probs":
            on = outputs
            columns = torch.cat([1 - on, on], dim=1) if single else on
            return columns.log() if kind == "log_prob" else columns
        logits = torch.cat([-outputs, outputs], dim=1) if single else outputs
        if kind == "raw":
            return logits
        return functional.logsigmoid(logits) if kind == "log_prob" else logits.sigmoid()
    if kind == "raw":
        return outputs
    if return_type == "raw":
        log = functional.log_softmax(outputs, dim=1)
    else:
        log = outputs if return_type == "log_probs" else outputs.log()
    if kind == "log_prob":
        return log
    return outputs if return_type == "probs" else log.exp()


def require_classes(count: int, mode: str) -> None:
    """Raise if a model with one output is declared to have several classes."""
    if mode == "multiclass_classification" and count == 1:
        raise ValueError(
            "the model returns one output: pass task='binary' or task='regression', or for nodes "
            "task=Task(mode='regression', task_level='node') (got 'multiclass_classification')"
        )


def looks_like_probabilities(outputs: Tensor, mode: str) -> bool:
    """Whether outputs declared raw sum to one, or for one column all lie between 0 and 1."""
    if mode == "regression":
        return False
    low, high = (float(bound) for bound in outputs.aminmax())
    if not 0 <= low <= high <= 1:
        return False
    if outputs.shape[1] > 1 and mode == "multiclass_classification":
        return bool((outputs.sum(dim=1) - 1).abs().max() < 1e-4)
    return 0 < low <= high < 1


def choose_columns(target: TargetLike, scores: Tensor, mode: str, single: bool) -> list[int]:
    """Columns to explain: the requested ones, or the class predicted for the whole graph."""
    count = scores.shape[1]
    what = "a class" if mode == "multiclass_classification" or single else "an output"
    if isinstance(target, Tensor):
        target = target.reshape(-1).tolist()
    if target is None:
        if mode == "multiclass_classification" or single:
            return [int(scores[0].argmax())]
        if count == 1:
            return [0]
        raise ValueError(f"the model has {count} outputs: choose one with target=0..{count - 1}")
    if isinstance(target, str):
        if target != "all":
            raise ValueError(f"target must be {what}, a list of them, or 'all' (got {target!r})")
        return list(range(count))
    listed: Sequence[Any] = target if isinstance(target, Sequence) else [target]
    try:
        chosen = [operator.index(t) for t in listed]
    except TypeError:
        raise TypeError(
            f"target must be {what}, a list of them, or 'all' (got {target!r})"
        ) from None
    wrong = [t for t in chosen if not 0 <= t < count]
    if wrong or not chosen:
        got = wrong[0] if wrong else "none"
        raise ValueError(f"target must name {what} in 0..{count - 1} (got {got})")
    return chosen


@dataclass(frozen=True)
class Payoff:
    """How outputs become worths: which scores, which columns, and what is taken off.

    Attributes
    ----------
    name
        ``"norm_prob"``, ``"prob"``, ``"log_prob"``, ``"raw"``, ``"contrast"`` or ``"callable"``.
    columns
        The columns explained, one game each.
    baseline
        What is subtracted from each of them.
    baseline_source
        Where the baseline came from, in words.
    draws
        How many outputs of a row are behind each other: scores are averaged over them.
    """

    name: str
    mode: str
    return_type: str
    columns: tuple[int, ...]
    function: Callable[[Tensor], Tensor] | None = None
    against: int | None = None
    baseline: tuple[float, ...] = (0.0,)
    baseline_source: str = "none"
    draws: int = 1

    @property
    def kind(self) -> str:
        """The kind of scores it is made of."""
        if self.mode == "regression":
            return "raw"
        return self.name if self.name in ("log_prob", "raw") else "prob"

    def classes(self, outputs: Tensor) -> int:
        """Number of classes (or outputs) that there are to choose from."""
        single = self.mode == "binary_classification" and outputs.shape[1] == 1
        return 2 if single else outputs.shape[1]

    def scores(self, outputs: Tensor) -> Tensor:
        """Payoffs (rows, games) before the baseline is taken off."""
        if self.draws > 1:
            one_draw = replace(self, draws=1)
            rows = one_draw.scores(outputs.reshape(len(outputs) * self.draws, -1))
            return rows.reshape(len(outputs), self.draws, -1).mean(dim=1)
        if self.function is not None:
            payoffs = self.function(outputs)
            shape = getattr(payoffs, "shape", None)
            if shape is None or tuple(shape[:1]) != (len(outputs),):
                got = type(payoffs).__name__ if shape is None else tuple(shape)
                raise ValueError(
                    f"a payoff function must return a tensor of {len(outputs)} rows (got {got})"
                )
            return payoffs[:, None] if payoffs.dim() == 1 else payoffs
        scores = class_scores(outputs, self.mode, self.return_type, self.kind)
        chosen = scores[:, list(self.columns)]
        return chosen - scores[:, [self.against]] if self.against is not None else chosen

    def scores_array(self, outputs: Tensor) -> NDArray[np.float64]:
        """The scores as an array of their own, in double precision."""
        return np.array(self.scores(outputs).double().cpu().numpy())


def resolve_payoff(
    payoff: PayoffLike,
    target: TargetLike,
    full_output: Tensor,
    *,
    mode: str,
    return_type: str,
) -> Payoff:
    """The payoff that was chosen, for a model whose output on the whole graph is (1, C)."""
    if not isinstance(payoff, str | Contrast) and not callable(payoff):
        raise TypeError(f"payoff must be a name, a Contrast or a callable (got {payoff!r})")
    if callable(payoff) and not isinstance(payoff, Contrast):
        check_outputs(full_output, mode, return_type)
        return Payoff("callable", mode, return_type, (0,), function=payoff)
    if isinstance(payoff, str):
        one_of(payoff, PAYOFFS, name="payoff")
    single = mode == "binary_classification" and full_output.shape[1] == 1
    require_classes(full_output.shape[1], mode)
    scores = class_scores(full_output, mode, return_type, "prob")
    if isinstance(payoff, Contrast):
        a, b = choose_columns([payoff.a, payoff.b], scores, mode, single)
        return Payoff("contrast", mode, return_type, (a,), against=b)
    if mode == "regression":
        if payoff not in ("auto", "raw"):
            raise ValueError(f"payoff must be 'auto' or 'raw' for regression (got {payoff!r})")
        payoff = "raw"
    name = "norm_prob" if payoff == "auto" else payoff
    return Payoff(name, mode, return_type, tuple(choose_columns(target, scores, mode, single)))
