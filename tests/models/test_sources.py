"""What is known about a network besides its weights, and where it comes from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx.metrics import Reference
from gstarx.models import GCN, ModelSourceError, load_model, load_source, load_weights, save_model
from gstarx.registry import ModelSource


def test_everything_is_kept_with_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    known: dict[str, Any] = {
        "task": "regression",
        "target_names": ("logp", "mass"),
        "features": "molecule",
        "reference": Reference((2.5, 100.0), (1.0, 250.0)),
    }
    scores = {"test": {"rmse": 0.5, "r2": math.nan}}
    written = save_model(path, GCN(9, 4, 2), dataset="own", metrics=scores, **known)
    _, facts = load_model(path)
    assert facts == written
    assert facts.metrics == {"test": {"rmse": 0.5, "r2": None}}
    loaded = load_weights(path)
    for name, value in known.items():
        assert getattr(facts, name) == getattr(loaded, name) == value
    assert loaded.facts["test RMSE"] == "0.5"
    again = load_source(ModelSource(weights=path, task="multilabel"))
    assert again.task == "multilabel"
    save_model(path, GCN(9, 4, 2), task="classification", class_names=["no", "yes"])
    assert load_weights(path).class_names == ("no", "yes")


def test_files_of_before_say_less(tmp_path: Path) -> None:
    for dataset, features, classes in (
        ("nitro", "nitro", ()),
        ("mutag", "mutag", ()),
        ("bbbp", "molecule", ()),
        ("sst2", None, ("negative", "positive")),
        ("own", None, ()),
        (None, None, ()),
    ):
        path = tmp_path / "old.safetensors"
        save_model(path, GCN(7, 4, 2), dataset=dataset)
        facts = path.with_suffix(".json")
        content = json.loads(facts.read_text())
        for name in ("task", "class_names", "target_names", "features", "reference", "metrics"):
            del content[name]
        facts.write_text(json.dumps(content))
        loaded = load_weights(path)
        assert (loaded.task, loaded.features, loaded.class_names) == (
            "classification",
            features,
            classes,
        )
        assert loaded.reference is None


def test_facts_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    save_model(path, GCN(7, 4, 2))
    facts = path.with_suffix(".json")
    known = json.loads(facts.read_text())
    wrong: list[dict[str, Any]] = [
        {"task": "guessing"},
        {"task": ["a"]},
        {"class_names": "ab"},
        {"class_names": 3},
        {"target_names": [1, 2]},
        {"metrics": [1]},
        {"metrics": {"test": 0.5}},
        {"reference": {"range": 1.0}},
        {"reference": {"range": "wide", "mean": 0.0}},
        {"split": {"train": "no base64!"}},
    ]
    for changes in wrong:
        (name,) = changes
        facts.write_text(json.dumps({**known, **changes}))
        with pytest.raises(
            ValueError, match=rf"own\.json does not describe a model: {name}"
        ) as error:
            load_model(path)
        assert len(str(error.value)) < 500
    facts.write_text(json.dumps({**known, "task": "guessing"}))
    with pytest.raises(ValueError, match=r"one of 'classification', .* \(got 'guessing'\)"):
        load_model(path)


def test_the_task_of_a_factory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "own_model_with_a_task.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(2, 1)\ndef needs(width):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = "own_model_with_a_task:make"
    assert load_source(ModelSource(name)).task == "classification"
    assert load_source(ModelSource(name, task="regression")).task == "regression"
    with pytest.raises(ModelSourceError, match="there is no task 'guessing'"):
        load_source(ModelSource(name, task="guessing"))
    with pytest.raises(ModelSourceError, match=r"must need no arguments \(it needs width\)"):
        load_source(ModelSource("own_model_with_a_task:needs"))
    torch.save(GCN(9, 4, 2).state_dict(), "other.pt")
    with pytest.raises(ModelSourceError, match=r"other\.pt do not fit Linear"):
        load_source(ModelSource(name, Path("other.pt")))
