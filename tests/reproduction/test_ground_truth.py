"""The ground-truth benchmark: its network, its rows, and its page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gstarx.explainers import NodeExplainer, create
from gstarx.explanation import Attribution
from gstarx_bench.datasets import attribution_task, save_attribution
from reproduction import ground_truth
from reproduction.__main__ import main
from reproduction.ground_truth import evidence, explaining, measuring, outcomes, page, training
from reproduction.ground_truth.methods import METHODS, PUBLISHED
from reproduction.ground_truth.networks import EdgeNetwork
from reproduction.ground_truth.rows import TruthRows, agreement, new_row, node_scores
from tests.shared import DATA

pytest.importorskip("rdkit")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[2]
SMILES = [f"{'C' * n}{end}" for n in range(1, 31) for end in ("F", "C=O", "C(F)C=O", "OC(F)C=O")]


def small_task() -> Any:
    return attribution_task(SMILES, ["[FX1]", "[CX3]=O"], name="logic7")


def test_the_bond_network_is_a_sum_over_nodes_and_their_bonds() -> None:
    torch.manual_seed(0)
    model, graph = EdgeNetwork(2).eval(), small_task()[2]
    logits = model(graph.x, graph.edge_index, graph.edge_attr)
    assert logits.shape == (1, 2)
    assert float(logits[0, 0].detach()) == 0
    scores = create("cam").explain(model, graph, target=1).scores
    assert float(scores.sum()) == pytest.approx(float(logits[0, 1].detach()), abs=1e-5)
    number = EdgeNetwork(0)(graph.x, graph.edge_index, graph.edge_attr)
    assert number.shape == (1, 1)


def test_rows_are_replaced_by_newer_ones_and_dropped_with_old_settings(tmp_path: Path) -> None:
    graph, method = small_task()[2], METHODS["HN"]
    run: dict[str, Any] = {
        "run": "r",
        "graph": 5,
        "num_nodes": 5,
        "exact": True,
        "evaluations": 9,
        "cpu_seconds": 0.1,
        "scores": [0.0, 3.0, 1.0, 2.0, 0.0],
        "harmonic_fidelity": [0.5],
        "error": None,
    }
    rows = TruthRows("logic7-gin", tmp_path)
    rows.add([new_row(method, run, graph)])
    rows.add([new_row(method, {**run, "scores": [3.0, 0.0, 0.0, 0.0, 0.0]}, graph)])
    again = TruthRows("logic7-gin", tmp_path).of(method)
    assert again[5]["agreement"] == agreement([3.0, 0.0, 0.0, 0.0, 0.0], graph)
    assert len(rows.table) == 1
    rows.add([{**new_row(method, run, graph), "settings": "newer", "graph": 6}])
    assert rows.table["settings"].to_pylist() == ["newer"]


def test_sets_are_scored_by_how_many_hold_a_node() -> None:
    row = {"scores": None, "selected": [[0, 1], [1], []], "num_nodes": 3}
    scores = node_scores(row)
    assert scores is not None
    assert scores.tolist() == [1, 2, 0]
    assert node_scores({"scores": None, "selected": None, "num_nodes": 3}) is None


def test_graphs_without_a_defined_metric_are_left_out() -> None:
    graph = small_task()[2]
    assert explaining._defined(graph)
    for mask in (torch.zeros(1, 5), torch.ones(2, 5)):
        graph.truths = mask.bool()
        assert not explaining._defined(graph)
    graph.truths = torch.tensor([[0.5] * 5])
    assert not explaining._defined(graph)
    graph.truths = torch.tensor([[0.5, 0.5, -0.5, 0.5, 0.5]])
    assert explaining._defined(graph)


def test_techniques_of_the_published_table_are_methods_of_ours() -> None:
    assert set(PUBLISHED) <= set(METHODS)
    if not (DATA / "attribution" / "published.csv").is_file():
        pytest.skip("the published figures are not here")
    published = page.read_published(DATA)
    assert {technique for _, _, technique in published} == {*PUBLISHED.values(), "Random"}
    assert published["logic7", "gcn", "IG"][1] == pytest.approx(0.779326)


class Broken(NodeExplainer):
    def attribute(self, model: Any, data: Any, *, task: Any, seed: Any) -> Attribution:
        return Attribution(np.full(data.num_nodes, np.nan))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A benchmark of one small task and one network, in a directory of its own."""
    save_attribution(tmp_path / "data" / "attribution" / "logic7.npz", small_task())
    monkeypatch.setenv("GSTARX_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(training, "EPOCHS", {"logic7": 3})
    monkeypatch.setattr(explaining, "WEIGHTS", tmp_path / "weights")
    for module in (ground_truth, evidence, explaining, measuring, outcomes, page, training):
        for name in ("TASKS", "NETWORKS"):
            if hasattr(module, name):
                one = ("logic7",) if name == "TASKS" else ("gin", "edge")
                monkeypatch.setattr(module, name, one)
    explaining.load_task.cache_clear()
    explaining._mean_output.cache_clear()
    training.train_networks(to=tmp_path / "weights", folder=tmp_path / "results")
    yield tmp_path / "results"
    explaining.load_task.cache_clear()
    explaining._mean_output.cache_clear()


def test_a_small_benchmark_from_training_to_page(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("random nodes", "CAM", "leave one out", "HN, singletons", "HN, two-sided, singletons")
    stages = {"some": tuple(METHODS[name] for name in kept)}
    monkeypatch.setattr(explaining, "STAGES", stages)
    monkeypatch.setattr(explaining, "SAMPLE", {"logic7": 3})
    monkeypatch.setattr(explaining, "FEW", {"logic7": 2})
    monkeypatch.setattr(measuring, "FEW", {"logic7": 2})
    explaining.explain_tasks(folder=small, workers=1)
    assert capsys.readouterr().out.count("graphs,") == 2 * len(kept)
    explaining.explain_tasks(folder=small, workers=1)
    assert not capsys.readouterr().out  # everything is done
    measuring.measure_networks(folder=small)
    read = outcomes.read_outcomes(small)
    assert set(read) == {"logic7-gin", "logic7-edge"}
    assert set(read["logic7-gin"]) == set(kept)
    for own in read["logic7-edge"].values():
        assert 0 <= own.mean <= 1
        assert own.interval[0] <= own.mean <= own.interval[1]
        assert len(own.robust) == 2
        assert own.failed == 0
    notes = measuring.read_notes(small)["logic7-gin"]
    assert notes["pairs"] > 0
    assert set(notes["missed"]) <= set(small_task().split_indices["test"])
    assert 0 < notes["left_out"] < notes["test"]
    made = page.write_ground_truth(small, to=small / "docs" / "page.md").read_text("utf-8")
    assert "$" not in made
    assert "| HN, singletons |" in made
    assert (small / "docs" / "figures" / "fidelity-and-truth.svg").is_file()


def test_an_explainer_that_returns_nan_costs_its_own_rows_only(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gstarx_bench.explainers.activations.CAM", Broken)
    stages = {"some": (METHODS["random nodes"], METHODS["CAM"])}
    monkeypatch.setattr(explaining, "STAGES", stages)
    monkeypatch.setattr(explaining, "SAMPLE", {"logic7": 3})
    explaining.explain_tasks(["logic7-gin"], folder=small, workers=1)
    rows = TruthRows("logic7-gin", small)
    broken = rows.of(METHODS["CAM"])
    assert all("must be finite (got nan" in row["error"] for row in broken.values())
    assert all(row["agreement"] is None for row in broken.values())
    read = outcomes.read_outcomes(small)["logic7-gin"]
    assert set(read) == {"random nodes"}
    assert len(read["random nodes"].graphs) == len(broken) == 3


def outcome(graphs: tuple[int, ...], agreement: list[float]) -> outcomes.Outcome:
    nothing = np.zeros((len(graphs), 0))
    return outcomes.Outcome(graphs, np.array(agreement), nothing, nothing, 1.0, 1.0, 0)


def test_the_default_is_compared_on_common_graphs() -> None:
    default = outcome((1, 2, 3, 4), [0.9, 0.8, 0.7, 0.0])
    other = outcome((4, 3, 2), [0.5, 0.6, 0.7])
    gain = evidence.difference(default, other)
    assert gain.mean == pytest.approx((0.1 + 0.1 - 0.5) / 3)
    worse = outcome((1, 2, 3, 4), [0.1, 0.1, 0.1, -0.5])
    read = {"logic7-gin": {evidence.DEFAULT: default, "HN": worse, "Shapley": other}}
    assert evidence.verdict(read, "HN") == "ahead on 1 (logic7-gin)"
    assert evidence.verdict(read, "Shapley") == "level on 1 (logic7-gin)"
    read["logic7-gin"]["GraphSVX"] = outcome((1, 2, 3, 4), [0.95, 0.6, 0.6, 0.0])
    assert evidence.difference(default, read["logic7-gin"]["GraphSVX"]).mean > 0
    assert evidence.verdict(read, "GraphSVX") == "level on 1 (logic7-gin)"
    assert evidence.verdict(read, "Banzhaf") == "not measured yet"
    ((setup, graphs, minus_hn, *_),) = evidence.paired_table(read).rows
    assert (setup, graphs) == ("logic7-gin", 4)
    assert str(minus_hn).startswith("**+650**")
    read = {"logic7-edge": {evidence.DEFAULT: default, "CAM": worse}}
    published = {("logic7", "gcn", "CAM"): (0.1, 0.95, 1.0), ("logic7", "gat", "IG"): (0, 0.4, 1)}
    ((task, best, here, own),) = evidence.published_table(read, published).rows
    assert (task, best) == ("logic7", "0.950 (CAM, gcn)")
    assert here == own
    assert str(own).endswith("below")


def test_missing_weights_and_names_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explaining, "WEIGHTS", tmp_path)
    with pytest.raises(FileNotFoundError, match="ground-truth logic7-gin --steps train"):
        explaining.model_spec("logic7-gin")
    assert main(["ground-truth", "logic7-gine", "--steps", "explain"]) == 1
    assert "there is no setup 'logic7-gine'" in capsys.readouterr().err
    assert main(["ground-truth", "--steps", "draw"]) == 1
    assert "there is no step 'draw'" in capsys.readouterr().err


def test_the_page_is_made_of_the_rows_that_are_here(tmp_path: Path) -> None:
    if not (DATA / "attribution" / "published.csv").is_file():
        pytest.skip("the published figures are not here")
    ignored = shutil.ignore_patterns("work")
    folder = tmp_path / "results" / ground_truth.FOLDER.name
    shutil.copytree(ground_truth.FOLDER, folder, ignore=ignored)
    tables = ground_truth.FOLDER.parent / "tables"
    shutil.copytree(tables, folder.parent / "tables")
    to = tmp_path / "docs" / "ground-truth.md"
    made = page.write_ground_truth(folder, to=to, data=DATA)
    assert made.read_text() == (ROOT / "docs" / "ground-truth.md").read_text()
