"""The whole path of a new user, for every task: file, training, evaluation, report, explorer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser import started_browser
from tests.cli.commands import environment, found, gstarx
from tests.cli.own_table import write_own_project, write_own_table
from tests.web.test_in_browser import Explorer

pytest.importorskip("rdkit", reason="needs the molecules extra")
pytest.importorskip("pyarrow", reason="needs the runs extra")

SKIPPED = "skipped 3 of 60 molecules"


@dataclass(frozen=True)
class Journey:
    """What a user has: labels to learn, or a model; and what is to be explained."""

    label: str | None
    network: tuple[str, ...]
    #: Options for the target, where there are several.
    target: tuple[str, ...] = ()
    #: What summaries and the explorer call what is explained.
    explained: tuple[str, ...] = ()


JOURNEYS = {
    "classes": Journey("toxic", ("--weights", "own.safetensors"), explained=("0", "1")),
    "numbers": Journey("logP", ("--weights", "own.safetensors"), explained=("logP",)),
    "targets": Journey(
        "oxygen,chlorine",
        ("--weights", "own.safetensors"),
        ("--target", "chlorine"),
        ("oxygen", "chlorine"),
    ),
    "factory": Journey(
        None, ("--model", "my_project:make_model", "--task", "binary", "--label", "toxic")
    ),
}


@pytest.fixture(autouse=True)
def _own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "my_project", raising=False)
    write_own_table(Path("molecules.csv"))
    write_own_project(Path("my_project.py"))


def trained(journey: Journey, *, epochs: int) -> None:
    if journey.label is not None:
        command = ("train", "molecules.csv", "--label", journey.label, "--epochs", epochs)
        assert SKIPPED in gstarx(*command, "--output", "own.safetensors").stderr


@pytest.mark.parametrize("name", JOURNEYS)
def test_from_a_table_to_a_report_and_a_summary(name: str) -> None:
    journey = JOURNEYS[name]
    trained(journey, epochs=1)
    common = ("--file", "molecules.csv", "--limit", "5", *journey.network, *journey.target)
    evaluation = found("evaluate", *common, "-e", "single_node", "--workers", "1")
    assert evaluation["skipped"] == 1
    (run,) = evaluation["runs"]
    assert run["explained"] == 4
    assert 0 <= run["best"]["harmonic_fidelity"] <= 1
    assert ("clipped" in run["best"]) == (name == "numbers")
    assert [one["explainer"] for one in evaluation["references"]] == ["random", "best_found"]
    gstarx("report", "--store", "gstarx-runs", "--output", "own.html")
    page = Path("own.html").read_text(encoding="utf-8")
    assert "molecule 3" in page
    assert ("Clipped" in page) == ("raises the predicted value" in page) == (name == "numbers")
    summary = found("summarize", *common, "-e", "leave_one_out")
    rows = summary["rows"]
    assert rows
    assert {row["explained"] for row in rows} <= set(journey.explained or ("class 0", "class 1"))
    gstarx("runs", "export", "gstarx-runs", "own.json")
    exported = json.loads(Path("own.json").read_text())
    assert {row["name"] for row in exported} == {f"molecule {at}" for at in range(4)}
    assert all(row["smiles"] for row in exported)


def process(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gstarx", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_after_the_first_row(arguments: list[str], store: str) -> None:
    started = process(*arguments)
    try:
        while not any(path.stat().st_size for path in Path(store).rglob("journal-*.jsonl")):
            assert started.poll() is None, started.stderr.read() if started.stderr else ""
            time.sleep(0.1)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """The address of an explorer that runs as a process of its own, and ends by Ctrl-C."""
    started = process("serve", *arguments, "--port", "0")
    assert started.stderr is not None
    try:
        lines = []
        for line in started.stderr:
            lines.append(line)
            if match := re.search(r"the explorer is at (http://\S+)", line):
                yield match[1].rstrip("/")
                break
        else:
            pytest.fail("".join(lines))
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)


def looks_around(explorer: Any, journey: Journey) -> None:
    """Type a SMILES, explain it, browse the own molecules, and look at the summary of the run."""
    page = explorer.open()
    page.locator("#smiles").fill("Nc1ccc(Cl)cc1O")
    page.locator("#explain").click()
    explorer.answered()
    head = page.locator(".head").inner_text()
    assert any(name in head for name in journey.explained or ("0", "1"))
    assert explorer.card("gstarx").locator(".node").count() == 9
    page.locator("#tab-browse").click()
    page.locator(".rows").get_by_text("molecule 3").first.wait_for()
    page.locator("#tab-summary").click()
    page.locator("#summary tbody tr").first.wait_for()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", JOURNEYS)
def test_the_whole_path(name: str) -> None:
    journey = JOURNEYS[name]
    trained(journey, epochs=5)
    common = ["--file", "molecules.csv", *journey.network, *journey.target]
    evaluate = ["evaluate", *common, "-e", "shapley", "-o", "budget=2000", "--no-references"]
    evaluate += ["--workers", "2", "--store", "own"]
    killed_after_the_first_row(evaluate, "own")
    (run,) = found(*evaluate)["runs"]
    assert run["graphs"] == run["explained"] == 57
    assert run["found"] > 0
    assert run["found"] + run["done"] == 57
    gstarx("report", "--store", "own", "--limit", "6", "--output", "own.html")
    assert SKIPPED in gstarx("summarize", *common, "-e", "leave_one_out").stderr
    serve = [one for one in common if one not in journey.target]
    with served(*serve, "--run", "own") as address, started_browser() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        context.set_default_timeout(120_000)
        explorer = Explorer(context, address)
        looks_around(explorer, journey)
        assert explorer.wrong == []
