"""Importing the package is silent and light."""

from __future__ import annotations

import json
import subprocess
import sys


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
