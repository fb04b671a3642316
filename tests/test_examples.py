"""Every example runs, quickly and without a warning, and shows what it says it shows."""

from __future__ import annotations

import random
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"
PAGE = EXAMPLES.parent / "docs" / "examples.md"
SHOWN = PAGE.parent / "pictures" / "two-values.svg"
WARNS = "import warnings; warnings.warn('careful')"


@pytest.fixture(autouse=True)
def same_random_state() -> Iterator[None]:
    """Examples seed what everybody shares."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    yield
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])  # noqa: NPY002


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_there_is_a_test_for_each() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested


def test_all_are_on_their_page() -> None:
    named = re.findall(r"^<!-- example: (\w+) -->$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize(
    ("code", "said"),
    [("print('found', 1)", None), ("raise SystemExit(3)", "ended with 3"), (WARNS, "careful")],
)
def test_the_page_shows_what_they_print(code: str, said: str | None, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the docs extra")
    hook = runpy.run_path(str(PAGE.parent / "hooks" / "examples.py"))
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")
    if said is not None:
        with pytest.raises(hook["PluginError"], match=said):
            hook["output_of"](script)
        return
    page = hook["shown"](script, hook["output_of"](script))
    assert page.startswith("```text\nfound 1\n```\n")
    assert "    print('found', 1)\n" in page


def test_graph_classification(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("graph_classification", capsys)
    correct, of = map(int, re.findall(r"(\d+) of (\d+) molecules", out)[0])
    assert correct > 0.9 * of
    scores = [float(number) for number in re.findall(r"^  \w+ +\d+ +([-+]\S+)", out, re.MULTILINE)]
    # the nitro group, atoms 6 to 8, before the others
    assert set(np.argsort(scores)[-3:].tolist()) == {6, 7, 8}
    worth, total = float(re.findall(r"of toxic is (\S+)", out)[0]), float(out.split()[-1])
    assert total == pytest.approx(worth, abs=2e-3)


def test_edge_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("edge_attributes", capsys)
    found = re.findall(r"double bond (\[.*?\]), highest edge (\[.*?\])", out)
    assert len(found) == 3
    assert all(double == best for double, best in found)


def test_node_classification(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("node_classification", capsys)
    assert "Member 16, who knows members [5, 6], is placed in group 3" in out
    best = [int(member) for member in re.findall(r"^  member +(\d+)", out, re.MULTILINE)]
    assert len(best) == 5
    # the member, the acquaintance who connects it to the group, and the one whose group is known
    assert set(best[:3]) == {16, 6, 4}


def test_heterogeneous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "drawn.svg"
    monkeypatch.setattr("sys.argv", ["heterogeneous.py", str(picture)])
    out = run("heterogeneous", capsys)
    shown = PAGE.parent / "pictures" / "heterogeneous.svg"
    drawn, known = (re.findall(r">([\w ]+)</text>", path.read_text()) for path in (picture, shown))
    assert drawn == known
    assert "theory, probability 1.000" in picture.read_text()
    best = re.findall(r"^  (paper|author|venue) .*(itself|planted reason)$", out, re.MULTILINE)
    assert best == [
        ("paper", "itself"),
        ("author", "planted reason"),
        ("paper", "itself"),
        ("venue", "planted reason"),
    ]


def test_regression(capsys: pytest.CaptureFixture[str]) -> None:
    out = run("regression", capsys)
    predicted, average = re.findall(r"predicted (\S+), (\S+) on average", out)[0]
    total = float(out.split()[-1])
    assert total == pytest.approx(float(predicted) - float(average), abs=0.02)
    scores = {"O": [], "C": [], "Cl": []}
    for atom, score in re.findall(r"^  (C|O|Cl) +(\S+) +bonded", out, re.MULTILINE):
        scores[atom].append(float(score))
    assert max(scores["Cl"]) < min(scores["O"] + scores["C"])


def test_molecules(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rdkit", reason="needs the drawing extra")
    monkeypatch.setattr(sys, "argv", ["molecules.py", str(tmp_path / "drawn.svg")])
    out = run("molecules", capsys)
    groups = re.findall(r"^  (\w+) +([-+]\S+)  atoms (\[.*\])", out, re.MULTILINE)
    assert [name for name, _, _ in groups] == ["nitro", "ring", "amide"] * 2
    assert {atoms for name, _, atoms in groups if name == "nitro"} == {"[7, 8, 9, 10]"}
    assert re.findall(r"from (\S+) sets", out) == ["332", "332"]
    # the picture that the README shows is this one; last digits are not compared
    drawn, shown = (path.read_text(encoding="utf-8") for path in (tmp_path / "drawn.svg", SHOWN))
    assert described(drawn) == described(shown) != []


def described(svg: str) -> list[str]:
    return re.findall(r"<title[^>]*>[^<]*<|Selected: [\w, ]+|H-fidelity \d\.\d{2}", svg)
