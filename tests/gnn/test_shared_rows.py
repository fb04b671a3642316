"""Rows that are gathered late give the numbers of rows gathered at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from gstarx import GNNGame, Passes, Subgraphs, explain_many
from gstarx.gnn import shared_rows
from gstarx.gnn.shared_rows import GatheredRows, SharedRows, gathered_now
from tests.pairs import in_turn

WIDE, ROWS = 80, 12
INDEX = torch.tensor([3, 0, 7, 7, 11, 2, 5, 3])


def rows(seed: int = 0) -> Tensor:
    return torch.randn(ROWS, WIDE, generator=torch.Generator().manual_seed(seed))


def built(model: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model.eval()


NETWORKS: dict[str, Any] = {
    "linear": lambda: nn.Linear(WIDE, 6),
    "no bias": lambda: nn.Linear(WIDE, 6, bias=False),
    "two layers": lambda: nn.Sequential(
        nn.Linear(WIDE, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 4), nn.ELU()
    ),
    "norm first": lambda: nn.Sequential(nn.BatchNorm1d(WIDE), nn.Linear(WIDE, 6), nn.Tanh()),
    "other activations": lambda: nn.Sequential(
        nn.Linear(WIDE, 6), nn.SiLU(), nn.Linear(6, 6), nn.LeakyReLU(0.2), nn.Sigmoid()
    ),
}


@pytest.mark.parametrize(
    ("name", "guard"), in_turn(NETWORKS, [torch.no_grad, torch.inference_mode])
)
def test_operations_on_single_rows_are_computed_once(name: str, guard: Any) -> None:
    network, x = built(NETWORKS[name]()), rows()
    shared = SharedRows(x)
    made = []
    with guard():
        for index in (INDEX, INDEX.flip(0), INDEX[:2]):
            late = network(shared.gathered(index))
            assert isinstance(late, GatheredRows)
            made.append(late.shared)
            torch.testing.assert_close(gathered_now(late), network(x[index]), rtol=1e-6, atol=1e-6)
        selected = network(shared.gathered(INDEX)).index_select(0, torch.tensor([4, 4, 1]))
    # remembered: nothing is multiplied a second time
    assert all(one is made[0] for one in made)
    assert len(made[0].rows) == ROWS
    assert isinstance(selected, GatheredRows)
    expected = network(x[INDEX])[[4, 4, 1]].detach()
    torch.testing.assert_close(gathered_now(selected), expected, rtol=0, atol=1e-6)


OTHERS: dict[str, Any] = {
    "softmax over rows": lambda x: x.softmax(dim=0),
    "a mean over all": lambda x: x - x.mean(),
    "a column of the rows": lambda x: x * torch.arange(1.0, len(x) + 1)[:, None],
    "a row for each": lambda x: x + torch.arange(float(x.numel())).reshape(x.shape),
    "a product on the left": lambda x: torch.ones(3, len(x)) @ x,
    "a bias for each": lambda x: torch.addmm(
        torch.arange(float(len(x)))[:, None], x, x[0][:, None]
    ),
    "with itself": lambda x: x * x,
    "transposed": lambda x: x.t(),
    "batch statistics": lambda x: nn.functional.batch_norm(x, None, None, training=True),
    "sorted": lambda x: x.sort(dim=0).values,
    "columns": lambda x: x[:, 3:9],
    "columns by number": lambda x: x.index_select(1, torch.tensor([5, 1])),
    "rows by number": lambda x: x[torch.tensor([2, 2, 0])],
    "concatenated": lambda x: torch.cat([x, torch.ones(len(x), 1)], dim=1),
    "in place": lambda x: x.clone().relu_(),
    "reshaped": lambda x: x.view(-1, 4, WIDE // 4).sum(dim=-1),
    "gathered by scatter": lambda x: torch.zeros(2, WIDE).index_add_(
        0, torch.arange(len(x)) % 2, x
    ),
    "a fourth power": lambda x: x**4,
    "of a number": lambda x: 2 - x / 3,
    "of one row": lambda x: x + torch.arange(float(WIDE)),
}


def test_any_operation_gives_what_it_gives_for_ordinary_rows() -> None:
    x = rows()
    for operation in OTHERS.values():
        with torch.no_grad():
            for index in (INDEX, INDEX[:3]):
                found = gathered_now(operation(SharedRows(x).gathered(index)))
                torch.testing.assert_close(found, operation(x[index]), rtol=1e-6, atol=1e-6)


def test_changes_in_place_reach_all_views_and_not_the_graph() -> None:
    x, linear = rows(), built(nn.Linear(WIDE, 6))
    before = x.clone()
    shared = SharedRows(x)
    with torch.no_grad():
        hidden = linear(shared.gathered(INDEX))
        view = hidden.detach()
        hidden.relu_()
        hidden.add_(1.0)
        expected = linear(x[INDEX]).relu() + 1
        torch.testing.assert_close(gathered_now(hidden * 1.0), expected)
        torch.testing.assert_close(view, expected)
        # another tensor of the same rows is as it was
        torch.testing.assert_close(
            gathered_now(linear(shared.gathered(INDEX))), linear(x[INDEX]), atol=1e-6, rtol=0
        )
        written = shared.gathered(INDEX)
        written[0, 0] = 100.0
        assert gathered_now(written + 0.0)[0, 0] == 100.0
    assert torch.equal(x, before)


def test_other_weights_are_distinguished() -> None:
    x, linear = rows(), built(nn.Linear(WIDE, 6))
    shared = SharedRows(x)
    with torch.no_grad():
        for step in range(3):
            found = gathered_now(linear(shared.gathered(INDEX)))
            torch.testing.assert_close(found, linear(x[INDEX]), atol=1e-6, rtol=0)
            linear.weight.add_(0.1 * step + 0.1)
        for _ in range(40):
            # weights made anew in every pass are not remembered for ever
            weight = torch.randn(6, WIDE)
            found = gathered_now(nn.functional.linear(shared.gathered(INDEX), weight))
            torch.testing.assert_close(found, x[INDEX] @ weight.t(), atol=1e-4, rtol=0)
    assert len(shared._made) <= shared_rows._MOST_REMEMBERED


class Convolution(nn.Module):
    """A graph or node classifier on wide features."""

    def __init__(self, layer: Any, *, level: str = "graph") -> None:
        super().__init__()
        self.first, self.second = layer(WIDE, 8), layer(8, 3)
        self.level = level

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.second(self.first(x, edge_index).relu(), edge_index)
        return pyg.global_mean_pool(hidden, batch) if self.level == "graph" else hidden


class LeavesTorch(Convolution):
    """Features pass through numpy, which cannot hold rows that are gathered late."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return super().forward(torch.from_numpy(x.numpy() * 2), edge_index, batch)


