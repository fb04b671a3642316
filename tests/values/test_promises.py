"""What the documentation promises of estimates, at full size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.coverage import (
    GRAPHS,
    NETWORK_PLAYERS,
    PER_PLAYER,
    PLAYERS,
    TWO_SIDED,
    VALUES,
    percent,
    shares_covered,
)
from benchmarks.interactions import sparse_graph
from gstarx.values import banzhaf_value_sampled, myerson_value_sampled, shapley_value_sampled
from tests.values.definitions import first_players_game, peak_memory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning"),
]


@pytest.mark.parametrize("value", [*VALUES, *TWO_SIDED])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", PLAYERS)
def test_two_standard_errors_cover(
    value: str, graph: str, n: int, record_property: Callable[[str, object], None]
) -> None:
    for per_player in PER_PLAYER:
        shares = shares_covered(value, graph, n, per_player)
        record_property(str(per_player), percent(shares))
        assert 0.9 <= shares.mean() <= 0.99, per_player


@pytest.mark.parametrize("value", ["hn", "myerson", *TWO_SIDED])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", NETWORK_PLAYERS)
def test_two_standard_errors_cover_what_networks_do(
    value: str, graph: str, n: int, record_property: Callable[[str, object], None]
) -> None:
    for per_player in PER_PLAYER:
        shares = shares_covered(value, graph, n, per_player, network_games=True)
        record_property(str(per_player), percent(shares))
        assert 0.9 <= shares.mean() <= 0.99, per_player


@pytest.mark.parametrize("value", ["shapley", "banzhaf", "myerson"])
def test_five_thousand_players_and_twenty_thousand_evaluations(value: str) -> None:
    graph = sparse_graph(5_000, seed=0)
    with peak_memory() as peak:
        if value == "shapley":
            shapley_value_sampled(first_players_game, 5_000, budget=20_000, seed=0)
        elif value == "banzhaf":
            banzhaf_value_sampled(first_players_game, 5_000, budget=20_000, seed=0)
        else:
            myerson_value_sampled(first_players_game, graph, budget=20_000, seed=0)
    assert peak[0] < 500e6
