"""Options by plain names, as commands, files and runs have them, and the objects they belong to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

from gstarx.gnn import options_in
from gstarx.players import as_players
from gstarx.values import Subgraphs, as_value

#: The estimator that stands for the paper's Algorithm 3, where the value is a name.
_SUBGRAPHS = "subgraphs"
#: Families that have no plain name of their own.
_OBJECTS = ("game", "passes", "task")


def plain_options(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The options of an explainer: its parameters, and those of the objects that it takes.

    >>> from gstarx import GStarX
    >>> sorted(plain_options(GStarX))[:4]
    ['baseline', 'batch_nodes', 'budget', 'check']
    """
    options: dict[str, inspect.Parameter] = {}
    for name, parameter in _parameters(make).items():
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            continue
        if name in _settings_in(make):
            for field in fields(parameter.default):
                default = getattr(parameter.default, field.name)
                options[field.name] = parameter.replace(name=field.name, default=default)
        elif name not in _OBJECTS:
            options[name] = parameter
    for family in _families(make):
        for option, owners in options_in(family).items():
            default = next(iter(owners.values())).default
            parameter = inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default)
            options[option] = parameter
    return options


def with_objects(make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by plain names as arguments of an explainer: those of objects inside of them.

    >>> from gstarx import GStarX
    >>> with_objects(GStarX, {"value": "banzhaf", "presence": 0.3, "share": False})["value"]
    Banzhaf(estimator='auto', presence=0.3)
    """
    taken = _parameters(make)
    arguments, rest = {}, dict(options)
    for family in _families(make):
        known = options_in(family)
        own = {name: rest.pop(name) for name in options if name in known}
        if own:
            given = rest.pop(family, taken[family].default)
            arguments[family] = _OWN[family](family, given, own)
    for name, settings in _settings_in(make).items():
        changed = {f.name: rest.pop(f.name) for f in fields(settings) if f.name in rest}
        arguments[name] = replace(rest.pop(name, settings), **changed)
    return {**rest, **arguments}


def fixed_by(make: Callable[..., Any], given: Mapping[str, Any]) -> set[str]:
    """Plain names of the options of the objects that are given, which no preset changes.

    >>> from gstarx import GStarX, Passes
    >>> sorted(fixed_by(GStarX, {"passes": Passes(share=False), "value": "hn"}))
    ['batch_nodes', 'check', 'share']
    """
    objects = {name for name, one in given.items() if is_dataclass(one)}
    fixed = {option for name in objects & {*_families(make)} for option in options_in(name)}
    for name in objects & {*_settings_in(make)}:
        fixed |= {field.name for field in fields(given[name])}
    return fixed


def _parameters(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(make).parameters
    except ValueError:  # it has no signature
        return {}


def _settings_in(make: Callable[..., Any]) -> dict[str, Any]:
    """Parameters whose defaults are objects with settings, which are options by their own names."""
    taken = _parameters(make)
    families = _families(make)
    return {
        name: parameter.default
        for name, parameter in taken.items()
        if name not in families
        and is_dataclass(parameter.default)
        and not isinstance(parameter.default, type)
    }


def _families(make: Callable[..., Any]) -> tuple[str, ...]:
    """The families of objects that a game-theoretic explainer takes, none for any other."""
    taken = _parameters(make)
    return tuple(name for name in _OWN if name in taken) if "value" in taken else ()


def _rare(family: str, given: Any, options: dict[str, Any]) -> Any:
    """An object of the one class of a family."""
    known = options_in(family)
    changed = {field.name: options[name] for name in options for field in known[name].values()}
    if given is not None:
        return replace(given, **changed)
    (kind,) = {kind for owners in known.values() for kind in owners}
    return kind(**changed)


def _players(family: str, given: Any, options: dict[str, Any]) -> Any:
    """Players with their options, or an error that says whose an option is."""
    kind = as_players(given)
    return _changed(kind, family, options, type(kind).__name__.lower())


def _value(family: str, given: Any, options: dict[str, Any]) -> Any:
    """A value with its options; the estimator ``"subgraphs"`` makes it Algorithm 3."""
    value = as_value(given)
    if options.get("estimator") == _SUBGRAPHS and not isinstance(value, Subgraphs):
        options.pop("estimator")
        value = Subgraphs(value=value.name, inner=options.pop("inner", "exact"))
    return _changed(value, family, options, value.name)


_OWN: dict[str, Callable[[str, Any, dict[str, Any]], Any]] = {
    "game": _rare,
    "passes": _rare,
    "task": _rare,
    "players": _players,
    "value": _value,
}


def _changed(made: Any, family: str, options: dict[str, Any], called: str) -> Any:
    """An object with some of its options; those of others may only have their defaults."""
    known, changed = options_in(family), {}
    for name, value in options.items():
        owners = known[name]
        if type(made) in owners:
            changed[owners[type(made)].name] = value
        elif not _is_default(value, next(iter(owners.values()))):
            whose = " and ".join(sorted(kind.__name__ for kind in owners))
            raise ValueError(
                f"{name} is an option of {whose} (got {name}={value!r} with {family}={called!r})"
            )
    return replace(made, **changed)


def _is_default(value: Any, field: Field[Any]) -> bool:
    """Whether a value, which may be an array, is the default of an option."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return plain and bool(value == field.default)
