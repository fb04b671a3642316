"""The demo ends in a page for a browser, whose path is the last thing it prints."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from gstarx.cli import main


def test_the_demo_explains_two_networks_and_prints_the_path_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--limit", "2"]) == 0
    page = tmp_path / "demo" / "report.html"
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == str(page)
    for name in (
        "GStarX",
        "GStarX, Banzhaf value",
        "SubgraphX",
        "GraphSVX",
        "random selection",
        "best selection found",
    ):
        assert len(re.findall(rf"^{name} ", printed, re.MULTILINE)) == 2
    text = page.read_text(encoding="utf-8")
    inside = [html.unescape(found) for found in re.findall(r'srcdoc="([^"]*)"', text)]
    assert len(inside) == 2
    assert "aromatic nitro group" in inside[0]
    assert "five-cycle" in inside[1]
    for part in inside:
        assert part.lower().startswith("<!doctype html>")
        assert part.count("<svg") >= 2 * 3


def test_a_page_that_cannot_be_written_is_reported_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "--output", str(tmp_path / "file" / "report.html")]) == 1
    done = capsys.readouterr()
    assert done.out == ""
    assert "error: cannot write" in done.err
    assert "explaining" not in done.err
