"""Stores after damage: nothing wrong is read, and what is lost is named and computed again."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gstarx.models import GCN, load_model, save_model
from gstarx_bench.runs import (
    ChangedInput,
    ModelSpec,
    RunSpec,
    StoreError,
    read,
    resolution,
    resume,
    run,
)
from gstarx_bench.runs.store import Store, open_store
from tests.runs.same_rows import lasting
from tests.runs.test_store import RUN, graphs_in, killed, result, written

pytestmark = pytest.mark.usefixtures("loaded_once")

Make = Callable[..., RunSpec]
COUNT = 60


def resumed(store: Path, **options: Any) -> int:
    return len(resume(store, workers=1, progress=False, **options))


@pytest.fixture
def specs(spec: Make) -> list[RunSpec]:
    return [spec(name, 4) for name in ("random", "leave_one_out")]


@pytest.fixture
def filled(specs: list[RunSpec], tmp_path: Path) -> Path:
    """A store of two runs with four graphs each."""
    for one in specs:
        run(one, tmp_path / "store", workers=1, progress=False)
    return tmp_path / "store"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A store of many rows, some in the database and some in its log."""
    path = tmp_path / "open"
    with open_store(path) as store:
        for graph in range(COUNT):
            store.append(RUN, result(graph, scores=[graph / 7] * 300, error="no"))
            if graph == COUNT // 2:
                assert store._connection is not None
                store._connection.execute("PRAGMA wal_checkpoint(RESTART)")
        for graph in range(0, COUNT, 2):  # tried again, with another result
            store.append(RUN, result(graph, scores=[graph / 7] * 300))
        return killed(path, tmp_path / "whole")


def contents(store: Path) -> dict[int, Any]:
    return {row["graph"]: row for row in read(store).to_pylist()}


