"""The paper's GIN against its formula."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops

from gstarx.models import GIN
from tests.gnn.one_by_one import graph
from tests.pairs import for_each


def dense(model: GIN, x: Tensor, edge_index: Tensor) -> NDArray[np.float64]:
    """Embeddings by the formula, in evaluation mode, with dense matrices."""
    A = np.zeros((len(x), len(x)))  # row: where a message arrives
    for source, target in edge_index.t().tolist():
        A[target, source] += source != target
    hidden = x.double().numpy()
    for conv in model.convs:
        parts = {name: t.double().numpy() for name, t in conv.state_dict().items()}
        hidden = A @ hidden + (1 + parts["eps"]) * hidden
        hidden = hidden @ parts["nn.0.weight"].T + parts["nn.0.bias"]
        spread = np.sqrt(parts["nn.1.running_var"] + 1e-5)
        hidden = (hidden - parts["nn.1.running_mean"]) / spread
        hidden = hidden * parts["nn.1.weight"] + parts["nn.1.bias"]
        hidden = np.maximum(hidden, 0) @ parts["nn.3.weight"].T + parts["nn.3.bias"]
    return hidden


def scrambled(model: GIN) -> GIN:
    """Every weight and statistic away from where it begins."""
    torch.manual_seed(1)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.1 if "running_var" in name else -0.6, 0.6)
    return model.eval()


@for_each("shape", ["messy", "ring", "no edges", "one node"])
def test_it_is_its_formula(shape: str) -> None:
    model, data = scrambled(GIN(4, 8, 3, readout=None)), graph(shape)
    with torch.no_grad():
        found = model.embed(data.x, data.edge_index)
        logits = model(data.x, data.edge_index)
        np.testing.assert_allclose(logits.numpy(), model.classifier(found).numpy())
    np.testing.assert_allclose(found.numpy(), dense(model, data.x, data.edge_index), atol=1e-5)


def test_embeddings_have_no_activation() -> None:
    model, data = scrambled(GIN(4, 8, 3)), graph("messy")
    assert (model.embed(data.x, data.edge_index) < 0).any()
    first = scrambled(GIN(4, 8, 3, num_layers=1))
    assert (first.embed(data.x, data.edge_index) < 0).any()


def test_self_loops_do_not_count() -> None:
    model, data = scrambled(GIN(4, 8, 3)), graph("ring")
    looped, _ = add_self_loops(data.edge_index)
    looped, _ = add_self_loops(looped)
    with torch.no_grad():
        assert torch.equal(model(data.x, looped), model(data.x, data.edge_index))
    eps = model.convs[0].eps
    assert eps.requires_grad
    assert eps.shape == (1,)
