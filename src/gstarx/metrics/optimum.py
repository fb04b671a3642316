"""The best selections: sets of nodes that a search finds by optimizing the metric itself.

They are an upper reference, not an explanation. An explainer lies between a random selection and
these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

from gstarx.gnn import hetero_of
from gstarx.metrics.faithfulness import (
    Faithfulness,
    NodesLike,
    as_parts,
    harmonic_mean_of,
    losses,
)
from gstarx.metrics.probabilities import Judging, absolute_worths, as_target
from gstarx.metrics.selection import as_mask

_SETS_PER_CALL = 1 << 14


@dataclass(frozen=True)
class BestSelection:
    """The best set of nodes that was found.

    Attributes
    ----------
    nodes
        The nodes, ascending; of a ``HeteroData``, pairs of a type and a node.
    evaluation
        Its metrics.
    optimal
        Whether every set was tried.
    evaluations
        Distinct parts of the graph that went through the model.
    """

    nodes: NDArray[np.int64]
    evaluation: Faithfulness
    optimal: bool
    evaluations: int

    @property
    def status(self) -> str:
        """``"optimal"`` or ``"best found"``."""
        return "optimal" if self.optimal else "best found"


@dataclass(frozen=True)
class RefinedSelection:
    """A selection improved by a search that optimizes the metric; compare it with oracles only.

    Attributes
    ----------
    nodes
        The nodes after refinement, ascending.
    before, after
        The metrics of what it started from, and of the result.
    evaluations
        Distinct parts of the graph that went through the model.
    refined
        Always true.
    """

    nodes: NDArray[np.int64]
    before: Faithfulness
    after: Faithfulness
    evaluations: int
    refined: bool = True


def best_selection(
    judge: Judging,
    data: Data,
    size: int,
    *,
    exact_size: bool = False,
    exhaustive_up_to: int = 20_000,
    starts: int = 8,
    seed: int | np.random.Generator | None = None,
    target: int | None = None,
    index: int | None = None,
) -> BestSelection:
    """The set of at most ``size`` nodes with the highest harmonic fidelity.

    Every set is tried if there are at most ``exhaustive_up_to`` of them. Otherwise a local search
    from several starts takes the best swap, addition or removal of a node until none helps.

    Parameters
    ----------
    data, target, index
        As for one selection.
    size
        The largest number of nodes.
    exact_size
        Select exactly that many nodes.
    exhaustive_up_to
        The largest number of sets for an exhaustive search.
    starts
        Starts of the search: the best single nodes together, and random sets.
    seed
        Of the random starts; the same seed gives the same set.

    Examples
    --------
    >>> import torch
    >>> from gstarx.metrics import Judge
    >>> from gstarx.models import GCN
    >>> ring = Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
    >>> Judge(GCN(5, 8, 2)).best(ring, 2).status
    'optimal'
    """
    one = _OneGraph(judge, data, target, index)
    n = one.game.n
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise TypeError(f"size must be an integer (got {size!r})")
    if not 0 <= size <= n:
        raise ValueError(f"size must lie in 0..{n}, the number of nodes (got {size})")
    sizes = range(size, size + 1) if exact_size else range(size + 1)
    if sum(comb(n, k) for k in sizes) <= exhaustive_up_to:
        # ties go to the smallest set, then the first
        best = _best_of(one, _sets_of(n, sizes))[0]
        optimal = True
    else:
        generator = np.random.default_rng(seed)
        ends = [
            _climb(one, start, int(size), exact_size)
            for start in _starts(one, int(size), starts, generator)
        ]
        best = max(ends, key=lambda pair: pair[1])[0]
        optimal = False
    return BestSelection(one.ids(best), one.faithfulness(best), optimal, one.game.evaluations)


def best_selections(
    judge: Judging,
    data: Data,
    sizes: Iterable[int],
    *,
    exhaustive_up_to: int = 20_000,
    starts: int = 2,
    seed: int | np.random.Generator | None = None,
    target: int | None = None,
    index: int | None = None,
) -> Iterator[tuple[int, BestSelection]]:
    """The sets of limited size with the highest harmonic fidelity, for several sizes.

    Cheaper than calling :meth:`Judge.best` for each size: the search for a size also starts
    from the best smaller set, in addition to its own ``starts``, and never does worse than that.

    Parameters
    ----------
    data, exhaustive_up_to, starts, seed, target, index
        As for :meth:`Judge.best`.
    sizes
        The largest numbers of nodes; repeated sizes are searched once.

    Yields
    ------
    tuple
        A size and its :class:`BestSelection`, smallest size first, for callers that may have to
        stop before the last one; ``dict(...)`` holds all.
    """
    one = _OneGraph(judge, data, target, index)
    generator = np.random.default_rng(seed)
    best = np.zeros(one.game.n, dtype=np.bool_)
    score = float(one.scores(best[None])[0])
    done = 1
    for size in sorted(set(sizes)):
        count = sum(comb(one.game.n, k) for k in range(size + 1))
        if optimal := count <= exhaustive_up_to:
            ends = [_best_of(one, _sets_of(one.game.n, range(done, size + 1)))]
            done = size + 1
        else:
            begin = [best, *_starts(one, size, starts, generator)]
            ends = [_climb(one, start, size, exact_size=False) for start in begin]
        for end, reached in ends:
            if reached > score:
                best, score = end, reached
        evaluations = one.game.evaluations
        yield size, BestSelection(one.ids(best), one.faithfulness(best), optimal, evaluations)


def refine(
    judge: Judging,
    data: Data,
    nodes: NodesLike,
    *,
    budget: int = 2_000,
    target: int | None = None,
    index: int | None = None,
) -> RefinedSelection:
    """Improve a selection by swapping nodes, best swap first, within a budget of evaluations.

    The search optimizes the metric, and gets about as far when it starts from a random set: a
    refined figure shows what the metric allows, not how good the explainer is. Report it next to
    the unrefined one, and next to a refined random set with the same budget.

    Parameters
    ----------
    data, target, index
        As for one selection.
    nodes
        The selection to start from; its size does not change.
    budget
        The most distinct parts of the graph to evaluate.
    """
    if budget < 3:
        raise ValueError(
            f"budget must be at least 3: the graph, the nodes and the rest (got {budget!r})"
        )
    one = _OneGraph(judge, data, target, index, budget)
    if one.task.of_nodes:
        start = as_parts(data, [nodes])[0][one.game.nodes]
    else:
        start = as_mask(nodes, one.game.n)
    best, _ = _climb(one, start, int(start.sum()), exact_size=True)
    return RefinedSelection(
        one.ids(best),
        one.faithfulness(start),
        one.faithfulness(best),
        one.game.evaluations,
    )


class _OneGraph:
    """Harmonic fidelity of boolean sets of players, each part of the graph evaluated once."""

    def __init__(
        self,
        judge: Judging,
        data: Data,
        target: int | None,
        index: int | None,
        budget: int | None = None,
    ) -> None:
        self.task = task = judge.of(index)
        self.game = task.game(judge.model, data, as_target(target), lazy=False)
        #: Of a heterogeneous graph, whose nodes are named by their type and number.
        self.graph = hetero_of(self.game.data) if isinstance(data, HeteroData) else None
        everybody = np.ones((1, self.game.n), dtype=np.bool_)
        self.full_graph = float(absolute_worths(self.game, everybody)[0])
        (column,) = self.game.payoff.columns
        outputs = len(self.game.prediction)
        self.signed_range, self.nothing = task.signed_range(self.full_graph, column, outputs)
        self.budget = budget

    @property
    def remaining(self) -> int | None:
        """Sets that can still be evaluated, each with its complement; None if unlimited."""
        return None if self.budget is None else (self.budget - self.game.evaluations) // 2

    def values(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Probabilities, or outputs of a regression, of boolean sets (k, n)."""
        values = absolute_worths(self.game, sets)
        if self.game.players.some_always_present:
            return values
        return np.where(sets.any(axis=1), values, self.nothing)

    def scores(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Harmonic fidelity of boolean sets (k, n)."""
        scores = []
        for first in range(0, len(sets), _SETS_PER_CALL):
            part = sets[first : first + _SETS_PER_CALL]
            alone, without = np.split(self.values(np.concatenate([part, ~part])), 2)
            kept = part.mean(axis=1) if part.shape[1] else np.zeros(len(part))
            necessary = losses(self.full_graph - without, self.signed_range) * (1 - kept)
            sufficient = losses(self.full_graph - alone, self.signed_range) * kept
            scores.append(harmonic_mean_of(necessary, sufficient))
        return np.concatenate(scores) if scores else np.zeros(0)

    def faithfulness(self, selected: NDArray[np.bool_]) -> Faithfulness:
        """All metrics of one set."""
        alone, without = (float(value) for value in self.values(np.stack([selected, ~selected])))
        sparsity = 1 - float(selected.mean())
        return Faithfulness.of(self.full_graph, without, alone, sparsity, self.signed_range)

    def ids(self, selected: NDArray[np.bool_]) -> Any:
        """The graph's nodes that a set of players stands for, or their numbers."""
        ids = np.sort(self.game.players.ids[selected])
        return ids if self.graph is None else [self.graph.pair(node) for node in ids.tolist()]


def _best_of(one: _OneGraph, sets: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
    """The first of the best sets, and its harmonic fidelity."""
    if not len(sets):
        return np.zeros(one.game.n, dtype=np.bool_), -np.inf
    scores = one.scores(sets)
    at = int(np.argmax(scores))
    return sets[at], float(scores[at])


def _sets_of(n: int, sizes: range) -> NDArray[np.bool_]:
    """All sets of some sizes as boolean rows, small ones first."""
    rows = [np.array(list(combinations(range(n), k)), dtype=np.int64) for k in sizes]
    sets = np.zeros((sum(map(len, rows)), n), dtype=np.bool_)
    start = 0
    for members in rows:
        place = np.arange(start, start + len(members))
        if members.size:
            sets[place[:, None], members] = True
        start += len(members)
    return sets


def _starts(
    one: _OneGraph, size: int, count: int, generator: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """Where to begin: the best single nodes together, and random sets of the largest size."""
    n = one.game.n
    alone = one.scores(np.eye(n, dtype=np.bool_))
    best = np.zeros(n, dtype=np.bool_)
    best[np.argsort(-alone, kind="stable")[:size]] = True
    starts = [best]
    for _ in range(max(0, count - 1)):
        start = np.zeros(n, dtype=np.bool_)
        start[generator.permutation(n)[:size]] = True
        starts.append(start)
    return starts


def _climb(
    one: _OneGraph, start: NDArray[np.bool_], size: int, exact_size: bool
) -> tuple[NDArray[np.bool_], float]:
    """Steepest ascent by swaps, and by additions and removals if sizes may differ."""
    current = start.copy()
    score = float(one.scores(current[None])[0])
    while True:
        near = _neighbors(current, size, exact_size)
        if (remaining := one.remaining) is not None:
            near = near[: max(0, remaining)]
        if not len(near):
            return current, score
        scores = one.scores(near)
        best = int(np.argmax(scores))
        if not scores[best] > score + 1e-12:
            return current, score
        current, score = near[best], float(scores[best])


def _neighbors(current: NDArray[np.bool_], size: int, exact_size: bool) -> NDArray[np.bool_]:
    """The sets one swap away, and one addition or removal where sizes may differ."""
    inside, outside = np.flatnonzero(current), np.flatnonzero(~current)
    leave, enter = (pair.reshape(-1) for pair in np.meshgrid(inside, outside, indexing="ij"))
    swapped = np.repeat(current[None], len(leave), axis=0)
    swapped[np.arange(len(leave)), leave] = False
    swapped[np.arange(len(enter)), enter] = True
    if exact_size:
        return swapped
    changes = inside if len(inside) >= size else np.concatenate([inside, outside])
    flipped = np.repeat(current[None], len(changes), axis=0)
    flipped[np.arange(len(changes)), changes] ^= True
    return np.concatenate([swapped, flipped])
