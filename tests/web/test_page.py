"""The files of the page: all are packaged, nothing is loaded from other hosts or inline."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = Path(str(files("gstarx_explorer") / "page"))
SCRIPTS = sorted(PAGE.glob("*.js"))
_IMPORT = re.compile(r"""^\s*(?:import|\}\s*from)\b.*?['"]([^'"]+)['"]""", re.MULTILINE)
_NAMESPACE = "http://www.w3.org/2000/svg"


class Parts(HTMLParser):
    """Every element of a page with its attributes, and the text inside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style") and data.strip():
            self.inline.append(data)


@pytest.fixture(scope="module")
def parts() -> Parts:
    parsed = Parts()
    parsed.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    return parsed


def test_every_file_that_the_page_names_is_there(parts: Parts) -> None:
    named = {
        value
        for _, attributes in parts.elements
        for name, value in attributes.items()
        if name in ("src", "href") and value and not value.startswith("#")
    }
    assert named
    assert all(value.startswith("/page/") for value in named)
    assert [value for value in named if not (PAGE / value.removeprefix("/page/")).is_file()] == []


def test_every_module_is_reached_from_the_page(parts: Parts) -> None:
    waiting = [
        str(attributes["src"]).removeprefix("/page/")
        for tag, attributes in parts.elements
        if tag == "script"
    ]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            text = (PAGE / name).read_text(encoding="utf-8")
            waiting += [module.removeprefix("./") for module in _IMPORT.findall(text)]
    assert reached == {path.name for path in SCRIPTS}


def test_nothing_is_inline(parts: Parts) -> None:
    assert parts.inline == []
    for tag, attributes in parts.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag


def test_every_id_is_there_once(parts: Parts) -> None:
    ids = [attributes["id"] for _, attributes in parts.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for path in SCRIPTS:
        for name in re.findall(r"byId\('([\w-]+)'\)", path.read_text(encoding="utf-8")):
            assert name in ids, f"{path.name} looks for #{name}"


def test_every_field_has_a_label(parts: Parts) -> None:
    labeled = {attributes.get("for") for tag, attributes in parts.elements if tag == "label"}
    for tag, attributes in parts.elements:
        if tag in ("input", "select", "textarea") and attributes.get("type") != "checkbox":
            assert attributes["id"] in labeled


def test_nothing_is_loaded_from_other_hosts() -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace(_NAMESPACE, "")
        assert re.findall(r"https?:|[\"'(]//|@import", text) == [], path.name


def test_scripts_never_parse_text_as_markup() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        assert re.findall(ways, text) == [], path.name
        assert "setAttribute('style'" not in text, path.name


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which checks the syntax")
def test_scripts_are_well_formed() -> None:
    for path in SCRIPTS:
        # from standard input, because node takes a file of this name for an older kind of script
        done = subprocess.run(
            ["node", "--input-type=module", "--check"],
            input=path.read_bytes(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, f"{path.name}: {done.stderr.decode()}"
