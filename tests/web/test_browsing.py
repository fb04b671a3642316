"""Browsing a store of runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gstarx.models import shipped_path
from gstarx_bench import runs
from gstarx_explorer import ServedRun, Settings, library
from gstarx_explorer.browsing import StoreView, _titles
from gstarx_explorer.explaining import ExplanationWorker
from gstarx_explorer.library import Library
from tests.web.served import Served, problem


def view_of(store: Path, dataset: str | None = None) -> StoreView:
    return browsing(store, dataset).browsed()


def browsing(store: Path, dataset: str | None = None) -> Library:
    library = Library(Settings(run=ServedRun(store, dataset)))
    library.refresh()
    return library


def rows(view: StoreView, **chosen: Any) -> list[dict[str, Any]]:
    query = {"sparsity": 0.7, "run": None, "filter": "all", "sort": "graph", "order": "asc"}
    page = view.rows(**{**query, "offset": 0, "limit": 50, **chosen})
    listed: list[dict[str, Any]] = page["rows"]
    return listed


def test_runs_about_the_same_graphs_are_shown_together(store: Path) -> None:
    summary = view_of(store).summary()
    assert summary["dataset"] == "nitro"
    assert [run["explainer"] for run in summary["runs"]] == ["gstarx", "random"]
    assert [run["graphs"] for run in summary["runs"]] == [3, 4]
    assert summary["accuracy"] == 1.0
    assert "motifs" not in summary["title"]
    assert "1 other pair" in summary["remark"]
    stored = runs.read(store).to_pylist()
    means = [
        sum(row["fidelity"][4] for row in own) / len(own)
        for run in summary["runs"]
        if (own := [row for row in stored if row["run"] == run["id"]])
    ]
    drawn = [summary["curves"][run["id"]]["fidelity"][4] for run in summary["runs"]]
    assert drawn == pytest.approx(means)


def test_another_dataset_of_the_store_can_be_chosen(store: Path) -> None:
    assert view_of(store, "motifs").summary()["dataset"] == "motifs"
    loaded = browsing(store, "mutag")
    assert loaded.store_view is None
    assert "motifs, nitro" in loaded.run_problem


def test_rows_have_the_metrics_of_every_run(store: Path) -> None:
    view = view_of(store)
    first, second = view.runs
    listed = rows(view)
    assert [row["graph"] for row in listed] == [15, 44, 45, 60]
    assert listed[3]["metrics"][first] is None
    assert listed[3]["metrics"][second] is not None
    (stored,) = [row for row in runs.read(store, run=first).to_pylist() if row["graph"] == 44]
    assert listed[1]["metrics"][first]["fidelity"] == stored["fidelity"][4]
    assert listed[1]["label"] == listed[1]["prediction"]
    assert listed[1]["correct"] is True


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_rows_are_sorted_and_those_without_a_value_come_last(store: Path, order: str) -> None:
    view = view_of(store)
    first = next(iter(view.runs))
    listed = rows(view, sort="harmonic_fidelity", order=order, run=first)
    values = [row["metrics"][first]["harmonic_fidelity"] for row in listed[:3]]
    assert values == sorted(values, reverse=order == "desc")
    assert listed[3]["metrics"][first] is None
    sizes = [row["nodes"] for row in rows(view, sort="nodes", order=order)]
    assert sizes == sorted(sizes, reverse=order == "desc")


def test_rows_are_filtered_and_paged(store: Path) -> None:
    view = view_of(store)
    assert rows(view, filter="wrong") == []
    assert rows(view, filter="failed") == []
    assert [row["graph"] for row in rows(view, offset=1, limit=2)] == [44, 45]


def test_wrong_and_failed_graphs_are_found(store: Path) -> None:
    view = view_of(store)
    second = list(view.runs.values())[1]
    second.rows[44]["error"] = "ValueError: no\nTraceback ..."
    view._graphs[15]["correct"] = False
    assert [row["graph"] for row in rows(view, filter="wrong")] == [15]
    (failed,) = rows(view, filter="failed")
    assert failed["error"] == "Random: ValueError: no"
    assert failed["metrics"][second.id] is None
    assert view.summary()["runs"][1]["failed"] == 1


def test_a_run_is_evaluated_with_its_own_removal(tmp_path: Path) -> None:
    spec = {"dataset": "nitro", "model": str(shipped_path("nitro-gcn")), "split": "all"}
    spec |= {"explainer": "leave_one_out", "graphs": (44,), "removal": "zero_filling"}
    runs.run(spec, tmp_path / "store", workers=1, progress=False)
    (row,) = runs.read(tmp_path / "store").to_pylist()
    sent: list[tuple[str, Any]] = []
    served = ServedRun(tmp_path / "store")
    job = {"model": "nitro-gcn", "input": {"run_graph": 44}, "best": False, "seed": 0}
    worker = ExplanationWorker(Settings(run=served))
    worker.answer({**job, "target": None}, lambda *part: sent.append(part))
    (result,) = [content for kind, content in sent if kind == "result"]
    assert result["error"] is None
    for at, nodes in enumerate(row["selected"]):
        assert result["selections"][len(nodes)] == nodes
        for name, column in result["metrics"].items():
            assert column[len(nodes)] == pytest.approx(row[name][at])


def spec(explainer: str, seed: int = 0, **options: Any) -> dict[str, Any]:
    return {"explainer": {"name": explainer, "options": options}, "seed": seed}


def test_titles_have_the_details_that_distinguish_runs() -> None:
    specs = {
        "a": spec("random"),
        "b": spec("gstarx", budget=50),
        "c": spec("gstarx", budget=90),
        "d": spec("shapley", seed=1, budget=50),
        "e": spec("shapley", seed=2, budget=50),
        "f" * 32: spec("banzhaf"),
        "g" * 32: spec("banzhaf"),
        "h": spec("myerson", players="functional_groups"),
        "i": spec("myerson", players="edges"),
    }
    assert list(_titles(specs).values()) == [
        "Random",
        "GStarX (budget 50)",
        "GStarX (budget 90)",
        "Shapley value (budget 50, seed 1)",
        "Shapley value (budget 50, seed 2)",
        "Banzhaf value (seed 0, ffffff)",
        "Banzhaf value (seed 0, gggggg)",
        "Myerson value (functional groups)",
        "Myerson value (edges)",
    ]


def test_a_store_that_grows_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_REFRESH_SECONDS", 0.0)
    growing = tmp_path / "store"

    def add(dataset: str, graphs: tuple[int, ...], explainer: str = "random") -> None:
        spec = {"dataset": dataset, "model": str(shipped_path(f"{dataset}-gcn")), "split": "all"}
        spec |= {"explainer": explainer, "graphs": graphs}
        runs.run(spec, growing, workers=1, progress=False)

    loaded = browsing(growing)
    assert loaded.store_view is None
    assert "no store" in loaded.run_problem
    add("motifs", (0,))
    loaded.refresh()
    first = loaded.browsed()
    assert [row["graph"] for row in rows(first)] == [0]
    loaded.refresh()
    assert loaded.browsed() is first, "an unchanged store is not read again"
    add("motifs", (0, 1), "single_node")
    add("nitro", (15, 44, 45, 60))
    loaded.refresh()
    assert [row["graph"] for row in rows(loaded.browsed())] == [0, 1]
    # others have more rows now
    assert loaded.browsed().dataset == "motifs"
    assert "1 other pair" in (loaded.browsed().remark or "")
    shutil.rmtree(growing)
    loaded.refresh()
    assert loaded.store_view is not None, "the last state is kept"


def test_over_http(server: Served) -> None:
    summary = server.client.get("/run").json()
    assert server.about()["run"] == summary
    assert summary["model"] in {one["name"] for one in server.about()["models"]}
    query = {"sort": "fidelity", "order": "desc", "limit": 2, "run": summary["runs"][1]["id"]}
    page = server.client.get("/run/rows", params=query).json()
    assert page["total"] == 4
    assert len(page["rows"]) == 2


def test_a_stored_graph_is_not_explained_again(server: Served) -> None:
    run = server.client.get("/run").json()
    job = server.job(run["model"], [], input={"run_graph": 44}, best=True)
    assert job["state"] == "done"
    assert [one["explainer"] for one in job["results"]] == ["gstarx", "random"]
    row = server.client.get("/run/rows", params={"sparsity": 0.5}).json()["rows"][1]
    size = len(job["subject"]["nodes"]) // 2
    for result, own in zip(job["results"], row["metrics"].values(), strict=True):
        assert result["metrics"]["fidelity"][size] == pytest.approx(own["fidelity"])
    missing = server.job(run["model"], [], input={"run_graph": 60})["results"][0]
    assert "not reached" in missing["error"]
    problem(server.start(run["model"], [], input={"run_graph": 3}), 422, "bad_graph")


def test_invalid_queries_of_rows(server: Served) -> None:
    queries = ("sparsity=2", "sparsity=nan", "filter=some", "sort=name", "order=up", "limit=0")
    for query in (*queries, "run=" + "a" * 101):
        problem(server.client.get(f"/run/rows?{query}"), 422, "invalid")


def test_an_unknown_run(server: Served) -> None:
    problem(server.client.get("/run/rows?run=abc"), 422, "bad_run")
