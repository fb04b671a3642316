"""A small report made by hand, without a model and with hostile names."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from gstarx.drawing import Scored
from gstarx.metrics import Faithfulness, FidelityCurve, average
from gstarx_bench.report import Explained, ExplainerRow, ReportData

SCRIPT = "<script>document.title = 'broken'</script>"
SPARSITIES = (0.5, 0.7)


def faithfulness(height: float) -> Faithfulness:
    return Faithfulness.of(whole=0.9, without=0.9 - height, alone=0.8, sparsity=0.7)


def row(name: str, heights: list[float], kind: str = "explainer") -> ExplainerRow:
    graphs = tuple(faithfulness(height) for height in heights)
    curve = None
    if kind != "optimum":
        mean = average(graphs)
        curve = FidelityCurve(SPARSITIES, (mean, mean), (graphs, graphs))
    return ExplainerRow(name, graphs, kind, curve, seconds=0.5, evaluations=1000.0)


def graphs() -> list[Data]:
    edge = torch.tensor([[0, 1], [1, 0]])
    return [
        Data(smiles="CO", edge_index=edge, num_nodes=2),
        Data(words=["not", SCRIPT], edge_index=edge, num_nodes=2),
        Data(edge_index=edge, num_nodes=2),
        Data(smiles="CN", edge_index=edge, num_nodes=2),
    ]


def report_data() -> ReportData:
    """Two explainers on four graphs; the third is predicted wrong."""
    rows = (
        row("first", [0.1, 0.5, 0.3, 0.7]),
        row("second & co", [0.4, 0.2, 0.1, 0.3]),
        row("random selection", [0.1, 0.1, 0.1, 0.1], "random"),
        row("best selection found", [0.8, 0.8, 0.8, 0.8], "optimum"),
    )
    names = ["methanol", SCRIPT, "a graph", "methylamine"]
    shown = [
        Explained(
            names[i],
            data,
            predicted=i % 2,
            probability=0.6 + 0.1 * i,
            label=1 if i == 2 else i % 2,
            results={r.name: Scored(np.array([0.5 + i, -0.25]), np.array([0])) for r in rows[:2]},
            metrics={r.name: r.graphs[i] for r in rows[:2]},
        )
        for i, data in enumerate(graphs())
    ]
    return ReportData(
        f"A report on {SCRIPT}",
        rows,
        tuple(shown),
        0.7,
        class_names=("inactive", "active"),
        accuracy=0.75,
        facts={
            "model": {"name": "a model", "file": "<b>weights</b>"},
            "dataset": {"name": "four graphs"},
            "settings": {"removal of nodes": "remove"},
        },
        seed=7,
    )
