"""Explainers by name, with the settings of the paper's tables, including those of plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

from gstarx._internal.messages import unknown
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.options import fixed_by, plain_options, with_objects
from gstarx.registry import (
    DATASETS,
    EVERY,
    EXPLAINERS,
    GROUP,
    explainer_factory,
    explainer_names,
)


def names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers that :func:`create` knows, those of other packages last.

    With ``oracles`` also those that optimize the metric itself: ``"best_found"`` and ``"refined"``.

    >>> names()[:3]
    ('gstarx', 'hn', 'gstarx_published')
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
        :mod:`gstarx.explainers.registry`.
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
    fixed = fixed_by(make, overrides)
    presets = options_for(name, dataset).items()
    options = {**{option: one for option, one in presets if option not in fixed}, **overrides}
    _check_options(name, make, options)
    explainer = make(**with_objects(make, options))
    if not isinstance(explainer, NodeExplainer):
        raise TypeError(
            f"explainer {name!r} must be a gstarx.explainers.NodeExplainer "
            f"(got {type(explainer).__name__})"
        )
    explainer.method = name
    return explainer


def options_of(name: str) -> tuple[str, ...]:
    """The options that an explainer takes, by name."""
    return tuple(plain_options(_factory(name)))


def boolean_options_of(name: str) -> tuple[str, ...]:
    """Those of the options that are true or false.

    >>> boolean_options_of("subgraphx")
    ('high2low',)
    """
    options = plain_options(_factory(name))
    return tuple(name for name, one in options.items() if isinstance(one.default, bool))


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
    valid = dict.fromkeys([*plain_options(make), *(parameter.name for parameter in parameters)])
    for option in options:
        if option not in valid:
            raise TypeError(unknown(f"option of {name!r}", option, valid))


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


def with_settings(dataset: str | None) -> str | None:
    """A dataset's name if the paper has settings for it or for one like it, else ``None``."""
    return dataset if dataset in _with_presets() else None


def _with_presets() -> tuple[str, ...]:
    named = {name for spec in EXPLAINERS.values() for name in spec.presets} - {EVERY}
    return tuple(name for name, spec in DATASETS.items() if {name, spec.like} & named)


def options_for(name: str, dataset: str | None = None) -> dict[str, Any]:
    """The options of an explainer for a dataset of the paper, or for any other graphs (None).

    >>> options_for("subgraphx", "sst2") == options_for("subgraphx", "graph_sst2")
    True
    >>> options_for("random")
    {}
    """
    presets = EXPLAINERS[name].presets if name in EXPLAINERS else {}
    general = dict(presets.get(EVERY, {}))
    if dataset is None:
        return general
    if dataset not in _with_presets():
        raise ValueError(
            f"{unknown('dataset with settings of the paper', str(dataset), _with_presets())}; "
            "leave dataset out for graphs of your own"
        )
    return general | dict(presets.get(DATASETS[dataset].like or dataset, {}))
