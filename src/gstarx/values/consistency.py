"""Surplus, associated game and limit game: the definitions behind the HN value, as functions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gstarx.games import Game, Worths, additive_game, evaluate, restricted_game
from gstarx.graphs import Coalitions, CommunicationGraph, as_nodes
from gstarx.values.hn.closed_form import hn_value


def surplus(v: Game, j: int, S: Iterable[int], *, n: int | None = None) -> float | Worths:
    """What coalition ``S`` and its neighbor ``j`` earn together beyond what each earns alone.

    ``p(j, S) = v(S + j) - v(S) - v({j})`` (Definition 4.1 of the paper). ``n`` is the number of
    players of the game; by default the attribute ``n`` of the game, or else as many as ``S`` and
    ``j`` name. Returns a number, or (q,) for q games at once.

    >>> from gstarx.games import TableGame
    >>> surplus(TableGame(2, [0, 1, 2, 5]), 1, [0])
    2.0
    """
    players = list(S)
    if n is None:
        n = int(getattr(v, "n", max([*players, j]) + 1))
    members = as_nodes(players, n, name="S")
    (joining,) = as_nodes([j], n, name="j")
    if joining in members:
        raise ValueError(f"j must not be in S (got j={j} and S={sorted(players)})")
    coalitions = np.zeros((3, n), dtype=np.bool_)
    coalitions[0, [*members, joining]] = True
    # a game is never evaluated on the empty coalition, whose worth is set below
    coalitions[1, members if len(members) else joining] = True
    coalitions[2, joining] = True
    together, others, alone = evaluate(v, coalitions)
    if not len(members):
        others = np.zeros_like(others)
    result = together - others - alone
    return float(result) if np.ndim(result) == 0 else result


def associated_game(v: Game, graph: CommunicationGraph, *, tau: float) -> Game:
    """The HN associated game ``v*_tau`` (Definition 4.2 of the paper).

    A connected coalition adds to its own worth the share ``tau`` of the surplus with each of its
    neighbors; a disconnected one is the sum of its components.

    >>> from gstarx.games import TableGame
    >>> pair = CommunicationGraph(2, [(0, 1)])
    >>> star = associated_game(TableGame(2, [0, 1, 2, 5]), pair, tau=0.1)
    >>> star(np.array([[True, False], [True, True]]))
    array([1.2, 5. ])
    """
    if not 0 <= tau <= 1:
        raise ValueError(f"tau must lie in [0, 1] (got {tau!r})")

    def of_connected(coalitions: Coalitions) -> Worths:
        border = graph.boundary(coalitions)
        row, joining = np.nonzero(border)
        grown = coalitions[row]
        grown[np.arange(len(row)), joining] = True
        alone = np.zeros_like(grown)
        alone[np.arange(len(row)), joining] = True
        k, links = len(coalitions), len(row)
        worths = evaluate(v, np.concatenate([coalitions, grown, alone]))
        base, together, single = worths[:k], worths[k : k + links], worths[k + links :]
        result = base.copy()
        np.add.at(result, row, tau * (together - base[row] - single))
        return result

    return restricted_game(of_connected, graph)


def limit_game(v: Game, graph: CommunicationGraph, *, max_coalitions: int = 2_000_000) -> Game:
    """The limit of repeated associated games (Definition E.2): the additive game of the HN value.

    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> limit_game(unanimity_game(3, [0, 1, 2]), path)(np.array([[True, True, False]]))
    array([0.75])
    """
    return additive_game(hn_value(v, graph, max_coalitions=max_coalitions).values)
