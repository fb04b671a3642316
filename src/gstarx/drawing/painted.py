"""Scores and a selection, validated, and their description in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing.colors import score_color
from gstarx.drawing.svg import signed
from gstarx.metrics import as_mask, as_scores

_NAMED = 5


@dataclass(frozen=True)
class Painted:
    """Nodes with their scores, colors and outlines.

    Attributes
    ----------
    scores
        A score per node, (n,).
    selected
        Which nodes are outlined, (n,).
    limit
        The score at which colors saturate.
    names
        The name of each node.
    """

    scores: NDArray[np.float64]
    selected: NDArray[np.bool_]
    limit: float
    names: tuple[str, ...]

    @classmethod
    def of(cls, scores: Any, selected: Any, limit: float | None, names: Sequence[str]) -> Painted:
        """Validate scores, selection and limit for nodes with these names."""
        count = len(names)
        if not count:
            raise ValueError("there is nothing to draw: the graph has no nodes")
        values = as_scores(scores, count)
        mask = np.zeros(count, dtype=np.bool_) if selected is None else as_mask(selected, count)
        return cls(values, mask, color_limit([values], limit), tuple(map(str, names)))

    def color(self, node: int) -> str:
        """The color of a node."""
        return score_color(float(self.scores[node]), self.limit)

    def caption(self, node: int) -> str:
        """A node and its score in words."""
        return f"{self.names[node]} {signed(float(self.scores[node]))}"

    def described(self, noun: str = "node") -> str:
        """The picture in words: the highest and lowest scores, and what is selected."""
        order = np.argsort(-self.scores, kind="stable")
        high = [self.caption(i) for i in order[:_NAMED] if self.scores[i] > 0]
        low = [self.caption(i) for i in order[::-1][:_NAMED] if self.scores[i] < 0]
        outlined = [self.names[i] for i in np.flatnonzero(self.selected)]
        count = len(self.scores)
        sentences = [f"{count} {noun}{'s' * (count != 1)}."]
        if high:
            sentences.append(f"Highest scores: {', '.join(high)}.")
        if low:
            sentences.append(f"Lowest scores: {', '.join(low)}.")
        if not high and not low:
            sentences.append("All scores are 0.")
        if outlined:
            more = f" and {len(outlined) - 20} more" if len(outlined) > 20 else ""
            sentences.append(f"Selected: {', '.join(outlined[:20])}{more}.")
        return " ".join(sentences)


def color_limit(scores: Sequence[NDArray[np.float64]], limit: float | None) -> float:
    """The score at which colors saturate: ``limit``, or the largest absolute one; 1 if all are 0.

    >>> color_limit([np.array([0.5, -2.0]), np.array([1.0])], None)
    2.0
    """
    if limit is None:
        largest = max(
            (float(np.abs(of_graph).max(initial=0.0)) for of_graph in scores), default=0.0
        )
        # a subnormal number cannot be divided by
        return largest if largest > 1e-300 else 1.0
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.number):
        raise TypeError(f"limit must be a number above 0, or None (got {limit!r})")
    if not (math.isfinite(limit) and limit > 0):
        raise ValueError(f"limit must be a number above 0, or None (got {limit!r})")
    return float(limit)
