"""Explanations of many models are those of brute force, or are refused with a reason."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from gstarx import CommunicationGraph, explain
from gstarx.games import TableGame
from tests.values.definitions import (
    associated_matrix,
    own_worths,
    restricted_table,
    shapley_by_orders,
    squared_until_settled,
)
from tests.zoo import CASES, ZOO
from tests.zoo.models import BATCHES, EDGES, REFUSED, SINGLY, Case
from tests.zoo.table import listed_models

GRAPH = CommunicationGraph(6, EDGES)
PAGE = Path(__file__).parents[2] / "docs" / "models.md"
VALUES = ("hn", "myerson", "shapley", "banzhaf")


def part(data: Data, inside: torch.Tensor) -> Data:
    """The induced subgraph, cut out by PyG."""
    edge_index, _, mask = subgraph(
        inside, data.edge_index, relabel_nodes=True, num_nodes=6, return_edge_mask=True
    )
    fields = {
        key: value[inside] if data.is_node_attr(key) else value[mask]
        for key, value in data
        if key not in ("edge_index", "y")
    }
    return Data(edge_index=edge_index, **fields)


def table(case: Case, model: Any, data: Data) -> tuple[NDArray[np.float64], int]:
    """Worths of all 64 coalitions, one call of the model each, and the class explained."""
    networks = [m for m in (model, getattr(model, "network", None)) if hasattr(m, "modules")]
    modes = [(m, m.training) for network in networks for m in network.modules()]
    for module, _ in modes:
        module.training = False
    outputs = []
    with torch.no_grad():
        for code in range(1, 64):
            inside = torch.tensor([bool(code >> i & 1) for i in range(6)])
            outputs.append(case.alone(model, part(data, inside))[0].softmax(dim=0))
    for module, mode in modes:
        module.training = mode
    target = int(outputs[-1].argmax())
    worths = torch.stack(outputs)[:, target].double().numpy() - 1 / 3
    return np.concatenate([[0.0], worths]), target


@cache
def hn_matrix() -> NDArray[np.float64]:
    matrix, settled = squared_until_settled(
        associated_matrix(GRAPH, 0.1), tol=1e-12, max_squarings=60
    )
    assert settled
    return matrix


def by_brute_force(value: str, worths: NDArray[np.float64]) -> NDArray[np.float64]:
    if value == "shapley":
        return shapley_by_orders(worths, 6)
    if value == "myerson":
        return shapley_by_orders(restricted_table(worths, GRAPH), 6)
    if value == "banzhaf":
        return np.array(
            [
                np.mean([worths[s | 1 << i] - worths[s] for s in range(64) if not s >> i & 1])
                for i in range(6)
            ]
        )
    return own_worths(hn_matrix(), TableGame(6, worths))


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:the model mixes")
@pytest.mark.parametrize("name", CASES)
def test_the_zoo(name: str) -> None:
    case = CASES[name]
    model, data = case.build()
    if case.expected == REFUSED:
        with pytest.raises((ValueError, TypeError), match=case.reason):
            explain(model, data, **case.options)
        return
    worths, target = table(case, model, data)
    assert np.ptp(worths[1:]) > 1e-3  # it sees something
    for value in VALUES:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = explain(model, data, value=value, baseline="uniform", **case.options)
        mixes = [w for w in said if "mixes the graphs" in str(w.message)]
        assert found.exact
        assert found.explained == [target]
        scores = found.scores.numpy()
        assert scores.dtype == np.float64
        atol = 1e-8 if case.dtype == torch.float64 else 1e-6
        np.testing.assert_allclose(scores, by_brute_force(value, worths), rtol=0, atol=atol)
        assert (found.check["one_by_one"] == "") == (case.expected == BATCHES), found.check
        assert bool(mixes) <= (case.expected == SINGLY)


def test_the_table_lists_the_zoo_and_the_page_counts_it() -> None:
    listed = {key: row["explained"] for key, row in listed_models().items()}
    assert listed == {
        (kind, name.replace("|", "")): case.expected
        for kind, cases in ZOO.items()
        for name, case in cases.items()
    }
    text = PAGE.read_text(encoding="utf-8")
    assert f"{len(listed)} models are tested" in text
    for kind, cases in ZOO.items():
        ways = [case.expected for case in cases.values()]
        counts = " | ".join(str(ways.count(way)) for way in (BATCHES, SINGLY, REFUSED))
        assert f"| {kind} | {counts} |" in text
