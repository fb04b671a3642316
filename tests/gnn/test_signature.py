"""Which arguments a model wants, and what the fields of a graph belong to."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GIN, global_add_pool

from gstarx import GameOptions, GNNGame, Passes, explain, explain_many, explain_nodes, models
from gstarx.gnn.fields import roles_of
from gstarx.gnn.signature import Signature, model_device
from gstarx.metrics import evaluate
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES, build
from tests.gnn.one_by_one import coalitions, graph

DATA = graph("messy")


def read(function: Any, **options: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | str:
    found = Signature.of(function, DATA, **options)
    return "data" if found.takes_data else (found.positional, found.keywords)


def test_arguments_by_name() -> None:
    assert read(lambda x, edge_index: 0) == (("x", "edge_index"), ())
    assert read(lambda x, edge_index, batch: 0) == (("x", "edge_index"), ("batch",))
    assert read(lambda features, links: 0) == (("x", "edge_index"), ())
    assert read(lambda z, pos, batch: 0) == (("z", "pos"), ("batch",))
    assert read(lambda x, batch: 0) == (("x", "batch"), ())
    assert read(lambda x: 0) == (("x",), ())
    assert read(lambda z: 0) == (("z",), ())
    assert read(lambda x, edge_index, *, batch=None, pos, other=False: 0) == (
        ("x", "edge_index"),
        ("batch", "pos"),
    )
    assert read(lambda x, edge_index, edge_attr, size=None: 0) == (
        ("x", "edge_index"),
        ("edge_attr",),
    )
    assert read(lambda *, x, edge_index: 0) == ((), ("x", "edge_index"))
    assert read(lambda x, *, edge_index, batch: 0) == (("x",), ("edge_index", "batch"))


def test_what_a_signature_leaves_open_is_not_guessed() -> None:
    bare = Data(x=DATA.x, edge_index=DATA.edge_index, y=DATA.y, train_mask=torch.ones(7) > 0)
    for open_to_all in (
        lambda *args, **kwargs: 0,
        lambda x, edge_index, **kwargs: 0,
        lambda x, edge_index, *args: 0,
        max,  # builtins do not say
    ):
        with pytest.raises(
            ValueError, match=r"edge_attr, pos, .*task=Task\(keywords=\[.*'batch'\]"
        ):
            read(open_to_all)
        assert read(open_to_all, keywords=["edge_attr"]) == (("x", "edge_index"), ("edge_attr",))
        assert read(open_to_all, keywords=[]) == (("x", "edge_index"), ())
        found = Signature.of(open_to_all, bare)  # nothing to guess
        assert (found.positional, found.keywords) == (("x", "edge_index"), ())
    assert read(lambda data, **kwargs: 0) == "data"
    with pytest.raises(ValueError, match="keywords names 'angles', which the data does not have"):
        read(lambda x, edge_index, **kwargs: 0, keywords=["angles"])
    with pytest.raises(TypeError, match=r"a list of names \(got 'pos'\); pass \['pos'\]"):
        read(lambda x, edge_index, **kwargs: 0, keywords="pos")


class Weighted(nn.Module):
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        messages = x[edge_index[0], :3]
        if edge_weight is not None:
            messages = messages * edge_weight.view(-1, 1)
        return global_add_pool(x[:, :3].index_add(0, edge_index[1], messages), batch)


def test_an_input_that_no_argument_takes_is_warned_of_once() -> None:
    graphs = [
        Data(
            x=torch.randn(3, 4),
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            edge_attr=torch.rand(2, width),
            y=torch.ones(1),
        )
        for width in (1, 1, 3)
    ]
    model = Weighted()
    with pytest.warns(UserWarning, match="data has no edge_weight.*edge_attr of the data") as seen:
        found = explain(model, graphs[0])
    assert len(seen) == 1
    explain(model, graphs[1])  # a second warning would be an error
    explain_many(model, graphs[:2], progress=False)
    assert "data.edge_weight = data.edge_attr" in str(seen[0].message)
    assert "keywords=[...]" in str(seen[0].message)
    assert found.inputs == ("x", "edge_index", "batch")
    with pytest.warns(UserWarning, match="no edge_weight"):
        evaluate(Weighted(), graphs[0], [0])
    # a choice, a network that knows what weights are, and a name that fits
    assert explain(Weighted(), graphs[0], task={"keywords": []}).inputs == (
        "x",
        "edge_index",
        "batch",
    )
    with pytest.warns(UserWarning, match="no edge_weight"):
        assert explain(Weighted(), graphs[2], task={"keywords": None}).exact
    explain(GCN(4, 8, 3), graphs[2])
    graphs[0].edge_weight = graphs[0].edge_attr
    assert explain(Weighted(), graphs[0]).inputs == ("x", "edge_index", "edge_weight", "batch")


def test_which_fields_an_argument_may_be_meant_for() -> None:
    bare = Data(x=DATA.x, edge_index=DATA.edge_index, y=torch.ones(1), train_mask=torch.ones(7) > 0)
    edges = bare.clone().update({"edge_type": torch.zeros(9, dtype=torch.long), "e_id": DATA.z[:1]})
    rows = bare.clone().update({"edge_attr": DATA.edge_attr, "edge_label": torch.ones(9)})
    whole = bare.clone().update({"descriptors": torch.ones(1, 20), "pos": DATA.pos, "seed": 3})
    weight: Any = lambda x, edge_index, edge_weight=None: 0  # noqa: E731
    features: Any = lambda x, edge_index, edge_features=None: 0  # noqa: E731
    anything: Any = lambda x, edge_index, context=None: 0  # noqa: E731
    option: Any = lambda x, edge_index, dropout=0.5, return_attention_weights=None: 0  # noqa: E731
    warned = {
        (name, at)
        for name, model in (("weight", weight), ("features", features), ("anything", anything))
        for at, data in enumerate((bare, edges, rows, whole))
        if _warns(functools.partial(model), data)
    }
    assert warned == {
        *(("weight", 1), ("weight", 2), ("features", 1), ("features", 2)),
        ("anything", 3),
    }
    assert not any(_warns(option, data) for data in (bare, edges, rows, whole))


def _warns(model: Any, data: Data) -> bool:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Signature.of(model, data)
    return bool(seen)


def test_inputs_are_recorded_by_whoever_explains() -> None:
    def weighted(x: Tensor, edge_index: Tensor, *, edge_weight: Tensor) -> Tensor:
        return x[:, :3].index_add(0, edge_index[1], x[edge_index[0], :3] * edge_weight[:, None])

    passed = ("x", "edge_index", "edge_weight")
    assert (
        explain(weighted, DATA, index=1, task="node", game=GameOptions(num_hops=1)).inputs == passed
    )
    options: dict[str, Any] = {"game": GameOptions(num_hops=1), "progress": False}
    assert [one.inputs for one in explain_nodes(weighted, DATA, [1, 2], **options)] == [passed] * 2
    whole = explain(lambda data: global_add_pool(data.x[:, :3], data.batch), DATA)
    assert {"x", "pos", "edge_attr", "edge_index", "batch"} <= set(whole.inputs)


def test_edge_fields_of_relations_that_no_argument_takes_are_warned_of() -> None:
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(2, 3), torch.randn(3, 3)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1], [2, 0]])
    data["a", "to", "b"].edge_attr = torch.ones(2, 1)

    def model(x_dict: Any, edge_index_dict: Any, edge_weight_dict: Any = None) -> Tensor:
        return x_dict["b"].sum(dim=0, keepdim=True)

    with pytest.warns(UserWarning, match="no edge_weight_dict.*edge_attr of the data"):
        found = explain(model, data)
    assert found.inputs == ("x", "edge_index")


def test_the_networks_of_the_package_do_not_warn() -> None:
    bonds = Data(x=DATA.x, edge_index=DATA.edge_index, edge_attr=torch.eye(9, 5))
    for network in (models.GCN, models.GIN, models.GAT):
        assert not _warns(network(FEATURES, 8, CLASSES), bonds)


def test_one_data_object() -> None:
    def function(item: Any, scale: float = 2.0) -> Tensor: ...

    for annotation in (Data, Batch, "Data", "Batch", "torch_geometric.data.Data"):
        function.__annotations__["item"] = annotation
        assert read(function) == "data"
    for annotation in (Tensor, "Tensor", "DataLoader", Any):
        function.__annotations__["item"] = annotation
        assert read(function) != "data"
    for named in (lambda data: 0, lambda batch: 0, lambda g, scale=2.0: 0):
        assert read(named) == "data"
    assert read(lambda sample: 0) == "data"  # one argument that is no field of the graph
    assert read(build("data")) == "data"
    assert read(lambda data, edge_index: 0) == (("x", "edge_index"), ())


def test_names_that_are_given() -> None:
    """As PyG's Explainer does: what was passed by keyword is passed on, and nothing else."""
    function = build("keywords")
    needed = ["pos", "charges", "edge_weight", "u", "scale", "bond_length_of_edge"]
    found = Signature.of(function, DATA, needed)
    assert found.keywords == (*needed, "batch")
    assert read(lambda x, edge_index, pos=None, batch=None: 0, keywords=[]) == (
        ("x", "edge_index"),
        ("batch",),
    )
    assert read(lambda *args, **kwargs: 0, keywords=["batch"]) == (("x", "edge_index"), ("batch",))
    assert read(max, keywords=["pos"]) == (("x", "edge_index"), ("pos",))
    assert read(lambda data: 0, keywords=[]) != "data"
    with pytest.raises(ValueError, match="needs an argument 'angles'"):
        read(lambda x, edge_index, angles: 0, keywords=["pos"])


