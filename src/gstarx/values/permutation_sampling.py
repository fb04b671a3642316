"""Estimates of the Myerson and Shapley values from few evaluated coalitions.

In a random order of arrival every player completes one component, the one it is in on arrival. A
connected coalition ``T`` is completed with probability ``p = t! b! / (t + b)!``, and the Myerson
value gives ``p v(T) / t`` to each member and takes ``p v(T) / b`` from each boundary node. So one
order is one unbiased estimate from ``n`` coalitions. Each order is paired with its reverse, and a
surrogate fitted to the other pairs takes out most of what is left of the variance.

The Shapley value is the Myerson value of the complete graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.games.protocol import Game, evaluate_masks
from gstarx.graphs.bitmasks import Masks, unpack
from gstarx.graphs.communication import CommunicationGraph
from gstarx.graphs.compiled import WORD, compiled, trailing_zeros
from gstarx.graphs.index import distinct_rows
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values.allocation import Allocation
from gstarx.values.budget import check_budget, listing_limit
from gstarx.values.coalition_sampling import certain_rows, estimate_sum, small_sample_factor
from gstarx.values.myerson import myerson_value, myerson_weights
from gstarx.values.shapley import shapley_value
from gstarx.values.surrogate import Features, Surrogate
from gstarx.values.worths import in_columns

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_FOLDS = 5


def myerson_value_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Estimate the Myerson value from at most ``budget`` distinct evaluated coalitions.

    Where the connected coalitions can be listed, those to evaluate are drawn in proportion to their
    weights; elsewhere random orders of arrival decide. Either way a surrogate carries the bulk and
    the evaluated coalitions correct it. Efficient on every component.

    Parameters
    ----------
    v
        The game.
    graph
        The communication structure.
    budget
        The most distinct coalitions to evaluate, at least the number of nodes. A budget that covers
        all connected coalitions gives the exact value.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        With standard errors; they are ``nan`` when the budget allowed a single order of arrival, or
        hardly more than single nodes and whole components.

    Examples
    --------
    >>> from gstarx.games import random_game
    >>> ring = CommunicationGraph(30, [(i, (i + 1) % 30) for i in range(30)])
    >>> myerson_value_sampled(random_game(30, seed=0), ring, budget=400, seed=0).evaluations
    400
    """
    budget = check_budget(budget, graph.num_nodes)
    if graph.count_connected_coalitions(budget) <= budget:
        return myerson_value(v, graph, max_coalitions=budget)
    return _sampled(v, graph, budget, np.random.default_rng(seed))


def shapley_value_sampled(
    v: Game, n: int, *, budget: int, seed: int | np.random.Generator | None = None
) -> Allocation:
    """Estimate the Shapley value of ``n`` players from at most ``budget`` distinct coalitions.

    The estimator of :func:`myerson_value_sampled` on the complete graph.

    >>> from gstarx.games import airport_game
    >>> costs = [1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8]
    >>> estimate = shapley_value_sampled(airport_game(costs), 12, budget=800, seed=0)
    >>> bool(abs(estimate.values.sum() - 8) < 1e-9)
    True
    """
    budget = check_budget(budget, n)
    if 2**n - 1 <= budget:
        return shapley_value(v, n, max_coalitions=budget)
    return _sampled(v, CommunicationGraph.complete(n), budget, np.random.default_rng(seed))


