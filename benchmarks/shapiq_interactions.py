"""Interactions by shapiq: evaluations, CPU seconds, and which nodes come first.

On a nitroarene of the bundled dataset, where the truth is the nitro group and its ring atom, and on
a planted task whose output needs two distant nodes at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool, global_max_pool

from gstarx.datasets import load
from gstarx.integrations.shapiq import INDICES, explain_interactions
from gstarx.models import pretrained
from gstarx.values import PrecisionWarning


class PlantedAnd(nn.Module):
    """One if a node of kind 1 and one of kind 2 are there, and a little for every other node."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        both = global_max_pool(x[:, 1], batch) * global_max_pool(x[:, 2], batch)
        return (both + 0.02 * global_add_pool(x[:, 0], batch)).reshape(-1, 1)


def planted_and(nodes: int) -> Data:
    """A ring with a chord; the two kinds are at nodes 1 and ``nodes - 2``."""
    ends = torch.tensor([(i, (i + 1) % nodes) for i in range(nodes)] + [(0, nodes // 2)]).t()
    kinds = torch.zeros(nodes, dtype=torch.long)
    kinds[1], kinds[nodes - 2] = 1, 2
    return Data(x=torch.eye(3)[kinds], edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def main() -> None:
    network, _ = pretrained("nitro")
    molecules = [data for data in load("nitro") if int(data.y) == 1]
    small = next(data for data in molecules if data.num_nodes == 13)
    large = next(data for data in molecules if data.num_nodes >= 18)
    regression: dict[str, Any] = {"task": "regression", "baseline": 0.0}
    cases: list[tuple[str, Any, Data, dict[str, Any]]] = [
        ("nitro, 13 atoms", network, small, {"target": 1}),
        (f"nitro, {large.num_nodes} atoms", network, large, {"target": 1, "budget": 5_000}),
        ("planted, 12 nodes", PlantedAnd(), planted_and(12), regression),
        ("planted, 24 nodes", PlantedAnd(), planted_and(24), {**regression, "budget": 5_000}),
    ]
    print("| graph | order | index | evaluations | CPU s | standard error | first | in the truth |")
    print("|---|---:|---|---:|---:|---:|---|---|")
    for name, model, data, options in cases:
        truth = {1, int(data.num_nodes or 0) - 2}
        if "truth" in data:
            truth = set(torch.as_tensor(data.truth).nonzero()[:, 0].tolist())
        for order in (2, 3):
            for index in INDICES:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PrecisionWarning)
                    found = explain_interactions(
                        model, data, order=order, index=index, seed=0, **options
                    )
                first = found.top(1, order=2 if "planted" in name else order)[0][0]
                error = "exact" if found.exact else f"{found.std_errors[-1]:.2g}"
                print(
                    f"| {name} | {order} | {index} | {found.evaluations:,} | {found.seconds:.1f} "
                    f"| {error} | {first} | {'yes' if set(first) <= truth else 'no'} |",
                    flush=True,
                )
