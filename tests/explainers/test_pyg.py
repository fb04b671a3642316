"""GNNExplainer and PGExplainer of PyG, as explainers of nodes that leave the model alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.data import Data

from gstarx.explainers import with_objects
from gstarx.explainers.gnn_explainer import GNNExplainer
from gstarx.metrics import node_scores_from_edges
from gstarx.models import GCN
from gstarx.players import Edges
from gstarx_bench.explainers.pg_explainer import PGExplainer, PGSettings, in_chunks, spread
from gstarx_bench.explainers.trained_files import write_trained
from tests.explainers.small import (
    CLASSES,
    EDGES,
    FEATURES,
    NETWORKS,
    WithoutMessages,
    graph,
    many,
    network,
    unchanged,
    without_edges,
)
from tests.pairs import for_each, in_turn

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


def brief(kind: str, **options: Any) -> Any:
    if kind == "gnn":
        return GNNExplainer(**{"epochs": 4, **options})
    return PGExplainer(**with_objects(PGExplainer, {"epochs": 3, **options}))


def trainable(**options: Any) -> PGExplainer:
    return PGExplainer(settings=PGSettings(**options))


@pytest.mark.parametrize(
    ("kind", "name", "shape"),
    [("gnn", *case) for case in in_turn(NETWORKS, EDGES)]
    + [("pg", name, shape) for shape, name in in_turn(EDGES, NETWORKS)],
)
def test_every_network_and_graph(kind: str, name: str, shape: str) -> None:
    model, data = network(name), graph(shape)
    with unchanged(model):
        explainer = brief(kind).fit(model, many(4))
        found = explainer.explain(model, data, seed=1)
        again = explainer.explain(model, data, seed=1)
    assert found.node_scores.shape == (data.num_nodes,)
    assert np.array_equal(found.node_scores, again.node_scores)
    assert found.target == int(model.eval()(data.x, data.edge_index).argmax())
    mask = found.edge_mask
    loops = data.edge_index[0] == data.edge_index[1]
    assert mask.shape == (data.num_edges,)
    assert (mask[loops] == 0).all()
    # one without edges of its own scores nothing
    joined = data.edge_index[:, ~loops].unique()
    alone = np.setdiff1d(np.arange(data.num_nodes), joined)
    assert (found.node_scores[alone] == 0).all()
    assert (found.node_scores[joined] > 0).all()


@for_each("kind", ["gnn", "pg"])
@for_each("n", [1, 3])
def test_a_graph_without_edges_scores_nothing(kind: str, n: int) -> None:
    model = network("gcn")
    found = brief(kind).fit(model, many(2)).explain(model, without_edges(n), seed=0)
    assert found.node_scores.tolist() == [0] * n
    assert found.edge_mask.shape == (0,)
    loop = Data(x=torch.ones(1, FEATURES), edge_index=torch.zeros(2, 1, dtype=torch.long))
    assert brief(kind).fit(model, many(2)).explain(model, loop).node_scores.tolist() == [0]


@pytest.mark.parametrize("kind", ["gnn", "pg"])
def test_inside_pygs_explainer(kind: str) -> None:
    model, data = network("gcn").eval(), graph("components")
    algorithm = brief(kind, seed=5).fit(model, many(4))
    explainer = pyg.Explainer(
        model,
        algorithm=algorithm,
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    with unchanged(model):
        found = explainer(data.x, data.edge_index)
    expected = algorithm.explain(model, data, seed=5)
    assert found.node_mask[:, 0].tolist() == pytest.approx(expected.node_scores.tolist())
    assert torch.equal(found.edge_mask, expected.edge_mask)


@pytest.mark.parametrize("kind", ["gnn", "pg"])
def test_a_model_without_messages_is_refused(kind: str) -> None:
    model = WithoutMessages()
    explainer = brief(kind)
    explainer.trained = nn.Identity()
    with pytest.raises(ValueError, match=r"Explainer weighs messages.*WithoutMessages"):
        explainer.explain(model, graph("path"))


@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
def test_gnn_explainer_is_that_of_pyg(name: str) -> None:
    model, data = network(name).eval(), graph("components")
    found = GNNExplainer(epochs=15, reduce="mean").explain(model, data, seed=3)
    torch.manual_seed(int(np.random.default_rng(3).integers(2**63)))
    other = pyg.Explainer(
        model,
        algorithm=pyg.GNNExplainer(epochs=15),
        explanation_type="model",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    mask = other(data.x, data.edge_index).edge_mask
    assert torch.allclose(found.edge_mask, mask, atol=1e-4)
    expected = node_scores_from_edges(mask, data.edge_index, 6, reduce="mean")
    assert found.node_scores == pytest.approx(expected, abs=1e-4)


def test_gnn_explainer_finds_what_a_node_hears() -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=1, readout=None)
    found = GNNExplainer(epochs=5).explain(model, graph("loops"), seed=0, index=0, task="node")
    assert (found.node_scores[:2] > 0).all()
    assert found.node_scores[2:].tolist() == [0, 0, 0]


def test_gnn_explainer_with_a_mask_of_nodes() -> None:
    model, data = network("gcn"), graph("loops")
    with unchanged(model):
        found = GNNExplainer(epochs=5, node_mask=True).explain(model, data, seed=0)
    assert ((found.node_scores > 0) & (found.node_scores < 1)).all()
    assert "edge_mask" not in found
    # no messages needed, integers taken
    whole = Data(x=torch.ones(3, FEATURES, dtype=torch.long), edge_index=torch.zeros(2, 0).long())

    class OnIntegers(WithoutMessages):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x.float(), edge_index)

    found = GNNExplainer(epochs=2, node_mask=True).explain(OnIntegers(), whole, seed=0)
    assert found.node_scores.shape == (3,)


def test_gnn_explainer_learns_weights_of_features_and_edges_together() -> None:
    model, data = network("gcn"), graph("loops")
    with unchanged(model):
        found = GNNExplainer(epochs=5, feature_mask=True).explain(model, data, seed=0)
    assert found.feature_mask.shape == (FEATURES,)
    assert ((found.feature_mask > 0) & (found.feature_mask < 1)).all()
    alone = GNNExplainer(epochs=5).explain(model, data, seed=0)
    assert not torch.equal(found.edge_mask, alone.edge_mask)
    assert "feature_mask" not in alone
    with pytest.raises(ValueError, match="cannot be combined with node_mask=True"):
        GNNExplainer(node_mask=True, feature_mask=True)


def test_gnn_explainer_is_that_of_pyg_on_edges() -> None:
    """Without self-loops, PyG's own Explainer learns the same mask from the same random numbers."""
    model, data = network("gcn").eval(), graph("path")
    seed = 3
    ours = GNNExplainer(epochs=20, lr=0.1).explain(model, data, seed=seed).edge_mask
    torch.manual_seed(int(np.random.default_rng(seed).integers(2**63)))
    theirs = pyg.Explainer(
        model,
        algorithm=pyg.GNNExplainer(epochs=20, lr=0.1),
        explanation_type="model",
        edge_mask_type="object",
        model_config=CONFIG,
    )(data.x, data.edge_index).edge_mask
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_gnn_explainer_where_nothing_matters() -> None:
    class Constant(GCN):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return 0 * super().forward(x, edge_index) + torch.tensor([1.0, 0])

    found = GNNExplainer(epochs=3).explain(Constant(FEATURES, 4, 2), graph("path"), seed=0)
    assert found.node_scores.tolist() == [0] * 5
    assert found.target == 0


