"""How much memory a worker may use, and the estimate of what a request needs."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gstarx_explorer import Limits, LoadedModel, Settings, memory
from gstarx_explorer.catalog import OFFERED, checked_options, limited
from gstarx_explorer.explaining import ExplanationWorker
from gstarx_explorer.memory import (
    Estimate,
    check_memory,
    counted_option,
    default_memory,
    is_out_of_memory,
    max_coalitions,
    used_bytes,
)
from gstarx_explorer.messages import Refused
from gstarx_explorer.queries import QueryWorker
from gstarx_explorer.subjects import Subject
from gstarx_explorer.worker import Interrupter
from tests.cli.commands import environment, gstarx, refused
from tests.web import odd_models

GB = 1 << 30
MODEL = odd_models.SHIPPED[0].load()


def ring(nodes: int) -> Subject:
    here = torch.arange(nodes)
    ends = torch.stack([here, (here + 1) % nodes])
    edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    return Subject(Data(x=torch.zeros(nodes, 8), edge_index=edge_index), "ring", 0, {})


def check(name: str, options: dict[str, Any], nodes: int, limit: int = GB) -> Refused | None:
    chosen = [{"name": "random", "options": {}}, {"name": name, "options": options}]
    try:
        check_memory(MODEL, ring(nodes), chosen, Limits(memory=limit))
    except Refused as error:
        return error
    return None


def test_a_refusal_says_what_would_fit() -> None:
    refused = check("shapley", {"budget": 1_000_000}, 2_000)
    assert refused is not None
    assert refused.problem.code == "too_much_memory"
    assert refused.problem.status == 422
    assert refused.problem.field == "explainers.1.options.budget"
    message = refused.problem.message
    for part in ("Shapley value", "budget 1,000,000", "2,000 players", "37.8 GB", "1.0 GB"):
        assert part in message
    fits = int(message.partition("budget up to ")[2].partition(" ")[0].replace(",", ""))
    assert check("shapley", {"budget": fits}, 2_000) is None
    assert check("shapley", {"budget": fits + 1}, 2_000) is not None


def test_a_graph_that_is_too_large_for_any_budget() -> None:
    message = str(check("gradient_x_input", {}, 20_000))
    assert "20,000 players" in message
    assert "--max-memory" in message
    assert "up to" not in message


@pytest.mark.parametrize("name", OFFERED)
def test_the_largest_request_fits_the_default_memory(name: str) -> None:
    limits = Limits()
    counted = counted_option(OFFERED[name])
    options = {} if counted is None else {counted.name: limited(counted, limits.budget).maximum}
    assert check(name, options, limits.nodes, default_memory(2)) is None


def test_wide_models_need_more() -> None:
    wide = LoadedModel(torch.nn.Linear(8, 400_000))
    with pytest.raises(Refused, match="smaller graph"):
        check_memory(wide, ring(10), [{"name": "random", "options": {}}], Limits(memory=GB))


@pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("banzhaf", {"budget": 2_000}),
        ("shapley", {"budget": 2_000}),
        ("graphsvx", {"num_samples": 2_000}),
        ("graphsvx", {"num_samples": 2_000, "efficiency": "none"}),
        ("local_shapley", {"sample_num": 10}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::gstarx.values.allocation.PrecisionWarning")
def test_no_explainer_exceeds_its_estimate(name: str, options: dict[str, Any]) -> None:
    from gstarx import explainers

    nodes = 100
    data = ring(nodes).data
    estimate = Estimate.of(nodes=nodes, edges=2 * nodes, width=1, batch_nodes=1)
    explainer = explainers.create(name, dataset=None, **options)
    explainer.explain(MODEL.model, data, seed=0)  # compiled by now
    tracemalloc.start()
    explainer.explain(MODEL.model, data, seed=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    coalitions = max_coalitions(OFFERED[name], options, nodes)
    assert peak < coalitions * estimate.per_coalition + (1 << 20)


def test_both_kinds_of_workers_check_the_memory_first() -> None:
    settings = Settings(models=odd_models.SHIPPED, limits=Limits(memory=300 << 20))
    chosen = [{"name": "graphsvx", "options": {"num_samples": 50_000}}]
    job = {"model": "nitro", "input": {"smiles": "C" * 100}, "explainers": chosen, "target": None}
    with pytest.raises(Refused, match="num_samples up to"):
        QueryWorker(settings).answer({"query": "check", "arguments": job}, None)
    sent: list[Any] = []
    with pytest.raises(Refused, match="num_samples up to"):
        ExplanationWorker(settings, Interrupter()).answer(
            {**job, "seed": 0, "best": False}, lambda *part: sent.append(part)
        )
    assert sent == []


def test_the_limit_on_evaluations_holds_for_defaults_too() -> None:
    assert checked_options(OFFERED["shapley"], {}, 1_000, "") == {"budget": 1_000}
    assert checked_options(OFFERED["shapley"], {"budget": 50}, 1_000, "") == {"budget": 50}
    for spec in OFFERED.values():
        budget = any(option.name == "budget" for option in spec.options)
        # the explainer's own default may be far more, where coalitions share embeddings
        expected = {"budget": 20_000} if budget else {}
        assert checked_options(spec, {}, Limits().budget, "") == expected


def test_the_default_is_a_share_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_machine_memory", lambda: 16 * GB)
    assert default_memory(2) == int(3.5 * GB)
    assert default_memory(64) == GB // 2
    monkeypatch.setattr(memory, "_machine_memory", lambda: 512 * GB)
    assert default_memory(2) == 4 * GB


@pytest.mark.parametrize(("content", "expected"), [("3221225472\n", 3 * GB), ("max\n", None)])
def test_the_memory_of_a_container_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, expected: int | None
) -> None:
    before = memory._machine_memory()
    (tmp_path / "memory.max").write_text(content)
    monkeypatch.setattr(memory, "_CONTAINER", (str(tmp_path / "memory.max"),))
    assert memory._machine_memory() == (expected or before)


def test_the_option_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr("gstarx_explorer.serving.serve", lambda settings, _: seen.append(settings))
    for more in (("--max-memory", "1.5"), ("--workers", "3")):
        gstarx("serve", "--model", "motifs", *more)
    assert [settings.limits.memory for settings in seen] == [GB * 3 // 2, default_memory(3)]
    assert "0.5" in refused("serve", "--max-memory", "0.4", code=2)


def test_which_errors_mean_that_memory_ran_out() -> None:
    words = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    errors = (MemoryError(), RuntimeError(words), RuntimeError("std::bad_alloc"))
    assert all(map(is_out_of_memory, errors))
    assert not is_out_of_memory(ValueError("no such class"))


PROGRAM = """
import numpy as np
from gstarx_explorer.memory import MemoryLimit
limit = MemoryLimit()
assert not limit.used_up
limit.start(100 << 20)
with limit.uncounted():
    chosen = np.ones(150 << 20, dtype=np.uint8)
assert not limit.used_up
used = np.ones(70 << 20, dtype=np.uint8)
assert limit.used_up, "more than half"
try:
    more = np.ones(70 << 20, dtype=np.uint8)
except MemoryError:
    del used
    print(limit.problem().message, limit.used_up)
del chosen
more = np.ones(70 << 20, dtype=np.uint8)
"""


@pytest.mark.skipif(not used_bytes(), reason="this system does not limit the memory of a process")
def test_a_process_cannot_exceed_its_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert "a job may use 0.10 GB, which is not enough memory" in done.stdout
    assert done.stdout.endswith("True\n")
