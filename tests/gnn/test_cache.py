"""Each coalition goes through the model once, and what was evaluated stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn import global_mean_pool

from gstarx import GNNGame, Passes, hn_value
from gstarx.gnn.coalition_scores import WorthCache
from gstarx.graphs.bitmasks import pack
from tests.gnn.one_by_one import coalitions, graph


class Remembering:
    """A model that knows by their features which nodes it saw together, and can be stopped."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, ...]] = []
        self.stop_after: int | None = None

    def __call__(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if self.stop_after is not None and len(self.seen) >= self.stop_after:
            raise KeyboardInterrupt
        for number in range(int(batch.max()) + 1):
            self.seen.append(tuple(x[batch == number, 0].tolist()))
        return global_mean_pool(x[:, :3], batch)


def game_of(model: Any, shape: str = "ring", batch_nodes: int | None = None) -> GNNGame:
    passes = Passes(batch_nodes=batch_nodes, check=False)
    game = GNNGame(model, graph(shape), payoff="raw", target=0, passes=passes)
    model.seen.clear()
    return game


def test_each_distinct_coalition_is_evaluated_once() -> None:
    model = Remembering()
    game = game_of(model)
    rows = coalitions(6, at_most=200)
    assert game.evaluations == 0
    first = game(rows)
    distinct = len(np.unique(rows, axis=0))
    assert distinct < len(rows)
    assert len(model.seen) == len(set(model.seen)) == game.evaluations == distinct
    assert np.array_equal(game(rows[::-1]), first[::-1])
    assert len(model.seen) == distinct
    assert f"{distinct:,} evaluations" in repr(game)


def test_a_value_asks_for_nothing_twice() -> None:
    model = Remembering()
    game = game_of(model, "messy")
    allocation = hn_value(game, game.graph)
    assert allocation.evaluations == game.evaluations == len(set(model.seen)) == len(model.seen)
    hn_value(game, game.graph)
    assert game.evaluations == len(model.seen) == game.graph.count_connected_coalitions()


def test_the_empty_coalition_is_worth_nothing_and_is_not_evaluated() -> None:
    model = Remembering()
    game = game_of(model)
    assert game(np.zeros((2, 6), dtype=bool)).tolist() == [0.0, 0.0]
    assert model.seen == []
    assert game.evaluations == 0
    assert game(np.zeros((0, 6), dtype=bool)).shape == (0,)
    mixed = game(np.array([[False] * 6, [True] * 6]))
    assert mixed[0] == 0.0
    assert mixed[1] != 0.0


def test_one_coalition_may_come_by_itself() -> None:
    game = game_of(Remembering())
    assert game(np.ones(6, dtype=bool)).shape == (1,)


@pytest.mark.parametrize("stop_after", [0, 1, 30])
def test_ctrl_c_keeps_what_was_evaluated_and_the_game_goes_on(stop_after: int) -> None:
    model, undisturbed = Remembering(), Remembering()
    game = game_of(model, batch_nodes=10)
    rows = np.unique(coalitions(6, at_most=200), axis=0)
    expected = game_of(undisturbed, batch_nodes=10)(rows)
    model.stop_after = stop_after
    with pytest.raises(KeyboardInterrupt):
        game(rows)
    done = game.evaluations
    assert stop_after <= done == len(model.seen) < len(rows)
    model.stop_after = None
    assert np.array_equal(game(rows), expected)
    assert game.evaluations == len(set(model.seen)) == len(model.seen) == len(rows)


def test_an_error_keeps_the_batches_before_it() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if len(x) == 5:
            raise RuntimeError("five")
        return global_mean_pool(x[:, :3], batch)

    game = GNNGame(model, graph("ring"), payoff="raw", target=0, passes=Passes(batch_nodes=3))
    rows = np.concatenate([np.eye(6, dtype=bool), ~np.eye(6, dtype=bool), np.ones((1, 6), bool)])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="five"):
            game(rows)
        assert game.evaluations == 6
    assert game(rows[:6]).shape == (6,)


