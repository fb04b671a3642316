"""The readout of a model over states: what stands in for ``batch`` where nodes are shared.

A state belongs to many coalitions, so that there is no ``batch`` vector. A model is called with a
tensor in its place that can do one thing: be the index of a sum, mean, maximum or other reduction
over the nodes of a graph. That reduction then runs over the members of every coalition. All other
uses raise :class:`NotShareable`, whether in Python, TorchScript or below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.nn import aggr

from gstarx.gnn.signature import Model, submodules
from gstarx.gnn.watched_edges import NotShareable
from gstarx.graphs import compiled

_ATEN = torch.ops.aten
#: Aggregations that are made of plain reductions. All others get the rows of every member.
_PLAIN = (
    aggr.SumAggregation,
    aggr.MeanAggregation,
    aggr.MaxAggregation,
    aggr.MinAggregation,
    aggr.MulAggregation,
    aggr.VarAggregation,
    aggr.StdAggregation,
    aggr.MultiAggregation,
)


class UsesBatch(NotShareable):
    """The model does something with ``batch`` that is not a readout."""

    def __init__(self, operation: Any) -> None:
        super().__init__(f"the model uses batch for more than a readout ({operation})")


class Members:
    """Which states every coalition of a block holds.

    Attributes
    ----------
    states
        Number of states.
    coalitions
        Number of coalitions.
    of_states
        State of every member, coalition by coalition, (M,).
    begins
        The members of coalition ``c`` are ``begins[c] : begins[c + 1]``.
    read
        What the readout was given of all states, one tensor (states, ...) for each time.
    """

    def __init__(
        self,
        states: int,
        of_states: NDArray[np.int32],
        begins: NDArray[np.int64],
        device: torch.device,
    ) -> None:
        self.states, self.coalitions = states, len(begins) - 1
        self.of_states, self.begins, self.device = of_states, begins, device
        self.read: list[Tensor] = []
        self._tensors: tuple[Tensor, Tensor] | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """State and coalition of every member, on the device."""
        if self._tensors is None:
            owner = np.repeat(np.arange(self.coalitions), np.diff(self.begins))
            self._tensors = (
                torch.from_numpy(self.of_states.astype(np.int64)).to(self.device),
                torch.from_numpy(owner).to(self.device),
            )
        return self._tensors

    def expanded(self, rows: Tensor, dim: int) -> Tensor:
        """Rows of members from rows of states."""
        return self.noted(rows, dim).index_select(dim, self.tensors[0])

    def noted(self, rows: Tensor, dim: int) -> Tensor:
        """The same rows, which must be those of all states."""
        if rows.shape[dim] != self.states:
            raise NotShareable("the model reduces something else than nodes by batch")
        self.read.append(rows.movedim(dim, 0))
        return rows


class StandIn(Tensor):
    """A ``batch`` vector that only reductions can use."""

    members: Members | None

    @staticmethod
    def __new__(cls, members: Members | None, shape: tuple[int, ...], device: Any) -> StandIn:
        """A tensor without content."""
        made: StandIn = Tensor._make_wrapper_subclass(cls, shape, dtype=torch.long, device=device)
        return made

    def __init__(self, members: Members | None, shape: tuple[int, ...], device: Any) -> None:
        self.members = members

    @classmethod
    def of(cls, members: Members) -> StandIn:
        """What to pass as ``batch``."""
        return cls(members, (members.states,), members.device)

    @classmethod
    def forbidden(cls, length: int, device: torch.device) -> StandIn:
        """What to pass as ``ptr``: nothing can be done with it."""
        return cls(None, (length,), device)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"StandIn(shape={tuple(self.shape)})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The operation itself; what torch refuses, such as ``tolist``, is refused for good."""
        try:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        except NotShareable:
            raise
        except Exception as error:
            raise UsesBatch(error) from error

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Reductions over members, and no other operation."""
        own = next((a for a in args if isinstance(a, StandIn)), None)
        handler = _HANDLERS.get(func)
        if own is None or own.members is None or handler is None:
            raise UsesBatch(func)
        return handler(own, own.members, func, *args, **(kwargs or {}))


def _shaped(own: StandIn, members: Members, func: Any, *args: Any, **kwargs: Any) -> StandIn:
    """The same in another shape, found by applying the operation to a tensor without content."""
    bare = [torch.empty(a.shape, device="meta") if isinstance(a, Tensor) else a for a in args]
    shape = func(*bare, **kwargs).shape
    return StandIn(members, tuple(shape), own.device)


def _kept(own: StandIn, members: Members, func: Any, *args: Any, **kwargs: Any) -> StandIn:
    """The same, moved to where it is or made the integers that it is."""
    for value in (*args[1:], *kwargs.values()):
        moved = isinstance(value, torch.device | str) and torch.device(value) != own.device
        if moved or (isinstance(value, torch.dtype) and value != own.dtype):
            raise UsesBatch(func)
    return own


def _measured(own: StandIn, members: Members, func: Any, *args: Any) -> Any:
    return func(torch.empty(own.shape, device="meta"), *args[1:])


def _last(own: StandIn, members: Members, func: Any, *args: Any, **_: Any) -> Tensor:
    """The highest number of a coalition."""
    return torch.tensor(members.coalitions - 1, device=own.device)


def _sizes(
    own: StandIn,
    members: Members,
    func: Any,
    index: Tensor,
    weights: Tensor | None = None,
    minlength: int = 0,
) -> Tensor:
    """How many nodes every coalition has."""
    weights = None if weights is None else members.expanded(weights, 0)
    return torch.bincount(members.tensors[1], weights, minlength)


def _scattered(
    own: StandIn,
    members: Members,
    func: Any,
    into: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str = "sum",
    *,
    include_self: bool = True,
) -> Tensor:
    """``scatter_add`` and ``scatter_reduce`` over members."""
    if index is not own or isinstance(source, StandIn) or source.shape != own.shape:
        raise UsesBatch(func)
    result = into if func in _IN_PLACE else into.clone()
    if _reduced(result, dim, source, members, reduce, include_self):
        members.noted(source, dim)
        return result
    rows = members.expanded(source, dim)
    shape = [1] * rows.dim()
    shape[dim] = -1
    owner = members.tensors[1].reshape(shape).expand_as(rows)
    if func in (_ATEN.scatter_add_.default, _ATEN.scatter_add.default):
        return result.scatter_add_(dim, owner, rows)
    return result.scatter_reduce_(dim, owner, rows, reduce=reduce, include_self=include_self)


def _added(
    own: StandIn,
    members: Members,
    func: Any,
    into: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: float = 1,
) -> Tensor:
    """``index_add`` over members."""
    if index is not own or index.dim() != 1:
        raise UsesBatch(func)
    result = into if func in _IN_PLACE else into.clone()
    rows = members.expanded(source, dim)
    return result.index_add_(dim, members.tensors[1], rows, alpha=alpha)


_IN_PLACE = (
    _ATEN.scatter_add_.default,
    _ATEN.scatter_reduce_.two,
    _ATEN.index_add_.default,
)
_HANDLERS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(
        (
            _ATEN.view.default,
            _ATEN.reshape.default,
            _ATEN.expand.default,
            _ATEN.expand_as.default,
            _ATEN.unsqueeze.default,
            _ATEN.alias.default,
            _ATEN.detach.default,
        ),
        _shaped,
    ),
    **dict.fromkeys(
        (_ATEN.to.device, _ATEN.to.dtype, _ATEN.to.dtype_layout, _ATEN.to.other), _kept
    ),
    **dict.fromkeys((_ATEN.numel.default, _ATEN.dim.default, _ATEN.size.default), _measured),
    _ATEN.max.default: _last,
    _ATEN.bincount.default: _sizes,
    **dict.fromkeys(
        (*_IN_PLACE[:2], _ATEN.scatter_add.default, _ATEN.scatter_reduce.two), _scattered
    ),
    **dict.fromkeys((_IN_PLACE[2], _ATEN.index_add.default), _added),
}


def _reduced(
    into: Tensor, dim: int, source: Tensor, members: Members, reduce: str, include_self: bool
) -> bool:
    """Reduce rows in a compiled loop where that is possible; whether it was."""
    kernel = _KERNELS.get(reduce)
    simple = (
        kernel is not None
        and dim == 0
        and source.device.type == "cpu"
        and source.dtype in (torch.float32, torch.float64)
        and into.dtype == source.dtype
        and into.is_contiguous()
        and len(into) == members.coalitions
        and into.shape[1:] == source.shape[1:]
        and len(source) == members.states
        and (reduce == "sum" or not include_self)
        # the maximum of numbers and what is not a number is not a number: torch knows. A sum shows
        # whether there is any, faster than a look at each
        and (reduce == "sum" or not source.sum().isnan())
    )
    if not simple:
        return False
    assert kernel is not None
    flat = source.detach().contiguous().reshape(members.states, -1).numpy()
    out = into.detach().reshape(members.coalitions, -1).numpy()
    kernel(flat, members.of_states, members.begins, out)
    return True


@contextmanager
def rows_for_aggregations(model: Model) -> Iterator[None]:
    """Let PyG's aggregations that are more than reductions see the rows of all members inside."""

    def before(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = ("x", "index", "ptr", "dim_size", "dim")
        given = dict(zip(names, args, strict=False)) | kwargs
        index = given.get("index")
        if not isinstance(index, StandIn) or index.members is None or index.dim() != 1:
            return None
        x, dim = given["x"], given.get("dim", -2)
        given["x"] = index.members.expanded(x, dim)
        given["index"] = index.members.tensors[1]
        return (), given

    with ExitStack() as stack:
        for module in submodules(model):
            if isinstance(module, aggr.Aggregation) and not isinstance(module, _PLAIN):
                handle = module.register_forward_pre_hook(before, with_kwargs=True)
                stack.callback(handle.remove)
        yield


@compiled
def _sum_rows(rows, of_states, begins, out):  # type: ignore[no-untyped-def]
    for c in range(len(begins) - 1):
        total = out[c]
        for at in range(begins[c], begins[c + 1]):
            row = rows[of_states[at]]
            for j in range(len(total)):
                total[j] += row[j]


@compiled
def _max_rows(rows, of_states, begins, out):  # type: ignore[no-untyped-def]
    for c in range(len(begins) - 1):
        largest, at, end = out[c], begins[c], begins[c + 1]
        if at < end:
            largest[:] = rows[of_states[at]]
        # four rows at a time: what was found so far is read and written less often
        while at + 3 < end:
            row, row2 = rows[of_states[at]], rows[of_states[at + 1]]
            row3, row4 = rows[of_states[at + 2]], rows[of_states[at + 3]]
            for j in range(len(largest)):
                largest[j] = max(max(max(largest[j], row[j]), max(row2[j], row3[j])), row4[j])
            at += 4
        while at < end:
            row = rows[of_states[at]]
            for j in range(len(largest)):
                largest[j] = max(largest[j], row[j])
            at += 1


_KERNELS: dict[str, Any] = {"sum": _sum_rows, "amax": _max_rows}
