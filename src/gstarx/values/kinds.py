"""Values as objects with their options: what :func:`gstarx.explain` takes as ``value``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.arguments import as_flag
from gstarx._internal.messages import unknown
from gstarx.games import Game, self_dual
from gstarx.graphs import (
    Coalitions,
    CommunicationGraph,
    TooManyCoalitions,
    distinct_rows,
    pack,
)
from gstarx.values.allocation import Allocation
from gstarx.values.banzhaf import banzhaf_value, banzhaf_value_sampled, check_presence
from gstarx.values.hn.closed_form import hn_value
from gstarx.values.hn.growth_sampling import hn_value_growth_sampled
from gstarx.values.myerson import myerson_value
from gstarx.values.permutation_sampling import myerson_value_sampled
from gstarx.values.shapley import shapley_value
from gstarx.values.shapley_sampling import shapley_value_sampled

Seed = int | np.random.Generator | None


@dataclass(frozen=True, kw_only=True)
class Value(ABC):
    """How the worths of coalitions become scores of players.

    Subclass it to use a value of your own: a frozen dataclass with a ``name``, :meth:`count` and
    :meth:`exact`, and :meth:`sampled` if it can be estimated.
    :func:`gstarx.testing.check_value` tests a subclass.

    Attributes
    ----------
    estimator
        ``"auto"``: exact if the coalitions that the value needs fit the budget, sampled otherwise.
        ``"exact"`` and ``"sampled"`` are always that.
    name
        What explanations call the value.
    follows_graph
        Whether it depends on who communicates with whom. Then the default baseline of graph tasks
        is ``"singletons"``.
    """

    estimator: str = "auto"

    name: ClassVar[str]
    follows_graph: ClassVar[bool] = False
    #: Valid estimators; the last one is that of graphs whose coalitions do not fit the budget.
    estimators: ClassVar[tuple[str, ...]] = ("exact", "sampled")

    def __post_init__(self) -> None:
        valid = ("auto", *self.estimators)
        if self.estimator not in valid:
            raise ValueError(
                f"there is no estimator {self.estimator!r} for {type(self).__name__}; valid are "
                f"{', '.join(valid)}"
            )

    @abstractmethod
    def count(self, graph: CommunicationGraph, limit: int) -> int:
        """How many coalitions :meth:`exact` evaluates at most; if more than ``limit``, any such."""

    @abstractmethod
    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """The exact value from at most so many distinct coalitions.

        It raises :class:`gstarx.graphs.TooManyCoalitions` where more are needed. ``game`` maps
        boolean coalitions (k, n) to worths (k,) or (k, q), and is not asked for the empty one.
        """

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """An estimate with standard errors, from at most ``budget`` distinct coalitions."""
        raise ValueError(
            f"{type(self).__name__} cannot be estimated, and its exact value needs more than "
            f"{budget:,} coalitions: raise budget=..."
        )

    def played(self, game: Game) -> Game:
        """The game whose value is computed, if it is another one than the model's."""
        return game

    def certain(
        self, graph: CommunicationGraph, coalitions: Coalitions, *, exact: bool
    ) -> NDArray[np.bool_]:
        """Which of some coalitions are evaluated in any case, so that they cost no more."""
        return np.zeros(len(coalitions), dtype=np.bool_)

    def share_of_constant(self, n: int) -> float:
        """How much of a constant worth of all coalitions but the empty one ``n`` players share."""
        return 1.0

    @property
    def sides(self) -> int:
        """How many coalitions of the game are evaluated for each one of :meth:`played`."""
        return 1


@dataclass(frozen=True, kw_only=True)
class _OfAllSets(Value):
    """A value that needs all coalitions, whoever communicates with whom."""

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        return int(2**graph.num_nodes - 1)

    def certain(
        self, graph: CommunicationGraph, coalitions: Coalitions, *, exact: bool
    ) -> NDArray[np.bool_]:
        return np.full(len(coalitions), exact) | coalitions.all(axis=1)


