"""Interactions by shapiq are those of their definitions, and find nodes that act together."""

from __future__ import annotations

import sys
import warnings
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

from gstarx import GameOptions, GNNGame, Passes, datasets, models
from gstarx.models import GCN
from gstarx.values import PrecisionWarning, shapley_value

pytest.importorskip("shapiq")

from benchmarks.shapiq_interactions import PlantedAnd
from gstarx.integrations import shapiq


def subsets(items: Any, most: int | None = None) -> Any:
    items = list(items)
    sizes = range((len(items) if most is None else most) + 1)
    return chain.from_iterable(combinations(items, size) for size in sizes)


def graph(nodes: int = 8) -> Data:
    ends = torch.tensor([(i, i + 1) for i in range(nodes - 1)] + [(0, nodes // 2)]).t()
    draw = torch.Generator().manual_seed(0)
    return Data(
        x=torch.randn(nodes, 3, generator=draw), edge_index=torch.cat([ends, ends.flip(0)], dim=1)
    )


def network() -> GCN:
    torch.manual_seed(0)
    return GCN(3, 8, 2).eval()


class Worths:
    """All worths of a game by set, and derivatives of it."""

    def __init__(self, game: GNNGame) -> None:
        self.n = game.n
        rows = (np.arange(2**game.n)[:, None] >> np.arange(game.n)) & 1 == 1
        self.table = game(rows)

    def __call__(self, nodes: Any) -> float:
        return float(self.table[sum(1 << node for node in nodes)])

    def derivative(self, nodes: tuple[int, ...], others: tuple[int, ...]) -> float:
        return sum(
            (-1) ** (len(nodes) - len(part)) * self((*others, *part)) for part in subsets(nodes)
        )

    def mean_derivative(self, nodes: tuple[int, ...], weight: Any) -> float:
        rest = [node for node in range(self.n) if node not in nodes]
        return sum(
            weight(len(others), len(nodes)) * self.derivative(nodes, others)
            for others in subsets(rest)
        )


def by_definition(worths: Worths, index: str) -> dict[tuple[int, ...], float]:
    """Interactions of one and two nodes, straight from their definitions."""
    n = worths.n
    pairs, singles = list(combinations(range(n), 2)), [(i,) for i in range(n)]
    if index == "BII":
        return {
            nodes: worths.mean_derivative(nodes, lambda t, s: 1 / 2 ** (n - s))
            for nodes in (*singles, *pairs)
        }
    if index == "STII":
        values = {
            pair: worths.mean_derivative(pair, lambda t, s: s / n / comb(n - 1, t))
            for pair in pairs
        }
        return values | {node: worths.derivative(node, ()) for node in singles}
    if index == "k-SII":
        values = {
            nodes: worths.mean_derivative(nodes, lambda t, s: 1 / (n - s + 1) / comb(n - s, t))
            for nodes in (*singles, *pairs)
        }
        # the Bernoulli number of order 1 spreads pairs over their nodes
        return values | {
            (i,): values[i,] - sum(values[pair] for pair in pairs if i in pair) / 2
            for i in range(n)
        }
    sets = [(), *singles, *pairs]  # FSII: weighted least squares, exact at both ends
    rows = list(subsets(range(n)))
    weights = [
        1e8 if len(row) in (0, n) else 1 / (comb(n, len(row)) * len(row) * (n - len(row)) / (n - 1))
        for row in rows
    ]
    matrix = np.array([[set(nodes) <= set(row) for nodes in sets] for row in rows], dtype=float)
    scale = np.sqrt(weights)[:, None]
    targets = np.array([worths(row) for row in rows])
    solved = np.linalg.lstsq(matrix * scale, targets * scale[:, 0], rcond=None)[0]
    return dict(zip(sets[1:], solved[1:], strict=True))


@pytest.mark.parametrize("index", shapiq.INDICES)
def test_interactions_are_those_of_the_definition(index: str) -> None:
    model, data = network(), graph()
    found = shapiq.explain_interactions(model, data, index=index, order=2, target=0)
    assert found.exact
    assert found.evaluations == 2**8 - 1
    expected = by_definition(Worths(GNNGame(model, data, target=0)), index)
    assert set(found.values) == set(expected)
    tolerance = 1e-5 if index == "FSII" else 1e-9
    for nodes, value in expected.items():
        assert found[nodes] == pytest.approx(value, abs=tolerance), nodes


def test_values_of_order_one_are_shapley_values() -> None:
    model, data = network(), graph()
    found = shapiq.explain_interactions(model, data, order=1, target=0)
    game = GNNGame(model, data, target=0)
    assert np.allclose(found.scores, shapley_value(game, 8).values)


def test_shapley_interactions_sum_to_the_worth_of_the_graph() -> None:
    model, data = network(), graph()
    for order in (2, 3):
        found = shapiq.explain_interactions(model, data, order=order, target=0)
        worth = GNNGame(model, data, target=0)(np.ones((1, 8), dtype=bool))[0]
        assert sum(found.values.values()) == pytest.approx(worth, abs=1e-9)
        assert {len(nodes) for nodes in found} == set(range(1, order + 1))


def test_a_game_goes_to_shapiq_and_back() -> None:
    import shapiq as package

    game = GNNGame(network(), graph(), target=0)
    there = shapiq.as_game(game)
    assert isinstance(there, package.Game)
    assert there.n_players == 8
    coalitions = np.random.default_rng(0).random((20, 8)) < 0.5
    assert np.allclose(there(coalitions), game(coalitions))
    assert there(np.zeros((1, 8), dtype=bool)).tolist() == [0.0]
    back = shapiq.from_game(there)
    assert np.allclose(back(coalitions), game(coalitions))
    assert np.allclose(shapley_value(back, 8).values, shapley_value(game, 8).values)


def test_a_game_of_shapiq_is_relative_to_its_empty_coalition() -> None:
    import shapiq as package

    class Shifted(package.Game):  # type: ignore[misc]
        def value_function(self, coalitions: Any) -> Any:
            return coalitions.sum(axis=1) + 7.0

    game = shapiq.from_game(Shifted(n_players=4, normalize=False))
    assert game(np.array([[True, True, False, False]])).tolist() == [2.0]


def test_coalitions_are_evaluated_in_batches() -> None:
    model = network()
    passes = []
    hook = model.register_forward_hook(lambda *_: passes.append(1))
    shapiq.explain_interactions(model, graph(), passes=Passes(share=False))
    hook.remove()
    assert len(passes) < 10  # of 255 coalitions


def planted(nodes: int) -> tuple[Data, tuple[int, int]]:
    data = graph(nodes)
    pair = (1, nodes - 2)
    data.x = torch.eye(3)[[1 if i == pair[0] else 2 if i == pair[1] else 0 for i in range(nodes)]]
    return data, pair


def test_a_planted_and_comes_first() -> None:
    for index in shapiq.INDICES:
        data, pair = planted(10)
        found = shapiq.explain_interactions(PlantedAnd(), data, task="regression", index=index)
        (first, value), (_, second) = found.top(2)
        assert first == pair
        assert value == pytest.approx(1.0, abs=1e-6)
        assert abs(second) < 1e-6


@pytest.mark.parametrize("index", shapiq.INDICES)
def test_a_planted_and_comes_first_by_sampling_too(index: str) -> None:
    data, pair = planted(24)
    options: dict[str, Any] = {"task": "regression", "index": index, "budget": 2000}
    found = shapiq.explain_interactions(PlantedAnd(), data, seed=0, **options)
    assert not found.exact
    assert found.evaluations <= 2000
    assert found.top(1)[0][0] == pair
    again = shapiq.explain_interactions(PlantedAnd(), data, seed=0, **options)
    assert again.values == found.values


@pytest.mark.parametrize("index", shapiq.INDICES)
def test_standard_errors_are_those_of_estimates(index: str) -> None:
    model, data = network(), graph(12)
    exact = shapiq.explain_interactions(model, data, target=0, index=index)
    assert exact.std_errors == (0.0, 0.0)
    squares = np.zeros((2, 2))
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            estimate = shapiq.explain_interactions(
                model, data, target=0, index=index, budget=1000, seed=seed
            )
        assert estimate.evaluations <= 1000
        for order in (1, 2):
            errors = [value - exact[nodes] for nodes, value in estimate.of_order(order).items()]
            squares[order - 1] += np.mean(np.square(errors)), estimate.std_errors[order - 1] ** 2
    for error, estimated in squares:
        # Shapley-Taylor interactions of one node are known exactly
        assert 0.6**2 * error < estimated + 1e-20 < 1.7**2 * error + 2e-20


def test_uncertain_interactions_are_warned_of() -> None:
    with pytest.warns(
        PrecisionWarning, match=r"standard error of interactions of 2 nodes is .* lar"
    ):
        shapiq.explain_interactions(network(), graph(16), target=0, budget=600, seed=0)


def test_many_players_have_exact_interactions_of_every_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, data = network(), graph()
    monkeypatch.setattr(shapiq, "_MOST_SQUARE", 7)
    regressed = shapiq.explain_interactions(model, data, target=0, index="FSII")
    assert regressed.exact
    expected = by_definition(Worths(GNNGame(model, data, target=0)), "FSII")
    for nodes, value in expected.items():
        assert regressed[nodes] == pytest.approx(value, abs=1e-5), nodes


def test_a_constant_output_is_warned_of() -> None:
    class Offset(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return 120 + global_add_pool(x[:, :1], batch)

    options: dict[str, Any] = {"task": "regression"}
    with pytest.warns(UserWarning, match="no baseline was given"):
        shapiq.explain_interactions(Offset(), graph(), **options)
    found = shapiq.explain_interactions(Offset(), graph(), baseline="singletons", **options)
    assert abs(found.top(1)[0][1]) < 1
    assert len(repr(found)) < 200


def test_numbers_of_numpy_are_numbers() -> None:
    order, budget = np.int64(2), np.int64(300)
    assert shapiq.explain_interactions(network(), graph(), order=order, budget=budget).exact  # type: ignore[arg-type]


def test_nitro_groups_act_together() -> None:
    model, _ = models.pretrained("nitro")
    data = next(g for g in datasets.load("nitro") if g.num_nodes <= 13 and int(g.y) == 1)
    found = shapiq.explain_interactions(model, data, target=1)
    assert found.exact
    (first, value), *_ = found.top(1)
    truth = set(torch.as_tensor(data.truth).nonzero()[:, 0].tolist())
    assert set(first) <= truth
    assert value > 0


def test_the_strongest_interactions_may_be_negative() -> None:
    values = {(0,): 9.0, (0, 1): 1.0, (1, 2): -2.0, (0, 1, 2): 0.5}
    found = shapiq.Interactions(values, "STII", 3, True, 7, 0.0, 0, graph(3))
    assert found.top(2) == [((1, 2), -2.0), ((0, 1), 1.0)]
    assert found.top(1, order=3) == [((0, 1, 2), 0.5)]


def test_bows_are_drawn_between_nodes_that_interact() -> None:
    data, pair = planted(8)
    found = shapiq.explain_interactions(PlantedAnd(), data, task="regression")
    picture = found.draw(strongest=1)
    assert picture.svg.count("stroke-linecap") == 1
    assert f"{pair[0]} and {pair[1]} +1" in picture.svg
    assert "k-SII, exact, 255 coalitions" in picture.svg
    assert found._repr_svg_().startswith("<svg")
    assert "<td>1, 6</td>" in found._repr_html_()
    assert found.as_shapiq().dict_values[pair] == pytest.approx(1.0, abs=1e-6)


def test_a_node_of_a_graph_has_interactions_around_it() -> None:
    torch.manual_seed(0)
    model = GCN(3, 8, 2, num_layers=2, readout=None).eval()
    found = shapiq.explain_interactions(model, graph(20), task="node", node=15)
    assert found.exact
    assert set(found.of_order(1)) == {(i,) for i in range(13, 18)}


def test_a_linear_readout_has_no_interactions_beyond_receptive_fields() -> None:
    # the fact that GraphSHAP-IQ rests on, and that the defaults do not have it
    torch.manual_seed(0)
    model = GCN(3, 8, 2, num_layers=1, readout="sum").eval()
    path = torch.arange(7).unfold(0, 2, 1).t()
    draw = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(7, 3, generator=draw), edge_index=torch.cat([path, path.flip(0)], dim=1)
    )

    def far(**options: Any) -> tuple[float, float]:
        """The largest interactions of nodes that no node hears of together, and of others."""
        found = shapiq.explain_interactions(model, data, target=0, index="BII", **options)
        pairs = found.of_order(2).items()
        apart = max(abs(value) for (a, b), value in pairs if b - a > 2)
        return apart, max(abs(value) for (a, b), value in pairs if b - a <= 2)

    with torch.no_grad():
        nobody = float(model(torch.zeros_like(data.x), data.edge_index)[0, 0])
    apart, near = far(game=GameOptions(removal="zero_filling"), payoff="raw", baseline=nobody)
    assert apart < 1e-5 * near
    assert near > 1e-3
    apart, near = far()
    assert apart > 1e-3 * near


def test_bad_options_are_refused() -> None:
    for options, message in (
        ({"index": "SVI"}, r"index must be one of 'k-SII', 'STII', 'FSII', 'BII' \(got 'SVI'\)"),
        ({"order": 0}, r"order must be an integer from 1 to the number of players, 30"),
        ({"order": 31}, r"order must be an integer from 1 to the number of players, 30"),
        (
            {"order": 3, "budget": 1000},
            r"4,526 interactions.*budget=9052 or more, or order=2 or less$",
        ),
        ({"budget": 20}, r"466 interactions.*budget of 20 .*: pass budget=932 or more$"),
        ({"budget": 500}, r"466 interactions.*: pass budget=932 or more, or order=1$"),
        ({"budget": 0}, r"budget must be a positive integer"),
        ({"budget": 2.5}, r"budget must be a positive integer"),
    ):
        with pytest.raises(ValueError, match=message):
            shapiq.explain_interactions(network(), graph(30), **options)


def test_bad_games_are_refused() -> None:
    with pytest.raises(TypeError, match=r"GNNGame \(got int\)"):
        shapiq.as_game(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one target"):
        shapiq.as_game(GNNGame(network(), graph(), target="all"))
    with pytest.raises(TypeError, match=r"shapiq.Game \(got int\)"):
        shapiq.from_game(3)


def test_an_old_shapiq_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstarx.integrations.shapiq.version", lambda _: "1.0.1")
    with pytest.raises(ImportError, match=r"needs shapiq 1.4 or newer \(got 1.0.1\)"):
        shapiq.explain_interactions(network(), graph())
    for installed in ("1.4rc1", "1.4.0.dev2", "2.0"):
        monkeypatch.setattr("gstarx.integrations.shapiq.version", lambda _, it=installed: it)
        assert len(shapiq.explain_interactions(network(), graph(4)).of_order(1)) == 4


def test_without_shapiq_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(ImportError, match=r"pip install 'gstarx\[shapiq\]'"):
        shapiq.explain_interactions(network(), graph())
