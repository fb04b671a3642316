"""Explainers by name, with the settings of the paper's tables, and those that others add."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.presets import PRESETS, options_for

#: Third parties add explainers under this entry-point group: a name and a class or function.
GROUP = "gstarx.explainers"

#: Where every explainer lives.
_HOME = {
    "gstarx": "gstarx.explainers.gstarx:GStarX",
    "gstarx_published": "gstarx.explainers.gstarx:GStarX.as_published",
    "myerson": "gstarx.explainers.gstarx:GStarX",
    "shapley": "gstarx.explainers.gstarx:GStarX",
    "banzhaf": "gstarx.explainers.gstarx:GStarX",
    "subgraphx": "gstarx.explainers.subgraphx:SubgraphX",
    "graphsvx": "gstarx.explainers.graphsvx:GraphSVX",
    "orphicx": "gstarx.explainers.orphicx:OrphicX",
    "gnnexplainer": "gstarx.explainers.pyg:GNNExplainer",
    "pgexplainer": "gstarx.explainers.pyg:PGExplainer",
    "gradient_x_input": "gstarx.explainers.gradients:GradientXInput",
    "integrated_gradients": "gstarx.explainers.gradients:IntegratedGradients",
    "local_shapley": "gstarx.explainers.baselines:LocalShapley",
    "leave_one_out": "gstarx.explainers.baselines:LeaveOneOut",
    "single_node": "gstarx.explainers.baselines:SingleNode",
    "random": "gstarx.explainers.baselines:RandomNodes",
}
#: Oracles: they optimize the metric itself, and are created and stored like explainers.
_ORACLES = {
    "best_found": "gstarx.explainers.oracles:BestFound",
    "refined": "gstarx.explainers.oracles:Refined",
}


def names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers that :func:`create` knows, those of other packages last.

    With ``oracles`` also those that optimize the metric itself: ``"best_found"`` and ``"refined"``.

    >>> names()[:3]
    ('gstarx', 'gstarx_published', 'myerson')
    """
    added = sorted({point.name for point in entry_points(group=GROUP)} - set(_HOME))
    return (*_HOME, *added, *(_ORACLES if oracles else ()))


def create(name: str, *, dataset: str | None = None, **overrides: Any) -> NodeExplainer:
    """An explainer by name, set up as in the paper's tables for a dataset.

    Parameters
    ----------
    name
        One of :func:`names`.
    dataset
        The dataset whose settings apply, where the method has such; see
        :mod:`gstarx.explainers.presets`.
    **overrides
        Options of the explainer that say otherwise.

    Examples
    --------
    >>> create("subgraphx", dataset="mutag").search.min_atoms
    3
    >>> create("subgraphx", dataset="mutag", min_atoms=2).search.min_atoms
    2
    """
    make = _found(name)
    options = {**options_for(name, dataset), **overrides}
    _check_options(name, make, options)
    made = make(**options)
    if not isinstance(made, NodeExplainer):
        raise TypeError(
            f"explainer {name!r} must be a gstarx.explainers.NodeExplainer "
            f"(got {type(made).__name__})"
        )
    made.method = name
    return made


def options_of(name: str) -> tuple[str, ...]:
    """The options that an explainer takes, by name."""
    return tuple(
        parameter.name
        for parameter in inspect.signature(_found(name)).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )


def _found(name: str) -> Callable[..., Any]:
    if home := {**_HOME, **_ORACLES}.get(name):
        module, _, path = home.partition(":")
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point.load()  # type: ignore[no-any-return]
    raise ValueError(unknown("explainer", str(name), names()))


def _check_options(name: str, make: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:
        return  # it does not say what it takes
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return
    valid = [parameter.name for parameter in parameters]
    for option in options:
        if option not in valid:
            raise TypeError(unknown(f"option of {name!r}", option, valid))


__all__ = ["GROUP", "PRESETS", "create", "names", "options_of"]
