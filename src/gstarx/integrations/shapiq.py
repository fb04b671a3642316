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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.drawing import Picture, draw_interactions, signed
from gstarx.gnn import GNNGame, PayoffLike, RemovalLike, ShareLike, restored
from gstarx.graphs import Coalitions
from gstarx.registry import SAMPLED_BUDGET

__all__ = ["INDICES", "Interactions", "as_game", "explain_interactions", "from_game"]

#: Interaction indices, and the approximator of shapiq where coalitions are too many.
INDICES = {"k-SII": "KernelSHAPIQ", "STII": "SHAPIQ", "FSII": "RegressionFSII", "BII": "SHAPIQ"}
#: The oldest shapiq that has what is needed here.
_OLDEST = (1, 3)
#: Exact computation lists all coalitions, in memory.
_MOST_EXACT = 20


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
        raise ValueError("a game of shapiq has one target: make the GNNGame with target=0 or alike")
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
    """

    values: Mapping[tuple[int, ...], float]
    index: str
    order: int
    exact: bool
    evaluations: int
    seconds: float
    target: int
    data: Data = field(repr=False)
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
        how = "exact" if self.exact else "estimated"
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


def explain_interactions(
    model: Any,
    data: Data,
    *,
    order: int = 2,
    index: str = "k-SII",
    budget: int | None = None,
    target: int | None = None,
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    node: int | Tensor | None = None,
    keywords: Sequence[str] | None = None,
    payoff: PayoffLike = "auto",
    baseline: float | ArrayLike | Tensor | None = None,
    removal: RemovalLike = "remove",
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    share: ShareLike = "auto",
    seed: int | None = None,
) -> Interactions:
    """Which nodes of a graph act together on a prediction.

    Parameters
    ----------
    model, data, target, mode, task_level, return_type, keywords
        As for :func:`gstarx.explain`.
    order
        Up to how many nodes interact: 2 for pairs, 3 for triples as well.
    index
        ``"k-SII"`` (Shapley values spread over sets; the values sum to the worth of the graph),
        ``"STII"`` (Shapley-Taylor), ``"FSII"`` (the best approximation of the game by sums over
        sets), or ``"BII"`` (Banzhaf).
    budget
        How many coalitions may be evaluated, 20,000 by default. If all coalitions fit, values are
        exact (shapiq's ``ExactComputer``), otherwise estimated by an approximator of shapiq.
    node
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    payoff, baseline, removal, num_hops, batch_nodes, share
        The game, as in :class:`gstarx.GNNGame`.
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
    """
    if index not in INDICES:
        raise ValueError(f"index must be one of {', '.join(map(repr, INDICES))} (got {index!r})")
    _shapiq()
    start = time.process_time()
    with restored(model):
        game = GNNGame(
            model,
            data,
            target=target,
            mode=mode,
            task_level=task_level,
            return_type=return_type,
            payoff=payoff,
            baseline=baseline,
            removal=removal,
            index=node,
            num_hops=num_hops,
            batch_nodes=batch_nodes,
            keywords=keywords,
            share=share,
        )
        allowed = _checked_budget(budget, order, game.n)
        exact = game.n <= _MOST_EXACT and 2**game.n <= allowed
        interactions = _computed(game, index, order, None if exact else allowed, seed)
    nodes = game.nodes.tolist()
    values = {
        tuple(sorted(nodes[player] for player in players)): float(interactions.values[at])
        for players, at in interactions.interaction_lookup.items()
        if players
    }
    return Interactions(
        values,
        index,
        order,
        exact,
        game.evaluations,
        time.process_time() - start,
        int(game.payoff.columns[0]),
        data,
        interactions,
    )


def _checked_budget(budget: Any, order: Any, players: int) -> int:
    """How many coalitions may be evaluated, enough for the order."""
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= players:
        raise ValueError(f"order must be an integer in 1..{players}, the players (got {order!r})")
    allowed = SAMPLED_BUDGET if budget is None else budget
    if isinstance(allowed, bool) or not isinstance(allowed, int) or allowed < 1:
        raise ValueError(f"budget must be a positive integer (got {budget!r})")
    unknowns = sum(comb(players, size) for size in range(order + 1))
    if allowed < min(unknowns, 2**players):
        fitting = max(
            (k for k in range(players) if sum(comb(players, s) for s in range(k + 1)) <= allowed),
            default=0,
        )
        lower = f", or order={fitting} or less" if fitting else ""
        raise ValueError(
            f"order={order} of {players} players has {unknowns:,} interactions, more than the "
            f"budget of {allowed:,} coalitions can tell apart: pass budget={unknowns} or more"
            f"{lower}"
        )
    return allowed


def _computed(game: GNNGame, index: str, order: int, budget: int | None, seed: int | None) -> Any:
    """Values of interactions: of all coalitions without a budget, or approximated."""
    wrapped = as_game(game)
    if budget is None:
        computer = _shapiq().ExactComputer(game=wrapped, n_players=game.n)
        return computer(index=index, order=order)
    kind = getattr(_shapiq("shapiq.approximator"), INDICES[index])
    options: dict[str, Any] = {} if index == "FSII" else {"index": index}
    approximator = kind(n=game.n, max_order=order, random_state=seed, **options)
    return approximator.approximate(budget=budget, game=wrapped)
