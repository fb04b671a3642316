"""A small model, explainers that misbehave on request, and one Ray cluster for all tests."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx import datasets
from gstarx.models import GCN, save_model
from gstarx.registry import specs
from gstarx_bench.runs import RunSpec, on_ray

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
        if "HURRIED" not in os.environ:
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


@pytest.fixture(autouse=True)
def _installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads what is installed anew only if a directory has changed, because that takes long."""
    read = specs.entry_points

    @cache
    def found(group: str, directories: tuple[tuple[str, int], ...]) -> Any:
        return read(group=group)

    def entry_points(*, group: str) -> Any:
        changed = [os.stat(path).st_mtime_ns if os.path.exists(path) else 0 for path in sys.path]
        return found(group, tuple(zip(sys.path, changed, strict=True)))

    monkeypatch.setattr(specs, "entry_points", entry_points)


@pytest.fixture(scope="session")
def cluster(_plugin: Path) -> Iterator[Any]:
    """A real local Ray cluster as runs start it, with home and temporary files of its own.

    All tests that need one share it; they are in one file, so that one process runs them.
    """
    ray = pytest.importorskip("ray", reason="needs the ray extra")
    # a short path, because it contains sockets, whose names are limited
    home = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    started = on_ray._cluster(ray, None, 2)
    with pytest.MonkeyPatch.context() as patched:
        path = os.pathsep.join([str(_plugin), os.environ.get("PYTHONPATH", "")])
        patched.setenv("HOME", home)
        patched.setenv("PYTHONPATH", path)
        patched.setenv("RAY_AUTH_MODE", "disabled")
        patched.delenv("RAY_ADDRESS", raising=False)
        patched.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
        small = partial(ray.init, object_store_memory=100 << 20, _temp_dir=f"{home}/tmp")
        patched.setattr(ray, "init", small)
        started.__enter__()
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert ray.is_initialized()
    yield ray
    started.__exit__(None, None, None)
    assert not ray.is_initialized()
    shutil.rmtree(home, ignore_errors=True)
