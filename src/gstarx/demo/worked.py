"""The paper's worked examples, computed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np

from gstarx.games import glove_game, random_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import coalition_weights, hn_value, myerson_value, shapley_value

#: What the paper gives for node 1 of the path 1 - 2 - 3 (Figure 1a; for Myerson appendix F.2),
#: in the order of coalitions {}, {2}, {3}, {2, 3}.
PAPER = {
    "Shapley": ("1/3", "1/6", "1/6", "1/3"),
    "Myerson": ("1/2", "1/6", "0", "1/3"),
    "HN": ("1/2", "1/4", "0", "1/4"),
}


def marginal_weights(
    graph: CommunicationGraph, node: int, *, value: Literal["hn", "myerson"]
) -> dict[tuple[int, ...], float]:
    """How much the marginal contribution of ``node`` to every coalition counts in its value.

    The weight of ``v(S ∪ node) - v(S)`` is the weight of ``v(S ∪ node)``, because no other marginal
    contribution of the node mentions that worth. Where ``S ∪ node`` is not connected its worth is
    that of its parts, and the weight is zero: there is nothing of its own to count.

    Only where null players get nothing is a value made of marginal contributions alone: always for
    Myerson's, for HN on trees and complete graphs but not on a square, say.

    Parameters
    ----------
    graph
        Who can talk to whom.
    node
        The node whose value is taken apart.
    value
        Which value, as ``gstarx.values.coalition_weights`` names it.

    Examples
    --------
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> marginal_weights(path, 0, value="hn")
    {(): 0.5, (1,): 0.25, (2,): 0.0, (1, 2): 0.25}
    """
    weight_of = {
        tuple(np.flatnonzero(coalition).tolist()): float(weight)
        for coalition, weight in zip(
            graph.connected_coalitions(), coalition_weights(graph, value=value)[node], strict=True
        )
    }
    others = [other for other in range(graph.num_nodes) if other != node]
    return {
        S: weight_of.get(tuple(sorted((*S, node))), 0.0)
        for size in range(len(others) + 1)
        for S in combinations(others, size)
    }


def as_fraction(number: float) -> str:
    """The nearest simple fraction, or decimals where there is none.

    >>> as_fraction(0.1 + 0.15), as_fraction(2 / 3), as_fraction(0.12345)
    ('1/4', '2/3', '0.1235')
    """
    near = Fraction(float(number)).limit_denominator(360)
    return str(near) if abs(near - number) < 1e-9 else f"{number:.4f}"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  " + "   ".join([first, *others]))
    print()


def show_path() -> bool:
    """The paper's path of three nodes; returns whether every weight is the one it prints."""
    path = CommunicationGraph(3, [(0, 1), (1, 2)])
    ours = {
        # on a complete graph nobody is kept from talking, and Myerson's value is Shapley's
        "Shapley": marginal_weights(CommunicationGraph.complete(3), 0, value="myerson"),
        "Myerson": marginal_weights(path, 0, value="myerson"),
        "HN": marginal_weights(path, 0, value="hn"),
    }
    print("The path 1 - 2 - 3: what the marginal contributions of node 1 weigh in its value\n")
    rows = []
    for at, S in enumerate(ours["HN"]):
        row = ["{" + ", ".join(str(node + 1) for node in S) + "}"]
        for value, weights in ours.items():
            row += [as_fraction(weights[S]), PAPER[value][at]]
        rows.append(row)
    head = [cell for value in ours for cell in (value, "paper")]
    print_table(["joins S =", *head], rows)
    agree = all(
        abs(weight - Fraction(paper)) < 1e-9
        for value, weights in ours.items()
        for weight, paper in zip(weights.values(), PAPER[value], strict=True)
    )
    print(f"  {'All as' if agree else 'NOT AS'} printed in the paper. Nodes 1 and 3 cannot talk")
    print("  without node 2, and only Shapley's value does not know it.\n")
    return agree


def show_gloves() -> None:
    """A glove game on a star: the same game, shared by three values."""
    n, left = 4, [1, 2]
    star = CommunicationGraph(n, [(0, 1), (0, 2), (0, 3)])
    game = glove_game(n, left)
    allocations = (shapley_value(game, n), myerson_value(game, star), hn_value(game, star))
    print(
        "Gloves on a star: 1 and 2 own a left glove each, 0 and 3 a right one; a pair is worth 1,"
    )
    print("and all talk through 0\n")
    rows = [
        [
            f"{node} ({'left' if node in left else 'right'}{', the middle' if node == 0 else ''})",
            *(as_fraction(allocation.values[node]) for allocation in allocations),
        ]
        for node in range(n)
    ]
    rows.append(["all", *(as_fraction(allocation.values.sum()) for allocation in allocations)])
    print_table(["player", "Shapley", "Myerson", "HN"], rows)


def show_long_path() -> None:
    """Exact values where the coalitions cannot be listed but the connected ones can."""
    n = 200
    path = CommunicationGraph(n, [(i, i + 1) for i in range(n - 1)])
    allocation = hn_value(random_game(n, seed=0), path)
    print(f"A path of {n} nodes has 2^{n} coalitions, of which {allocation.evaluations:,} are")
    print("connected. Its HN value is exact: on random worths the values miss the worth of the")
    print(f"whole by {allocation.residual:.0e}.\n")