def _sampled(
    v: Game, graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> Allocation:
    limit = listing_limit(budget, graph.num_nodes)
    if graph.count_connected_coalitions(limit) <= limit:
        return _sampled_from_list(v, graph, budget, generator)
    return _sampled_from_orders(v, graph, budget, generator)


def _sampled_from_list(
    v: Game, graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> Allocation:
    lattice = CoalitionLattice.of(graph)
    tops = lattice.tops
    certain = certain_rows(lattice.masks, tops, graph.num_nodes, budget)
    found = estimate_sum(
        v,
        lattice.masks,
        myerson_weights(lattice),
        graph,
        budget=budget,
        certain=certain,
        generator=generator,
    )
    shape = (graph.num_nodes, *found.certain_worths.shape[1:])
    values = found.values.reshape(shape)
    whole = lattice.coalitions(tops).astype(np.float64) @ values
    gap = np.abs(whole - found.certain_worths[np.searchsorted(certain, tops)]).max(initial=0.0)
    std_error = np.sqrt(found.variance).reshape(shape)
    return Allocation(values, std_error, False, found.evaluations, float(gap))


def _sampled_from_orders(
    v: Game, graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> Allocation:
    n = graph.num_nodes
    completed, rows_per_unit = _orders_within(graph, budget, generator)
    first, where = distinct_rows(completed)
    masks = completed[first]
    asked = evaluate_masks(v, masks, n)
    worths = in_columns(asked)
    members = unpack(masks, n).astype(np.float64)
    border = graph.boundary(members > 0).astype(np.float64)
    # what a unit of worth of each coalition gives to every player
    shares = members / members.sum(axis=1, keepdims=True)
    shares -= border / np.maximum(border.sum(axis=1, keepdims=True), 1.0)
    per_unit = _cross_fitted(graph, masks, worths, shares, where.reshape(-1, rows_per_unit))
    values = per_unit.mean(axis=0)
    spread = per_unit.std(axis=0, ddof=min(1, len(per_unit) - 1))
    std_error = spread / np.sqrt(len(per_unit)) * small_sample_factor(len(per_unit))
    whole = np.flatnonzero(border.sum(axis=1) == 0)
    gap = np.abs(members[whole] @ values - worths[whole]).max(initial=0.0)
    shape = (n, *asked.shape[1:])
    return Allocation(
        values.reshape(shape), std_error.reshape(shape), False, len(masks), float(gap)
    )


def _cross_fitted(
    graph: CommunicationGraph,
    masks: Masks,
    worths: NDArray[np.float64],
    shares: NDArray[np.float64],
    units: NDArray[np.int64],
) -> NDArray[np.float64]:
    """One unbiased estimate (n, q) of the values per unit, with surrogates that never saw it.

    ``units`` holds the rows of the coalitions that each unit completed.
    """
    n = graph.num_nodes
    estimates = np.empty((len(units), n, worths.shape[1]))
    folds = np.arange(len(units)) % min(_FOLDS, len(units))
    for fold in range(folds.max() + 1):
        # a single unit has no others to learn from
        others = units[folds != fold] if len(units) > 1 else units
        seen = np.bincount(others.ravel(), minlength=len(masks))
        base = np.zeros((n, worths.shape[1]))
        residual = worths
        rows = np.flatnonzero(seen)
        if len(rows):
            features = Features.choose(graph, len(rows), shares=False)
            importance = seen[rows] * (shares[rows] ** 2).sum(axis=1)
            surrogate = Surrogate.fit(features, masks[rows], worths[rows], importance)
            base = surrogate.shared_equally()
            residual = worths - surrogate.predict(masks)
        for unit in np.flatnonzero(folds == fold):
            rows = units[unit]
            estimates[unit] = base + shares[rows].T @ residual[rows] / (len(rows) // n)
    return estimates


def _orders_within(
    graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> tuple[Masks, int]:
    """Components completed in as many random orders as have at most ``budget`` distinct ones.

    Returns packed components, ``n`` for each order, and how many of them make one independent unit:
    those of an order and its reverse, unless the budget does not even allow four such pairs.
    """
    n = graph.num_nodes
    per_unit = 2 if budget >= 8 * n else 1
    units = 1 + budget // (n * per_unit)
    while True:
        orders = generator.permuted(np.tile(np.arange(n), (units, 1)), axis=1)
        if per_unit == 2:
            orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n)
        completed = np.empty((len(orders) * n, graph.adjacency.shape[1]), dtype=np.uint64)
        _complete(graph.adjacency, np.ascontiguousarray(orders), completed)
        first, _ = distinct_rows(completed)
        fits = int(
            np.searchsorted(first, np.arange(1, units + 1) * n * per_unit).searchsorted(
                budget, side="right"
            )
        )
        # many orders share coalitions, so more of them may fit; once some do not, all room is used
        if fits < units or units * n > 64 * budget:
            return completed[: fits * n * per_unit], n * per_unit
        units *= 2


@compiled
def _complete(adjacency, orders, completed):  # type: ignore[no-untyped-def]
    """Write the component that every arrival completes, order by order."""
    n, words = adjacency.shape
    component = np.empty((n, words), np.uint64)
    owner = np.empty(n, np.int64)
    for order in range(len(orders)):
        for node in range(n):
            owner[node] = -1
        for place in range(n):
            node = orders[order, place]
            mask = completed[order * n + place]
            for w in range(words):
                mask[w] = _ZERO
            mask[node // WORD] |= _ONE << np.uint64(node % WORD)
            for word in range(words):
                bits = adjacency[node, word]
                while bits != _ZERO:
                    near = word * WORD + np.int64(trailing_zeros(bits))
                    bits &= bits - _ONE
                    if owner[near] >= 0:
                        for w in range(words):
                            mask[w] |= component[owner[near], w]
            for word in range(words):
                component[node, word] = mask[word]
                bits = mask[word]
                while bits != _ZERO:
                    owner[word * WORD + np.int64(trailing_zeros(bits))] = node
                    bits &= bits - _ONE
