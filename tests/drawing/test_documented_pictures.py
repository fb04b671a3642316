"""The pictures on the page are those that its code makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.test_documentation import ROOT, blocks, run

PAGE = ROOT / "docs" / "drawing.md"
FOLDER = ROOT / "docs" / "pictures"


def drawn(path: Path) -> list[str]:
    """What a picture is made of; colours and places may move with the last digit of a score."""
    return [part.tag for part in ElementTree.parse(path).iter()]


def test_pictures_are_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = set(re.findall(r"\(pictures/(\w+\.svg)\)", text))
    assert shown == {path.name for path in FOLDER.iterdir()}
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(text):
        run(block, "drawing.md", namespace)
    for name in shown:
        made = namespace["folder"] / name
        assert drawn(made) == drawn(FOLDER / name), f"{name}: copy it from {made}"
