"""A store of runs, browsed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gstarx import runs
from gstarx.models import shipped_path
from gstarx.web import ServedRun, Settings, networks
from gstarx.web.browsing import Browsed, _titles
from gstarx.web.explaining import Explaining
from gstarx.web.networks import Networks
from gstarx.web.schemas import RowList, RunSummary
from gstarx.web.worker import Interrupter
from tests.web.served import Served, problem


def browsed(store: Path, dataset: str | None = None) -> Browsed:
    run = ServedRun(store, dataset)
    found = Networks(Settings(run=run)).browsed
    assert found is not None
    return found


def rows(found: Browsed, **chosen: Any) -> list[dict[str, Any]]:
    asked = {"sparsity": 0.7, "run": None, "filter": "all", "sort": "graph", "order": "asc"}
    listed: list[dict[str, Any]] = found.rows(**{**asked, "offset": 0, "limit": 50, **chosen})[
        "rows"
    ]
    return listed


def test_runs_about_the_same_graphs_are_shown_together(store: Path) -> None:
    summary = browsed(store).summary()
    RunSummary.model_validate(summary)
    assert summary["dataset"] == "nitro"
    assert [run["explainer"] for run in summary["runs"]] == ["gstarx", "random"]
    assert [run["graphs"] for run in summary["runs"]] == [3, 4]
    assert summary["accuracy"] == 1.0
    assert "motifs" not in summary["title"]
    assert "1 other set" in summary["remark"]
    stored = runs.read(store).to_pylist()
    means = [
        sum(row["fidelity"][4] for row in own) / len(own)
        for run in summary["runs"]
        if (own := [row for row in stored if row["run"] == run["id"]])
    ]
    drawn = [summary["curves"][run["id"]]["fidelity"][4] for run in summary["runs"]]
    assert drawn == pytest.approx(means)


def test_another_dataset_of_the_store_can_be_chosen(store: Path) -> None:
    assert browsed(store, "motifs").summary()["dataset"] == "motifs"
    found = Networks(Settings(run=ServedRun(store, "mutag")))
    assert found.browsed is None
    assert "motifs, nitro" in found.run_problem


def test_rows_have_the_metrics_of_every_run_beside_each_other(store: Path) -> None:
    found = browsed(store)
    first, second = found.runs
    listed = rows(found)
    assert [row["graph"] for row in listed] == [15, 44, 45, 60]
    assert listed[3]["metrics"][first] is None
    assert listed[3]["metrics"][second] is not None
    (stored,) = [row for row in runs.read(store, run=first).to_pylist() if row["graph"] == 44]
    assert listed[1]["metrics"][first]["fidelity"] == stored["fidelity"][4]
    assert listed[1]["label"] == listed[1]["prediction"]
    assert listed[1]["correct"] is True


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_rows_are_sorted_and_those_without_the_number_come_last(store: Path, order: str) -> None:
    found = browsed(store)
    first = next(iter(found.runs))
    listed = rows(found, sort="harmonic_fidelity", order=order, run=first)
    values = [row["metrics"][first]["harmonic_fidelity"] for row in listed[:3]]
    assert values == sorted(values, reverse=order == "desc")
    assert listed[3]["metrics"][first] is None
    sizes = [row["nodes"] for row in rows(found, sort="nodes", order=order)]
    assert sizes == sorted(sizes, reverse=order == "desc")


def test_rows_are_filtered_and_paged(store: Path) -> None:
    found = browsed(store)
    assert rows(found, filter="wrong") == []
    assert rows(found, filter="failed") == []
    assert [row["graph"] for row in rows(found, offset=1, limit=2)] == [44, 45]


def test_wrong_and_failed_graphs_are_found(store: Path) -> None:
    found = browsed(store)
    second = list(found.runs.values())[1]
    second.rows[44]["error"] = "ValueError: no\nTraceback ..."
    found._graphs[15]["correct"] = False
    assert [row["graph"] for row in rows(found, filter="wrong")] == [15]
    (failed,) = rows(found, filter="failed")
    assert failed["error"] == "Random: ValueError: no"
    assert failed["metrics"][second.id] is None
    assert found.summary()["runs"][1]["failed"] == 1


def test_a_run_that_removes_nodes_its_own_way_is_judged_its_way(tmp_path: Path) -> None:
    asked = {"dataset": "nitro", "model": str(shipped_path("nitro-gcn")), "split": "all"}
    asked |= {"explainer": "leave_one_out", "graphs": (44,), "removal": "zero_filling"}
    runs.run(asked, tmp_path / "store", workers=1, progress=False)
    (row,) = runs.read(tmp_path / "store").to_pylist()
    said: list[tuple[str, Any]] = []
    served = ServedRun(tmp_path / "store")
    job = {"model": "nitro-gcn", "input": {"run_graph": 44}, "best": False, "seed": 0}
    explaining = Explaining(Settings(run=served), Interrupter())
    explaining.answer({**job, "target": None}, lambda *what: said.append(what))
    (result,) = [content for kind, content in said if kind == "result"]
    assert result["error"] is None
    for at, nodes in enumerate(row["selected"]):
        assert result["selections"][len(nodes)] == nodes
        for name, column in result["metrics"].items():
            assert column[len(nodes)] == pytest.approx(row[name][at])


def spec(explainer: str, seed: int = 0, **options: Any) -> dict[str, Any]:
    return {"explainer": {"name": explainer, "options": options}, "seed": seed}


def test_runs_are_called_by_what_tells_them_apart() -> None:
    specs = {
        "a": spec("random"),
        "b": spec("gstarx", budget=50),
        "c": spec("gstarx", budget=90),
        "d": spec("shapley", seed=1, budget=50),
        "e": spec("shapley", seed=2, budget=50),
        "f" * 32: spec("banzhaf"),
        "g" * 32: spec("banzhaf"),
    }
    assert list(_titles(specs).values()) == [
        "Random",
        "GStarX (budget 50)",
        "GStarX (budget 90)",
        "Shapley value (budget 50, seed 1)",
        "Shapley value (budget 50, seed 2)",
        "Banzhaf value (seed 0, ffffff)",
        "Banzhaf value (seed 0, gggggg)",
    ]


def test_a_store_that_grows_is_read_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "_FRESH", 0.0)
    growing = tmp_path / "store"
    growing.mkdir()
    shutil.copy(store / "store.json", growing)
    found = Networks(Settings(run=ServedRun(growing)))
    assert found.browsed is None
    assert "no rows" in found.run_problem
    first, second = browsed(store).runs
    shutil.copytree(store / "runs", growing / "runs")
    shutil.copytree(store / "rows" / f"run={first}", growing / "rows" / f"run={first}")
    assert found.browsed is not None
    assert list(found.browsed.runs) == [first]
    before = found.browsed
    assert found.browsed is before, "what has not changed is not read again"
    shutil.copytree(store / "rows" / f"run={second}", growing / "rows" / f"run={second}")
    assert [row["graph"] for row in rows(found.browsed)] == [15, 44, 45, 60]
    shutil.rmtree(growing)
    assert found.browsed is not None, "what is known stays"


def test_what_a_store_has_most_of_may_change_while_it_is_browsed(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "_FRESH", 0.0)
    growing = tmp_path / "store"
    shutil.copytree(store, growing, ignore=lambda *_: [f"run={run}" for run in browsed(store).runs])
    found = Networks(Settings(run=ServedRun(growing)))
    assert found.browsed is not None
    assert found.browsed.dataset == "motifs"
    shutil.copytree(store / "rows", growing / "rows", dirs_exist_ok=True)
    assert found.browsed.dataset == "motifs"
    assert "1 other set" in (found.browsed.remark or "")


def test_over_http(server: Served) -> None:
    summary = server.client.get("/run").json()
    RunSummary.model_validate(summary)
    assert server.about()["run"] == summary
    assert summary["model"] in {one["name"] for one in server.about()["models"]}
    asked = {"sort": "fidelity", "order": "desc", "limit": 2, "run": summary["runs"][1]["id"]}
    found = server.client.get("/run/rows", params=asked).json()
    RowList.model_validate(found)
    assert found["total"] == 4
    assert len(found["rows"]) == 2


def test_a_stored_graph_opens_without_being_explained_anew(server: Served) -> None:
    run = server.client.get("/run").json()
    job = server.job(run["model"], [], input={"run_graph": 44}, best=True)
    assert job["state"] == "done"
    assert [one["explainer"] for one in job["results"]] == ["gstarx", "random"]
    row = server.client.get("/run/rows", params={"sparsity": 0.5}).json()["rows"][1]
    size = len(job["subject"]["nodes"]) // 2
    for result, own in zip(job["results"], row["metrics"].values(), strict=True):
        assert result["metrics"]["fidelity"][size] == pytest.approx(own["fidelity"])
    missing = server.job(run["model"], [], input={"run_graph": 60})["results"][0]
    assert "not come to" in missing["error"]
    problem(server.start(run["model"], [], input={"run_graph": 3}), 422, "bad_graph")


@pytest.mark.parametrize(
    "query",
    [
        "sparsity=2",
        "sparsity=nan",
        "filter=some",
        "sort=name",
        "order=up",
        "limit=0",
        "run=" + "a" * 101,
    ],
)
def test_strange_pages_of_rows(server: Served, query: str) -> None:
    problem(server.client.get(f"/run/rows?{query}"), 422, "invalid")


def test_a_run_that_there_is_not(server: Served) -> None:
    problem(server.client.get("/run/rows?run=abc"), 422, "bad_run")
