"""Every option has a type: mypy knows all of them, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gstarx.gnn.options import FAMILIES

ROOT = Path(__file__).parent.parent
START = """
import torch
from torch_geometric.data import Data

import gstarx
from gstarx import explain, players

data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))


def model(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return x


judge = gstarx.Judge(model, removal="split", players=players.Nodes())
"""
#: Examples, and the option of each that is misspelled to be found.
EXAMPLES = {
    'explain(model, data, task="node", index=1, budget=100, seed=0)': "index",
    'gstarx.explain_many(model, [data], baseline="uniform", workers=2)': "workers",
    "gstarx.explain_nodes(model, data, [0, 1], payoff=gstarx.Contrast(a=1, b=0))": "payoff",
    'gstarx.GStarX(value="hn", baseline=[0.5, 0.5], progress=False)': "baseline",
    "gstarx.GStarX.as_published(baseline=0.5, value=gstarx.Subgraphs(), seed=0)": "seed",
    'gstarx.GNNGame(model, data, target="all", passes=gstarx.Passes())': "passes",
    "explain(model, data, value=gstarx.HN(two_sided=True))": "two_sided",
    'explain(model, data, value=gstarx.Myerson(two_sided=True, estimator="exact"))': "two_sided",
    "explain(model, data, value=gstarx.Banzhaf(presence=0.3))": "presence",
    'explain(model, data, value=gstarx.Shapley(estimator="sampled"))': "estimator",
    'explain(model, data, value=gstarx.Position(estimator="exact"))': "estimator",
    "explain(model, data, value=gstarx.Subgraphs(max_sample_size=5, num_samples=9))": "num_samples",
    'explain(model, data, players=players.Groups("brics", rest="present"))': "rest",
    'explain(model, data, players=players.Nodes(types=("a",), relations=("b",)))': "types",
    "explain(model, data, players=players.Edges(directed=True))": "directed",
    'explain(model, data, players=players.Features(reference="mean", draws=2))': "draws",
    'explain(model, data, task=gstarx.Task(task_level="node", return_type="probs"))': "task_level",
    'explain(model, data, game=gstarx.GameOptions(removal="split", num_hops=2))': "removal",
    "explain(model, data, passes=gstarx.Passes(batch_nodes=100, share=False))": "share",
    "judge(data, [0, 1], target=1)": "target",
    "judge.best(data, 2, starts=3)": "starts",
    "judge.curve(data, [0.1, 0.2, 0.3], positive_only=True)": "positive_only",
}


def test_every_class_of_options_has_an_example() -> None:
    for kind in {kind.__name__ for kinds in FAMILIES.values() for kind in kinds}:
        assert any(f"{kind}(" in example for example in EXAMPLES), kind


def test_mypy_knows_every_option_and_no_other(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    wrong = [example.replace(f"{name}=", f"{name}s=") for example, name in EXAMPLES.items()]
    (tmp_path / "examples.py").write_text(START + "\n".join([*EXAMPLES, *wrong]) + "\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--no-error-summary", "--hide-error-context", str(tmp_path / "examples.py")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = dict(re.findall(r"examples\.py:(\d+): error: (.*)", found.stdout))
    first = START.count("\n") + 1
    assert [said.get(str(first + at)) for at in range(len(EXAMPLES))] == [None] * len(EXAMPLES)
    for at, name in enumerate(EXAMPLES.values()):
        message = said.pop(str(first + len(EXAMPLES) + at), found.stdout + found.stderr)
        assert f'Unexpected keyword argument "{name}s"' in message
    assert said == {}
