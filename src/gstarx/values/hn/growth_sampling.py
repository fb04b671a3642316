"""The HN value of graphs with too many coalitions to evaluate: a consistent estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games.protocol import Game
from gstarx.graphs.bitmasks import Masks, pack, unpack
from gstarx.graphs.communication import CommunicationGraph
from gstarx.graphs.index import distinct_rows
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values.allocation import Allocation, PrecisionError, warn_if_noisy
from gstarx.values.budget import check_budget, listing_limit
from gstarx.values.coalition_sampling import certain_rows, estimate_sum
from gstarx.values.hn.closed_form import hn_value, hn_weights, value_weights
from gstarx.values.hn.growth_front import growth_front
from gstarx.values.shapley_sampling import shapley_value_sampled

#: Where coalitions cannot be listed, independent fronts are grown, whose spread tells what
#: thinning cost.
_FRONTS = 3
_FRONT_COALITIONS_PER_EVALUATION = 8
_MIN_FRONT_WIDTH = 1000
#: What bounds the width of a front on graphs of hundreds of nodes, and on dense ones: the weights
#: it may hold (128 MB), and the weights it may carry from one size to the next (some seconds).
_FRONT_CELLS = 1 << 24
_FRONT_STEPS = 1 << 28


def hn_value_growth_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Estimate the HN value of the whole graph from at most ``budget`` evaluated coalitions.

    The weights that the closed form puts on coalitions depend on the graph alone, so they are
    computed (or, on graphs too large to list, grown) for far more coalitions than are ever
    evaluated. Which ones to evaluate is drawn in proportion to these weights, and a surrogate
    fitted to them stands in for the rest: see :mod:`gstarx.values.coalition_sampling`.

    Unlike the paper's Algorithm 3, which averages the HN values of small induced subgraphs, the
    estimate converges to the HN value of the graph. It is efficient on every component and exact
    for additive games whatever the sample.

    Parameters
    ----------
    v
        The game.
    graph
        The communication structure.
    budget
        The most distinct coalitions to evaluate; at least the number of nodes. A budget that
        covers all connected coalitions gives the exact value.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        With standard errors; ``exact`` when the budget covered everything. A budget of hardly more
        than the number of nodes leaves fewer than two coalitions to chance, and the standard
        errors are ``nan``.

    Raises
    ------
    PrecisionError
        On large and on dense graphs, where fewer coalitions of each size could be followed within
        memory and time than there are nodes: the scores would be noise.

    Warns
    -----
    PrecisionWarning
        When the largest standard error exceeds a quarter of the largest score.

    Examples
    --------
    >>> from gstarx.games import random_game
    >>> ring = CommunicationGraph(30, [(i, (i + 1) % 30) for i in range(30)])
    >>> hn_value_growth_sampled(random_game(30, seed=0), ring, budget=400, seed=0).evaluations
    400
    """
    n = graph.num_nodes
    budget = check_budget(budget, n)
    if graph.count_connected_coalitions(budget) <= budget:
        return hn_value(v, graph, max_coalitions=budget)
    if len(graph.edges) == n * (n - 1) // 2:
        # on a complete graph the two values are one, and growth would hardly tell nodes apart
        return shapley_value_sampled(v, n, budget=budget, seed=seed)
    generator = np.random.default_rng(seed)
    measure = _growth_measure(graph, budget, generator)
    tops = measure.tops
    certain = certain_rows(measure.masks, tops, n, budget)
    found = estimate_sum(
        v,
        measure.masks,
        measure.weights,
        graph,
        budget=budget,
        certain=certain,
        generator=generator,
    )
    variance = found.variance + measure.thinning_variance(found.fitted)
    shape = (n, *found.certain_worths.shape[1:])
    values = found.values.reshape(shape)
    whole = unpack(measure.masks[tops], n).astype(np.float64) @ values
    gap = np.abs(whole - found.certain_worths[np.searchsorted(certain, tops)]).max(initial=0.0)
    std_error = np.sqrt(variance).reshape(shape)
    warn_if_noisy(
        values,
        std_error,
        value="hn",
        evaluations=found.evaluations,
        advice="value='myerson' and value='banzhaf' need fewer",
    )
    return Allocation(values, std_error, False, found.evaluations, float(gap))


