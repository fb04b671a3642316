"""GraphSVX: Shapley values of nodes by weighted regression on sampled coalitions.

Duval and Malliaros, "GraphSVX: Shapley Value Explanations for Graph Neural Networks", ECML PKDD
2021, with nodes as players. Coalitions are drawn from both ends, small ones and their complements
first, where the kernel has its weight.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx.explainers.base import (
    NodeExplainer,
    game_attribution,
    one_target_game,
    output_payoff,
)
from gstarx.explanation import Attribution
from gstarx.games import Game, evaluate
from gstarx.gnn import GameOptions, ModelTask, Passes, restored
from gstarx.graphs import Coalitions, unpack
from gstarx.values import Seed

MASKS = ("Smarter", "SmarterSeparate")
EFFICIENCIES = ("hard", "soft", "none")
#: The original's weight of the full and the empty coalition.
_ENDS = 1000.0
_FLOOR = 1e-40
#: Subsets of one size are listed up to this many, and drawn beyond.
_LISTED = 50_000


class GraphSVX(NodeExplainer):
    """Kernel regression on coalitions of nodes.

    Parameters
    ----------
    num_samples
        Coalitions to evaluate, the full and the empty one included; by default ``2 n + 2`` and at
        least 200, and never more than there are. With all of them the scores are exact.
    masks
        ``"SmarterSeparate"``, which takes small coalitions and their complements up to
        ``max_size``, or ``"Smarter"``, which leaves a tenth of the budget to random coalitions.
    max_size
        Largest coalition that is taken systematically; beyond it they are drawn at random, as
        likely as the kernel weights them, so that with more samples the scores become exact.
    efficiency
        ``"hard"``: scores sum to the worth of the graph. ``"soft"``: the original's weight of 1000
        on the full and the empty coalition. ``"none"``: these two are dropped.
    removal
        As in :class:`gstarx.GNNGame`. The published experiments used ``"split"``.
    batch_nodes, share
        As in :class:`gstarx.GNNGame`.
    seed
        Inside PyG's ``Explainer``: the seed; :meth:`explain` takes its own.
    """

    heterogeneous = True

    def __init__(
        self,
        *,
        num_samples: int | None = None,
        masks: str = "SmarterSeparate",
        max_size: int = 3,
        efficiency: str = "hard",
        removal: Any = "remove",
        batch_nodes: int | None = None,
        share: bool | str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if num_samples is not None and num_samples < 2:
            raise ValueError(f"num_samples must be None or at least 2 (got {num_samples!r})")
        if max_size < 1:
            raise ValueError(f"max_size must be at least 1 (got {max_size!r})")
        self.num_samples = num_samples
        self.masks = one_of(masks, MASKS, name="masks")
        self.max_size = max_size
        self.efficiency = one_of(efficiency, EFFICIENCIES, name="efficiency")
        self.game = GameOptions(removal=removal)
        self.passes = Passes(batch_nodes=batch_nodes, share=share)
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Shapley values by a weighted regression."""
        with restored(model):
            game = one_target_game(
                model,
                data,
                task,
                payoff=output_payoff(task),
                game=self.game,
                passes=self.passes,
            )
            scores = kernel_shapley(
                game,
                game.n,
                num_samples=self.num_samples,
                masks=self.masks,
                max_size=self.max_size,
                efficiency=self.efficiency,
                seed=seed,
            )
        return game_attribution(game, scores)


def kernel_shapley(
    v: Game,
    n: int,
    *,
    num_samples: int | None = None,
    masks: str = "SmarterSeparate",
    max_size: int = 3,
    efficiency: str = "hard",
    seed: int | np.random.Generator | None = None,
) -> NDArray[np.float64]:
    """Shapley values of ``n`` players by the regression that :class:`GraphSVX` documents.

    >>> from gstarx.games import additive_game
    >>> kernel_shapley(additive_game([1.0, 2.0, 3.0]), 3).round(9)
    array([1., 2., 3.])
    """
    if n == 0:
        return np.zeros(0)
    budget = max(2 * n + 2, 200) if num_samples is None else num_samples
    inner, weights = sample_masks(n, budget, masks, max_size, np.random.default_rng(seed))
    full_worth = float(evaluate(v, np.ones((1, n), dtype=np.bool_))[0])
    worths = evaluate(v, inner) if len(inner) else np.zeros(0)
    if efficiency == "hard":
        return _constrained(inner, worths, weights, full_worth)
    rows = np.column_stack([inner, np.ones(len(inner))])
    if efficiency == "soft":
        ends = np.column_stack([np.outer([1.0, 0.0], np.ones(n)), np.ones(2)])
        rows = np.concatenate([rows, ends])
        worths = np.concatenate([worths, [full_worth, 0.0]])
        weights = np.concatenate([weights, [_ENDS, _ENDS]])
    root = np.sqrt(np.maximum(weights, _FLOOR))
    scores: NDArray[np.float64] = np.linalg.lstsq(rows * root[:, None], worths * root)[0][:n]
    return scores


