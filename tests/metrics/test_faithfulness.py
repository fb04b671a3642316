"""The paper's metrics: by hand, within their bounds, and many at once as one by one."""

from __future__ import annotations

import pkgutil
from dataclasses import astuple
from itertools import cycle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_add_pool

from gstarx import GameOptions, GNNGame, Judge, metrics
from gstarx.metrics import Faithfulness, average, evaluate
from gstarx.metrics.comparison import renumbered
from gstarx.metrics.faithfulness import METRICS, harmonic_mean_of
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, NETWORKS, build
from tests.gnn.one_by_one import averaged, graph, outputs
from tests.metrics.by_hand import CHANCES, by_table, harmonic, path
from tests.shared import mutag, mutag_gcn
from tests.strategies import edge_lists

MODEL = by_table(CHANCES)
UNIT = st.floats(0, 1)

#: Nodes, and the metrics of class 1, whose probability is 0.9: by hand from the table.
GOLDEN = {
    # without 1: 0.2, alone 0.4
    (1,): (0.7, 0.5, 2 / 3, 0.7 * 2 / 3, 0.5 / 3, 22 / 15 * (5 / 6) / (22 / 15 + 5 / 6)),
    # without 0 and 1: 0.5, alone 0.7
    (0, 1): (0.4, 0.2, 1 / 3, 0.4 / 3, 0.4 / 3, 17 / 15 * (13 / 15) / 2),
    # without anybody: 0, alone 0.9
    (0, 1, 2): (0.9, 0.0, 0.0, 0.0, 0.0, 0.5),
    # nobody alone: 0, the rest is all
    (): (0.0, 0.9, 1.0, 0.0, 0.0, 0.5),
}


def test_by_hand() -> None:
    for nodes in GOLDEN:
        found = evaluate(MODEL, path(3), list(nodes))
        assert astuple(found) == pytest.approx((*GOLDEN[nodes], 0, 0), abs=1e-9)
        in_order = dict(zip(METRICS, GOLDEN[nodes], strict=True))
        assert metrics.sparsity(path(3), nodes) == pytest.approx(in_order["sparsity"], abs=1e-9)


def test_the_other_class_by_hand() -> None:
    found = evaluate(MODEL, path(3), [1], target=0)
    # 0.1 of the whole, 0.8 without, 0.6 alone
    assert astuple(found)[:3] == pytest.approx((-0.7, -0.5, 2 / 3), abs=1e-9)
    assert found.harmonic_fidelity == pytest.approx(harmonic(0.1, 0.8, 0.6, 2 / 3), abs=1e-9)


def test_no_module_hides_a_metric() -> None:
    modules = {module.name for module in pkgutil.iter_modules(metrics.__path__)}
    assert not modules & set(metrics.__all__)
    assert not any(isinstance(getattr(metrics, name), ModuleType) for name in metrics.__all__)


def test_the_order_of_the_metrics() -> None:
    assert METRICS == (
        "fidelity",
        "inverse_fidelity",
        "sparsity",
        "normalized_fidelity",
        "normalized_inverse_fidelity",
        "harmonic_fidelity",
    )


def test_nodes_come_in_many_ways() -> None:
    for nodes in (
        [2, 0],
        (0, 2),
        {2, 0},
        frozenset({0, 2}),
        np.array([0, 2]),
        torch.tensor([2, 0]),
        np.array([True, False, True]),
        torch.tensor([True, False, True]),
        [True, False, True],
        range(0, 3, 2),
    ):
        data = path(3)
        expected = Faithfulness.of(0.9, 0.4, 0.2, 1 / 3)
        assert astuple(evaluate(MODEL, data, nodes)) == pytest.approx(astuple(expected), abs=1e-9)
        assert metrics.sparsity(data, nodes) == pytest.approx(1 / 3)
        several = Judge(MODEL).many([data], [[nodes, nodes]])
        assert [astuple(found) for found in several[0]] == [
            astuple(evaluate(MODEL, data, nodes))
        ] * 2


@given(UNIT, UNIT, UNIT, UNIT)
def test_bounds(whole: float, without: float, alone: float, sparsity: float) -> None:
    found = Faithfulness.of(whole, without, alone, sparsity)
    assert 0 <= found.harmonic_fidelity <= 1
    assert abs(found.normalized_fidelity) <= 1
    assert abs(found.normalized_inverse_fidelity) <= 1
    if min(1 + found.normalized_fidelity, 1 - found.normalized_inverse_fidelity) > 1e-6:
        assert found.harmonic_fidelity == pytest.approx(harmonic(whole, without, alone, sparsity))


