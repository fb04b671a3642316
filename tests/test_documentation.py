"""The code in the README and on the documentation pages runs, and prints what it says."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
FENCED = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>python|pycon)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    line: int
    code: str


def blocks(text: str) -> Iterator[Block]:
    """The Python blocks of a page; ``line`` is where the code of a block begins."""
    for match in FENCED.finditer(text):
        indent = match["indent"]
        code = re.sub(rf"^{indent}", "", match["code"], flags=re.MULTILINE)
        yield Block(text.count("\n", 0, match.start("code")) + 1, code)


def run(block: Block, page: str, namespace: dict[str, Any]) -> None:
    """Run one block in the namespace of its page: as a session when it has prompts, else as is."""
    if not re.search(r"^\s*>>> ", block.code, re.MULTILINE):
        # blank lines in front make tracebacks point at the line of the page
        exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), namespace)
        return
    flags = doctest.ELLIPSIS
    session = doctest.DocTestParser().get_doctest(block.code, namespace, page, page, block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(session, out=report.append, clear_globs=False)
    namespace.update(session.globs)
    assert not runner.failures, "".join(report)


def pages() -> list[str]:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page.relative_to(ROOT).as_posix()
        for page in documents
        if any(blocks(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize("page", pages())
def test_code_on_the_page_runs(page: str) -> None:
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        run(block, page, namespace)


def test_the_readme_has_code_to_run() -> None:
    assert "README.md" in pages()


PAGE = """
Text with `python` in it.

```python
x = 2
```

```bash
exit 1
```

- a list

    ```pycon
    >>> x + 1
    3
    ```
"""


def test_blocks_of_a_page_share_their_names() -> None:
    first, second = blocks(PAGE)
    assert (first.line, second.line) == (5, 15)
    namespace: dict[str, Any] = {}
    run(first, "page", namespace)
    run(second, "page", namespace)


@pytest.mark.parametrize("code", [">>> 1 + 1\n3\n", "assert 1 + 1 == 3\n", ">>> undefined\n"])
def test_a_page_that_is_wrong_fails(code: str) -> None:
    with pytest.raises(AssertionError):
        run(Block(1, code), "page", {})


def test_files_of_the_repository_that_pages_link_are_there() -> None:
    link = re.compile(r"https://github\.com/gstarx/gstarx/blob/main/([^)#\s]+)")
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    linked = {name for page in documents for name in link.findall(page.read_text("utf-8"))}
    assert len(linked) > 20
    assert not [name for name in linked if not (ROOT / name).exists()]


def test_the_page_on_explaining_lists_every_parameter_with_its_default() -> None:
    import inspect

    from gstarx import explain

    page = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    section = page.partition("## How options are organized")[2].partition("\n## ")[0]
    listed: dict[str, str] = {}
    for row in section.splitlines():
        cells = row.split(" | ")
        names = re.findall(r"`(\w+)`", cells[0]) if row.startswith("| `") else []
        defaults = re.findall(r"`([^`]+)`", cells[1]) if names else []
        assert len(defaults) in (0, len(names)), f"one default for each parameter: {row}"
        listed |= dict(zip(names, defaults or [""] * len(names), strict=True))
    expected = {
        name: "" if parameter.default is inspect.Parameter.empty else str(parameter.default)
        for name, parameter in inspect.signature(explain).parameters.items()
    }
    assert {name: default.strip('"') for name, default in listed.items()} == expected


def test_every_option_is_documented_in_the_class_that_owns_it() -> None:
    from dataclasses import fields

    from gstarx import GameOptions, Passes, Task, players, values

    owners: list[type] = [GameOptions, Passes, Task]
    for package, base in ((players, object), (values, values.Value)):
        named = [getattr(package, name) for name in package.__all__]
        owners += [kind for kind in named if isinstance(kind, type) and issubclass(kind, base)]
    missing = [
        f"{owner.__name__}.{field.name}"
        for owner in owners
        if hasattr(owner, "__dataclass_fields__")
        for field in fields(owner)
        if not _described(field.name, owner)
    ]
    assert not missing


def _described(name: str, owner: type) -> bool:
    """Whether a docstring of the class, or of one that it extends, has an entry of this name."""
    entry = re.compile(rf"^ *(\w+, )*{name}(, \w+)*$", re.MULTILINE)
    return any(entry.search(kind.__doc__ or "") for kind in owner.__mro__)
