"""Sampling estimates of the Myerson value.

If connected coalitions can be listed, they are drawn in proportion to their weights. Otherwise
players arrive in random orders. On arrival a player merges the components of its neighbors into
one, and the worth that this adds is an unbiased estimate of the player's value: ``n`` coalitions
give one estimate for every player. Interactions of two players cancel between an order and its
reverse, and a surrogate fitted to other orders removes some of the remaining variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, evaluate_masks
from gstarx.graphs import (
    WORD,
    CoalitionLattice,
    CommunicationGraph,
    Masks,
    compiled,
    distinct_rows,
    find_rows,
    pack,
    trailing_zeros,
)
from gstarx.values.allocation import Allocation, warn_if_noisy, warn_if_unknown
from gstarx.values.coalition_sampling import certain_rows, estimate_sum, student_factor
from gstarx.values.myerson import myerson_value, myerson_weights
from gstarx.values.surrogate import Features, Surrogate
from gstarx.values.worths import check_budget, in_columns, listing_limit

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_FOLDS = 5
#: Extra units by which a player's variance is shrunk toward that of all players: the fewest, if
#: players differ greatly, and the most.
_BORROWED = (2.0, 6.0)
#: Coalitions that a surrogate is fitted to at most, which bounds memory.
_MOST_FITTED = 20_000


def myerson_value_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Estimate the Myerson value from at most ``budget`` distinct evaluated coalitions.

    If the connected coalitions can be listed, those to evaluate are drawn in proportion to their
    weights, and correct the value of a surrogate; otherwise values are mean marginal contributions
    in random orders of arrival. The estimate is efficient on every component. On a complete graph
    it is the Shapley value and estimated as such, by :func:`shapley_value_sampled`, which needs far
    fewer evaluations.

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

    Warns
    -----
    PrecisionWarning
        When standard errors are unknown, or the largest exceeds a quarter of the largest value.

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
    if 2 * len(graph.edges) == graph.num_nodes * (graph.num_nodes - 1):
        from gstarx.values.shapley_sampling import shapley_value_sampled  # imports this module

        return shapley_value_sampled(v, graph.num_nodes, budget=budget, seed=seed)
    generator = np.random.default_rng(seed)
    limit = listing_limit(budget, graph.num_nodes)
    if graph.count_connected_coalitions(limit) <= limit:
        allocation, _ = sampled_from_list(v, graph, budget, generator)
        known_from = graph.num_nodes + sum(len(part) > 1 for part in graph.components) + 2
    else:
        allocation = _sampled_from_orders(v, graph, budget, generator)
        known_from = 2 * graph.num_nodes
    warn_if_unknown(allocation.std_error, value="myerson", budget=known_from)
    warn_if_noisy(
        allocation.values,
        allocation.std_error,
        value="myerson",
        evaluations=allocation.evaluations,
        advice="value='banzhaf' and value='shapley' take fewer",
    )
    return allocation


def sampled_from_list(
    v: Game, graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> tuple[Allocation, NDArray[np.float64]]:
    """The estimate if connected coalitions can be listed, and the span of the evaluated worths."""
    lattice = CoalitionLattice.of(graph)
    tops = lattice.tops
    certain = certain_rows(lattice.masks, tops, graph.num_nodes, budget)
    estimate = estimate_sum(
        v,
        lattice.masks,
        myerson_weights(lattice),
        graph,
        budget=budget,
        certain=certain,
        generator=generator,
    )
    shape = (graph.num_nodes, *estimate.certain_worths.shape[1:])
    values = estimate.values.reshape(shape)
    component_sums = lattice.coalitions(tops).astype(np.float64) @ values
    gap = np.abs(component_sums - estimate.certain_worths[np.searchsorted(certain, tops)]).max(
        initial=0.0
    )
    std_error = np.sqrt(estimate.variance).reshape(shape)
    return Allocation(values, std_error, False, estimate.evaluations, float(gap)), estimate.span


def _sampled_from_orders(
    v: Game, graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> Allocation:
    n = graph.num_nodes
    arrivals = _orders_within(graph, budget, generator)
    evaluated = evaluate_masks(v, arrivals.masks, n)
    worths = in_columns(evaluated)
    per_unit = _cross_fitted(graph, arrivals, worths)
    values, std_error = mean_of_units(per_unit)
    component_worths = worths[find_rows(arrivals.masks, pack(graph.component_coalitions))]
    shared = np.stack([values[list(component)].sum(axis=0) for component in graph.components])
    gap = np.abs(shared - component_worths).max(initial=0.0)
    shape = (n, *evaluated.shape[1:])
    return Allocation(
        values.reshape(shape), std_error.reshape(shape), False, len(worths), float(gap)
    )


def mean_of_units(
    per_unit: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean (n, q) of independent estimates (units, n, q), and its standard error.

    In a few orders a player may meet the same neighbors on every arrival, and show no spread. So
    each player's variance is pooled from its own estimates and some more units with the mean
    variance of all players. The less variances differ between players, the more units (two over
    the squared coefficient of variation that chance does not explain, between two and six), and
    they count as degrees of freedom (Smyth, "Linear models and empirical Bayes methods for
    assessing differential expression in microarray experiments", 2004).
    """
    units, players, _ = per_unit.shape
    values = per_unit.mean(axis=0)
    if units < 2:
        return values, np.full_like(values, np.nan)
    own = units - 1
    variances = per_unit.var(axis=0, ddof=1)
    mean = variances.mean(axis=0)
    # a variance with d degrees of freedom varies by 2 / d of its square around the true one
    by_chance = 2 / own
    apart = ((variances - mean) ** 2).sum(axis=0) / max(1, players - 1)
    differing = (apart / np.where(mean > 0, mean, 1.0) ** 2 - by_chance) / (1 + by_chance)
    least, most = _BORROWED
    borrowed = 2 / np.clip(differing, 2 / most, 2 / least)
    variance = (own * variances + borrowed * mean) / (own + borrowed)
    return values, np.sqrt(variance / units) * student_factor(own + borrowed)


