"""Which models of the zoo share embeddings, and why others do not; the numbers are the model's."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import GNNGame, Passes
from tests.zoo import ZOO
from tests.zoo.models import FEATURES, REFUSED, Case
from tests.zoo.table import listed_models

PAGE = Path(__file__).parents[2] / "docs" / "sharing.md"
#: Two rings, linked, with two nodes hanging on.
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10)]
EDGES += [(10, 6), (2, 11), (9, 12)]

BATCH = "batch is used for more than a readout"
MORE = "depends on more than the messages that arrive"
READS = "reads edges outside of message passing"
ORDER = "depends on the order of nodes"
SINGLY = "one graph at a time"
FAILS = "fails without whole graphs"
COMPILED = "compiled for whole graphs"
SCRIPT = "is TorchScript, which cannot be watched"
#: What the game says, and what the page makes of it.
REASONS = {
    "uses batch for more than a readout": BATCH,
    "depends on more than the messages": MORE,
    "reads edges outside of its message passing": READS,
    "may depend on the order of nodes": ORDER,
    "does not take batch, or normalizes": SINGLY,
    "fails on shared nodes": FAILS,
    "is compiled by torch.compile": COMPILED,
    "is TorchScript": SCRIPT,
}


def graph(case: Case) -> Data:
    """The graph with the fields that a case names: nodes and edges of few kinds."""
    draw = torch.Generator().manual_seed(1)
    ends = torch.tensor(EDGES).t()
    both = torch.cat([ends, ends.flip(0)], dim=1)
    count, real = both.shape[1], {"generator": draw, "dtype": torch.float64}
    bonds = torch.randint(3, (count,), generator=draw)
    fields = {
        "edge_attr": torch.eye(3, dtype=torch.float64)[bonds],
        "edge_weight": 0.5 + bonds.double(),
        "edge_type": torch.randint(2, (count,), generator=draw),
        "node_type": torch.randint(2, (13,), generator=draw),
        "pos": torch.randn(13, 3, **real),  # type: ignore[call-overload]
        "normal": torch.randn(13, 3, **real),  # type: ignore[call-overload]
        "z": torch.randint(1, 8, (13,), generator=draw),
    }
    kinds = torch.randint(FEATURES, (13,), generator=draw)
    data = Data(
        x=torch.eye(FEATURES, dtype=torch.float64)[kinds],
        edge_index=both,
        **{name: fields[name] for name in case.names},
    )
    return data.apply(lambda t: t.to(case.dtype) if t.is_floating_point() else t)


def found(case: Case) -> str:
    """``"shared"``, after comparing all worths with the ordinary path, or why not."""
    model, _ = case.build()
    options: dict[str, Any] = {"payoff": "raw", "target": "all", **case.options}
    data = graph(case)
    try:
        game = GNNGame(model, data, passes=Passes(share=True), **options)
        every = game.graph.connected_coalitions()
        rows = every[np.random.default_rng(0).permutation(len(every))[:100]]
        worths = game(rows)
    except ValueError as error:
        words = str(error)
        assert "cannot share" in words
        return next(short for long, short in REASONS.items() if long in words)
    expected = GNNGame(model, data, passes=Passes(share=False), **options)(rows)
    atol = (1e-10 if case.dtype == torch.float64 else 1e-5) * np.ptp(expected)
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(worths, expected, rtol=0, atol=atol)
    assert game.sharing.nodes > 1.5 * game.sharing.states
    return "shared"


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("kind", ZOO)
def test_models_of_the_zoo(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the model mixes")
        outcomes = {
            name.replace("|", ""): found(case)
            for name, case in ZOO[kind].items()
            if case.expected != REFUSED
        }
    rows = listed_models()
    assert outcomes == {name: rows[kind, name]["embeddings"] for name in outcomes}


def test_the_page_counts_the_models_that_share() -> None:
    outcomes = [row["embeddings"] for row in listed_models().values() if row["embeddings"]]
    text = PAGE.read_text(encoding="utf-8")
    assert f"{outcomes.count('shared')} of {len(outcomes)} models share" in text
