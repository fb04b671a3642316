"""Stores after kills and damage: valid content is used, and damaged files are named."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gstarx._internal.files import atomic_path
from gstarx.models import GCN, load_model, save_model
from gstarx_bench.runs import (
    ChangedInput,
    ModelSpec,
    RunSpec,
    StoreError,
    parquet_parts,
    read,
    resolution,
    resume,
    run,
    store,
)
from gstarx_bench.runs.parquet_parts import Journal
from gstarx_bench.runs.rows import encoded
from gstarx_bench.runs.store import Store, locked, open_store
from tests.runs.same_rows import lasting
from tests.runs.test_store import RUN, graphs_in, row, written

pytestmark = pytest.mark.usefixtures("loaded_once")

Make = Callable[..., RunSpec]


def two(weights: Path) -> list[RunSpec]:
    return [
        RunSpec(
            dataset="nitro", model=str(weights), explainer=name, split="all", graphs=tuple(range(4))
        )
        for name in ("random", "leave_one_out")
    ]


@pytest.fixture(scope="module")
def _filled(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "store"
    for spec in two(weights):
        run(spec, path, workers=1, progress=False)
    return path


@pytest.fixture
def filled(_filled: Path, tmp_path: Path) -> Path:
    """A store of two runs with four graphs each."""
    return Path(shutil.copytree(_filled, tmp_path / "store"))


def resumed(store: Path, **options: Any) -> int:
    return len(resume(store, workers=1, progress=False, **options))


def requests(store: Path) -> list[Path]:
    return sorted((store / "runs").iterdir())


def killed_while_writing(path: Path, content: bytes) -> Path:
    """Leave the unfinished file of a process that was killed."""
    with atomic_path(path) as aside:
        name = aside
        aside.touch()
    path.unlink()
    name.write_bytes(content)
    return name


def test_an_unfinished_request_is_ignored(filled: Path) -> None:
    before = requests(filled)
    killed_while_writing(filled / "runs" / "a.json", before[0].read_bytes())
    killed_while_writing(filled / "runs" / "b.json", b"")
    killed_while_writing(filled / "trained" / "c.safetensors", b"")
    found, problems = Store(filled).read_requests()
    assert (len(found), problems) == (2, {})
    assert read(filled).num_rows == 8
    # a reader does not touch them, because another process may be writing
    assert len(requests(filled)) == 4
    assert resumed(filled) == 2
    assert requests(filled) == before
    assert list((filled / "trained").iterdir()) == []
    assert len(list((filled / "aside").iterdir())) == 3


def test_unfinished_rows_are_set_aside(tmp_path: Path) -> None:
    written(tmp_path, range(3))
    directory = tmp_path / "rows" / f"run={RUN}"
    name = killed_while_writing(directory / "rows-00000001-00000001.parquet", b"PAR1")
    assert graphs_in(tmp_path) == [0, 1, 2]
    with open_store(tmp_path):
        assert not name.exists()
    assert graphs_in(tmp_path) == [0, 1, 2]
    assert len(list((tmp_path / "aside").iterdir())) == 1


def test_a_process_killed_before_the_store_was_created(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "store.json", b"")
    (tmp_path / "lock").touch()
    written(tmp_path, range(2))
    assert graphs_in(tmp_path) == [0, 1]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def other_seed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"seed": 0', b'"seed": 1'))


def other_identity(path: Path) -> None:
    before, seed, after = path.read_bytes().rpartition(b'"seed": 0')
    assert seed in before
    path.write_bytes(before + b'"seed": 1' + after)


def other_weights(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b".safetensors", b".safetensorz"))


def something_else(path: Path) -> None:
    path.write_text("[1, 2]")


def nested(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize(
    "damage",
    [emptied, cut, directory, other_seed, other_identity, other_weights, something_else, nested],
)
def test_a_damaged_request_is_named(filled: Path, damage: Callable[[Path], None]) -> None:
    bad, good = requests(filled)
    damage(bad)
    (found,), problems = Store(filled).read_requests()
    assert found["name"] == good.stem
    assert str(problems[bad.stem]).startswith(f"{bad} is damaged (")
    assert list(problems) == [bad.stem]


def test_a_damaged_request_does_not_stop_the_others(
    filled: Path, weights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = lasting(filled)
    bad = next(path for path in requests(filled) if '"random"' in path.read_text())
    cut(bad)
    (other,) = Store(filled).requests()
    assert other["spec"]["explainer"]["name"] == "leave_one_out"
    with caplog.at_level(logging.WARNING):
        assert resumed(filled) == 1
    assert f"{bad} is damaged" in caplog.text
    with pytest.raises(StoreError, match=rf"{bad.name} is damaged .*run its specification again"):
        resumed(filled, run=bad.stem.partition("-")[0])
    # the suggested solution works
    report = run(two(weights)[0], filled, workers=1, progress=False)
    assert (report.found, report.done) == (4, 0)
    assert resumed(filled) == 2
    assert lasting(filled).equals(before)


def test_a_request_without_read_permission(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, _ = requests(filled)
    read_bytes = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    found, problems = Store(filled).read_requests()
    assert len(found) == 1
    assert "cannot be read (Permission denied): check its permissions" in str(problems[closed.stem])


@pytest.mark.parametrize("call", ["read_metadata", "ParquetFile"])
def test_rows_without_read_permission_are_not_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    written(tmp_path, range(3))
    before = sorted(tmp_path.rglob("*.parquet"))

    def denied(path: Path, **_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(pq, call, denied)
        if call == "ParquetFile":
            with pytest.raises(StoreError, match=r"^cannot read the store: .*Permission denied"):
                read(tmp_path)
        else:
            with pytest.raises(StoreError, match=r"Permission denied.*\.parquet"):
                written(tmp_path, range(4))
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert graphs_in(tmp_path) == [0, 1, 2]


def test_flipped_bits_are_detected(tmp_path: Path) -> None:
    written(tmp_path, range(20))
    before = read(tmp_path)
    (file,) = (tmp_path / "rows" / f"run={RUN}").iterdir()
    content = file.read_bytes()
    detected = 0
    # headers of pages, which have no checksums, and parts of the schema; then anything
    places = [439, 450, 602, 3476, 3478, 3515, *random.Random(0).sample(range(len(content)), 100)]
    for at in places:
        for bit in (1, 16):
            file.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            try:
                assert read(tmp_path).equals(before)
            except StoreError:
                detected += 1
    assert detected > len(places)


def test_resume_names_damaged_files(filled: Path) -> None:
    for file in filled.rglob("*.parquet"):
        content = bytearray(file.read_bytes())
        start = content.index(b"PAR1") + 4
        content[start : start + 1200] = bytes(1200)
        file.write_bytes(content)
    with pytest.raises(StoreError, match=r"\.parquet: .*\. Move it out of the store") as caught:
        resumed(filled)
    assert sum("was not resumed" in note for note in caught.value.__notes__) == 2


def test_a_line_that_is_not_a_row_is_set_aside(tmp_path: Path) -> None:
    written(tmp_path, range(2))
    path = tmp_path / "rows" / f"run={RUN}" / "journal-00000001.jsonl"
    with Journal(path) as journal:
        journal.append(encoded(row(2)))
        journal.append(encoded(row(3, target="none")))
        journal.append(b"[]")
        journal.append(encoded(row(4)))
    assert graphs_in(tmp_path) == [0, 1, 2, 4]
    with open_store(tmp_path) as store:
        assert store.statuses(RUN, 5).tolist() == [1, 1, 1, 0, 1]
    (remains,) = (tmp_path / "aside").iterdir()
    assert remains.read_bytes().splitlines() == [encoded(row(3, target="none")), b"[]"]


def test_directories_in_place_of_files(tmp_path: Path) -> None:
    written(tmp_path, range(2))
    rows = tmp_path / "rows" / f"run={RUN}"
    (rows / "journal-00000001.jsonl").mkdir()
    (rows / "rows-00000002-00000002.parquet").mkdir()
    (tmp_path / "rows" / "run=1").touch()
    with open_store(tmp_path):
        pass
    assert graphs_in(tmp_path) == [0, 1]
    assert len(list((tmp_path / "aside").iterdir())) == 3


def test_a_run_that_cannot_be_resumed_does_not_affect_the_others(
    weights: Path, tmp_path: Path, spec: Make
) -> None:
    own, store = tmp_path / "own.safetensors", tmp_path / "store"
    save_model(own, load_model(weights)[0])
    moved = spec(count=2).model_copy(update={"model": ModelSpec(weights=str(own))})
    first = run(moved, store, workers=1, progress=False)
    other = run(spec("random", 3), store, workers=1, progress=False)
    save_model(own, GCN(8, 4, 2))
    shutil.rmtree(store / "rows" / f"run={other.run}")
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
    assert len(requests(filled)) == 2


def test_the_first_error_is_raised_if_the_journal_cannot_be_closed_either(
    tmp_path: Path, spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Journal, "append", full)
    monkeypatch.setattr(Journal, "close", full)
    with pytest.raises(StoreError, match="the disk is full"):
        run(spec(count=1), tmp_path, workers=1, progress=False)


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(store, "_take", refused)
    with pytest.raises(OSError, match="No locks available"), locked(tmp_path / "lock"):
        pass


def test_a_trained_explainer_that_was_replaced_by_a_directory(tmp_path: Path, spec: Make) -> None:
    trained = spec({"name": "pgexplainer", "options": {"epochs": 1}}, 1)
    run(trained, tmp_path / "a", workers=1, progress=False)
    (file,) = (tmp_path / "a" / "trained").iterdir()
    directory(file)
    shutil.rmtree(tmp_path / "a" / "rows")
    assert resumed(tmp_path / "a") == 1
    assert read(tmp_path / "a").column("error").to_pylist() == [None]
    assert file.is_file()


def test_requests_of_older_stores_are_read(filled: Path) -> None:
    for path in requests(filled):
        request = json.loads(path.read_text())
        del request["spec_digest"]
        path.write_text(json.dumps(request))
    assert resumed(filled) == 2


def test_hidden_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".rows-00000000-00000000.parquet").touch()
    assert parquet_parts.parts(tmp_path) == ([], [])


@pytest.mark.parametrize("name", ["rows", "runs"])
def test_a_directory_without_read_permission_is_an_error(
    filled: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    inside = Path.iterdir

    def denied(path: Path) -> Any:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return inside(path)

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(StoreError, match=f"cannot read the store: .*Permission denied.*{name}"):
        read(filled) if name == "rows" else Store(filled).requests()
    with pytest.raises(StoreError, match=f"Permission denied.*{name}"):
        resumed(filled)
