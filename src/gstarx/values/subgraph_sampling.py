"""The paper's Monte-Carlo scheme: values of small induced subgraphs, averaged (Algorithm 3)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gstarx._internal.arguments import as_flag, one_of
from gstarx.games import Game, Worths, evaluate_masks, restricted_game, superadditive_cover
from gstarx.graphs import (
    WORD,
    CoalitionLattice,
    Coalitions,
    CommunicationGraph,
    Masks,
    as_nodes,
    distinct_rows,
    find_rows,
    first_nodes,
    pack,
    renumber,
)
from gstarx.values.allocation import Allocation, ConvergenceWarning
from gstarx.values.hn.closed_form import lattice_within, solve
from gstarx.values.hn.iteration import check_iteration, iterate, iterate_parts
from gstarx.values.kinds import Seed, Value, as_value
from gstarx.values.myerson import share_out
from gstarx.values.worths import in_columns

_VALUES = ("hn", "myerson", "shapley")
_SAMPLINGS = ("random", "khop")
_INNERS = ("exact", "iterated")
#: The truncation of the published experiments.
_MAX_SQUARINGS, _TOL = 7, 1e-3
#: The most coalitions of a subset.
_MAX_COALITIONS = 2_000_000
#: Nodes of subsets that are solved together: enough to save calls, few enough for short masks.
_NODES_TOGETHER = 4 * WORD


@dataclass(frozen=True, kw_only=True)
class Subgraphs(Value):
    """The paper's Algorithm 3: values of small subgraphs, averaged; by default as published.

    It is not an estimate of the value of the whole graph, see :func:`subgraph_sampled`.

    Attributes
    ----------
    value
        ``"hn"``, ``"myerson"`` or ``"shapley"`` (which ignores the graph inside a subset).
    max_sample_size
        Number of nodes in a subset.
    num_samples
        Subsets to draw, as many as there are nodes by default; more are drawn until every node is
        in one.
    sampling
        ``"random"`` subsets, or ``"khop"``: around each node in turn, hop by hop, the last hop
        filled up at random.
    inner
        ``"exact"`` values inside a subset, or for HN, and there by default, ``"iterated"``: the
        paper's truncated iteration with ``tau``.
    tau
        Share of the surplus, for ``inner="iterated"``.
    superadditive
        Replace the game inside each subset by its superadditive cover (at most 14 nodes).
    """

    estimators = ("subgraphs",)

    value: str = "hn"
    max_sample_size: int = 10
    num_samples: int | None = None
    sampling: str = "random"
    inner: str | None = None
    tau: float = 0.01
    superadditive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.value, _VALUES, name="value")
        if self.inner is None:
            object.__setattr__(self, "inner", "iterated" if self.value == "hn" else "exact")
        one_of(self.sampling, _SAMPLINGS, name="sampling")
        one_of(self.inner, _INNERS, name="inner")
        if self.max_sample_size < 1:
            raise ValueError(f"max_sample_size must be at least 1 (got {self.max_sample_size!r})")
        if self.num_samples is not None and self.num_samples < 1:
            raise ValueError(f"num_samples must be None or at least 1 (got {self.num_samples!r})")
        if self.inner == "iterated" and self.value != "hn":
            raise ValueError(f"inner='iterated' is for value='hn' only (got value={self.value!r})")
        check_iteration(self.tau, _MAX_SQUARINGS, _TOL)
        as_flag(self.superadditive, name="superadditive")
        # those of the value that is averaged
        for name in ("name", "follows_graph"):
            object.__setattr__(self, name, getattr(as_value(self.value), name))

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        """Any number of coalitions are too many: this is no exact value."""
        return limit + 1

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        """There is none, whatever the size of the subsets."""
        raise ValueError(f"Subgraphs has no exact value: use value={self.value!r}")

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int = 0, seed: Seed = None
    ) -> Allocation:
        """The average; the budget is not used, as the options say what is evaluated."""
        # a truncated iteration was requested by name, and the result records it: no warning
        return SubgraphPlan.of(graph, self, seed=seed).allocation(game)


def subgraph_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    value: str = "hn",
    max_sample_size: int = 10,
    num_samples: int | None = None,
    sampling: str = "random",
    subsets: Sequence[ArrayLike] | None = None,
    inner: str = "exact",
    tau: float = 0.01,
    superadditive: bool = False,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Average the values of small induced subgraphs over the subsets a node was in.

    This is Algorithm 3 of the paper for any of three values. It is *not* an estimate of the value
    of the whole graph: however many subsets are drawn, coalitions larger than ``max_sample_size``
    are never evaluated. For that, see :func:`hn_value_growth_sampled` and
    :func:`myerson_value_sampled`.

    Parameters
    ----------
    v
        The game. A coalition that lies in several subsets is evaluated once.
    graph
        The communication structure. With at most ``max_sample_size`` nodes it is the only subset.
    value
        ``"hn"``, ``"myerson"`` or ``"shapley"`` (which ignores the graph inside a subset).
    max_sample_size
        Number of nodes in a subset.
    num_samples
        Subsets to draw, ``n`` by default; more are drawn until every node is in one.
    sampling
        ``"random"`` subsets, or ``"khop"``: around each node in turn, hop by hop, the last hop
        filled up at random.
    subsets
        The subsets themselves, instead of drawing any. Every node must be in one.
    inner
        ``"exact"`` values inside a subset, or for HN ``"iterated"``, the paper's truncated
        iteration with ``tau``.
    tau
        Share of the surplus, for ``inner="iterated"``.
    superadditive
        Replace the game inside each subset by its superadditive cover (at most 14 nodes).
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        ``std_error`` is that of the mean over subsets, ``nan`` for a node in a single one. It
        measures the error against the limit of that mean, not against the value of the graph.
        ``residual`` compares with the worths of whole components, which are evaluated for it.

    Examples
    --------
    >>> from gstarx.games import additive_game
    >>> ring = CommunicationGraph(12, [(i, (i + 1) % 12) for i in range(12)])
    >>> result = subgraph_sampled(additive_game(range(12)), ring, max_sample_size=5, seed=0)
    >>> bool(abs(result.values - range(12)).max() < 1e-9)
    True
    """
    options = Subgraphs(
        value=value,
        max_sample_size=max_sample_size,
        num_samples=num_samples,
        sampling=sampling,
        inner=one_of(inner, _INNERS, name="inner"),
        tau=tau,
        superadditive=superadditive,
    )
    allocation = SubgraphPlan.of(graph, options, subsets=subsets, seed=seed).allocation(v)
    if not allocation.converged:
        warnings.warn(
            f"the iteration inside the subsets was truncated at {_MAX_SQUARINGS} squarings before "
            "it converged, as in the published experiments; inner='exact' gives its limit",
            ConvergenceWarning,
            stacklevel=2,
        )
    return allocation


