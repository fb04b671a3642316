"""Games of networks for shapiq, and interactions between nodes by shapiq's methods.

    from gstarx.integrations import shapiq

    interactions = shapiq.explain_interactions(model, data, order=2, index="k-SII")
    interactions.top(5)
    interactions.draw()

Values say what a node contributes; interactions say what nodes contribute together beyond what they
contribute alone.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx.drawing import Picture, draw_interactions, signed
from gstarx.gnn import (
    BaselineLike,
    GameOptions,
    GNNGame,
    Passes,
    PayoffLike,
    TaskLike,
    refuse_unknown,
    restored,
)
from gstarx.graphs import Coalitions
from gstarx.registry import SAMPLED_BUDGET
from gstarx.values import PrecisionWarning

__all__ = ["INDICES", "Interactions", "as_game", "explain_interactions", "from_game"]

#: Interaction indices, and the approximator of shapiq where coalitions are too many.
INDICES = {"k-SII": "KernelSHAPIQ", "STII": "SHAPIQ", "FSII": "RegressionFSII", "BII": "SHAPIQ"}
#: The oldest shapiq that has what is needed here.
_OLDEST = (1, 4)
#: Exact computation lists all coalitions, in memory.
_MOST_EXACT = 20
#: shapiq computes FSII from a square matrix over all coalitions, which is too large for more.
_MOST_SQUARE = 10
#: Standard errors above this share of the largest value are warned of.
_NOISY = 0.2


def _shapiq(module: str = "shapiq") -> Any:
    """A module of shapiq, or an error that says what is missing or too old."""
    package = require(module, extra="shapiq")
    installed = version("shapiq")
    if tuple(map(int, re.findall(r"\d+", installed)[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise ImportError(
            f"this needs shapiq {oldest} or newer (got {installed}): pip install 'gstarx[shapiq]'"
        )
    return package


def as_game(game: GNNGame) -> Any:
    """A game of a network as a ``shapiq.Game``, for all approximators and plots of shapiq.

    Coalitions are evaluated in batches, and none goes through the model twice. The worth of the
    empty coalition is 0, as everywhere in GStarX.

    Parameters
    ----------
    game
        A game with one target.

    Returns
    -------
    shapiq.Game
        With the nodes as players, by number.
    """
    if not isinstance(game, GNNGame):
        raise TypeError(f"game must be a gstarx.GNNGame (got {type(game).__name__})")
    if not game.single:
        raise ValueError("a game of shapiq has one target: pass one to GNNGame, such as target=0")
    base = _shapiq().Game

    class NetworkGame(base):  # type: ignore[misc, valid-type]
        """A game of a network."""

        def value_function(self, coalitions: Coalitions) -> NDArray[np.float64]:
            """Worths of boolean coalitions (k, n)."""
            return np.asarray(game(np.asarray(coalitions, dtype=np.bool_)))

    return NetworkGame(n_players=game.n, normalize=True, normalization_value=0.0)


def from_game(game: Any) -> Callable[[Coalitions], NDArray[np.float64]]:
    """A game of shapiq as a game that the functions of :mod:`gstarx.values` take.

    Worths are relative to that of the empty coalition.

    Parameters
    ----------
    game
        A ``shapiq.Game``.
    """
    if not isinstance(game, _shapiq().Game):
        raise TypeError(f"game must be a shapiq.Game (got {type(game).__name__})")
    players = int(game.n_players)
    empty = float(game(np.zeros((1, players), dtype=np.bool_))[0])

    def worths(coalitions: Coalitions) -> NDArray[np.float64]:
        worth: NDArray[np.float64] = np.asarray(game(coalitions), dtype=np.float64) - empty
        return worth

    return worths


@dataclass(frozen=True)
class Interactions:
    """Interactions between nodes of a graph, and how they were computed.

    Attributes
    ----------
    values
        The value of every set of nodes up to the order, by node numbers in ascending order.
    index, order
        Which interaction index, and up to how many nodes.
    exact
        Whether all coalitions were evaluated.
    evaluations, seconds
        Distinct coalitions that went through the model, and CPU seconds.
    target
        The class or output that was explained.
    data
        The graph.
    std_errors
        The standard error of sets of one node, of two nodes and so on, as a root mean square over
        these sets; all zero if values are exact.
    """

    values: Mapping[tuple[int, ...], float] = field(repr=False)
    index: str
    order: int
    exact: bool
    evaluations: int
    seconds: float
    target: int
    data: Data = field(repr=False)
    std_errors: tuple[float, ...] = ()
    _shapiq: Any = field(repr=False, default=None)

    def __getitem__(self, nodes: int | Sequence[int]) -> float:
        """The value of a node or a set of nodes."""
        key = (nodes,) if isinstance(nodes, int | np.integer) else tuple(sorted(nodes))
        return float(self.values[key])

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.values)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The values of single nodes, (n,)."""
        scores = np.zeros(int(self.data.num_nodes or 0))
        for nodes, value in self.values.items():
            if len(nodes) == 1:
                scores[nodes[0]] = value
        return scores

    def of_order(self, order: int) -> dict[tuple[int, ...], float]:
        """The values of sets of so many nodes."""
        return {nodes: value for nodes, value in self.values.items() if len(nodes) == order}

    def top(
        self, count: int = 5, *, order: int | None = None
    ) -> list[tuple[tuple[int, ...], float]]:
        """The strongest interactions by absolute value, of two nodes or more by default."""
        among = {
            nodes: value
            for nodes, value in self.values.items()
            if len(nodes) == order or (order is None and len(nodes) > 1)
        }
        return sorted(among.items(), key=lambda item: (-abs(item[1]), item[0]))[:count]

    def as_shapiq(self) -> Any:
        """The ``shapiq.InteractionValues``, for its plots; players are those of the game."""
        return self._shapiq

    def draw(self, *, strongest: int = 5, title: str | None = None) -> Picture:
        """Bows between the nodes that interact most, over the picture of the graph."""
        how = "exact" if self.exact else f"standard error {self.std_errors[-1]:.2g}"
        return draw_interactions(
            self.data,
            {nodes: value for nodes, value in self.values.items() if len(nodes) > 1},
            self.scores,
            strongest=strongest,
            title=title,
            caption=f"{self.index}, {how}, {self.evaluations:,} coalitions, target {self.target}",
        )

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{', '.join(map(str, nodes))}</td><td>{signed(value)}</td></tr>"
            for nodes, value in self.top(5)
        )
        header = "<tr><th>nodes</th><th>interaction</th></tr>"
        return f"<figure>{self._repr_svg_()}</figure><table>{header}{rows}</table>"


