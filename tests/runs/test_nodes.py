"""Runs of nodes of one graph: the numbers of explain_nodes, in any number of processes, resumed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data

from gstarx import GStarX, explain_nodes
from gstarx.explainers import with_objects
from gstarx_bench import runs
from tests.cli.commands import found, gstarx, refused

MODULE = """
import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def network():
    return Network().eval()


def graphs():
    rng = np.random.default_rng(0)
    ends = torch.from_numpy(rng.integers(24, size=(2, 50)))
    x = torch.from_numpy(rng.normal(size=(25, 4))).float()
    return [Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))]


def two_graphs():
    return graphs() + graphs()
"""
NODES = (3, 17, 24, 8)  # the third has no edges
OPTIONS: dict[str, Any] = {
    "value": "shapley",
    "players": "edges",
    "directed": True,
    "computation_graph": "gnnshap",
    "budget": 400,
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_nodes.py").write_text(MODULE)
    return importlib.import_module("own_nodes")


def specification(**changes: Any) -> runs.RunSpec:
    fields: dict[str, Any] = {
        "dataset": {"graphs": "own_nodes:graphs"},
        "model": {"factory": "own_nodes:network"},
        "explainer": {"name": "gstarx", "options": OPTIONS},
        "split": "all",
        "nodes": NODES,
        "seed": 5,
    }
    return runs.RunSpec(**{**fields, **changes})


def stored(folder: Path) -> list[dict[str, Any]]:
    volatile = {*runs.VOLATILE, "traceback"}
    rows = runs.read(folder).to_pylist()
    return [{k: v for k, v in row.items() if k not in volatile} for row in rows]


def expected(module: Any, data: Data) -> dict[int, Any]:
    options = {**with_objects(GStarX, OPTIONS), "seed": 5, "progress": False, "on_error": "record"}
    made = explain_nodes(module.network(), data, [3, 17, 8], **options)
    return dict(zip([3, 17, 8], made, strict=True))


def test_rows_are_those_of_explain_nodes(module: Any, tmp_path: Path) -> None:
    report = runs.run(specification(), tmp_path / "one", workers=1, progress=False)
    assert (report.graphs, report.done, report.failed) == (4, 4, 1)
    rows = stored(tmp_path / "one")
    (data,) = module.graphs()
    explanations = expected(module, data)
    assert [row["node"] for row in rows] == sorted(NODES)
    assert [row["graph"] for row in rows] == sorted(NODES)
    for row in rows:
        if row["node"] == 24:
            assert "no edge brings a message to node 24" in row["error"]
            continue
        explanation = explanations[row["node"]]
        again = runs.explanation_of({**row, "cpu_seconds": 0.0})
        for name in ("scores", "std_errors", "player_edges"):
            np.testing.assert_array_equal(again[name], explanation[name])
        assert row["target"] == explanation.target_class
        assert row["evaluations"] == explanation.evaluations
    runs.run(specification(), tmp_path / "two", workers=2, progress=False)
    assert stored(tmp_path / "two") == rows


def test_a_run_goes_on_where_it_stopped(module: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = runs.run(specification(nodes=(3, 17)), store, workers=1, progress=False)
    second = runs.run(specification(), store, workers=1, progress=False)
    assert first.run == second.run
    assert (second.graphs, second.found, second.done) == (4, 2, 2)
    again = runs.resume(store, progress=False, workers=1)
    assert [report.done for report in again] == [0, 0]
    retried = runs.retry_failed(store, progress=False, workers=1)
    assert sum(report.done for report in retried) == 1
    runs.run(specification(), tmp_path / "whole", workers=1, progress=False)
    assert stored(store) == stored(tmp_path / "whole")
    other = runs.run(specification(seed=6, nodes=(3,)), store, workers=1, progress=False)
    assert other.run != first.run


def test_nodes_as_players(module: Any, tmp_path: Path) -> None:
    spec = specification(
        explainer={"name": "gstarx", "options": {"value": "banzhaf", "budget": 300}}, nodes=(3,)
    )
    runs.run(spec, tmp_path / "store", workers=1, progress=False)
    (row,) = stored(tmp_path / "store")
    (data,) = module.graphs()
    (made,) = explain_nodes(
        module.network(), data, [3], value="banzhaf", budget=300, seed=5, progress=False
    )
    again = runs.explanation_of({**row, "cpu_seconds": 0.0})
    assert again.player_kind == "nodes"
    assert again.players.tolist() == made.players.tolist()
    np.testing.assert_array_equal(again.scores, made.scores)


def test_what_cannot_be_run(module: Any, tmp_path: Path) -> None:
    def message(**changes: Any) -> str:
        with pytest.raises(ValueError) as caught:
            runs.run(specification(**changes), tmp_path / "no", workers=1, progress=False)
        return str(caught.value)

    assert "nodes must lie in 0..24 (got 25)" in message(nodes=(3, 25))
    assert "nodes must be distinct non-negative positions" in message(nodes=(3, 3))
    assert "explained by gstarx and its presets (got 'random')" in message(explainer="random")
    two = message(dataset={"graphs": "own_nodes:two_graphs"})
    assert "which has 2: pass graphs=(0,) or another position" in two
    assert "which has 1" in message(graphs=(1,))


COMMAND = ("--graphs", "own_nodes:graphs", "--model", "own_nodes:network", "--seed", 5)


def test_the_command(module: Any, tmp_path: Path) -> None:
    options = [f"--option={name}={value}" for name, value in OPTIONS.items()]
    content = found(
        "evaluate", *COMMAND, "--nodes", "3,17,8", *options, "--store", "s", "--workers", 1
    )
    (run,) = content["runs"]
    assert (run["explained"], run["failed"], content["references"]) == (3, 0, [])
    (data,) = module.graphs()
    explanations = expected(module, data)
    for row in stored(tmp_path / "s"):
        scores = json.loads(row["explanation"])["scores"]
        np.testing.assert_array_equal(scores, explanations[row["node"]].scores)
    (listed,) = found("runs", "list", "s")
    assert (listed["explained"], listed["failed"]) == (3, 0)
    assert gstarx("runs", "show", "s").exit_code == 0
    assert "explain nodes: a report is about whole graphs" in refused("report", "--store", "s")
    gstarx("runs", "export", "s", "rows.csv")
    text = (tmp_path / "rows.csv").read_text()
    assert "node,player,score,std_error" in text.splitlines()[0]
    assert len(text.splitlines()) == 1 + sum(len(e.scores) for e in explanations.values())
    assert "0..24" in refused("evaluate", *COMMAND, "--nodes", "99", "--store", "s")
