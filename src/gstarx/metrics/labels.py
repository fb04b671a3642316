"""PyG's fidelity: whether the predicted label changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.gnn import Model, check_task
from gstarx.metrics.faithfulness import NodesLike, as_parts
from gstarx.metrics.probabilities import PartTask, part_probabilities


@dataclass(frozen=True)
class LabelFidelity:
    """Whether labels flip, and both in one score.

    Attributes
    ----------
    positive
        1 if the label changes without the nodes, else 0 (or the mean over graphs).
    negative
        1 if the label changes with nothing but the nodes, else 0.
    characterization
        Weighted harmonic mean of ``positive`` and ``1 - negative``.
    """

    positive: float
    negative: float
    characterization: float


def label_fidelity(
    model: Model,
    data: Data,
    nodes: NodesLike,
    *,
    removal: Any = "remove",
    positive_weight: float = 0.5,
    negative_weight: float = 0.5,
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | None = None,
    node_type: str | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    keywords: Sequence[str] | None = None,
) -> LabelFidelity:
    """PyG's fidelity of a set of nodes: it counts labels that flip, not probabilities.

    For comparison with PyG's own numbers. A set that moves the probability from 0.99 to 0.51 counts
    as 0 here. The empty graph has no label, which counts as a change.

    Parameters
    ----------
    model, data, nodes, removal,
    mode, task_level, return_type, index, node_type, num_hops, batch_nodes, keywords
        As for :func:`gstarx.metrics.evaluate`.
    positive_weight, negative_weight
        Of the characterization score; they sum to 1.
    """
    if check_task(mode, return_type)[0] == "regression":
        raise ValueError("a regression model predicts no labels: use metrics.evaluate instead")
    task = PartTask(
        mode,
        task_level,
        return_type,
        None,
        index,
        keywords,
        node_type,
        removal,
        num_hops,
        batch_nodes,
    )
    inside = as_parts(data, [nodes])
    (probabilities,) = part_probabilities(
        model, [data], [np.concatenate([inside, ~inside])], [None], task
    )
    kept = inside[:, probabilities.players]
    labels = [
        int(part.argmax()) if present.any() else None
        for part, present in zip(probabilities.parts, np.concatenate([kept, ~kept]), strict=True)
    ]
    alone, without = (float(label != probabilities.target) for label in labels)
    return LabelFidelity(
        without,
        alone,
        characterization_score(
            without, alone, positive_weight=positive_weight, negative_weight=negative_weight
        ),
    )


def characterization_score(
    positive: float,
    negative: float,
    *,
    positive_weight: float = 0.5,
    negative_weight: float = 0.5,
) -> float:
    """The weighted harmonic mean of fidelity+ and 1 - fidelity- (Amara et al., 2022).

    >>> round(characterization_score(0.8, 0.4), 6)
    0.685714
    """
    if not np.isclose(positive_weight + negative_weight, 1.0):
        raise ValueError(
            "positive_weight and negative_weight must sum to 1 "
            f"(got {positive_weight!r} and {negative_weight!r})"
        )
    if not (0 <= positive <= 1 and 0 <= negative <= 1):
        raise ValueError(
            f"positive and negative must lie in [0, 1] (got {positive!r} and {negative!r})"
        )
    if positive == 0 or negative == 1:
        return 0.0
    return 1 / (positive_weight / positive + negative_weight / (1 - negative))
