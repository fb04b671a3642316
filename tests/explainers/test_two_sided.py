"""The constant game taken off by a baseline from single nodes, and values of both sides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from gstarx import (
    HN,
    Banzhaf,
    GameOptions,
    GNNGame,
    GStarX,
    Myerson,
    Position,
    Shapley,
    Subgraphs,
    explain,
    explain_many,
)
from gstarx.explainers import graph_generator
from gstarx.explainers.budget import Budgeted
from gstarx.games import TableGame, self_dual
from gstarx.graphs import Coalitions, CommunicationGraph, TooManyCoalitions
from gstarx.models import GCN
from gstarx.values import (
    PrecisionWarning,
    Value,
    banzhaf_value,
    hn_value,
    myerson_value,
    shapley_value,
)
from tests.explainers.small import FEATURES, graph, network
from tests.pairs import for_each, pairwise
from tests.shared import UNTRAINED, mutag, mutag_gcn
from tests.strategies import REAL, graph_games
from tests.values.definitions import (
    associated_matrix,
    own_worths,
    path,
    restricted_table,
    ring,
    shapley_by_orders,
    squared_until_settled,
)

pytestmark = UNTRAINED

Numbers = NDArray[np.float64]
VALUES: dict[str, Any] = {
    "hn": hn_value,
    "myerson": myerson_value,
    "shapley": lambda game, of: shapley_value(game, of.num_nodes),
    "banzhaf": lambda game, of: banzhaf_value(game, of.num_nodes),
}
#: Three components, of three nodes, of two and of one.
THREE = Data(
    x=torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(3)),
    edge_index=torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]),
)


class Recorder:
    """A game that remembers which coalitions it was asked for."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.seen: set[tuple[int, ...]] = set()

    def __call__(self, coalitions: Coalitions) -> Numbers:
        self.seen |= {tuple(np.flatnonzero(row)) for row in coalitions}
        return np.asarray(self.game(coalitions))


def constant_game(coalitions: Coalitions) -> Numbers:
    return np.ones(len(coalitions))


def probabilities(model: Any, data: Data, sets: list[list[int]], column: int) -> Numbers:
    """Probabilities of a class for parts of a graph, each evaluated on its own."""
    rows = []
    for nodes in sets:
        part = data.subgraph(torch.tensor(nodes))
        with torch.no_grad():
            rows.append(model.eval()(part.x, part.edge_index).softmax(-1)[0, column].item())
    return np.array(rows)


# the baseline from single nodes


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (HN(), graph("path")),
        (HN(two_sided=True), THREE),
        (Myerson(two_sided=True), graph("path")),
        *((value, THREE) for value in (Myerson(), Shapley(), Banzhaf())),
    ],
)
def test_single_nodes_are_taken_off_by_linearity(value: Value, data: Data) -> None:
    model = network("gcn")
    one = explain(model, data, baseline="singletons", value=value)
    bare = explain(model, data, baseline=0.0, value=value)
    alone = probabilities(model, data, [[i] for i in range(data.num_nodes)], one.target_class)
    assert one.baseline == pytest.approx([alone.mean()], abs=1e-6)
    nodes = CommunicationGraph.from_edge_index(data.edge_index, data.num_nodes)
    constant = self_dual(constant_game) if value.sides > 1 else constant_game
    expected = bare.scores.numpy() - one.baseline[0] * VALUES[value.name](constant, nodes).values
    np.testing.assert_allclose(one.scores, expected, atol=1e-6)
    # what scores sum to, from the network itself
    assert float(one.worth) == pytest.approx(float(bare.worth) - one.baseline[0], abs=1e-6)


def test_scores_of_several_components_sum_to_their_self_dual_worths() -> None:
    model = network("gin")
    parts, everybody = [[0, 1, 2], [3, 4], [5]], [*range(6)]
    others = [[i for i in everybody if i not in part] for part in parts]
    for kind in (HN, Myerson):
        for baseline in (0.25, "singletons"):
            one = explain(model, THREE, value=kind(two_sided=True), baseline=baseline)
            c, column = one.baseline[0], one.target_class
            full = probabilities(model, THREE, [everybody], column)[0] - c
            inside = probabilities(model, THREE, parts, column) - c
            outside = probabilities(model, THREE, others, column) - c
            worths = (inside + full - outside) / 2
            assert float(one.component_worth) == pytest.approx(worths.sum(), abs=1e-6)
            assert float(one.worth) == pytest.approx(full, abs=1e-6)
            for part, worth in zip(parts, worths, strict=True):
                assert float(one.scores[part].sum()) == pytest.approx(worth, abs=1e-6)


