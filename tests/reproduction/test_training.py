"""Trainings are kept as they come, and not done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gstarx import datasets
from gstarx.models import digest, load_model, pretrained
from gstarx_bench.models.recipes import RECIPES, TrainingSettings
from reproduction import RESULTS, training
from reproduction.__main__ import main
from reproduction.tables import ACCURACY, accuracy_table, statistics_table


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two epochs, and a cache of the test's own."""
    monkeypatch.setenv("GSTARX_CACHE", str(tmp_path / "cache"))
    for name in ("motifs", "nitro"):
        known = RECIPES[name]["gcn"]
        short = type(known)(known.options, TrainingSettings(epochs=2, batch_size=64))
        monkeypatch.setitem(RECIPES[name], "gcn", short)


def test_results_are_kept_and_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = training.train_all(["nitro-gcn"], seeds=[0, 1], results=tmp_path)
    assert [one.seed for one in done] == [0, 1]
    assert done[0].weights != done[1].weights
    assert training.read(tmp_path) == done
    model, facts = load_model(tmp_path / "cache" / "weights" / "nitro-gcn-1.safetensors")
    assert digest(model) == done[1].weights
    assert facts.seed == 1

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("trained twice")

    monkeypatch.setattr(training, "_trained", never)
    assert training.train_all(["nitro-gcn"], seeds=[0, 1], results=tmp_path) == done


def test_what_ships_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("GSTARX_CACHE", str(tmp_path / "cache"))
    assert main(["pretrain", "nitro-gcn", "--to", str(tmp_path)]) == 0
    again, facts = load_model(tmp_path / "nitro-gcn.safetensors")
    shipped, known = pretrained("nitro")
    assert facts.dataset_digest == known.dataset_digest == datasets.load("nitro").digest
    assert facts.accuracy == known.accuracy
    # to the bit on the machine it was made on, and as good elsewhere
    assert set(again.state_dict()) == set(shipped.state_dict())


def test_bad_names_and_files_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "nitro", "--results", str(tmp_path)]) == 1
    assert "there is no training 'nitro'; there are mutag-gcn" in capsys.readouterr().err
    assert main(["explain", "--stages", "others", "--results", str(tmp_path)]) == 1
    assert "there is no stage 'others'; there are headline, remedies" in capsys.readouterr().err
    assert main(["explain", "mutag", "--results", str(tmp_path)]) == 1
    assert "there is no setup 'mutag'; there are mutag-gcn" in capsys.readouterr().err
    assert main(["measure", "fit", "--results", str(tmp_path)]) == 1
    assert "there is no figure or claim 'fit'; there are small_weights" in capsys.readouterr().err
    (tmp_path / "training.json").write_text('[{"dataset": "x"}]', encoding="utf-8")
    with pytest.raises(ValueError, match="is not a list of trainings"):
        training.read(tmp_path)
    (tmp_path / "training.json").write_text("not json", encoding="utf-8")
    with pytest.raises(ValueError, match="is not a list of trainings"):
        training.read(tmp_path)


def test_accuracies_are_means_over_seeds(tmp_path: Path) -> None:
    row = {
        "dataset": "bace",
        "network": "gcn",
        "best_epoch": 1,
        "epochs": 2,
        "seconds": 3.0,
        "weights": "",
        "dataset_digest": "",
    }
    rows = [
        {**row, "seed": seed, "accuracy": {"train": 1.0, "val": 0.5, "test": test}}
        for seed, test in ((0, 0.7), (1, 0.8))
    ]
    (tmp_path / "training.json").write_text(json.dumps(rows), encoding="utf-8")
    table = accuracy_table(tmp_path)
    assert "| bace | GCN | 2 | 0.5000 | 0.7500 | 0.700, 0.800 | 0.8026 | 3 |" in table
    assert "| bbbp | GCN | none yet | | | | 0.8634 | |" in table
    assert set(ACCURACY) <= set(training.TRAININGS)


def test_a_missing_dataset_is_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSTARX_DATA", str(tmp_path / "nothing"))
    table = statistics_table(["bace"])
    assert "| bace | missing: " in table


def test_the_committed_trainings_are_complete() -> None:
    committed = RESULTS
    found = {one.key: one for one in training.read(committed)}
    for name, least in (("sst2-gcn", 0.81), ("sst2-gat", 0.82), ("tweets-gcn", 0.63)):
        accuracies = [found[f"{name}-{seed}"].accuracy["test"] for seed in range(3)]
        assert sum(accuracies) / 3 >= least
        best = max((found[f"{name}-{s}"] for s in range(3)), key=lambda one: one.accuracy["val"])
        assert pretrained(name)[1].digest == best.weights
