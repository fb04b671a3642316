"""Graphs and networks of one's own, from files that are read without running code."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from gstarx.datasets import load, load_source, smiles_graph, title_of
from gstarx.models import pretrained, save_model
from gstarx.registry import DatasetSource
from tests.cli.commands import MOLECULE, environment, found, gstarx, refused, scores
from tests.shared import checkpoint

FACTORY = """
from gstarx.models import GCN

answer = 42


def make():
    return GCN(8, 32, 2, readout="max")


def smaller():
    return GCN(8, 16, 2, readout="max")


def broken():
    raise KeyError("no such layer")


def nothing():
    return None


def sized(width):
    return GCN(width, 32, 2)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    # another test's module of the same name
    monkeypatch.delitem(__import__("sys").modules, "own_module", raising=False)


def read_file(path: Path, features: str | None) -> list[tuple[str, Data]]:
    dataset = load_source(DatasetSource(file=str(path), features=features or "molecule"))
    return [(title_of(graph, f"{dataset.name} {at}"), graph) for at, graph in enumerate(dataset)]


def tensors() -> dict[str, torch.Tensor]:
    data = load("nitro")[0]
    return {"x": data.x.contiguous(), "edge_index": data.edge_index.contiguous()}


def write(path: Path) -> None:
    data = tensors()
    if path.suffix == ".pt":
        torch.save([load("nitro")[0]], path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in data.items()})
    elif path.suffix == ".safetensors":
        save_file(data, path)
    elif path.suffix == ".json":
        path.write_text(json.dumps({name: tensor.tolist() for name, tensor in data.items()}))
    elif path.suffix == ".smi":
        path.write_text(f"{load('nitro')[0].smiles} first\n\n{MOLECULE}\n")
    else:
        path.write_text(f"id,SMILES\n1,{load('nitro')[0].smiles}\n2,{MOLECULE}\n")


def test_a_graph_is_the_same_from_every_file() -> None:
    for suffix in (".pt", ".npz", ".safetensors", ".json", ".smi", ".csv"):
        path = Path(f"graphs{suffix}")
        write(path)
        data = load("nitro")[0]
        graphs = read_file(path, "nitro")
        assert torch.equal(graphs[0][1].x, data.x)
        assert torch.equal(graphs[0][1].edge_index, data.edge_index)
        assert len(graphs) == (2 if suffix in (".smi", ".csv") else 1)


def test_many_graphs_of_a_file_are_numbered() -> None:
    plain = [Data(x=graph.x, edge_index=graph.edge_index) for graph in load("nitro")[:3]]
    torch.save(plain, "g.pt")
    assert [name for name, _ in read_file(Path("g.pt"), None)] == ["g 0", "g 1", "g 2"]
    records = found("explain", "--file", "g.pt", "--model", "nitro", "--limit", "2", "-e", "random")
    assert [record["graph"] for record in records] == ["g 0", "g 1"]
    plain[1].name = "the second"
    torch.save(plain, "g.pt")
    assert [name for name, _ in read_file(Path("g.pt"), None)] == ["g 0", "the second", "g 2"]


def test_a_file_that_cannot_be_read_is_named() -> None:
    for name, content, message in [
        ("a.pkl", b"", "graphs are read from .pt"),
        ("a.npz", b"nonsense", "cannot be read"),
        ("a.json", b"[]", "holds no graph"),
        ("a.json", b'{"x": [[1]]}', "a graph has x and edge_index (got ['x'])"),
        ("a.csv", b"smiles\nC1C\n", "line 2: unclosed ring: 'C1C'"),
        ("a.smi", b"", "a.smi is empty"),
        (
            "a.csv",
            b"smiles,\xc3\xa9\nCC,\nCC,\xe9\n",
            "a.csv line 3: not a text in UTF-8 (got the byte 0xe9)",
        ),
        ("a.csv", b'smiles\nCC\n"CC\nC\n', "a.csv line 3: unexpected end of data"),
        ("a.csv", b"smiles,id\nCC\n", "line 2: 1 cells where the header has 2"),
        ("a.smi", b"C" * 10**6, "line 1: a SMILES has at most 131,072 characters"),
        ("a.csv", b"x," * 10**6, "has two columns of one name: x"),
        ("a.json", b"[" * 10**5, "a.json cannot be read: RecursionError"),
    ]:
        Path(name).write_bytes(content)
        with pytest.raises((ValueError, OSError)) as caught:
            read_file(Path(name), "nitro")
        assert message in str(caught.value)
        assert name in str(caught.value)
        assert len(str(caught.value)) < 600


def test_a_directory_is_no_file() -> None:
    for name in ("folder", "folder.csv", "folder.npz"):
        Path(name).mkdir()
        with pytest.raises(OSError, match=f"{name} is a directory, where a file of "):
            read_file(Path(name), "nitro")


def test_a_byte_order_mark_and_other_ends_of_lines() -> None:
    files = {"a.csv": ["Smiles", "CC", "", "CCO"], "a.smi": ["CC", "", "CCO x y"]}
    for end, name in ((end, name) for end in ("\n", "\r\n", "\r") for name in files):
        Path(name).write_bytes(end.join(files[name]).encode("utf-8-sig"))
        assert [graph.smiles for _, graph in read_file(Path(name), "nitro")] == ["CC", "CCO"]
    Path("a.json").write_bytes(
        b"\xef\xbb\xbf" + json.dumps({"x": [[1.0]], "edge_index": [[], []]}).encode()
    )
    assert read_file(Path("a.json"), None)[0][1].x.tolist() == [[1.0]]


