"""Explainers by name, with the settings of the paper's tables, including those of plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.presets import PRESETS, options_for
from gstarx.registry import GROUP, explainer_factory, explainer_names


def names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers that :func:`create` knows, those of other packages last.

    With ``oracles`` also those that optimize the metric itself: ``"best_found"`` and ``"refined"``.

    >>> names()[:3]
    ('gstarx_recommended', 'gstarx', 'gstarx_published')
    """
    return explainer_names(oracles=oracles)


def create(name: str, *, dataset: str | None = None, **overrides: Any) -> NodeExplainer:
    """An explainer by name, with the settings of the paper's tables for a dataset.

    Parameters
    ----------
    name
        One of :func:`names`.
    dataset
        The dataset whose settings apply, if the method has any; see
        :mod:`gstarx.explainers.presets`.
    **overrides
        Options of the explainer to override.

    Examples
    --------
    >>> create("subgraphx", dataset="mutag").search.min_atoms
    3
    >>> create("subgraphx", dataset="mutag", min_atoms=2).search.min_atoms
    2
    """
    make = _factory(name)
    options = {**options_for(name, dataset), **overrides}
    _check_options(name, make, options)
    explainer = make(**options)
    if not isinstance(explainer, NodeExplainer):
        raise TypeError(
            f"explainer {name!r} must be a gstarx.explainers.NodeExplainer "
            f"(got {type(explainer).__name__})"
        )
    explainer.method = name
    return explainer


def options_of(name: str) -> tuple[str, ...]:
    """The options that an explainer takes, by name."""
    return tuple(
        parameter.name
        for parameter in inspect.signature(_factory(name)).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )


def _factory(name: str) -> Callable[..., Any]:
    factory = explainer_factory(name)
    if factory is None:
        raise ValueError(unknown("explainer", str(name), names()))
    return factory


def _check_options(name: str, make: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:
        return  # it has no signature to check
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return
    valid = [parameter.name for parameter in parameters]
    for option in options:
        if option not in valid:
            raise TypeError(unknown(f"option of {name!r}", option, valid))


__all__ = ["GROUP", "PRESETS", "create", "names", "options_of"]


def packages_of(name: str, explainer: NodeExplainer) -> tuple[str, ...]:
    """The package that provides an explainer, and the packages that it declares to need.

    >>> from gstarx.explainers import create
    >>> packages_of("gstarx", create("gstarx"))
    ()
    >>> packages_of("integrated_gradients", create("integrated_gradients"))
    ('captum',)
    """
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    # the first of several, as in create
    home = [point.dist.name for point in points[:1] if point.dist is not None]
    return (*home, *explainer.needed_packages)


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """The versions of packages, ``None`` for one that is not installed.

    >>> versions_of(["no-such-package"])
    {'no-such-package': None}
    """
    versions: dict[str, str | None] = dict.fromkeys(packages)
    for name in versions:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
