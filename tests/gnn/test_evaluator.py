"""Batches of coalitions give what the model says of each of them alone."""

from __future__ import annotations

from collections import UserList
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gstarx import GameOptions, GNNGame, Passes
from gstarx.gnn.evaluator import default_batch_nodes
from tests.gnn.networks import CLASSES, FEATURES, GIN, NETWORKS, build
from tests.gnn.one_by_one import EDGES, averaged, coalitions, graph, outputs
from tests.pairs import for_each, in_turn
from tests.strategies import edge_lists

RAW = {"payoff": "raw", "target": "all"}
#: Those that do not take a batch vector.
SINGLY = {"no batch"}


def as_option(removal: str) -> Any:
    return averaged if removal == "averaged" else removal


@pytest.mark.parametrize(
    ("name", "case"),
    in_turn(
        NETWORKS,
        [
            *((shape, "remove") for shape in EDGES),
            *((shape, "split") for shape in ("messy", "as many nodes as edges", "wide")),
            *((shape, "zero_filling") for shape in ("messy", "as many nodes as edges", "wide")),
            *((shape, "averaged") for shape in ("messy", "as many nodes as edges")),
        ],
        each=3,
    ),
)
def test_batched_is_one_by_one(name: str, case: tuple[str, str]) -> None:
    shape, removal = case
    model, data = build(name), graph(shape)
    # a norm of nodes that are nearly alike makes rounding errors of single precision large
    if isinstance(model, nn.Module):
        model = model.double()
        data = data.apply(lambda t: t.double() if t.is_floating_point() else t)
    rows = coalitions(data.num_nodes, at_most=10)
    game = GNNGame(
        model,
        data,
        game=GameOptions(removal=as_option(removal)),
        passes=Passes(batch_nodes=64),
        **RAW,
    )
    alone = outputs(name, model, data, rows, removal=removal)
    assert alone.std() > 1e-3  # it is a model that sees something
    atol = 1e-9 if isinstance(model, nn.Module) else 1e-6
    np.testing.assert_allclose(game(rows), alone, atol=atol, rtol=atol)


@for_each("name", NETWORKS)
def test_the_field_names_a_graph_does_not_use_do_no_harm(name: str) -> None:
    data = graph("messy")
    data.num_nodes = 7
    data.smiles, data.seven, data.empty = "CCO", torch.arange(7.0), torch.zeros(0, 3)
    data.refractive_index = torch.tensor(1.33)
    rows = coalitions(7, at_most=5)
    model = build(name)
    game = GNNGame(model, data, **RAW)
    np.testing.assert_allclose(game(rows), outputs(name, model, data, rows), atol=1e-6)


@settings(max_examples=25)
@given(edge_lists(max_nodes=6), st.sampled_from(["gcn", "gat", "gine"]), st.integers(1, 40))
def test_batched_is_one_by_one_on_any_graph(
    shape: tuple[int, list[tuple[int, int]]], name: str, batch_nodes: int
) -> None:
    n, edges = shape
    EDGES["drawn"] = (n, edges)
    try:
        data = graph("drawn")
    finally:
        del EDGES["drawn"]
    model, rows = build(name), coalitions(n, at_most=10)
    game = GNNGame(model, data, passes=Passes(batch_nodes=batch_nodes), **RAW)
    np.testing.assert_allclose(game(rows), outputs(name, model, data, rows), atol=1e-6)


def test_an_edge_index_of_any_layout_and_integer_type() -> None:
    data, model = graph("messy"), build("gine")
    rows = coalitions(7, at_most=10)
    expected = GNNGame(model, data, **RAW)(rows)
    turned = data.clone()
    turned.edge_index = data.edge_index.t().contiguous().t()
    assert not turned.edge_index.is_contiguous()
    assert np.array_equal(GNNGame(model, turned, **RAW)(rows), expected)
    narrow = data.clone()
    narrow.edge_index = data.edge_index.int()
    assert np.array_equal(GNNGame(model, narrow, **RAW)(rows), expected)


class Watching(nn.Module):
    """A model that remembers how many nodes and graphs it was shown."""

    def __init__(self, name: str = "gcn") -> None:
        super().__init__()
        self.net = build(name)
        # lists would be put back
        self.nodes: UserList[int] = UserList()
        self.graphs: UserList[int] = UserList()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
        out = self.net(x, edge_index, batch)
        self.nodes.append(len(x))
        self.graphs.append(len(out))
        return out