def test_several_targets_and_custom_payoffs_have_a_baseline_each() -> None:
    model, data = network("gcn"), graph("path")
    both = explain(model, data, target="all", baseline="singletons", value=Myerson(two_sided=True))
    for column in (0, 1):
        one = explain(
            model, data, target=column, baseline="singletons", value=Myerson(two_sided=True)
        )
        np.testing.assert_allclose(both.scores[:, column], one.scores, atol=1e-7)
        assert both.baseline[column] == pytest.approx(one.baseline[0], abs=1e-7)

    def payoff(outputs: Tensor) -> Tensor:
        return torch.stack([outputs[:, 0] ** 2, outputs.sum(dim=1)], dim=1)

    custom = explain(model, data, payoff=payoff, baseline="singletons")
    game = GNNGame(model, data, payoff=payoff, baseline=0.0)
    np.testing.assert_allclose(
        custom.baseline, game(np.eye(5, dtype=np.bool_)).mean(axis=0), atol=1e-6
    )


def test_a_game_with_this_baseline_gives_single_nodes_a_mean_of_zero_and_counts_them() -> None:
    model, data = network("gcn"), graph("path")
    game = GNNGame(model, data, baseline="singletons", lazy=True)
    everybody = np.ones((1, 5), dtype=np.bool_)
    full = game(everybody)
    assert game.evaluations == 6
    assert game(np.eye(5, dtype=np.bool_)).mean() == pytest.approx(0.0, abs=1e-7)
    assert game.evaluations == 6
    assert game.payoff.baseline_source == "singletons"
    assert full[0] == pytest.approx(
        GNNGame(model, data, baseline=0.0)(everybody)[0] - game.payoff.baseline[0], abs=1e-6
    )


def test_for_a_node_single_players_are_evaluated_with_the_target() -> None:
    torch.manual_seed(0)
    model, data = GCN(FEATURES, 8, 2, readout=None), graph("path")
    how: dict[str, Any] = {"task": "node", "index": 0}
    game = GNNGame(model, data, baseline="singletons", **how)
    bare = GNNGame(model, data, baseline=0.0, **how)
    alone = bare(np.eye(bare.n, dtype=np.bool_))
    assert game.payoff.baseline == pytest.approx((alone.mean(),), abs=1e-6)
    one = explain(model, data, baseline="singletons", value=Myerson(two_sided=True), **how)
    assert float(one.scores.sum()) == pytest.approx(float(one.component_worth), abs=1e-6)


def test_many_graphs_get_their_own_baselines() -> None:
    model, graphs = network("gcn"), [graph("path", seed=1), THREE, graph("components")]
    for value in (Myerson(two_sided=True), Subgraphs(value="myerson", max_sample_size=3)):
        how: dict[str, Any] = {"value": value, "baseline": "singletons"}
        many = explain_many(model, graphs, seed=0, progress=False, **how)
        for position, data in enumerate(graphs):
            seed = graph_generator(0, position)
            one = explain(model, data, seed=seed, **how)
            assert many[position].baseline == pytest.approx(one.baseline, abs=1e-6)
            np.testing.assert_allclose(many[position].scores, one.scores, atol=1e-6)


# both sides


@settings(max_examples=25, deadline=None)
@given(graph_games(min_nodes=1, max_nodes=5, elements=REAL))
def test_two_sided_values_by_their_definitions(case: tuple[TableGame, CommunicationGraph]) -> None:
    game, nodes = case
    n, table = game.n, game.worths
    both = (table + table[-1] - table[2**n - 1 - np.arange(2**n)]) / 2
    limit, settled = squared_until_settled(
        associated_matrix(nodes, 1 / n), tol=1e-12, max_squarings=40
    )
    assert settled
    definitions: dict[type[Myerson], Any] = {
        HN: own_worths(limit, TableGame(n, both)),
        Myerson: shapley_by_orders(restricted_table(both, nodes), n),
    }
    for kind, expected in definitions.items():
        chosen = Budgeted(kind(two_sided=True))
        allocation, estimator = chosen.allocate(game, nodes, seed=0)
        assert estimator == "exact"
        np.testing.assert_allclose(allocation.values, expected, rtol=0, atol=1e-7)


