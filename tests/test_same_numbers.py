"""One seed rule: Python, the command, runs, reports and the explorer find the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gstarx import Judge, Shapley, datasets, explain_many
from gstarx.explainers import create, graph_generator
from gstarx.models import pretrained, shipped_path
from gstarx.registry import ModelSource
from gstarx_bench import runs
from gstarx_bench.report import ReportOptions, build_report
from gstarx_bench.runs import RunSpec
from gstarx_explorer.explaining import ExplanationWorker
from gstarx_explorer.settings import ServedModel, Settings
from tests.cli.commands import found

# of one molecule all parts are alike to the network, which the uniform baseline leaves
pytestmark = pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")

POSITIONS = (3, 11)
SEED = 5
#: Sampled, so that random numbers matter.
OPTIONS: dict[str, Any] = {"estimator": "sampled", "budget": 60}


@pytest.fixture(scope="module")
def expected() -> dict[int, np.ndarray]:
    model, _ = pretrained("nitro")
    data = datasets.load("nitro")
    explainer = create("shapley", dataset="nitro", **OPTIONS)
    scores = {}
    for position in POSITIONS:
        generator = graph_generator(SEED, position)
        explanation = explainer.explain(model, data[position], seed=generator)
        assert not explanation.exact
        scores[position] = explanation.scores.numpy()
    return scores


def assert_same(scores: Any, reference: np.ndarray) -> None:
    spread = reference.std()
    np.testing.assert_allclose(np.asarray(scores), reference, rtol=0, atol=1e-6 * spread)


def test_explain_many(expected: dict[int, np.ndarray]) -> None:
    model, _ = pretrained("nitro")
    data = datasets.load("nitro")
    graphs = [data[position] for position in range(max(POSITIONS) + 1)]
    value = Shapley(estimator=OPTIONS["estimator"])
    explained = explain_many(
        model, graphs, value=value, budget=OPTIONS["budget"], seed=SEED, progress=False
    )
    for position in POSITIONS:
        assert_same(explained[position].scores, expected[position])


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_the_command(command: str, expected: dict[int, np.ndarray]) -> None:
    options = [part for name, value in OPTIONS.items() for part in ("-o", f"{name}={value}")]
    asked = [command, "nitro", *map(str, POSITIONS), "-e", "shapley", *options]
    content = found(*asked, "--seed", str(SEED))
    records = content if command == "explain" else content["explainers"][0]["graphs"]
    assert [record["position"] for record in records] == list(POSITIONS)
    for record in records:
        assert_same(record["explanation"]["scores"], expected[record["position"]])


@pytest.mark.parametrize("workers", [1, 2])
def test_runs(workers: int, expected: dict[int, np.ndarray], tmp_path: Path) -> None:
    spec = RunSpec(
        dataset="nitro",
        model=str(shipped_path("nitro-gcn")),
        explainer={"name": "shapley", "options": OPTIONS},
        split="all",
        graphs=POSITIONS,
        seed=SEED,
    )
    runs.run(spec, tmp_path, workers=workers, progress=False)
    rows = {row["graph"]: row for row in runs.read(tmp_path).to_pylist()}
    assert sorted(rows) == sorted(POSITIONS)
    for position, row in rows.items():
        assert row["error"] is None
        assert_same(row["scores"], expected[position])


def test_reports(expected: dict[int, np.ndarray]) -> None:
    model, _ = pretrained("nitro")
    data = datasets.load("nitro")
    report = build_report(
        Judge(model),
        [data[position] for position in POSITIONS],
        {"shapley": create("shapley", dataset="nitro", **OPTIONS)},
        title="Same numbers",
        positions=POSITIONS,
        seed=SEED,
        options=ReportOptions(optimum=False, random_draws=0),
        progress=False,
    )
    for position, explained in zip(POSITIONS, report.graphs, strict=True):
        assert_same(explained.results["shapley"].scores, expected[position])


def test_the_explorer(expected: dict[int, np.ndarray]) -> None:
    settings = Settings(models=(ServedModel("nitro", ModelSource("nitro")),))
    explorer = ExplanationWorker(settings)
    for position in POSITIONS:
        told: list[tuple[str, Any]] = []
        job = {
            "model": "nitro",
            "input": {"graph": position},
            "explainers": [{"name": "shapley", "options": OPTIONS}],
            "best": False,
            "seed": SEED,
            "target": None,
        }
        explorer.answer(job, lambda kind, content: told.append((kind, content)))  # noqa: B023
        (result,) = [content for kind, content in told if kind == "result"]
        assert result["error"] is None, json.dumps(result)
        assert_same(result["scores"], expected[position])
