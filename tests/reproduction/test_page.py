"""The page of results is what the rows say."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from reproduction import RESULTS
from reproduction.__main__ import main
from reproduction.page import write_page
from reproduction.paper import TABLE_1

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_made_of_the_rows_that_are_here(tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("work"))
    made = write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    assert made.read_text() == (ROOT / "docs" / "results.md").read_text()
    for table in (RESULTS / "tables").iterdir():
        assert (tmp_path / "results" / "tables" / table.name).read_text() == table.read_text()
    figures = {path.name for path in (tmp_path / "docs" / "figures").iterdir()}
    assert figures <= {path.name for path in (ROOT / "docs" / "figures").iterdir()}


def test_what_needs_no_data_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GSTARX_CHECKPOINTS", raising=False)
    folders = ["--results", str(tmp_path), "--pictures", str(tmp_path / "figures")]
    assert main(["measure", "molecule", "zero_weight", "small_weights", *folders]) == 0
    for name in ("claim_zero_weight.csv", "figure_1a.csv"):
        assert (tmp_path / "tables" / name).read_text() == (RESULTS / "tables" / name).read_text()
    assert "molecule: the published weights of mutag-gcn are missing" in capsys.readouterr().err
    assert not (tmp_path / "tables" / "figure_3.csv").exists()


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    made = write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    text = made.read_text()
    assert "0 explanations" in text
    assert "$" not in text
    assert "Not measured yet." in text


def test_the_readme_shows_rows_of_table_1() -> None:
    table = RESULTS / "tables" / "table_1.csv"
    header, *rows = csv.reader(table.read_text(encoding="utf-8").splitlines())
    known = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    columns = [*TABLE_1, "average"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    _, shown = readme.split("<!-- results:", 1)
    lines = [line for line in shown.split("<!-- end of results -->")[0].splitlines() if "|" in line]
    checked = 0
    for line in lines[2:]:
        name, *cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        names = {
            "GStarX, default": "Myerson, singletons",
            "GStarX, as published": "as published",
            "HN, training mean as baseline": "HN",
        }
        method = names.get(name, name)
        for column, cell in zip(columns, cells, strict=True):
            own = known[method][column].replace("**", "")
            if own.count(".") == 1 and "(" not in own:
                own = f"{float(own):.4f}"
            assert cell == own, (name, column)
            checked += 1
    assert checked == 6 * len(columns)
