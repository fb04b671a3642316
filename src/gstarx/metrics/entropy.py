"""Entropy of scores, a measure of sparsity before any selection (section 5.3, Appendix A.5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from gstarx.metrics.selection import as_scores

_RULES = ("clip", "absolute")
#: The share of nodes of the paper's two sparse reference distributions.
_SHARE = 0.25


def entropy_sparsity(scores: ArrayLike, *, negative: str = "clip") -> float:
    """Entropy of normalized scores in nats: the lower, the sparser.

    The definition divides scores by their sum, which makes no sense if some are negative. There are
    two rules for them: ``"clip"`` sets them to 0, because they oppose the class, and ``"absolute"``
    takes their absolute values, so that they count as much as positive scores.

    Parameters
    ----------
    scores
        A score per node.
    negative
        ``"clip"`` or ``"absolute"``.

    Returns
    -------
    float
        Between 0 (one node has the whole score) and ``log(n)``. If no score is positive, so that
        nothing can be normalized, ``log(n)``: no node stands out.

    Examples
    --------
    >>> entropy_sparsity([1, 0, 0, 0]), round(entropy_sparsity([2, 2, -3, 0]), 6)
    (0.0, 0.693147)
    """
    if negative not in _RULES:
        valid = ", ".join(map(repr, _RULES))
        raise ValueError(f"negative must be one of {valid} (got {negative!r})")
    values = as_scores(scores)
    if not len(values):
        raise ValueError("scores must not be empty: there is no distribution over no nodes")
    sizes = np.maximum(values, 0.0) if negative == "clip" else np.abs(values)
    if not sizes.any():
        return math.log(len(sizes))
    # scaled first, so that tiny and huge scores neither vanish nor overflow in the sum
    shares = sizes / sizes.max()
    shares = shares[shares > 0] / shares.sum()
    return max(0.0, float(-(shares * np.log(shares)).sum()))


def uniform_entropy(num_nodes: int, share: float = 1.0) -> float:
    """Entropy of equal scores on a share of the nodes: ``log(share n)``, the paper's references.

    ``Uniform(n)`` is the least sparse output; ``Uniform(0.25 n)`` a practical lower bound. A share
    is at least one node, here and below.

    >>> round(uniform_entropy(25), 4), round(uniform_entropy(25, 0.25), 4)
    (3.2189, 1.8326)
    """
    return math.log(_expected_count(num_nodes, share))


def poisson_entropy(num_nodes: int, share: float = _SHARE) -> float:
    """Entropy of a Poisson distribution with mean ``share n``, the paper's realistic reference.

    >>> round(poisson_entropy(25), 4)
    2.3204
    """
    mean = _expected_count(num_nodes, share)
    # terms far beyond the mean are negligible
    counts = np.arange(int(mean + 20 * math.sqrt(mean) + 40))
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    logs = counts * math.log(mean) - mean - log_factorials
    return float(-(np.exp(logs) * logs).sum())


def _expected_count(num_nodes: int, share: float) -> float:
    if num_nodes < 1:
        raise ValueError(f"num_nodes must be at least 1 (got {num_nodes!r})")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1] (got {share!r})")
    # a share is at least one node: that gives the paper's rows where graphs are tiny
    return max(1.0, share * num_nodes)
