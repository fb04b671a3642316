"""Importing the package is silent and light."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

#: Packages that only extras install.
_OPTIONAL = (
    "captum",
    "chemprop",
    "fastapi",
    "httpx",
    "lightning",
    "matplotlib",
    "pandas",
    "playwright",
    "pyarrow",
    "ray",
    "rdkit",
    "resvg_py",
    "shapiq",
    "spacy",
    "starlette",
    "transformers",
    "uvicorn",
)


def modules_after(program: str) -> set[str]:
    """Names of all modules loaded by a fresh interpreter that turns warnings into errors."""
    tail = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program + tail],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return set(json.loads(done.stdout))


def test_the_mathematics_loads_without_warnings_and_without_torch() -> None:
    loaded = modules_after("import gstarx, gstarx.values")
    assert "gstarx.values" in loaded
    assert not loaded & {"torch", "torch_geometric", "networkx"}


def test_the_top_level_alone_loads_nothing_heavy() -> None:
    loaded = modules_after("import gstarx")
    assert not loaded & {"numpy", "numba", "torch", "torch_geometric", "networkx"}


def test_top_level_names_are_found_on_demand() -> None:
    loaded = modules_after("import gstarx\ngstarx.graphs.CommunicationGraph\ngstarx.TableGame")
    assert {"gstarx.graphs", "gstarx.games"} <= loaded
    assert "gstarx.values" not in loaded


def test_the_command_explains_with_nothing_but_the_required_packages(tmp_path: Path) -> None:
    # stand-ins that cannot be imported, in front of the packages of all extras
    for name in _OPTIONAL:
        (tmp_path / f"{name}.py").write_text(
            f"raise ModuleNotFoundError({f'No module named {name!r}'!r}, name={name!r})\n"
        )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "gstarx", "explain", "motifs", "0", "-e", "leave_one_out", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["labels"]) == 25