def sparse(n: int, seed: int) -> CommunicationGraph:
    """A random tree with a few more edges."""
    draw = np.random.default_rng(seed)
    edges = [(int(draw.integers(i)), i) for i in range(1, n)]
    edges += [tuple(draw.choice(n, 2, replace=False).tolist()) for _ in range(n // 5)]
    return CommunicationGraph(n, edges)


def pair_game(nodes: CommunicationGraph, seed: int) -> Any:
    """Worths of nodes and of edges inside, then bent."""
    draw = np.random.default_rng(seed)
    alone, together = draw.normal(size=nodes.num_nodes), draw.normal(size=len(nodes.edges))

    def worth(coalitions: Coalitions) -> Numbers:
        inside = coalitions[:, nodes.edges[:, 0]] & coalitions[:, nodes.edges[:, 1]]
        return np.tanh(0.3 * (coalitions @ alone + inside @ together))

    return worth


@pytest.mark.parametrize("kind", [HN, Myerson])
def test_sampled_two_sided_values_are_within_their_errors_and_their_budget(
    kind: type[Myerson],
) -> None:
    nodes = sparse(16, seed=2)
    game = pair_game(nodes, seed=2)
    truth = VALUES[kind.name](self_dual(game), nodes).values
    budget, inside = 301, []
    for seed in range(12):
        recorder = Recorder(game)
        chosen = Budgeted(kind(two_sided=True), budget)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            allocation, estimator = chosen.allocate(recorder, nodes, seed=seed)
        assert estimator != "exact"
        assert not allocation.exact
        assert budget // 2 < len(recorder.seen) <= budget
        assert allocation.values.sum() == pytest.approx(game(np.ones((1, 16), bool))[0])
        inside.append(np.abs(allocation.values - truth) <= 2 * allocation.std_error)
    assert 0.88 <= np.mean(inside) <= 1.0


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([HN, Myerson]), st.integers(0, 500), st.integers(0, 120), st.booleans())
def test_no_more_coalitions_are_evaluated_than_the_budget_allows(
    kind: type[Myerson], seed: int, more: int, apart: bool
) -> None:
    nodes = sparse(10, seed)
    if apart:
        nodes = CommunicationGraph(13, [*map(tuple, nodes.edges.tolist()), (10, 11)])
    recorder = Recorder(pair_game(nodes, seed))
    budget = 2 * nodes.num_nodes + 1 + more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        allocation, _ = Budgeted(kind(two_sided=True), budget).allocate(recorder, nodes, seed=seed)
    assert len(recorder.seen) <= budget
    needed = {*map(tuple, map(np.flatnonzero, nodes.connected_coalitions()))}
    everybody = tuple(range(nodes.num_nodes))
    needed |= {tuple(i for i in everybody if i not in part) for part in needed} | {everybody}
    # exact wherever all that matter fit
    assert allocation.exact == (len(needed - {()}) <= budget)


@pytest.mark.parametrize("kind", [HN, Myerson, Shapley, Banzhaf])
def test_single_nodes_for_the_baseline_count_for_the_budget(kind: type[Value]) -> None:
    draw = torch.Generator().manual_seed(0)
    n = 20
    edges = torch.tensor([(i, (i + j) % n) for i in range(n) for j in (1, -1, 3, -3)]).t()
    data = Data(x=torch.randn(n, FEATURES, generator=draw), edge_index=edges)
    model = network("gcn")
    both_sides: list[Any] = [kind(two_sided=True)] if issubclass(kind, Myerson) else []
    for value in [kind(), *both_sides]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            one = explain(
                model,
                data,
                value=value,
                budget=150,
                baseline="singletons",
                seed=1,
            )
        assert not one.exact
        assert 90 < one.evaluations <= 150


def test_a_ring_is_exact_with_half_of_the_budget_because_complements_are_connected() -> None:
    connected = 8 * 7 + 1
    recorder = Recorder(pair_game(ring(8), seed=0))
    assert Budgeted(Myerson(two_sided=True), connected).allocate(recorder, ring(8), seed=0)[0].exact
    assert len(recorder.seen) == connected


# what is refused


def test_two_sided_is_refused_where_it_has_no_meaning() -> None:
    for kind in (Shapley, Banzhaf, Position):
        with pytest.raises(TypeError, match="unexpected keyword argument 'two_sided'"):
            kind(two_sided=True)
    with pytest.raises(ValueError, match=r"no estimator 'subgraphs' for HN; valid are auto, .*gro"):
        HN(estimator="subgraphs", two_sided=True)
    game = pair_game(path(12), seed=0)
    with pytest.raises(ValueError, match=r"budget must be at least 23 for 12 nodes .*got 22"):
        Budgeted(Myerson(two_sided=True), 22).allocate(game, path(12), seed=0)
    exactly = Myerson(two_sided=True, estimator="exact")
    with pytest.raises(TooManyCoalitions, match=r"133 coalitions and the limit is 100"):
        Budgeted(exactly, 100).allocate(game, path(12), seed=0)


def test_an_unknown_rule_for_the_baseline_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(
        ValueError, match=r"one per class, 'singletons' or 'uniform' \(got 'singleton'\)"
    ):
        GStarX(baseline="singleton")
    with pytest.raises(ValueError, match=r"got 'mean'"):
        GNNGame(network("gcn"), graph("path"), baseline="mean")


@for_each("wrong", [["singletons"], [[0.5], [0.5, 0.5]], {"a": 1}, object])
def test_a_baseline_that_is_no_number_is_refused(wrong: Any) -> None:
    message = r"baseline must be a number, one per class, 'singletons' or 'uniform' \(got "
    with pytest.raises(TypeError, match=message):
        GStarX(baseline=wrong)
    with pytest.raises(TypeError, match=message):
        GNNGame(network("gcn"), graph("path"), baseline=wrong)


class Picky(nn.Module):
    """Fails, or returns nan, on graphs that are not connected or have too few nodes."""

    def __init__(self, least: int, *, quietly: bool = False, connected: bool = True) -> None:
        super().__init__()
        self.least, self.quietly, self.connected = least, quietly, connected
        torch.manual_seed(0)
        self.net = GCN(FEATURES, 8, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        parts = len(CommunicationGraph.from_edge_index(edge_index, len(x)).components)
        if len(x) < self.least or (self.connected and parts > 1):
            if not self.quietly:
                raise RuntimeError("cannot read this graph")
            return torch.full((1, 2), torch.nan)
        return self.net(x, edge_index)


def test_a_model_that_fails_on_disconnected_graphs_is_reported_with_the_coalition() -> None:
    data = graph("path")
    assert explain(Picky(1), data).exact
    with pytest.raises(RuntimeError) as raised:
        explain(Picky(1), data, value=Myerson(two_sided=True))
    notes = " ".join(raised.value.__notes__)
    assert "raised on coalition {0, 2, 3, 4}; GameOptions(fallback=" in notes
    with pytest.raises(ValueError, match=r"coalition \{0, 2, 3, 4\} gives a worth of \[nan\]"):
        explain(Picky(1, quietly=True), data, value=Myerson(two_sided=True))


def test_a_large_coalition_on_which_the_model_fails_is_named_by_who_is_missing() -> None:
    ends = torch.stack([torch.arange(25), torch.arange(1, 26)])
    data = Data(x=torch.ones(26, FEATURES), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    with pytest.raises(RuntimeError) as raised:
        explain(Picky(1), data, value=Myerson(two_sided=True))
    assert (
        "raised on the coalition of all 26 nodes but {1}; GameOptions(fallback="
        in raised.value.__notes__[0]
    )
    with pytest.raises(
        ValueError, match=r"for the coalition of all 26 nodes but \{1\} gives a worth"
    ):
        explain(Picky(1, quietly=True), data, value=Myerson(two_sided=True))


@pytest.mark.parametrize("quietly", [False, True])
def test_a_fallback_is_the_worth_of_coalitions_on_which_the_model_fails(quietly: bool) -> None:
    data, model = graph("path"), Picky(1, quietly=quietly)
    one = explain(
        model,
        data,
        baseline="singletons",
        game=GameOptions(fallback=0.125),
        value=HN(two_sided=True),
    )
    c, column = one.baseline[0], one.target_class
    fails = [0, 2, 3, 4]

    def worth(coalitions: Coalitions) -> Numbers:
        sets = [np.flatnonzero(row).tolist() for row in coalitions]
        connected = [max(s) - min(s) == len(s) - 1 for s in sets]
        return np.array(
            [
                probabilities(model.net, data, [s], column)[0] - c if ok else 0.125
                for s, ok in zip(sets, connected, strict=True)
            ]
        )

    expected = hn_value(self_dual(worth), path(5)).values
    np.testing.assert_allclose(one.scores, expected, atol=1e-6)
    game = GNNGame(model, data, baseline="singletons", game=GameOptions(fallback=0.125))
    mask = np.zeros((1, 5), dtype=np.bool_)
    mask[0, fails] = True
    assert game(mask).tolist() == [0.125]


def test_single_nodes_on_which_the_model_fails_do_not_count_for_the_baseline() -> None:
    class NotNodeZero(Picky):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            if len(x) == 1 and bool((x[0] == graph("path").x[0]).all()):
                raise RuntimeError("not this one")
            return self.net(x, edge_index)

    data, model = graph("path"), NotNodeZero(1)
    game = GNNGame(model, data, baseline="singletons", target=1, game=GameOptions(fallback=0.0))
    others = probabilities(model.net, data, [[i] for i in range(1, 5)], 1)
    assert game.payoff.baseline == pytest.approx((others.mean(),), abs=1e-6)
    with pytest.raises(ValueError, match=r"fails on each of 5 single nodes.*give baseline a num"):
        explain(
            Picky(2, connected=False), data, baseline="singletons", game=GameOptions(fallback=0.0)
        )
    with pytest.raises(RuntimeError) as raised:
        explain(Picky(2, connected=False), data, baseline="singletons")
    assert "raised on coalition {0}" in " ".join(raised.value.__notes__)


# the examples of the paper


@pytest.mark.parametrize(
    ("value", "one_sided", "two_sided"),
    [
        ("hn", (1 / 2, 1 / 4, 0, 1 / 4), (3 / 8, 1 / 8, 1 / 8, 3 / 8)),
        ("myerson", (1 / 2, 1 / 6, 0, 1 / 3), (5 / 12, 1 / 12, 1 / 12, 5 / 12)),
    ],
)
def test_the_weights_of_an_end_of_a_path_of_three(
    value: str, one_sided: tuple[float, ...], two_sided: tuple[float, ...]
) -> None:
    """Figure 1a: the contributions of the first node to nobody, the second, the third, and both."""
    draw = np.random.default_rng(0)
    game = TableGame(3, [0.0, *draw.normal(size=7)])
    worths = game.worths
    contributions = np.array([worths[mask | 1] - worths[mask] for mask in (0, 2, 4, 6)])
    for weights, played in ((one_sided, game), (two_sided, self_dual(game))):
        assert VALUES[value](played, path(3)).values[0] == pytest.approx(weights @ contributions)


@pytest.mark.parametrize(
    ("kind", "baseline", "two_sided"),
    pairwise([HN, Myerson], ["uniform", "singletons"], [False, True]),
)
def test_the_oxygens_of_nitro_groups_are_selected(
    kind: type[Myerson], baseline: str, two_sided: bool
) -> None:
    """Figure 3: molecule 28 of MUTAG."""
    data, model = mutag()[28], mutag_gcn()
    atoms, bonds = data.x.argmax(dim=1).tolist(), data.edge_index.t().tolist()
    oxygens = sorted(b for a, b in bonds if (atoms[a], atoms[b]) == (1, 2))
    assert len(oxygens) == 6
    one = explain(
        model,
        data,
        value=kind(two_sided=two_sided),
        baseline=None if baseline == "uniform" else baseline,
        seed=0,
    )
    assert one.select(size=6).tolist() == oxygens
