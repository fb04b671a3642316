"""Files that are complete or absent when written, and refused when they expand to too much."""

from __future__ import annotations

import errno
import io
import os
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gstarx._internal.files import (
    TooLargeError,
    atomic_path,
    check_expanded_size,
    most_bytes,
    unfinished_files,
    write_atomically,
)
from gstarx_bench.datasets.raw_files import UnsafePickleError, archive, array, read_arrays


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


def test_a_link_remains_and_its_file_is_written(tmp_path: Path) -> None:
    target, link, other = tmp_path / "data" / "file.csv", tmp_path / "link.csv", tmp_path / "other"
    other.symlink_to(Path("data") / "file.csv")
    link.symlink_to(other)
    for content in (b"one", b"two"):  # first there is no such file
        write_atomically(link, content)
        assert link.readlink() == other
        assert not target.is_symlink()
        assert target.read_bytes() == content
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match=f"symbolic links.*{loop}"):
        write_atomically(loop, b"")
    assert loop.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other pipes")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=f"it is not a regular file: .*/{name}'"):
            write_atomically(tmp_path / name, b"")
    assert (tmp_path / "pipe").is_fifo()


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError, match=r"Is a directory: '[^']*/d'$"):
        write_atomically(tmp_path / "d", b"")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*/a\.json'$") as caught:
            write_atomically(tmp_path / "a.json", b"")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(FileNotFoundError, match="nothing"), atomic_path(tmp_path / "a.json"):
        (tmp_path / "nothing").read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("name", ["a.json", "rows-1.parquet", "noextension", "two.tar.gz"])
def test_what_a_killed_process_was_writing_is_found(tmp_path: Path, name: str) -> None:
    for other in ("part.json", ".hidden", ".part", "a.part", "a.part.json"):
        (tmp_path / other).touch()
    with atomic_path(tmp_path / name) as aside:
        aside.touch()
        assert unfinished_files(tmp_path) == [aside]
    assert unfinished_files(tmp_path) == []
    assert unfinished_files(tmp_path / "none") == []


def zipped(path: Path, *sizes: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number, size in enumerate(sizes):
            file.writestr(str(number), bytes(size))
    return path


def claim(path: Path, before: int, after: int) -> None:
    """Let an archive say that a file in it has another size."""
    content = path.read_bytes()
    assert content.count(struct.pack("<I", before)) == 2  # before the file, and in the directory
    path.write_bytes(content.replace(struct.pack("<I", before), struct.pack("<I", after)))


def test_what_an_archive_claims_is_looked_at(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.npz", 100_001)
    check_expanded_size(path)
    claim(path, 100_001, 3_000_000_000)
    message = rf"a\.npz is refused: its {path.stat().st_size} bytes grow to 3,000,000,000 when read"
    for read in (check_expanded_size, archive):
        with pytest.raises(TooLargeError, match=rf"{message}, and the limit is 1,073,741,824; "):
            read(path)


def test_the_files_of_an_archive_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000_000)
    check_expanded_size(zipped(tmp_path / "a.zip", 500_000, 500_000))
    with pytest.raises(TooLargeError, match="1,000,001"):
        check_expanded_size(zipped(tmp_path / "a.zip", 500_000, 500_001))


def test_a_large_file_may_grow_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000)
    path = tmp_path / "a.npz"
    numbers = np.random.default_rng(0).normal(size=1000)
    np.savez_compressed(path, x=numbers)
    assert most_bytes(path) == 4 * path.stat().st_size
    assert (archive(path)["x"] == numbers).all()


def test_other_files_pass(tmp_path: Path) -> None:
    for content in (b"", b"text", b"PK\x03\x04 cut", b"PK\x05\x06" + bytes(18)):
        (tmp_path / "a").write_bytes(content)
        check_expanded_size(tmp_path / "a")
    check_expanded_size(tmp_path / "nothing")
    check_expanded_size(tmp_path)


@pytest.mark.parametrize("claimed", [1_000, 100_000])
def test_an_archive_that_claims_too_little_is_read_no_further(tmp_path: Path, claimed: int) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(10_000_000))
    claim(path, 80_000_128, claimed)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"a\.npz is not a readable archive of arrays: "):
        archive(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10_000_000


def header(shape: tuple[int, ...]) -> bytes:
    """The beginning of a file of an array."""
    stream = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue()


def test_an_array_that_claims_more_than_its_file_has(tmp_path: Path) -> None:
    content = header((10**6, 10**4)) + bytes(80)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("x.npy", content)
    with pytest.raises(
        ValueError, match=r"a\.npy is not a readable array: it claims an array of 80"
    ):
        array(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"x\.npy claims an array of 80,000,000,000 bytes and has"):
        archive(tmp_path / "a.npz")


@pytest.mark.parametrize("old", [False, True])
def test_a_pickle_that_writes_the_same_bytes_many_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000_000)
    text = b"X" + struct.pack("<I", 100_000) + b"a" * 100_000 + b"q\x00"
    first = b"c_codecs\nencode\nq\x01(" + text + b"X\x06\x00\x00\x00latin1q\x02tR"
    again = b"h\x01(h\x00h\x02tR"
    array = (
        b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(I100000\ntcnumpy\ndtype\n(S'u1'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n"
    )
    many = again * 20 if old else (array + b"h\x00tb") * 20
    path = tmp_path / "a.pkl"
    path.write_bytes(b"(" + first + many + b"t.")
    with pytest.raises(UnsafePickleError, match=r"a\.pkl is refused: its arrays grow to more than"):
        read_arrays(path)
