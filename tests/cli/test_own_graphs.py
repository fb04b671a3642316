"""Graphs and networks of one's own, from files that are read without running code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gstarx.cli.console import CommandError
from gstarx.cli.own_graphs import molecule, read_file
from gstarx.datasets import load
from gstarx.datasets.molecules import molecule_graph
from gstarx.models import pretrained, save_model
from tests.cli.commands import MOLECULE, found, refused
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
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    # another test's module of the same name
    monkeypatch.delitem(__import__("sys").modules, "own_module", raising=False)


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


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors", ".json", ".smi", ".csv"])
def test_a_graph_is_the_same_from_every_file(suffix: str) -> None:
    path = Path(f"graphs{suffix}")
    write(path)
    data = load("nitro")[0]
    graphs = read_file(path, "nitro")
    assert torch.equal(graphs[0][1].x, data.x)
    assert torch.equal(graphs[0][1].edge_index, data.edge_index)
    assert len(graphs) == (2 if suffix in (".smi", ".csv") else 1)


def test_many_graphs_of_a_file_are_numbered() -> None:
    torch.save(load("nitro")[:3], "g.pt")
    assert [name for name, _ in read_file(Path("g.pt"), None)] == ["g 0", "g 1", "g 2"]
    records = found("explain", "--file", "g.pt", "--model", "nitro", "--limit", "2", "-e", "random")
    assert [record["graph"] for record in records] == ["g 0", "g 1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pkl", b"", "graphs are read from .pt"),
        ("a.pt", b"nonsense", "is no file of torch.save"),
        ("a.npz", b"nonsense", "cannot be read"),
        ("a.json", b"[1", "cannot be read"),
        ("a.json", b"[]", "holds no graph"),
        ("a.json", b'{"x": [[1]]}', "a graph has x and edge_index (got ['x'])"),
        ("a.csv", b"name\nC\n", "must have a column 'smiles' (got name)"),
        ("a.csv", b"smiles\nCC\nC1C\n", "line 3: this is no molecule to RDKit: 'C1C'"),
        ("a.smi", b"", "holds no molecule"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name: str, content: bytes, message: str) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(CommandError) as caught:
        read_file(Path(name), "nitro")
    assert message in str(caught.value)
    assert name in str(caught.value)


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
    general = molecule_graph(MOLECULE)
    assert general is not None
    assert torch.equal(molecule(MOLECULE, None).x, general.x)
    assert torch.equal(molecule(MOLECULE, "bbbp").x, general.x)
    mutag = molecule(MOLECULE, "mutag").x
    assert mutag.shape == (13, 7)
    assert mutag.sum(dim=1).tolist() == [1] * 13
    for data in load("nitro")[:40]:
        made = molecule(data.smiles, "nitro")
        assert torch.equal(made.x, data.x)
        assert torch.equal(made.edge_index, data.edge_index)


def save_nitro(path: str) -> None:
    state = pretrained("nitro")[0].state_dict()
    if path.endswith(".safetensors"):
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    else:
        torch.save(state, path)


@pytest.mark.parametrize("path", ["weights.pt", "weights.safetensors"])
def test_a_factory_with_weights_is_the_same_network(path: str) -> None:
    save_nitro(path)
    own = found("explain", "nitro", "0", "--model", "own_module:make", "--weights", path)
    assert own["nodes"] == found("explain", "nitro", "0")["nodes"]


def test_stored_weights_alone_are_enough() -> None:
    save_model("mine.safetensors", pretrained("nitro")[0], dataset="nitro")
    own = found("explain", "--smiles", MOLECULE, "--weights", "mine.safetensors")
    assert own["nodes"] == found("explain", "--smiles", MOLECULE)["nodes"]


def test_published_weights_know_their_dataset_by_its_directory() -> None:
    path = checkpoint("mutag/gcn_3l_best.pth")
    record = found("explain", "--smiles", "Cc1ccc([N+](=O)[O-])cc1", "--weights", path)
    assert len(record["nodes"]) == 10
    assert record["prediction"]["class"] in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--model", "own_module:broken"], "the factory failed: KeyError: 'no such layer'", 1),
        (["--model", "own_module:nothing"], "must return a model (got None)", 1),
        (["--model", "own_module:answer"], "it must be a function (got 42)", 1),
        (["--model", "own_module:mak"], "did you mean 'make'?", 1),
        (["--model", "no_such_module:make"], "importing 'no_such_module' failed", 1),
        (
            ["--model", "own_module:smaller", "--weights", "weights.pt"],
            "the weights in weights.pt do not fit GCN",
            1,
        ),
        (["--model", "own_module:make", "--weights", "none.pt"], "no file of weights at", 1),
        (["--model", "own_module:make", "--weights", "own_module.py"], "own_module.py", 1),
        (["--weights", "none.safetensors"], "no file of weights at none.safetensors", 1),
        (["--weights", "weights.pt"], "say --model module:factory as well", 1),
        (["--model", "nitro", "--weights", "weights.pt"], "--weights goes with", 2),
    ],
)
def test_a_network_that_does_not_do_is_explained(
    arguments: list[str], message: str, code: int
) -> None:
    save_nitro("weights.pt")
    assert message in refused("explain", "nitro", "0", *arguments, code=code)
