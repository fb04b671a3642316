"""Leaving a model exactly as it was found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from itertools import chain
from operator import is_
from threading import Condition, RLock, get_ident
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from gstarx.gnn.signature import Model, require_initialized, submodules

_Found = TypeVar("_Found")

#: The C library adapts to blocks of up to 32 MB, just below which this has to stay.
_LARGEST_BLOCK = 31 << 20
_CONTAINERS = (dict, list, set)

#: Models inside :func:`restored` by identity, with what is known of them (see :func:`remembered`).
_inside: ContextVar[Mapping[int, dict[Any, Any]]] = ContextVar(
    "restored", default=MappingProxyType({})
)
#: What all threads use at the moment, and a condition to wait for the end of one of these uses.
_uses: list[_Use] = []
_lock = RLock()
_ended = Condition(_lock)


@contextmanager
def untouched(model: Model) -> Iterator[None]:
    """Evaluation mode without gradients in this block; the model is restored afterwards.

    Not in inference mode: tensors that a model makes on first use and keeps, be it in a cache of
    its own, would never again be accepted by autograd.
    """
    with restored(model), torch.no_grad():
        yield


@contextmanager
def restored(model: Model) -> Iterator[None]:
    """Put the model in evaluation mode in this block; restore all that its layers hold afterwards.

    Every submodule gets its own mode back, so that a model with some frozen layers keeps them, and
    so does every attribute, buffer and hook, however the block ends. The numbers in parameters are
    not copied, because a forward pass does not write them.
    What layers keep from the graph they last saw (``cached=True``), and edge masks that another
    explainer left in them, belong to that graph: they do not act inside, and are back afterwards.
    Inside another such block for the same model there is nothing left to do; another thread waits.
    """
    before = _inside.get()
    if id(model) in before:
        yield
        return
    keep_freed_memory()
    require_initialized(model)
    use, gradients = _Use(submodules(model)), torch.is_grad_enabled()
    try:
        use.begin()
        _inside.set({**before, id(model): {}})
        masked_layers(model)  # to be remembered, because the masks are about to be set aside
        use.set_aside()
        yield
    finally:
        # Ctrl-C may arrive in here as well, so what it interrupts is done again
        try:
            use.end(before, gradients)
        except BaseException:
            use.end(before, gradients)
            raise
        finally:
            _let_go()


def _let_go() -> None:
    """Release the lock that an interrupt may have left with this thread, so that no other waits."""
    while _lock._is_owned():  # type: ignore[attr-defined]
        _lock.release()


def remembered(function: Callable[..., _Found]) -> Callable[..., _Found]:
    """Ask a question about a model once while it is :func:`restored`, as it stays the same."""

    @wraps(function)
    def recalled(model: Model, *arguments: Any) -> _Found:
        known = _inside.get().get(id(model))
        if known is None:
            return function(model, *arguments)
        key = (function, *arguments)
        if key not in known:
            known[key] = function(model, *arguments)
        answer: _Found = known[key]
        return answer

    return recalled


@remembered
def masked_layers(model: Model) -> int:
    """How many layers carry an edge mask of another explainer, set aside at the moment or not."""
    modules = submodules(model)
    return sum(vars(module).get("_explain") is True for module in modules)


class _Use:
    """The use of layers by one thread, and what they held before."""

    def __init__(self, modules: list[nn.Module]) -> None:
        self._modules, self._thread = modules, get_ident()
        self._ids = {id(module) for module in modules}
        self._held: list[_Held] = []

    def begin(self) -> None:
        """Wait until no other thread uses any of these layers, wherever else they are part of."""
        with _ended:
            while any(use.keeps_out(self) for use in _uses):
                _ended.wait()
            _uses.append(self)
        self._held = [_Held(module) for module in self._modules]

    def keeps_out(self, other: _Use) -> bool:
        """Whether another use has to wait for the end of this one."""
        return self._thread != other._thread and not self._ids.isdisjoint(other._ids)

    def set_aside(self) -> None:
        """Evaluation mode, without what layers hold of another graph."""
        for module in self._modules:
            vars(module).update(_without_another_graph(vars(module)))
            # not .eval(), which a model may override
            if module.training:
                module.training = False

    def end(self, inside: Mapping[int, dict[Any, Any]], gradients: bool) -> None:
        """Leave everything as it was, and let other threads go on; a second time does no harm."""
        _inside.set(inside)
        if torch.is_grad_enabled() != gradients:
            torch.set_grad_enabled(gradients)
        self.put_back()
        with _ended:
            if self in _uses:
                _uses.remove(self)
                _ended.notify_all()

    def put_back(self) -> None:
        """Give layers back what they held."""
        for held in self._held:
            held.put_back()


def _alone_after_fork() -> None:
    """End the uses of all other threads: they do not go on in the child of a fork."""
    global _ended, _lock
    _lock = RLock()
    _ended = Condition(_lock)
    for use in [use for use in _uses if use._thread != get_ident()]:
        use.put_back()
        _uses.remove(use)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone_after_fork)


class _Held:
    """What a layer holds: its attributes, and what is in those that can be changed in place.

    Attributes of a module are also the dictionaries of its parameters, buffers, layers and hooks.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module, self._training = module, module.training
        self._attributes = attributes = vars(module)
        inner: list[Any] = [v for v in attributes.values() if isinstance(v, _CONTAINERS)]
        self._empty = [value for value in inner if not value]
        self._filled = [(value, _items(value)) for value in (attributes, *filter(None, inner))]
        tensors = chain(attributes.values(), module._buffers.values())
        self._contents = [(t, t.detach().clone()) for t in tensors if _can_be_written(t)]

    def put_back(self) -> None:
        """Give the layer back what it held, and take away what it did not."""
        if vars(self._module) is not self._attributes:  # it was a copy in double precision
            object.__setattr__(self._module, "__dict__", self._attributes)
        for value, items in self._filled:
            if not _same(_items(value), items):
                _refill(value, items)
        for value in filter(None, self._empty):
            value.clear()
        if self._module.training != self._training:  # which is no attribute of a scripted module
            self._module.training = self._training
        for tensor, content in self._contents:
            if not torch.equal(tensor, content):
                with torch.no_grad():
                    tensor.copy_(content)


