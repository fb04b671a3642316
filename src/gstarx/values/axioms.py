"""Axioms, measured: by how much a value violates a property on a given game and graph.

Every function takes a ``value``, a callable from a game and a graph to an
:class:`~gstarx.values.Allocation` such as ``hn_value`` or ``myerson_value``
(``lambda v, graph: shapley_value(v, graph.num_nodes)`` for Shapley's), and returns the largest
violation as a number: zero, up to rounding, where the property holds.

| property | HN | Myerson | Shapley, which ignores the graph |
|---|---|---|---|
| component efficiency | yes | yes | on connected graphs only |
| symmetry | yes | yes | yes |
| additivity | yes | yes | yes |
| inessential game | yes | yes | yes |
| continuity | yes | yes | yes |
| associated consistency | yes | no | no |
| fairness | no | yes | yes, because no edge matters to it |
| null player of the restricted game | no (yes on trees) | yes | no |

*No* means: not on every graph. On complete graphs the three values are one and the same, and have
associated consistency and the null-player property together.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from gstarx.games import Game, Worths, additive_game, evaluate, random_game, restricted_game
from gstarx.graphs import Coalitions, CommunicationGraph, unpack
from gstarx.values.allocation import Allocation
from gstarx.values.hn.iteration import associated_game

#: A value: from a game and a graph to what every player gets.
Value = Callable[[Game, CommunicationGraph], Allocation]
#: Properties that look at all 2^n coalitions of a game are checked up to this many players.
MAX_PLAYERS = 16
_SAME = 1e-12


def component_efficiency(value: Value, v: Game, graph: CommunicationGraph) -> float:
    """Largest gap between a component's worth and what its members get (Property F.3).

    HN and Myerson have it; Shapley on connected graphs only, where it is plain efficiency.

    >>> from gstarx.games import glove_game
    >>> from gstarx.values import hn_value
    >>> component_efficiency(hn_value, glove_game(3, [0]), CommunicationGraph(3, [(0, 1)])) < 1e-12
    True
    """
    values = value(v, graph).values
    members = graph.component_coalitions
    return _largest(members.astype(np.float64) @ values - evaluate(v, members))


def symmetry(value: Value, v: Game, graph: CommunicationGraph) -> float:
    """Largest difference between players that can be swapped without changing game or graph.

    HN, Myerson and Shapley have it. (Shapley's own axiom, Property D.2, asks for equal values
    already when the game does not change, whatever the graph; HN and Myerson do not have that one.)
    """
    _check_players(graph)
    values = value(v, graph).values
    n = graph.num_nodes
    coalitions = unpack(np.arange(1, 2**n, dtype=np.uint64)[:, None], n)
    worths = evaluate(v, coalitions)
    worst = 0.0
    for i, j in combinations(range(graph.num_nodes), 2):
        swap = np.arange(graph.num_nodes)
        swap[[i, j]] = j, i
        same_graph = CommunicationGraph(graph.num_nodes, swap[graph.edges]) == graph
        if same_graph and _largest(evaluate(v, coalitions[:, swap]) - worths) < _SAME:
            worst = max(worst, _largest(values[i] - values[j]))
    return worst


def additivity(value: Value, v: Game, w: Game, graph: CommunicationGraph) -> float:
    """Largest difference between the value of ``v + w`` and the sum of the values (Property D.3).

    HN, Myerson and Shapley have it.
    """

    def both(coalitions: Coalitions) -> Worths:
        return evaluate(v, coalitions) + evaluate(w, coalitions)

    apart = value(v, graph).values + value(w, graph).values
    return _largest(value(both, graph).values - apart)


def inessential_game(value: Value, worths: ArrayLike, graph: CommunicationGraph) -> float:
    """Largest difference between a player's own worth and its value where cooperation adds nothing.

    HN, Myerson and Shapley have it. With associated consistency and continuity it determines HN
    (Theorem E.3).
    """
    player_worths = np.asarray(worths, dtype=np.float64)
    return _largest(value(additive_game(player_worths), graph).values - player_worths)


def continuity(
    value: Value, v: Game, graph: CommunicationGraph, *, scale: float = 1e-6, seed: int = 0
) -> float:
    """How much the values change per unit of change in the worths, for one random small change.

    All three values are linear, so this stays bounded however small ``scale`` is: by the largest
    row sum of absolute coalition weights. A value that jumps would grow like ``1 / scale``.
    """
    noise = random_game(graph.num_nodes, seed=seed)

    def moved(coalitions: Coalitions) -> Worths:
        worths = evaluate(v, coalitions)
        shift = scale * evaluate(noise, coalitions)
        return worths + (shift if worths.ndim == 1 else shift[:, None])

    return _largest(value(moved, graph).values - value(v, graph).values) / scale


def associated_consistency(
    value: Value, v: Game, graph: CommunicationGraph, *, tau: float = 0.1
) -> float:
    """Largest difference between the values of ``v`` and of its associated game (Theorem E.3).

    HN has it, and is the only value that has it together with inessential game and continuity.
    Myerson and Shapley do not, except on complete graphs, where they equal HN.
    """
    star = associated_game(v, graph, tau=tau)
    return _largest(value(star, graph).values - value(v, graph).values)


def fairness(value: Value, v: Game, graph: CommunicationGraph) -> float:
    """Largest difference, over edges, in what its two ends lose when it is cut (Property F.4).

    Myerson has it, and is the only value that has it together with component efficiency (Theorem
    F.5). HN does not. Shapley has it trivially: no player loses anything.
    """
    uncut = value(v, graph).values
    worst = 0.0
    for edge, (i, j) in enumerate(graph.edges):
        cut = CommunicationGraph(graph.num_nodes, np.delete(graph.edges, edge, axis=0))
        loss = uncut - value(v, cut).values
        worst = max(worst, _largest(loss[i] - loss[j]))
    return worst


def null_player(value: Value, v: Game, graph: CommunicationGraph) -> float:
    """Largest value of a player that adds nothing to any coalition of the restricted game.

    Myerson has it. HN has it on trees and on complete graphs, and violates it on most others: on
    104 of the 141 connected graphs with 3 to 6 nodes there are games in which a null player gets a
    share (the other 37 are those whose biconnected parts are all complete). Shapley shares out
    ``v`` itself, in which such a player need not be null.
    """
    _check_players(graph)
    n = graph.num_nodes
    everything = unpack(np.arange(2**n, dtype=np.uint64)[:, None], n)
    worths = evaluate(restricted_game(v, graph), everything)
    values = value(v, graph).values
    worst = 0.0
    for i in range(n):
        without = np.flatnonzero(~everything[:, i])
        if _largest(worths[without + (1 << i)] - worths[without]) < _SAME:
            worst = max(worst, _largest(values[i]))
    return worst


def _largest(gaps: ArrayLike) -> float:
    return float(np.abs(gaps).max(initial=0.0))


def _check_players(graph: CommunicationGraph) -> None:
    if graph.num_nodes > MAX_PLAYERS:
        raise ValueError(
            f"this property looks at all coalitions and takes at most {MAX_PLAYERS} players "
            f"(got {graph.num_nodes})"
        )
