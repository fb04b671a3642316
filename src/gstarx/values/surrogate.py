"""A cheap stand-in for a game: a ridge regression on what a coalition contains.

Its features are the nodes, edges and two-edge paths that lie inside a coalition, each as it is and
divided by the coalition's size, because a network that averages over nodes sees shares and one that
sums sees counts. The plain node indicators carry no penalty, so that an additive game is reproduced
exactly whatever sample it is fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games.protocol import Worths
from gstarx.graphs.bitmasks import Masks, unpack
from gstarx.graphs.communication import CommunicationGraph

_PENALTY = 1e-3
_BLOCK = 8192
#: At least this many fitted coalitions per feature, and never more features than this.
_ROWS_PER_FEATURE = 5
_MAX_FEATURES = 600


@dataclass(frozen=True)
class Features:
    """What of a coalition the surrogate looks at: sets of nodes that must lie inside it."""

    num_nodes: int
    #: Groups of node sets, (m, 1), (m, 2) and (m, 3): single nodes, edges, two-edge paths.
    patterns: tuple[NDArray[np.int64], ...]
    #: Whether there are a constant and a copy of everything divided by the coalition's size.
    shares: bool

    @classmethod
    def choose(cls, graph: CommunicationGraph, rows: int, *, shares: bool = True) -> Features:
        """The richest features that ``rows`` fitted coalitions can carry."""
        room = min(rows // _ROWS_PER_FEATURE, _MAX_FEATURES)
        chosen = cls(graph.num_nodes, (np.arange(graph.num_nodes)[:, None],), shares)
        paths = int((graph.degrees * (graph.degrees - 1) // 2).sum())
        for count, patterns_of in ((len(graph.edges), _edges), (paths, two_edge_paths)):
            if chosen.width + (1 + shares) * count > room:
                break
            chosen = cls(graph.num_nodes, (*chosen.patterns, patterns_of(graph)), shares)
        return chosen

    @property
    def width(self) -> int:
        """Number of columns."""
        patterns = sum(map(len, self.patterns))
        return 2 * (1 + patterns) if self.shares else patterns

    @property
    def free(self) -> int:
        """Number of leading columns without a penalty."""
        return self.num_nodes + self.shares

    def of(self, masks: Masks) -> NDArray[np.float64]:
        """The feature matrix (k, width) of packed coalitions."""
        members = unpack(masks, self.num_nodes)
        inside = [members[:, pattern].all(axis=2) for pattern in self.patterns]
        if not self.shares:
            return np.hstack(inside).astype(np.float64)
        counts = np.hstack([np.ones((len(members), 1), dtype=np.bool_), *inside])
        size = members.sum(axis=1, keepdims=True)
        return np.hstack([counts, counts / size])


@dataclass(frozen=True)
class Surrogate:
    """A fitted stand-in: its coefficients, and how it did on the coalitions it was fitted to."""

    features: Features
    coefficients: NDArray[np.float64]
    #: What each fitted coalition's worth differs from a fit without that coalition, (k, q).
    left_out: NDArray[np.float64]

    @classmethod
    def fit(
        cls, features: Features, masks: Masks, worths: Worths, importance: NDArray[np.float64]
    ) -> Surrogate:
        """Weighted ridge regression of worths (k, q) on the features of packed coalitions."""
        design = features.of(masks)
        weight = (importance / importance.mean())[:, None]
        penalty = np.full(features.width, _PENALTY * len(masks))
        # the jitter only decides between fits that are equally good
        penalty[: features.free] = 1e-9 * len(masks)
        inverse = np.linalg.inv(design.T @ (design * weight) + np.diag(penalty))
        # the additive part apart: an additive game leaves nothing for jitter and penalty to bend
        nodes = slice(features.free - features.num_nodes, features.free)
        root = np.sqrt(weight)
        own = np.linalg.lstsq(root * design[:, nodes], root * worths, rcond=None)[0]
        rest = worths - design[:, nodes] @ own
        coefficients = inverse @ (design.T @ (rest * weight))
        coefficients[nodes] += own
        leverage = weight * ((design @ inverse) * design).sum(axis=1, keepdims=True)
        left_out = (worths - design @ coefficients) / np.maximum(1.0 - leverage, 1e-6)
        return cls(features, coefficients, left_out)

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
        out = np.empty((len(masks), self.coefficients.shape[1]))
        for first in range(0, len(masks), _BLOCK):
            block = slice(first, first + _BLOCK)
            out[block] = self.features.of(masks[block]) @ self.coefficients
        return out


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
