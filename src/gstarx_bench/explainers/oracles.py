"""Oracles: selections that optimize the metric itself, as references for explanations.

They have the interface of explainers so that runs can compute and store them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.explainers.base import NodeExplainer
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask, restored
from gstarx.metrics import SPARSITIES, Judge, Reference, as_reference, selection_size
from gstarx.values import Seed


class BestFound(NodeExplainer):
    """The sets with the highest harmonic fidelity that a search finds, at every sparsity.

    Parameters
    ----------
    sparsities
        For the sizes that belong to them.
    starts, exhaustive_up_to
        As for ``best_of_sizes`` of :class:`gstarx.metrics.Judge`.
    removal, reference
        As for the metrics; the reference may also be a mapping of its range and mean.
    """

    heterogeneous = True

    def __init__(
        self,
        *,
        sparsities: Sequence[float] = SPARSITIES,
        starts: int = 2,
        exhaustive_up_to: int = 20_000,
        removal: str = "remove",
        reference: Reference | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.sparsities = tuple(sparsities)
        self.starts, self.exhaustive_up_to = starts, exhaustive_up_to
        self.removal, self.reference = removal, as_reference(reference)

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """The best sets that a search finds."""
        judge = Judge(model, task=task, removal=self.removal, reference=self.reference)
        found = judge.best_of_sizes(
            data,
            [selection_size(int(data.num_nodes or 0), level) for level in self.sparsities],
            starts=self.starts,
            exhaustive_up_to=self.exhaustive_up_to,
            seed=seed,
            target=task.one_target,
            index=task.index,
        )
        selections = [selection for _, selection in found]
        best_first = sorted(selections, key=lambda one: -one.evaluation.harmonic_fidelity)
        return Attribution(
            None,
            sets=tuple(one.nodes for one in best_first),
            evaluations=max((one.evaluations for one in selections), default=0),
            exact=all(one.optimal for one in selections),
        )


class Refined(NodeExplainer):
    """Another explainer's selections after a search that optimizes the metric, at every sparsity.

    Parameters
    ----------
    of
        The other explainer, by name; one that needs no training.
    options
        Its options.
    budget
        Evaluations of the search for every selection.
    sparsities
        For the sizes that belong to them.
    removal, baseline
        As for the metrics, and passed on to explainers that take them.
    reference
        As for the metrics, or a mapping of its range and mean.
    """

    heterogeneous = True

    def __init__(
        self,
        *,
        of: str = "random",
        options: Mapping[str, Any] | None = None,
        budget: int = 500,
        sparsities: Sequence[float] = SPARSITIES,
        removal: str = "remove",
        baseline: Any = None,
        reference: Reference | Mapping[str, Any] | None = None,
    ) -> None:
        from gstarx.explainers import create, options_of, packages_of

        super().__init__()
        shared = {"removal": removal, "baseline": baseline}
        taken = {name: value for name, value in shared.items() if name in options_of(of)}
        self.of = create(of, **{**taken, **(options or {})})
        self.needed_packages = packages_of(of, self.of)
        if self.of.requires_training:
            raise ValueError(f"refined takes explainers that need no training (got {of!r})")
        self.budget, self.sparsities, self.removal = budget, tuple(sparsities), removal
        self.reference = as_reference(reference)

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """The other explainer's selections, refined."""
        judge = Judge(model, task=task, removal=self.removal, reference=self.reference)
        with restored(model):
            before = self.of.explain(
                model, data, target=task.target, index=task.index, task=task, seed=seed
            )
            sizes = {selection_size(int(data.num_nodes or 0), level) for level in self.sparsities}
            refined = [
                judge.refine(
                    data,
                    before.select(size=size),
                    budget=self.budget,
                    target=before.target_class,
                    index=task.index,
                )
                for size in sorted(sizes, reverse=True)
            ]
        spent = (before.evaluations or 0) + sum(one.evaluations for one in refined)
        # largest first, so that every size gets its own
        sets: tuple[np.ndarray[Any, np.dtype[np.int64]], ...] = tuple(one.nodes for one in refined)
        return Attribution(None, sets=sets, target=before.target_class, evaluations=spent)
