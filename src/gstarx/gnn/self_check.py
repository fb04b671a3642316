"""The self-check: the same output twice, and whatever else is in the batch.

Explanations compare outputs for many parts of a graph, evaluated many at a time. Two kinds of
models would give plausible numbers that are not the model's: those that mix the graphs of a batch
(a norm over nodes that is not given ``batch``, padding to the largest graph) and those that are
random in evaluation mode (``F.dropout`` without ``training=``). Both show when some graph goes
through the model in other company or alone as well as inside a batch.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gstarx.gnn.shared_rows import gathered_now
from gstarx.gnn.signature import Model, networks_of

#: Graphs of a batch that are evaluated once more in other company.
_COMPARED = 16
#: Differences of so many tolerances at most may still be rounding: double precision decides.
_DOUBTFUL = 100


class BatchMixing(RuntimeError):
    """A model's output for a graph, that of ``row``, depends on what else is in the batch."""

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


@dataclass
class SelfCheck:
    """What was compared so far, and what came out.

    Attributes
    ----------
    enabled
        Whether outputs are compared at all.
    comparisons
        How many outputs were compared with those of the same part of the graph alone, or in other
        company.
    largest_difference
        The largest difference among them, relative to the largest output of the batch.
    one_by_one
        Why coalitions are evaluated one at a time; empty where they are not.
    """

    enabled: bool = True
    comparisons: int = 0
    largest_difference: float = 0.0
    one_by_one: str = ""

    def same(self, inside: Tensor, alone: Tensor, scale: float) -> bool:
        """Compare outputs of graphs in two batches; remember by how much they differ.

        ``scale`` is the size of outputs: a difference counts beyond what rounding explains.
        """
        gap = difference(inside, alone) / max(scale, torch.finfo(torch.float32).tiny)
        self.comparisons += len(inside)
        self.largest_difference = max(self.largest_difference, gap)
        return gap <= rounding(inside.dtype)

    def as_dict(self) -> dict[str, Any]:
        """What an explanation records."""
        return {
            "enabled": self.enabled,
            "comparisons": self.comparisons,
            "largest_difference": self.largest_difference,
            "one_by_one": self.one_by_one,
        }


def rounding(dtype: torch.dtype) -> float:
    """By how much outputs of one size may differ when only the order of additions does.

    >>> rounding(torch.float32) < 1e-4, rounding(torch.float64) < 1e-9
    (True, True)
    """
    return float(torch.finfo(dtype).eps ** 0.6)


def difference(a: Tensor, b: Tensor) -> float:
    """Largest difference of two outputs of one shape; what is not finite must be so in both."""
    if a.shape != b.shape:
        return float("inf")
    a, b = a.double(), b.double()
    gap = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
    return float(gap.nan_to_num(nan=torch.inf, posinf=torch.inf).max()) if gap.numel() else 0.0