def test_gnn_explainer_of_a_regression() -> None:
    class Single(GCN):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x, edge_index)[:, 0]

    torch.manual_seed(0)
    found = GNNExplainer(epochs=3).explain(
        Single(FEATURES, 4, 2), graph("path"), seed=0, task="regression"
    )
    assert (found.node_scores > 0).all()


def test_the_requested_class_is_explained() -> None:
    model, data = network("gcn"), graph("path")
    scores = [
        GNNExplainer(epochs=30).explain(model, data, seed=0, target=c).node_scores for c in (0, 1)
    ]
    assert not np.allclose(scores[0], scores[1])
    with pytest.raises(ValueError, match=r"target must name a class in 0\.\.1 \(got 2\)"):
        GNNExplainer(epochs=1).explain(model, data, target=2)


def test_training_lowers_the_loss_and_forgets_what_was_before() -> None:
    model, graphs = network("gcn unnormalized"), many()
    explainer = trainable(epochs=30, lr=0.01)
    with unchanged(model):
        explainer.fit(model, graphs, seed=2)
    assert len(explainer.losses) == 30
    assert np.mean(explainer.losses[-5:]) < np.mean(explainer.losses[:5])
    before = explainer.explain(model, graphs[0]).node_scores
    again = explainer.fit(model, graphs, seed=2).explain(model, graphs[0]).node_scores
    assert np.array_equal(before, again)
    other = explainer.fit(model, graphs, seed=3).explain(model, graphs[0]).node_scores
    assert not np.array_equal(before, other)


