"""Edges that only message passing can read, while nodes of different coalitions share embeddings.

A node of a graph of states stands for many nodes of many coalitions. What arrives along the edges
is right for all of them; everything else that could be read off the edges, such as triangles,
degrees of neighbors or the number of edges, is not. A model is therefore given tensors in place of
``edge_index`` and of the fields of edges that can do a few things only:

- be the argument of a layer that is known (:mod:`gstarx.gnn.known_layers`), or of ``propagate`` of
  any other layer of PyG: inside, they are ordinary tensors;
- lose or gain self-loops, as ``remove_self_loops`` and ``add_self_loops`` do;
- be computed edge by edge, as an embedding of their kinds is, if they are fields of edges.

All other uses raise :class:`UsesEdges`, asking how many edges there are included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import torch
from torch import Tensor

_ATEN = torch.ops.aten


#: What was refused inside :func:`refusals_stand`.
_refused: ContextVar[list[NotShareable] | None] = ContextVar("refused", default=None)


class NotShareable(RuntimeError):
    """Why the nodes of coalitions cannot share their embeddings, in words for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        refused = _refused.get()
        if refused is not None:
            refused.append(self)


@contextmanager
def refusals_stand() -> Iterator[None]:
    """Raise the first refusal of this block at its end if it was caught inside.

    A model that catches it goes on in another way than with ordinary tensors.
    """
    refused: list[NotShareable] = []
    token = _refused.set(refused)
    try:
        yield
    finally:
        _refused.reset(token)
    if refused:
        raise refused[0]


class UsesEdges(NotShareable):
    """The model reads the edges in another way than by messages."""

    def __init__(self, operation: Any) -> None:
        super().__init__(f"the model reads edges outside of its message passing ({operation})")


class EdgeSet:
    """Some edges, to which tensors with a row for each of them belong."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._looped: EdgeSet | None = None
        self._kept: list[tuple[Tensor, EdgeSet]] = []

    def looped(self) -> EdgeSet:
        """These edges, and then a self-loop for every node."""
        self._looped = self._looped or EdgeSet(self.nodes)
        return self._looped

    def kept(self, mask: Tensor) -> EdgeSet:
        """Those of these edges for which a mask is true."""
        for known, edges in self._kept:
            if known is mask:
                return edges
        self._kept.append((mask, EdgeSet(self.nodes)))
        return self._kept[-1][1]


class WatchedEdges(Tensor):
    """The ends of edges (2, E), one end of each (E,), or a field of edges (E, ...).

    Attributes
    ----------
    plain
        The tensor itself.
    edges
        The edges it belongs to.
    end
        ``None`` for both ends, 0 or 1 for one of them, -1 for a field.
    """

    plain: Tensor
    edges: EdgeSet
    end: int | None

    @staticmethod
    def __new__(cls, plain: Tensor, edges: EdgeSet, end: int | None = -1) -> WatchedEdges:
        """A tensor without content of its own."""
        made: WatchedEdges = Tensor._make_wrapper_subclass(
            cls, plain.shape, dtype=plain.dtype, device=plain.device
        )
        return made

    def __init__(self, plain: Tensor, edges: EdgeSet, end: int | None = -1) -> None:
        self.plain, self.edges, self.end = plain, edges, end

    @property
    def is_field(self) -> bool:
        """Whether this is a field of edges."""
        return self.end == -1

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return "WatchedEdges()"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Sizes without the number of edges; anything else goes on to the operation itself."""
        if func in _SIZES:
            return _size(cast("WatchedEdges", args[0]), func, *args[1:], **(kwargs or {}))
        if func in _COUNTS or (func in _SHAPED_LIKE and not isinstance(args[0], WatchedEdges)):
            raise UsesEdges("the number of edges")
        try:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        except NotShareable:
            raise
        except Exception as error:  # refused by torch itself, as numpy() is
            raise UsesEdges(error) from error

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What is known to keep to single edges, and no other operation."""
        handler = _HANDLERS.get(func)
        result = NotImplemented if handler is None else handler(func, args, kwargs or {})
        if result is NotImplemented:
            raise UsesEdges(func)
        return result


def watch(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Fields by name, with watched tensors for ``edge_index`` and the fields of edges named."""
    edges = EdgeSet(fields["num_nodes"])
    watched = {name: WatchedEdges(fields[name], edges) for name in names if name in fields}
    return {**fields, **watched, "edge_index": WatchedEdges(fields["edge_index"], edges, None)}