def _can_be_written(value: Any) -> bool:
    """Whether it is a tensor that a forward pass may write into; parameters are not."""
    written = isinstance(value, Tensor) and not isinstance(value, nn.Parameter)
    return written and value.layout == torch.strided and not value.is_meta


def _items(value: Any) -> tuple[list[Any], list[Any]]:
    """Keys and values of a dictionary; what else a container holds, without keys."""
    return ([*value], [*value.values()]) if isinstance(value, dict) else ([], [*value])


def _same(one: tuple[list[Any], list[Any]], other: tuple[list[Any], list[Any]]) -> bool:
    """Whether these are the very same objects in the same order."""
    return one[0] == other[0] and len(one[1]) == len(other[1]) and all(map(is_, one[1], other[1]))


def _refill(container: Any, items: tuple[list[Any], list[Any]]) -> None:
    """Let a container hold what it held before."""
    keys, values = items
    if isinstance(container, list):
        container[:] = values
    elif isinstance(container, set):
        container &= set(values)
        container |= set(values)
    else:
        # nothing is away meanwhile, for other threads that look
        for key in container.keys() - set(keys):
            del container[key]
        container.update(zip(keys, values, strict=True))
        if [*container] != keys:
            container.clear()
            container.update(zip(keys, values, strict=True))


def _without_another_graph(attributes: dict[str, Any]) -> dict[str, Any]:
    """What replaces the attributes of a layer that belong to the graph it last saw."""
    replaced: dict[str, Any] = {}
    if attributes.get("cached") is True:
        replaced = {name: None for name in attributes if name.startswith("_cached_")}
        replaced["cached"] = False
    if attributes.get("_explain") is True:
        replaced["_explain"] = False
    return replaced


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 62 MB of freed memory from now on.

    The C library of Linux returns memory to the system as soon as the free memory exceeds twice
    the largest block that was ever mapped and freed, and the next forward pass has to fetch its
    pages again. How often depends on where blocks happen to lie: the same explanation took up to
    three times as long, with up to 50 page faults per coalition. Freeing one large block, which is
    never touched and so costs nothing, prevents that. On other systems this does nothing.
    """
    torch.empty(_LARGEST_BLOCK, dtype=torch.uint8)