def test_a_long_argument_is_not_repeated() -> None:
    long = "x" * 100_000
    for arguments in (["nitro", long], ["--smiles", long], ["nitro", "0", "-e", long], [long, "0"]):
        done = gstarx("explain", *arguments, code=1 if "--smiles" in arguments else 2)
        assert len(done.stderr) < 5000
    assert len(gstarx(long, code=2).stderr) < 5000


def packed(path: Path, write: Callable[[Path], None]) -> None:
    """Write a zip archive and compress it, which ``torch.save`` does not."""
    write(path)
    with zipfile.ZipFile(path) as plain:
        content = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def zeros() -> torch.Tensor:
    return torch.zeros(1_000_000)


GROWING: dict[str, Callable[[Path], None]] = {
    ".npz": lambda path: np.savez_compressed(path, x=zeros().numpy()),
    ".pt": lambda path: packed(path, lambda path: torch.save([zeros()], path)),
}


@pytest.mark.parametrize("suffix", GROWING)
def test_a_small_file_that_grows_is_not_read(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(f"graphs{suffix}")
    GROWING[suffix](path)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000_000)
    monkeypatch.setattr(np, "load", None)
    monkeypatch.setattr(torch, "load", None)
    said = refused("explain", "--file", path, "--model", "nitro")
    assert f"{path} is refused: its {path.stat().st_size:,} bytes grow to 4,00" in said
    assert "the limit is 1,000,000" in said


def test_weights_that_grow_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("weights.pt", "weights.pth"):
        packed(Path(name), lambda path: torch.save({"net": {"a": zeros()}}, path))
    monkeypatch.setattr("gstarx._internal.files.LIMIT", 1_000_000)
    monkeypatch.setattr(torch, "load", None)
    own = ["--model", "own_module:make", "--weights", "weights.pt"]
    for arguments in (own, ["--weights", "weights.pth"]):
        assert "grow to 4,00" in refused("explain", "nitro", "0", *arguments)


def test_a_view_of_few_numbers_is_as_large_as_its_shape() -> None:
    torch.save([{"x": torch.zeros(1).expand(10**10), "edge_index": torch.zeros(2, 0)}], "a.pt")
    said = refused("explain", "--file", "a.pt", "--model", "nitro")
    assert "bytes grow to 40,000,000,000 when read, and the limit is 1,073,741,824" in said


def test_code_in_a_file_is_not_run() -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return Path.touch, (Path("sprung"),)

    torch.save(Trap(), "trap.pt")
    assert "such a file can run code" in refused("explain", "--file", "trap.pt", "--model", "nitro")
    save_nitro("weights.pt")
    torch.save(Trap(), "weights.pt")
    said = refused("explain", "nitro", "0", "--model", "own_module:make", "--weights", "weights.pt")
    assert "holds more than weights" in said
    assert not Path("sprung").exists()


def test_molecules_have_the_features_of_the_network() -> None:
    general = smiles_graph(MOLECULE)
    assert general is not None
    for dataset in (None, "bbbp"):
        assert torch.equal(smiles_graph(MOLECULE, dataset).x, general.x)
    mutag = smiles_graph(MOLECULE, "mutag").x
    assert mutag.shape == (13, 7)
    assert mutag.sum(dim=1).tolist() == [1] * 13
    for data in load("nitro")[:40]:
        made = smiles_graph(data.smiles, "nitro")
        assert torch.equal(made.x, data.x)
        assert torch.equal(made.edge_index, data.edge_index)


def save_nitro(path: str) -> None:
    state = pretrained("nitro")[0].state_dict()
    if path.endswith(".safetensors"):
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    else:
        torch.save(state, path)


@pytest.mark.parametrize("path", ["weights.pt"])
def test_a_factory_with_weights_is_the_same_network(path: str) -> None:
    save_nitro(path)
    own = found("explain", "nitro", "0", "--model", "own_module:make", "--weights", path)
    assert scores(own) == scores(found("explain", "nitro", "0"))


def test_stored_weights_alone_are_enough() -> None:
    save_model("mine.safetensors", pretrained("nitro")[0], dataset="nitro")
    own = found("explain", "--smiles", MOLECULE, "--weights", "mine.safetensors")
    assert scores(own) == scores(found("explain", "--smiles", MOLECULE))


def test_published_weights_know_their_dataset_by_its_directory() -> None:
    path = checkpoint("mutag/gcn_3l_best.pth")
    record = found("explain", "--smiles", "Cc1ccc([N+](=O)[O-])cc1", "--weights", path)
    assert len(record["labels"]) == 10
    assert record["prediction"]["class"] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--model", "own_module:broken"], "the factory failed: KeyError: 'no such layer'", 1),
        (["--model", "own_module:sized"], "the factory must need no arguments (it needs width)", 1),
        (["--model", "own_module:mak"], "did you mean 'make'?", 1),
        (
            ["--model", "own_module:smaller", "--weights", "weights.pt"],
            "the weights in weights.pt do not fit GCN",
            1,
        ),
        (["--weights", "weights.pt"], "say --model module:factory as well", 1),
        (["--model", "nitro", "--weights", "weights.pt"], "--weights goes with", 2),
    ],
)
def test_a_network_that_does_not_do_is_explained(
    arguments: list[str], message: str, code: int
) -> None:
    save_nitro("weights.pt")
    assert message in refused("explain", "nitro", "0", *arguments, code=code)


@pytest.mark.parametrize("command", ["explain", "report"])
def test_a_wrong_smiles_is_refused_before_torch_is_loaded(command: str) -> None:
    code = (
        "import sys\nfrom gstarx.cli import main\n"
        f"sys.argv = ['gstarx', {command!r}, '--smiles', 'C(C']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 1, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert "no molecule" in done.stderr
