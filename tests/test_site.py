"""The documentation builds without a warning, and the built site fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pairs import for_each

ROOT = Path(__file__).parent.parent
FETCHED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of every built page, by its path."""
    pytest.importorskip("mkdocs", reason="needs the docs extra")
    pytest.importorskip("material", reason="needs the docs extra")
    site = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        page.relative_to(site).as_posix(): page.read_text(encoding="utf-8")
        for page in site.rglob("*.html")
    }


def test_nothing_is_fetched_from_elsewhere(pages: dict[str, str]) -> None:
    assert {
        name: FETCHED.findall(text) for name, text in pages.items() if FETCHED.search(text)
    } == {}


def test_formulas_are_drawn_by_the_browser(pages: dict[str, str]) -> None:
    assert (
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in pages["theory.html"]
    )
    assert not [name for name, text in pages.items() if "arithmatex" in text]


@for_each(
    "package",
    [
        "graphs",
        "games",
        "values",
        "gnn",
        "metrics",
        "explainers",
        "models",
        "datasets",
        "drawing",
    ],
)
def test_examples_in_docstrings_are_shown_as_code(pages: dict[str, str], package: str) -> None:
    page = pages[f"reference/{package}.html"]
    assert "highlight" in page
    assert "<blockquote>" not in page


def test_functions_that_are_methods_of_a_class_are_shown_as_its_own(pages: dict[str, str]) -> None:
    page = pages["reference/metrics.html"]
    for method in ("__call__", "many", "random", "curve", "best", "refine", "labels", "robust"):
        assert f'id="gstarx.metrics.Judge.{method}"' in page
