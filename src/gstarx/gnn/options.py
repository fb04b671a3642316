"""What is rare about a game and about passes through the model, as objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, fields
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gstarx._internal.arguments import as_flag, one_of
from gstarx._internal.messages import unknown
from gstarx.gnn.model_task import Task
from gstarx.gnn.removal import RemovalLike
from gstarx.graphs import as_size
from gstarx.players import Edges, Features, Groups, Nodes
from gstarx.values import HN, Banzhaf, Myerson, Position, Shapley, Subgraphs

#: Valid computation graphs.
COMPUTATION_GRAPHS = ("exact", "gnnshap")
#: Valid values of ``share``.
ShareLike = bool | str


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """How coalitions become graphs, and what they are worth where the model fails.

    Attributes
    ----------
    removal
        How nodes are removed: ``"remove"``, ``"split"``, ``"zero_filling"``, or a function from the
        graph and a coalition to the remaining graph.
    communication
        A :class:`gstarx.CommunicationGraph` of the players. By default nodes communicate along
        edges, groups if an edge joins them, edges if they share a node, and all features with each
        other.
    num_hops
        For node and edge tasks: nodes within this many hops of the target are players. By default
        the number of times the model propagates messages, which is verified by changing and by
        removing the other nodes: where the output depends on them, they play. Only degrees that
        PyG's normalized layers look at are no reason to play. A number that is given is not
        verified. Nodes that are not players are always present.
    computation_graph
        For node tasks: ``"exact"``, where all players together give the prediction on the whole
        graph, or ``"gnnshap"``, the game of Akkas and Azad (GNNShap, WWW 2024) on only the edges
        that carry messages to the node and the nodes they touch. The prediction is still that on
        the whole graph, and by default the class predicted there is explained.
    fallback
        The worth of coalitions for which the model raises an exception or returns NaN. By default
        this is an error. Single players among them are left out of ``baseline="singletons"``.
    """

    removal: RemovalLike = "remove"
    communication: Any = None
    num_hops: int | None = None
    computation_graph: str = "exact"
    fallback: float | None = None

    def __post_init__(self) -> None:
        one_of(self.computation_graph, COMPUTATION_GRAPHS, name="computation_graph")
        if self.num_hops is not None:
            object.__setattr__(self, "num_hops", as_size(self.num_hops, name="num_hops"))
        number = isinstance(self.fallback, int | float | np.number)
        if self.fallback is not None and not (number and np.isfinite(self.fallback)):
            raise ValueError(f"fallback must be a finite number (got {self.fallback!r})")


@dataclass(frozen=True, kw_only=True)
class Passes:
    """How coalitions go through the model; nothing here changes the scores beyond rounding.

    Attributes
    ----------
    batch_nodes
        Nodes per forward pass. By default a fixed rule sets it from the device and the width of the
        model. With 1, every coalition goes through the model by itself.
    check
        Whether to compare some outputs of batches with those of the same coalitions by themselves.
        A model that mixes the graphs of a batch is then evaluated one coalition at a time, and a
        model with random outputs is refused.
    share
        Whether to compute embeddings that coalitions have in common only once. ``"auto"`` does so
        if it saves enough and the outputs agree with ordinary forward passes, which is verified;
        ``True`` if they agree, and raises an error otherwise; ``False`` never.
    """

    batch_nodes: int | None = None
    check: bool = True
    share: ShareLike = "auto"

    def __post_init__(self) -> None:
        if self.batch_nodes is not None and as_size(self.batch_nodes, name="batch_nodes") < 1:
            raise ValueError(f"batch_nodes must be at least 1 (got {self.batch_nodes})")
        object.__setattr__(self, "check", as_flag(self.check, name="check"))
        if not isinstance(self.share, bool | np.bool_) and self.share != "auto":
            raise ValueError(f"share must be 'auto', True or False (got {self.share!r})")


Options = TypeVar("Options", GameOptions, Passes)
Function = TypeVar("Function", bound=Callable[..., Any])


def as_options(given: Any, family: type[Options], name: str) -> Options:
    """Options of a family, by default the usual ones, or an error that says what is expected.

    >>> as_options(None, Passes, "passes")
    Passes(batch_nodes=None, check=True, share='auto')
    """
    if given is None:
        return family()
    if not isinstance(given, family):
        raise TypeError(f"{name} takes a gstarx.{family.__name__}(...) (got {given!r})")
    return given


#: Objects that have options, by the keyword that takes them, most usual first.
FAMILIES: dict[str, tuple[type, ...]] = {
    "value": (Myerson, HN, Banzhaf, Shapley, Position, Subgraphs),
    "players": (Groups, Nodes, Edges, Features),
    "task": (Task,),
    "game": (GameOptions,),
    "passes": (Passes,),
}
#: Options of players by the names that tell them apart where there are no objects, as in commands.
PLAIN_NAMES = {"types": "player_types", "groups": "feature_groups"}
#: What an object is besides its options.
_NO_OPTIONS = {"value", "sets", "names", "num_nodes", "touched", "field"}


def options_in(family: str) -> dict[str, dict[type, Field[Any]]]:
    """The options of a family by plain name, with the fields of the classes that have them."""
    found: dict[str, dict[type, Field[Any]]] = {}
    for kind in FAMILIES[family]:
        for field in fields(kind):
            if field.name not in _NO_OPTIONS:
                name = PLAIN_NAMES.get(field.name, field.name)
                found.setdefault(name, {})[kind] = field
    return found


def refuse_unknown(function: Function) -> Function:
    """Raise for a keyword that a function does not have, and say which object has it.

    >>> refuse_unknown(lambda model, value: None)(0, presence=0.3)
    Traceback (most recent call last):
    ...
    TypeError: <lambda>() has no keyword 'presence': it is an option, value=Banzhaf(presence=...)
    """
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in parameters:
                named = function.__qualname__.removesuffix(".__init__")
                place = _place_of(name, parameters)
                where = f"has no keyword {name!r}: {place}" if place else _nearest(name, parameters)
                raise TypeError(f"{named}() {where}")
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def _place_of(name: str, parameters: Iterable[str]) -> str:
    """Where an option is that was a keyword, or that belongs to an object; empty if nowhere."""
    for family in FAMILIES:
        for kind, field in options_in(family).get(name, {}).items():
            if family in parameters:
                return f"it is an option, {family}={kind.__name__}({field.name}=...)"
    keyword, place = _MOVED.get(name, ("", ""))
    return place if keyword in parameters else ""


def _nearest(name: str, parameters: Iterable[str]) -> str:
    said = unknown("keyword", name, [valid for valid in parameters if valid != "self"])
    return said.replace("there is no", "has no", 1)


#: Other old keywords, of functions that have another one, and what does the same.
_MOVED = {
    "indices": ("nodes", "the nodes are the third argument, nodes"),
    "edge_mask": ("value", "the result has score_edges()"),
    "mask_range": ("value", "the result has in_unit_range()"),
}
