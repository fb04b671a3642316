"""``gstarx summarize``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gstarx.evaluation import Pipeline
from tests.cli.commands import found, gstarx, refused

FAST = ("-e", "leave_one_out")


def test_nitro_groups_come_first_for_their_class() -> None:
    printed = found("summarize", "nitro", "--split", "test", "--limit", 30, *FAST)
    assert printed["by"] == "functional_groups"
    assert (printed["explainer"], printed["graphs"]) == ("leave_one_out", 30)
    own = [row for row in printed["rows"] if row["explained"] == "aromatic nitro group"]
    assert own[0]["name"] == "nitro"
    assert own[0]["sign"] == "for"
    assert own[0]["low"] <= own[0]["mean"] <= own[0]["high"]
    assert own[0]["examples"][0].startswith("nitro ")


def test_the_table_says_what_a_score_is() -> None:
    text = gstarx("summarize", "nitro", "0-5", "--by", "rings", *FAST).stdout
    assert "c1ccccc1" in text
    words = " ".join(text.split())
    assert "Scores by leave_one_out on 6 graphs: sums over the atoms of a group" in words


def test_files_in_three_formats(tmp_path: Path) -> None:
    arguments = ("summarize", "nitro", "0-3", "--by", "node_types", *FAST)
    for suffix in ("csv", "json", "html"):
        gstarx(*arguments, "--output", tmp_path / f"new/s.{suffix}")
    rows = list(csv.DictReader((tmp_path / "new/s.csv").read_text().splitlines()))
    listed = json.loads((tmp_path / "new/s.json").read_text())["rows"]
    assert [row["name"] for row in rows] == [row["name"] for row in listed]
    assert float(rows[0]["mean"]) == listed[0]["mean"]
    page = (tmp_path / "new/s.html").read_text()
    assert "What drives nitro-gcn, by node types" in page
    assert "aromatic C" in page


def test_own_molecules_keep_their_names(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("name,smiles\nnitrobenzene,c1ccccc1[N+](=O)[O-]\nbad,C(\nphenol,Oc1ccccc1\n")
    done = gstarx("summarize", "--file", table, "--model", "nitro", *FAST, "--json")
    rows = json.loads(done.stdout)["rows"]
    assert {row["name"]: row["examples"] for row in rows} == {
        "nitro": ["nitrobenzene"],
        "hydroxyl": ["phenol"],
    }
    assert "skipped 1 of 3 molecules" in done.stderr
    gstarx("summarize", "--file", table, "--model", "nitro", *FAST, "--strict", code=3)


def test_one_bad_graph_does_not_cost_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Pipeline.explain

    def explain(self: Pipeline, method: object, data: object, position: int) -> object:
        if position == 1:
            raise RuntimeError("no")
        return real(self, method, data, position)  # type: ignore[arg-type]

    monkeypatch.setattr(Pipeline, "explain", explain)
    done = gstarx("summarize", "nitro", "0-3", *FAST, "--json", code=1)
    assert json.loads(done.stdout)["graphs"] == 3
    assert "error: nitro 1: RuntimeError: no" in done.stderr


def test_what_is_finished_is_summarized_after_an_interruption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Pipeline.explain

    def explain(self: Pipeline, method: object, data: object, position: int) -> object:
        if position == 2:
            raise KeyboardInterrupt
        return real(self, method, data, position)  # type: ignore[arg-type]

    monkeypatch.setattr(Pipeline, "explain", explain)
    done = gstarx("summarize", "nitro", "0-3", *FAST, "--json", code=130)
    assert json.loads(done.stdout)["graphs"] == 2
    assert "the summary is about the first 2 of 4 graphs" in done.stderr


def test_bad_input_is_refused(tmp_path: Path) -> None:
    assert "by='words' needs graphs with words" in refused(
        "summarize", "nitro", "0", "--by", "words", *FAST
    )
    assert "must end in .csv or .json or .html" in refused(
        "summarize", "nitro", "0", "--output", tmp_path / "a.txt", code=2
    )
    assert "subgraphx finds sets of nodes" in refused(
        "summarize", "nitro", "0-400", "-e", "subgraphx", "-o", "rollouts=2"
    )
    refused("summarize", "nitro", "0", "--by", "colors", code=2)
