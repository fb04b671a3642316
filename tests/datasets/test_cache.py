"""Processed graphs on disk: the same graphs again, or built anew where anything is not right."""

from __future__ import annotations

import errno
import logging
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gstarx_bench.datasets import cache
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
            weight=torch.tensor(float(size)),
            truth=torch.arange(size) > 1,
            words=[f"wörd {i}" for i in range(size)],
            smiles="C" * size,
            line=size,
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
    return all(list(a) == list(b) and all(same(a[k], b[k]) for k in a) for a, b in stores)


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


def flip_last_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_text(path: Path) -> None:
    path.write_text("not a file of tensors " * 10)


@pytest.mark.parametrize("damage", [flip_last_byte, cut, empty, replace_by_text])
def test_a_damaged_file_is_set_aside_and_built_again(
    source: Path, directory: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    build = Builder()
    cached_graphs("few", [source], {}, 1, build)
    path = only_file(directory)
    damage(path)
    spoilt = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
    assert build.times == 2
    assert f"{path} is damaged" in caplog.text
    assert path.with_suffix(".damaged").read_bytes() == spoilt
    assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
    assert build.times == 2


def test_a_file_of_other_data_is_not_believed(source: Path, directory: Path) -> None:
    cached_graphs("few", [source], {}, 1, graphs)
    path = only_file(directory)
    wrong = Builder(lambda: graphs()[:1])
    cached_graphs("few", [source], {"a": 1}, 1, wrong)
    (other,) = set(directory.iterdir()) - {path}
    other.write_bytes(path.read_bytes())
    assert len(cached_graphs("few", [source], {"a": 1}, 1, wrong)) == 1
    assert wrong.times == 2


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

    monkeypatch.setattr("gstarx_bench.datasets.cache.os.fsync", full)
    assert equal(cached_graphs("few", [source], {}, 1, graphs), graphs())
    assert list(directory.iterdir()) == []
    assert "No space left on device" in caplog.text


def test_a_file_that_cannot_be_read_is_built_again(
    source: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    build = Builder()
    cached_graphs("few", [source], {}, 1, build)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(cache, "safe_open", refuse)
    assert equal(cached_graphs("few", [source], {}, 1, build), graphs())
    assert build.times == 2
    assert "cannot read" in caplog.text
    assert only_file(directory).suffix == ".safetensors"  # and it is not set aside


def test_an_interrupted_writer_leaves_no_file(
    source: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gstarx_bench.datasets.cache.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cached_graphs("few", [source], {}, 1, graphs)
    assert list(directory.iterdir()) == []


def test_no_graphs_are_not_stored(source: Path, directory: Path) -> None:
    assert cached_graphs("none", [source], {}, 1, list) == []
    assert not directory.exists()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([Data(x=torch.ones(1, 2)), Data(z=torch.ones(1))], r"same attributes: .*\['x'\].*\['z'\]"),
        ([Data(x=torch.ones(1, 2)), Data(x=torch.ones(1, 3))], "'x' differs between graphs"),
        ([Data(x=torch.ones(1, 2)), Data(x=torch.ones(2))], "'x' must be of one type and rank"),
        ([Data(x=torch.ones(2)), Data(x=torch.ones(2).half())], "'x' must be of one type and rank"),
        ([Data(x=torch.ones(2)), Data(x=[1.0])], "'x' must be of one type and rank"),
        ([Data(pair=(1, 2))], r"'pair' must hold tensors, strings.* \(got tuple\)"),
        ([Data(thing=object())], r"'thing' must hold tensors, strings.* \(got object\)"),
    ],
)
def test_graphs_that_cannot_be_stored(source: Path, made: list[Data], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cached_graphs("few", [source], {}, 1, lambda: made)


def test_where_files_lie(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    assert cache_directory() == directory
    default = Path.home() / ".cache" / "gstarx" / "processed"
    monkeypatch.setenv("GSTARX_CACHE", "")
    assert cache_directory() == default
    monkeypatch.delenv("GSTARX_CACHE")
    assert cache_directory() == default
