"""A surrogate for a game: a ridge regression on what a coalition contains.

Its features are the nodes, edges and two-edge paths that lie inside a coalition, each as it is and
divided by the coalition's size, because a network that averages over nodes sees shares and one that
sums sees counts. The plain node indicators carry no penalty, so that an additive game is reproduced
exactly whatever sample it is fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Worths
from gstarx.graphs import CommunicationGraph, Masks, unpack

_PENALTY = 1e-3
#: Feature cells computed at once (16 MB), and kept for the next pass (64 MB).
_CELLS = 1 << 21
_KEPT_CELLS = 1 << 23
_REFINEMENTS = 4
#: Predictions of many coalitions of so many players at most come from a table of all of them.
_MOST_TABLED = 20
#: At least this many fitted coalitions per feature, and never more features than this.
_ROWS_PER_FEATURE = 5
_MAX_FEATURES = 600


@dataclass(frozen=True)
class Features:
    """The features of a coalition: which sets of nodes lie inside it."""

    num_nodes: int
    #: Groups of node sets, (m, 1), (m, 2) and (m, 3): single nodes, edges, two-edge paths.
    patterns: tuple[NDArray[np.int64], ...]
    #: Whether there are a constant, one over the coalition's size, and copies divided by the size.
    shares: bool
    #: How many of the groups have such copies.
    divided: int = 3

    @classmethod
    def choose(cls, graph: CommunicationGraph, rows: int, *, shares: bool = True) -> Features:
        """The richest features that ``rows`` fitted coalitions can carry."""
        n = graph.num_nodes
        max_width = min(rows // _ROWS_PER_FEATURE, _MAX_FEATURES)
        features = cls(n, (np.arange(n)[:, None],), shares)
        if features.width > _MAX_FEATURES:
            features = replace(features, divided=0)
        paths = int((graph.degrees * (graph.degrees - 1) // 2).sum())
        for count, patterns_of in ((len(graph.edges), _edges), (paths, two_edge_paths)):
            if features.width + (1 + shares) * count > max_width:
                break
            features = replace(features, patterns=(*features.patterns, patterns_of(graph)))
        return features

    @property
    def width(self) -> int:
        """Number of columns."""
        counts = list(map(len, self.patterns))
        return sum(counts) + (2 + sum(counts[: self.divided]) if self.shares else 0)

    @property
    def free(self) -> int:
        """Number of leading columns without a penalty."""
        return self.num_nodes + self.shares

    @property
    def by_size(self) -> tuple[int, int]:
        """The columns of a constant and of one over the coalition's size, if there are shares."""
        return 0, 1 + sum(map(len, self.patterns))

    def columns(
        self,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]]:
        """Groups of patterns, their columns, and those of their copies if there are any."""
        plain, divided = int(self.shares), self.by_size[1] + 1
        for group, pattern in enumerate(self.patterns):
            columns = np.arange(len(pattern))
            copied = self.shares and group < self.divided
            yield pattern, plain + columns, divided + columns if copied else None
            plain, divided = plain + len(pattern), divided + len(pattern)

    def of(self, masks: Masks) -> NDArray[np.float64]:
        """The feature matrix (k, width) of packed coalitions."""
        members = unpack(masks, self.num_nodes)
        # a node alone is in a coalition or not: nothing to look up
        inside = [
            members if pattern.shape[1] == 1 else members[:, pattern].all(axis=2)
            for pattern in self.patterns
        ]
        if not self.shares:
            return np.hstack(inside).astype(np.float64)
        always = np.ones((len(members), 1), dtype=np.bool_)
        copied = np.hstack([always, *inside[: self.divided]])
        size = members.sum(axis=1, keepdims=True)
        return np.hstack([always, *inside, copied / size])

    def blocks(self, masks: Masks) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The feature matrix a few rows at a time, each with the rows it is of."""
        rows = max(1, _CELLS // max(1, self.width))
        for first in range(0, len(masks), rows):
            block = slice(first, first + rows)
            yield block, self.of(masks[block])


@dataclass(frozen=True)
class Surrogate:
    """A linear function of features."""

    features: Features
    #: (width, q)
    coefficients: NDArray[np.float64]

    @staticmethod
    def fit(
        features: Features, masks: Masks, worths: Worths, importance: NDArray[np.float64]
    ) -> FittedSurrogate:
        """Weighted ridge regression of worths (k, q) on the features of packed coalitions."""
        design = Design(features, masks)
        weight = (importance / importance.mean())[:, None]
        penalty = np.full(features.width, _PENALTY * len(masks))
        # the jitter only decides between fits that are equally good
        penalty[: features.free] = 1e-9 * len(masks)
        gram = design.gram(weight)
        inverse = np.linalg.inv(gram + np.diag(penalty)).astype(np.float64)
        # the additive part first: of an additive game, nothing remains for jitter and penalty
        nodes = slice(features.free - features.num_nodes, features.free)
        additive = design.solved(gram, nodes, worths, weight)
        rest = worths - design.times(additive, nodes)
        coefficients = inverse @ design.transposed(rest * weight)
        coefficients[nodes] += additive
        residuals = worths - design.times(coefficients)
        leverage = weight[:, 0] * design.diagonal(inverse)
        # the normal equations' matrix without the penalty is that with it less the penalty
        held = weight[:, 0] * design.diagonal(inverse @ (penalty[:, None] * inverse))
        remaining = np.maximum(1.0 - leverage - held, np.maximum(1.0 - leverage, 1e-6) ** 2)
        return FittedSurrogate(
            features, coefficients, residuals, leverage, remaining, weight, inverse, design
        )

    def shared_equally(self) -> NDArray[np.float64]:
        """The Myerson value (n, q) of a surrogate without shares, exactly.

        It is a sum of unanimity games on connected patterns, and each shares its worth equally.
        """
        values = np.zeros((self.features.num_nodes, self.coefficients.shape[1]))
        start = 0
        for pattern in self.features.patterns:
            worth = self.coefficients[start : start + len(pattern)] / pattern.shape[1]
            for place in pattern.T:
                np.add.at(values, place, worth)
            start += len(pattern)
        return values

    def predict(self, masks: Masks) -> Worths:
        """Predicted worths (k, q) of packed coalitions."""
        n = self.features.num_nodes
        if n <= _MOST_TABLED and 4 * len(masks) >= 2**n:
            return self._looked_up(masks[:, 0])
        out = np.empty((len(masks), self.coefficients.shape[1]))
        for block, design in self.features.blocks(masks):
            out[block] = design @ self.coefficients
        return out

    def _looked_up(self, masks: NDArray[np.uint64]) -> Worths:
        """The same from a table of all coalitions: every pattern is added to those it lies in."""
        n, games = self.features.num_nodes, self.coefficients.shape[1]
        tables = np.zeros((2, 2**n, games))
        if self.features.shares:
            tables[:, 0] = self.coefficients[list(self.features.by_size)]
        for pattern, *columns in self.features.columns():
            inside = (1 << pattern).sum(axis=1)
            for table, column in zip(tables, columns, strict=True):
                if column is not None:
                    np.add.at(table, inside, self.coefficients[column])
        for bit in range(n):
            halves = tables.reshape(2, -1, 2, 2**bit, games)
            halves[:, :, 1] += halves[:, :, 0]
        plain, divided = tables
        size = np.bitwise_count(masks)[:, None]
        worths: Worths = plain[masks] + divided[masks] / size
        return worths


@dataclass(frozen=True)
class FittedSurrogate(Surrogate):
    """A surrogate, and how it depends on the worths that it was fitted to."""

    #: What the fit leaves of every worth, (k, q).
    residuals: NDArray[np.float64]
    #: By how much the prediction of a coalition changes with the worth of that coalition, (k,).
    leverage: NDArray[np.float64]
    #: The variance of every residual, as a share of that of a worth that no feature explains, (k,):
    #: one less the leverage, were it not for the penalty.
    remaining: NDArray[np.float64]
    #: Weight of every coalition in the fit, (k, 1), the inverse of the normal equations' matrix,
    #: and the features: the coefficients are ``inverse @ features.T @ (weight * worths)``.
    weight: NDArray[np.float64]
    inverse: NDArray[np.float64]
    design: Design


class Design:
    """The feature matrix of many coalitions, kept if it is small and recomputed if not."""

    def __init__(self, features: Features, masks: Masks) -> None:
        self.features, self.masks = features, masks
        small = len(masks) * features.width <= _KEPT_CELLS
        self.kept = list(features.blocks(masks)) if small else None

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The matrix a few rows at a time, each with the rows it is of."""
        return iter(self.kept) if self.kept is not None else self.features.blocks(self.masks)

    def gram(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """The matrix transposed, times weights (k, 1), times itself."""
        gram = np.zeros((self.features.width, self.features.width))
        for block, design in self.blocks():
            gram += design.T @ (design * weight[block])
        return gram

    def times(
        self, coefficients: NDArray[np.float64], columns: slice = slice(None)
    ) -> NDArray[np.float64]:
        """Some of the columns times coefficients (c, q)."""
        parts = [design[:, columns] @ coefficients for _, design in self.blocks()]
        return np.concatenate(parts)

    def transposed(
        self, numbers: NDArray[np.float64], columns: slice = slice(None)
    ) -> NDArray[np.float64]:
        """Some of the columns transposed, times numbers (k, q)."""
        total: NDArray[np.float64] = np.zeros((1, numbers.shape[1]))
        for block, design in self.blocks():
            total = total + design[:, columns].T @ numbers[block]
        return total

    def diagonal(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every row times ``inverse`` times itself, (k,)."""
        parts = [((d @ inverse) * d).sum(axis=1) for _, d in self.blocks()]
        return np.concatenate(parts)

    def solved(
        self,
        gram: NDArray[np.float64],
        columns: slice,
        worths: Worths,
        weight: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Least squares on some of the columns, with iterative refinement of rounding errors."""
        block = gram[columns, columns]
        scale = np.trace(block) / max(1, len(block))
        block = block + np.diag(np.full(len(block), 1e-12 * scale + 1e-300))
        factor = np.linalg.inv(block)
        coefficients = np.zeros((len(block), worths.shape[1]))
        for _ in range(_REFINEMENTS):
            rest = worths - self.times(coefficients, columns)
            coefficients += factor @ self.transposed(rest * weight, columns)
        return coefficients


def _edges(graph: CommunicationGraph) -> NDArray[np.int64]:
    return graph.edges


def two_edge_paths(graph: CommunicationGraph) -> NDArray[np.int64]:
    """Every path of two edges once, as rows (end, middle, end)."""
    ends = np.vstack([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    starts = np.concatenate([[0], np.cumsum(graph.degrees)])
    rows = []
    for middle, degree in enumerate(graph.degrees):
        around = ends[starts[middle] : starts[middle + 1], 1]
        i, j = np.triu_indices(degree, 1)
        rows.append(np.stack([around[i], np.full(len(i), middle), around[j]], axis=1))
    return np.concatenate(rows) if rows else np.zeros((0, 3), dtype=np.int64)