@refuse_unknown
def explain_interactions(
    model: Any,
    data: Data,
    *,
    order: int = 2,
    index: str = "k-SII",
    budget: int | None = None,
    target: int | None = None,
    node: int | Tensor | None = None,
    task: TaskLike = None,
    payoff: PayoffLike = "auto",
    baseline: BaselineLike = None,
    seed: int | None = None,
    game: GameOptions | None = None,
    passes: Passes | None = None,
) -> Interactions:
    """Which nodes of a graph act together on a prediction.

    Parameters
    ----------
    model, data, target, task, payoff, baseline, game, passes
        As for :func:`gstarx.explain`, but for the baseline, which is that of
        :class:`gstarx.GNNGame`.
    order
        Up to how many nodes interact: 2 for pairs, 3 for triples as well.
    index
        ``"k-SII"`` (Shapley values spread over sets; the values sum to the worth of the graph),
        ``"STII"`` (Shapley-Taylor), ``"FSII"`` (the best approximation of the game by sums over
        sets), or ``"BII"`` (Banzhaf).
    budget
        How many coalitions may be evaluated, 20,000 by default. If all coalitions fit, values are
        exact. Otherwise an approximator of shapiq estimates them twice, from independent halves of
        the budget: the values are the means, and the differences show the standard errors.
    node
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    seed
        The same seed gives the same values.

    Returns
    -------
    Interactions
        With the values of all sets up to the order.

    Raises
    ------
    ValueError
        If the index is unknown, or the budget is too small for the order.

    Warns
    -----
    PrecisionWarning
        If the standard error of the largest sets exceeds a fifth of the largest of their values.
    """
    if index not in INDICES:
        raise ValueError(f"index must be one of {', '.join(map(repr, INDICES))} (got {index!r})")
    _shapiq()
    start = time.process_time()
    with restored(model):
        played = GNNGame(
            model,
            data,
            target=target,
            index=node,
            task=task,
            payoff=payoff,
            baseline=baseline,
            game=game,
            passes=passes,
        )
        order, allowed = _checked_order(order, played.n), _checked_budget(budget)
        exact = played.n <= _MOST_EXACT and 2**played.n <= allowed
        if not exact:
            _require_enough(allowed, order, played.n)
        computed = _computed(played, index, order, None if exact else allowed, seed)
    n = played.n
    played.warn_if_constant(n * 0.5 ** (n - 1) if index == "BII" else 1.0)
    nodes = played.nodes.tolist()
    values = {
        tuple(sorted(nodes[player] for player in players)): float(computed.values.values[at])
        for players, at in computed.values.interaction_lookup.items()
        if players
    }
    interactions = Interactions(
        values,
        index,
        order,
        exact,
        played.evaluations,
        time.process_time() - start,
        int(played.payoff.columns[0]),
        data,
        computed.std_errors,
        computed.values,
    )
    _warn_if_noisy(interactions)
    return interactions


