"""Options that all game-theoretic explanations share: the value and its estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gstarx.games import Game
from gstarx.gnn import GNNGame
from gstarx.graphs import CommunicationGraph, TooManyCoalitions, as_size
from gstarx.registry import EXACT_BUDGET, SAMPLED_BUDGET
from gstarx.values import (
    Allocation,
    SubgraphPlan,
    SubgraphSampling,
    banzhaf_value,
    banzhaf_value_sampled,
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
        ``"hn"``, ``"myerson"``, ``"shapley"``, ``"banzhaf"``, or ``"position"``: what edges get as
        links between nodes, see :func:`gstarx.values.position_value`; for ``players="edges"``.
    estimator
        ``"auto"``: exact whenever the coalitions that the value needs fit the budget, its
        consistent sampler otherwise. ``"exact"``; ``"growth"`` (HN); ``"sampled"`` (the others);
        ``"subgraphs"``: the paper's Algorithm 3, for HN, Myerson and Shapley.
    budget
        The most coalitions to evaluate; not used by ``"subgraphs"``.
    max_sample_size, num_samples, sampling, inner, tau, superadditive
        Options of :func:`gstarx.values.subgraph_sampled`, for ``"subgraphs"`` only.
    presence
        For the Banzhaf value: the probability that another node is present.
    """

    estimator: str = "auto"
    budget: int | None = None
    presence: float = 0.5
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
        if self.budget is not None:
            as_size(self.budget, name="budget")

    def chosen_estimator(self, graph: CommunicationGraph, game: Game | None = None) -> str:
        """The estimator for a graph: ``"auto"`` resolved by counting its coalitions.

        Without a budget, more of them are counted where those of the game share embeddings.
        """
        if self.estimator != "auto":
            return self.estimator
        fits = self._coalitions_within(graph, self._sample_budget)
        if not fits and self.budget is None and isinstance(game, GNNGame):
            fits = self._coalitions_within(graph, EXACT_BUDGET) and game.shares()
        return "exact" if fits else ESTIMATORS[self.value][-1]

    @property
    def _sample_budget(self) -> int:
        return SAMPLED_BUDGET if self.budget is None else self.budget

    def _coalitions_within(self, graph: CommunicationGraph, limit: int) -> bool:
        if self.value in ("shapley", "banzhaf"):
            return graph.num_nodes < 63 and 2**graph.num_nodes - 1 <= limit
        return graph.count_connected_coalitions(limit) <= limit

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
    ) -> tuple[Allocation, str]:
        """Compute the value of every node, following ``plan`` if given, and name the estimator."""
        if plan is not None:
            return plan.allocation(game), self.estimator
        estimator = self.chosen_estimator(graph, game)
        try:
            return self._allocate(estimator, game, graph, seed), estimator
        except TooManyCoalitions as error:
            if estimator != "exact":
                raise
            advice = f"raise budget=..., or say estimator='auto' or {ESTIMATORS[self.value][-1]!r}"
            raise TooManyCoalitions(
                error.at_least, error.limit, advice, connected=error.connected
            ) from None

    def _allocate(
        self,
        estimator: str,
        game: Game,
        graph: CommunicationGraph,
        seed: int | np.random.Generator | None,
    ) -> Allocation:
        if estimator == "subgraphs":
            # a truncated iteration was requested by name, and the result records it: no warning
            return sample_subgraphs(game, graph, self, seed=seed)
        most = EXACT_BUDGET if self.budget is None else self.budget
        if self.value == "banzhaf":
            known = {"presence": self.presence}
            if estimator == "exact":
                return banzhaf_value(game, graph.num_nodes, max_coalitions=most, **known)
            return banzhaf_value_sampled(
                game, graph.num_nodes, budget=self._sample_budget, seed=seed, **known
            )
        if self.value == "shapley":
            if estimator == "exact":
                return shapley_value(game, graph.num_nodes, max_coalitions=most)
            return shapley_value_sampled(
                game, graph.num_nodes, budget=self._sample_budget, seed=seed
            )
        if estimator == "exact":
            exact = hn_value if self.value == "hn" else myerson_value
            return exact(game, graph, max_coalitions=most)
        sampled = hn_value_growth_sampled if self.value == "hn" else myerson_value_sampled
        return sampled(game, graph, budget=self._sample_budget, seed=seed)