def test_what_was_not_evaluated_is_forgotten() -> None:
    """Other coalitions may come next, and then those that were given up."""
    model, undisturbed = Remembering(), Remembering()
    game = game_of(model, batch_nodes=10)
    rows = np.unique(coalitions(6, at_most=200), axis=0)
    expected = game_of(undisturbed)(rows)
    model.stop_after = 5
    with pytest.raises(KeyboardInterrupt):
        game(rows[:20])
    model.stop_after = None
    done = game.evaluations
    np.testing.assert_allclose(game(rows[19:20]), expected[19:20], atol=1e-6)
    assert game.evaluations == done + 1  # that one, and not all that were asked for with it
    np.testing.assert_allclose(game(rows[30:]), expected[30:], atol=1e-6)
    np.testing.assert_allclose(game(rows), expected, atol=1e-6)
    assert game.evaluations == len(set(model.seen)) == len(rows)


def test_wide_graphs_and_several_games() -> None:
    data, rows = graph("wide"), coalitions(70, at_most=300)
    model = Remembering()
    game = GNNGame(model, data, payoff="raw", target=[2, 0])
    worths = game(rows)
    assert worths.shape == (len(rows), 2)
    for row, worth in zip(rows, worths, strict=True):
        mean = data.x[torch.from_numpy(row.copy())].mean(dim=0)
        np.testing.assert_allclose(worth, mean[[2, 0]].numpy(), atol=1e-6)


@given(
    st.lists(st.lists(st.integers(0, 200), max_size=60), max_size=12),
    st.sampled_from([1, 2]),
)
def test_the_table_finds_every_mask_again(calls: list[list[int]], words: int) -> None:
    cache, known = WorthCache(words), dict[int, int]()
    for call in calls:
        masks = np.array([[n] * words for n in call], dtype=np.uint64).reshape(len(call), words)
        rows = cache.rows_of(masks)
        for number, row in zip(call, rows, strict=True):
            assert known.setdefault(number, len(known)) == row
        fresh = cache.masks(cache.count, len(known))
        if sum(call) % 3 == 0 and len(fresh):  # now and then an evaluation fails half-way
            half = fresh[: len(fresh) // 2]
            cache.add(np.stack([half[:, 0], half[:, 0] * 2.0], axis=1).astype(float))
            cache.forget_unknown()
            known = {n: r for n, r in known.items() if r < cache.count}
        else:
            cache.add(np.stack([fresh[:, 0], fresh[:, 0] * 2.0], axis=1).astype(float))
        assert cache.count == len(known)
        for number, row in known.items():
            assert cache.worths(np.array([row])).tolist() == [[number, 2 * number]]


def test_the_table_grows() -> None:
    cache = WorthCache(2)
    rng = np.random.default_rng(0)
    rows = rng.random((5000, 100)) < 0.5
    masks = pack(rows)
    for start in range(0, 5000, 700):
        part = masks[start : start + 700]
        at = cache.rows_of(part)
        assert at.tolist() == list(range(start, start + len(part)))
        cache.add(np.arange(start, start + len(part), dtype=float)[:, None])
    assert np.array_equal(cache.worths(cache.rows_of(masks))[:, 0], np.arange(5000.0))
    assert cache.count == 5000


def test_the_table_is_small() -> None:
    """At most 64 bytes per coalition of up to 64 nodes."""
    cache = WorthCache(1)
    for start in range(0, 1 << 16, 1 << 12):
        cache.rows_of(np.arange(start + 1, start + (1 << 12) + 1, dtype=np.uint64)[:, None])
        cache.add(np.zeros((1 << 12, 1)))
    held = sum(array.nbytes for array in vars(cache).values() if isinstance(array, np.ndarray))
    assert held <= 64 * cache.count


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=200, unique=True), st.randoms())
def test_rows_of_the_cache_in_another_order(numbers: list[int], random: Any) -> None:
    masks = np.array(numbers, dtype=np.uint64)[:, None]
    known = len(masks) // 3
    cache = WorthCache(1)
    cache.rows_of(masks[:known])
    cache.add(np.arange(known, dtype=float)[:, None])
    cache.rows_of(masks)
    order = list(range(len(masks) - known))
    random.shuffle(order)
    cache.arrange(known, np.array(order, dtype=np.int64))
    expected = np.concatenate([np.arange(known), known + np.argsort(order)]).astype(np.int64)
    np.testing.assert_array_equal(cache.rows_of(masks), expected)
    np.testing.assert_array_equal(cache.masks(0, len(masks))[expected], masks)
