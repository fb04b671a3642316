"""Heterogeneous graphs in the commands: a factory of graphs and one of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gstarx import HeteroExplanation, explain, explain_nodes
from gstarx.datasets import from_graphs
from gstarx.evaluation import Pipeline
from gstarx.explainers import create, graph_generator
from gstarx.gnn import hetero_of
from gstarx.metrics import evaluate
from gstarx.players import Nodes
from tests.cli.commands import gstarx as run
from tests.cli.commands import refused, scores
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small

FACTORIES = """
import torch
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small


def one():
    return [small()]


def classifier():
    return seeded(OnPapers)


def graphs():
    made = [small(seed=seed) for seed in range(3)]
    for at, graph in enumerate(made):
        graph.y, graph.name = torch.tensor([at % 2]), f"group {at}"
    return made


def model():
    return seeded(OnGraphs)
"""
PAPERS = ["--graphs", "own_types:one", "--model", "own_types:classifier"]
OWN = ["--graphs", "own_types:graphs", "--model", "own_types:model"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_types.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_explain_names_types_and_gives_the_numbers_of_python(own: Path) -> None:
    result = run("explain", *OWN, "-e", "gstarx", "--limit", "1", "--json", "--draw", "one.svg")
    record = json.loads(result.stdout)
    alone = explain(seeded(OnGraphs), small(), seed=graph_generator(0, 0))
    assert scores(record) == pytest.approx(alone.scores.tolist(), abs=1e-9)
    assert record["labels"][3] == "paper 0"
    assert [tuple(node) for node in record["selected"]] == alone.select(sparsity=0.7)
    assert record["graph"] == "group 0"
    assert ">venue</text>" in (own / "one.svg").read_text()
    found = evaluate(seeded(OnGraphs), small(), alone.select(sparsity=0.7))
    assert record["metrics"]["harmonic_fidelity"] == pytest.approx(found.harmonic_fidelity)


def test_nodes_of_a_type(own: Path) -> None:
    record = json.loads(
        run("explain", *PAPERS, "--nodes", "1", "--node-type", "paper", "--json").stdout
    )[0]
    (alone,) = explain_nodes(
        seeded(OnPapers), small(), [1], progress=False, task={"node_type": "paper"}
    )
    assert scores(record) == pytest.approx(alone.scores.tolist(), abs=1e-9)
    assert HeteroExplanation.from_dict(record["explanation"]).players == alone.players
    shown = run("explain", *PAPERS, "--nodes", "1", "--node-type", "paper").stdout
    assert "venue 0: " in shown


@pytest.mark.parametrize(
    ("command", "options", "code", "message"),
    [
        ("explain", ["--nodes", "1"], 1, "node_type='author' or node_type='paper'"),
        ("explain", ["--nodes", "1", "--node-type", "papr"], 1, "did you mean 'paper'?"),
        ("explain", ["--node-type", "paper"], 2, "--node-type is for --nodes"),
        ("evaluate", ["--nodes", "1", "--store", "runs"], 1, "nodes of homogeneous graphs"),
    ],
)
def test_a_type_of_nodes_that_is_missing_or_wrong(
    own: Path, command: str, options: list[str], code: int, message: str
) -> None:
    assert message in refused(command, *PAPERS, *options, code=code)


def test_a_report_of_types(own: Path) -> None:
    run("report", *OWN, "-e", "gstarx", "-e", "leave_one_out", "--limit", "2", "--output", "r.html")
    page = (own / "r.html").read_text()
    assert "paper 0" in page
    assert "polygon" in page


def test_the_pipeline_evaluates_the_types_that_play() -> None:
    data, model = small(), seeded(OnGraphs)
    (view,) = from_graphs([data]).graphs
    explainer = create("gstarx", player_types=["author"])
    pipeline = Pipeline(model, seed=0)
    made = pipeline.explain(explainer, view, 0)
    assert hetero_of(made) is not None
    found = pipeline.evaluate(view, made, sizes=[1])["top"]
    chosen = [hetero_of(view).pair(int(node)) for node in found.selections[0]]  # type: ignore[union-attr]
    alone = evaluate(model, data, chosen, players=Nodes(types=("author",)))
    assert found.metrics[0] == alone


def test_a_dataset_of_views_knows_its_content() -> None:
    first, same, other = (from_graphs([small(seed=seed)]) for seed in (0, 0, 1))
    assert first.digest == same.digest
    assert first.digest != other.digest
    with pytest.raises(TypeError, match="a PyG Data with x and edge_index, or a HeteroData"):
        from_graphs(["graph"])  # type: ignore[list-item]
