"""Specifications are read from TOML and JSON, and invalid ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gstarx_bench.runs import DatasetSpec, RunSpec, read_spec, run, write_spec
from tests.pairs import for_each

Make = Callable[..., RunSpec]

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_preserves_a_specification(spec: Make, tmp_path: Path, suffix: str) -> None:
    expected = spec(
        {"name": "gstarx", "options": {"budget": 100, "value": "myerson"}},
        baseline=[0.25, 0.75],
        sparsities=(0.5, 1 / 3),
        seed=7,
    )
    write_spec(expected, tmp_path / f"run{suffix}")
    assert read_spec(tmp_path / f"run{suffix}") == expected


def test_a_baseline_may_be_one_number_for_all_classes(spec: Make) -> None:
    assert spec("gstarx", baseline=0.25) == spec("gstarx", baseline=[0.25])
    with pytest.raises(ValidationError, match="baseline"):
        spec("gstarx", baseline=True)


def test_functions_of_graphs_and_of_a_model_have_the_same_key() -> None:
    by_key = DatasetSpec.model_validate({"factory": "tests.shared:graphs"})
    assert by_key == DatasetSpec(graphs="tests.shared:graphs")
    with pytest.raises(ValidationError, match="factory and graphs name the same function"):
        DatasetSpec.model_validate({"factory": "a:b", "graphs": "a:b"})


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_toml_can_express_every_option(options: dict[str, Any]) -> None:
    import tomllib

    from gstarx_bench.runs.specification import _as_toml

    text = _as_toml({"a": 1, "table": {"options": options}})
    assert tomllib.loads(text)["table"]["options"] == options


def test_a_hand_written_file(weights: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        f'dataset = "nitro"\nmodel = "{weights}"\nbaseline = "train"\n'
        '[explainer]\nname = "gstarx"\noptions = { budget = 500 }\n'
    )
    read = read_spec(file)
    assert read.explainer.options == {"budget": 500}
    assert read.baseline == "train"
    assert read.split == "test"


def test_it_is_frozen(spec: Make) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        spec().seed = 3


@for_each(
    ("change", "message"),
    [
        ({"dataset": "mutga"}, "no dataset 'mutga'; did you mean 'mutag'"),
        ({"explainer": "subgrafx"}, "no explainer 'subgrafx'; did you mean 'subgraphx'"),
        (
            {"explainer": {"name": "gstarx", "options": {"budgt": 3}}},
            "no option of 'gstarx' 'budgt'; did you mean 'budget'",
        ),
        (
            {
                "explainer": {"name": "gstarx_published", "options": {"tua": 3}},
                "baseline": "test",
            },
            "no option of 'gstarx_published' 'tua'; did you mean 'tau'",
        ),
        ({"explainer": {"name": "gstarx", "options": {"seed": 3}}}, "the run's own seed"),
        ({"explainer": {"name": "gstarx", "options": {"value": "hm"}}}, "hm"),
        ({"explainer": "gstarx_published"}, "needs a baseline"),
        ({"sparsity": [0.5]}, "no field 'sparsity'; did you mean 'sparsities'"),
        ({"sparsities": [1.5]}, r"in \[0, 1\]"),
        ({"sparsities": []}, r"in \[0, 1\]"),
        ({"graphs": [1, 1]}, "distinct non-negative positions"),
        ({"graphs": [-1]}, "distinct non-negative positions"),
        ({"graphs": []}, "distinct non-negative positions"),
        ({"removal": "delete"}, "remove"),
        ({"split": "tset"}, "test"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"seed": "many"}, "integer"),
    ],
)
def test_invalid_fields_are_refused(change: dict[str, Any], message: str, spec: Make) -> None:
    content = spec().model_dump(mode="json", exclude_none=True) | change
    with pytest.raises(ValueError, match=message):
        RunSpec.model_validate(content)


def test_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_spec(tmp_path / "run.toml")
    with pytest.raises(ValueError, match=r"\.toml or \.json"):
        read_spec(tmp_path / "run.yaml")
    (tmp_path / "run.toml").write_text("dataset = ")
    with pytest.raises(ValueError, match="cannot be read as TOML"):
        read_spec(tmp_path / "run.toml")
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(ValueError, match="table of fields"):
        run(tmp_path / "run.json", tmp_path / "store")


def test_toml_has_no_none(spec: Make, tmp_path: Path) -> None:
    expected = spec({"name": "gstarx", "options": {"num_samples": None}})
    with pytest.raises(ValueError, match=r"write a \.json file"):
        write_spec(expected, tmp_path / "run.toml")
    write_spec(expected, tmp_path / "run.json")
    assert read_spec(tmp_path / "run.json") == expected
    assert json.loads((tmp_path / "run.json").read_text())["seed"] == 0


def test_a_reference_of_features_is_an_option_and_that_of_metrics_is_the_runs() -> None:
    common = {"dataset": "nitro", "model": "gcn.safetensors"}
    options = {"players": "features", "reference": "mean"}
    RunSpec(**common, explainer={"name": "gstarx", "options": options})
    assert RunSpec(**common, explainer="gstarx").create_explainer(None) is not None
    with pytest.raises(ValueError, match="'reference' is set by the run"):
        RunSpec(**common, explainer={"name": "best_found", "options": {"reference": None}})
