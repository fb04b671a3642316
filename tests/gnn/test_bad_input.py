"""What is wrong is said: what it is, what was got, what would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import global_mean_pool

from gstarx import (
    GameOptions,
    GNNGame,
    Myerson,
    Passes,
    Task,
    expected_output,
    explain,
    explain_many,
    explainers,
)
from gstarx.graphs import TooManyCoalitions
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, build
from tests.gnn.one_by_one import graph, removed
from tests.pairs import for_each

MODEL = GCN(FEATURES, 8, CLASSES)
NODE_MODEL = GCN(FEATURES, 8, CLASSES, readout=None)


def with_edges(edges: Any) -> Data:
    return Data(x=torch.ones(3, FEATURES), edge_index=edges)


# -- the graph -------------------------------------------------------------------------------------


@for_each(
    ("data", "error", "message"),
    [
        (HeteroData(), ValueError, "the graph has no nodes"),
        (torch.ones(3), TypeError, r"torch_geometric.data.Data or HeteroData \(got Tensor\)"),
        (Data(x=torch.ones(3, 4)), TypeError, r"edge_index must be a dense tensor of shape \(2, E"),
        (with_edges(torch.ones(3, 3).to_sparse()), TypeError, "must be a dense tensor"),
        (with_edges(torch.ones(2, 3)), TypeError, "must be integers .got torch.float32"),
        (with_edges(torch.tensor([[0, 1, 2]])), ValueError, r"shape \(2, E\) \(got \(1, 3\)\)"),
        (with_edges(torch.tensor([[0, -1], [1, 0]])), ValueError, "names node -1 of 3 nodes"),
        (
            Data(x=torch.ones(0, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.long)),
            ValueError,
            "no nodes: there is nothing to explain",
        ),
        (
            Data(edge_index=torch.tensor([[0], [1]]), y=torch.ones(1)),
            ValueError,
            "number of nodes is not known: give the data x or num_nodes .it has edge_index, y",
        ),
        (
            Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2),
            ValueError,
            "the model takes 'x', which the data does not have",
        ),
    ],
)
def test_a_graph_that_cannot_be_explained(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GNNGame(MODEL, data)


@pytest.mark.parametrize("function", [explain, GNNGame])
def test_a_batch_of_several_graphs(function: Any) -> None:
    several = Batch.from_data_list([graph("ring"), graph("ring"), graph("ring")])
    with pytest.raises(ValueError, match="holds 3 graphs: explain one at a time, or use explain_m"):
        function(MODEL, several)
    one = Batch.from_data_list([graph("ring")])
    assert torch.equal(explain(MODEL, one).node_mask, explain(MODEL, graph("ring")).node_mask)


def test_outputs_of_nodes_are_not_those_of_a_graph() -> None:
    def of_nodes(x: Tensor, edge_index: Tensor) -> Tensor:
        return x.sum(dim=1)

    def of_classes(x: Tensor, edge_index: Tensor) -> Tensor:
        return x.new_tensor([0.0, 1.0, 2.0]) * x.sum()

    data = with_edges(torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(ValueError, match=r"each of the 3 nodes.*task='node'"):
        explain(of_nodes, data, game=GameOptions(removal="zero_filling"))
    assert explain(of_classes, data, game=GameOptions(removal="zero_filling")).target_class == 2
    larger = Data(x=torch.ones(4, FEATURES), edge_index=data.edge_index)
    with pytest.raises(ValueError, match=r"got 3 and 4.*one for every node"):
        expected_output(of_nodes, [data, larger])


def test_a_model_that_is_none() -> None:
    with pytest.raises(TypeError, match=r"model must be callable \(got str\)"):
        GNNGame("gcn", graph("ring"))  # type: ignore[arg-type]


# -- options ---------------------------------------------------------------------------------------


@for_each(
    ("options", "error", "message"),
    [
        (
            {"task": Task("multiclass")},
            ValueError,
            "mode must be one of 'multiclass_cl.*got 'multiclass",
        ),
        (
            {"task": {"task_level": "graphs"}},
            ValueError,
            "task_level must be one of 'graph', 'node', 'edge'",
        ),
        (
            {"task": Task(return_type="logits")},
            ValueError,
            "return_type must be one of 'raw', 'probs', ",
        ),
        (
            {"game": GameOptions(removal="drop")},
            ValueError,
            "removal must be a function or one of 'remove', ",
        ),
        (
            {"payoff": "probs"},
            ValueError,
            r"payoff must be one of 'auto', 'norm_prob', 'prob', 'log_prob', 'raw' \(got 'probs'\)",
        ),
        ({"payoff": 3}, TypeError, r"payoff must be a name, a Contrast or a callable \(got 3\)"),
        ({"target": [0, 9]}, ValueError, r"target must name a class in 0..2 \(got 9\)"),
        ({"target": []}, ValueError, r"target must name a class in 0..2 \(got none\)"),
        ({"target": "both"}, ValueError, r"a class, a list of them, or 'all' \(got 'both'\)"),
        ({"target": 1.5}, TypeError, r"a class, a list of them, or 'all' \(got 1.5\)"),
        ({"baseline": [0.1] * 4}, ValueError, r"one for each of 3 classes \(got 4 numbers\)"),
        ({"baseline": float("nan")}, ValueError, r"baseline must be finite \(got \[nan\]\)"),
        (
            {"task": Task("regression", return_type="probs")},
            ValueError,
            r"a regression model returns raw outputs \(got return_type='probs'\)",
        ),
        (
            {"task": Task("binary_classification", return_type="log_probs")},
            ValueError,
            "a binary classifier returns 'raw' outputs or 'probs'",
        ),
        ({"task": "regression"}, ValueError, "model has 3 outputs: choose one with target=0..2"),
        (
            {"task": "regression", "target": 4},
            ValueError,
            r"target must name an output in 0..2 \(got 4\)",
        ),
        (
            {"task": "regression", "target": 0, "payoff": "prob"},
            ValueError,
            r"payoff must be 'auto' or 'raw' for regression \(got 'prob'\)",
        ),
    ],
)
def test_an_option_that_is_none(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        GNNGame(MODEL, graph("ring"), **options)


@for_each(
    ("options", "message"),
    [
        ({"task": "node"}, "task='node' needs index=..., the node to explain"),
        ({"task": "node", "index": 6}, r"index must lie in 0..5 \(got 6\)"),
        ({"task": "graph", "index": 3}, r"index is for task='node' or 'edge'.*\(got index=3\)"),
        (
            {"task": "graph", "game": GameOptions(num_hops=2)},
            r"num_hops is for task='node' or 'edge'.*\(got 2\)",
        ),
        ({"task": "edge", "index": 0}, r"needs data.edge_label_index of shape \(2, K\)"),
    ],
)
def test_node_and_link_tasks(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GNNGame(NODE_MODEL, graph("ring"), **options)


@for_each("name", ["gstarx", "subgraphx", "gnnexplainer", "random"])
def test_an_index_that_is_no_node(name: str) -> None:
    for index in ("3", 2.7, True, [1, 2], torch.tensor([0, 1]), np.array([1.5])):
        with pytest.raises(TypeError, match=r"index must be one integer"):
            explainers.create(name).explain(NODE_MODEL, graph("ring"), index=index, task="node")


def test_an_index_of_any_integer_type() -> None:
    for index in (3, np.int32(3), torch.tensor(3), torch.tensor([3]), np.array([3])):
        game = GNNGame(
            NODE_MODEL, graph("ring"), index=index, task="node", game=GameOptions(num_hops=0)
        )
        assert game.nodes.tolist() == [3]


def test_a_link_out_of_range() -> None:
    data = graph("ring")
    data.edge_label_index = torch.tensor([[0, 1], [2, 3]])

    def model(x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        return x[edge_label_index[0]]

    with pytest.raises(ValueError, match=r"index must lie in 0..1 \(got 2\)"):
        GNNGame(model, data, index=2, task="edge")
    with pytest.raises(ValueError, match=r"needs index=\.\.\., the edge to explain"):
        GNNGame(model, data, task="edge")


@pytest.mark.parametrize("value", ["hn", Myerson(estimator="exact"), "shapley"])
def test_a_budget_that_is_too_small(value: Any) -> None:
    with pytest.raises(ValueError, match=r"budget") as caught:
        explain(MODEL, graph("ring"), value=value, baseline="uniform", budget=5)
    message = str(caught.value)
    if isinstance(value, str):
        assert message.startswith("budget must be at least the number of nodes, 6")
        assert "(got 5)" in message
    else:
        assert isinstance(caught.value, TooManyCoalitions)
        assert "the limit is 5: raise budget=..., or say estimator='auto' or" in message
    with pytest.raises(ValueError, match=r"budget must be at least 0 \(got -1\)"):
        explain(MODEL, graph("ring"), value=value, budget=-1)
    with pytest.raises(TypeError, match=r"budget must be an integer \(got 20.0\)"):
        explain(MODEL, graph("ring"), value=value, budget=20.0)


def test_coalitions_that_are_none() -> None:
    game = GNNGame(MODEL, graph("ring"))
    with pytest.raises(ValueError, match=r"coalitions must have shape \(6,\) or \(k, 6\)"):
        game(np.ones((2, 5), dtype=bool))
    with pytest.raises(TypeError, match="coalitions must be boolean"):
        game(np.ones((2, 6)))


# -- the model -------------------------------------------------------------------------------------


@for_each(
    ("returned", "error", "message"),
    [
        (lambda out: (out, out), TypeError, r"got tuple of 2\); wrap it in a function .*\)\[0\]$"),
        (lambda out: {"logits": out}, TypeError, r"\(got dict with 'logits'\); .*\['logits'\]$"),
        (lambda out: None, TypeError, r"must return a tensor \(got NoneType\)"),
        (lambda out: out.repeat(2, 1), ValueError, r"one row for each of 1 .*\(got \(2, 3\)\)"),
        (lambda out: out[:, :0], ValueError, r"\(1, columns\) \(got \(1, 0\)\)"),
        (lambda out: out[:, :1], ValueError, "pass task='binary' or task='regression'"),
    ],
)
def test_a_model_that_returns_something_else(
    returned: Any, error: type[Exception], message: str
) -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return returned(MODEL(x, edge_index, batch))

    with pytest.raises(error, match=message):
        GNNGame(model, graph("ring"))


def test_a_model_that_wants_what_is_not_there() -> None:
    def model(x: Tensor, edge_index: Tensor, angles: Tensor) -> Tensor:
        return x

    with pytest.raises(ValueError, match=r"needs an argument 'angles' that .* \(it has .*pos, sca"):
        GNNGame(model, graph("ring"))

    def by_keyword(x: Tensor, edge_index: Tensor, *, angles: Tensor) -> Tensor:
        return x

    with pytest.raises(ValueError, match="needs an argument 'angles'"):
        GNNGame(by_keyword, graph("ring"))


def small_or_not(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
    """A model that does not take graphs of one node."""
    if int(torch.bincount(batch).min()) == 1:
        raise RuntimeError("expected more than one node")
    return global_mean_pool(x[:, :3], batch)


def test_a_model_that_raises_on_small_graphs_says_on_which() -> None:
    game = GNNGame(small_or_not, graph("ring"))
    rows = np.ones((3, 6), dtype=bool)
    rows[1, 2:] = False
    rows[2] = np.arange(6) == 4
    with pytest.raises(RuntimeError, match="expected more than one node") as caught:
        game(rows)
    note = (
        "raised on coalition {4}; GameOptions(fallback=...) gives such coalitions a worth of their "
        "own"
    )
    assert note in caught.value.__notes__
    assert game(rows[:2]).shape == (2,)


def test_a_fallback_is_for_those_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="gstarx")
    data = graph("ring")
    game = GNNGame(small_or_not, data, payoff="raw", target="all", game=GameOptions(fallback=-7.5))
    rows = np.concatenate([np.eye(6, dtype=bool), ~np.eye(6, dtype=bool)])
    worths = game(rows)
    assert (worths[:6] == -7.5).all()
    assert any("because of a batch of 15: RuntimeError" in message for message in caplog.messages)
    for row, worth in zip(rows[6:], worths[6:], strict=True):
        part = removed(data, torch.from_numpy(row.copy()))
        np.testing.assert_allclose(worth, part.x[:, :3].mean(dim=0).numpy(), atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_model_that_returns_nan_says_where(bad: float) -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(x[:, :3], batch)
        out[torch.bincount(batch) == 2] = bad
        return out

    rows = np.eye(6, dtype=bool)
    rows[3, 5] = True
    game = GNNGame(model, graph("ring"), payoff="raw", target=0)
    with pytest.raises(
        ValueError, match=r"coalition \{3, 5\} gives a worth of \[(nan|inf)\]; GameOptions\(fall"
    ):
        game(rows)
    assert game.evaluations == 0
    patched = GNNGame(model, graph("ring"), payoff="raw", target=0, game=GameOptions(fallback=0.5))
    worths = patched(rows)
    assert worths[3] == 0.5
    assert np.count_nonzero(worths == 0.5) == 1


def test_a_model_that_always_returns_nan() -> None:
    with pytest.raises(ValueError, match="gives a worth of"):
        explain(lambda x, edge_index: x[:1, :3] * float("nan"), graph("ring"))


def test_a_model_whose_columns_vary() -> None:
    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        return x.mean(dim=1).repeat(2)  # two numbers per node, mistaken for numbers per class

    with pytest.raises(
        ValueError, match=r"12 columns, as for the whole graph \(got 10\)"
    ) as caught:
        GNNGame(model, graph("ring"), payoff="raw")(~np.eye(6, dtype=bool))
    assert any("{1, 2, 3, 4, 5}" in note for note in caught.value.__notes__)


def test_original_ids_are_named_for_a_part_of_a_graph() -> None:
    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        if edge_index.shape[1] == 2:
            raise RuntimeError("no")
        return x

    data = Data(
        x=torch.randn(9, 3),
        edge_index=torch.tensor([[4, 5, 5, 6, 6, 7], [5, 4, 6, 5, 7, 6]]),
    )
    game = GNNGame(
        model,
        data,
        index=6,
        task="node",
        game=GameOptions(num_hops=1),
        passes=Passes(batch_nodes=1),
    )
    assert game.nodes.tolist() == [5, 6, 7]
    with pytest.raises(RuntimeError, match="no") as caught:
        game(np.array([[False, True, True]]))
    assert any("{6, 7}" in note for note in caught.value.__notes__)


@for_each(
    ("returned", "error", "message"),
    [
        (lambda out: 3, ValueError, r"payoff function must return a tensor of 1 rows \(got int\)"),
        (lambda out: out.sum(), ValueError, r"tensor of 1 rows \(got \(\)\)"),
        (lambda out: out.repeat(3, 1), ValueError, r"tensor of 1 rows \(got \(3, 3\)\)"),
    ],
)
def test_a_payoff_that_is_none(returned: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GNNGame(MODEL, graph("ring"), payoff=returned)


def test_a_removal_that_is_none() -> None:
    with pytest.raises(TypeError, match=r"a removal must return a Data object \(got Tensor\)"):
        GNNGame(MODEL, graph("ring"), game=GameOptions(removal=lambda data, inside: data.x))
    with pytest.raises(ValueError, match=r"keep the number of nodes where .* \(got 2 of 6\)"):
        GNNGame(
            NODE_MODEL,
            graph("ring"),
            index=0,
            task="node",
            game=GameOptions(removal=lambda data, inside: data.subgraph(torch.tensor([0, 1]))),
        )
    data = graph("ring")
    del data.x
    with pytest.raises(ValueError, match="zero_filling' needs node features x"):
        GNNGame(build("positions"), data, game=GameOptions(removal="zero_filling"))


def test_many_says_which_graph() -> None:
    graphs = [graph("ring"), Data(x=torch.ones(0, 4), edge_index=torch.zeros(2, 0).long())]
    with pytest.raises(ValueError, match="no nodes") as caught:
        explain_many(MODEL, graphs, progress=False)
    assert caught.value.__notes__ == ["while explaining graph 1 of 2"]
    with pytest.raises(ValueError, match=r"one of 'raise', 'record' \(got 'ignore'\)"):
        explain_many(MODEL, graphs, on_error="ignore")
