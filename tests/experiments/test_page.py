"""The page of results is what the rows say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gstarx.experiments.page import write_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_made_of_the_rows_that_are_here(tmp_path: Path) -> None:
    if not (ROOT / "results" / "rows").is_dir():
        pytest.skip("the rows are not part of this copy")
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("work"))
    made = write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    assert made.read_text() == (ROOT / "docs" / "results.md").read_text()
    figures = {path.name for path in (tmp_path / "docs" / "figures").iterdir()}
    assert figures <= {path.name for path in (ROOT / "docs" / "figures").iterdir()}


def test_a_page_of_nothing_says_so(tmp_path: Path) -> None:
    made = write_page(tmp_path / "results", tmp_path / "docs" / "results.md")
    text = made.read_text()
    assert "0 explanations" in text
    assert "$" not in text
    assert "Not measured yet." in text
