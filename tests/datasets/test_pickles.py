"""Arrays come out of pickles; programs do not."""

from __future__ import annotations

import os
import pickle
import subprocess
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gstarx_bench.datasets.raw_files import UnsafePickleError, read_arrays
from tests.shared import DATA


def written(path: Path, content: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int8).reshape(2, 3)),
    np.array([True, False]),
    np.arange(4, dtype=">i4"),
    np.arange(3, dtype=np.float16),
    np.array([1 + 2j]),
    np.zeros((0, 5), dtype=np.float32),
    np.array(3.5),
    np.arange(10)[::3],
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_of_numbers(tmp_path: Path, protocol: int) -> None:
    for array in ARRAYS:
        (read,) = read_arrays(written(tmp_path / "a.pkl", array, protocol))
        assert read.dtype == array.dtype.newbyteorder("=")
        assert read.shape == array.shape
        assert (read == array).all()
        assert read.flags.writeable
    for content in (
        (ARRAYS[0], ARRAYS[1]),
        [ARRAYS[0], ARRAYS[1]],
        {"a": ARRAYS[0], "b": ARRAYS[1]},
    ):
        first, second = read_arrays(written(tmp_path / "a.pkl", content, protocol))
        assert (first == ARRAYS[0]).all()
        assert (second == ARRAYS[1]).all()
    assert read_arrays(written(tmp_path / "a.pkl", (), protocol)) == ()


def test_names_of_numpy_1(tmp_path: Path) -> None:
    content = pickle.dumps(ARRAYS[0], protocol=2)
    older = content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "a.pkl").write_bytes(older)
    assert (read_arrays(tmp_path / "a.pkl")[0] == ARRAYS[0]).all()


def test_the_published_file() -> None:
    path = DATA / "BA_2Motifs" / "raw" / "BA_2Motifs.pkl"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    assert [array.shape for array in read_arrays(path)] == [
        (1000, 25, 25),
        (1000, 25, 10),
        (1000, 2),
    ]


class Malicious:
    """Runs a command where ``pickle.load`` reads it."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> Any:
        return self.function, self.args


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_that_runs_something_is_refused(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "mark"
    for attack in (
        Malicious(os.system, f"touch {mark}"),
        Malicious(subprocess.check_output, ["touch", str(mark)]),
        Malicious(eval, f"open({str(mark)!r}, 'w')"),
        Malicious(getattr, "text", "upper"),
        Malicious(open, str(mark), "w"),
    ):
        for content in (attack, [attack, ARRAYS[0]], {"a": attack}):
            path = written(tmp_path / "a.pkl", content, protocol)
            with pytest.raises(UnsafePickleError, match=r"a.pkl is refused: it refers to \w+"):
                read_arrays(path)
            assert not mark.exists()
    # The attack is real: unguarded, it does what it says.
    pickle.loads(pickle.dumps(Malicious(open, str(mark), "w"))).close()
    assert mark.exists()


def test_what_is_no_array_of_numbers_is_refused(tmp_path: Path) -> None:
    for content in (
        OrderedDict(a=1),
        np.float64(1.5),
        np.array([object()]),
        np.array([None, 1], dtype=object),
        np.array(["text"]),
        np.array([b"bytes"]),
        np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.ma.masked_array([1, 2], [True, False]),
    ):
        with pytest.raises(UnsafePickleError, match="is refused"):
            read_arrays(written(tmp_path / "a.pkl", content))
    for other in (1, "text", None, [1, 2], {"a": [ARRAYS[0]]}, ([ARRAYS[0]],)):
        with pytest.raises(UnsafePickleError, match="must hold an array, or a tuple, list or"):
            read_arrays(written(tmp_path / "a.pkl", other))


def rebuilt(code: bytes, state: bytes) -> bytes:
    """A hand-written pickle of an array: a number type by its code, and the type's own state."""
    return (
        b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(I1\ntcnumpy\ndtype\n(" + code + b"I0\nI1\ntR" + state + b"I00\nS'12345678'\ntb."
    )


PLAIN = b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"


def test_a_type_cannot_lie_about_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(rebuilt(b"S'f8'\n", PLAIN))
    assert read_arrays(path)[0].tobytes() == b"12345678"
    for code, state in (
        (b"S'O'\n", PLAIN),  # bytes taken for pointers
        (b"S'f8,f8'\n", PLAIN),
        (b"I7\n", PLAIN),
        (b"S'f8'\n", b"(I3\nS'<'\nNNS'fields'\nI-1\nI-1\nI0\ntb"),
        (b"S'f8'\n", b"(I3\nS'?'\nNNNI-1\nI-1\nI0\ntb"),
    ):
        path.write_bytes(rebuilt(code, state))
        with pytest.raises(UnsafePickleError, match=r"a\.pkl is refused"):
            read_arrays(path)


def test_a_damaged_pickle(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    with pytest.raises(FileNotFoundError):
        read_arrays(path)
    whole = pickle.dumps(np.arange(100.0))
    for content in (
        b"",
        whole[:-20],
        whole[: len(whole) // 2],
        b"PK\x03\x04 this is a zip file",
        b"just text\n",
        rebuilt(b"S'f4'\n", PLAIN),  # eight bytes for one number of four
        rebuilt(b"S'no type'\n", PLAIN),
        b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR.",
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.pkl is not a readable pickle"):
            read_arrays(path)