@pytest.mark.parametrize("file", ["rows.sqlite", "rows.sqlite-wal", f"ledger/{RUN}"])
def test_flipped_bits_cost_at_most_their_rows(
    whole: Path, tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    right, draw = contents(whole), random.Random(0)
    assert right.keys() == set(range(COUNT))
    assert [right[graph]["error"] for graph in (2, 3)] == [None, "no"]
    lost = 0
    content = (whole / file).read_bytes()
    places = [16, 18, 21, 28, 100, 105, *(draw.randrange(len(content)) for _ in range(30))]
    for number, at in enumerate(places):
        damaged = Path(shutil.copytree(whole, tmp_path / str(number)))
        flipped = content[at] ^ 1 << draw.randrange(8)
        (damaged / file).write_bytes(content[:at] + bytes([flipped]) + content[at + 1 :])
        caplog.clear()
        got = contents(damaged)
        assert all(right[graph] == row for graph, row in got.items())
        assert len(got) >= COUNT - 1, at
        missing = right.keys() - got.keys()
        assert all(str(graph) in caplog.text for graph in missing)
        lost += len(missing)
        with open_store(damaged) as store:
            todo = [at for at, status in enumerate(store.statuses(RUN, COUNT)) if status == 0]
            assert set(todo) == missing
            for graph in todo:
                more = {} if graph % 2 == 0 else {"error": "no"}
                store.append(RUN, result(graph, scores=[graph / 7] * 300, **more))
        caplog.clear()
        assert contents(damaged) == right
        assert caplog.text == ""
        shutil.rmtree(damaged)
    assert lost > 0 or not file.endswith("sqlite-wal")


@pytest.mark.parametrize("file", ["rows.sqlite", "rows.sqlite-wal"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 0.999])
def test_a_file_that_was_cut(
    whole: Path, file: str, kept: float, caplog: pytest.LogCaptureFixture
) -> None:
    right, content = contents(whole), (whole / file).read_bytes()
    (whole / file).write_bytes(content[: int(kept * len(content))])
    got = contents(whole)
    assert all(right[graph] == row for graph, row in got.items())
    lost = sorted(right.keys() - got.keys())
    assert lost or kept > 0
    assert (
        not lost
        or f"{len(lost)} rows of the run {RUN} are lost, those of the graphs" in caplog.text
    )
    with open_store(whole) as store:
        statuses = store.statuses(RUN, COUNT).tolist()
        assert [graph for graph in range(COUNT) if statuses[graph] == 0] == lost
    assert contents(whole) == got


def test_damaged_runs_are_resumed(
    filled: Path, specs: list[RunSpec], caplog: pytest.LogCaptureFixture
) -> None:
    before = lasting(filled)
    file = filled / "rows.sqlite"
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    file.write_bytes(content)
    assert read(filled).num_rows < 8
    with caplog.at_level(logging.WARNING):
        for one in specs:
            run(one, filled, workers=1, progress=False)
    assert "are lost, those of the graphs" in caplog.text
    assert "was written anew" in caplog.text
    assert len(list(filled.glob("damaged-*"))) == 1
    assert lasting(filled).equals(before)
    assert resumed(filled) == 2


def test_a_lost_request_is_named_and_does_not_stop_the_others(
    filled: Path, specs: list[RunSpec], caplog: pytest.LogCaptureFixture
) -> None:
    before, file = lasting(filled), filled / "rows.sqlite"
    bad, good = (request["name"] for request in Store(filled).requests())
    file.write_bytes(file.read_bytes().replace(b'"explainer": {"name": "random"', b"?" * 30))
    found, problems = Store(filled).read_requests()
    assert [request["name"] for request in found] == [good]
    assert list(problems) == [bad]
    assert resumed(filled) == 1
    assert bad in caplog.text
    with pytest.raises(StoreError, match=rf"{bad} was to do is lost.*run its specification again"):
        resumed(filled, run=bad.partition("-")[0])
    # the suggested solution works
    report = run(specs[0], filled, workers=1, progress=False)
    assert (report.found, report.done) == (4, 0)
    assert resumed(filled) == 2
    assert lasting(filled).equals(before)


@pytest.mark.parametrize("left", ["store.json", "lock", "rows.sqlite"])
def test_a_process_killed_before_the_store_was_complete(tmp_path: Path, left: str) -> None:
    written(tmp_path / "made", range(2))
    path = tmp_path / "store"
    path.mkdir()
    shutil.copy(tmp_path / "made" / "store.json", path) if left != "lock" else None
    (path / left).touch()
    (path / ".store.json.0123.part").touch()
    written(path, range(2))
    assert graphs_in(path) == [0, 1]
    assert not (path / ".store.json.0123.part").exists()


def test_a_run_that_cannot_be_resumed_does_not_affect_the_others(
    weights: Path, tmp_path: Path, spec: Make
) -> None:
    own, store = tmp_path / "own.safetensors", tmp_path / "store"
    save_model(own, load_model(weights)[0])
    moved = spec(count=2).model_copy(update={"model": ModelSpec(weights=str(own))})
    first = run(moved, store, workers=1, progress=False)
    other = run(spec("random", 3), store, workers=1, progress=False)
    save_model(own, GCN(8, 4, 2))
    with open_store(store) as opened:
        assert opened._connection is not None
        opened._connection.execute(f'DELETE FROM "{other.run}"')
    with pytest.raises(ChangedInput, match=r"own\.safetensors changed") as caught:
        resumed(store)
    assert [first.run in note for note in caught.value.__notes__] == [True]
    assert read(store, run=other.run).num_rows == 3


def test_a_changed_run_is_not_resumed(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "options_for", lambda *_: {"hops": 7})
    with pytest.raises(
        ChangedInput, match=r"explainer\.options\.hops of the run was None .* 7 now"
    ):
        resumed(filled)


def test_a_trained_explainer_that_was_replaced_by_a_directory(tmp_path: Path, spec: Make) -> None:
    trained = spec({"name": "pgexplainer", "options": {"epochs": 1}}, 2)
    run(trained.model_copy(update={"graphs": (0,)}), tmp_path / "a", workers=1, progress=False)
    (file,) = (tmp_path / "a" / "trained").iterdir()
    file.unlink()
    file.mkdir()
    assert run(trained, tmp_path / "a", workers=1, progress=False).done == 1
    assert read(tmp_path / "a").column("error").to_pylist() == [None, None]
    assert file.is_file()