def watch_relations(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by name, with watched tensors in dictionaries by relation."""
    edges: dict[Any, EdgeSet] = {}
    watched: dict[str, Any] = {}
    for name, value in fields.items():
        end = None if name == "edge_index" else -1
        watched[name] = value
        if isinstance(value, dict):
            watched[name] = {
                key: WatchedEdges(part, edges.setdefault(key, EdgeSet(-1)), end)
                if isinstance(key, tuple)
                else part
                for key, part in value.items()
            }
    return watched


def bare(value: Any) -> Any:
    """The same with ordinary tensors in place of watched ones."""
    if isinstance(value, WatchedEdges):
        return value.plain
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(bare(item) for item in value)
    return value


def holds_ends(value: Any) -> bool:
    """Whether there are ends of edges among watched tensors, in lists and dictionaries as well."""
    if isinstance(value, dict):
        return any(map(holds_ends, value.values()))
    if type(value) in (tuple, list):
        return any(map(holds_ends, value))
    return isinstance(value, WatchedEdges) and not value.is_field


def _hidden_axis(own: WatchedEdges) -> int:
    """The dimension whose size is the number of edges."""
    return 1 if own.end is None else 0


class _Count:
    """The number of edges in a shape, for those that read it without asking for an item."""

    def _refuse(self, *_: Any) -> Any:
        raise UsesEdges("the number of edges")

    __index__ = __eq__ = __hash__ = _refuse

    def __repr__(self) -> str:
        return "?"


class _Shape(tuple[Any, ...]):
    """The shape of a watched tensor, which does not say how many edges there are."""

    hidden = 0

    def __getitem__(self, at: Any) -> Any:
        axes = range(len(self))[at]
        if self.hidden in (axes if isinstance(at, slice) else (axes,)):
            raise UsesEdges("the number of edges")
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Any]:
        raise UsesEdges("the number of edges")


def _size(own: WatchedEdges, func: Any, dim: int | None = None) -> Any:
    if func in (Tensor.numel, Tensor.nelement) or (func is Tensor.__len__ and own.end is not None):
        raise UsesEdges("the number of edges")
    if func is Tensor.__len__:
        return 2
    hidden = _hidden_axis(own)
    shape = _Shape(_Count() if at == hidden else n for at, n in enumerate(own.plain.shape))
    shape.hidden = hidden
    return shape if dim is None else shape[dim]


_SIZES = (Tensor.shape.__get__, Tensor.size, Tensor.numel, Tensor.nelement, Tensor.__len__)  # type: ignore[attr-defined]

#: What says in other ways how many edges there are.
_COUNTS = (
    torch.numel, torch._shape_as_tensor, Tensor.stride, Tensor.nbytes.__get__,  # type: ignore[attr-defined]
    Tensor.storage, Tensor.untyped_storage,
)  # fmt: skip
#: What gives another tensor the shape of this one.
_SHAPED_LIKE = (Tensor.expand_as, Tensor.view_as, Tensor.reshape_as)


def _same_edges(args: Any) -> WatchedEdges | None:
    """The first field among arguments, if all watched ones are fields of the same edges."""
    listed = [a for arg in args for a in (arg if isinstance(arg, list | tuple) else (arg,))]
    watched = [a for a in listed if isinstance(a, WatchedEdges)]
    first = watched[0]
    return first if all(a.end == -1 and a.edges is first.edges for a in watched) else None


def _field(own: WatchedEdges, func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operation as fields of the same edges, if it has a row for each of them."""
    result = func(*bare(args), **bare(kwargs))
    several = isinstance(result, tuple | list)
    parts = list(result) if several else [result]
    if any(len(part.shape) == 0 or len(part) != len(own.plain) for part in parts):
        return NotImplemented
    if not several and func._schema.is_mutable:
        return args[0]  # in place
    made = [WatchedEdges(part, own.edges) for part in parts]
    return tuple(made) if several else made[0]


def _elementwise(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation of every element, with numbers, rows that are the same for all, or fields."""
    own = _same_edges(args)
    if own is None:
        return NotImplemented
    for other in args:
        if isinstance(other, Tensor) and not isinstance(other, WatchedEdges):
            varies = other.dim() == own.dim() and len(other) != 1
            if varies or other.dim() > own.dim():
                return NotImplemented
    if any(isinstance(a, WatchedEdges) and a.dim() != own.dim() for a in args):
        return NotImplemented
    return _field(own, func, args, kwargs)


def _linear(func: Any, args: Any, kwargs: Any) -> Any:
    """A product with a matrix on the right."""
    at = 1 if func is _ATEN.addmm.default else 0
    own = args[at]
    others = [a for i, a in enumerate(args) if i != at]
    if not isinstance(own, WatchedEdges) or own.end != -1 or own.dim() != 2:
        return NotImplemented
    if any(isinstance(a, WatchedEdges) for a in others):
        return NotImplemented
    bias = args[0] if at else None
    if bias is not None and bias.dim() > 1 and len(bias) != 1:
        return NotImplemented
    return _field(own, func, args, kwargs)


def _embedded(func: Any, args: Any, kwargs: Any) -> Any:
    """Rows of a table by the kinds of edges."""
    weight, own = args[:2]
    if isinstance(weight, WatchedEdges) or own.end != -1:
        return NotImplemented
    return _field(own, func, args, kwargs)


def _along(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation along dimensions that are not that of the edges."""
    own = _same_edges(args)
    if own is None:
        return NotImplemented
    named = [argument.name for argument in func._schema.arguments]
    dims = (dict(zip(named, args, strict=False)) | kwargs).get("dim", 0)
    for dim in dims if isinstance(dims, list | tuple) else [dims]:
        # a new dimension may be the last of one more
        more = func in (_ATEN.unsqueeze.default, _ATEN.stack.default)
        if dim is None or dim % (own.dim() + more) == 0:
            return NotImplemented
    return _field(own, func, args, kwargs) if dims != [] else NotImplemented


def _reshaped(func: Any, args: Any, kwargs: Any) -> Any:
    """The same numbers in another shape, edge by edge."""
    own = args[0]
    return _field(own, func, args, kwargs) if own.end == -1 else NotImplemented


def _normalized(func: Any, args: Any, kwargs: Any) -> Any:
    """A norm of every row by itself, or by running statistics."""
    own = args[0]
    if not isinstance(own, WatchedEdges) or own.end != -1:
        return NotImplemented
    if func is _ATEN.layer_norm.default or func is _ATEN.native_layer_norm.default:
        return _field_first(own, func, args, kwargs) if len(args[1]) < own.dim() else NotImplemented
    running = args[3] is not None and args[5] is False and own.dim() == 2
    return _field_first(own, func, args, kwargs) if running else NotImplemented


def _field_first(own: WatchedEdges, func: Any, args: Any, kwargs: Any) -> Any:
    """As :func:`_field` for an operation that returns statistics besides its result."""
    result = func(*bare(args), **kwargs)
    if not isinstance(result, tuple):
        return WatchedEdges(result, own.edges)
    return (WatchedEdges(result[0], own.edges), *result[1:])


def _at_rest(func: Any, args: Any, kwargs: Any) -> Any:
    """Dropout in evaluation mode."""
    return args[0] if args[2] is False else NotImplemented


def _kept(func: Any, args: Any, kwargs: Any) -> Any:
    """The same, where it is and of the type that it is, or a field as another type."""
    own = args[0]
    result = func(own.plain, *args[1:], **kwargs)
    if own.end != -1 and result.dtype != own.dtype:
        return NotImplemented
    return own if result is own.plain else WatchedEdges(result, own.edges, own.end)


def _new(func: Any, args: Any, kwargs: Any) -> Any:
    """A tensor of the same type that has nothing to do with the edges."""
    return func(args[0].plain, *args[1:], **kwargs)


def _one_end(func: Any, args: Any, kwargs: Any) -> Any:
    """One end of every edge, or a column of a field."""
    own, dim, at = args
    if own.end == -1:
        return _along(func, args, kwargs)
    if own.end is not None or dim % 2 != 0:
        return NotImplemented
    return WatchedEdges(own.plain[at], own.edges, at % 2)


def _both_ends(func: Any, args: Any, kwargs: Any) -> Any:
    """The ends of every edge, one after the other, or the columns of a field."""
    own, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if own.end == -1:
        return _along(func, (own, dim), {})
    if own.end is not None or dim % 2 != 0:
        return NotImplemented
    return [WatchedEdges(own.plain[at], own.edges, at) for at in (0, 1)]


def _compared(func: Any, args: Any, kwargs: Any) -> Any:
    """Whether an edge is a self-loop, or a comparison of fields."""
    a, b = args
    ends = [getattr(value, "end", -1) for value in (a, b)]
    if sorted(map(str, ends)) != ["0", "1"]:
        return _elementwise(func, args, kwargs)
    if a.edges is not b.edges:
        return NotImplemented
    return WatchedEdges(func(a.plain, b.plain), a.edges)


def _filtered(func: Any, args: Any, kwargs: Any) -> Any:
    """Those of the edges that a field of them chooses; columns of a field."""
    own, at = args
    if not isinstance(own, WatchedEdges):
        return NotImplemented
    mask = at[-1]
    columns = own.end == -1 and at[0] is None and not any(isinstance(i, WatchedEdges) for i in at)
    if columns:
        return _field(own, func, args, kwargs)
    chosen = isinstance(mask, WatchedEdges) and mask.end == -1 and mask.edges is own.edges
    first = at[:-1] == ([None] if own.end is None else [])
    if not chosen or not first or mask.dtype != torch.bool or mask.dim() != 1:
        return NotImplemented
    return WatchedEdges(func(own.plain, bare(list(at))), own.edges.kept(mask.plain), own.end)


def _joined(func: Any, args: Any, kwargs: Any) -> Any:
    """Edges with a self-loop for every node behind them; columns of fields beside each other."""
    parts, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    own = parts[0]
    if not isinstance(own, WatchedEdges) or own.end not in (None, -1):
        return NotImplemented
    if dim % own.dim() != _hidden_axis(own):
        return _along(func, (parts, dim), {})
    if len(parts) != 2 or isinstance(parts[1], WatchedEdges):
        return NotImplemented
    loops, nodes = parts[1], own.edges.nodes
    if nodes < 0:  # the two ends are of different types
        right = False
    elif own.end is None:
        expected = torch.arange(nodes, device=loops.device).expand(2, -1)
        right = loops.shape == expected.shape and torch.equal(loops, expected)
    else:
        right = len(loops) == nodes and bool((loops == loops[:1]).all())
    if not right:
        return NotImplemented
    return WatchedEdges(func([own.plain, loops], dim), own.edges.looped(), own.end)


def _overloads(names: str) -> Iterator[Any]:
    """All forms of operations, in place or not, that do not write into another tensor."""
    for name in names.split():
        for form in (name, f"{name}_"):
            packet = getattr(_ATEN, form, None)
            for overload in packet.overloads() if packet is not None else ():
                if overload != "out" and not overload.endswith("_out"):
                    yield getattr(packet, overload)


_GROUPS: tuple[tuple[Callable[..., Any], str], ...] = (
    (
        _elementwise,
        "abs add celu clamp cos div elu erf exp floor ge gelu gt hardswish hardtanh isfinite isnan "
        "le leaky_relu log log1p logical_and logical_not logical_or bitwise_and bitwise_not "
        "bitwise_or lt masked_fill maximum minimum mish mul neg ones_like pow reciprocal relu "
        "remainder round rsqrt rsub selu sigmoid sign silu sin softplus sqrt square sub tanh where "
        "zeros_like floor_divide",
    ),
    (_compared, "eq ne"),
    (_linear, "linear mm addmm matmul"),
    (_embedded, "embedding"),
    (
        _along,
        "amax amin argmax argmin chunk mean narrow slice softmax _softmax split split_with_sizes "
        "squeeze stack sum unsqueeze log_softmax _log_softmax index_select cumsum prod all any "
        "linalg_vector_norm",
    ),
    (_reshaped, "view reshape _unsafe_view flatten _reshape_alias"),
    (_normalized, "layer_norm native_layer_norm batch_norm native_batch_norm"),
    (_at_rest, "dropout"),
    (_kept, "to _to_copy clone contiguous"),
    (_kept, "detach alias lift_fresh"),
    (_new, "new_zeros new_ones new_full new_empty"),
    (_one_end, "select"),
    (_both_ends, "unbind"),
    (_filtered, "index"),
    (_joined, "cat"),
)
_HANDLERS: dict[Any, Callable[..., Any]] = {
    overload: handler for handler, names in _GROUPS for overload in _overloads(names)
}
