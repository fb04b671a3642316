"""Metrics of selections of one model, as the methods of one object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx.metrics.comparison import Difference, paired_bootstrap
from gstarx.metrics.faithfulness import (
    Faithfulness,
    evaluate_many,
    evaluated,
    fidelity_curve,
    random_selections,
)
from gstarx.metrics.optimum import best_selection, best_selections, refine
from gstarx.metrics.probabilities import Judging
from gstarx.metrics.variants import label_fidelity, robust_fidelity


@dataclass(frozen=True)
class Judge(Judging):
    """How faithful selections of nodes, or of other players, are to what a model says.

    Parameters
    ----------
    model
        Any PyG model or callable, as for :class:`gstarx.GNNGame`; left exactly as it was.
    task
        What the model does, as for :func:`gstarx.explain`.
    removal
        How nodes are removed: ``"remove"``, ``"split"``, ``"zero_filling"``, or a function. Use
        the same for all explainers that are compared.
    players
        What is selected and removed, as for :func:`gstarx.explain`. Sparsity is a share of the
        players.
    reference
        For regression: the range and the mean of the model's outputs, see
        :func:`gstarx.metrics.reference_of`.
    num_hops
        For node and edge tasks, where only the nodes around the target can be selected and
        sparsity is a share of them: within how many hops.
    batch_nodes
        Nodes per forward pass.

    Notes
    -----
    Without any edge or feature, the model still has an output, which is used for an empty selection
    of them. For nodes and groups, as in the published code, the empty graph has probability 0: the
    inverse fidelity of no nodes, and the fidelity of all nodes, are the full probability.

    For regression, a difference of outputs is divided by the reference's range, counts as a loss if
    it moves toward the reference's mean, which is used for the empty graph, and is clipped to [-1,
    1].

    Examples
    --------
    >>> import torch
    >>> from gstarx.models import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> judge = Judge(GCN(3, 8, 2))
    >>> judge(data, [0, 1]).sparsity
    0.33333333333333337
    >>> judge.best(data, 2).status
    'optimal'
    """

    __call__ = evaluated
    many = evaluate_many
    random = random_selections
    curve = fidelity_curve
    best = best_selection
    best_of_sizes = best_selections
    refine = refine
    labels = label_fidelity
    robust = robust_fidelity

    def compare(
        self,
        graphs: Iterable[Data],
        first: Iterable[Any],
        second: Iterable[Any],
        *,
        metric: str = "harmonic_fidelity",
        target: Any = None,
        index: int | None = None,
        seed: int | np.random.Generator | None = 0,
    ) -> Difference:
        """By how much a metric of first selections is above that of second ones, with an interval.

        Parameters
        ----------
        graphs, target, index
            As for :meth:`many`.
        first, second
            A set of nodes for every graph.
        metric
            The name of a metric, such as ``"fidelity"``.
        seed
            Of the bootstrap over graphs.
        """
        one_of(metric, [field.name for field in fields(Faithfulness)], name="metric")
        listed, sets = list(graphs), [list(first), list(second)]
        if {len(listed)} != {*map(len, sets)}:
            raise ValueError(
                f"first and second must have a set for each of {len(listed)} graphs "
                f"(got {len(sets[0])} and {len(sets[1])})"
            )
        pairs = [list(pair) for pair in zip(*sets, strict=True)]
        both = self.many(listed, pairs, target=target, index=index)
        one, other = ([getattr(found[at], metric) for found in both] for at in (0, 1))
        return paired_bootstrap(one, other, seed=seed)
