"""PyG's conventions: several indices, masks, batches of graphs, and masks between 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import (
    Explainer,
    characterization_score,
    fidelity,
    groundtruth_metrics,
    unfaithfulness,
)
from torch_geometric.nn import GCNConv, GraphNorm, global_add_pool

from gstarx import GStarX, Task, explain
from gstarx.explainers import create, graph_generator
from gstarx.values import PrecisionWarning
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small
from tests.pairs import for_each, in_turn
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

MODES = ["multiclass_classification", "binary_classification", "regression"]


class Network(nn.Module):
    def __init__(self, level: str, columns: int = 3, *, norm: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.level, self.norm = level, GraphNorm(8) if norm else None
        self.first, self.second = GCNConv(4, 8), GCNConv(8, columns)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        edge_label_index: Tensor | None = None,
    ) -> Tensor:
        x = self.first(x, edge_index)
        if self.norm is not None:
            x = self.norm(x, batch)
        x = 5 * self.second(x.relu(), edge_index) - 2
        if self.level == "graph":
            return global_add_pool(x, batch)
        if self.level == "edge":
            assert edge_label_index is not None
            return x[edge_label_index[0]] * x[edge_label_index[1]]
        return x


def ring(n: int, seed: int) -> Data:
    there = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    return Data(x=x, edge_index=torch.cat([there, there.flip(0)], dim=1))


GRAPHS = [ring(4, 0), ring(3, 1), ring(5, 2)]
GRAPHS[1].edge_index = GRAPHS[1].edge_index[:, [0, 1, 3, 4]]  # a path
BATCH = Batch.from_data_list(GRAPHS)
#: Two pairs inside graphs, and one between two of them.
PAIRS = torch.tensor([[0, 5, 1], [2, 4, 9]])


def explainer(model: Any, level: str, mode: str = MODES[0], **options: Any) -> Explainer:
    node_mask_type = options.pop("node_mask_type", "object")
    edge_mask_type = options.pop("edge_mask_type", None)
    kind = options.pop("kind", "model")
    threshold = options.pop("threshold_config", None)
    return Explainer(
        model,
        algorithm=GStarX(**{"value": "shapley", **options}),
        explanation_type=kind,
        node_mask_type=node_mask_type,
        edge_mask_type=edge_mask_type,
        model_config={"mode": mode, "task_level": level, "return_type": "raw"},
        threshold_config=threshold,
    )


def columns(mode: str) -> int:
    return 3 if mode == MODES[0] else 1


INDICES: list[tuple[Any, list[int]]] = [
    (None, [0, 1, 2, 3]),
    (2, [2]),
    (torch.tensor(2), [2]),
    (torch.tensor([1]), [1]),
    (torch.arange(3), [0, 1, 2]),
    (torch.tensor([True, False, False, True]), [0, 3]),
]


@pytest.mark.parametrize(("asked", "mode"), in_turn(INDICES, MODES))
def test_several_nodes_are_the_sum_of_each(asked: tuple[Any, list[int]], mode: str) -> None:
    index, rows = asked
    data, model = GRAPHS[0], Network("node", columns(mode))
    found = explainer(model, "node", mode, edge_mask_type="object")(
        data.x, data.edge_index, index=index
    )
    alone = [
        explain(model, data, index=row, value="shapley", task={"mode": mode, "task_level": "node"})
        for row in rows
    ]
    expected = torch.stack([one.node_scores for one in alone]).sum(dim=0)
    assert torch.allclose(found.node_scores, expected, atol=1e-12)
    assert torch.allclose(found.node_mask[:, 0].double(), expected, atol=1e-6)
    assert torch.allclose(found.worth, torch.stack([one.worth for one in alone]).sum(dim=0))
    assert float(found.scores.sum()) == pytest.approx(float(found.worth), abs=1e-9)
    assert found.evaluations == sum(one.evaluations for one in alone)
    assert found.explained == [one.target_class for one in alone]
    assert found.exact
    assert found.validate()
    ends = data.edge_index
    means = (expected[ends[0]] + expected[ends[1]]) / 2
    assert torch.allclose(found.edge_mask.double(), means, atol=1e-6)


@pytest.mark.parametrize("players", ["edges", "features", [[0, 1], [2, 3]]])
def test_several_nodes_with_other_players(players: Any) -> None:
    data, model = GRAPHS[0], Network("node")
    kinds = {"edges": (None, "object"), "features": ("common_attributes", None)}
    named = players if isinstance(players, str) else ""
    masks = dict(
        zip(("node_mask_type", "edge_mask_type"), kinds.get(named, ("object", None)), strict=True)
    )
    found = explainer(model, "node", players=players, **masks)(
        data.x, data.edge_index, index=torch.tensor([0, 2])
    )
    options: dict[str, Any] = {"task": "node", "value": "shapley", "players": players}
    alone = [explain(model, data, index=row, **options) for row in (0, 2)]
    mask = "edge_mask" if players == "edges" else "node_mask"
    assert torch.allclose(found[mask], alone[0][mask] + alone[1][mask], atol=1e-6)
    assert float(found.scores.sum()) == pytest.approx(float(found.worth), abs=1e-9)
    assert found.player_kind == alone[0].player_kind


@pytest.mark.parametrize(
    ("index", "mode"),
    in_turn([None, 1, torch.tensor([2, 0]), torch.tensor([0, 1, 0]) > 0], MODES),
)
def test_graphs_of_a_batch_get_the_scores_of_each(index: Any, mode: str) -> None:
    model = Network("graph", columns(mode), norm=True)
    found = explainer(model, "graph", mode, edge_mask_type="object")(
        BATCH.x, BATCH.edge_index, index=index, batch=BATCH.batch
    )
    rows = torch.arange(3) if index is None else torch.arange(3)[index].reshape(-1)
    for at, data in enumerate(GRAPHS):
        own = found.node_scores[BATCH.batch == at]
        if at in rows:
            alone = explain(model, data, value="shapley", task=mode)
            assert torch.allclose(own, alone.node_scores, atol=1e-6)
        else:
            assert not own.any()
    assert found.prediction.shape == (3, columns(mode))
    assert found.node_mask.shape == (12, 1)
    assert found.edge_mask.shape == (22,)
    assert found.validate()


@pytest.mark.parametrize("level", ["node", "edge"])
@pytest.mark.parametrize("norm", [False, True])
def test_nodes_and_pairs_in_a_batch(level: str, norm: bool) -> None:
    model = Network(level, norm=norm)
    extra = {"edge_label_index": PAIRS} if level == "edge" else {}
    # node 5 is node 1 of the second graph, and pair 1 joins its nodes 1 and 0
    index, at = (5, 1) if level == "node" else (1, 0)
    found = explainer(model, level)(
        BATCH.x, BATCH.edge_index, index=index, batch=BATCH.batch, **extra
    )
    second = GRAPHS[1].clone()
    if level == "edge":
        second.edge_label_index = torch.tensor([[1], [0]])
    alone = explain(model, second, index=at, value="shapley", task=level)
    assert torch.allclose(found.node_scores[4:7], alone.node_scores, atol=1e-6)
    assert not found.node_scores[:4].any()
    assert not found.node_scores[7:].any()


def test_a_pair_between_two_graphs() -> None:
    model = Network("edge")
    whole = Data(x=BATCH.x, edge_index=BATCH.edge_index, edge_label_index=PAIRS)
    alone = explain(model, whole, index=2, value="shapley", task="edge")
    inputs = (BATCH.x, BATCH.edge_index)
    options: dict[str, Any] = {"index": 2, "batch": BATCH.batch, "edge_label_index": PAIRS}
    found = explainer(model, "edge")(*inputs, **options)
    assert torch.allclose(found.node_scores, alone.node_scores, atol=1e-6)
    with pytest.raises(ValueError, match=r"output 2 depends on the other graphs of the batch"):
        explainer(Network("edge", norm=True), "edge")(*inputs, **options)


def test_edges_between_graphs() -> None:
    data, batch = ring(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match=r"joins node 2 of graph 0 to node 3 of graph 1"):
        explainer(Network("graph"), "graph")(data.x, data.edge_index, batch=batch)
    # a model of nodes that does not look at the batch sees one graph
    found = explainer(Network("node"), "node")(data.x, data.edge_index, index=0, batch=batch)
    alone = explain(Network("node"), data, index=0, value="shapley", task="node")
    assert torch.allclose(found.node_scores, alone.node_scores, atol=1e-6)
    with pytest.raises(ValueError, match="depends on the other graphs"):
        explainer(Network("node", norm=True), "node")(data.x, data.edge_index, index=0, batch=batch)


def test_a_model_that_mixes_the_graphs_of_a_batch() -> None:
    class Mixing(Network):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return super().forward(x - x.mean(dim=0), edge_index, batch)

    with pytest.raises(ValueError, match="output 0 depends on the other graphs of the batch"):
        explainer(Mixing("graph"), "graph")(BATCH.x, BATCH.edge_index, batch=BATCH.batch)


def test_fields_of_nodes_edges_and_graphs_go_with_each_graph() -> None:
    class Fields(nn.Module):
        def forward(
            self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, u: Tensor, batch: Tensor
        ) -> Tensor:
            heard = torch.zeros_like(x).index_add(
                0, edge_index[1], x[edge_index[0]] * edge_weight[:, None]
            )
            return global_add_pool(heard * u[batch], batch)[:, :3]

    weight, u = torch.rand(22), torch.tensor([[1.0], [-2.0], [3.0]])
    found = explainer(Fields(), "graph")(
        BATCH.x, BATCH.edge_index, edge_weight=weight, u=u, batch=BATCH.batch, index=1
    )
    second = GRAPHS[1].clone()
    second.edge_weight, second.u = weight[8:12], u[1:2]
    alone = explain(Fields(), second, value="shapley")
    assert torch.allclose(found.node_scores[4:7], alone.node_scores, atol=1e-6)
    names = {"face_index": torch.zeros(3, 1, dtype=torch.long)}

    class Naming(Fields):
        def forward(  # type: ignore[override]
            self, x: Tensor, edge_index: Tensor, face_index: Tensor, batch: Tensor
        ) -> Tensor:
            return global_add_pool(x, batch)[:, :3]

    with pytest.raises(ValueError, match=r"'face_index' names nodes or edges of 3 graphs"):
        explainer(Naming(), "graph")(BATCH.x, BATCH.edge_index, batch=BATCH.batch, **names)


def test_targets_of_a_phenomenon_belong_to_rows() -> None:
    model, target = Network("node"), torch.tensor([2, 1, 0, 1])
    data = GRAPHS[0]
    found = explainer(model, "node", kind="phenomenon")(
        data.x, data.edge_index, target=target, index=torch.tensor([0, 3])
    )
    assert found.explained == [2, 1]
    assert torch.equal(found.target, target)
    assert found.index.tolist() == [0, 3]
    with pytest.raises(ValueError, match="sums over 2 outputs"):
        found.for_target(2)
    with pytest.raises(ValueError, match=r"one target at a time \(got 3\)"):
        explainer(model, "node", kind="phenomenon")(
            data.x, data.edge_index, target=target[:3], index=0
        )
    with pytest.raises(ValueError, match=r"with a row per node, say task_level='node'"):
        explainer(model, "graph")(data.x, data.edge_index)


def test_estimates_of_several_outputs_are_independent() -> None:
    model, data = Network("node"), ring(12, 4)
    seed, options = 7, {"value": "shapley", "budget": 30}
    wide = torch.randint(12, (2, 40), generator=torch.Generator().manual_seed(0))
    data.edge_index = torch.cat([wide, wide.flip(0)], dim=1)
    found = explainer(model, "node", seed=seed, **options)(
        data.x, data.edge_index, index=torch.tensor([0, 5])
    )
    alone = [
        explain(model, data, index=i, seed=graph_generator(seed, i), task="node", **options)
        for i in (0, 5)
    ]
    assert torch.allclose(found.node_scores, sum(one.node_scores for one in alone), atol=1e-9)
    assert not found.exact
    for player, error in zip(found.players.tolist(), found.std_errors.tolist(), strict=True):
        own = [
            float(one.std_errors[one.players.tolist().index(player)])
            for one in alone
            if player in one.players.tolist()
        ]
        assert error == pytest.approx(math.sqrt(sum(value**2 for value in own)))


def test_one_warning_says_how_many_outputs_are_imprecise() -> None:
    ends = torch.randint(30, (2, 90), generator=torch.Generator().manual_seed(0))
    x = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
    options: dict[str, Any] = {"value": "myerson", "budget": 40, "seed": 0}
    with pytest.warns(PrecisionWarning) as caught:
        explainer(Network("node"), "node", **options)(
            x, torch.cat([ends, ends.flip(0)], dim=1), index=torch.arange(12)
        )
    assert len(caught) == 1
    assert " of 12 outputs have imprecise scores, the worst being output " in str(caught[0].message)


@for_each(
    ("index", "error", "message"),
    [
        (7, ValueError, r"index must lie in 0\.\.3 \(got 7\)"),
        (-1, ValueError, r"index must lie in 0\.\.3 \(got -1\)"),
        (torch.tensor([], dtype=torch.long), ValueError, "names no output"),
        (torch.tensor([True, False]), ValueError, r"mask of outputs must have 4 entries"),
        (torch.tensor([0.5]), TypeError, "list of integers or a boolean mask"),
        (torch.zeros(2, 2, dtype=torch.long), TypeError, "list of integers or a boolean mask"),
    ],
)
def test_bad_indices_are_named(index: Any, error: type[Exception], message: str) -> None:
    data = GRAPHS[0]
    with pytest.raises(error, match=message):
        explainer(Network("node"), "node")(data.x, data.edge_index, index=index)


def test_outputs_without_players_add_nothing() -> None:
    data, model = GRAPHS[0].clone(), Network("node")
    data.x = torch.cat([data.x, data.x[:1]])  # a node without edges
    ask = explainer(model, "node", players="edges", node_mask_type=None, edge_mask_type="object")
    found = ask(data.x, data.edge_index)
    expected = ask(data.x, data.edge_index, index=torch.arange(4))
    assert torch.equal(found.edge_mask, expected.edge_mask)
    assert len(found.explained) == 4
    for alone in (4, torch.tensor([4, 4])):
        with pytest.raises(ValueError, match="no edge brings a message to node 4"):
            ask(data.x, data.edge_index, index=alone)


def test_arguments_by_type_that_no_part_of_a_graph_has_are_named() -> None:
    class Choosing(OnPapers):
        def forward(self, x_dict: Any, edge_index_dict: Any, edge_label_index: Any) -> Tensor:
            return super().forward(x_dict, edge_index_dict)

    data = small()
    ask = explainer(seeded(Choosing), "node", task={"node_type": "paper"})
    chosen = {"paper": torch.tensor([0, 1]), "author": torch.tensor([1, 0])}
    with pytest.raises(ValueError, match=r"edge_label_index must have a row for each of the 3"):
        ask(data.x_dict, data.edge_index_dict, index=0, edge_label_index=chosen)


def test_methods_and_players_without_a_sum() -> None:
    data = GRAPHS[0]
    sets = Explainer(
        Network("node"),
        algorithm=create("subgraphx"),
        explanation_type="model",
        node_mask_type="object",
        model_config={"mode": MODES[0], "task_level": "node", "return_type": "raw"},
    )
    with pytest.raises(ValueError, match="there is no sum of sets"):
        sets(data.x, data.edge_index, index=torch.arange(2))
    with pytest.raises(ValueError, match="groups of nodes belong to one graph"):
        explainer(Network("graph"), "graph", players=[[0, 1], [2]])(
            BATCH.x, BATCH.edge_index, batch=BATCH.batch
        )


@pytest.mark.parametrize("name", ["leave_one_out", "gnnexplainer", "gradient_x_input", "random"])
def test_other_methods_take_several_outputs(name: str) -> None:
    found = Explainer(
        Network("graph"),
        algorithm=create(name),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={"mode": MODES[0], "task_level": "graph", "return_type": "raw"},
    )(BATCH.x, BATCH.edge_index, batch=BATCH.batch)
    assert found.node_mask.shape == (12, 1)
    assert found.edge_mask.shape == (22,)
    assert len(found.explained) == 3
    assert found.validate()


def test_nodes_of_a_heterogeneous_graph() -> None:
    data, model = small(), seeded(OnPapers)
    made = explainer(model, "node", task={"node_type": "paper"})(
        data.x_dict, data.edge_index_dict, index=torch.tensor([0, 2])
    )
    task = Task(task_level="node", node_type="paper")
    alone = [explain(model, data, index=row, task=task, value="shapley") for row in (0, 2)]
    for name in data.node_types:
        expected = sum(one[name].node_scores for one in alone)
        assert torch.allclose(made[name].node_scores, expected, atol=1e-9)
    assert made.index.tolist() == [0, 2]
    again = type(made).from_dict(made.to_dict())
    assert again.to_dict() == made.to_dict()
    batches = {name: torch.arange(data[name].num_nodes) % 2 for name in data.node_types}
    with pytest.raises(ValueError, match="2 heterogeneous graphs: explain one at a time"):
        explainer(seeded(OnGraphs), "graph").algorithm(
            seeded(OnGraphs),
            data.x_dict,
            data.edge_index_dict,
            target=torch.zeros(1, dtype=torch.long),
            batch_dict=batches,
        )


@pytest.mark.parametrize("level", ["graph", "node"])
def test_masks_between_0_and_1(level: str) -> None:
    model, data = Network(level), GRAPHS[2]
    index = {"index": torch.arange(3)} if level == "node" else {}
    wrapped = explainer(model, level, edge_mask_type="object")
    plain = wrapped(data.x, data.edge_index, **index)
    found = plain.in_unit_range()
    assert torch.equal(found.scores, plain.scores)
    assert torch.equal(found.node_scores, plain.node_scores)
    for name in ("node_mask", "edge_mask"):
        positive = plain[name].clamp(min=0)
        assert torch.allclose(found[name], positive / positive.max().clamp(min=1e-9))
    more, less = fidelity(wrapped, found)
    assert 0 <= more <= 1
    assert 0 <= less <= 1
    assert 0 <= unfaithfulness(wrapped, found) <= 1
    assert characterization_score(torch.tensor([0.5]), torch.tensor([less])).isfinite()
    truth = (torch.arange(5) < 2).float()
    assert all(0 <= value <= 1 for value in groundtruth_metrics(found.node_mask, truth))


def test_masks_of_a_batch_are_those_of_its_graphs() -> None:
    model = Network("graph")
    made = explainer(model, "graph", edge_mask_type="object")
    found = made(BATCH.x, BATCH.edge_index, batch=BATCH.batch).in_unit_range()
    alone = [made(data.x, data.edge_index).in_unit_range() for data in GRAPHS]
    for name in ("node_mask", "edge_mask"):
        expected = torch.cat([one[name] for one in alone])
        assert torch.allclose(found[name], expected, atol=1e-6)


def test_masks_of_typed_graphs_are_between_0_and_1() -> None:
    with pytest.raises(TypeError, match=r"no keyword 'mask_range': .* in_unit_range\(\)"):
        GStarX(mask_range="unit")  # type: ignore[call-arg]
    data, model = small(), seeded(OnGraphs)
    made = explainer(model, "graph")(data.x_dict, data.edge_index_dict).in_unit_range()
    masks = torch.cat([mask[:, 0] for mask in made.node_mask_dict.values()])
    assert float(masks.max()) == 1
    assert float(masks.min()) >= 0
    best, node = made.top(1)[0]
    assert float(made[best].node_mask[node, 0]) == 1


def test_pictures_and_other_forms_of_several_outputs() -> None:
    found = explainer(Network("graph"), "graph")(BATCH.x, BATCH.edge_index, batch=BATCH.batch)
    assert found.draw().svg.startswith("<svg")
    assert len(found.to_frame()) == 12
    again = type(found).from_dict(found.to_dict())
    assert torch.equal(again.scores, found.scores)
    assert "target" in found._repr_html_()