def size_of(outputs: Tensor) -> float:
    """The largest finite output."""
    finite = outputs[outputs.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def require_apart(
    outputs: Tensor,
    sizes: NDArray[np.int64],
    again: Callable[[NDArray[np.int64]], Tensor],
    check: SelfCheck,
    in_double: Callable[[NDArray[np.int64]], Tensor],
) -> None:
    """Raise :class:`BatchMixing` unless rows of a batch have the same outputs in other company.

    ``again`` is called twice for some rows: for the largest graph alone, and for a few others
    in another order, the smallest among them: a mean over the batch or padding to its largest graph
    shows in these. A batch of one needs no comparison. Where ``again`` fails, though the batch went
    through, that counts as mixing too.

    Where large terms cancel, outputs are small and their rounding errors are not. A difference that
    is a little too large is therefore looked at once more with ``in_double``, which is ``again`` in
    double precision: rounding disappears there, mixing does not.
    """
    if len(sizes) < 2:
        return
    scale = size_of(outputs)
    for rows in _other_company(sizes):
        try:
            expected = again(rows)
        except Exception as error:
            raise BatchMixing("a coalition of a batch fails alone", int(rows[0])) from error
        if not check.same(outputs[rows], expected, scale):
            allowed = _DOUBTFUL * rounding(outputs.dtype) * scale
            if difference(outputs[rows], expected) <= allowed and _agree(rows, sizes, in_double):
                continue
            gaps = [difference(outputs[r], e) for r, e in zip(rows, expected, strict=True)]
            row = int(rows[int(np.argmax(gaps))])
            raise BatchMixing("the model mixes the graphs of a batch", row)


def _agree(
    rows: NDArray[np.int64],
    sizes: NDArray[np.int64],
    in_double: Callable[[NDArray[np.int64]], Tensor],
) -> bool:
    """Whether rows have the outputs of the batch in double precision, as far as that can be had."""
    try:
        together, apart = in_double(np.arange(len(sizes))), in_double(rows)
    except Exception:  # a function, or a model that fixes its precision
        return False
    if {together.dtype, apart.dtype} != {torch.float64}:
        return False
    return difference(together[rows], apart) <= rounding(torch.float64) * size_of(together)


def doubled(model: Model) -> Model:
    """A copy of a network in double precision."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"only a module has a precision (got {type(model).__name__})")
    with torch.inference_mode(False):
        return copy.deepcopy(model).double()


def doubled_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a model in double precision."""
    plain = {key: gathered_now(value) for key, value in fields.items()}
    return {
        key: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for key, value in plain.items()
    }


def _other_company(sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows of a batch to evaluate again together: the largest, and some of the others."""
    largest = int(sizes.argmax())
    others = np.delete(np.arange(len(sizes)), largest)
    smallest = others[sizes[others].argmin()]
    shuffled = np.random.default_rng(len(sizes)).permutation(others[others != smallest])
    return [np.array([largest]), np.append(shuffled[: _COMPARED - 1], smallest)]


def say_one_by_one() -> None:
    """Warn that graphs are evaluated one at a time; the same words always, to be said once."""
    warnings.warn(
        "the model mixes the graphs of a batch: its output for one graph changes with the others, "
        "as with a norm or a mean over all nodes that is not given batch. Coalitions are therefore "
        "evaluated one at a time, which is right but slower",
        stacklevel=4,
    )


def refuse_random(
    model: Model, run: Callable[[], Any], first: Tensor, second: Tensor, scale: float
) -> None:
    """Raise, naming the operation, if two outputs for one graph differ: the model is random."""
    gap = difference(first, second)
    if gap <= rounding(first.dtype) * max(scale, torch.finfo(torch.float32).tiny):
        return
    seen = _random_operations(model, run)
    where = (
        f"random numbers are drawn by {', '.join(seen)}"
        if seen
        else "no random operation of torch was seen, so it may draw elsewhere or keep state"
    )
    raise ValueError(
        "the model gives different outputs for the same graph in evaluation mode (they differ by "
        f"{gap:.3g}), so that there is no one prediction to explain: {where}. Dropout must stop in "
        "evaluation mode, as F.dropout(x, p, training=self.training) does"
    )


def _at_rest(operation: Any, args: Sequence[Any]) -> bool:
    """Whether it is a dropout that drops nothing."""
    names = [argument.name for argument in operation._schema.arguments]
    return any(name == "train" and value is False for name, value in zip(names, args, strict=False))


def _random_operations(model: Model, run: Callable[[], Any]) -> list[str]:
    """Random operations in one run of a model, each with the layer it was called in."""
    path: list[str] = []
    operations: dict[str, None] = {}

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if torch.Tag.nondeterministic_seeded in func.tags and not _at_rest(func, args):
                name = func.name().rpartition("::")[2].partition(".")[0]
                operations[f"{name} in {path[-1] if path else 'the model itself'}"] = None
            return func(*args, **(kwargs or {}))

    with ExitStack() as stack:
        for network in networks_of(model):
            if isinstance(network, torch.jit.ScriptModule):
                continue
            for name, module in network.named_modules():
                label = f"layer {name!r}" if name else type(module).__name__
                handles = (
                    module.register_forward_pre_hook(lambda *_, own=label: path.append(own)),
                    module.register_forward_hook(lambda *_: path.pop() and None),
                )
                for handle in handles:
                    stack.callback(handle.remove)
        try:
            # in inference mode operations such as dropout are seen under their own names
            with torch.inference_mode(), Watch():
                run()
        except Exception:
            operations.clear()
    return list(operations)
