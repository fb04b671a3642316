"""Whether a model's own code looks at several nodes at once, and not one by one.

``if len(x) > 1``, ``x / x.size(0)`` and ``x - x.mean(dim=0)`` are right for one graph and mean
something else in a batch of several. How often that changes an output is not known, so that a few
comparisons may miss it. Layers of PyG and torch are known to keep nodes apart, or are told which
graph a node belongs to; what a model does between them, by functions such as
``torch_geometric.utils.degree`` as well, is watched here. If it reads ``edge_index``,
asks how many nodes there are, or makes something with another number of rows out of rows, many more
coalitions are evaluated by themselves.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FrameType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gstarx.gnn.signature import Model, submodules

#: Functions that say how many rows there are.
_SHAPE: Any = Tensor.shape
_SIZES = frozenset((Tensor.size, Tensor.__len__, Tensor.numel, Tensor.nelement, _SHAPE.__get__))
#: What a model does with many numbers outside of torch cannot be watched.
_LEAVING = frozenset((Tensor.numpy, Tensor.__array__, Tensor.tolist))
#: Layers and readouts that are known, by the beginning of a module's name.
_KNOWN = ("torch.nn.modules.", "torch_geometric.nn.", "gstarx.")
#: Functions that do what their caller wants, by the first part of a module's name.
_TOOLS = frozenset(("torch", "torch_geometric", "torch_scatter", "torch_sparse"))
#: A pass over so many nodes costs hardly more than one over a part of them.
_SMALL = 512
#: How often models could have been watched; 0 if one was seen looking at several nodes.
_watched: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def looks_across(model: Model) -> bool:
    """Whether a model was seen looking at several nodes; one that cannot be watched may."""
    try:
        return _watched.get(model, 1) == 0
    except TypeError:  # of what cannot be remembered nothing is known
        return True


def wants_all(model: Model, num_nodes: int) -> bool:
    """Whether a model should see a graph of so many nodes whole, and not the part that matters."""
    return num_nodes <= _SMALL and looks_across(model)


@contextmanager
def watch_own_code(model: Model) -> Iterator[None]:
    """Watch what a model's own code does inside this block: the first time, the 2nd, 4th, 8th..."""
    if looks_across(model):
        yield
        return
    count = _watched.get(model, 0) + 1
    pools = any(map(_pools, submodules(model)))
    across = pools or bool(opaque_part(model)) or _is_told_sizes(model)
    if across or count & (count - 1):
        yield
    else:
        with _OwnCode() as mode:
            yield
        across = mode.across
    _watched[model] = 0 if across else count


def _is_told_sizes(model: Model) -> bool:
    """Whether a model is given the number of nodes, as a number, which cannot be watched."""
    call = model.forward if isinstance(model, torch.nn.Module) else model
    with suppress(TypeError, ValueError):  # of what does not show its arguments
        return "num_nodes" in inspect.signature(call).parameters
    return False


def opaque_part(model: Model) -> str:
    """What part of a model does not run as Python, where its code cannot be watched."""
    for module in submodules(model):
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            return "the model is compiled by torch.compile"
        if isinstance(module, torch.jit.ScriptModule):
            return "a part of the model is TorchScript"
    if any(isinstance(function, torch.jit.ScriptFunction) for function in _functions(model)):
        return "the model calls a function in TorchScript"
    return ""


def _functions(model: Model) -> Iterator[Any]:
    """Functions that are named in the code of a model, and in the code of those."""
    modules = [module for module in submodules(model) if not _is_tool(type(module).__module__)]
    kinds = {kind for module in modules for kind in type(module).__mro__}
    types = [kind for kind in kinds if not _is_tool(kind.__module__)]
    waiting: list[Any] = [model]
    for owner in (*modules, *types):
        waiting += vars(owner).values()
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        function = getattr(found, "__func__", found)  # of a method
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        if not isinstance(function, FunctionType) or _is_tool(function.__module__):
            continue
        named = function.__globals__
        waiting += [named[name] for name in _names(function.__code__) if name in named]
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # a cell may be empty
                waiting.append(cell.cell_contents)


def _names(code: CodeType) -> Iterator[str]:
    """The names in a function, and in those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_tool(name: str | None) -> bool:
    return str(name).partition(".")[0] in _TOOLS


def _pools(module: torch.nn.Module) -> bool:
    """Whether a layer pools nodes, whose order decides between ties."""
    return type(module).__module__.startswith("torch_geometric.nn.pool")


class _OwnCode(TorchFunctionMode):
    """Notes whether code that is no library's looks at several rows."""

    def __init__(self) -> None:
        super().__init__()
        self.across = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.across and _is_own(sys._getframe(1)):
            self.across = _across(func, args, kwargs or {}, result)
        return result


def _across(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether a function reads edges, tells how many rows there are, or changes their number."""
    # of einsum, what to do comes first
    rows = next((value for value in args if not isinstance(value, str)), None)
    if isinstance(rows, list | tuple) and rows:
        rows = rows[0]
    if not isinstance(rows, Tensor) or rows.dim() == 0:
        return False
    with torch._C.DisableTorchFunction():
        real = rows.is_floating_point() or rows.dtype == torch.bool
        if func in _LEAVING:
            return rows.dim() > 1 or len(rows) > 1
        if rows.dim() == 2 and not real:
            return func in _SIZES or isinstance(result, Tensor | tuple | list)
        if len(rows) < 2:
            return False
        if func in _SIZES:
            return (args[1] if len(args) > 1 else kwargs.get("dim", 0)) in (0, -rows.dim())
        first = result[0] if isinstance(result, tuple) and result else result
        return real and isinstance(first, Tensor) and first.shape[:1] != rows.shape[:1]


def _is_own(frame: FrameType | None) -> bool:
    """Whether a function was called by the model's own code, and not by a layer that is known."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        # PyG writes a function of its own for the layers of others
        if name.startswith(_KNOWN) or name.endswith("_propagate"):
            return False
        if not _is_tool(name):
            return True
        frame = frame.f_back
    return False
