"""Runs in this process: the content of rows, changed inputs, and failures."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gstarx import datasets, expected_output
from gstarx.explainers import create, registry
from gstarx.metrics import SPARSITIES, evaluate, select_nodes
from gstarx.models import GCN, load_model, save_model
from gstarx.values import PrecisionWarning
from gstarx_bench.runs import (
    ChangedInput,
    DatasetSpec,
    ModelSpec,
    RunReport,
    RunSpec,
    read,
    resolution,
    resume,
    retry_failed,
    run,
)
from tests.runs.same_rows import assert_same_rows, lasting

Make = Callable[..., RunSpec]


def finish(spec: RunSpec, store: Path, **options: Any) -> RunReport:
    return run(spec, store, **{"workers": 1, "progress": False, **options})


def test_a_row_has_the_numbers_of_a_plain_loop(spec: Make, weights: Path, tmp_path: Path) -> None:
    run_spec = spec("gstarx", 3, baseline="train", seed=5, removal="zero_filling")
    report = finish(run_spec, tmp_path)
    assert (report.graphs, report.found, report.done, report.failed) == (3, 0, 3, 0)
    model, _ = load_model(weights)
    dataset = datasets.load("nitro")
    baseline = expected_output(model, dataset.split("train"))
    explainer = create("gstarx", dataset="nitro", baseline=baseline, removal="zero_filling")
    for position, row in enumerate(read(tmp_path).to_pylist()):
        seed = np.random.default_rng(np.random.SeedSequence([5, position]))
        explanation = explainer.explain(model, dataset[position], seed=seed)
        assert explanation.node_scores is not None
        assert row["graph"] == position
        assert row["scores"] == explanation.node_scores.tolist()
        assert row["std_errors"] == explanation.std_errors.tolist()
        assert row["exact"] is True
        assert row["evaluations"] == explanation.evaluations
        assert row["target"] == explanation.target_class
        assert row["sparsities"] == list(SPARSITIES)
        assert row["error"] is None
        assert row["wall_seconds"] > 0
        assert row["split"] in ("train", "val", "test")
        assert position in dataset.split_indices[row["split"]]
        for rule, positive in (("", False), ("positive_", True)):
            nodes = select_nodes(explanation.node_scores, 0.7, positive_only=positive)
            at = SPARSITIES.index(0.7)
            assert row[f"{rule}selected"][at] == sorted(nodes.tolist())
            expected = evaluate(model, dataset[position], nodes, removal="zero_filling")
            assert row[f"{rule}fidelity"][at] == pytest.approx(expected.fidelity, abs=1e-6)
            assert row[f"{rule}sparsity"][at] == expected.sparsity
            harmonic = row[f"{rule}harmonic_fidelity"][at]
            assert harmonic == pytest.approx(expected.harmonic_fidelity, abs=1e-6)


def test_an_explainer_that_selects_sets_has_no_scores(spec: Make, tmp_path: Path) -> None:
    finish(spec({"name": "subgraphx", "options": {"rollouts": 2}}, 1), tmp_path)
    (row,) = read(tmp_path).to_pylist()
    assert row["scores"] is None
    assert row["exact"] is None
    assert len(row["selected"]) == len(SPARSITIES)
    assert row["error"] is None


def test_stored_graphs_are_not_explained_again(spec: Make, tmp_path: Path) -> None:
    finish(spec(count=4), tmp_path)
    before = read(tmp_path)
    report = finish(spec(count=6), tmp_path)
    assert (report.graphs, report.found, report.done) == (6, 4, 2)
    assert read(tmp_path).slice(0, 4).equals(before)
    assert finish(spec(count=6), tmp_path).done == 0


def test_rows_do_not_depend_on_the_order_or_on_others(spec: Make, tmp_path: Path) -> None:
    run_spec = spec("random", graphs=(5, 3, 8), seed=2)
    finish(run_spec, tmp_path / "few")
    finish(spec("random", 9, seed=2), tmp_path / "many")
    few, many = lasting(tmp_path / "few"), lasting(tmp_path / "many")
    assert few.column("graph").to_pylist() == [3, 5, 8]
    assert many.take([3, 5, 8]).equals(few)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"removal": "zero_filling"},
        {"baseline": "train"},
        {"baseline": "singletons"},
        {"baseline": (0.5, 0.5)},
        {"sparsities": (0.5,)},
        {"explainer": {"name": "single_node"}},
        {"explainer": {"name": "leave_one_out", "options": {"payoff": "prob"}}},
        {"dataset": {"name": "nitro", "options": {"split": "random"}}},
    ],
)
def test_a_changed_setting_is_another_run(spec: Make, change: dict[str, Any]) -> None:
    content = spec().model_dump()
    one = resolution.resolve(RunSpec(**content))
    other = resolution.resolve(RunSpec(**(content | change)))
    assert one.run != other.run


def test_paths_do_not_change_the_run(spec: Make, weights: Path, tmp_path: Path) -> None:
    model, _ = load_model(weights)
    save_model(tmp_path / "copy.safetensors", model)
    one = resolution.resolve(spec())
    moved = spec().model_copy(
        update={"model": ModelSpec(weights=str(tmp_path / "copy.safetensors"))}
    )
    fewer = spec(count=2)
    assert resolution.resolve(moved).run == one.run
    assert resolution.resolve(fewer).run == one.run
    assert resolution.resolve(fewer).name != one.name


def test_other_weights_and_other_options_of_a_model_are_another_run(
    spec: Make, tmp_path: Path
) -> None:
    ids = set()
    for name, readout in (("a", "mean"), ("b", "mean"), ("c", "max")):
        torch.manual_seed(ord(name) if name == "b" else 0)
        save_model(tmp_path / f"{name}.safetensors", GCN(8, 8, 2, readout=readout))
        changed = spec().model_copy(
            update={"model": ModelSpec(weights=str(tmp_path / f"{name}.safetensors"))}
        )
        ids.add(resolution.resolve(changed).run)
    assert len(ids) == 3


def test_another_version_is_another_run(
    spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(spec(count=2), tmp_path)
    newer = resolution.package_versions() | {"torch": "99.0"}
    monkeypatch.setattr(resolution, "package_versions", lambda: newer)
    with pytest.raises(ChangedInput, match=r"started with torch .*, and this is torch 99\.0"):
        resume(tmp_path, workers=1, progress=False)
    assert finish(spec(count=2), tmp_path).done == 2


def test_changed_data(spec: Make, tmp_path: Path) -> None:
    finish(spec(count=1), tmp_path)
    changed = spec().model_copy(update={"dataset": DatasetSpec(name="nitro", digest="0" * 64)})
    with pytest.raises(ChangedInput, match=r"the dataset 'nitro' changed.*0000"):
        finish(changed, tmp_path)


def test_changed_weights(spec: Make, weights: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.safetensors"
    model, _ = load_model(weights)
    save_model(own, model)
    run_spec = spec(count=2).model_copy(update={"model": ModelSpec(weights=str(own))})
    first = finish(run_spec, tmp_path / "store")
    torch.manual_seed(1)
    save_model(own, GCN(8, 8, 2))
    with pytest.raises(ChangedInput, match=r"the weights in .*own\.safetensors changed"):
        resume(tmp_path / "store", workers=1, progress=False)
    # a specification without a digest accepts the new weights, in a run of its own
    second = finish(run_spec, tmp_path / "store")
    assert (second.found, second.done) == (0, 2)
    assert second.run != first.run
    assert read(tmp_path / "store").num_rows == 4
    assert read(tmp_path / "store", run=first.run).num_rows == 2


def test_graphs_outside_the_split(spec: Make, tmp_path: Path) -> None:
    outside = datasets.load("nitro").split_indices["train"][0]
    with pytest.raises(ValueError, match=f"in the split 'test'.*got {outside}"):
        finish(spec(split="test", graphs=(outside,)), tmp_path)
    with pytest.raises(ValueError, match=r"0\.\.499 \(got 500\)"):
        finish(spec(graphs=(500,)), tmp_path)


@pytest.mark.parametrize("workers", [1, 2])
def test_one_warning_about_precision(spec: Make, tmp_path: Path, workers: int) -> None:
    made = spec({"name": "gstarx", "options": {"budget": 40, "value": "shapley"}}, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = run(made, tmp_path / "store", workers=workers, progress=False)
    assert not report.failed
    (warning,) = [each for each in caught if each.category is PrecisionWarning]
    assert re.match(rf"\d+ of {report.graphs} graphs have imprecise scores", str(warning.message))


def test_a_model_that_classifies_nodes_is_refused(spec: Make, tmp_path: Path) -> None:
    save_model(tmp_path / "nodes.safetensors", GCN(8, 8, 2, readout=None))
    run_spec = spec().model_copy(
        update={"model": ModelSpec(weights=str(tmp_path / "nodes.safetensors"))}
    )
    with pytest.raises(ValueError, match="no readout"):
        finish(run_spec, tmp_path / "store")


def test_failures_are_rows_and_are_retried_on_request(
    spec: Make, plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    report = finish(spec("fussy", 10), store)
    rows = read(store).to_pylist()
    odd = [row["graph"] for row in rows if row["num_nodes"] % 2]
    assert 0 < len(odd) < 10
    assert [row["graph"] for row in rows] == list(range(10))
    assert [row["graph"] for row in rows if row["error"]] == odd
    assert (report.done, report.failed) == (10, len(odd))
    failure = rows[odd[0]]
    assert failure["error"] == f"ValueError: odd: {failure['num_nodes']} nodes"
    assert "_explain" in failure["traceback"]
    assert failure["scores"] is None
    assert finish(spec("fussy", 10), store).done == 0
    monkeypatch.setenv("REPAIRED", str(tmp_path))
    (again,) = resume(store, workers=1, progress=False)
    assert (again.done, again.failed) == (0, len(odd))
    (again,) = retry_failed(store, workers=1, progress=False)
    assert (again.found, again.done, again.failed) == (10, len(odd), 0)
    finish(spec("fussy", 10), tmp_path / "repaired")
    assert_same_rows(store, tmp_path / "repaired")
    assert retry_failed(store, workers=1, progress=False)[0].done == 0


def test_running_out_of_memory_is_a_failure_of_the_graph(
    spec: Make, plugin: Path, tmp_path: Path
) -> None:
    finish(spec("hungry", 2), tmp_path)
    assert read(tmp_path).column("error").to_pylist() == ["MemoryError: no more"] * 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("surrogate", r"ValueError: \\ud800"),
        ("unspeakable", "Unspeakable, whose message cannot be printed"),
        ("nan", r"ValueError: scores of Strange must be finite \(got nan for node 2"),
        ("inf", r"ValueError: scores of Strange must be finite \(got inf for node 2"),
        ("long", "ValueError: scores of Strange must be one number per node"),
        ("text", "TypeError: 'str' object cannot be interpreted as an integer"),
    ],
)
@pytest.mark.usefixtures("loaded_once")
def test_invalid_results_are_failures_of_their_graphs(
    spec: Make, plugin: Path, tmp_path: Path, answer: str, error: str
) -> None:
    report = finish(spec({"name": "strange", "options": {"answer": answer}}, 2), tmp_path)
    assert (report.done, report.failed) == (2, 2)
    rows = read(tmp_path).to_pylist()
    for row in rows:
        assert re.match(error, row["error"])
        assert "_explain" in row["traceback"]
        assert row["scores"] is None
    assert len(rows) == 2


@pytest.mark.usefixtures("loaded_once")
def test_numpy_scalars_and_invalid_text_are_stored(
    spec: Make, plugin: Path, tmp_path: Path
) -> None:
    assert finish(spec("strange", 1), tmp_path).failed == 0
    (row,) = read(tmp_path).to_pylist()
    kept = [row[name] for name in ("target", "evaluations", "estimator", "exact", "error")]
    assert kept == [0, 7, "\\ud800", True, None]


@pytest.mark.usefixtures("loaded_once")
def test_another_version_of_a_plugin_is_another_run(
    spec: Make, plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1.0", "2.0"):
        about = tmp_path / version / f"misbehaving-{version}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Name: misbehaving\nVersion: {version}\n")
        shutil.copy(plugin / "misbehaving-1.0.dist-info" / "entry_points.txt", about)
    run_specs = [
        spec(name, 2) for name in ("fussy", {"name": "refined", "options": {"of": "fussy"}})
    ]
    ids = {}
    for version in ("1.0", "2.0"):
        monkeypatch.syspath_prepend(tmp_path / version)
        ids[version] = [resolution.resolve(one).run for one in run_specs]
        if version == "1.0":
            finish(run_specs[0], tmp_path / "store")
            (row, _) = read(tmp_path / "store").to_pylist()
            assert json.loads(row["versions"])["misbehaving"] == "1.0"
    assert not set(ids["1.0"]) & set(ids["2.0"])
    with pytest.raises(ChangedInput, match=r"started with misbehaving 1\.0, and this is .* 2\.0"):
        resume(tmp_path / "store", workers=1, progress=False)
    assert finish(run_specs[0], tmp_path / "store").done == 2


@pytest.mark.usefixtures("loaded_once")
def test_another_version_of_captum_is_another_run_of_gradients_alone(
    spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs_now() -> list[str]:
        return [
            resolution.resolve(spec(name, 1)).run
            for name in (
                "gradient_x_input",
                "integrated_gradients",
                {"name": "refined", "options": {"of": "integrated_gradients"}},
                "leave_one_out",
            )
        ]

    before = runs_now()
    monkeypatch.setattr(registry, "version", lambda name: "99.0")
    now = runs_now()
    assert [one == other for one, other in zip(before, now, strict=True)] == [False] * 3 + [True]


def test_only_one_run_of_a_store_is_resumed(spec: Make, tmp_path: Path) -> None:
    one = finish(spec(count=2), tmp_path)
    finish(spec(count=2, seed=1), tmp_path)
    assert len(resume(tmp_path, workers=1, progress=False)) == 2
    (report,) = resume(tmp_path, run=one.run, workers=1, progress=False)
    assert report.run == one.run
    with pytest.raises(ValueError, match="there is no run 'other'"):
        resume(tmp_path, run="other")


def test_an_explainer_is_trained_once(
    spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gstarx_bench.explainers.pg_explainer import PGExplainer

    trained = []
    fit = PGExplainer.fit
    monkeypatch.setattr(
        PGExplainer,
        "fit",
        lambda self, *given, **options: trained.append(1) or fit(self, *given, **options),
    )
    explainer = {"name": "pgexplainer", "options": {"epochs": 2}}
    finish(spec(explainer, 2), tmp_path / "a")
    finish(spec(explainer, 4), tmp_path / "a")
    # other sparsities do not change the training
    finish(spec(explainer, 2, sparsities=(0.5,)), tmp_path / "a")
    assert len(trained) == 1
    (file,) = (tmp_path / "a" / "trained").iterdir()
    finish(spec(explainer, 4, seed=1), tmp_path / "a")
    assert len(trained) == 2
    # damaged: set aside, trained again, and the same rows
    file.write_bytes(file.read_bytes()[:100])
    finish(spec(explainer, 6), tmp_path / "a")
    assert len(trained) == 3
    assert len(list((tmp_path / "a" / "trained").glob("*.damaged-*"))) == 1
    finish(spec(explainer, 6), tmp_path / "b")
    rows = [row for row in lasting(tmp_path / "a").to_pylist() if len(row["sparsities"]) == 8]
    fresh = lasting(tmp_path / "b").to_pylist()
    assert [row for row in rows if row["run"] == fresh[0]["run"]] == fresh
    assert not any(row["error"] for row in fresh)


def test_the_number_of_threads_is_restored(spec: Make, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        finish(spec(count=1), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_bar_shows_rate_and_remaining_time(
    spec: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(spec(count=3), tmp_path, workers=1)
    shown = capfd.readouterr().err
    assert "leave_one_out on nitro" in shown
    assert "3/3" in shown
    assert "graph/s" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "lokal"}, "no engine 'lokal'; did you mean 'local'"),
        ({"workers": 0}, r"at least 1 \(got 0\)"),
        ({"address": "auto"}, "engine='ray'"),
    ],
)
def test_bad_options(spec: Make, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(spec(), tmp_path / "store", **options)
    assert not os.path.exists(tmp_path / "store")