@dataclass(frozen=True)
class SubgraphPlan:
    """Drawn subsets and the coalitions they need, known before any worth is evaluated."""

    graph: CommunicationGraph
    options: Subgraphs
    #: Whether the one subset is the whole graph.
    covers_graph: bool
    parts: list[_Parts]
    #: Every distinct coalition to evaluate, packed.
    masks: Masks
    #: Where in ``masks`` are the components, and the coalitions of every part.
    tops: NDArray[np.int64]
    rows: list[NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        graph: CommunicationGraph,
        options: Subgraphs,
        *,
        subsets: Sequence[ArrayLike] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> SubgraphPlan:
        """Draw the subsets, or use the given ones."""
        generator = np.random.default_rng(seed)
        covers_graph = subsets is None and graph.num_nodes <= options.max_sample_size
        if subsets is not None:
            node_sets = _checked_subsets(subsets, graph)
        elif covers_graph:
            node_sets = [np.arange(graph.num_nodes)] if graph.num_nodes else []
        else:
            node_sets = _draw(graph, options, generator)
        # superadditive covers are computed one subset at a time, everything else together
        max_nodes = 1 if options.superadditive else _NODES_TOGETHER
        parts = [_Parts.of(graph, group, options.value) for group in _groups(node_sets, max_nodes)]
        masks = [
            pack(graph.component_coalitions),
            *(part.masks_in(graph.num_nodes) for part in parts),
        ]
        listed = np.concatenate(masks)
        first, where = distinct_rows(listed)
        tops, *rows = np.split(where, np.cumsum([len(m) for m in masks[:-1]]))
        return cls(graph, options, covers_graph, parts, listed[first], tops, rows)

    def allocation(self, v: Game) -> Allocation:
        """The values averaged over subsets; every coalition is evaluated once."""
        graph, options = self.graph, self.options
        worths = evaluate_masks(v, self.masks, graph.num_nodes)
        columns = in_columns(worths)
        total = np.zeros((graph.num_nodes, columns.shape[1]))
        squares = np.zeros_like(total)
        times = np.zeros(graph.num_nodes)
        converged = True
        for part, rows in zip(self.parts, self.rows, strict=True):
            part_worths = columns[rows]
            if options.superadditive:
                part_worths = _covered(part, part_worths)
            result, settled = _solve(part, part_worths, options)
            converged &= settled
            np.add.at(times, part.nodes, 1)
            np.add.at(total, part.nodes, result)
            np.add.at(squares, part.nodes, result**2)
        count = np.maximum(times, 1)[:, None]
        values = total / count
        spread = np.maximum(squares / count - values**2, 0.0)
        # the spread of a node in a single subset is unknown
        std_error = np.full_like(values, np.nan)
        np.sqrt(spread / np.maximum(count - 1, 1), out=std_error, where=count > 1)
        if self.covers_graph:
            std_error = np.zeros_like(values)
        sums = graph.component_coalitions.astype(np.float64) @ values
        gap = float(np.abs(sums - columns[self.tops]).max(initial=0.0))
        shape = (graph.num_nodes, *worths.shape[1:])
        return Allocation(
            values.reshape(shape),
            std_error.reshape(shape),
            self.covers_graph and options.inner == "exact",
            len(self.masks),
            gap,
            converged,
        )


def hn_value_subgraph_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    max_sample_size: int = 10,
    num_samples: int | None = None,
    sampling: str = "random",
    subsets: Sequence[ArrayLike] | None = None,
    inner: str = "exact",
    tau: float = 0.01,
    superadditive: bool = False,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """The paper's Algorithm 3: HN values of small induced subgraphs, averaged.

    The HN case of :func:`subgraph_sampled`, which documents the parameters. With
    ``inner="iterated"`` and ``tau=0.01`` it is the configuration of the published experiments.

    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> hn_value_subgraph_sampled(unanimity_game(3, [0, 1, 2]), path).values
    array([0.25, 0.5 , 0.25])
    """
    return subgraph_sampled(
        v,
        graph,
        value="hn",
        max_sample_size=max_sample_size,
        num_samples=num_samples,
        sampling=sampling,
        subsets=subsets,
        inner=inner,
        tau=tau,
        superadditive=superadditive,
        seed=seed,
    )


def _groups(subsets: list[NDArray[np.int64]], max_nodes: int) -> Iterator[list[NDArray[np.int64]]]:
    """Subsets in groups of at most ``max_nodes`` nodes, so that their masks stay narrow."""
    group: list[NDArray[np.int64]] = []
    for nodes in subsets:
        if group and sum(map(len, group)) + len(nodes) > max_nodes:
            yield group
            group = []
        group.append(nodes)
    if group:
        yield group


@dataclass(frozen=True)
class _Parts:
    """Several subsets as one graph without edges between them."""

    #: The node of the whole graph that every node stands for.
    nodes: NDArray[np.int64]
    #: Subset that every node here belongs to.
    owner: NDArray[np.int64]
    graph: CommunicationGraph
    lattice: CoalitionLattice

    @classmethod
    def of(cls, graph: CommunicationGraph, subsets: list[NDArray[np.int64]], value: str) -> _Parts:
        """The subsets with the edges that the value sees: the graph's, or for Shapley all."""
        nodes = np.concatenate(subsets)
        owner = np.repeat(np.arange(len(subsets)), [len(subset) for subset in subsets])
        if value == "shapley":
            inside = np.argwhere(np.triu(owner[:, None] == owner, 1))
        else:
            # every edge of the graph once for each subset that has both its ends
            place = np.full((len(subsets), graph.num_nodes), -1)
            place[owner, nodes] = np.arange(len(nodes))
            ends = place[:, graph.edges]
            inside = ends[(ends >= 0).all(axis=2)]
        beside = CommunicationGraph(len(nodes), inside)
        advice = "a smaller max_sample_size"
        lattice = lattice_within(beside, _MAX_COALITIONS, sampler=advice)
        return cls(nodes, owner, beside, lattice)

    def masks_in(self, num_nodes: int) -> Masks:
        """The coalitions as bitmasks over the whole graph."""
        return renumber(self.lattice.masks, self.nodes, num_nodes)


def _solve(part: _Parts, worths: Worths, options: Subgraphs) -> tuple[NDArray[np.float64], bool]:
    """Values of the nodes of one part, and whether an iteration converged."""
    if options.value != "hn":
        return share_out(part.lattice, worths), True
    if options.inner == "exact":
        return solve(part.lattice, part.graph, worths), True
    return _iterated(part, worths, options.tau)


def _iterated(parts: _Parts, worths: Worths, tau: float) -> tuple[NDArray[np.float64], bool]:
    """Values after the truncated iteration, in which every subset stops independently."""
    n = parts.graph.num_nodes
    owner = parts.owner[first_nodes(parts.lattice.masks)]
    settled, doubtful = iterate_parts(parts.lattice, worths, tau, _MAX_SQUARINGS, _TOL, owner)
    values = settled[:n]
    converged = bool(doubtful.all())
    for subset in np.flatnonzero(doubtful):
        inside = parts.graph.subgraph(np.flatnonzero(parts.owner == subset))
        # the coalitions of one subset are listed in the same order alone as beside the others
        alone = worths[owner == subset]
        result, enough = iterate(CoalitionLattice.of(inside), alone, tau, _MAX_SQUARINGS, _TOL)
        values[parts.owner == subset] = result[: inside.num_nodes]
        converged &= enough
    return values, converged


def _covered(part: _Parts, worths: Worths) -> Worths:
    """Worths under the superadditive cover of the part's graph-restricted game."""

    def table_worths(coalitions: Coalitions) -> Worths:
        return worths[find_rows(part.lattice.masks, pack(coalitions))]

    game = restricted_game(table_worths, part.graph)
    return superadditive_cover(game, part.graph.num_nodes)(part.lattice.coalitions())


def _draw(
    graph: CommunicationGraph, options: Subgraphs, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Subsets of nodes, at least the requested number and until every node is in one."""
    n, size = graph.num_nodes, options.max_sample_size
    wanted = n if options.num_samples is None else options.num_samples
    subsets: list[NDArray[np.int64]] = []
    if options.sampling == "random":
        # the nodes with the smallest of n random numbers: all subsets at once
        keys = generator.random((wanted, n))
        subsets = list(np.sort(np.argpartition(keys, size - 1, axis=1)[:, :size], axis=1))
    covered = np.zeros(n, dtype=np.bool_)
    covered[np.concatenate(subsets) if subsets else []] = True
    while len(subsets) < wanted or not covered.all():
        if options.sampling == "random":
            nodes = np.sort(generator.choice(n, size=size, replace=False))
        else:
            nodes = _around(graph, len(subsets) % n, size, generator)
        covered[nodes] = True
        subsets.append(nodes)
    return subsets


def _around(
    graph: CommunicationGraph, center: int, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Nodes near ``center``, hop by hop; the last hop is sampled if it does not fit."""
    near = np.zeros(graph.num_nodes, dtype=np.bool_)
    near[center] = True
    while (remaining := size - int(near.sum())) > 0:
        hop = np.flatnonzero(graph.boundary(near))
        if not len(hop):
            break
        near[
            hop if len(hop) <= remaining else generator.choice(hop, size=remaining, replace=False)
        ] = True
    return np.flatnonzero(near)


def _checked_subsets(
    subsets: Sequence[ArrayLike], graph: CommunicationGraph
) -> list[NDArray[np.int64]]:
    checked = [
        as_nodes(nodes, graph.num_nodes, name=f"subsets[{place}]")
        for place, nodes in enumerate(subsets)
    ]
    seen = np.zeros(graph.num_nodes, dtype=np.bool_)
    for place, nodes in enumerate(checked):
        if not len(nodes):
            raise ValueError(f"subsets[{place}] must name at least one node (got none)")
        seen[nodes] = True
    if not seen.all():
        missing = np.flatnonzero(~seen).tolist()
        raise ValueError(f"every node must be in a subset (got none with {missing[:10]})")
    return checked