@dataclass(frozen=True)
class _Arrivals:
    """Random orders of arrival, in independent units: an order, or an order and its reverse."""

    #: Every distinct component that was completed, once: (k, words).
    masks: Masks
    #: The component that every arrival completed, (units, rows), as a row of ``masks``.
    completed: NDArray[np.int64]
    #: Who arrived, and who came later and merged the component into a larger one; -1 for nobody.
    arrived: NDArray[np.int64]
    merged: NDArray[np.int64]

    def marginals(self, worths: NDArray[np.float64], unit: int) -> NDArray[np.float64]:
        """What every player added on arrival, (n, q), on average over the orders of a unit."""
        n = int(self.arrived.max()) + 1
        added = np.zeros((n, worths.shape[1]))
        brought = worths[self.completed[unit]]
        np.add.at(added, self.arrived[unit], brought)
        later = self.merged[unit] >= 0
        np.subtract.at(added, self.merged[unit][later], brought[later])
        return added / (len(brought) // n)


def _cross_fitted(
    graph: CommunicationGraph, arrivals: _Arrivals, worths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One unbiased estimate (n, q) of the values per unit, with surrogates that never saw it."""
    units = len(arrivals.completed)
    fold = np.arange(units) % min(_FOLDS, units)
    estimates = np.empty((units, graph.num_nodes, worths.shape[1]))
    for number in range(fold.max() + 1):
        base, residual = _surrogate(graph, arrivals, worths, arrivals.completed[fold != number])
        for unit in np.flatnonzero(fold == number).tolist():
            estimates[unit] = base + arrivals.marginals(residual, unit)
    return estimates


def _surrogate(
    graph: CommunicationGraph,
    arrivals: _Arrivals,
    worths: NDArray[np.float64],
    others: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The values of a surrogate fitted to some units, and the residuals of all worths.

    The worths of single nodes cancel in marginal contributions, and those of edges in an order and
    its reverse: a surrogate helps only if it can include paths of two edges.
    """
    seen = np.bincount(others.ravel(), minlength=len(worths))
    rows = np.flatnonzero(seen)[:_MOST_FITTED]
    features = Features.choose(graph, len(rows), shares=False)
    if len(features.patterns) < 3:
        return np.zeros((graph.num_nodes, worths.shape[1])), worths
    importance = seen[rows].astype(np.float64)
    surrogate = Surrogate.fit(features, arrivals.masks[rows], worths[rows], importance)
    return surrogate.shared_equally(), worths - surrogate.predict(arrivals.masks)


def _orders_within(
    graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> _Arrivals:
    """Components completed in as many random orders as have at most ``budget`` distinct ones.

    An order and its reverse make one independent unit, unless the budget does not even allow two
    such pairs.
    """
    n, words = graph.adjacency.shape
    per_unit = 2 if budget >= 4 * n else 1
    batch = 1 + budget // (n * per_unit)
    masks = np.zeros((0, words), dtype=np.uint64)
    parts: list[tuple[NDArray[np.int64], ...]] = []
    units = 0
    while True:
        orders = generator.permuted(np.tile(np.arange(n), (batch, 1)), axis=1)
        if per_unit == 2:
            orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n)
        completed = np.empty((orders.size, words), dtype=np.uint64)
        merged = np.full(orders.size, -1)
        _complete(graph.adjacency, np.ascontiguousarray(orders), completed, merged)
        together = np.concatenate([masks, completed])
        # earlier masks are distinct and keep their places
        first, where = distinct_rows(together)
        ends = len(masks) + np.arange(batch + 1) * n * per_unit
        distinct = np.searchsorted(first, ends)
        fits = int(distinct[1:].searchsorted(budget, side="right"))
        rows = (where[len(masks) :], orders, merged)
        parts.append(tuple(part.reshape(batch, -1)[:fits] for part in rows))
        masks = together[first[: distinct[fits]]]
        units += fits
        # many orders share coalitions, so more may fit; once some do not, the budget is used up
        if fits < batch or units * n > 64 * budget:
            return _Arrivals(masks, *map(np.concatenate, zip(*parts, strict=True)))


@compiled
def _complete(adjacency, orders, completed, merged):  # type: ignore[no-untyped-def]
    """Write the component that every arrival completes, and whose arrival merges it into another.

    Components that last are left alone: ``merged`` has to be -1 everywhere.
    """
    n, words = adjacency.shape
    # the row of the component that a node is in
    place_of = np.empty(n, np.int64)
    for order in range(len(orders)):
        for node in range(n):
            place_of[node] = -1
        for row in range(order * n, order * n + n):
            node = orders[order, row - order * n]
            mask = completed[row]
            for w in range(words):
                mask[w] = _ZERO
            mask[node // WORD] |= _ONE << np.uint64(node % WORD)
            for word in range(words):
                bits = adjacency[node, word] & ~mask[word]
                while bits != _ZERO:
                    near = word * WORD + np.int64(trailing_zeros(bits))
                    bits &= bits - _ONE
                    other = place_of[near]
                    if other >= 0:
                        merged[other] = node
                        for w in range(words):
                            mask[w] |= completed[other, w]
                        # its other nodes need not be looked at
                        bits &= ~mask[word]
            for word in range(words):
                bits = mask[word]
                while bits != _ZERO:
                    place_of[word * WORD + np.int64(trailing_zeros(bits))] = row
                    bits &= bits - _ONE
