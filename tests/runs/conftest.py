"""A small model, explainers that misbehave on request, and one Ray cluster for all tests."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx import datasets
from gstarx.models import GCN, save_model
from gstarx_bench.runs import RunSpec

PLUGIN = '''
import os, signal, time
import numpy as np
from gstarx.explanation import Attribution
from gstarx.explainers import RandomNodes


class Fussy(RandomNodes):
    """Fails on graphs with an odd number of nodes, until it is repaired."""

    def attribute(self, model, data, *, task, seed):
        if data.num_nodes % 2 and not os.path.exists(os.environ.get("REPAIRED", "/nowhere")):
            raise ValueError(f"odd: {data.num_nodes} nodes")
        return super().attribute(model, data, task=task, seed=seed)


class Deadly(RandomNodes):
    """Kills its process at a graph of so many nodes, as running out of memory does."""

    def __init__(self, *, nodes: int = 0, seed=None):
        super().__init__(seed=seed)
        self.nodes = nodes

    def attribute(self, model, data, *, task, seed):
        if data.num_nodes == self.nodes:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().attribute(model, data, task=task, seed=seed)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


class Strange(RandomNodes):
    """Returns invalid results."""

    def __init__(self, *, answer: str = "", seed=None):
        super().__init__(seed=seed)
        self.answer = answer

    def attribute(self, model, data, *, task, seed):
        if self.answer == "surrogate":
            raise ValueError(chr(0xD800))
        if self.answer == "unspeakable":
            raise Unspeakable
        scores = np.zeros(data.num_nodes)
        if self.answer in ("nan", "inf"):
            scores[2] = float(self.answer)
        if self.answer == "long":
            scores = np.zeros(data.num_nodes + 1)
        if self.answer == "text":
            return Attribution(scores, target=0, evaluations="many")
        known = {"estimator": chr(0xD800), "exact": np.bool_(True)}
        return Attribution(scores, target=np.int64(0), evaluations=np.int32(7), **known)


class Hungry(RandomNodes):
    def attribute(self, model, data, *, task, seed):
        raise MemoryError("no more")


class Slow(RandomNodes):
    def __init__(self, *, seconds: float = 0.03, seed=None):
        super().__init__(seed=seed)
        self.seconds = seconds

    def attribute(self, model, data, *, task, seed):
        if "COUNTED" in os.environ:
            with open(os.environ["COUNTED"], "ab") as file:
                file.write(b".")
        time.sleep(self.seconds)
        print("somebody prints")
        return super().attribute(model, data, task=task, seed=seed)
'''
ENTRIES = """[gstarx.explainers]
fussy = misbehaving:Fussy
deadly = misbehaving:Deadly
hungry = misbehaving:Hungry
slow = misbehaving:Slow
strange = misbehaving:Strange
"""


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small GCN for the molecules of ``nitro``."""
    path = tmp_path_factory.mktemp("weights") / "gcn.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_model(path, GCN(8, 8, 2))
    return path


@pytest.fixture(scope="session")
def _plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "misbehaving.py").write_text(PLUGIN)
    about = folder / "misbehaving-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    return folder


@pytest.fixture
def plugin(_plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of explainers that misbehave, installed as third parties install theirs."""
    monkeypatch.syspath_prepend(_plugin)
    return _plugin


@pytest.fixture
def spec(weights: Path) -> Callable[..., RunSpec]:
    """Creates specifications of runs on the first molecules."""

    def make(explainer: Any = "leave_one_out", count: int = 12, **choices: Any) -> RunSpec:
        chosen = {"split": "all", "graphs": tuple(range(count)), **choices}
        return RunSpec(dataset="nitro", model=str(weights), explainer=explainer, **chosen)

    return make


@pytest.fixture(scope="session")
def _loaded() -> Callable[..., Any]:
    return cache(datasets.load)


@pytest.fixture
def loaded_once(_loaded: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets runs in this process share a dataset, because loading takes longer than explaining."""
    monkeypatch.setattr(datasets, "load", _loaded)


@pytest.fixture(scope="session")
def cluster(_plugin: Path) -> Iterator[Any]:
    """A real local Ray cluster, with home and temporary files of its own; started once."""
    ray = pytest.importorskip("ray", reason="needs the ray extra")
    # a short path, because it contains sockets, whose names are limited
    home = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    ours = {
        "HOME": home,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "PYTHONPATH": os.pathsep.join([str(_plugin), os.environ.get("PYTHONPATH", "")]),
    }
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 << 20,
            log_to_driver=False,
            _temp_dir=f"{home}/tmp",
        )
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    yield ray
    ray.shutdown()
    shutil.rmtree(home, ignore_errors=True)
