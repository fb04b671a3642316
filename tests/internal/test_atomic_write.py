"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gstarx._internal.atomic_write import atomic_path, unfinished_files, write_atomically


def test_content_replaces_content(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"2")
    assert path.read_bytes() == b"2"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append("fsync")
        fsync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        done.append(f"replace {self.read_bytes()!r}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    write_atomically(path, b"new")
    assert done[:2] == ["fsync", "replace b'new'"]


@pytest.mark.parametrize("name", ["a.json", "rows-1.parquet", "noextension", "two.tar.gz"])
def test_what_a_killed_process_was_writing_is_found(tmp_path: Path, name: str) -> None:
    for other in ("part.json", ".hidden", ".part", "a.part", "a.part.json"):
        (tmp_path / other).touch()
    with atomic_path(tmp_path / name) as aside:
        aside.touch()
        assert unfinished_files(tmp_path) == [aside]
    assert unfinished_files(tmp_path) == []
    assert unfinished_files(tmp_path / "none") == []
