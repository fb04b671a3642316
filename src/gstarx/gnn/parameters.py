"""The parameters of a model's forward pass, as far as it says them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from functools import lru_cache, partial
from typing import Any

import torch
from torch_geometric.data import Batch, Data, HeteroData

Model = Callable[..., Any]
_DATA_NAMES = frozenset({"data", "batch", "graph", "g", "inputs"})
#: Where wrappers that pass everything on keep the model: ``torch.compile``, ``DataParallel`` and
#: its relatives, Lightning's Fabric.
_WRAPPED = ("_orig_mod", "module", "_original_module", "_forward_module")
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def model_parameters(model: Model) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of a model's forward pass, or None where it does not say.

    What wraps a model without saying what it passes on is looked through: ``torch.compile``,
    ``DataParallel`` and its relatives, Lightning's Fabric, ``functools.partial``.
    """
    if isinstance(model, partial):
        return _without_bound(model)
    listed = getattr(getattr(model, "signature", None), "param_dict", None)
    if isinstance(listed, Mapping):  # PyG's Sequential
        return tuple(_parameter(name) for name in listed)
    forward = getattr(model, "forward", model)
    schema = getattr(forward, "schema", None)
    if schema is not None:  # TorchScript
        return tuple(
            _parameter(
                a.name, a.default_value if a.has_default_value() else inspect.Parameter.empty
            )
            for a in schema.arguments[1:]
        )
    try:
        # a method's function is the same for all its models, so that it is looked at once
        if inspect.ismethod(forward) and not hasattr(forward, "__wrapped__"):
            parameters = _read_parameters(forward.__func__)[1:]
        else:
            parameters = tuple(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return None
    if is_open(parameters):
        for name in _WRAPPED:
            inner = getattr(model, name, None)
            if isinstance(inner, torch.nn.Module):
                return model_parameters(inner)
    return parameters


def _parameter(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _without_bound(bound: partial[Any]) -> tuple[inspect.Parameter, ...] | None:
    """The parameters that a partial call leaves free."""
    parameters = model_parameters(bound.func)
    if parameters is None:
        return None
    free = list(parameters)
    for _ in bound.args:
        if free and free[0].kind in BY_POSITION:
            del free[0]
    return tuple(p for p in free if p.name not in bound.keywords)


@lru_cache(maxsize=256)
def _read_parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def is_open(parameters: tuple[inspect.Parameter, ...] | None) -> bool:
    """Whether a signature leaves it open what is passed."""
    return parameters is None or any(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    )


def wants_data(named: list[inspect.Parameter], fields: Container[str]) -> bool:
    """Whether the arguments are one graph object, by their type, name or number.

    ``fields`` are the names of what a graph carries.
    """
    required = [p for p in named if p.default is p.empty]
    if len(required) != 1 or required[0].name in ("x", "edge_index", "x_dict", "edge_index_dict"):
        return False
    name, annotation = required[0].name, required[0].annotation
    by_type = isinstance(annotation, type) and issubclass(annotation, Data | Batch | HeteroData)
    words = str(annotation).rpartition(".")[2]
    by_name = name in _DATA_NAMES or words in ("Data", "Batch", "HeteroData")
    return by_type or by_name or (len(named) == 1 and name not in fields)
