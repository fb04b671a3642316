"""A consistent estimate of the HN value, for graphs with too many coalitions to evaluate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game
from gstarx.graphs import CommunicationGraph, Masks, distinct_rows, renumber, unpack
from gstarx.values.allocation import Allocation, PrecisionError, warn_if_noisy, warn_if_unknown
from gstarx.values.coalition_sampling import Weights, certain_rows, estimate_sum
from gstarx.values.hn.arrival_times import BATCHES, ArrivalTimes, FeatureValues
from gstarx.values.hn.closed_form import hn_value, value_weights
from gstarx.values.hn.growth_draws import GrowthDraws
from gstarx.values.hn.small_coalitions import SmallCoalitions
from gstarx.values.shapley_sampling import shapley_value_sampled
from gstarx.values.surrogate import Features
from gstarx.values.worths import check_budget, everybody, listing_limit

#: Smaller budgets still list or draw as many coalitions as these.
_LISTED_FOR = 20_000
_GROWN_FOR = 2_000
#: If coalitions cannot be listed: how many of the smallest are known, and how many of the others
#: drawn, per evaluation ...
_KNOWN_PER_EVALUATION = 16
_DRAWN_PER_EVALUATION = 4
#: ... within this many weights each (64 MB), unless that is less than the budget.
_CELLS = 1 << 23
#: Rounds of clocks per evaluation, their maximum, and the most steps of growth (some seconds).
_ROUNDS_PER_EVALUATION = 2
_MAX_ROUNDS = 1 << 14
_GROWTH_STEPS = 1 << 31
_MIN_ROUNDS = 4 * BATCHES
#: Steps of the chain per drawn coalition, least and most, and the most words of masks to read.
_CHAIN_STEPS = (4, 64)
_CHAIN_WORDS = 1 << 29
#: Pilot draws that estimate how much the coalitions of every size contribute.
_PILOT_DRAWS = 2048


def hn_value_growth_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Estimate the HN value of the whole graph from at most ``budget`` evaluated coalitions.

    The weights of coalitions in the closed form depend on the graph alone, so they are known for
    far more coalitions than are ever evaluated: for all of them if they can be listed, otherwise
    for the smallest, while larger ones are drawn by random growth. Coalitions to evaluate are drawn
    in proportion to these weights, and a surrogate fitted to them replaces the rest: see
    :mod:`gstarx.values.coalition_sampling`.

    Unlike the paper's Algorithm 3, which averages the HN values of small induced subgraphs, the
    estimate converges to the HN value of the graph. It is efficient on every component and exact
    for additive games whatever the sample. On a complete graph the HN value is the Shapley value
    and is estimated as such.

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
        With standard errors; ``exact`` if the budget covered all coalitions. A budget just above
        the number of nodes leaves fewer than two coalitions to draw, and the standard errors are
        ``nan``.

    Raises
    ------
    PrecisionError
        On graphs of more than about 700 nodes (fewer if they are dense), whose growth cannot
        be followed often enough within memory and time. Nothing is evaluated.

    Warns
    -----
    PrecisionWarning
        When the largest standard error exceeds a quarter of the largest score, or is unknown.

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
        return shapley_value_sampled(v, n, budget=budget, seed=seed)
    generator = np.random.default_rng(seed)
    parts = _parts(graph, budget, generator)
    masks = np.concatenate([part.masks for part in parts])
    tops = np.cumsum([len(part.masks) for part in parts]) - 1
    part_values: list[FeatureValues] = []

    def values_of(features: Features) -> NDArray[np.float64]:
        values = np.zeros((n, features.width))
        for part in parts:
            part_values.append(part.feature_values(features))
            values[part.nodes] = part_values[-1].values
        return values

    certain = certain_rows(masks, tops, n, budget)
    # all coalitions of a small component are evaluated if its share of the budget covers them
    for part, top in zip(parts, tops, strict=True):
        if part.arrivals is None and len(part.masks) * n <= budget * len(part.nodes):
            all_of_it = np.arange(top + 1 - len(part.masks), top + 1)
            grown = np.union1d(certain, all_of_it)
            certain = grown if len(grown) <= budget else certain
    estimate = estimate_sum(
        v,
        masks,
        Weights(n, tuple((part.nodes, part.weights) for part in parts)),
        graph,
        budget=budget,
        certain=certain,
        generator=generator,
        times=np.concatenate([part.times for part in parts]),
        values_of=values_of,
    )
    shape = (n, *estimate.certain_worths.shape[1:])
    values = estimate.values.reshape(shape)
    variance = estimate.variance
    for part, of_features in zip(parts, part_values, strict=True):
        variance[part.nodes] += of_features.variance(estimate.surrogate)
    std_error = np.sqrt(variance).reshape(shape)
    component_sums = unpack(masks[tops], n).astype(np.float64) @ values
    gap = np.abs(component_sums - estimate.certain_worths[np.searchsorted(certain, tops)]).max(
        initial=0.0
    )
    warn_if_noisy(
        values,
        std_error,
        value="hn",
        evaluations=estimate.evaluations,
        advice="value='myerson' and value='banzhaf' need fewer",
    )
    warn_if_unknown(std_error, value="hn", budget=n + len(parts) + 2)
    return Allocation(values, std_error, False, estimate.evaluations, float(gap))


@dataclass(frozen=True)
class _Part:
    """Coalitions of one component, the component itself last, with their weights."""

    nodes: NDArray[np.int64]
    masks: Masks
    #: Value weights (k, nodes).
    weights: NDArray[np.float64]
    #: How often each coalition was drawn; infinite where its weights are exact.
    times: NDArray[np.float64]
    #: None if all coalitions are listed.
    arrivals: ArrivalTimes | None

    def feature_values(self, features: Features) -> FeatureValues:
        """The HN values of features on this component."""
        if self.arrivals is not None:
            return self.arrivals.feature_values(features, self.nodes)
        values = np.zeros((len(self.nodes), features.width))
        for block, design in features.blocks(self.masks):
            values += self.weights[block].T @ design
        return FeatureValues.exactly(values)


def _parts(graph: CommunicationGraph, budget: int, generator: np.random.Generator) -> list[_Part]:
    parts = []
    effort = max(budget, _GROWN_FOR)
    for component in graph.components:
        nodes = np.array(component)
        local = graph.subgraph(nodes)
        # a component's share of what may be evaluated, drawn and kept
        share = len(nodes) / graph.num_nodes
        limit = int(share * listing_limit(max(budget, _LISTED_FOR), len(nodes)))
        listed = local.count_connected_coalitions(limit) <= limit
        if not listed:
            limit = int(share * min(_KNOWN_PER_EVALUATION * effort, _CELLS // len(nodes)))
        known = SmallCoalitions.within(local, limit)
        if known.size >= len(nodes) - 1:
            masks, weights = _listed(local, known)
            times, arrivals = np.full(len(masks), np.inf), None
        else:
            masks, weights, times, arrivals = _grown(local, known, share, effort, generator)
        parts.append(
            _Part(nodes, renumber(masks, nodes, graph.num_nodes), weights, times, arrivals)
        )
    return parts


def _listed(graph: CommunicationGraph, known: SmallCoalitions) -> tuple[Masks, NDArray[np.float64]]:
    """All coalitions of a connected graph, and their exact value weights."""
    n = graph.num_nodes
    if n == 1:
        return known.masks, known.weights
    masks = np.concatenate([known.masks, everybody(n)])
    weights = np.concatenate([known.weights, np.zeros((1, n))])
    top = np.array([len(masks) - 1])
    return masks, value_weights(weights, unpack(masks, n), graph.degrees, top)


def _grown(
    graph: CommunicationGraph,
    known: SmallCoalitions,
    share: float,
    effort: int,
    generator: np.random.Generator,
) -> tuple[Masks, NDArray[np.float64], NDArray[np.float64], ArrivalTimes]:
    """Known and drawn coalitions of a connected graph, with value weights, and arrival times."""
    n = graph.num_nodes
    rounds = min(_ROUNDS_PER_EVALUATION * effort, _MAX_ROUNDS, _most_rounds(graph))
    arrivals = ArrivalTimes.sample(graph, rounds, generator)
    growth = arrivals.inverse[:, :n]
    draws = int(share * max(effort, min(_DRAWN_PER_EVALUATION * effort, _CELLS // n)))
    masks, weights = _drawn(GrowthDraws(graph, known, generator), growth, draws, generator)
    first, where = distinct_rows(masks)
    times = np.bincount(where)
    merged = weights[first]
    again = np.setdiff1d(np.arange(len(masks)), first)
    np.add.at(merged, where[again], weights[again])
    return (
        np.concatenate([known.masks, masks[first], everybody(n)]),
        np.concatenate([known.weights / graph.degrees @ growth.T, merged, arrivals.inverse.T[n:]]),
        np.concatenate([np.full(len(known.masks), np.inf), times, [np.inf]]),
        arrivals,
    )


def _drawn(
    draws: GrowthDraws,
    growth: NDArray[np.float64],
    count: int,
    generator: np.random.Generator,
) -> tuple[Masks, NDArray[np.float64]]:
    """Drawn coalitions, sizes that count more drawn more often, and their value weights."""
    n = len(growth)
    words = draws.hoods.shape[1]
    low, high = _CHAIN_STEPS
    steps = int(np.clip(_CHAIN_WORDS // (2 * count * n * (words + 4)), low, high))

    def at(sizes: NDArray[np.int64]) -> tuple[Masks, NDArray[np.float64]]:
        starts = (np.arange(len(sizes)) + generator.integers(n)) % n
        masks = np.empty((len(sizes), words), dtype=np.uint64)
        weights = np.empty((len(sizes), n))
        step = max(1, (1 << 20) // n)
        for first in range(0, len(sizes), step):
            chunk = slice(first, first + step)
            masks[chunk], chunk_weights = draws.draw(starts[chunk], sizes[chunk], steps)
            weights[chunk] = chunk_weights @ growth.T
        return masks, weights

    sizes = np.arange(draws.size + 1, n)
    # pilot draws are pooled over similar sizes, more finely near the smallest and the largest
    above, below = sizes - draws.size, n - sizes
    kind = np.floor(2 * np.log2(np.minimum(above, below))).astype(np.int64)
    kind = np.unique(np.where(above < below, -1 - kind, kind), return_inverse=True)[1]
    pilot = np.resize(generator.permutation(len(sizes)), max(_PILOT_DRAWS, len(sizes)))
    squares = (at(sizes[pilot])[1] ** 2).sum(axis=1)
    mean = np.bincount(kind[pilot], squares) / np.bincount(kind[pilot])
    chance = np.sqrt(mean)[kind]
    chance /= chance.sum()
    steps_up = np.concatenate([[0.0], np.cumsum(chance)]) * count
    steps_up[-1] = count
    times = np.diff(np.floor(steps_up + generator.random())).astype(np.int64)
    place = np.repeat(np.arange(len(sizes)), times)
    masks, weights = at(sizes[place])
    weights /= (chance[place] * count)[:, None]
    return masks, weights


def _most_rounds(graph: CommunicationGraph) -> int:
    """Rounds of clocks that fit the time limit; raises if they are too few for an estimate."""
    n = graph.num_nodes
    rounds = _GROWTH_STEPS // (n * (60 * n + 2 * len(graph.edges)))
    if rounds < _MIN_ROUNDS:
        raise PrecisionError(
            f"the HN value of {n:,} connected nodes and {len(graph.edges):,} edges cannot be "
            f"estimated soundly: within memory and time their growth can be followed {rounds} "
            f"times, and {_MIN_ROUNDS} is the least to learn from. Take value='myerson' or "
            f"value='banzhaf' with a budget of {10 * n:,} or more, or fewer players "
            "(GameOptions(num_hops=...) where one node is explained)"
        )
    return rounds
