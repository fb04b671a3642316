"""A training that is interrupted and goes on is the training that was not interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx.models import GAT, GCN, GIN, Network, digest
from gstarx_bench.models import TrainingResult, TrainingSettings, train
from gstarx_bench.models.resuming import Run
from tests.models.small import BRIEF, nodes, rings
from tests.models.test_training import Drowsy

PATIENT = TrainingSettings(0.02, 1e-3, batch_size=7, epochs=12, patience=4)


def begun(
    model: Any,
    dataset: Any,
    path: Path | None,
    settings: TrainingSettings = PATIENT,
    **options: Any,
) -> TrainingResult:
    return train(
        model,
        dataset,
        **{
            "settings": settings,
            "checkpoint": path,
            "checkpoint_seconds": 0.0,
            "progress": False,
            **options,
        },
    )


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the next training die in the epoch of a number, after its first batches."""

    def arrange(number: int) -> None:
        record = Run.record

        def recorded(self: Run, epoch: Any) -> None:
            if epoch.number == number:
                monkeypatch.setattr(Run, "record", record)
                raise KeyboardInterrupt
            record(self, epoch)

        monkeypatch.setattr(Run, "record", recorded)

    return arrange


def same(found: TrainingResult, expected: TrainingResult) -> None:
    assert found.history == expected.history
    assert found.best_epoch == expected.best_epoch
    assert found.accuracy == expected.accuracy
    assert digest(found.model) == digest(expected.model)


def make(kind: str) -> Any:
    torch.manual_seed(0)
    networks: dict[str, type[Network]] = {"gcn": GCN, "gin": GIN, "gat": GAT}
    if kind == "dropout":
        return Drowsy()
    options = {"dropout": 0.3} if kind == "gat" else {}
    return networks[kind](in_channels=3, hidden_channels=6, out_channels=2, **options)


@pytest.mark.parametrize("kind", ["gcn", "gin", "gat", "dropout"])
def test_interrupted_twice_is_the_same_to_the_bit(tmp_path: Path, dies: Any, kind: str) -> None:
    path = tmp_path / "folder" / "training.pt"
    model, dataset = make(kind), rings()
    whole = begun(model, dataset, None)
    for number in (2, 4):
        dies(number)
        torch.rand(number)  # random state of the process must not matter
        with pytest.raises(KeyboardInterrupt):
            begun(model, dataset, path)
        assert len(torch.load(path, weights_only=True)["history"]) == number
    assert [p.name for p in path.parent.iterdir()] == ["training.pt"]
    same(begun(model, dataset, path), whole)


def test_by_name_and_on_nodes(tmp_path: Path, dies: Any) -> None:
    dataset = rings(name="mutag")
    whole = begun("gcn", dataset, None, seed=3)
    dies(3)
    with pytest.raises(KeyboardInterrupt):
        begun("gcn", dataset, tmp_path / "one.pt", seed=3)
    same(begun("gcn", dataset, str(tmp_path / "one.pt"), seed=3), whole)
    model = GCN(2, 4, 2, readout=None)
    whole = begun(model, nodes(), None)
    dies(1)
    with pytest.raises(KeyboardInterrupt):
        begun(model, nodes(), tmp_path / "two.pt")
    same(begun(model, nodes(), tmp_path / "two.pt"), whole)


def test_a_training_that_was_finished_is_not_trained_further(tmp_path: Path, dies: Any) -> None:
    path = tmp_path / "training.pt"
    model = make("gcn")
    first = begun(model, rings(), path, checkpoint_seconds=1e9)
    assert path.exists()
    content = path.read_bytes()
    dies(len(first.history))
    again = begun(model, rings(), path)
    same(again, first)
    assert again.seconds == first.seconds
    assert path.read_bytes() == content


