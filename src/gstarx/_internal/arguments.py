"""Options that several functions spell out, handed on from one to the next."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any


def taken_by(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a function's arguments, its ``locals()``, that another function or class takes.

    >>> def inner(*, a, b):
    ...     return a + b
    >>> def outer(x, *, a=1, b=2):
    ...     return inner(**taken_by(inner, locals()))
    >>> outer("x", b=5)
    6
    """
    return {name: arguments[name] for name in _parameters(function) if name in arguments}


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
