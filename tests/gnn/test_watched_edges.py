"""Watched edges can be used by message passing, edge by edge, and in no other way."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric import utils
from torch_geometric.nn import MessagePassing, conv

from gstarx.gnn.known_layers import _KNOWN_CLASSES, _SCALING_CLASSES, is_known
from gstarx.gnn.watched_edges import UsesEdges, WatchedEdges, refusals_stand, watch

Fields = dict[str, Any]
NODES = 4


def fields() -> Fields:
    draw = torch.Generator().manual_seed(0)
    return {
        "edge_index": torch.tensor([[0, 1, 2, 2, 3], [1, 0, 1, 2, 2]]),
        "edge_attr": torch.randn(5, 3, generator=draw),
        "edge_weight": torch.rand(5, generator=draw),
        "edge_type": torch.tensor([0, 1, 0, 1, 1]),
        "num_nodes": NODES,
    }


def watched() -> Fields:
    return watch(fields(), ["edge_attr", "edge_weight", "edge_type"])


torch.manual_seed(0)
KINDS, LINEAR = nn.Embedding(3, 4), nn.Linear(3, 4)
MLP = nn.Sequential(LINEAR, nn.ReLU(), nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Dropout()).eval()
ALLOWED: dict[str, Callable[[Fields], Any]] = {
    "remove loops": lambda f: utils.remove_self_loops(f["edge_index"])[0],
    "remove loops, attributes": lambda f: utils.remove_self_loops(f["edge_index"], f["edge_attr"])[
        1
    ],
    "add loops": lambda f: utils.add_self_loops(f["edge_index"], num_nodes=NODES)[0],
    "add loops, weights": lambda f: utils.add_self_loops(
        f["edge_index"], f["edge_weight"], fill_value=1.0, num_nodes=NODES
    )[1],
    "remaining loops": lambda f: utils.add_remaining_self_loops(f["edge_index"], num_nodes=NODES)[
        0
    ],
    "embedding": lambda f: KINDS(f["edge_type"]),
    "network": lambda f: MLP(f["edge_attr"]),
    "as numbers": lambda f: f["edge_type"].float().view(-1, 1),
    "product": lambda f: f["edge_weight"].unsqueeze(-1) * f["edge_attr"],
    "column": lambda f: f["edge_attr"][:, 0],
    "columns": lambda f: f["edge_attr"][:, [0, 2]],
    "slice": lambda f: f["edge_attr"][:, :2],
    "side by side": lambda f: torch.cat([f["edge_attr"], KINDS(f["edge_type"])], dim=-1),
    "row sums": lambda f: f["edge_attr"].sum(-1),
    "row maxima": lambda f: f["edge_attr"].argmax(dim=-1),
    "row softmax": lambda f: f["edge_attr"].softmax(-1),
    "in place": lambda f: LINEAR(f["edge_attr"]).relu_(),
    "distances": lambda f: torch.exp(-((f["edge_weight"].view(-1, 1) - torch.ones(1, 4)) ** 2)),
    "width": lambda f: LINEAR(f["edge_attr"]) / f["edge_attr"].size(-1) * f["edge_attr"].shape[1],
    "chosen": lambda f: f["edge_attr"][f["edge_weight"] > 0.5],
    "pieces": lambda f: f["edge_attr"].chunk(3, dim=-1)[0],
    "other type": lambda f: f["edge_weight"].to(torch.float64),
    "same type": lambda f: f["edge_index"].long().contiguous(),
}
FORBIDDEN: dict[str, Callable[[Fields], Any]] = {
    "in-degrees": lambda f: utils.degree(f["edge_index"][1], NODES),
    "no edges": lambda f: f["edge_index"].numel() == 0,
    "size": lambda f: f["edge_index"].size(1),
    "shape": lambda f: f["edge_index"].shape[1],
    "shape of a field": lambda f: tuple(f["edge_attr"].shape),
    "length of a field": lambda f: len(f["edge_attr"]),
    "rows of sources": lambda f: torch.eye(NODES)[f["edge_index"][0]],
    "flip": lambda f: f["edge_index"].flip(0),
    "transposed": lambda f: f["edge_index"].t(),
    "swapped": lambda f: torch.stack([f["edge_index"][1], f["edge_index"][0]]),
    "largest": lambda f: f["edge_index"].max(),
    "mean of all": lambda f: f["edge_attr"].mean(),
    "column means": lambda f: f["edge_attr"] - f["edge_attr"].mean(0),
    "softmax over edges": lambda f: f["edge_weight"].softmax(0),
    "running sum": lambda f: f["edge_weight"].cumsum(0),
    "a number for every edge": lambda f: f["edge_weight"] * torch.arange(5),
    "permuted": lambda f: f["edge_attr"][torch.randperm(5)],
    "above the mean": lambda f: bool((f["edge_attr"] > 0).all()),
    "index_add": lambda f: torch.zeros(NODES, 3).index_add(0, f["edge_index"][1], f["edge_attr"]),
    "scatter": lambda f: torch.zeros(NODES).scatter_add(0, f["edge_index"][1], f["edge_weight"]),
    "dense": lambda f: utils.to_dense_adj(f["edge_index"]),
    "undirected": lambda f: utils.to_undirected(f["edge_index"], num_nodes=NODES),
    "sorted": lambda f: f["edge_index"].sort(),
    "coalesced": lambda f: utils.coalesce(f["edge_index"]),
    "one node": lambda f: f["edge_index"][0] == 0,
    "order of ends": lambda f: f["edge_index"][0] < f["edge_index"][1],
    "other loops": lambda f: torch.cat([f["edge_index"], torch.tensor([[0, 1], [1, 2]])], 1),
    "loops by node": lambda f: torch.cat([f["edge_weight"], torch.arange(4.0)]),
    "chosen by others": lambda f: f["edge_attr"][
        utils.remove_self_loops(f["edge_index"], f["edge_weight"])[1] > 0.5
    ],
    "positions": lambda f: (f["edge_weight"] > 0.5).nonzero(),
    "batch statistics": lambda f: functional.batch_norm(f["edge_attr"], None, None, training=True),
    "a copy": lambda f: copy.deepcopy(f["edge_index"]).sum(),
    "written elsewhere": lambda f: torch.empty(2, 5).copy_(f["edge_index"]),
    "products of edges": lambda f: f["edge_attr"].t() @ f["edge_attr"],
    "flattened": lambda f: f["edge_attr"].reshape(-1),
    "torch.numel": lambda f: torch.numel(f["edge_index"]),
    "stride": lambda f: f["edge_index"].stride(0),
    "bytes": lambda f: f["edge_index"].nbytes,
    "storage": lambda f: f["edge_index"].untyped_storage(),
    "compared shapes": lambda f: f["edge_index"].shape == (2, 5),
    "repeated shape": lambda f: range((f["edge_index"].shape * 2)[1]),
    "shape as a tensor": lambda f: torch._shape_as_tensor(f["edge_index"]),
    "same shape": lambda f: torch.ones(2, 1).expand_as(f["edge_index"]),
    "numpy": lambda f: f["edge_index"].numpy(),
}


def test_edge_by_edge_is_allowed() -> None:
    for name, operation in ALLOWED.items():
        with torch.no_grad():
            found, expected = operation(watched()), operation(fields())
        assert isinstance(found, WatchedEdges), name
        torch.testing.assert_close(found.plain, expected, msg=name)


def test_everything_else_is_not() -> None:
    allowed = []
    for name, operation in FORBIDDEN.items():
        with torch.no_grad():
            try:
                operation(watched())
            except UsesEdges as refused:
                assert "outside of its message passing" in str(refused), name  # noqa: PT017
            else:
                allowed.append(name)
    assert not allowed


@pytest.mark.parametrize("out", ["numpy", "tolist", "__array__", "item"])
def test_nothing_leaves_torch(out: str) -> None:
    with torch.no_grad(), pytest.raises(UsesEdges):
        getattr(watched()["edge_index"], out)()
    with torch.no_grad(), pytest.raises(UsesEdges):
        np.asarray(watched()["edge_attr"])


def test_a_shape_makes_no_tensor() -> None:
    with pytest.raises((TypeError, UsesEdges)):
        torch.zeros(watched()["edge_index"].shape)


def test_a_refusal_that_is_caught_stands() -> None:
    edges = watched()["edge_index"]
    caught = suppress(RuntimeError)
    with pytest.raises(UsesEdges, match="number of edges"), refusals_stand(), caught:
        edges.size(1)
    with refusals_stand():
        pass


def test_layers_that_are_known() -> None:
    assert all(issubclass(layer, MessagePassing) for layer in _KNOWN_CLASSES)
    assert is_known(conv.GCNConv(3, 3))

    class Own(conv.GCNConv):  # type: ignore[misc]
        pass

    assert not is_known(Own(3, 3))
    hooked = conv.GCNConv(3, 3)
    hooked.register_propagate_forward_pre_hook(lambda layer, inputs: None)
    assert not is_known(hooked)
    hooked = conv.GCNConv(3, 3)
    hooked.register_forward_hook(lambda layer, inputs, output: None)
    assert not is_known(hooked)
    patched = conv.GCNConv(3, 3)
    patched.forward = lambda x, edge_index: x
    assert not is_known(patched)
    assert is_known(conv.GCNConv(3, 3, flow="target_to_source"))
    assert not is_known(conv.GATConv(3, 3, edge_dim=2, flow="target_to_source"))
    # wrappers hand the edges to layers that may be anybody's, and these look farther than one hop
    for name in ("AntiSymmetricConv", "ChebConv", "DirGNNConv", "GPSConv", "HANConv"):
        assert getattr(conv, name) not in _KNOWN_CLASSES


def test_layers_that_scale_by_degrees_are_those_that_normalize() -> None:
    for layer in _SCALING_CLASSES:
        assert "gcn_norm(" in inspect.getsource(sys.modules[layer.__module__]), layer


def test_no_other_known_layer_normalizes() -> None:
    for layer in _KNOWN_CLASSES - _SCALING_CLASSES:
        assert "gcn_norm(" not in inspect.getsource(layer), layer
        assert "get_laplacian(" not in inspect.getsource(layer), layer


def test_an_empty_graph_of_edges() -> None:
    empty = {**fields(), "edge_index": torch.zeros(2, 0, dtype=torch.long)}
    own = watch({**empty, "edge_attr": torch.zeros(0, 3)}, ["edge_attr"])
    with torch.no_grad():
        looped, _ = utils.add_self_loops(own["edge_index"], num_nodes=NODES)
    assert looped.plain.shape == (2, NODES)
    with pytest.raises(UsesEdges):
        own["edge_index"].size(-1)


def test_watched_tensors_are_tensors_to_those_who_ask() -> None:
    own = watched()["edge_index"]
    assert isinstance(own, Tensor)
    assert (own.dtype, own.device.type, own.dim(), own.size(0)) == (torch.long, "cpu", 2, 2)
    assert own.layout == torch.strided
    assert "WatchedEdges" in repr(own)
