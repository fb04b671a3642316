"""The paper's GAT against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gstarx.models import GAT
from tests.gnn.one_by_one import graph
from tests.pairs import for_each


def dense(model: GAT, x: Tensor, edge_index: Tensor) -> NDArray[np.float64]:
    """Embeddings by the formula, one node and one head at a time."""
    n, heads, width = len(x), model.heads, model.hidden_channels
    edges = [(s, t) for s, t in edge_index.t().tolist() if s != t] + [(i, i) for i in range(n)]
    hidden = x.double().numpy()
    for conv in model.convs:
        parts = {name: t.double().numpy() for name, t in conv.state_dict().items()}
        mapped = (hidden @ parts["lin.weight"].T).reshape(n, heads, width)
        out = np.zeros((n, heads, width))
        for node in range(n):
            sources = [s for s, t in edges if t == node]  # an edge given twice counts twice
            for head in range(heads):
                to = mapped[node, head] @ parts["att_dst"][0, head]
                raw = mapped[sources, head] @ parts["att_src"][0, head] + to
                raw = np.where(raw > 0, raw, model.negative_slope * raw)
                share = np.exp(raw - raw.max())
                out[node, head] = (share / share.sum()) @ mapped[sources, head]
        hidden = np.maximum(out.reshape(n, heads * width) + parts["bias"], 0)
    return hidden


@for_each(
    ("shape", "slope"), [("messy", 0.2), ("ring", 0.05), ("no edges", 0.2), ("one node", 0.05)]
)
def test_it_is_its_formula(shape: str, slope: float) -> None:
    torch.manual_seed(0)
    model, data = GAT(4, 5, 3, heads=2, readout=None, negative_slope=slope).eval(), graph(shape)
    for conv in model.convs:
        nn.init.normal_(conv.bias)
    with torch.no_grad():
        found = model.embed(data.x, data.edge_index)
        logits = model(data.x, data.edge_index)
        np.testing.assert_allclose(logits.numpy(), model.classifier(found).numpy())
    assert found.shape == (data.num_nodes, 10)
    np.testing.assert_allclose(found.numpy(), dense(model, data.x, data.edge_index), atol=1e-5)


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    model, data = GAT(4, 5, 3, heads=2, dropout=0.5), graph("ring")
    assert not torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))
    model.eval()
    assert torch.equal(model(data.x, data.edge_index), model(data.x, data.edge_index))


def test_bad_options() -> None:
    for dropout in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="dropout must be at least 0 and below 1"):
            GAT(4, 5, 3, dropout=dropout)
    with pytest.raises(ValueError, match="negative_slope must be a finite number"):
        GAT(4, 5, 3, negative_slope=float("inf"))
    with pytest.raises(ValueError, match=r"heads must be at least 1 \(got 0\)"):
        GAT(4, 5, 3, heads=0)
