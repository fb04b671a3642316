"""Which coalitions are evaluated for a value: exactly, or a sample of them within a budget."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from gstarx.games import Game
from gstarx.gnn import GNNGame
from gstarx.graphs import Coalitions, CommunicationGraph, TooManyCoalitions, as_size
from gstarx.registry import EXACT_BUDGET, SAMPLED_BUDGET
from gstarx.values import (
    Allocation,
    Seed,
    SubgraphPlan,
    Subgraphs,
    Value,
    budget_costs,
    pairs_within,
)


@dataclass(frozen=True)
class Budgeted:
    """A value, and the largest number of distinct coalitions that may be evaluated for it."""

    value: Value
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            as_size(self.budget, name="budget")

    @property
    def most(self) -> int:
        """How many coalitions an estimator may evaluate."""
        return SAMPLED_BUDGET if self.budget is None else self.budget

    def estimator(
        self,
        graph: CommunicationGraph,
        game: Game | None = None,
        *,
        reported: Coalitions | None = None,
    ) -> str:
        """The estimator for a graph: ``"auto"`` resolved by counting its coalitions.

        Without a budget, more of them are counted where those of the game share embeddings.
        """
        value = self.value
        if value.estimator != "auto" or "exact" not in value.estimators:
            return value.estimators[-1] if value.estimator == "auto" else value.estimator
        more = self._besides(graph, reported, exact=True)
        fits = self._fits(graph, self.most - more)
        if not fits and self.budget is None and isinstance(game, GNNGame):
            fits = self._fits(graph, EXACT_BUDGET - more) and game.shares()
        return "exact" if fits else value.estimators[-1]

    def plan(self, graph: CommunicationGraph, *, seed: Seed) -> SubgraphPlan | None:
        """The coalitions that will be evaluated, if they are known in advance; else ``None``."""
        value = self.value
        return SubgraphPlan.of(graph, value, seed=seed) if isinstance(value, Subgraphs) else None

    def allocate(
        self,
        game: Game,
        graph: CommunicationGraph,
        *,
        seed: Seed,
        plan: SubgraphPlan | None = None,
        reported: Coalitions | None = None,
    ) -> tuple[Allocation, str]:
        """Compute the value of every node, following ``plan`` if given, and name the estimator.

        ``reported`` are the components and everybody, if their worths are evaluated afterwards:
        they count toward the budget.
        """
        estimator = self.estimator(graph, game, reported=reported)
        if plan is not None:
            return plan.allocation(game), estimator
        if isinstance(self.value, Subgraphs):
            return self.value.sampled(game, graph, seed=seed), estimator
        # both sides of few coalitions are evaluated anyway
        fits = self.value.sides > 1 and self._fits(graph, self.most)
        if estimator != "exact" and not fits:
            return self._sampled(game, graph, seed, reported), estimator
        more = self._besides(graph, reported, exact=True)
        most = max(0, (EXACT_BUDGET if self.budget is None else self.budget) - more)
        try:
            return self.value.exact(game, graph, max_coalitions=most), estimator
        except TooManyCoalitions as error:
            if estimator != "exact":
                raise
            advice = f"raise budget=..., or say estimator='auto' or {self.value.estimators[-1]!r}"
            raise TooManyCoalitions(
                error.at_least + more,
                error.limit + more,
                advice,
                connected=error.connected and not more,
            ) from None

    def _sampled(
        self, game: Game, graph: CommunicationGraph, seed: Seed, reported: Coalitions | None
    ) -> Allocation:
        if type(self.value).sampled is Value.sampled:  # it has none, and says so
            return self.value.sampled(game, graph, budget=self.most)
        budget = self._to_sample(game, graph, reported)
        if isinstance(game, GNNGame):
            game.expect(self.most)
        sides = self.value.sides
        with budget_costs(sides, self.most - sides * budget):
            return self.value.sampled(game, graph, budget=budget, seed=seed)

    def _fits(self, graph: CommunicationGraph, limit: int) -> bool:
        """Whether the exact value evaluates at most so many coalitions."""
        limit = max(limit, 0)
        return self.value.count(graph, limit) <= limit

    def _besides(
        self,
        graph: CommunicationGraph,
        reported: Coalitions | None,
        *,
        exact: bool,
        alone: bool = False,
    ) -> int:
        """How many of the reported coalitions are not evaluated anyway.

        ``alone`` says that single players are evaluated.
        """
        if reported is None:
            return 0
        known = self.value.certain(graph, reported, exact=exact)
        return int(np.count_nonzero(~(known | (alone & (reported.sum(axis=1) == 1)))))

    def _to_sample(self, game: Game, graph: CommunicationGraph, reported: Coalitions | None) -> int:
        """How many coalitions of the game that is played a sampler may evaluate in the budget.

        Some of the budget is left for single players that the baseline needs, unless the sampler
        asks for all of them anyway, for coalitions that are reported, and half of it for
        complements.
        """
        n, parts, budget = graph.num_nodes, len(graph.components), self.most
        alone = isinstance(game, GNNGame) and game.baseline_from_singletons
        two_sided = self.value.sides > 1
        singles = np.eye(n, dtype=np.bool_)
        included = alone and bool(self.value.certain(graph, singles, exact=False).all())
        besides = self._besides(graph, reported, exact=False, alone=alone)
        reserved = besides + (n if alone and not included else 0)
        least = n + sum(len(part) > 1 for part in graph.components) * included
        if two_sided:
            # all components together, too, are evaluated
            least = 2 * least + (1 if parts > 1 else -1)
        if budget < least + reserved and (alone or two_sided or besides):
            smallest = self._smallest(graph, least + reserved, reported)
            raise ValueError(
                f"budget must be at least {smallest} for {n} nodes"
                + (f" in {parts} components" if besides and parts > 1 else "")
                + (" that are evaluated with their complements" if two_sided else "")
                + (" and baseline='singletons'" if alone else "")
                + f" (got {budget})"
            )
        return pairs_within(graph, budget - reserved) if two_sided else budget - reserved

    def _smallest(
        self, graph: CommunicationGraph, sampled: int, reported: Coalitions | None
    ) -> int:
        """The smallest valid budget: that of a sampler, unless the exact value needs less."""
        if self.value.estimator != "auto" and self.value.sides == 1:
            return sampled
        more = self._besides(graph, reported, exact=True)
        return bisect_left(
            range(sampled), True, key=lambda budget: self._fits(graph, budget - more)
        )
