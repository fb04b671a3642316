"""Options that several functions spell out, handed on from one to the next."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np


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


def as_flag(value: Any, *, name: str) -> bool:
    """A Boolean, Python's or NumPy's; raises for anything else, such as ``"no"``, which is true.

    >>> as_flag(np.True_, name="check")
    True
    >>> as_flag("no", name="check")
    Traceback (most recent call last):
    ...
    TypeError: check must be True or False (got 'no')
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False (got {value!r})")
    return bool(value)


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
