"""Other fidelities: PyG's, of labels that flip, and one under random partial deletion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.metrics.faithfulness import NodesLike, as_parts, losses, require_nodes
from gstarx.metrics.probabilities import Judging, part_probabilities


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
    judge: Judging,
    data: Data,
    nodes: NodesLike,
    *,
    positive_weight: float = 0.5,
    negative_weight: float = 0.5,
    index: int | None = None,
) -> LabelFidelity:
    """PyG's fidelity of a set of nodes: it counts labels that flip, not probabilities.

    For comparison with PyG's own numbers. A set that moves the probability from 0.99 to 0.51 counts
    as 0 here. The empty graph has no label, which counts as a change.

    Parameters
    ----------
    data, nodes, index
        As for one selection.
    positive_weight, negative_weight
        Of the characterization score; they sum to 1.
    """
    task = judge.of(index)
    if task.mode == "regression":
        raise ValueError("a regression model predicts no labels: use metrics.evaluate instead")
    require_nodes(judge, "PyG's fidelity")
    inside = as_parts(data, [nodes])
    (probabilities,) = part_probabilities(
        judge.model, [data], [np.concatenate([inside, ~inside])], [None], task
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


@dataclass(frozen=True)
class RobustFidelity:
    """Fidelities under random partial deletion, with their standard errors.

    Attributes
    ----------
    fidelity, inverse_fidelity
        Means over the random deletions.
    fidelity_std_error, inverse_fidelity_std_error
        Standard errors of these means.
    """

    fidelity: float
    inverse_fidelity: float
    fidelity_std_error: float
    inverse_fidelity_std_error: float


def robust_fidelity(
    judge: Judging,
    data: Data,
    nodes: NodesLike,
    *,
    delete_inside: float = 0.1,
    delete_outside: float = 0.9,
    samples: int = 50,
    seed: int | np.random.Generator | None = None,
    target: int | None = None,
    index: int | None = None,
) -> RobustFidelity:
    """Fidelity under random partial deletion, which stays closer to graphs the model has seen.

    For the fidelity, every selected node is deleted with probability ``delete_inside``; for the
    inverse fidelity, every other node with probability ``delete_outside`` (Zheng et al., "Towards
    Robust Fidelity for Evaluating Explainability of Graph Neural Networks", ICLR 2024, there for
    edges). If both probabilities are 1, these are the plain fidelities.

    Parameters
    ----------
    data, nodes, target, index
        As for one selection.
    delete_inside, delete_outside
        Probabilities of deletion, in [0, 1].
    samples
        Random deletions of each kind.
    seed
        The same seed gives the same numbers.
    """
    for name, chance in (("delete_inside", delete_inside), ("delete_outside", delete_outside)):
        if not 0 <= chance <= 1:
            raise ValueError(f"{name} must lie in [0, 1] (got {chance!r})")
    if samples < 1:
        raise ValueError(f"samples must be at least 1 (got {samples!r})")
    generator = np.random.default_rng(seed)
    (inside,) = as_parts(data, [nodes])
    shape = (samples, len(inside))
    without = ~(inside & (generator.random(shape) < delete_inside))
    alone = inside | (generator.random(shape) >= delete_outside)
    task = judge.of(index)
    require_nodes(judge, "robust fidelity")
    parts = np.concatenate([without, alone])
    (probabilities,) = part_probabilities(judge.model, [data], [parts], [target], task)
    target_class = probabilities.target
    lost = probabilities.whole[target_class] - probabilities.parts[:, target_class]
    one, other = np.split(losses(lost, probabilities.signed_range), 2)
    return RobustFidelity(
        float(one.mean()), float(other.mean()), _std_error(one), _std_error(other)
    )


def _std_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
