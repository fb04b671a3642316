"""Values of one's own: what check_value finds wrong, and where they can be passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from gstarx import (
    HN,
    Banzhaf,
    Explanation,
    GStarX,
    Myerson,
    Position,
    Shapley,
    Subgraphs,
    explain,
    explain_many,
)
from gstarx.datasets import load
from gstarx.games import Game
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.models import pretrained
from gstarx.testing import ValueCheckError, check_value
from gstarx.values import Allocation, Value
from tests.pairs import for_each


@dataclass(frozen=True, kw_only=True)
class EqualSurplus(Value):
    """What players are worth alone, and an equal part of what all add together."""

    name = "equal surplus"

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        return graph.num_nodes + 1

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        n = graph.num_nodes
        asked = np.concatenate([np.eye(n, dtype=np.bool_), np.ones((1, n), dtype=np.bool_)])
        if n + 1 > max_coalitions:
            raise TooManyCoalitions(n + 1, max_coalitions)
        worths = np.asarray(self.worths(game, asked))
        surplus = (worths[-1] - worths[:-1].sum(axis=0)) / n
        return Allocation.exactly(worths[:-1] + surplus, n + 1, 0.0)

    def worths(self, game: Game, asked: Any) -> Any:
        return game(asked)


@dataclass(frozen=True, kw_only=True)
class _Wrong(EqualSurplus):
    """One that is wrong in some way."""

    way: str = ""

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        return graph.num_nodes + (self.way != "count")

    def exact(self, game: Game, graph: CommunicationGraph, *, max_coalitions: int) -> Allocation:
        room = 10**6 if self.way == "max_coalitions" else max_coalitions
        found = super().exact(game, graph, max_coalitions=room)
        if self.way == "names":  # the first player gets more
            found.values[0] *= 2
        if self.way == "exact":
            return replace(found, exact=False)
        return found

    def worths(self, game: Game, asked: Any) -> Any:
        if self.way == "game":
            game(np.zeros((1, asked.shape[1]), dtype=np.bool_))
        worths = np.asarray(game(asked))
        return worths**2 if self.way == "linear" else worths


@dataclass(frozen=True, kw_only=True)
class _Sampled(EqualSurplus):
    """One with a sampler that is wrong in some way."""

    way: str = ""

    def sampled(
        self, game: Game, graph: CommunicationGraph, *, budget: int, seed: Any = None
    ) -> Allocation:
        n = graph.num_nodes
        if self.way == "budget":
            game((np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_))
        found = self.exact(game, graph, max_coalitions=10**6)
        noise = np.random.default_rng(None if self.way == "seed" else seed)
        bias = 0.5 if self.way == "estimate" else 0.0
        drawn = found.values + noise.normal(bias, 0.01, size=found.values.shape)
        sign = -1 if self.way == "std_error" else 1
        return Allocation(drawn, np.full_like(drawn, sign * 0.01), False, n + 1, 0.0)


@for_each(
    "value",
    [
        *(kind() for kind in (Shapley, Position, Myerson, HN, Subgraphs, EqualSurplus, _Sampled)),
        *(kind(two_sided=True) for kind in (Myerson, HN)),
        Banzhaf(presence=0.3),
    ],
)
def test_values_keep_the_contract(value: Value) -> None:
    check_value(value)


@for_each("way", ["count", "exact", "game", "linear", "max_coalitions", "names"])
def test_a_wrong_value_is_found(way: str) -> None:
    with pytest.raises(ValueCheckError, match=f"^{way}: "):
        check_value(_Wrong(way=way))


@for_each("way", ["budget", "estimate", "seed", "std_error"])
def test_a_wrong_sampler_is_found(way: str) -> None:
    with pytest.raises(ValueCheckError, match=f"^{way}: "):
        check_value(_Sampled(way=way))


def test_a_value_is_an_object_and_no_class() -> None:
    with pytest.raises(ValueCheckError, match=r"^type: .* not a gstarx\.values\.Value"):
        check_value(EqualSurplus)  # type: ignore[arg-type]


def test_a_value_of_ones_own_goes_everywhere() -> None:
    model, _ = pretrained("nitro")
    graphs = load("nitro").split("test")[:2]
    found = explain(model, graphs[0], value=EqualSurplus(), baseline="singletons")
    assert (found.value, found.exact, found.two_sided) == ("equal surplus", True, False)
    assert found.scores.sum() == pytest.approx(float(found.worth))
    options: dict[str, Any] = {"value": EqualSurplus(), "baseline": "singletons"}
    one, other = explain_many(model, graphs, **options, progress=False)
    assert isinstance(one, Explanation)
    assert isinstance(other, Explanation)
    assert torch.equal(one.scores, found.scores)
    again = GStarX(**options).explain(model, graphs[1])
    assert torch.equal(other.scores, again.scores)


def test_without_a_sampler_a_budget_that_is_too_small_says_so() -> None:
    model, _ = pretrained("nitro")
    graph = load("nitro")[0]
    with pytest.raises(ValueError, match=r"EqualSurplus cannot be estimated.*raise budget"):
        explain(model, graph, value=EqualSurplus(), baseline=0.5, budget=5)