def graph(seed: int = 0) -> Data:
    ring = torch.arange(ROWS)
    ends = torch.stack([ring, (ring + 1) % ROWS])
    chord = torch.tensor([[0, 2], [6, 9]])
    both = torch.cat([ends, ends.flip(0), chord, chord.flip(0)], dim=1)
    return Data(x=rows(seed), edge_index=both)


LAYERS = [pyg.GCNConv, pyg.SAGEConv, pyg.GATConv, lambda a, b: pyg.GINConv(nn.Linear(a, b))]


@pytest.mark.parametrize(
    ("layer", "level", "share"), in_turn(LAYERS, ["graph", "node"], ["auto", False], each=2)
)
def test_games_have_the_worths_of_ordinary_features(
    layer: Any, level: str, share: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = built(Convolution(layer, level=level)), graph()
    options: dict[str, Any] = {"payoff": "raw", "target": "all", "passes": Passes(share=share)}
    if level == "node":
        options |= {"task": "node", "index": 4}
    game = GNNGame(model, data, **options)
    coalitions = np.random.default_rng(0).random((300, game.n)) < 0.5
    late = game(coalitions)
    monkeypatch.setattr(shared_rows, "_FEWEST_COLUMNS", WIDE + 1)
    plain = GNNGame(model, data, **options)(coalitions)
    np.testing.assert_allclose(late, plain, atol=2e-6 * np.ptp(plain))


def test_a_model_that_leaves_torch_gets_ordinary_features() -> None:
    data = graph()
    coalitions = np.random.default_rng(0).random((50, ROWS)) < 0.5
    model = built(LeavesTorch(pyg.GCNConv))
    worths = GNNGame(model, data, passes=Passes(share=False))(coalitions)
    doubled = Data(x=2 * data.x, edge_index=data.edge_index)
    same = Convolution(pyg.GCNConv).eval()
    same.load_state_dict(model.state_dict())
    expected = GNNGame(same, doubled, passes=Passes(share=False))(coalitions)
    np.testing.assert_allclose(worths, expected, atol=1e-6)


def test_an_error_of_the_model_is_its_own() -> None:
    class Fails(Convolution):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            if len(x) < 5:
                raise ArithmeticError(f"{len(x)} nodes are too few")
            return super().forward(x, edge_index, batch)

    game = GNNGame(built(Fails(pyg.GCNConv)), graph())
    with pytest.raises(ArithmeticError, match="1 nodes are too few"):
        game(np.eye(ROWS, dtype=bool)[:1])


def test_several_graphs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model, graphs = built(Convolution(pyg.GCNConv)), [graph(seed) for seed in range(4)]
    value = Subgraphs(value="myerson", max_sample_size=5)
    options: dict[str, Any] = {"value": value, "seed": 0}
    late = explain_many(model, graphs, progress=False, **options)
    monkeypatch.setattr(shared_rows, "_FEWEST_COLUMNS", WIDE + 1)
    plain = explain_many(model, graphs, progress=False, **options)
    for one, other in zip(late, plain, strict=True):
        torch.testing.assert_close(one.scores, other.scores, atol=1e-6, rtol=0)