@given(UNIT, UNIT, UNIT, UNIT, st.floats(0.01, 0.99))
def test_harmonic_fidelity_rises_with_fidelity_and_falls_with_inverse_fidelity(
    whole: float, one: float, other: float, fixed: float, sparsity: float
) -> None:
    low, high = sorted((one, other))

    def h(without: float, alone: float) -> float:
        return Faithfulness.of(whole, without, alone, sparsity).harmonic_fidelity

    assert h(low, fixed) >= h(high, fixed)
    assert h(fixed, high) >= h(fixed, low)
    if high - low > 1e-6:
        assert h(low, fixed) > h(high, fixed)
        assert h(fixed, high) > h(fixed, low)


def test_the_ends_of_harmonic_fidelity() -> None:
    assert harmonic_mean_of(1.0, -1.0) == 1
    assert harmonic_mean_of(-1.0, 1.0) == 0
    assert harmonic_mean_of(-1.0, -1.0) == harmonic_mean_of(1.0, 1.0) == 0
    np.testing.assert_array_equal(harmonic_mean_of([0.0, -1.0], [0.0, 1.0]), [0.5, 0.0])


@settings(max_examples=30)
@given(st.data())
def test_the_numbering_of_nodes_does_not_matter(data: st.DataObject) -> None:
    n, edges = data.draw(edge_lists(max_nodes=6))
    draw = torch.Generator().manual_seed(0)
    given_graph = Data(
        x=torch.randn(n, FEATURES, generator=draw),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
    )
    order = np.array(data.draw(st.permutations(range(n))))
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    removal = data.draw(st.sampled_from(["remove", "split", "zero_filling"]))
    model = build(data.draw(st.sampled_from(["gcn", "gat"])))
    one = evaluate(model, given_graph, inside, removal=removal)
    other = evaluate(model, renumbered(given_graph, order), inside[order], removal=removal)
    assert astuple(other) == pytest.approx(astuple(one), abs=1e-6)
    assert 0 <= one.harmonic_fidelity <= 1
    assert one.sparsity == pytest.approx(1 - inside.mean())


SHAPES = ("messy", "as many nodes as edges", "no edges", "one node", "ring")


def some_sets(n: int) -> list[list[int]]:
    """Nobody, everybody, one node, every other node."""
    return [[], list(range(n)), [n - 1], list(range(0, n, 2))]


def unweighted(name: str) -> Data:
    """Nothing but features and edges."""
    return Data(x=graph(name).x, edge_index=graph(name).edge_index)


def by_definition(name: str, model: Any, data: Data, nodes: list[int], removal: str) -> Any:
    """All metrics from one call of the model for every part."""
    inside = np.isin(np.arange(data.num_nodes), nodes)
    rows = [np.ones_like(inside), inside, ~inside]
    chances = [
        torch.from_numpy(outputs(name, model, data, [row], removal=removal)).softmax(1)[0]
        if row.any()
        else torch.zeros(CLASSES)
        for row in rows
    ]
    target = int(chances[0].argmax())
    whole, alone, without = (float(chance[target]) for chance in chances)
    return Faithfulness.of(whole, without, alone, 1 - inside.mean())


REMOVALS = ("remove", "split", "zero_filling", "averaged")


@pytest.mark.parametrize(
    ("name", "removal"),
    [
        *zip(NETWORKS, cycle(REMOVALS)),
        *(("gcn", removal) for removal in REMOVALS[1:]),
    ],
)
def test_many_at_once_are_what_each_is_alone(name: str, removal: str) -> None:
    model, graphs = build(name), [graph(shape) for shape in SHAPES]
    option: Any = averaged if removal == "averaged" else removal
    sets = [some_sets(data.num_nodes) for data in graphs]
    expected = [
        [astuple(by_definition(name, model, data, nodes, removal)) for nodes in own]
        for data, own in zip(graphs, sets, strict=True)
    ]
    found = Judge(model, removal=option, batch_nodes=7).many(graphs, sets)
    for data, own, wanted, got in zip(graphs, sets, expected, found, strict=True):
        assert [astuple(one) for one in got] == [pytest.approx(one, abs=1e-6) for one in wanted]
        alone = evaluate(model, data, own[-1], removal=option)
        assert astuple(alone) == pytest.approx(wanted[-1], abs=1e-6)


