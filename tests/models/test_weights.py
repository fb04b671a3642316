"""Our own files of weights, whole and damaged."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from gstarx.metrics import Reference
from gstarx.models import (
    GAT,
    GCN,
    GIN,
    ModelFacts,
    Network,
    digest,
    load_model,
    save_model,
)
from gstarx.models.sources import load_weights
from tests.gnn.one_by_one import graph
from tests.shared import mutag_gcn


def networks() -> list[Network]:
    torch.manual_seed(0)
    return [
        GCN(4, 8, 3, normalize=False, readout="sum"),
        GIN(4, 8, 3, num_layers=2),
        GAT(4, 3, 3, heads=2, readout=None),
    ]


@pytest.mark.parametrize("position", range(3))
def test_what_is_saved_is_loaded(tmp_path: Path, position: int) -> None:
    model = networks()[position].train()
    data = graph("messy")
    model(data.x, data.edge_index)  # statistics of batch normalization are weights too
    path = tmp_path / "deep" / "model.best.safetensors"
    written = save_model(
        path,
        model,
        dataset="mutag",
        dataset_digest="ab",
        seed=3,
        accuracy={"test": 0.85},
        notes={"epochs": 7},
    )
    loaded, facts = load_model(str(path))
    assert type(loaded) is type(model)
    assert loaded.config == model.config == facts.config
    assert not any(module.training for module in loaded.modules())
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    assert digest(loaded) == digest(model) == facts.digest
    assert facts == written
    assert facts == ModelFacts(
        network=["gcn", "gin", "gat"][position],
        config=model.config,
        digest=digest(model),
        dataset="mutag",
        dataset_digest="ab",
        seed=3,
        accuracy={"test": 0.85},
        notes={"epochs": 7},
    )
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "model.best.json",
        "model.best.safetensors",
    ]
    assert model.training


def test_facts_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(path, networks()[0])
    facts = load_model(path)[1]
    assert (facts.dataset, facts.dataset_digest, facts.seed, facts.accuracy) == (None,) * 4
    assert facts.notes == {}


def test_a_model_replaces_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    first, second, _ = networks()
    save_model(path, first)
    save_model(path, second)
    assert isinstance(load_model(path)[0], GIN)


def test_a_published_model_can_be_kept(tmp_path: Path) -> None:
    model = mutag_gcn()
    path = tmp_path / "model.safetensors"
    save_model(path, model, dataset="mutag")
    assert digest(load_model(path)[0]) == digest(model)


def test_the_digest_is_of_names_shapes_types_and_bytes() -> None:
    model = nn.Linear(2, 3)
    seen = {digest(model)}
    assert digest(model) in seen

    def changed(change: Callable[[nn.Module], Any]) -> str:
        other = nn.Linear(2, 3)
        other.load_state_dict(model.state_dict())
        assert digest(other) == digest(model)
        return digest(change(other) or other)

    def flip(other: nn.Module) -> None:
        with torch.no_grad():
            other.bias[2] = torch.nextafter(other.bias[2], torch.tensor(torch.inf))

    def turn(other: nn.Module) -> None:
        other.weight = nn.Parameter(other.weight.detach().reshape(2, 3))

    def rename(other: nn.Module) -> None:
        other.wait = other.weight
        del other.weight

    changes: list[Callable[[nn.Module], Any]] = [flip, turn, rename, nn.Module.double]
    changes += [nn.Module.bfloat16, lambda other: nn.Sequential(other)]
    found = {changed(change) for change in changes}
    assert len(found | seen) == len(changes) + 1
    assert all(len(word) == 64 for word in found)


def test_the_digest_is_always_the_same() -> None:
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -2.0]]))
        model.bias.zero_()
    content = b"bias (1,) torch.float32\n" + struct.pack("<f", 0.0)
    content += b"weight (1, 2) torch.float32\n" + struct.pack("<ff", 1.0, -2.0)
    assert digest(model) == hashlib.sha256(content).hexdigest()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model(path, networks()[1])
    return path


def edit(path: Path, **changes: Any) -> None:
    file = path.with_suffix(".json")
    content = json.loads(file.read_text())
    for key, value in changes.items():
        if value is ...:
            del content[key]
        else:
            content[key] = value
    file.write_text(json.dumps(content))


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_file_that_is_missing(stored: Path, suffix: str) -> None:
    stored.with_suffix(suffix).unlink()
    with pytest.raises(FileNotFoundError, match=rf"no model at .*: model\{suffix} is missing"):
        load_model(stored)


def test_weights_that_are_damaged(stored: Path) -> None:
    content = bytearray(stored.read_bytes())
    for keep in (0, 4, 100, -1):
        stored.write_bytes(content[:keep])
        with pytest.raises(ValueError, match=r"\.safetensors is not a readable safetensors file"):
            load_model(stored)
    content[-3] ^= 1
    stored.write_bytes(content)
    with pytest.raises(ValueError, match="do not belong together: the digest of the weights must"):
        load_model(stored)


def test_facts_that_are_garbled(stored: Path) -> None:
    for content in ("", "{", '{"format": 1', "\ud800", "[" * 100_000):
        stored.with_suffix(".json").write_bytes(content.encode("utf-8", "surrogatepass"))
        with pytest.raises(ValueError, match=r"model\.json is not readable as JSON"):
            load_model(stored)
    for content in ("[]", "{}", '{"format": 2}', "3"):
        stored.with_suffix(".json").write_text(content)
        with pytest.raises(ValueError, match=r"must describe a model in format 1 \(got"):
            load_model(stored)


def test_facts_that_do_not_fit(stored: Path) -> None:
    whole = stored.with_suffix(".json").read_text()
    for changes, message in (
        ({"network": ...}, "model: network: Field required"),
        ({"digest": ...}, "model: digest: Field required"),
        ({"config": [1]}, r"model: config: .* \(got \[1\]\)"),
        ({"color": "red"}, "model: color: Unexpected keyword argument"),
        ({"network": "rnn"}, r"network: it must be one of 'gcn', 'gin', 'gat' \(got 'rnn'\)"),
        ({"network": ["gcn"]}, "network: it must be one of 'gcn', 'gin', 'gat'"),
        ({"network": "gcn"}, "are not those of the gcn"),
        ({"config": {"in_channels": 4}}, "does not describe a gin"),
        ({"digest": "0" * 64}, r"must be 000.* \(got "),
        ({"dataset": ["mutag"]}, r"dataset: .* \(got \['mutag'\]\)"),
        ({"seed": "1"}, "seed: .*integer"),
        ({"notes": [1]}, "notes: .*dictionary"),
        ({"accuracy": [0.5]}, "accuracy: .*dictionary"),
        ({"accuracy": {"test": None}}, r"accuracy\.test: .*number"),
        ({"metrics": {"test": {"rmse": "1"}}}, r"metrics\.test\.rmse: .*number"),
        ({"reference": {"range": 10**400, "mean": 0}}, "range of a reference must be a finite"),
    ):
        stored.with_suffix(".json").write_text(whole)
        edit(stored, **changes)
        with pytest.raises(ValueError, match=message):
            load_model(stored)


#: Values of all kinds that JSON can hold.
ODD: list[Any] = [None, True, 0, -1, 1.5, float("nan"), 10**30, 10**400, "", "x", "\ud800"]
ODD += [[], [1], [[]], {}, {"a": 1}, {"train": None}, {"train": {"rmse": "x"}}]


def places(content: Any) -> Iterator[tuple[Any, ...]]:
    """Where there is a value: the keys that lead to it."""
    for key, value in content.items() if isinstance(content, dict) else ():
        yield (key,)
        yield from ((key, *rest) for rest in places(value))


@pytest.mark.parametrize("position", range(3))
def test_a_description_with_any_value_anywhere_is_read_or_refused(
    tmp_path: Path, position: int
) -> None:
    path = tmp_path / "model.safetensors"
    facts: dict[str, Any] = {"dataset": "mutag", "dataset_digest": "ab", "seed": 1, "label": "y"}
    facts |= {"accuracy": {"train": 0.5}, "metrics": {"train": {"rmse": 1.0}}, "notes": {"a": 1}}
    facts |= {"features": "molecule", "reference": Reference(1.0, 0.5), "class_names": ("a", "b")}
    save_model(path, networks()[position], **facts)
    text = path.with_suffix(".json").read_text()
    read = 0
    for place in places(json.loads(text)):
        for value in ODD:
            content = json.loads(text)
            inside = content
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = value
            path.with_suffix(".json").write_text(json.dumps(content))
            with suppress(ValueError):
                load_weights(path)
                read += 1
    assert 20 < read < 120


def test_a_config_of_other_sizes_or_options(stored: Path) -> None:
    config = json.loads(stored.with_suffix(".json").read_text())["config"]
    for change in ({"hidden_channels": 9}, {"num_layers": 3}, {"num_layers": 1}):
        edit(stored, config={**config, **change})
        with pytest.raises(ValueError, match=r"are not those of the gin that model\.json describ"):
            load_model(stored)
    for change in ({"readout": "median"}, {"depth": 3}, {"num_layers": 0}, {"in_channels": "4"}):
        edit(stored, config={**config, **change})
        with pytest.raises(ValueError, match=r"model\.json does not describe a gin"):
            load_model(stored)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_layers": 10_000_000}, r"10000000 layers have 100000002 tensors \(got 22\)"),
        (
            {"hidden_channels": 300_000},
            r"'convs.0.nn.0.weight' must have shape \(300000, 4\) \(got",
        ),
        ({"in_channels": 10**15}, r"shape \(8, 1000000000000000\) \(got \(8, 4\)\)"),
        ({"hidden_channels": 10**12}, "does not describe a gin"),
        ({"out_channels": 10**30}, "does not describe a gin"),
    ],
)
def test_a_network_is_compared_with_its_file_before_it_is_built(
    stored: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, int], message: str
) -> None:
    built: list[str] = []
    first = nn.Linear.reset_parameters

    def reset(self: nn.Linear) -> None:
        built.append(self.weight.device.type)
        assert len(built) < 100
        first(self)

    monkeypatch.setattr(nn.Linear, "reset_parameters", reset)
    config = json.loads(stored.with_suffix(".json").read_text())["config"]
    edit(stored, config={**config, **change})
    with pytest.raises(ValueError, match=message):
        load_model(stored)
    assert set(built) <= {"meta"}  # which takes no memory


def test_networks_of_any_depth_are_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for kind, layers in product((GCN, GIN, GAT), (1, 2, 3, 12)):
        written = save_model(path, kind(4, 3, 2, num_layers=layers))
        assert load_model(path)[1] == written


def test_tensors_of_another_model(stored: Path) -> None:
    tensors = load_file(stored)
    bias = tensors.pop("classifier.bias")
    save_file(tensors, stored)
    with pytest.raises(ValueError, match="are not those of the gin"):
        load_model(stored)
    save_file({**tensors, "classifier.bass": bias}, stored)
    with pytest.raises(ValueError, match=r"'classifier\.bias' must have .* \(got no such tensor\)"):
        load_model(stored)


def test_a_crash_between_the_two_files_is_found(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gstarx.models import weights

    def only_weights(path: Path, content: bytes) -> None:
        if path.suffix == ".json":
            raise KeyboardInterrupt
        path.write_bytes(content)

    monkeypatch.setattr(weights, "write_atomically", only_weights)
    with pytest.raises(KeyboardInterrupt):
        save_model(stored, GIN(4, 8, 3, num_layers=2))
    with pytest.raises(ValueError, match="do not belong together"):
        load_model(stored)


def test_paths_and_models_that_are_refused(tmp_path: Path) -> None:
    for path in ("model.pt", "model", "model.json"):
        with pytest.raises(ValueError, match=r"must end in '\.safetensors' \(got"):
            save_model(tmp_path / path, networks()[0])
        with pytest.raises(ValueError, match=r"must end in '\.safetensors' \(got"):
            load_model(tmp_path / path)

    class Own(GCN):
        pass

    for model in (nn.Linear(2, 2), Own(4, 8, 2)):
        with pytest.raises(TypeError, match="model must be one of GCN, GIN, GAT"):
            save_model(tmp_path / "model.safetensors", model)  # type: ignore[arg-type]
    for options in ({"notes": {"a": object()}}, {"accuracy": {"test": float("nan")}}):
        with pytest.raises((TypeError, ValueError), match=r"JSON|cannot be stored: accuracy"):
            save_model(tmp_path / "model.safetensors", networks()[0], **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
