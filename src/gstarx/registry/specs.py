"""Explainers, datasets and networks as plain data, and how other packages add theirs.

A package that adds something has a module that loads nothing heavy, with some of ``EXPLAINERS``,
``DATASETS``, ``NETWORKS`` and ``PLAYERS`` (lists of the classes below), ``READERS`` and
``COMMANDS`` (dictionaries of ``module:attribute``), and names it in the entry-point group
:data:`PLUGINS`. A class alone is enough for an explainer, under :data:`GROUP`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

#: Entry points of other packages: modules as described above, and explainers by name.
PLUGINS, GROUP = "gstarx.plugins", "gstarx.explainers"
#: Stands for all datasets.
EVERY = "*"


@dataclass(frozen=True)
class Option:
    """An option of an explainer that people set most.

    Attributes
    ----------
    name, about
        Its name, and what it does.
    type
        ``"integer"``, ``"number"``, ``"boolean"`` or ``"choice"``.
    default
        Its default; ``None`` if that depends on the graph or the dataset.
    choices
        Of a choice.
    minimum, maximum
        Of a number, as the explorer accepts it.
    counted
        Whether it counts evaluations or samples, which a server limits.
    """

    name: str
    about: str
    type: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    counted: bool = False

    @classmethod
    def integer(
        cls,
        name: str,
        about: str,
        default: int | None,
        low: int,
        high: int,
        *,
        counted: bool = False,
    ) -> Option:
        """An integer between bounds."""
        return cls(name, about, "integer", default, minimum=low, maximum=high, counted=counted)

    @classmethod
    def number(
        cls, name: str, about: str, default: float | None, low: float, high: float
    ) -> Option:
        """A number between bounds."""
        return cls(name, about, "number", default, minimum=low, maximum=high)

    @classmethod
    def choice(cls, name: str, about: str, default: str, *others: str) -> Option:
        """One of some words."""
        return cls(name, about, "choice", default, (default, *others))


@dataclass(frozen=True)
class ExplainerSpec:
    """An explainer by name.

    Attributes
    ----------
    name, home
        Its name, and where it is: ``module:attribute``.
    title, about
        Its title, and what it does in a sentence.
    options
        The options that people set most; :func:`gstarx.explainers.options_of` lists all.
    trains
        Whether it has to be trained on a dataset first.
    default
        Whether the explorer selects it.
    oracle
        Whether it optimizes the metric itself: a reference, not an explanation.
    players
        What it can score: nodes, groups of nodes, edges, features.
    presets
        Options by dataset, with :data:`EVERY` for all of them: the settings of the paper's tables.
    """

    name: str
    home: str
    title: str
    about: str
    options: tuple[Option, ...] = ()
    trains: bool = False
    default: bool = False
    oracle: bool = False
    players: tuple[str, ...] = ("nodes",)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset by name: title, what it is about, and where its loader is.

    ``classes`` are named if they have to be known where the data is not. ``like`` names the dataset
    of the paper whose settings explainers use.
    """

    name: str
    title: str
    about: str
    home: str
    shipped: bool = False
    classes: tuple[str, ...] = ()
    like: str = ""


@dataclass(frozen=True)
class PlayersSpec:
    """What can get scores, by name.

    Attributes
    ----------
    name
        Its name, as ``players=`` takes it.
    kind
        ``"nodes"``, ``"groups"`` of nodes, ``"edges"`` or ``"features"``.
    titles
        What such players are called, by the kinds of graphs that have them: ``"molecule"``,
        ``"sentence"`` and ``"graph"``.
    home
        Of groups: where the function is that makes them of a graph, ``module:function``.
    """

    name: str
    kind: str
    titles: Mapping[str, str] = field(default_factory=dict)
    home: str = ""


@dataclass(frozen=True)
class NetworkSpec:
    """A network that ships, in the folder ``trained`` of a package."""

    name: str
    dataset: str
    architecture: str
    package: str = "gstarx.models"


def resolve(home: str) -> Any:
    """Import what is at ``module:attribute``."""
    module, _, path = home.partition(":")
    target: Any = import_module(module)
    for part in path.split("."):
        target = getattr(target, part)
    return target


@cache
def plugins() -> tuple[ModuleType, ...]:
    """The modules of other packages that add something; one that cannot be loaded is left out."""
    found = []
    for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:
            warnings.warn(f"the plugin {point.value} cannot be loaded: {error}", stacklevel=2)
    return tuple(found)


_Spec = TypeVar("_Spec", bound=ExplainerSpec | DatasetSpec | NetworkSpec | PlayersSpec)


class Registered(Mapping[str, _Spec]):
    """Specifications by name: those of the library first, then those of other packages."""

    def __init__(self, field: str, own: Sequence[_Spec]) -> None:
        self._field, self._own = field, own

    @cached_property
    def _specified(self) -> dict[str, _Spec]:
        added = [spec for plugin in plugins() for spec in getattr(plugin, self._field, ())]
        return {spec.name: spec for spec in reversed((*self._own, *added))}

    @property
    def _by_name(self) -> dict[str, _Spec]:
        return dict(reversed(self._specified.items()))

    def __getitem__(self, name: str) -> _Spec:
        return self._specified[name] if name in self._specified else self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


class RegisteredExplainers(Registered[ExplainerSpec]):
    """Explainers by name, with those that are entry points of their own at the end."""

    @property
    def _by_name(self) -> dict[str, ExplainerSpec]:
        # looked up anew each time: packages may be installed meanwhile, as in a notebook
        points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
        named = {p.name: ExplainerSpec(p.name, p.value, p.name, "") for p in points}
        return super()._by_name | {k: v for k, v in named.items() if k not in self._specified}


def reader(name: str) -> Any:
    """The function of another package that reads something, such as a ``"table"``."""
    for plugin in plugins():
        home = getattr(plugin, "READERS", {}).get(name)
        if home is not None:
            return resolve(home)
    raise ImportError(f"no installed package reads {name!r}")


def commands() -> dict[str, str]:
    """Commands that other packages add: ``module:function``, or a ``typer`` application."""
    return {
        name: home for plugin in plugins() for name, home in getattr(plugin, "COMMANDS", {}).items()
    }