def test_the_networks_tell_parts_apart() -> None:
    # so that the test above says something
    for name in NETWORKS:
        found = evaluate(build(name), graph("messy"), [1, 2, 4])
        assert abs(found.fidelity) > 1e-3, name
        assert abs(found.inverse_fidelity) > 1e-3, name


@pytest.mark.parametrize(
    ("batch_nodes", "removal"), [(1, "remove"), (7, "split"), (None, "zero_filling"), (7, "remove")]
)
def test_the_size_of_batches_does_not_matter(batch_nodes: int | None, removal: str) -> None:
    model, graphs = build("gine"), [graph(shape) for shape in SHAPES]
    sets = [some_sets(data.num_nodes) for data in graphs]
    found = Judge(model, removal=removal, batch_nodes=batch_nodes).many(graphs, sets)
    for data, own, got in zip(graphs, sets, found, strict=True):
        for nodes, one in zip(own, got, strict=True):
            expected = by_definition("gine", model, data, nodes, removal)
            assert astuple(one) == pytest.approx(astuple(expected), abs=1e-6)


def test_one_set_or_a_list_of_sets_for_every_graph() -> None:
    data, model = graph("ring"), build("gcn")
    one = evaluate(model, data, [0, 1])
    found = Judge(model).many(
        [data] * 6, [[0, 1], [[0, 1]], [np.array([1, 0])], [{0, 1}, {2}], [], [[]]]
    )
    assert astuple(found[0]) == pytest.approx(astuple(one), abs=1e-6)
    assert [len(entry) for entry in found[1:4]] == [1, 1, 2]
    assert [entry[0] for entry in found[1:4]] == [found[0]] * 3
    assert found[4].sparsity == 1
    assert [entry.sparsity for entry in found[5]] == [1]


def test_a_target_for_all_or_for_each() -> None:
    graphs, model = [graph("ring"), graph("messy"), graph("wide")], build("gcn")
    sets = [[0], [1, 2], [60, 61]]
    for target in (2, np.int64(2), torch.tensor(2)):
        for found, data, own in zip(
            Judge(model).many(graphs, sets, target=target), graphs, sets, strict=True
        ):
            expected = evaluate(model, data, own, target=2)
            assert astuple(found) == pytest.approx(astuple(expected), abs=1e-6)
    predicted = [int(GNNGame(model, data).prediction.argmax()) for data in graphs]
    other = (predicted[0] + 1) % CLASSES
    mixed = Judge(model).many(graphs, sets, target=[other, None, predicted[2]])
    assert mixed[0] != Judge(model).many(graphs, sets)[0]
    assert mixed[1:] == Judge(model).many(graphs, sets)[1:]
    tensors = Judge(model).many(graphs, sets, target=torch.tensor(predicted))
    assert tensors == Judge(model).many(graphs, sets)


def test_one_logit_is_two_classes() -> None:
    torch.manual_seed(1)
    model, data = GCN(FEATURES, 8, 1), unweighted("ring")
    with torch.no_grad():
        chance = float(model(data.x, data.edge_index).sigmoid())
    options: dict[str, Any] = {"task": "binary_classification"}
    yes, no = (evaluate(model, data, [0, 1, 2], target=t, **options) for t in (1, 0))
    assert yes.fidelity == pytest.approx(-no.fidelity, abs=1e-6)
    assert yes.inverse_fidelity == pytest.approx(-no.inverse_fidelity, abs=1e-6)
    assert evaluate(model, data, [], target=1, **options).inverse_fidelity == pytest.approx(chance)
    predicted = yes if chance > 0.5 else no
    assert evaluate(model, data, [0, 1, 2], **options) == predicted


def test_several_labels_need_a_target() -> None:
    for labels in (2, 5):
        torch.manual_seed(1)
        model, data = GCN(FEATURES, 8, labels), unweighted("ring")
        with torch.no_grad():
            chances = model(data.x, data.edge_index).sigmoid()[0]
        options: dict[str, Any] = {"task": "binary_classification"}
        for label in range(labels):
            found = evaluate(model, data, [], target=label, **options)
            assert found.inverse_fidelity == pytest.approx(float(chances[label]), abs=1e-6)
        with pytest.raises(ValueError, match=f"has {labels} outputs: choose one with target"):
            evaluate(model, data, [0], **options)