def test_methods_partials_and_objects() -> None:
    net = build("gine")
    assert read(net.forward) == (("x", "edge_index"), ("edge_attr", "batch"))
    assert read(functools.partial(net.forward, batch=None))[1][0] == "edge_attr"

    class Callable:
        def __call__(self, x: Tensor, edge_index: Tensor, pos: Tensor) -> Tensor: ...

    assert read(Callable()) == (("x", "edge_index"), ("pos",))


def test_takes_batch() -> None:
    assert Signature(True).takes_batch
    assert Signature(False, ("x", "batch")).takes_batch
    assert Signature(False, ("x", "edge_index"), ("batch",)).takes_batch
    assert not Signature(False, ("x", "edge_index"), ("pos",)).takes_batch


def test_the_first_two_arguments_may_have_any_name() -> None:
    class Other(torch.nn.Module):
        def forward(self, features: Any, adj: Any) -> Any:
            return features.sum(0, keepdim=True) + adj.shape[1]

    data = graph("ring")
    assert Signature.of(Other(), data).inputs == ("x", "edge_index")
    again = data.clone()
    again.features, again.adj = data.x, data.edge_index
    with pytest.raises(ValueError, match=r"data\.adj are the edges.*lambda x, edge_index"):
        Signature.of(Other(), again)
    del again.x, again.edge_index
    with pytest.raises(TypeError, match=r"got NoneType\)\. The data has adj.*features.*first two"):
        explain(Other(), again)


