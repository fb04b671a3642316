"""Games derived from games: restricted to a graph, superadditive, dual and self-dual."""

from __future__ import annotations

import numpy as np

from gstarx.games.protocol import Game, Worths, evaluate
from gstarx.games.table import TableGame
from gstarx.graphs import (
    Coalitions,
    CommunicationGraph,
    as_coalitions,
    as_size,
    compiled,
    distinct_rows,
    pack,
    unpack,
)

#: The cover costs 3^n; 14 players are five million steps.
MAX_COVER_PLAYERS = 14


def restricted_game(v: Game, graph: CommunicationGraph) -> Game:
    """Myerson's graph-restricted game ``v / G``: a coalition is worth the sum of its components.

    The "transformed game" of the paper (Definition F.2). ``v`` is evaluated on connected
    coalitions only, each distinct one once per call.

    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> both_ends = restricted_game(unanimity_game(3, [0, 2]), path)
    >>> both_ends(np.array([[1, 0, 1], [1, 1, 1]], dtype=bool))
    array([0., 1.])
    """

    def worth(coalitions: Coalitions) -> Worths:
        coalitions = as_coalitions(coalitions, graph.num_nodes, name="coalitions")
        labels = graph.component_labels(coalitions)
        row, root = np.nonzero(labels == np.arange(graph.num_nodes))
        parts = labels[row] == root[:, None]
        distinct, where = np.unique(parts, axis=0, return_inverse=True)
        worths = evaluate(v, distinct)[where.ravel()]
        total = np.zeros((len(coalitions), *worths.shape[1:]))
        np.add.at(total, row, worths)
        return total

    return worth


def superadditive_cover(v: Game, n: int) -> TableGame:
    """The smallest superadditive game that is nowhere below ``v``.

    A coalition is worth the most that it can get by splitting into disjoint parts, each part
    earning its worth in ``v``. Dynamic programming over pairs of a coalition and one part of it:
    3^n steps, refused beyond 14 players.

    >>> game = TableGame(2, [0, 3, 4, 5])
    >>> superadditive_cover(game, 2).worths
    array([0., 3., 4., 7.])
    """
    if as_size(n, name="n") > MAX_COVER_PLAYERS:
        raise ValueError(
            f"a superadditive cover costs 3^n steps and takes at most {MAX_COVER_PLAYERS} players "
            f"(got n={n})"
        )
    masks = np.arange(2**n, dtype=np.uint64)[:, None]
    worths = evaluate(v, unpack(masks[1:], n)) if n else np.zeros(0)
    table = np.concatenate([np.zeros((1, *worths.shape[1:])), worths])
    _cover(table.reshape(2**n, -1))
    return TableGame(n, table)


def dual(v: Game) -> Game:
    """The dual game: a coalition is worth what the others cannot earn without it.

    ``v*(S) = v(N) - v(N - S)``. The dual of the dual is the game itself, and the whole graph is
    worth the same in both.

    >>> from gstarx.games import unanimity_game
    >>> either = dual(unanimity_game(2, [0, 1]))
    >>> either(np.array([[1, 0], [0, 1], [1, 1]], dtype=bool))
    array([1., 1., 1.])
    """

    def worth(coalitions: Coalitions) -> Worths:
        members = _rows(coalitions)
        everybody = np.ones((1, members.shape[1]), dtype=np.bool_)
        grand, others = _worths(v, everybody, ~members)
        return grand - others

    return worth


def self_dual(v: Game) -> Game:
    """The self-dual part of a game, the mean of the game and its dual.

    ``w(S) = (v(S) + v(N) - v(N - S)) / 2``: what a coalition earns and what is lost without it,
    half each. Each distinct coalition is evaluated once per call.

    >>> from gstarx.games import unanimity_game
    >>> half = self_dual(unanimity_game(2, [0, 1]))
    >>> half(np.array([[1, 0], [0, 1], [1, 1]], dtype=bool))
    array([0.5, 0.5, 1. ])
    """

    def worth(coalitions: Coalitions) -> Worths:
        members = _rows(coalitions)
        everybody = np.ones((1, members.shape[1]), dtype=np.bool_)
        grand, inside, others = _worths(v, everybody, members, ~members)
        both: Worths = (inside + grand - others) / 2
        return both

    return worth


def _rows(coalitions: Coalitions) -> Coalitions:
    """Boolean coalitions (k, n) of however many players they have."""
    return as_coalitions(coalitions, np.shape(coalitions)[-1], name="coalitions")


def _worths(v: Game, *lists: Coalitions) -> list[Worths]:
    """Worths of lists of coalitions, each distinct one evaluated once; the empty one is worth 0."""
    together = np.concatenate(lists)
    nonempty = np.flatnonzero(together.any(axis=1))
    first, where = distinct_rows(pack(together[nonempty]))
    # where nobody is asked for, the game still says how many numbers a worth has
    asked = together[nonempty[first]] if len(first) else together[:1]
    distinct = evaluate(v, asked)
    worths = np.zeros((len(together), *distinct.shape[1:]))
    worths[nonempty] = distinct[where]
    return np.split(worths, np.cumsum([len(part) for part in lists[:-1]]))


@compiled
def _cover(table):  # type: ignore[no-untyped-def]
    """Raise ``table[S]`` to the best split of ``S`` in two, smaller bitmasks first."""
    for coalition in range(1, len(table)):
        lowest = coalition & -coalition
        part = (coalition - 1) & coalition
        while part > 0:
            # each split occurs twice; keep the half that holds the lowest player
            if part & lowest:
                for g in range(table.shape[1]):
                    split = table[part, g] + table[coalition ^ part, g]
                    if split > table[coalition, g]:
                        table[coalition, g] = split
            part = (part - 1) & coalition