@dataclass(frozen=True)
class _Computed:
    """Interactions as shapiq has them, and their standard errors by size."""

    values: Any
    std_errors: tuple[float, ...]


def _checked_order(order: Any, players: int) -> int:
    valid = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not valid or not 1 <= order <= players:
        raise ValueError(
            f"order must be an integer from 1 to the number of players, {players} (got {order!r})"
        )
    return int(order)


def _checked_budget(budget: Any) -> int:
    """How many coalitions may be evaluated."""
    if budget is None:
        return SAMPLED_BUDGET
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise ValueError(f"budget must be a positive integer (got {budget!r})")
    return int(budget)


def _require_enough(budget: int, order: int, players: int) -> None:
    """Raise if half of the budget has fewer coalitions than there are interactions."""

    def unknowns(order: int) -> int:
        return sum(comb(players, size) for size in range(order + 1))

    if budget >= 2 * unknowns(order):
        return
    enough = min(2 * unknowns(order), 2**players if players <= _MOST_EXACT else 2**63)
    fitting = [k for k in range(1, order) if 2 * unknowns(k) <= budget]
    lower = f", or order={fitting[-1]}" + " or less" * (fitting[-1] > 1) if fitting else ""
    raise ValueError(
        f"order={order} of {players} players has {unknowns(order):,} interactions, which a budget "
        f"of {budget:,} coalitions in two halves cannot tell apart: pass budget={enough} or more"
        f"{lower}"
    )


def _computed(
    game: GNNGame, index: str, order: int, budget: int | None, seed: int | None
) -> _Computed:
    """Interactions of all coalitions without a budget, or estimates from halves of the budget."""
    wrapped = as_game(game)
    exactly = (0.0,) * order
    if budget is None and (index != "FSII" or game.n <= _MOST_SQUARE):
        computer = _shapiq().ExactComputer(game=wrapped, n_players=game.n)
        return _Computed(computer(index=index, order=order), exactly)
    kind = getattr(_shapiq("shapiq.approximator"), INDICES[index])
    options: dict[str, Any] = {} if index == "FSII" else {"index": index}

    def approximated(budget: int, seed: int | None) -> Any:
        approximator = kind(n=game.n, max_order=order, random_state=seed, **options)
        return approximator.approximate(budget=budget, game=wrapped)

    if budget is None:
        # the regression over all coalitions is the definition
        return _Computed(approximated(2**game.n, seed), exactly)
    seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
    one, other = (approximated(budget // 2, at) for at in seeds)
    mean = (one + other) * 0.5
    errors = []
    for size in range(1, order + 1):
        sets = [players for players in mean.interaction_lookup if len(players) == size]
        apart = np.array([one[players] - other[players] for players in sets])
        errors.append(float(np.sqrt(np.mean(apart**2)) / 2))
    return _Computed(mean, tuple(errors))


def _warn_if_noisy(interactions: Interactions) -> None:
    """Warn if the standard error of the largest sets is large for their values."""
    largest = max(map(abs, interactions.of_order(interactions.order).values()), default=0.0)
    error = interactions.std_errors[-1]
    if error > _NOISY * largest:
        warnings.warn(
            f"{interactions.index}: the standard error of interactions of {interactions.order} "
            f"nodes is {error:.2g}, and the largest of them {largest:.2g}: which ones are largest "
            f"is uncertain. Pass a larger budget (got {interactions.evaluations:,} evaluations); "
            "four times as many halve the error",
            PrecisionWarning,
            stacklevel=4,
        )
