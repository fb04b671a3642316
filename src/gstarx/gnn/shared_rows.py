"""Node features that are gathered late, so that operations on single rows are computed once.

The nodes of a batch of coalitions are copies of the nodes of one graph. What a model does with them
before it passes messages, such as multiplying a thousand columns by a matrix, gives every copy the
same row. A :class:`GatheredRows` is a tensor that knows the graph's rows and which of them it
holds. Operations on single rows are applied to the rows of the graph, once, and remembered. Rows
that are sent along edges, with or without a weight for each, are added up where they arrive without
being gathered. Every other operation first gathers the rows and then gets an ordinary tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gstarx.gnn.watched_edges import WatchedEdges
from gstarx.graphs import compiled

_ATEN = torch.ops.aten
#: Results remembered for one tensor of rows. A model that computes its weights anew in every pass
#: never meets them again; beyond this many, rows are gathered at once.
_MOST_REMEMBERED = 16
#: Narrower features are gathered at once: what would be saved is less than it costs.
_FEWEST_COLUMNS = 64


class SharedRows:
    """The rows of a graph, and what operations on single rows made of them."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        #: Whether a model can use these rows without gathering them first, as far as is known.
        self.usable = rows.dim() == 2 and rows.shape[1] >= _FEWEST_COLUMNS
        self.usable &= rows.is_floating_point() and not rows.requires_grad
        self._made: dict[tuple[Any, ...], tuple[tuple[Any, ...], tuple[Any, ...]]] = {}

    def gathered(self, index: Tensor) -> Tensor:
        """Some of the rows: late if that may help, at once otherwise."""
        if not self.usable:
            return self.rows.index_select(0, index)
        return GatheredRows(self, index)

    def apply(self, func: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> Any:
        """An operation on these rows, with other arguments before and after them.

        Returns a tuple of what the operation returned, tensors of rows as :class:`SharedRows`, or
        None if the result could not be remembered.
        """
        key = _key((func, len(before), *before, *after))
        if key is None:
            return None
        if key not in self._made:
            if len(self._made) >= _MOST_REMEMBERED:
                return None
            result = func(*before, self.rows, *after)
            several = result if isinstance(result, tuple) else (result,)
            # the arguments are kept, so that no other tensor takes their place in memory
            self._made[key] = (before, after), (SharedRows(several[0]), *several[1:])
        return self._made[key][1]


class GatheredRows(Tensor):
    """Some rows of a :class:`SharedRows`, gathered when they are needed."""

    shared: SharedRows
    places: Tensor
    #: What every row is multiplied by, if anything, (n,).
    weights: Tensor | None
    _rows: Tensor | None

    @staticmethod
    def __new__(
        cls, shared: SharedRows, index: Tensor, weights: Tensor | None = None
    ) -> GatheredRows:
        """A tensor without content of its own."""
        rows = shared.rows
        made: GatheredRows = Tensor._make_wrapper_subclass(
            cls, (len(index), *rows.shape[1:]), dtype=rows.dtype, device=rows.device
        )
        return made

    def __init__(self, shared: SharedRows, index: Tensor, weights: Tensor | None = None) -> None:
        self.shared, self.places, self.weights, self._rows = shared, index, weights, None

    @classmethod
    def all_of(cls, rows: Tensor) -> GatheredRows:
        """All rows of a matrix."""
        return cls(SharedRows(rows), torch.arange(len(rows), device=rows.device))

    @property
    def gathered(self) -> Tensor:
        """The rows as an ordinary tensor, always the same one: it may be changed in place."""
        if self._rows is None:
            self._rows = self.shared.rows.index_select(0, self.places)
            if self.weights is not None:
                self._rows *= self.weights[:, None]
        return self._rows

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"GatheredRows(shape={tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Operations on single rows, or any operation on an ordinary tensor."""
        kwargs = kwargs or {}
        late = _HANDLERS.get(func)
        if late is not None:
            own = [a for a in args if isinstance(a, GatheredRows)]
            # rows that were gathered may have been changed in place
            weighted = any(a.weights is not None for a in own) and late not in _OF_WEIGHTED
            if len(own) == 1 and own[0]._rows is None and not weighted:
                result = late(own[0], func, args, kwargs)
                if result is not None:
                    return result
        result = func(
            *torch.utils._pytree.tree_map(gathered_now, args),
            **torch.utils._pytree.tree_map(gathered_now, kwargs),
        )
        # an operation in place returns the tensor it was given
        same = [a for a in args if isinstance(a, GatheredRows) and a._rows is result]
        return same[0] if same else result


def gathered_now(value: Any) -> Any:
    """Rows as an ordinary tensor; anything else as it is."""
    return value.gathered if isinstance(value, GatheredRows) else value


def own_copy(value: Any) -> Any:
    """A copy of a model's input that it may write into, in lists and dictionaries as well."""
    if isinstance(value, WatchedEdges):
        return value  # made for one pass
    if isinstance(value, GatheredRows):
        return GatheredRows(value.shared, value.places, value.weights)
    if isinstance(value, Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(own_copy, value))
    if isinstance(value, dict):
        return {key: own_copy(inner) for key, inner in value.items()}
    return value


def _by_row(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """An operation whose result in a row depends on nothing but that row."""
    at = next(i for i, a in enumerate(args) if a is own)
    if kwargs:
        return None
    made = own.shared.apply(func, tuple(args[:at]), tuple(args[at + 1 :]))
    if made is None:
        return None
    rows = GatheredRows(made[0], own.places)
    return rows if len(made) == 1 else (rows, *made[1:])


def _linear(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """A product with a matrix on the right, with or without a bias that is the same for all."""
    at = next(i for i, a in enumerate(args) if a is own)
    bias = args[0] if at == 1 else (args[2] if len(args) > 2 else None)
    shared_bias = bias is None or bias.dim() == 1 or len(bias) == 1
    expected = 1 if func is _ATEN.addmm.default else 0
    if at != expected or own.dim() != 2 or not shared_bias:
        return None
    return _by_row(own, func, args, kwargs)


def _with_constant(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """An operation of every element with a number, or with a row that is the same for all."""
    for other in args:
        if isinstance(other, Tensor) and other is not own:
            varies = other.dim() == own.dim() and len(other) != 1
            if other.dim() > own.dim() or varies or own.dim() < 2:
                return None
    return _by_row(own, func, args, kwargs)


def _normalized(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Batch norm by its running statistics."""
    mean, training = args[3], len(args) > 5 and args[5]
    if args[0] is not own or own.dim() != 2 or mean is None or training is not False:
        return None
    return _by_row(own, func, args, kwargs)


def _dropped(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Dropout in evaluation mode, which does nothing."""
    return own if len(args) == 3 and args[2] is False and not kwargs else None


def _selected(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Rows of these rows."""
    if args[0] is not own or args[1] % own.dim() != 0 or kwargs:
        return None
    return GatheredRows(own.shared, own.places.index_select(0, args[2]))


def _multiplied(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Rows times a number or row that is the same for all, or a number for every row."""
    other = args[1] if args[0] is own else args[0]
    if (
        isinstance(other, Tensor)
        and own.dim() == 2
        and other.shape == (len(own), 1)
        and len(own) != 1
        and other.dtype == own.dtype
    ):
        return GatheredRows(own.shared, own.places, other[:, 0])
    return _with_constant(own, func, args, kwargs)


def _zeros(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """A new tensor of the same kind."""
    return func(own.shared.rows, *args[1:], **kwargs)


def _expanded(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Another tensor in the shape of these rows."""
    return None if args[0] is own else args[0].expand(own.shape)


def _added_up(own: GatheredRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Rows added to those of a matrix, each to the one that an index says."""
    into, dim, index = args[:3]
    rows = own.shared.rows
    fast = (
        len(args) == 4
        and args[3] is own
        and type(into) is Tensor
        and dim == 0
        and into.dim() == own.dim() == index.dim() == 2
        and index.shape == own.shape
        and index.stride(1) == 0
        and into.shape[1] == own.shape[1]
        and into.is_contiguous()
        and into.dtype == rows.dtype
        and rows.dtype in (torch.float32, torch.float64)
        and {into.device.type, rows.device.type, index.device.type} == {"cpu"}
    )
    if not fast:
        return None
    weights = rows.new_empty(0) if own.weights is None else own.weights
    wrong = _add_rows(
        rows.detach().contiguous().numpy(),
        own.places.contiguous().numpy(),
        weights.detach().contiguous().numpy(),
        index[:, 0].contiguous().numpy(),
        into.detach().numpy(),
    )
    if wrong >= 0:
        raise IndexError(f"index {index[wrong, 0]} is out of bounds for {len(into)} rows")
    return into


@compiled
def _add_rows(rows, places, weights, index, into):  # type: ignore[no-untyped-def]
    """Add rows to others; the first place at which the index is wrong, or -1."""
    for e in range(len(places)):
        if index[e] < 0 or index[e] >= len(into):
            return e
        row, total = rows[places[e]], into[index[e]]
        if len(weights):
            weight = weights[e]
            for j in range(len(total)):
                total[j] += weight * row[j]
        else:
            for j in range(len(total)):
                total[j] += row[j]
    return -1


_POINTWISE = (
    "relu", "sigmoid", "tanh", "elu", "leaky_relu", "gelu", "silu", "celu", "hardtanh", "softplus",
    "neg", "exp", "abs", "sqrt", "clamp", "hardswish", "mish", "selu",
)  # fmt: skip
_WITH_CONSTANT = ("add", "sub", "div")
Handler = Callable[[GatheredRows, Any, Any, Any], Any]
_HANDLERS: dict[Any, Handler] = {
    **{getattr(_ATEN, name).default: _by_row for name in _POINTWISE},
    _ATEN.pow.Tensor_Scalar: _by_row,
    **{getattr(_ATEN, name).Tensor: _with_constant for name in _WITH_CONSTANT},
    **dict.fromkeys((_ATEN.linear.default, _ATEN.mm.default, _ATEN.addmm.default), _linear),
    **dict.fromkeys((_ATEN.batch_norm.default, _ATEN.native_batch_norm.default), _normalized),
    _ATEN.dropout.default: _dropped,
    _ATEN.index_select.default: _selected,
    _ATEN.mul.Tensor: _multiplied,
    _ATEN.expand_as.default: _expanded,
    _ATEN.new_zeros.default: _zeros,
    _ATEN.new_ones.default: _zeros,
    _ATEN.scatter_add_.default: _added_up,
}
#: What can be done with rows that have weights.
_OF_WEIGHTED = (_zeros, _expanded, _added_up)


def _key(arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What tells arguments apart, or None if they cannot be told apart later."""
    parts: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            if type(argument) not in (Tensor, torch.nn.Parameter) or argument.is_inference():
                # an inference tensor has no count of its changes
                return None
            place = (argument.data_ptr(), argument.storage_offset(), argument._version)
            parts.append(
                (*place, argument.shape, argument.stride(), argument.dtype, argument.device)
            )
        elif argument is None or isinstance(argument, bool | int | float | str):
            parts.append((type(argument), argument))
        else:
            parts.append(argument)
    try:
        hash(key := tuple(parts))
    except TypeError:
        return None
    return key