def telling(model: Any, scale: Any) -> Any:
    def told(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return scale(model(x, edge_index, batch), dim=1)

    return told


def test_models_that_return_probabilities() -> None:
    model, data = build("gcn"), unweighted("ring")
    expected = evaluate(model, data, [0, 1])
    for return_type, scale in (("probs", torch.softmax), ("log_probs", torch.log_softmax)):
        found = evaluate(telling(model, scale), data, [0, 1], task={"return_type": return_type})
        assert astuple(found) == pytest.approx(astuple(expected), abs=1e-6)


def test_probabilities_taken_for_logits_are_noticed() -> None:
    model = build("gcn")
    with pytest.warns(UserWarning, match="look like probabilities.*return_type='probs'"):
        evaluate(
            lambda x, edge_index, batch: model(x, edge_index, batch).softmax(1), graph("ring"), [0]
        )


class Nodes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


def test_a_node_and_those_around_it() -> None:
    torch.manual_seed(0)
    model, data = Nodes(), graph("ring")
    # of the six nodes of the ring, five are within two steps
    game = GNNGame(model, data, payoff="prob", task="node", index=0, game=GameOptions(num_hops=2))
    assert game.nodes.tolist() == [0, 1, 2, 4, 5]
    found = evaluate(model, data, [0, 1, 3], task="node", index=0, num_hops=2)
    assert found.sparsity == pytest.approx(3 / 5)
    kept = np.array([[True, True, False, False, False]])
    whole, alone, without = game(np.concatenate([np.ones((1, 5), bool), kept, ~kept]))
    assert found == Faithfulness.of(whole, without, alone, found.sparsity)
    many = Judge(model, task="node", num_hops=2).many(
        [data, data], [[[0, 1, 3], []], [0, 1]], index=0
    )
    assert many[0][0] == many[1] == found
    assert many[0][1].inverse_fidelity == pytest.approx(whole)


class Marked(nn.Module):
    """Dropout and batch norm, some of it frozen, and a buffer that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, 8, cached=False)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.head = nn.Linear(8, CLASSES)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        self.calls += 1
        return self.head(global_add_pool(self.drop(self.norm(self.conv(x, edge_index))), batch))


def test_the_model_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = Marked().train()
    model.norm.eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    graphs = [graph("ring"), graph("messy")]
    again = [Judge(model).many(graphs, [[0], [1]]) for _ in range(2)]
    assert again[0] == again[1]  # no dropout
    assert model.training
    assert not model.norm.training
    assert model.drop.training
    assert torch.equal(torch.get_rng_state(), random)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert all(parameter.grad is None for parameter in model.parameters())


def test_graphs_that_carry_different_fields() -> None:
    plain = unweighted("ring")
    model = build("gcn")  # takes edge weights where there are some
    found = Judge(model).many([plain, graph("ring")], [[0], [0]])
    assert found[0] != found[1]
    assert astuple(found[0]) == pytest.approx(astuple(evaluate(model, plain, [0])), abs=1e-6)


def test_average() -> None:
    one, other = Faithfulness.of(0.9, 0.2, 0.4, 2 / 3), Faithfulness.of(0.5, 0.5, 0.5, 0.0)
    mean = average(iter([one, other]))
    assert mean.fidelity == pytest.approx(0.35)
    # of the values, not of the fidelities
    expected = (one.harmonic_fidelity + 0.5) / 2
    assert mean.harmonic_fidelity == pytest.approx(expected)
    with pytest.raises(ValueError, match="nothing to average"):
        average([])

    assert Judge(MODEL).many([], []) == []


def test_the_papers_molecule() -> None:
    """Keeping the nitro groups of MUTAG's molecule 28, or their oxygens, as the paper reports."""
    data, model = mutag()[28], mutag_gcn()
    atoms = data.x.argmax(dim=1)
    nitrogen, oxygen = 1, 2
    bonds = data.edge_index.t().tolist()
    oxygens = sorted(b for a, b in bonds if atoms[a] == nitrogen and atoms[b] == oxygen)
    nitrogens = sorted({a for a, b in bonds if b in oxygens and atoms[a] == nitrogen})
    assert (len(nitrogens), len(oxygens)) == (3, 6)
    groups = metrics.evaluate(model, data, nitrogens + oxygens).inverse_fidelity
    assert groups == pytest.approx(-0.143, abs=5e-4)
    assert metrics.evaluate(model, data, oxygens).inverse_fidelity == pytest.approx(
        -0.234, abs=5e-4
    )
