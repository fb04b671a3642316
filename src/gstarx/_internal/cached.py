"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):
    """As ``functools.cached_property`` is from Python 3.12 on: without a lock.

    The lock of Python 3.11 is one for all instances. Threads that explain wait for each other, and
    the child of a fork waits for ever if another thread of its parent had it.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> _Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value = vars(instance)[self._name] = self._function(instance)
        return value
