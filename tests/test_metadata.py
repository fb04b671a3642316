"""What goes out with the package: its version, and notices of what it holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gstarx
from gstarx.models import pretrained_names

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [gstarx.__version__]


def pins(name: str) -> dict[str, str]:
    """What a file of requirements pins: for each package all that follows its name."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", "")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {package: rest for package, _, rest in (line.partition("==") for line in lines)}


def test_every_pin_but_torch_has_the_sums_of_its_files() -> None:
    pinned, locked = pins("constraints.txt"), pins("requirements.lock")
    assert locked.keys() == pinned.keys() - {"torch"}  # or say: make lock
    for package, rest in locked.items():
        version, *sums = rest.split()
        assert version == pinned[package]
        assert sums
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in sums)


def test_make_installs_what_has_a_sum_first() -> None:
    installs = re.findall(r"pip install (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "--require-hashes --no-deps -r requirements.lock" in installs[0]
    assert len(installs) == 2


def test_actions_are_pinned_by_commit() -> None:
    # a tag can be moved to other code, a commit cannot
    workflows = (ROOT / ".github" / "workflows").glob("*.yml")
    lines = "\n".join(path.read_text(encoding="utf-8") for path in workflows)
    used = re.findall(r"^[ -]*uses: *(.+)$", lines, re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_the_notice_names_every_network_that_ships() -> None:
    text = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = [
        name for line in re.findall(r"^\w+-\w+.*$", text, re.MULTILINE) for name in line.split(", ")
    ]
    assert sorted(named) == sorted(pretrained_names())
    assert "Socher" in text
    assert "Dong" in text


def test_license_and_notice_are_in_the_wheel_and_in_the_source(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(
        [*build, "-t", "wheel", "-t", "sdist"], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        in_wheel = file.namelist()
    with tarfile.open(source) as packed:
        in_source = packed.getnames()
    for name in ("LICENSE", "NOTICE"):
        assert f"gstarx-{gstarx.__version__}.dist-info/licenses/{name}" in in_wheel
        assert f"gstarx-{gstarx.__version__}/{name}" in in_source
    for name in (
        "cli/pages.html.jinja",
        "datasets/packaged_models.sha256",
        "models/trained/sst2-gcn.safetensors",
        "report/report.html.jinja",
    ):
        assert f"gstarx_bench/{name}" in in_wheel
    assert {name.partition("/")[0] for name in in_wheel} == {
        "gstarx",
        "gstarx_bench",
        "gstarx_explorer",
        f"gstarx-{gstarx.__version__}.dist-info",
    }
    assert f"gstarx-{gstarx.__version__}/reproduction/results/training.json" in in_source
