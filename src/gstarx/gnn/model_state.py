"""Leaving a model exactly as it was found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from threading import Lock, RLock
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from gstarx.gnn.signature import Model, model_device, submodules

_Found = TypeVar("_Found")

#: The C library adapts to blocks of up to 32 MB, just below which this has to stay.
_LARGEST_BLOCK = 31 << 20

#: A lock for every layer that was ever used, for as long as it lives.
_locks: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()
_making_locks = Lock()

#: Models inside :func:`restored` by identity, with what is known of them (see :func:`remembered`).
_inside: ContextVar[Mapping[int, dict[Any, Any]]] = ContextVar(
    "restored", default=MappingProxyType({})
)


@contextmanager
def untouched(model: Model) -> Iterator[None]:
    """Evaluation mode without gradients in this block; model and random state are restored."""
    with restored(model), torch.inference_mode():
        yield


@contextmanager
def restored(model: Model) -> Iterator[None]:
    """Put the model in evaluation mode in this block; restore it and all random state afterwards.

    Every submodule gets its own mode back, so that a model with some frozen layers keeps them.
    What layers keep from the graph they last saw (``cached=True``), and edge masks that another
    explainer left in them, belong to that graph: they do not act inside, and are back afterwards.
    Inside another such block for the same model there is nothing left to do; another thread waits.
    """
    if id(model) in _inside.get():
        yield
        return
    keep_freed_memory()
    modules = submodules(model)
    with _one_at_a_time(modules), _same_random_numbers(model):
        modes = [module.training for module in modules]
        buffers = [kept for module in modules for kept in _copied_buffers(module)]
        aside = [(module, _of_another_graph(module)) for module in modules]
        token = _inside.set({**_inside.get(), id(model): {}})
        masked_layers(model)  # to be remembered, because the masks are about to be set aside
        try:
            for module, (attributes, inside) in aside:
                vars(module).update(dict.fromkeys(attributes) | inside)
            for module in modules:
                # not .eval(), which a model may override
                if module.training:
                    module.training = False
            yield
        finally:
            _inside.reset(token)
            for module, mode in zip(modules, modes, strict=True):
                if module.training != mode:
                    module.training = mode
            for module, (attributes, _) in aside:
                vars(module).update(attributes)
            for module, name, buffer, content in buffers:
                _put_back(module, name, buffer, content)


@contextmanager
def _one_at_a_time(modules: list[nn.Module]) -> Iterator[None]:
    """Let one thread at a time change and use these layers, wherever else they are part of."""
    with _making_locks:
        locks = [_locks.setdefault(module, RLock()) for module in sorted(modules, key=id)]
    with ExitStack() as stack:
        # all in one order, so that no two threads wait for each other
        for lock in locks:
            stack.enter_context(lock)
        yield


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


def _of_another_graph(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a layer holds of the graph it last saw, and what to put in its place."""
    attributes = vars(module)
    held: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    if attributes.get("cached") is True:
        held = {name: value for name, value in attributes.items() if name.startswith("_cached_")}
        held["cached"], inside["cached"] = True, False
    if attributes.get("_explain") is True:
        held["_explain"], inside["_explain"] = True, False
    return held, inside


def _copied_buffers(module: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor, Tensor]]:
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.layout == torch.strided:
            yield module, name, buffer, buffer.clone()


def _put_back(module: nn.Module, name: str, buffer: Tensor, content: Tensor) -> None:
    if module._buffers.get(name) is not buffer:
        module._buffers[name] = buffer
    if not torch.equal(buffer, content):
        with torch.no_grad():
            buffer.copy_(content)


@contextmanager
def _same_random_numbers(model: Model) -> Iterator[None]:
    """Give torch, numpy and Python their random state back."""
    device = model_device(model, torch.device("cpu"))
    elsewhere = None if device.type == "cpu" else torch.get_device_module(device)
    on_device = elsewhere and elsewhere.get_rng_state(device)
    on_cpu, of_python = torch.get_rng_state(), random.getstate()
    of_numpy = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        torch.set_rng_state(on_cpu)
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
        if elsewhere is not None:
            elsewhere.set_rng_state(on_device, device)


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
