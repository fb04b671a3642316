"""The paper's GCN against its formula, with dense matrices."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gstarx.models import GCN
from tests.gnn.one_by_one import graph
from tests.pairs import for_each


def dense(
    model: GCN, x: Tensor, edge_index: Tensor, weight: Tensor | None = None
) -> NDArray[np.float64]:
    """Embeddings by the formula: no sparse operation, no convolution of PyG's."""
    n = len(x)
    A = np.zeros((n, n))  # row: where a message arrives
    given = np.ones(edge_index.shape[1]) if weight is None else weight.double().numpy()
    for (source, target), w in zip(edge_index.t().tolist(), given, strict=True):
        A[target, source] += w
    if model.normalize:
        # self-loops only where there are none, and the last one given counts
        loops = [w for (s, t), w in zip(edge_index.t().tolist(), given, strict=True) if s == t]
        at = [s for s, t in edge_index.t().tolist() if s == t]
        A[np.diag_indices(n)] = 1.0
        for node, w in zip(at, loops, strict=True):
            A[node, node] = w
        degree = A.sum(axis=1)
        A = A / np.sqrt(degree[:, None] * degree[None, :])
    else:
        A += np.eye(n)
    hidden = x.double().numpy()
    for conv in model.convs:
        W, b = conv.lin.weight.detach().double().numpy(), conv.bias.detach().double().numpy()
        hidden = A @ (hidden @ W.T) + b
        if model.normalize_embeddings:
            hidden = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
        hidden = np.maximum(hidden, 0)
    return hidden


def classify(model: GCN, hidden: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = model.classifier.weight.detach().double().numpy()
    return np.asarray(hidden @ weight.T + model.classifier.bias.detach().double().numpy())


@for_each(
    ("shape", "normalize", "normalize_embeddings", "weighted"),
    [
        ("messy", True, False, True),
        ("messy", False, True, True),
        ("messy", True, True, False),
        ("ring", False, False, False),
        ("ring", True, True, True),
        ("no edges", False, True, False),
        ("no edges", True, False, False),
        ("one node", True, False, True),
        ("one node", False, True, False),
    ],
)
def test_it_is_its_formula(
    shape: str, normalize: bool, normalize_embeddings: bool, weighted: bool
) -> None:
    torch.manual_seed(0)
    data = graph(shape)
    options = {"normalize": normalize, "normalize_embeddings": normalize_embeddings}
    model = GCN(4, 8, 3, readout=None, **options)
    for conv in model.convs:
        torch.nn.init.normal_(conv.bias)
    weight = data.edge_weight if weighted else None
    with torch.no_grad():
        found = model(data.x, data.edge_index, edge_weight=weight).numpy()
    expected = classify(model, dense(model, data.x, data.edge_index, weight))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_normalization_a_self_loop_counts_twice() -> None:
    """Summed neighbors, and one more loop for every node, whether it had one or not."""
    model = GCN(1, 1, 1, num_layers=1, normalize=False, readout=None)
    model.convs[0].lin.weight.data.fill_(1.0)
    model.classifier.weight.data.fill_(1.0)
    model.classifier.bias.data.zero_()
    x = torch.tensor([[1.0], [10.0], [100.0]])
    edge_index = torch.tensor([[0, 1, 1], [1, 1, 2]])
    assert model(x, edge_index)[:, 0].tolist() == [1.0, 21.0, 110.0]


def test_the_edge_index_is_left_alone() -> None:
    data = graph("messy")
    before = data.edge_index.clone()
    GCN(4, 8, 3, normalize=False)(data.x, data.edge_index)
    assert torch.equal(data.edge_index, before)


def test_embeddings_are_those_after_the_last_relu() -> None:
    torch.manual_seed(0)
    model, data = GCN(4, 8, 3, num_layers=2), graph("ring")
    embedded = model.embed(data.x, data.edge_index)
    assert embedded.shape == (6, 8)
    assert (embedded >= 0).all()
    assert (embedded == 0).any()
    expected = model.classifier(embedded.mean(dim=0, keepdim=True))
    torch.testing.assert_close(model(data.x, data.edge_index), expected)
    assert len(model.convs) == 2