@dataclass(frozen=True, kw_only=True)
class Shapley(_OfAllSets):
    """The Shapley value: what a player adds on average over all orders of players.

    See :func:`gstarx.values.shapley_value`.
    """

    name = "shapley"

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """As :func:`gstarx.values.shapley_value`."""
        return shapley_value(game, graph.num_nodes, max_coalitions=max_coalitions)

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """As :func:`gstarx.values.shapley_value_sampled`."""
        return shapley_value_sampled(game, graph.num_nodes, budget=budget, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Banzhaf(_OfAllSets):
    """The Banzhaf value: what a player adds on average over all sets of the others.

    See :func:`gstarx.values.banzhaf_value`.

    Attributes
    ----------
    presence
        The probability that another player is present.
    """

    name = "banzhaf"

    presence: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_presence(self.presence)

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """As :func:`gstarx.values.banzhaf_value`."""
        return banzhaf_value(
            game, graph.num_nodes, max_coalitions=max_coalitions, presence=self.presence
        )

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """As :func:`gstarx.values.banzhaf_value_sampled`."""
        return banzhaf_value_sampled(
            game, graph.num_nodes, budget=budget, seed=seed, presence=self.presence
        )

    def share_of_constant(self, n: int) -> float:
        """How much is left of it where sets of some sizes are rare."""
        return n * (1 - self.presence) ** (n - 1)


@dataclass(frozen=True, kw_only=True)
class _OfConnectedSets(Value):
    """A value that needs the connected coalitions; the Myerson value, unless a subclass differs."""

    follows_graph = True

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        """The connected coalitions."""
        return graph.count_connected_coalitions(limit)

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """As :func:`gstarx.values.myerson_value`."""
        return myerson_value(game, graph, max_coalitions=max_coalitions)

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """As :func:`gstarx.values.myerson_value_sampled`."""
        return myerson_value_sampled(game, graph, budget=budget, seed=seed)

    def certain(
        self, graph: CommunicationGraph, coalitions: Coalitions, *, exact: bool
    ) -> NDArray[np.bool_]:
        """The components, and single players where all connected coalitions are listed."""
        alone = coalitions.sum(axis=1) == 1
        return np.asarray(_are_components(graph, coalitions) | (alone & exact))


@dataclass(frozen=True, kw_only=True)
class Position(_OfConnectedSets):
    """The position value of edges as links between nodes, for edges as players.

    See :func:`gstarx.values.position_value`. Here it is what links get, the Myerson value of a game
    of links; the explanation adds what their ends get from them.
    """

    name = "position"


@dataclass(frozen=True, kw_only=True)
class Myerson(_OfConnectedSets):
    """The Myerson value: the Shapley value of what connected parts are worth.

    See :func:`gstarx.values.myerson_value`.

    Attributes
    ----------
    two_sided
        Whether to take the value of :func:`gstarx.games.self_dual` of the game, which counts what a
        coalition is worth and what is lost without it, half each. Complements are evaluated too and
        count toward the budget. Shapley and Banzhaf values include both sides already.
    """

    name = "myerson"

    two_sided: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_flag(self.two_sided, name="two_sided")

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        """The connected coalitions, with complements if those count."""
        count = super().count(graph, limit)
        if not self.two_sided or count > limit:
            return count
        if count <= pairs_within(graph, limit):
            return 2 * count + (-1 if len(graph.components) == 1 else 1)
        return _with_complements(graph)

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """The value of the game, or of its self-dual part."""
        if self.two_sided and super().count(graph, max_coalitions) <= max_coalitions:
            needed = _with_complements(graph)
            if needed > max_coalitions:
                raise TooManyCoalitions(needed, max_coalitions, connected=False)
        return self._of_connected(self.played(game), graph, max_coalitions)

    def _of_connected(self, game: Game, graph: CommunicationGraph, limit: int) -> Allocation:
        return super().exact(game, graph, max_coalitions=limit)

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """The same from a sample; ``budget`` counts a coalition and its complement once."""
        return super().sampled(self.played(game), graph, budget=budget, seed=seed)

    def played(self, game: Game) -> Game:
        """The self-dual part of the game, if both sides count."""
        return self_dual(game) if self.two_sided else game

    @property
    def sides(self) -> int:
        """Two, if complements count."""
        return 2 if self.two_sided else 1

    def certain(
        self, graph: CommunicationGraph, coalitions: Coalitions, *, exact: bool
    ) -> NDArray[np.bool_]:
        """As for one side; everybody, too, if both count."""
        known = super().certain(graph, coalitions, exact=exact)
        return known | coalitions.all(axis=1) if self.two_sided else known


@dataclass(frozen=True, kw_only=True)
class HN(Myerson):
    """The paper's Hamiache-Navarro value, see :func:`gstarx.values.hn_value`.

    Attributes
    ----------
    two_sided
        As in :class:`Myerson`.
    """

    name = "hn"
    estimators = ("exact", "growth")

    def _of_connected(self, game: Game, graph: CommunicationGraph, limit: int) -> Allocation:
        return hn_value(game, graph, max_coalitions=limit)

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Seed = None
    ) -> Allocation:
        """As :func:`gstarx.values.hn_value_growth_sampled`."""
        return hn_value_growth_sampled(self.played(game), graph, budget=budget, seed=seed)

    def certain(
        self, graph: CommunicationGraph, coalitions: Coalitions, *, exact: bool
    ) -> NDArray[np.bool_]:
        """As for Myerson; growth begins with single players, except on complete graphs."""
        n = graph.num_nodes
        grown = len(graph.edges) < n * (n - 1) // 2
        return super().certain(graph, coalitions, exact=exact or grown)


