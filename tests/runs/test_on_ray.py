"""A real Ray cluster gives the same rows, even when it loses workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gstarx_bench.runs import ChangedInput, RunSpec, on_ray, read, resolution, run
from gstarx_bench.runs.on_ray import ClusterNotFound
from gstarx_bench.runs.resolution import resolve
from tests.runs import test_nodes as nodes
from tests.runs.same_rows import assert_same_rows

pytest.importorskip("ray", reason="needs the ray extra")

pytestmark = pytest.mark.ray

Make = Callable[..., RunSpec]


def test_ray_gives_the_same_rows_as_one_worker(
    spec: Make, tmp_path: Path, plugin: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "GRAPHS_PER_OBJECT", 10)
    for name, explainer in {
        "published": "gstarx_published",
        "fussy": "fussy",
        "trained": {"name": "pgexplainer", "options": {"epochs": 2}},
    }.items():
        run_spec = spec(explainer, 24, baseline="test", seed=3)
        one = run(run_spec, tmp_path / name / "one", workers=1, progress=False)
        ray = run(run_spec, tmp_path / name / "ray", engine="ray", progress=False)
        assert (ray.done, ray.failed, ray.run) == (24, one.failed, one.run)
        assert_same_rows(tmp_path / name / "one", tmp_path / name / "ray")
    assert one.failed == 0
    # a cluster that was running before is not shut down
    assert cluster.is_initialized()


def test_ray_gives_the_same_rows_of_nodes(plugin: Path, tmp_path: Path, cluster: Any) -> None:
    (plugin / "own_nodes.py").write_text(nodes.MODULE)
    run(nodes.specification(), tmp_path / "local", workers=1, progress=False)
    run(nodes.specification(), tmp_path / "ray", engine="ray", workers=1, progress=False)
    assert nodes.stored(tmp_path / "ray") == nodes.stored(tmp_path / "local")


def test_a_machine_with_other_packages_is_refused(
    spec: Make, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = resolution.package_versions() | {"torch": "99.0"}
    monkeypatch.setattr(resolution, "package_versions", lambda: newer)
    with pytest.raises(
        ChangedInput, match=r"^on .*: the run was started with torch 99\.0, and this"
    ):
        run(spec(count=3), tmp_path, engine="ray", progress=False)
    assert read(tmp_path).num_rows == 0


def test_a_killed_worker_is_replaced(
    spec: Make, tmp_path: Path, plugin: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_spec = spec("slow", 60)
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + 60
        while not killed and time.monotonic() < end:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if not any("ray::explain_graphs" in word for word in process.cmdline()):
                        continue
                    process.kill()
                    killed.append(process.pid)
                    break
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    report = run(run_spec, tmp_path / "ray", engine="ray", workers=2, progress=False)
    killer.join()
    assert killed
    assert (report.done, report.failed) == (60, 0)
    monkeypatch.setenv("HURRIED", "1")
    run(run_spec, tmp_path / "local", workers=1, progress=False)
    assert_same_rows(tmp_path / "ray", tmp_path / "local")


def test_a_graph_that_crashes_its_worker_is_a_failure(
    spec: Make, tmp_path: Path, plugin: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "_RETRIES", 0)
    resolved = resolve(spec())
    sizes = [resolved.graph(at).num_nodes for at in range(6)]
    deadly = {"name": "deadly", "options": {"nodes": sizes[3]}}
    report = run(spec(deadly, 6), tmp_path, engine="ray", progress=False)
    errors = read(tmp_path).column("error").to_pylist()
    for size, error in zip(sizes, errors, strict=True):
        if size == sizes[3]:
            assert "WorkerLost: Ray gave up on this graph" in error
        else:
            assert error is None
    assert report.failed == 1


def test_a_cluster_that_does_not_exist(
    spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterNotFound, match=r"no Ray cluster at '127\.0\.0\.1:9'.*ray start"):
        run(spec(count=1), tmp_path, engine="ray", address="127.0.0.1:9", progress=False)
    assert read(tmp_path).num_rows == 0