@dataclass(frozen=True)
class _Front:
    """One component's front: its nodes, the rows of its coalitions, and their value weights."""

    nodes: NDArray[np.int64]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class _Measure:
    """Coalitions of all components, their value weights, and the fronts these came from."""

    masks: Masks
    weights: NDArray[np.float64]
    #: Rows of the whole components.
    tops: NDArray[np.int64]
    #: Independent fronts of every component that could not be listed.
    fronts: tuple[tuple[_Front, ...], ...]

    def thinning_variance(self, fitted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance (n, q) of the values that thinning caused, measured on the surrogate."""
        variance = np.zeros((self.weights.shape[1], fitted.shape[1]))
        for replicas in self.fronts:
            values = np.stack([front.weights.T @ fitted[front.rows] for front in replicas])
            # not divided by the number of fronts: calibration leaves each a bias of about half its
            # spread, which averaging does not remove
            own = values.var(axis=0, ddof=1)
            # few fronts: every node borrows half of its estimate from the others
            variance[replicas[0].nodes] = (own + own.mean(axis=0)) / 2
        return variance


def _growth_measure(
    graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> _Measure:
    """Exact weights of all coalitions where they can be listed, grown ones where not."""
    limit = listing_limit(budget, graph.num_nodes)
    masks, weights, tops, fronts = [], [], [], []
    start = 0
    for component in graph.components:
        nodes = np.array(component)
        part = graph.subgraph(nodes)
        if part.count_connected_coalitions(limit) <= limit:
            lattice = CoalitionLattice.of(part)
            found = lattice.masks
            local = hn_weights(lattice, part)
        else:
            found, local, replicas = _merged_fronts(part, budget, generator)
            fronts.append(tuple(_Front(nodes, start + rows, own) for rows, own in replicas))
        members = np.zeros((len(found), graph.num_nodes), dtype=np.bool_)
        members[:, nodes] = unpack(found, len(nodes))
        spread = np.zeros((len(found), graph.num_nodes))
        spread[:, nodes] = local
        masks.append(pack(members))
        weights.append(spread)
        tops.append(start + int(np.argmax(members.sum(axis=1))))
        start += len(found)
    return _Measure(np.concatenate(masks), np.concatenate(weights), np.array(tops), tuple(fronts))


def _merged_fronts(
    graph: CommunicationGraph, budget: int, generator: np.random.Generator
) -> tuple[Masks, NDArray[np.float64], list[tuple[NDArray[np.int64], NDArray[np.float64]]]]:
    """Several independent fronts as one, and each one's rows and value weights."""
    n = graph.num_nodes
    width = _front_width(graph, budget)
    if width < n:
        raise PrecisionError(
            f"the HN value of {n} nodes cannot be estimated soundly: within memory and time only "
            f"{width} coalitions of each size can be followed, fewer than there are nodes. Take "
            f"value='myerson' or value='banzhaf' with a budget of {10 * n} or more, or fewer "
            "players (num_hops=... where one node is explained)"
        )
    fronts = [growth_front(graph, width, child) for child in generator.spawn(_FRONTS)]
    everything = np.concatenate([masks for masks, _ in fronts])
    first, where = distinct_rows(everything)
    merged = np.zeros((len(first), n))
    replicas = []
    start = 0
    for masks, weights in fronts:
        rows = where[start : start + len(masks)]
        merged[rows] += weights / _FRONTS
        replicas.append((rows, _front_weights(graph, masks, weights)))
        start += len(masks)
    masks = everything[first]
    return masks, _front_weights(graph, masks, merged), replicas


def _front_width(graph: CommunicationGraph, budget: int) -> int:
    """Coalitions of each size that a front may keep: by the budget, within memory and time."""
    n = graph.num_nodes
    wanted = max(_MIN_FRONT_WIDTH, _FRONT_COALITIONS_PER_EVALUATION * budget // (_FRONTS * n))
    # the neighbours of a coalition, on average over one growth from the first node
    grown = np.zeros((1, n), dtype=np.bool_)
    grown[0, 0] = True
    neighbours = []
    while (border := graph.boundary(grown)).any():
        neighbours.append(int(border.sum()))
        grown |= border & (np.cumsum(border, axis=1) == 1)
    each = n**2 * max(1.0, float(np.mean(neighbours or [1])))
    return max(2, min(wanted, _FRONT_CELLS // n**2, int(_FRONT_STEPS / each)))


def _front_weights(
    graph: CommunicationGraph, masks: Masks, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Value weights of the coalitions of a connected graph from their growth weights."""
    members = unpack(masks, graph.num_nodes)
    return value_weights(weights, members, graph.degrees, np.flatnonzero(members.all(axis=1)))