#: What can be given as ``value``: an object, or the name of one with its defaults.
ValueLike = Value | str
_NAMED: dict[str, type[Value]] = {
    kind.name: kind for kind in (Myerson, HN, Shapley, Banzhaf, Position)
}


def as_value(value: Any) -> Value:
    """The value that is meant, or an error that names the valid ones.

    >>> as_value("banzhaf")
    Banzhaf(estimator='auto', presence=0.5)
    """
    if isinstance(value, Value):
        return value
    if isinstance(value, str):
        if value in _NAMED:
            return _NAMED[value]()
        raise ValueError(unknown("value", value, _NAMED))
    if isinstance(value, type) and issubclass(value, Value):
        raise TypeError(f"value must be an object, {value.__name__}(...) (got the class)")
    raise TypeError(
        f"value must be one of {', '.join(map(repr, _NAMED))}, or an object such as "
        f"gstarx.Myerson(two_sided=True) (got {type(value).__name__})"
    )


def pairs_within(graph: CommunicationGraph, budget: int) -> int:
    """How many coalitions can be evaluated for certain with their complements and everybody."""
    return (budget + 1) // 2 if len(graph.components) == 1 else (budget - 1) // 2


def _are_components(graph: CommunicationGraph, coalitions: Coalitions) -> NDArray[np.bool_]:
    """Which coalitions (k, n) are components of the graph."""
    if not len(graph.components):
        return np.zeros(len(coalitions), dtype=np.bool_)
    sizes = graph.component_coalitions.sum(axis=1)
    inside = coalitions.astype(np.int64) @ graph.component_coalitions.T
    return np.asarray(((inside == sizes) & (inside == coalitions.sum(axis=1)[:, None])).any(axis=1))


def _with_complements(graph: CommunicationGraph) -> int:
    """Number of connected coalitions, their complements and everybody, each counted once."""
    n = graph.num_nodes
    masks = graph.connected_masks()[0]
    everybody = pack(np.ones((1, n), dtype=np.bool_))
    joined = np.concatenate([everybody, masks, everybody & ~masks])
    return len(distinct_rows(joined[joined.any(axis=1)])[0])
