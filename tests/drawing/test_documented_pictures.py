"""The pictures on the page are those that its code makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.test_documentation import ROOT, blocks, run

PAGES = ("drawing.md",)
FOLDER = ROOT / "docs" / "pictures"
_SHOWN = re.compile(r"\(pictures/([\w-]+\.svg)\)")


def drawn(path: Path) -> list[str]:
    """What a picture is made of; colors and places may move with the last digit of a score."""
    return [part.tag for part in ElementTree.parse(path).iter()]


def test_every_picture_is_on_a_page() -> None:
    pages = [page.read_text(encoding="utf-8") for page in FOLDER.parent.glob("*.md")]
    on_pages = {name for page in pages for name in _SHOWN.findall(page)}
    assert on_pages == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("page", PAGES)
def test_pictures_are_up_to_date(page: str) -> None:
    text = (FOLDER.parent / page).read_text(encoding="utf-8")
    shown = set(_SHOWN.findall(text))
    assert shown
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(text):
        run(block, page, namespace)
    for name in shown:
        made = namespace["folder"] / name
        assert drawn(made) == drawn(FOLDER / name), f"{name}: copy it from {made}"
