"""Runs of a model and graphs that are given in Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from gstarx import datasets, explain
from gstarx_bench.runs import RunSpec, read, resume, run
from gstarx_bench.runs.specification import DatasetSpec, ModelSpec
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED


class Own(nn.Module):
    """No class of the package."""

    def __init__(self, out: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.head = pyg.GINConv(nn.Linear(8, 8)), nn.Linear(8, out)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(pyg.global_add_pool(self.conv(x, edge_index).relu(), batch))


class Dying(Own):
    """Ends its process at a graph of nine nodes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if len(x) == 9:
            os._exit(5)
        return super().forward(x, edge_index, batch)


def graphs() -> list[Data]:
    return list(datasets.load("nitro"))[:4]


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_the_explanations(tmp_path: Path, workers: int) -> None:
    model, given = Own().train(), graphs()
    spec = RunSpec(dataset=given, model=model, explainer="gstarx")
    assert spec.split == "all"
    report = run(spec, tmp_path, workers=workers, progress=False)
    assert (report.done, report.failed) == (4, 0)
    rows = {row["graph"]: row for row in read(tmp_path).to_pylist()}
    for position, data in enumerate(given):
        expected = explain(model, data).scores
        assert rows[position]["scores"] == pytest.approx(expected.tolist(), abs=1e-6)
    assert model.training
    again = run(
        RunSpec(dataset=graphs(), model=Own(), explainer="gstarx"), tmp_path, progress=False
    )
    assert (again.run, again.found, again.done) == (report.run, 4, 0)
    other = Own()
    with torch.no_grad():
        other.head.bias += 1
    assert run({**spec_of(other), "graphs": (0,)}, tmp_path, progress=False).done == 1


def spec_of(model: Any) -> dict[str, Any]:
    return {"dataset": graphs(), "model": model, "explainer": "leave_one_out"}


def test_it_is_not_resumed_without_them(tmp_path: Path) -> None:
    run(spec_of(Own()), tmp_path, workers=1, progress=False)
    with pytest.raises(ValueError, match="given in Python and not stored with it: call run"):
        resume(tmp_path, progress=False)


def test_a_worker_that_dies_costs_one_graph(tmp_path: Path) -> None:
    small = Data(x=torch.ones(9, 8), edge_index=torch.tensor([[0, 1], [1, 0]]))
    spec = RunSpec(dataset=[small, *graphs()], model=Dying(), explainer="leave_one_out")
    report = run(spec, tmp_path, workers=2, progress=False)
    assert (report.done, report.failed) == (5, 1)
    errors = [row["error"] for row in read(tmp_path).to_pylist() if row["error"]]
    assert "exit code 5" in errors[0]


def test_splits_and_tasks_that_are_known_count(tmp_path: Path) -> None:
    whole = datasets.load("nitro")
    assert RunSpec(dataset=whole, model=Own(), explainer="random").split == "test"
    one = ModelSpec.of(Own(1), task="regression")
    report = run(
        RunSpec(dataset=DatasetSpec.of(graphs(), "mine"), model=one, explainer="gstarx"),
        tmp_path,
        workers=1,
        progress=False,
    )
    assert report.failed == 0
    assert set(read(tmp_path).column("dataset").to_pylist()) == {"mine"}


@for_each(
    ("change", "words"),
    [
        ({"dataset": []}, "holds no graph"),
        ({"dataset": 3}, "dataset"),
        ({"model": 3}, "model"),
        ({"model": {"live": "Own", "factory": "a:b"}}, "neither weights nor a factory"),
        ({"dataset": {"live": "graphs", "name": "nitro"}}, "no name, file or factory"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RunSpec.model_validate({**spec_of(Own()), **change})
