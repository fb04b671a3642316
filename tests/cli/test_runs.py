"""``gstarx evaluate`` fills a store, ``gstarx runs`` says what is in it."""

from __future__ import annotations

import csv
import errno
import json
from pathlib import Path

import pytest

from gstarx.metrics import METRICS, SPARSITIES
from gstarx_bench import runs
from tests.cli.commands import found, gstarx, refused

SHORT = ("--limit", "2", "--workers", "1", "--no-references")


def test_a_split_is_evaluated_and_kept() -> None:
    content = found("evaluate", "nitro", "-e", "leave_one_out,random", *SHORT)
    assert content["store"] == "gstarx-runs"
    for run in content["runs"]:
        assert (run["graphs"], run["done"], run["explained"], run["failed"]) == (2, 2, 2, 0)
        assert [point["requested_sparsity"] for point in run["points"]] == list(SPARSITIES)
        assert set(METRICS) < run["points"][0].keys()
        best = max(point["harmonic_fidelity"] for point in run["points"])
        assert run["best"]["harmonic_fidelity"] == best
    table = runs.read("gstarx-runs", run=content["runs"][0]["run"])
    column = table.column("fidelity").to_pylist()
    mean = sum(each[3] for each in column) / 2
    assert content["runs"][0]["points"][3]["fidelity"] == pytest.approx(mean)
    again = found("evaluate", "nitro", "-e", "leave_one_out", *SHORT)
    assert (again["runs"][0]["found"], again["runs"][0]["done"]) == (2, 0)


def test_the_table_has_a_line_for_every_sparsity() -> None:
    done = gstarx("evaluate", "nitro", "-e", "random", *SHORT, "--store", "here")
    for level in SPARSITIES:
        assert f"\n{level:.2f} " in done.stdout
    assert "stored in here" in done.stdout


def test_a_store_is_listed_shown_resumed_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    gstarx("evaluate", "nitro", "-e", "leave_one_out,random", *SHORT, "--store", "here")
    listed = found("runs", "list", "here")
    assert [run["explainer"] for run in listed] == ["leave_one_out", "random"]
    assert [run["explained"] for run in listed] == [2, 2]
    name = listed[0]["run"]
    assert name[:12] in gstarx("runs", "list", "here").stdout
    (shown,) = found("runs", "show", "here", "--run", name[:8])
    assert shown["run"] == name
    assert len(shown["points"]) == len(SPARSITIES)
    assert shown["errors"] == []
    assert "leave_one_out on nitro, 2 graphs" in gstarx("runs", "show", "here").stdout
    reports = found("runs", "resume", "here", "--workers", "1")
    assert [(report["found"], report["done"]) for report in reports] == [(2, 0), (2, 0)]
    gstarx("runs", "export", "here", "all.json")
    assert len(json.loads(Path("all.json").read_text())) == 4
    gstarx("runs", "export", "here", "one.csv", "--run", name)
    with open("one.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(SPARSITIES)
    assert {row["run"] for row in rows} == {name}
    assert float(rows[0]["requested_sparsity"]) == SPARSITIES[0]
    assert all(0 <= float(row["harmonic_fidelity"]) <= 1 for row in rows)
    assert "wrote 4 rows" in gstarx("runs", "export", "here", "all.parquet").stdout
    Path("link.csv").symlink_to("linked.csv")
    gstarx("runs", "export", "here", "link.csv", "--run", name)
    assert Path("link.csv").is_symlink()
    assert Path("linked.csv").read_bytes() == Path("one.csv").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    said = refused("runs", "export", "here", "full.parquet")
    assert said == "error: [Errno 28] No space left on device: 'full.parquet'"


FAILING = """
from gstarx.models import pretrained


def make():
    network, _ = pretrained("nitro")

    def model(x, edge_index, batch):
        if len(x) > 3 and x.shape[1] == 8:
            raise ArithmeticError("too many atoms")
        return network(x, edge_index, batch)

    return model
"""


def test_graphs_that_fail_are_shown_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("failing_model.py").write_text(FAILING)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    done = gstarx(
        *("evaluate", "nitro", "-e", "leave_one_out", *SHORT, "--model", "failing_model:make"),
        code=1,
    )
    assert "2 graphs failed" in done.stderr
    (shown,) = found("runs", "show", "gstarx-runs")
    assert [row["graph"] for row in shown["errors"]] == [0, 15]
    assert "graph 15: " in gstarx("runs", "show", "gstarx-runs").stdout
    (report,) = found("runs", "resume", "gstarx-runs", "--failed", "--workers", "1", code=1)
    assert report["done"] == 2
    gstarx("runs", "export", "gstarx-runs", "rows.csv")
    with open("rows.csv", newline="") as file:
        assert all(row["error"] for row in csv.DictReader(file))


def test_a_damaged_request_does_not_hide_the_other_runs() -> None:
    gstarx("evaluate", "nitro", "-e", "leave_one_out,random", *SHORT, "--store", "here")
    bad, good = (request["name"] for request in runs.Store(Path("here")).requests())
    file = Path("here/rows.sqlite")
    damaged = file.read_bytes().replace(f'{{"name": "{bad}"'.encode(), b"?" * (11 + len(bad)))
    file.write_bytes(damaged)
    for command in (["list", "here"], ["show", "here"]):
        done = gstarx("runs", *command)
        assert good[:12] in done.stdout
        assert bad[:12] not in done.stdout
        assert f"what the run {bad} was to do is lost" in done.stderr
    for command in (["show", "here"], ["resume", "here"]):
        assert "run its specification again" in refused("runs", *command, "--run", bad[:8])
    assert len(found("runs", "show", "here", "--run", good[:8])) == 1
    done = gstarx("runs", "resume", "here", "--workers", "1", code=1)
    assert good[:12] in done.stdout
    assert f"error: not resumed, because their specifications are lost: {bad}" in done.stderr
    gstarx("evaluate", "nitro", "-e", "leave_one_out,random", *SHORT, "--store", "here")
    assert len(found("runs", "list", "here")) == 2


def test_damaged_rows_are_computed_again() -> None:
    gstarx("evaluate", "nitro", "-e", "leave_one_out,random", *SHORT, "--store", "here")
    file = Path("here/rows.sqlite")
    file.write_bytes(file.read_bytes().replace(b'"explainer":"random"', b'"explainer":"randon"'))
    assert sorted(run["explained"] for run in found("runs", "list", "here")) == [0, 2]
    assert len(found("runs", "show", "here")) == 2
    gstarx("runs", "resume", "here", "--workers", "1")
    assert [run["explained"] for run in found("runs", "list", "here")] == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["runs", "list", "nowhere"], "there is no store at nowhere", 1),
        (["runs", "export", "nowhere", "a.xlsx"], "must end in .csv or .json or .parquet", 2),
        (["evaluate", "nitro", "--store", "file"], "a store is a directory", 1),
        (["evaluate", "nitro", "--engine", "rya"], "'local', 'ray'", 2),
        (["evaluate", "nitro", "-o", "bugdet=3"], "did you mean 'budget'", 1),
    ],
)
def test_bad_input_is_said_in_a_line(arguments: list[str], message: str, code: int) -> None:
    Path("file").write_text("")
    assert message in refused(*arguments, code=code)


def test_an_unknown_run_is_refused() -> None:
    gstarx("evaluate", "nitro", "-e", "random", *SHORT)
    assert "there is no run 'zzz'" in refused("runs", "show", "gstarx-runs", "--run", "zzz")
