"""``gstarx compare`` and ``gstarx report``: several explainers on the same graphs."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import stdev

import pytest

from gstarx import explain
from gstarx.datasets import load
from gstarx.metrics import evaluate
from gstarx.models import pretrained
from gstarx.values import PrecisionWarning
from tests.cli.commands import found, gstarx, refused, scores
from tests.cli.test_explain import check_schema


def test_explainers_are_compared_by_the_means_of_their_graphs() -> None:
    content = found("compare", "nitro", "0", "2", "-e", "gstarx,leave_one_out", "-e", "random")
    assert [row["explainer"] for row in content["explainers"]] == [
        "gstarx",
        "leave_one_out",
        "random",
    ]
    assert content["graphs"] == ["nitro 0", "nitro 2"]
    for row in content["explainers"]:
        for record in row["graphs"]:
            check_schema(record)
        each = [record["metrics"]["harmonic_fidelity"] for record in row["graphs"]]
        assert row["metrics"]["harmonic_fidelity"] == pytest.approx(sum(each) / 2)
    alone = found("explain", "nitro", "2")
    assert scores(content["explainers"][0]["graphs"][1]) == scores(alone)


def test_means_over_several_graphs_come_with_intervals() -> None:
    command = ("compare", "nitro", "0", "2", "5", "-e", "leave_one_out,random")
    for row in found(*command)["explainers"]:
        for name in ("fidelity", "inverse_fidelity", "harmonic_fidelity"):
            each = [record["metrics"][name] for record in row["graphs"]]
            assert row["std_errors"][name] == pytest.approx(stdev(each) / 3**0.5)
    (line,) = (text for text in gstarx(*command).stdout.splitlines() if text.startswith("random"))
    errors = row["std_errors"]
    shown = [f"{row['metrics'][name]:.3f} ± {2 * errors[name]:.3f}" for name in errors]
    assert all(text in line for text in shown)
    (alone,) = found("compare", "nitro", "0", "-e", "random")["explainers"]
    assert alone["std_errors"] is None


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_one_warning_about_the_precision_of_many(command: str) -> None:
    graphs = ("nitro", "2", "5")
    options = ("-e", "gstarx", "-o", "budget=50", "-o", "value=myerson")
    with pytest.warns(PrecisionWarning) as caught:
        gstarx(command, *graphs, *options)
    (warning,) = caught
    assert "of 2 explanations have imprecise scores, the worst being nitro " in str(warning.message)
    with pytest.warns(PrecisionWarning, match="^myerson: "):
        gstarx(command, *graphs[:2], *options)


def test_the_table_has_a_line_for_each() -> None:
    made = ("--output", "scores.json", "--draw", "both.svg")
    done = gstarx("compare", "nitro", "0", "-e", "gstarx,random", *made)
    lines = done.stdout.splitlines()
    assert any(line.startswith("gstarx ") for line in lines)
    assert any(line.startswith("random ") for line in lines)
    assert len(json.loads(Path("scores.json").read_text())["explainers"]) == 2
    drawn = Path("both.svg").read_text()
    assert "gstarx" in drawn
    assert "random" in drawn


def test_brackets_of_a_molecule_are_no_markup() -> None:
    smiles = "c1cc[nH]c1"
    assert gstarx("explain", "--smiles", smiles, "-e", "random").stdout.startswith(smiles)
    shown = gstarx("compare", "--smiles", smiles, "-e", "random").stdout
    assert f"nitro-gcn, {smiles}, sparsity 0.7" in shown


def test_options_are_for_one_explainer_or_for_all() -> None:
    content = found(
        "compare",
        "nitro",
        "0",
        "-e",
        "gstarx,myerson",
        "-o",
        "budget=70",
        "-o",
        "myerson.budget=60",
    )
    assert [row["graphs"][0]["options"] for row in content["explainers"]] == [
        {"budget": 70},
        {"budget": 60},
    ]


def test_no_explainer_at_all() -> None:
    for command, nothing in (("compare", ","), ("evaluate", ""), ("report", " , ")):
        said = refused(command, "nitro", "--split", "test", "-e", nothing, code=2)
        assert "name at least one explainer" in said
        assert "gstarx" in said


def test_a_report_is_one_page() -> None:
    content = found("report", "nitro", "0", "2", "-e", "gstarx,random", "--output", "page.html")
    page = Path("page.html").read_text()
    assert content["report"] == "page.html"
    assert content["graphs"] == 2
    kinds = [row["kind"] for row in content["rows"]]
    assert kinds.count("explainer") == 2
    assert {"random", "optimum"} <= set(kinds)
    assert "nitro 2" in page
    assert "aromatic nitro group" in page

    assert "must end in .html" in refused("report", "nitro", "0", "--output", "page.pdf", code=2)
    Path("file").write_text("")
    assert "cannot write file/page.html" in refused(
        "report", "nitro", "0", "--output", "file/page.html"
    )


def test_runs_and_reports_take_other_players() -> None:
    short = ("--workers", "1", "--store", "here", "--no-references")
    edges = ("-e", "gstarx", "--players", "edges", "-o", "budget=60")
    gstarx("evaluate", "nitro", *edges, "--limit", "2", *short)
    (shown,) = found("runs", "show", "here")
    gstarx("runs", "export", "here", "rows.json", "--run", shown["run"])
    data, (model, _) = load("nitro")[0], pretrained("nitro")
    for row in json.loads(Path("rows.json").read_text()):
        assert row["error"] is None
        assert row["scores"] is None
        assert all(0 <= node < row["num_nodes"] for nodes in row["selected"] for node in nodes)
    content = found(
        "report", "nitro", "0", "-e", "gstarx", "--players", "rings", "--sparsity", "0.7"
    )
    explained = explain(model, data, players="rings", seed=0)
    judged = evaluate(model, data, explained.select(sparsity=0.7), players=explained.player_spec)
    rows = {row["name"]: row["metrics"] for row in content["rows"]}
    assert rows["gstarx"]["fidelity"] == pytest.approx(judged.fidelity, abs=1e-6)


def test_a_report_shows_what_runs_have_found() -> None:
    short = ("--workers", "1", "--store", "here")
    gstarx("evaluate", "nitro", "-e", "leave_one_out,single_node", "--limit", "3", *short)
    gstarx("evaluate", "nitro", "-e", "subgraphx", "-o", "rollouts=2", "--limit", "2", *short)
    content = found("report", "--store", "here", "--output", "page.html", "--sparsity", "0.5")
    assert content["graphs"] == 2
    rows = {row["name"]: row["metrics"] for row in content["rows"]}
    for shown in found("runs", "show", "here"):
        gstarx("runs", "export", "here", "rows.json", "--run", shown["run"])
        own = json.loads(Path("rows.json").read_text())[:2]
        mean = sum(row["fidelity"][0] for row in own) / 2  # the first sparsity is 0.5
        if shown["explainer"] in ("random", "best_found"):  # of which the report has rows anyway
            assert shown["explainer"] not in rows
            continue
        assert rows[shown["explainer"]]["fidelity"] == pytest.approx(mean)
    assert "leave out the options for them" in refused(
        "report", "nitro", "0", "--store", "here", code=2
    )
    gstarx("evaluate", "motifs", "-e", "single_node", "--limit", "1", "--no-references", *short)
    assert "differ in their dataset: motifs, nitro" in refused("report", "--store", "here")