def kernel_weights(n: int) -> NDArray[np.float64]:
    """Weight of a coalition of ``n`` players by its size, 0 to ``n``; none for either end.

    ``(n - 1) / (binom(n, s) s (n - s))``, in logarithms, so that no binomial overflows.

    >>> kernel_weights(4)
    array([0.   , 0.25 , 0.125, 0.25 , 0.   ])
    """
    weights = np.zeros(n + 1)
    for s in range(1, n):
        choices = lgamma(n + 1) - lgamma(s + 1) - lgamma(n - s + 1)
        weights[s] = np.exp(np.log(n - 1) - choices - np.log(s) - np.log(n - s))
    return weights


def sample_masks(
    n: int, num_samples: int, masks: str, max_size: int, generator: np.random.Generator
) -> tuple[Coalitions, NDArray[np.float64]]:
    """Coalitions (k, n) between the empty and the full one, and the kernel weight each stands for.

    All of them if they fit into ``num_samples`` minus the two ends. Otherwise pairs of a subset
    and its complement by size, as many sizes as fit, and random ones of the remaining sizes.
    If only some of a size are taken, they carry the weight of all.
    """
    kernel = kernel_weights(n)
    remaining = num_samples - 2
    if n < 63 and 2**n <= num_samples:
        every = unpack(np.arange(1, max(1, 2**n - 1), dtype=np.uint64)[:, None], n)
        return every, kernel[every.sum(axis=1)]
    rows, weights = [np.zeros((0, n), dtype=np.bool_)], [np.zeros(0)]
    # single nodes are always included, before a tenth is set aside for random coalitions
    systematic = (
        remaining if masks == "SmarterSeparate" else max(9 * remaining // 10, min(remaining, 2 * n))
    )
    size = 0
    while size < min(max_size, (n - 1) // 2) and systematic >= 2:
        size += 1
        subsets = _subsets(n, size, systematic // 2, generator)
        share = comb(n, size) / len(subsets)
        rows += [~subsets, subsets]
        weights += [np.full(len(subsets), kernel[size] * share)] * 2
        systematic -= 2 * len(subsets)
        remaining -= 2 * len(subsets)
    drawn, each = _random_subsets(n, size + 1, remaining, generator)
    return np.concatenate([*rows, drawn]), np.concatenate([*weights, each])


def _subsets(n: int, size: int, most: int, generator: np.random.Generator) -> Coalitions:
    """At most ``most`` distinct subsets of one size, in random order."""
    if comb(n, size) <= _LISTED:
        members = generator.permutation(np.array(list(combinations(range(n), size))))[:most]
    else:
        members = np.argsort(generator.random((min(most, _LISTED), n)), axis=1)[:, :size]
    subsets = np.zeros((len(members), n), dtype=np.bool_)
    subsets[np.arange(len(members))[:, None], members] = True
    return np.unique(subsets, axis=0) if comb(n, size) > _LISTED else subsets


def _random_subsets(
    n: int, smallest: int, count: int, generator: np.random.Generator
) -> tuple[Coalitions, NDArray[np.float64]]:
    """Random subsets of ``smallest`` to ``n - smallest`` nodes, drawn by kernel weight."""
    sizes = np.arange(smallest, n - smallest + 1)
    if not len(sizes) or count < 1:
        return np.zeros((0, n), dtype=np.bool_), np.zeros(0)
    mass = (n - 1) / (sizes * (n - sizes))
    drawn = generator.choice(sizes, size=count, p=mass / mass.sum())
    rank = np.argsort(np.argsort(generator.random((count, n)), axis=1), axis=1)
    return rank < drawn[:, None], np.full(count, mass.sum() / count)


def _constrained(
    inner: Coalitions,
    worths: NDArray[np.float64],
    weights: NDArray[np.float64],
    full_worth: float,
) -> NDArray[np.float64]:
    """The weighted fit whose scores sum to the full worth; if not unique, the most equal one."""
    n = inner.shape[1]
    equal = np.full(n, full_worth / n)
    if not len(inner):
        return equal
    root = np.sqrt(weights / weights.max())
    # fit the remainder by scores that sum to zero
    centered = (inner - inner.mean(axis=1, keepdims=True)) * root[:, None]
    residual = (worths - inner @ equal) * root
    scores: NDArray[np.float64] = equal + np.linalg.lstsq(centered, residual)[0]
    return scores
