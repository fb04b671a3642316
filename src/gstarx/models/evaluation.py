"""How well a model predicts labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gstarx.gnn import model_device, untouched
from gstarx.models.collation import CollatedGraphs, GraphBatch

#: Graphs that are evaluated at once.
_BATCH = 512


def accuracy(model: nn.Module, graphs: Sequence[Data], *, mask: str | None = None) -> float:
    """The share of labels that are the model's highest output.

    The model is called as ``model(x, edge_index, batch)``, in evaluation mode, and left as it was
    found. Whether ``y`` labels graphs or nodes is told by its length.

    Parameters
    ----------
    model
        A classifier with one output for each class.
    graphs
        Graphs with ``x``, ``edge_index`` and ``y``.
    mask
        For labels of nodes: which of the masks of the graphs says what nodes count, for instance
        ``"test_mask"``. By default all do.

    Examples
    --------
    >>> from gstarx.models import GCN
    >>> _ = torch.manual_seed(0)
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> graphs = [Data(x=torch.eye(2), edge_index=edge, y=torch.tensor([k])) for k in (0, 1)]
    >>> accuracy(GCN(2, 4, 2), graphs)
    0.5
    """
    data = CollatedGraphs.of(graphs)
    chosen = None
    if mask is not None:
        if mask not in data.masks or not data.node_level:
            valid = ", ".join(map(repr, data.masks)) if data.node_level and data.masks else "none"
            raise ValueError(f"mask must be one that the graphs have: {valid} (got {mask!r})")
        chosen = data.masks[mask]
    return evaluate(model, data, torch.arange(len(data)), chosen)[1]


def evaluate(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None = None
) -> tuple[float, float]:
    """Cross-entropy and accuracy over some of the graphs, every label with the same weight."""
    device, dtype = model_device(model, torch.device("cpu")), float_type(model)
    loss = correct = count = 0.0
    with untouched(model):
        for some in torch.split(ids, _BATCH):
            batch = data.batch(some, device=device, dtype=dtype, mask=mask)
            logits = predict(model, batch)
            loss += float(functional.cross_entropy(logits, batch.y, reduction="sum"))
            correct += int((logits.argmax(dim=1) == batch.y).sum())
            count += len(batch.y)
    if not count:
        raise ValueError("there must be at least one label to predict (got none)")
    return loss / count, correct / count


def predict(model: nn.Module, batch: GraphBatch) -> Tensor:
    """Outputs (labels, classes) for a batch, or an error that says what came instead."""
    found: Any = model(batch.x, batch.edge_index, batch.batch)
    expected = len(batch.y) if batch.rows is None else len(batch.x)
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != expected:
        got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        what = "graphs" if batch.rows is None else "nodes"
        raise ValueError(
            f"the labels are those of {expected} {what}, for which the model must return "
            f"({expected}, classes) (got {got})"
        )
    return found if batch.rows is None else found[batch.rows]


def float_type(model: nn.Module) -> torch.dtype:
    """Type of the model's weights, in which it wants its features."""
    types = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(types, torch.float32)