def test_it_is_written_when_it_is_time(tmp_path: Path, dies: Any) -> None:
    path = tmp_path / "training.pt"
    dies(4)
    with pytest.raises(KeyboardInterrupt):
        begun(make("gcn"), rings(), path, checkpoint_seconds=1e9)
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 1}, ["seed was 0 and is 1"]),
        ({"settings": replace(PATIENT, learning_rate=0.1)}, ["learning_rate was 0.02 and is 0.1"]),
        ({"settings": replace(PATIENT, epochs=99)}, ["epochs was 12 and is 99"]),
        ({"settings": replace(PATIENT, patience=None)}, ["patience was 4 and is None"]),
        (
            {"settings": replace(PATIENT, batch_size=8, clip=1.0)},
            ["batch_size was 7 and is 8", "clip was 2.0 and is 1.0"],
        ),
        ({"dataset": rings(seed=1)}, ["dataset_digest was '"]),
        ({"dataset": rings(name="other")}, ["dataset was 'rings' and is 'other'"]),
        (
            {"dataset": rings(split_indices={"train": [0, 1, 2], "val": [3], "test": [4]})},
            ["split_digest was '"],
        ),
        ({"model": GCN(3, 6, 2)}, ["initial_weights was '"]),
        ({"model": GCN(3, 5, 2)}, ["hidden_channels was 6 and is 5", "initial_weights was '"]),
        (
            {"model": GIN(3, 6, 2)},
            [
                "network was 'GCN' and is 'GIN'",
                "readout was 'mean' and is 'max'",
                "initial_weights was '",
                "normalize was True and is None",
                "normalize_embeddings was False and is None",
            ],
        ),
    ],
)
def test_another_training_is_refused(
    tmp_path: Path, dies: Any, changes: dict[str, Any], named: list[str]
) -> None:
    path = tmp_path / "training.pt"
    dies(2)
    with pytest.raises(KeyboardInterrupt):
        begun(make("gcn"), rings(), path)
    content = path.read_bytes()
    options = {"model": make("gcn"), "dataset": rings(), "path": path, **changes}
    with pytest.raises(ValueError, match="holds another training: ") as caught:
        begun(**options)
    message = str(caught.value)
    assert message.startswith(str(path))
    different = message.partition("another training: ")[2].partition(". Train with")[0].split("; ")
    assert len(different) == len(named)
    assert all(found.startswith(words) for found, words in zip(different, named, strict=True))
    assert path.read_bytes() == content


def test_other_masks_are_refused(tmp_path: Path, dies: Any) -> None:
    path, model = tmp_path / "training.pt", GCN(2, 4, 2, readout=None)
    begun(model, nodes(), path, BRIEF)
    other = nodes()
    other.graphs[0].val_mask[0] = True
    with pytest.raises(ValueError, match=r"holds another training: .*split_digest was"):
        begun(model, other, path, BRIEF)


class Payload:
    """What a malicious file would run."""

    def __reduce__(self) -> Any:
        return print, ("code was run",)


def test_checkpoints_that_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "training.pt", make("gcn")
    begun(model, rings(), path, BRIEF)
    good, content = path.read_bytes(), torch.load(path, weights_only=True)
    for bad in (b"", b"no checkpoint", good[: len(good) // 2]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"training\.pt is not a readable checkpoint of a tra"):
            begun(model, rings(), path, BRIEF)
    spoilt: list[Any] = [[1], {"format": 1}, {"format": 1, "identity": 3}, {"identity": Payload()}]
    spoilt += [{**content, "format": 2}]
    for key in ("model", "optimizer", "shuffle", "random", "history", "best_model", "seconds"):
        spoilt.append({name: part for name, part in content.items() if name != key})
    spoilt += [{**content, "model": {}}, {**content, "best": 99}, {**content, "history": [[1]]}]
    spoilt += [{**content, "shuffle": torch.ones(3)}, {**content, "best_model": {}}]
    for bad in spoilt:
        torch.save(bad, path)
        with pytest.raises(
            ValueError, match=r"(?s)is not a readable checkpoint of a training: .*Delete"
        ):
            begun(model, rings(), path, BRIEF)
    assert "code was run" not in capsys.readouterr().out


def test_a_directory_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="checkpoint must be a file"):
        begun(make("gcn"), rings(), tmp_path)


def test_the_random_state_is_as_before_when_it_goes_on(tmp_path: Path, dies: Any) -> None:
    path = tmp_path / "training.pt"
    dies(2)
    state = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        begun(make("dropout"), rings(), path)
    torch.set_rng_state(state)
    model = make("dropout")
    state = torch.get_rng_state()
    begun(model, rings(), path)
    assert torch.equal(torch.get_rng_state(), state)


_SCRIPT = """
import sys, torch
from gstarx_bench.models import train
from tests.models.small import rings
from tests.models.test_resuming import make, LONG
train(make("gin"), rings(), settings=LONG, checkpoint=sys.argv[1], checkpoint_seconds=0.0,
      progress=False)
"""
LONG = TrainingSettings(0.02, batch_size=7, epochs=40)


def test_killed_for_good(tmp_path: Path) -> None:
    """A process that is killed without warning, whatever it is doing."""
    path = tmp_path / "training.pt"
    root = Path(__file__).parents[2]
    search = os.pathsep.join([str(root), *sys.path])
    child = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, str(path)],
        env={**os.environ, "PYTHONPATH": search},
        cwd=root,
    )
    deadline = time.monotonic() + 120
    while not path.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert child.poll() is None, "it was over before it could be killed"
    child.send_signal(signal.SIGKILL)
    child.wait()
    done = len(torch.load(path, weights_only=True)["history"])
    assert 0 < done < 40
    same(begun(make("gin"), rings(), path, LONG), begun(make("gin"), rings(), None, LONG))
