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

    The model is called as ``model(x, edge_index, batch)``, in evaluation mode, and then restored.
    The length of ``y`` tells whether it labels graphs or nodes.

    Parameters
    ----------
    model
        A classifier with one output for each class.
    graphs
        Graphs with ``x``, ``edge_index`` and ``y``.
    mask
        For node labels: the mask of the nodes that count, for instance ``"test_mask"``. By default
        all nodes count.

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
    node_mask = None
    if mask is not None:
        if mask not in data.masks or not data.node_level:
            valid = ", ".join(map(repr, data.masks)) if data.node_level and data.masks else "none"
            raise ValueError(f"mask must be one that the graphs have: {valid} (got {mask!r})")
        node_mask = data.masks[mask]
    return evaluate(model, data, torch.arange(len(data)), node_mask)[1]


def evaluate(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None = None
) -> tuple[float, float]:
    """Cross-entropy and accuracy over some of the graphs, every label with the same weight."""
    loss = correct = count = 0.0
    for logits, y in _chunks(model, data, ids, mask):
        loss += float(functional.cross_entropy(logits, y, reduction="sum"))
        correct += int((logits.argmax(dim=1) == y).sum())
        count += len(y)
    if not count:
        raise ValueError("there must be at least one label to predict (got none)")
    return loss / count, correct / count


def outputs_of(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs and labels of some of the graphs, a row for each label."""
    outputs, labels = zip(*_chunks(model, data, ids, mask), strict=True)
    return torch.cat(outputs), torch.cat(labels)


def _chunks(
    model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None
) -> list[tuple[Tensor, Tensor]]:
    device, dtype = model_device(model, torch.device("cpu")), float_type(model)
    outputs = []
    with untouched(model):
        for chunk in torch.split(ids, _BATCH):
            batch = data.batch(chunk, device=device, dtype=dtype, mask=mask)
            outputs.append((predict(model, batch), batch.y))
    return outputs


def predict(model: nn.Module, batch: GraphBatch) -> Tensor:
    """Outputs (labels, classes) for a batch; raises if they have another shape."""
    outputs: Any = model(batch.x, batch.edge_index, batch.batch)
    if batch.y.dim() == 2:
        if isinstance(outputs, Tensor) and outputs.dim() == 1:
            outputs = outputs[:, None]
        if not isinstance(outputs, Tensor) or outputs.shape != batch.y.shape:
            got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise ValueError(
                f"the model must return an output for each target of {len(batch.y)} graphs, "
                f"{tuple(batch.y.shape)} (got {got})"
            )
        return outputs
    expected = len(batch.y) if batch.rows is None else len(batch.x)
    if not isinstance(outputs, Tensor) or outputs.dim() != 2 or len(outputs) != expected:
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        noun = "graphs" if batch.rows is None else "nodes"
        raise ValueError(
            f"the labels are those of {expected} {noun}, for which the model must return "
            f"({expected}, classes) (got {got})"
        )
    return outputs if batch.rows is None else outputs[batch.rows]


def float_type(model: nn.Module) -> torch.dtype:
    """The dtype of the model's weights, which its features must have."""
    types = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(types, torch.float32)
