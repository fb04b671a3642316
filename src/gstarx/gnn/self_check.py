"""The self-check: the same output twice, and whatever else is in the batch.

Explanations compare outputs for many parts of a graph, evaluated many at a time. Two kinds of
models would give plausible numbers that are not the model's: those that mix the graphs of a batch
(a norm over nodes that is not given ``batch``, padding to the largest graph) and those that are
random in evaluation mode (``F.dropout`` without ``training=``). Both show when some graph goes
through the model in other company or alone as well as inside a batch. What a model does with small
graphs only (``if edge_index.numel() == 0``) shows in no batch at all: the smallest coalition, one
without edges and the largest are always evaluated by themselves.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
#: Differences that count as none: of the spread of outputs, and of their size. Half precision has
#: no room for the second, as a few of its steps may be as large as the differences to explain.
_OF_SPREAD = {torch.float64: 1e-10}
_OF_SIZE = {torch.float64: 1e-11, torch.float32: 4 * torch.finfo(torch.float32).eps}


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

    def same(self, inside: Tensor, alone: Tensor, scale: Scale) -> bool | None:
        """Compare outputs of graphs in two batches, as :meth:`Scale.same` does, and take note."""
        size = max(float(scale.size.max()), torch.finfo(torch.float32).tiny)
        self.comparisons += len(inside)
        same = scale.same(inside, alone)
        gap = difference(inside, alone) / size
        self.largest_difference = max(self.largest_difference, gap)
        return same

    def as_dict(self) -> dict[str, Any]:
        """What an explanation records."""
        return {
            "enabled": self.enabled,
            "comparisons": self.comparisons,
            "largest_difference": self.largest_difference,
            "one_by_one": self.one_by_one,
        }


@dataclass(frozen=True)
class Scale:
    """What differences of outputs (k, columns) are measured by, column by column.

    Attributes
    ----------
    spread
        The range of the outputs that are finite: what an explanation divides among the players.
    size
        The largest of them, up to sign: rounding errors grow with it.
    """

    spread: Tensor
    size: Tensor

    @classmethod
    def of(cls, outputs: Tensor) -> Scale:
        """The scale of some outputs."""
        outputs, finite = outputs.double(), outputs.isfinite()
        high = outputs.masked_fill(~finite, -torch.inf).amax(dim=0)
        low = outputs.masked_fill(~finite, torch.inf).amin(dim=0)
        size = torch.maximum(high.abs(), low.abs())
        known = finite.any(dim=0)
        return cls((high - low).where(known, 0.0), size.where(known, 0.0))

    def same(self, a: Tensor, b: Tensor) -> bool | None:
        """Whether outputs of this scale are the same; ``None`` if it may be rounding or not.

        In single and half precision the last digits of large outputs may say nothing about small
        differences between them. Double precision has to decide then, in which rounding disappears
        and mixing does not.
        """
        if a.shape != b.shape:
            return False
        gap = gaps(a, b).amax(dim=0) if len(a) else torch.zeros_like(self.size)
        allowed = _OF_SPREAD.get(a.dtype, 1e-5) * self.spread + _OF_SIZE.get(a.dtype, 0) * self.size
        if bool((gap <= allowed).all()):
            return True
        if not a.is_floating_point():
            return False
        doubtful = gap.max() <= _DOUBTFUL * rounding(a.dtype) * self.size.max()
        return None if doubtful and a.dtype != torch.float64 else False


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
    return float(gaps(a, b).max()) if a.numel() else 0.0


def gaps(a: Tensor, b: Tensor) -> Tensor:
    """Differences of all numbers of two tensors of one shape, in double precision."""
    a, b = a.double(), b.double()
    gap = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
    return gap.nan_to_num(nan=torch.inf, posinf=torch.inf)


def size_of(outputs: Tensor) -> float:
    """The largest finite output."""
    finite = outputs[outputs.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def same_outputs(one: Tensor, other: Tensor, everything: Tensor) -> bool:
    """Whether outputs are the same up to rounding, given all outputs of the model."""
    return difference(one, other) <= rounding(other.dtype) * size_of(everything)


def require_apart(
    outputs: Tensor,
    ends: Sequence[int],
    again: Callable[[NDArray[np.int64]], Tensor],
    check: SelfCheck,
    in_double: Callable[[NDArray[np.int64]], Tensor],
) -> None:
    """Raise :class:`BatchMixing` unless rows of a batch have the same outputs in other company.

    ``again`` is called for the rows ``ends``, each alone, and for a few others together in another
    order. ``in_double`` is ``again`` in double precision, for all rows and for those in doubt. A
    batch of one needs no comparison. Where ``again`` fails, though the batch went through, that
    counts as mixing too.
    """
    if len(outputs) < 2:
        return
    scale = Scale.of(outputs)
    for rows in _other_company(len(outputs), ends):
        try:
            expected = again(rows)
        except Exception as error:
            raise BatchMixing("a coalition of a batch fails alone", int(rows[0])) from error
        same = check.same(outputs[rows], expected, scale)
        if same is None:
            same = same_in_double(rows, len(outputs), in_double)
        if not same:
            row = int(rows[int(gaps(outputs[rows], expected).amax(dim=1).argmax())])
            raise BatchMixing("the model mixes the graphs of a batch", row)


def same_in_double(
    rows: NDArray[np.int64], count: int, in_double: Callable[[NDArray[np.int64]], Tensor]
) -> bool:
    """Whether rows have the outputs of the batch in double precision, as far as that can be had."""
    try:
        together, apart = in_double(np.arange(count)), in_double(rows)
    except Exception:  # a function, or a model that fixes its precision
        return False
    if {together.dtype, apart.dtype} != {torch.float64}:
        return False
    return Scale.of(together).same(together[rows], apart) is True


@contextmanager
def doubled(model: Model) -> Iterator[None]:
    """Let the networks that a callable runs be copies in double precision inside this block."""
    networks = networks_of(model)
    if not networks:
        raise TypeError(f"only a network has a precision (got {type(model).__name__})")
    copies = [copy.deepcopy(network).double() for network in networks]
    kept = [network.__dict__ for network in networks]
    try:
        for network, made in zip(networks, copies, strict=True):
            object.__setattr__(network, "__dict__", made.__dict__)
        yield
    finally:
        for network, own in zip(networks, kept, strict=True):
            object.__setattr__(network, "__dict__", own)


def doubled_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a model in double precision."""
    plain = {key: gathered_now(value) for key, value in fields.items()}
    return {
        key: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for key, value in plain.items()
    }


def _other_company(count: int, ends: Sequence[int]) -> list[NDArray[np.int64]]:
    """Rows of a batch to evaluate again together: each end by itself, and some of the others."""
    others = np.setdiff1d(np.arange(count), ends)
    shuffled = np.random.default_rng(count).permutation(others)[:_COMPARED]
    groups = [np.array([end]) for end in dict.fromkeys(ends)]
    return [*groups, shuffled] if len(shuffled) else groups


def smallest_and_largest(sizes: NDArray[np.int64]) -> list[int]:
    """The rows of a batch that have the fewest and the most nodes."""
    return [int(sizes.argmax()), int(sizes.argmin())]


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