def test_what_fields_belong_to() -> None:
    data = graph("messy")  # 7 nodes, 9 edges
    data.of_nodes, data.of_edges = torch.zeros(7, 2), torch.zeros(9)
    data.refractive_index, data.root_index = torch.tensor(1.3), torch.tensor(3)
    data.face = torch.zeros(3, 7, dtype=torch.long)
    data.adj_t = torch.eye(7).to_sparse()
    data.num_nodes = 7
    data.batch = torch.zeros(7, dtype=torch.long)
    roles = roles_of(data)
    expected = {
        "node": {"x", "pos", "z", "charges", "of_nodes"},
        "edge": {"edge_attr", "edge_weight", "bond_length_of_edge", "of_edges"},
        "ids": {"pair_index", "root_index", "face"},
        "rest": {"u", "scale", "y", "name", "refractive_index", "adj_t"},
    }
    assert {
        role: {key for key, found in roles.items() if found == role} for role in expected
    } == expected


def test_as_many_nodes_as_edges_is_decided_as_pyg_does() -> None:
    data = graph("as many nodes as edges")
    data.strength, data.edge_strength = torch.zeros(6), torch.zeros(6)
    roles = roles_of(data)
    assert roles["strength"] == roles["charges"] == roles["x"] == "node"
    assert roles["edge_strength"] == roles["edge_attr"] == roles["edge_weight"] == "edge"
    for key, role in roles.items():
        if role in ("node", "edge"):
            assert data.is_node_attr(key) == (role == "node")


def test_fields_that_only_a_batch_has() -> None:
    seen: dict[str, Any] = {}

    def model(
        x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int, ptr: Tensor, num_nodes: int
    ) -> Tensor:
        seen.update(batch_size=batch_size, ptr=ptr.tolist(), num_nodes=num_nodes)
        return global_add_pool(x[:, :3], batch, batch_size)

    data = graph("ring")
    data.num_nodes = 6
    game = GNNGame(model, data, passes=Passes(check=False))
    assert seen == {"batch_size": 1, "ptr": [0, 6], "num_nodes": 6}
    game(np.array([[True] * 2 + [False] * 4, [True] * 3 + [False] * 3]))
    assert seen == {"batch_size": 2, "ptr": [0, 2, 5], "num_nodes": 5}


def test_graphs_without_features() -> None:
    def model(data: Data) -> Tensor:
        sizes = torch.bincount(data.batch, minlength=data.num_graphs)
        assert data.num_nodes == int(sizes.sum())
        edges = torch.bincount(data.batch[data.edge_index[0]], minlength=data.num_graphs)
        return torch.stack([sizes, edges, sizes], dim=1).float()

    bare = Data(edge_index=graph("ring").edge_index, num_nodes=6)
    game = GNNGame(model, bare, payoff="raw", target="all")
    rows = coalitions(6, at_most=10)
    worths = game(rows)
    assert np.array_equal(worths[:, 0], rows.sum(axis=1))
    both = (rows & np.roll(rows, -1, axis=1)).sum(axis=1)
    assert np.array_equal(worths[:, 1], 2 * both)


def test_pygs_own_models() -> None:
    torch.manual_seed(0)
    net = GIN(FEATURES, 8, num_layers=2, out_channels=CLASSES, norm="BatchNorm").eval()
    data = Data(x=graph("ring").x, edge_index=graph("ring").edge_index)
    game = GNNGame(net, data, index=0, payoff="raw", target="all", baseline=0, task="node")
    with torch.no_grad():
        out = net(data.x, data.edge_index)[0]
    np.testing.assert_allclose(game(np.ones((1, game.n), bool))[0], out.numpy(), atol=1e-5)


def test_the_device_of_a_model() -> None:
    meta = torch.device("meta")
    cpu = torch.device("cpu")
    assert model_device(nn.Linear(2, 2, device=meta), cpu) == meta
    assert model_device(nn.BatchNorm1d(3, affine=False, device=meta), cpu) == meta
    assert model_device(nn.ReLU(), meta) == meta
    assert model_device(lambda x: x, meta) == meta