@for_each(("batch_nodes", "removal"), in_turn([1, 7, 20, 1000], ["split", "remove"]))
def test_a_batch_has_no_more_nodes_than_allowed(batch_nodes: int, removal: str) -> None:
    model, data = Watching(), graph("messy")
    game = GNNGame(
        model,
        data,
        game=GameOptions(removal=removal),
        passes=Passes(batch_nodes=batch_nodes, check=False),
    )
    model.nodes, model.graphs = UserList(), UserList()
    rows = np.unique(coalitions(7, at_most=100), axis=0)
    game(rows)
    sizes = rows.sum(axis=1) if removal == "remove" else np.full(len(rows), 7)
    assert sum(model.nodes) == sizes.sum()
    assert sum(model.graphs) == len(rows)
    for nodes, graphs in zip(model.nodes, model.graphs, strict=True):
        assert nodes <= batch_nodes or graphs == 1
    # and no fewer than would have fitted
    for nodes, following in pairwise(model.nodes):
        assert nodes + following > batch_nodes


def test_batch_sizes_change_no_more_than_the_last_bits() -> None:
    data, rows = graph("wide"), coalitions(70, at_most=60)
    worths = [
        GNNGame(build("gat"), data, passes=Passes(batch_nodes=size), **RAW)(rows)
        for size in (1, 100, 900, None)
    ]
    for other in worths[1:]:
        np.testing.assert_allclose(other, worths[0], atol=1e-5)


def test_only_models_that_cannot_be_batched_are_called_once_per_coalition() -> None:
    games = {name: GNNGame(build(name), graph("messy")) for name in NETWORKS}
    assert {name for name, game in games.items() if not game._evaluator.batched} == SINGLY


@for_each(
    ("name", "removal"),
    in_turn(
        sorted(set(NETWORKS) - SINGLY), ["remove", "split", "zero_filling", "averaged"], each=1
    ),
)
def test_a_batch_is_one_call(name: str, removal: str) -> None:
    """A batch that the model refuses is taken apart, which would go unnoticed but for the time."""
    model, calls = build(name), []
    if isinstance(model, nn.Module):
        model.register_forward_pre_hook(lambda *_: calls.append(1))
    game = GNNGame(
        model,
        graph("messy"),
        game=GameOptions(removal=as_option(removal)),
        passes=Passes(batch_nodes=10_000, check=False),
    )
    calls.clear()
    game(coalitions(7, at_most=40))
    assert len(calls) == isinstance(model, nn.Module)


def test_one_by_one_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="gstarx"):
        GNNGame(build("gcn"), graph("messy"), baseline=0.5)
        assert not caplog.messages
        GNNGame(build("no batch"), graph("messy"), baseline=0.5)
    assert any("one by one" in message for message in caplog.messages)


def test_the_default_batch_follows_the_widest_layer() -> None:
    def nodes(*widths: int, device: str = "cpu") -> int:
        layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
        return default_batch_nodes(nn.Sequential(*layers), torch.device(device))

    assert nodes(4, 128) == nodes(4, 16, 128, 2) == nodes(4, 128, 128)
    assert 700 <= nodes(4, 128) <= 3000  # what was measured for the paper's networks
    assert nodes(4, 8) > nodes(4, 128) > nodes(4, 256) >= 512
    assert nodes(4, 100_000) == 512
    assert nodes(4, 1) == nodes(4, 4) == 8192
    function = default_batch_nodes(lambda x, edge_index: x, torch.device("cpu"))
    assert function == nodes(4, 64)
    assert nodes(4, 128, device="cuda") == nodes(4, 8, device="cuda") == 262_144


def test_the_default_batch_is_recorded() -> None:
    model = build("gcn")
    assert GNNGame(model, graph("ring")).batch_nodes == default_batch_nodes(
        model, torch.device("cpu")
    )
    assert GNNGame(model, graph("ring"), passes=Passes(batch_nodes=77)).batch_nodes == 77


@pytest.mark.parametrize("removal", ["remove", "split"])
def test_layers_that_normalize_by_the_batch_are_shown_one_coalition_at_a_time(removal: str) -> None:
    torch.manual_seed(0)
    model, data = GIN(track_running_stats=False).eval(), graph("ring")
    assert model.norm.running_mean is None
    rows = np.array([[True] * size + [False] * (6 - size) for size in (2, 3, 4, 5, 6)])
    game = GNNGame(model, data, game=GameOptions(removal=removal), **RAW)
    alone = outputs("gin", model, data, rows, removal=removal)
    np.testing.assert_allclose(game(rows), alone, atol=1e-6)


def test_outputs_have_a_column_per_class() -> None:
    game = GNNGame(build("gcn"), graph("ring"), **RAW)
    assert game(np.ones((2, 6), bool)).shape == (2, CLASSES)
    assert game.prediction.shape == (CLASSES,)
    assert not game.prediction.is_inference()
    assert game.data.x.shape == (6, FEATURES)
