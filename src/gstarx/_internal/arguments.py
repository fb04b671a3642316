"""Arguments, checked and printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


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


def one_of(value: Any, valid: Iterable[Any], *, name: str) -> Any:
    """A value that is among the valid ones; raises an error that lists them for any other.

    >>> one_of("b", "abc", name="letter")
    'b'
    >>> one_of("z", "abc", name="letter")
    Traceback (most recent call last):
    ...
    ValueError: letter must be one of 'a', 'b', 'c' (got 'z')
    """
    known = list(valid)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))} (got {value!r})")
    return value


def as_seed(seed: Any) -> Any:
    """A seed: an integer of at least zero, a generator, or none; raises for anything else.

    >>> as_seed(7)
    7
    >>> as_seed("a")
    Traceback (most recent call last):
    ...
    TypeError: seed must be an integer, a numpy.random.Generator or None (got 'a')
    """
    if seed is None or isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be an integer, a numpy.random.Generator or None (got {seed!r})")
    if seed < 0:
        raise ValueError(f"seed must be at least 0 (got {seed})")
    return seed


def given_options(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The arguments of a call that are not the defaults, as they are written.

    >>> def call(self, a=1, *, b="x"):
    ...     pass
    >>> given_options(call, None, 1, b="y")
    "b='y'"
    """
    signature = inspect.signature(function)
    given = list(signature.bind(*args, **kwargs).arguments.items())[1:]
    defaults = {name: repr(one.default) for name, one in signature.parameters.items()}
    shown = [(name, _written(value)) for name, value in given if repr(value) != defaults[name]]
    return ", ".join(f"{name}={text if len(text) <= 60 else '...'}" for name, text in shown)


def _written(value: Any) -> str:
    """A value as it is written; of an object of options, those that are not the defaults."""
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    of_fields = [(field, getattr(value, field.name)) for field in fields(value) if field.init]
    shown = [f"{f.name}={one!r}" for f, one in of_fields if repr(one) != repr(f.default)]
    return f"{type(value).__name__}({', '.join(shown)})"
