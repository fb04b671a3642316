"""One server for many tests, because starting its processes takes long."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

for _package in ("fastapi", "uvicorn", "httpx", "rdkit", "networkx"):
    pytest.importorskip(_package)

from gstarx._internal import processes  # noqa: E402
from gstarx.datasets import shipped  # noqa: E402
from gstarx.models import shipped_path  # noqa: E402
from gstarx_bench import runs  # noqa: E402
from gstarx_explorer import Limits, ServedRun, Settings  # noqa: E402
from tests.web import odd_models  # noqa: E402
from tests.web.served import CONNECTIONS, Served, served  # noqa: E402

#: Long enough for a busy machine.
LIMITS = Limits(
    seconds=60.0, best_seconds=3.0, queue=3, nodes=40, text=200, connections=CONNECTIONS
)


#: What worker processes import.
_IMPORTED = (
    "gstarx_explorer.explaining",
    "gstarx.explainers.gstarx",
    "gstarx.datasets.shipped",
    "torch_geometric.nn",
    "rdkit.Chem",
)


@pytest.fixture(scope="package", autouse=True)
def _copied_processes() -> Iterator[None]:
    """Copies workers of one process that has imported what they need, which takes long.

    The tests of ``gstarx serve`` as a process have workers that import it.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    start = processes._OneProcess

    def copied(method: str) -> processes._OneProcess:
        return start("forkserver" if method == "spawn" else method)

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMP_NUM_THREADS", "1")
        patched.setattr(processes, "_OneProcess", copied)
        multiprocessing.get_context("forkserver").set_forkserver_preload(list(_IMPORTED))
        yield


@pytest.fixture(scope="package", autouse=True)
def _made_once() -> Iterator[None]:
    """Makes the graphs of the motifs once in this process, because that takes long."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shipped, "load_motifs", cache(shipped.load_motifs))
        yield


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs on the same graphs and one on others."""
    path = tmp_path_factory.mktemp("web") / "store"
    weights = str(shipped_path("nitro-gcn"))
    for explainer, graphs in (("gstarx", (15, 44, 45)), ("random", (15, 44, 45, 60))):
        spec = {"dataset": "nitro", "model": weights, "split": "all", "graphs": graphs}
        runs.run({**spec, "explainer": explainer}, path, workers=1, progress=False)
    other = {"dataset": "motifs", "model": str(shipped_path("motifs-gcn")), "split": "all"}
    runs.run({**other, "explainer": "random", "graphs": (0,)}, path, workers=1, progress=False)
    return path


@pytest.fixture(scope="package")
def server(store: Path) -> Iterator[Served]:
    """A server with good and odd models, and a store to browse."""
    # the warm-up of a worker uses the first model: one that kills it must come later
    models = (*odd_models.SHIPPED, *odd_models.ODD, odd_models.MISSING, odd_models.DEADLY)
    run = ServedRun(store)
    with served(Settings(models=models, run=run, limits=LIMITS)) as running:
        yield running