def test_an_epoch_is_one_step_however_the_graphs_are_batched() -> None:
    """With uniform numbers next to 1/2 nothing is random, and all graphs count the same."""
    model, graphs = network("gcn"), many(6)
    options = {"epochs": 4, "lr": 0.01, "edge_ent": 0.0, "edge_size": 0.1, "bias": 0.499999}
    weights = []
    for batch_nodes in (1, 11, 1000):
        explainer = trainable(**options, batch_nodes=batch_nodes).fit(model, graphs)
        weights.append(torch.cat([p.reshape(-1) for p in explainer.trained.parameters()]))
    assert torch.allclose(weights[0], weights[2], atol=1e-5)
    assert torch.allclose(weights[1], weights[2], atol=1e-5)


def test_pgs_class_is_left_alone() -> None:
    before = dict(pyg.PGExplainer.coeffs)
    model = network("gcn")
    trainable(epochs=2, edge_size=9.0, bias=0.2).fit(model, many(2)).explain(model, graph("path"))
    assert pyg.PGExplainer.coeffs == before


def test_training_after_another_explainer_has_gradients() -> None:
    """PyG's own class would train nothing on a model that GNNExplainer has seen."""
    model, graphs = network("gcn"), many(4)
    expected = trainable(epochs=3).fit(model, graphs).losses
    pyg.Explainer(
        model,
        algorithm=pyg.GNNExplainer(epochs=1),
        explanation_type="model",
        edge_mask_type="object",
        model_config=CONFIG,
    )(graphs[0].x, graphs[0].edge_index)
    assert trainable(epochs=3).fit(model, graphs).losses == expected


def test_nodes_can_be_explained_too() -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=1, readout=None)
    data = graph("loops")
    data.train_mask = torch.tensor([True, False, True, False, False])
    explainer = trainable(epochs=2).fit(model, [data], task="node")
    found = explainer.explain(model, data, index=0, task="node")
    assert (found.node_scores[:2] > 0).all()
    assert found.node_scores[2:].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="trained on another model or task: it takes 24 numbers"):
        explainer.explain(network("gcn"), data)


def test_models_that_take_no_batch_are_trained_graph_by_graph() -> None:
    class Alone(GCN):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x, edge_index)

    torch.manual_seed(0)
    model = Alone(FEATURES, 8, CLASSES)
    found = trainable(epochs=2).fit(model, many(3)).explain(model, graph("path"))
    assert (found.node_scores > 0).all()


def test_saved_and_loaded_it_says_the_same(tmp_path: Path) -> None:
    model, data = network("gcn"), graph("loops")
    explainer = trainable(epochs=2, temperature=(4.0, 2.0), reduce="sum").fit(model, many(3))
    path = tmp_path / "new" / "pg.safetensors"
    explainer.save(path)
    loaded = PGExplainer.load(path)
    assert loaded.settings == explainer.settings
    expected = explainer.explain(model, data).node_scores
    assert np.array_equal(loaded.explain(model, data).node_scores, expected)
    assert [p.name for p in path.parent.iterdir()] == ["pg.safetensors"]
    explainer.players = Edges()
    explainer.save(path)
    assert PGExplainer.load(path).players == Edges()


