"""Processed graphs on disk: the same graphs again, or built anew where anything is not right."""

from __future__ import annotations

import errno
import hashlib
import io
import logging
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gstarx_bench.datasets.cache import cache_directory, cached_graphs


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GSTARX_CACHE", str(tmp_path / "processed"))
    return tmp_path / "processed"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "raw.txt"
    path.write_text("one\n")
    return path


def graphs() -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    return [
        Data(
            x=torch.rand(size, 3, generator=generator).half(),
            edge_index=torch.randint(size, (2, 2 * size - 2), generator=generator),
            y=torch.tensor([size % 2]),
            truth=torch.arange(size) > 1,
            words=[f"wörd {i}" for i in range(size)],
            smiles="C" * size,
            bonds=[1.5] * size,
        )
        for size in (1, 4, 2)
    ]


class Builder:
    """Builds graphs, and counts how often."""

    def __init__(self, make: Callable[[], list[Data]] = graphs) -> None:
        self.make, self.times = make, 0

    def __call__(self) -> list[Data]:
        self.times += 1
        return self.make()


def equal(left: list[Data], right: list[Data]) -> bool:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor):
            return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
        return type(a) is type(b) and a == b

    stores = [(a.to_dict(), b.to_dict()) for a, b in zip(left, right, strict=True)]
    return all(set(a) == set(b) and all(same(a[k], b[k]) for k in a) for a, b in stores)


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def test_graphs_come_back_as_they_were(source: Path, directory: Path) -> None:
    build = Builder()
    first = cached_graphs("few", [source], {"a": 1}, 1, build)
    second = cached_graphs("few", [source], {"a": 1}, 1, build)
    assert build.times == 1
    assert equal(first, graphs())
    assert equal(second, graphs())
    assert only_file(directory).name.startswith("few-")
    assert second[0].edge_index.shape == (2, 0)  # no edges keep their shape
    assert second[1].edge_index.is_contiguous()


def test_a_single_graph(source: Path) -> None:
    build = Builder(lambda: graphs()[1:2])
    for _ in range(2):
        assert equal(cached_graphs("one", [source], {}, 1, build), graphs()[1:2])
    assert build.times == 1


def test_a_graph_that_is_read_is_its_own(source: Path) -> None:
    def build() -> list[Data]:
        return [Data(x=torch.ones(10, 100)) for _ in range(100)]

    cached_graphs("few", [source], {}, 1, build)
    read = cached_graphs("few", [source], {}, 1, build)
    assert len(pickle.dumps(read[0])) < 10_000
    read[0].x += 1
    assert read[1].x.max() == 1
    assert cached_graphs("few", [source], {}, 1, build)[0].x.max() == 1


def test_what_the_graphs_depend_on(source: Path, tmp_path: Path) -> None:
    build = Builder()

    def ask(
        name: str = "few", options: dict[str, Any] | None = None, version: int = 1, *more: Path
    ) -> None:
        cached_graphs(name, [source, *more], options or {"a": 1, "b": 2}, version, build)

    ask()
    ask(options={"b": 2, "a": 1})
    assert build.times == 1
    ask(name="other")
    ask(options={"a": 1, "b": 3})
    ask("few", None, 2)
    ask("few", None, 1, source)
    assert build.times == 5
    source.write_text("two\n")
    ask()
    assert build.times == 6
    source.write_text("one\n")
    os.utime(source, (1, 1))
    ask()
    assert build.times == 6  # content counts, not time
    moved = tmp_path / "elsewhere.txt"
    source.rename(moved)
    cached_graphs("few", [moved], {"a": 1, "b": 2}, 1, build)
    assert build.times == 6  # nor place
    with pytest.raises(FileNotFoundError, match=r"raw\.txt"):
        ask()


def test_a_name_is_no_path(source: Path, directory: Path) -> None:
    cached_graphs("../a b/c", [source], {}, 1, graphs)
    assert only_file(directory).name.startswith(".._a_b_c-")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: content[:700] + bytes([content[700] ^ 1]) + content[701:],
        lambda content: content[:-10],
        lambda content: b"",
    ],
)
def test_a_damaged_file_is_built_again(
    source: Path, directory: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    build = Builder()
    cached_graphs("few", [source], {}, 1, build)
    path = only_file(directory)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
    assert build.times == 2
    assert f"cannot read {path}" in caplog.text
    assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
    assert build.times == 2
    assert only_file(directory) == path


class Payload:
    """What a malicious file would run."""

    def __reduce__(self) -> Any:
        return print, ("code was run",)


def test_a_file_that_runs_something_is_not_read(
    source: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cached_graphs("few", [source], {}, 1, graphs)
    stream = io.BytesIO()
    torch.save({"count": 1, "data": Payload(), "slices": {}}, stream)
    only_file(directory).write_bytes(hashlib.sha256(stream.getvalue()).digest() + stream.getvalue())
    assert equal(cached_graphs("few", [source], {}, 1, graphs), graphs())
    assert "code was run" not in capsys.readouterr().out


def test_no_place_to_store_means_no_cache(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("GSTARX_CACHE", str(blocked / "below"))
    build = Builder()
    for times in (1, 2):
        assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
        assert build.times == times
    assert "cannot store few" in caplog.text


def test_a_full_disk_leaves_nothing_behind(
    source: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gstarx._internal.files.os.fsync", full)
    assert equal(cached_graphs("few", [source], {}, 1, graphs), graphs())
    assert list(directory.iterdir()) == []
    assert "No space left on device" in caplog.text


def test_no_graphs_are_not_stored(source: Path, directory: Path) -> None:
    assert cached_graphs("none", [source], {}, 1, list) == []
    assert not directory.exists()


def test_graphs_that_cannot_be_stored(source: Path) -> None:
    for made in (
        [Data(x=torch.ones(1, 2)), Data(z=torch.ones(1))],
        [Data(x=torch.ones(2)), Data(x=torch.ones(2).half())],
        [Data(pair=(1, 2))],
        [Data(number=3)],
        [Data(weight=torch.tensor(1.0))],
    ):
        with pytest.raises(TypeError, match="to be stored"):
            cached_graphs("few", [source], {}, 1, lambda made=made: made)  # type: ignore[misc]


def test_where_files_lie(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    assert cache_directory() == directory
    default = Path.home() / ".cache" / "gstarx" / "processed"
    monkeypatch.setenv("GSTARX_CACHE", "")
    assert cache_directory() == default
    monkeypatch.delenv("GSTARX_CACHE")
    assert cache_directory() == default
