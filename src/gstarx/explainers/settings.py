"""Options that all game-theoretic explanations share: the value and its estimator."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gstarx._internal.arguments import as_flag
from gstarx.games import Game, self_dual
from gstarx.gnn import GNNGame
from gstarx.graphs import (
    Coalitions,
    CommunicationGraph,
    TooManyCoalitions,
    as_size,
    distinct_rows,
    pack,
)
from gstarx.registry import EXACT_BUDGET, SAMPLED_BUDGET
from gstarx.values import (
    Allocation,
    SubgraphPlan,
    SubgraphSampling,
    banzhaf_value,
    banzhaf_value_sampled,
    budget_costs,
    check_presence,
    hn_value,
    hn_value_growth_sampled,
    myerson_value,
    myerson_value_sampled,
    sample_subgraphs,
    shapley_value,
    shapley_value_sampled,
)

#: Estimators of each value; ``"auto"`` uses the last one beyond the budget.
ESTIMATORS = {
    "hn": ("exact", "subgraphs", "growth"),
    "myerson": ("exact", "subgraphs", "sampled"),
    "shapley": ("exact", "subgraphs", "sampled"),
    "banzhaf": ("exact", "sampled"),
    "position": ("exact", "sampled"),
}


@dataclass(frozen=True, kw_only=True)
class ValueSettings(SubgraphSampling):
    """How node scores are computed from a game.

    Attributes
    ----------
    value
        ``"myerson"``, ``"hn"``, ``"shapley"``, ``"banzhaf"``, or ``"position"``, the position value
        of edges as links between nodes, see :func:`gstarx.values.position_value`; for
        ``players="edges"``.
    estimator
        ``"auto"``: exact whenever the coalitions that the value needs fit the budget, its
        consistent sampler otherwise. ``"exact"``; ``"growth"`` (HN); ``"sampled"`` (the others);
        ``"subgraphs"``: the paper's Algorithm 3, for HN, Myerson and Shapley.
    budget
        The largest number of distinct coalitions to evaluate; not used by ``"subgraphs"``.
    max_sample_size, num_samples, sampling, inner, tau, superadditive
        Options of :func:`gstarx.values.subgraph_sampled`, for ``"subgraphs"`` only.
    presence
        For the Banzhaf value: the probability that another node is present.
    two_sided
        For HN and Myerson: the value of :func:`gstarx.games.self_dual` of the game, which counts
        what a coalition is worth and what is lost without it, half each. Complements are evaluated
        too and count toward the budget. Shapley and Banzhaf values include both sides already.
    """

    value: str = "myerson"
    estimator: str = "auto"
    budget: int | None = None
    presence: float = 0.5
    two_sided: bool = False
    _values: ClassVar[tuple[str, ...]] = tuple(ESTIMATORS)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_presence(self.presence)
        if self.value != "banzhaf" and self.presence != 0.5:
            raise ValueError(
                f"presence is an option of value='banzhaf' (got presence={self.presence!r} with "
                f"value={self.value!r})"
            )
        if self.estimator not in ("auto", *ESTIMATORS[self.value]):
            pairs = "; ".join(f"{v}: {', '.join(('auto', *e))}" for v, e in ESTIMATORS.items())
            raise ValueError(
                f"there is no estimator {self.estimator!r} for value={self.value!r}; valid are "
                f"{pairs}"
            )
        if as_flag(self.two_sided, name="two_sided"):
            self._check_two_sided()
        if self.budget is not None:
            as_size(self.budget, name="budget")

    def _check_two_sided(self) -> None:
        if not self.follows_graph:
            reason = (
                "the position value is defined by what linked nodes earn, not by what is lost "
                "without them"
                if self.value == "position"
                else "Shapley and Banzhaf values are self-dual, they see both sides already"
            )
            raise ValueError(
                f"two_sided is an option of value='hn' and value='myerson': {reason} "
                f"(got value={self.value!r})"
            )
        if self.estimator == "subgraphs":
            raise ValueError(
                "two_sided=True needs the whole graph: there is no complement within the sampled "
                f"subgraphs of estimator='subgraphs'; valid are 'auto', 'exact' and "
                f"{ESTIMATORS[self.value][-1]!r}"
            )

    @property
    def follows_graph(self) -> bool:
        """Whether the value of players who are nodes depends on who communicates with whom."""
        return self.value in ("hn", "myerson")

    def share_of_constant(self, n: int) -> float:
        """How much of a constant worth of all coalitions but the empty one ``n`` players share."""
        return n * (1 - self.presence) ** (n - 1) if self.value == "banzhaf" else 1.0

    def played(self, game: Game) -> Game:
        """The game whose value is computed: the game itself, or its self-dual part."""
        return self_dual(game) if self.two_sided else game

    def chosen_estimator(
        self,
        graph: CommunicationGraph,
        game: Game | None = None,
        *,
        reported: Coalitions | None = None,
    ) -> str:
        """The estimator for a graph: ``"auto"`` resolved by counting its coalitions.

        Without a budget, more of them are counted where those of the game share embeddings.
        """
        if self.estimator != "auto":
            return self.estimator
        more = self._besides_exact(graph, reported)
        fits = self._coalitions_within(graph, self.sample_budget - more)
        if not fits and self.budget is None and isinstance(game, GNNGame):
            fits = self._coalitions_within(graph, EXACT_BUDGET - more) and game.shares()
        return "exact" if fits else ESTIMATORS[self.value][-1]

    @property
    def sample_budget(self) -> int:
        """How many coalitions an estimator may evaluate."""
        return SAMPLED_BUDGET if self.budget is None else self.budget

    def _coalitions_within(self, graph: CommunicationGraph, limit: int) -> bool:
        """Whether the exact value evaluates at most so many coalitions."""
        if self.value in ("shapley", "banzhaf"):
            return graph.num_nodes < 63 and 2**graph.num_nodes - 1 <= limit
        limit = max(limit, 0)
        count = graph.count_connected_coalitions(limit)
        if not self.two_sided or count > limit:
            return count <= limit
        return count <= _pairs_within(graph, limit) or _with_complements(graph) <= limit

    def _besides_exact(self, graph: CommunicationGraph, reported: Coalitions | None) -> int:
        """How many of the reported coalitions exact values do not evaluate anyway."""
        if reported is None or self.two_sided or self.value in ("shapley", "banzhaf"):
            return 0
        # everybody, who is not connected; the components are
        return int(len(graph.components) > 1 and bool(reported.all(axis=1).any()))

    def _besides_sampled(
        self, graph: CommunicationGraph, reported: Coalitions | None, alone: bool
    ) -> int:
        """How many of the reported coalitions samplers are not certain to evaluate.

        Those of Shapley and Banzhaf values evaluate everybody; ``alone`` says that single players
        are evaluated.
        """
        if reported is None or self.value not in ("shapley", "banzhaf"):
            return self._besides_exact(graph, reported)
        sizes = reported.sum(axis=1)
        known = (sizes == graph.num_nodes) | ((sizes == 1) & alone)
        return int(np.count_nonzero(~known))

    def _coalitions_to_sample(
        self, game: Game, graph: CommunicationGraph, reported: Coalitions | None
    ) -> int:
        """How many coalitions of :meth:`played` a sampler may evaluate within the budget.

        Some of the budget is left for single players that the baseline needs, unless the sampler
        asks for all of them anyway, for coalitions that are reported, and half of it for
        complements.
        """
        n, parts, budget = graph.num_nodes, len(graph.components), self.sample_budget
        alone = isinstance(game, GNNGame) and game.baseline_from_singletons
        # on complete graphs, growth is not sampled
        included = self.value == "hn" and len(graph.edges) < n * (n - 1) // 2
        besides = self._besides_sampled(graph, reported, alone)
        reserved = besides + (n if alone and not included else 0)
        least = n + sum(len(part) > 1 for part in graph.components) * (alone and included)
        if self.two_sided:
            # all components together, too, are evaluated
            least = 2 * least + (1 if parts > 1 else -1)
        if budget < least + reserved and (alone or self.two_sided or besides):
            smallest = self._smallest_budget(graph, least + reserved, reported)
            raise ValueError(
                f"budget must be at least {smallest} for {n} nodes"
                + (f" in {parts} components" if besides else "")
                + (" that are evaluated with their complements" if self.two_sided else "")
                + (" and baseline='singletons'" if alone else "")
                + f" (got {budget})"
            )
        return _pairs_within(graph, budget - reserved) if self.two_sided else budget - reserved

    def _smallest_budget(
        self, graph: CommunicationGraph, sampled: int, reported: Coalitions | None
    ) -> int:
        """The smallest valid budget: that of a sampler, unless the exact value needs less."""
        if self.estimator != "auto" and not self.two_sided:
            return sampled
        more = self._besides_exact(graph, reported)
        return bisect_left(
            range(sampled), True, key=lambda budget: self._coalitions_within(graph, budget - more)
        )

    def plan(
        self, graph: CommunicationGraph, *, seed: int | np.random.Generator | None
    ) -> SubgraphPlan | None:
        """The coalitions that will be evaluated, if they are known in advance; else ``None``."""
        return SubgraphPlan.of(graph, self, seed=seed) if self.estimator == "subgraphs" else None

    def allocate(
        self,
        game: Game,
        graph: CommunicationGraph,
        *,
        seed: int | np.random.Generator | None,
        plan: SubgraphPlan | None = None,
        reported: Coalitions | None = None,
    ) -> tuple[Allocation, str]:
        """Compute the value of every node, following ``plan`` if given, and name the estimator.

        ``reported`` are the components and everybody, if their worths are evaluated afterwards:
        they count toward the budget.
        """
        if plan is not None:
            return plan.allocation(game), self.estimator
        estimator = self.chosen_estimator(graph, game, reported=reported)
        try:
            return self._allocate(estimator, game, graph, seed, reported), estimator
        except TooManyCoalitions as error:
            if estimator != "exact":
                raise
            advice = f"raise budget=..., or say estimator='auto' or {ESTIMATORS[self.value][-1]!r}"
            more = self._besides_exact(graph, reported)
            raise TooManyCoalitions(
                error.at_least + more,
                error.limit + more,
                advice,
                connected=error.connected and not more,
            ) from None

    def _allocate(
        self,
        estimator: str,
        game: Game,
        graph: CommunicationGraph,
        seed: int | np.random.Generator | None,
        reported: Coalitions | None,
    ) -> Allocation:
        if estimator == "subgraphs":
            # a truncated iteration was requested by name, and the result records it: no warning
            return sample_subgraphs(game, graph, self, seed=seed)
        fits = self.two_sided and self._coalitions_within(graph, self.sample_budget)
        if estimator == "exact" or fits:
            return self._exact(game, graph, self._besides_exact(graph, reported))
        budget = self._coalitions_to_sample(game, graph, reported)
        if isinstance(game, GNNGame):
            game.expect(self.sample_budget)
        each = 2 if self.two_sided else 1
        with budget_costs(each, self.sample_budget - each * budget):
            return self._sampled(game, graph, seed, budget)

    def _sampled(
        self,
        game: Game,
        graph: CommunicationGraph,
        seed: int | np.random.Generator | None,
        budget: int,
    ) -> Allocation:
        if self.value == "banzhaf":
            return banzhaf_value_sampled(
                game, graph.num_nodes, budget=budget, seed=seed, presence=self.presence
            )
        if self.value == "shapley":
            return shapley_value_sampled(game, graph.num_nodes, budget=budget, seed=seed)
        sampled = hn_value_growth_sampled if self.value == "hn" else myerson_value_sampled
        return sampled(self.played(game), graph, budget=budget, seed=seed)

    def _exact(self, game: Game, graph: CommunicationGraph, besides: int) -> Allocation:
        """The exact value, with ``besides`` coalitions left of the budget."""
        most = max(0, (EXACT_BUDGET if self.budget is None else self.budget) - besides)
        if self.value == "banzhaf":
            return banzhaf_value(game, graph.num_nodes, max_coalitions=most, presence=self.presence)
        if self.value == "shapley":
            return shapley_value(game, graph.num_nodes, max_coalitions=most)
        if self.two_sided and graph.count_connected_coalitions(most) <= most:
            needed = _with_complements(graph)
            if needed > most:
                raise TooManyCoalitions(needed, most, connected=False)
        exact = hn_value if self.value == "hn" else myerson_value
        return exact(self.played(game), graph, max_coalitions=most)


def _pairs_within(graph: CommunicationGraph, budget: int) -> int:
    """How many coalitions can be evaluated for certain with their complements and everybody."""
    return (budget + 1) // 2 if len(graph.components) == 1 else (budget - 1) // 2


def _with_complements(graph: CommunicationGraph) -> int:
    """Number of connected coalitions, their complements and everybody, each counted once."""
    n = graph.num_nodes
    masks = graph.connected_masks()[0]
    everybody = pack(np.ones((1, n), dtype=np.bool_))
    joined = np.concatenate([everybody, masks, everybody & ~masks])
    return len(distinct_rows(joined[joined.any(axis=1)])[0])
