"""The version is written in two places for two kinds of reader; they must agree."""

from __future__ import annotations

import re
from pathlib import Path

import gstarx

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [gstarx.__version__]