def test_untrained_it_refuses() -> None:
    explainer = PGExplainer()
    assert explainer.requires_training
    with pytest.raises(RuntimeError, match=r"has to be trained before it can explain: call fit"):
        explainer.explain(network("gcn"), graph("path"))
    with pytest.raises(RuntimeError, match="before it can be saved"):
        explainer.save("anywhere.safetensors")


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "pg.safetensors"
    with pytest.raises(FileNotFoundError, match="no trained explainer at"):
        PGExplainer.load(path)
    with pytest.raises(ValueError, match=r"must end in '\.safetensors'"):
        PGExplainer.load(tmp_path / "pg.pt")
    path.write_bytes(b"something")
    with pytest.raises(ValueError, match="not a readable safetensors file"):
        PGExplainer.load(path)
    trainable(epochs=1).fit(network("gcn"), many(2)).save(path)
    tensors = load_file(path)
    save_file(tensors, path)
    with pytest.raises(ValueError, match=r"in format 1 \(got None\)"):
        PGExplainer.load(path)
    header = {"format": 1, "method": "PGExplainer", "settings": {}}
    for changed, message in (
        ({"method": "OrphicX"}, r"a trained PGExplainer \(got 'OrphicX'\)"),
        ({"settings": {"layers": 3}}, "is damaged: it does not hold what was written"),
        ({"format": 2}, r"in format 1 \(got 2\)"),
    ):
        save_file(tensors, path, metadata={"gstarx": json.dumps({**header, **changed})})
        with pytest.raises(ValueError, match=message):
            PGExplainer.load(path)
    write_trained(path, "PGExplainer", {"layers": 3}, tensors)
    with pytest.raises(ValueError, match=r"does not hold a trained PGExplainer.*layers"):
        PGExplainer.load(path)
    broken = {**tensors, "2.bias": torch.tensor([float("nan")])}
    save_file(broken, path, metadata={"gstarx": json.dumps(header)})
    with pytest.raises(ValueError, match="not finite"):
        PGExplainer.load(path)
    del tensors["0.bias"]
    write_trained(path, "PGExplainer", {}, tensors)
    with pytest.raises(ValueError, match=r"(?s)does not hold.*0\.bias"):
        PGExplainer.load(path)


def test_a_file_with_a_bit_turned_round_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "pg.safetensors"
    trainable(epochs=3).fit(network("gcn"), many(2)).save(path)
    whole = path.read_bytes()
    for changed in (
        whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:],
        whole.replace(b'epochs\\": 3', b'epochs\\": 2'),
    ):
        assert changed != whole
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="is damaged: it does not hold what was written"):
            PGExplainer.load(path)


@for_each(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"lr": 0.0}, "lr must be positive"),
        ({"temperature": (5.0,)}, "temperature must be two positive numbers"),
        ({"temperature": (5.0, 0.0)}, "temperature must be two positive numbers"),
        ({"bias": 0.5}, "bias must lie between 0 and 0.5"),
        ({"batch_nodes": 0}, "batch_nodes must be at least 1"),
        ({"reduce": "min"}, "reduce must be one of 'max', 'mean', 'sum'"),
    ],
)
def test_settings_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainable(**options)


@for_each(
    ("task", "message"),
    [
        ({"mode": "regression"}, "explains classes"),
        ({"task_level": "edge"}, "task_level must be 'graph' or 'node'"),
        ({"mode": "binary_classification"}, r"must have one output \(got 2\)"),
    ],
)
def test_tasks_that_cannot_be_trained_on(task: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainable(epochs=1).fit(network("gcn"), many(2), task=task)


def test_graphs_without_any_edges_cannot_be_trained_on() -> None:
    with pytest.raises(ValueError, match=r"learns from edges.*got 1 graphs without any"):
        PGExplainer().fit(network("gcn"), [without_edges(3)])


def test_chunks_hold_every_graph_once() -> None:
    graphs = many(7)
    for nodes in (0, 1, 9, 10_000):
        found = [g for chunk in in_chunks(graphs, nodes) for g in chunk]
        assert [id(g) for g in found] == [id(g) for g in graphs]
    assert list(in_chunks([], 5)) == []


def test_spread_keeps_what_the_logistic_function_merges() -> None:
    logits = torch.tensor([-300.0, -299, -1, 0, 1, 299, 300])
    found = spread(logits)
    assert (found.diff() > 0).all()
    assert float(found[3]) == 0.5
    assert ((found > 0) & (found < 1)).all()
    assert (logits.sigmoid().diff() == 0).sum() > 1
