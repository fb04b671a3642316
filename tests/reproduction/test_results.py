"""The rows that are kept with the code, and what is made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gstarx_bench.runs.rows import SCHEMA as ROWS
from reproduction.ablation import CHANGES
from reproduction.faithfulness import (
    OURS,
    chosen_on_validation,
    gains_over_compared,
    headline,
    significance,
)
from reproduction.grids import Grid
from reproduction.methods import METHODS, STAGES, Method, of_role
from reproduction.paper import TABLE_1, paper
from reproduction.results import KEPT, RANDOM, SCHEMA, RowStore, SetupResults
from reproduction.setups import SETUPS, Missing, Setup, chosen

LEVELS = 8
TESTED = range(100)
SETUP = SETUPS["mutag-gcn"]


def rows(graphs: list[int], level: float, peak: int = 3) -> pa.Table:
    """Rows of a run's store: a metric that is highest at one sparsity."""
    count = len(graphs)
    shape = level - 0.01 * np.abs(np.arange(LEVELS) - peak)
    values: dict[str, Any] = {
        "graph": graphs,
        "run": ["r"] * count,
        "num_nodes": [4] * count,
        "scores": [[1.0, 1.0, 0.0, 0.0]] * count,
        "cpu_seconds": [0.5] * count,
        "evaluations": [7] * count,
        "exact": [True] * count,
    }
    for rule in ("", "positive_"):
        for metric in KEPT:
            values[rule + metric] = [(shape + 0.001 * g).tolist() for g in range(count)]
    columns = [pa.array(values.get(f.name, [None] * count), f.type) for f in ROWS]
    return pa.Table.from_arrays(columns, names=ROWS.names)


def test_rows_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    method = METHODS["HN"]
    results = RowStore(tmp_path, "mutag-gcn")
    results.add(method, rows([5, 9], 0.6), TESTED)
    results.add(method, rows([2], 0.6), ())
    again = RowStore(tmp_path, "mutag-gcn")
    assert again.done(method, "test") == {5, 9}
    assert again.done(method, "val") == {2}
    found = again.rows(method, "test", [9, 5])
    assert found is not None
    assert found["graph"] == [9, 5]
    assert found["harmonic_fidelity"].shape == (2, LEVELS)
    assert found["entropy"] == pytest.approx([np.log(2)] * 2, abs=1e-6)
    assert again.rows(method, "test", [9, 6]) is None
    assert again.table.schema.names == SCHEMA.names


def test_a_changed_setting_is_another_method_and_replaces_the_old_one(tmp_path: Path) -> None:
    method = METHODS["HN"]
    other = replace(method, options={**method.options, "budget": 77})
    assert other.digest != method.digest
    results = RowStore(tmp_path, "s")
    results.add(method, rows([1, 2], 0.6), TESTED)
    results.add(METHODS["Shapley"], rows([1], 0.5), TESTED)
    assert results.done(other, "test") == set()
    results.add(other, rows([1], 0.7), TESTED)
    assert RowStore(tmp_path, "s").done(method, "test") == set()
    assert RowStore(tmp_path, "s").done(other, "test") == {1}
    assert RowStore(tmp_path, "s").done(METHODS["Shapley"], "test") == {1}


def test_newer_rows_of_a_graph_take_the_place_of_older_ones(tmp_path: Path) -> None:
    method = METHODS["HN"]
    results = RowStore(tmp_path, "s")
    results.add(method, rows([1, 2], 0.6), TESTED)
    results.add(method, rows([2], 0.9), TESTED)
    found = results.rows(method, "test", [1, 2])
    assert found is not None
    assert found["harmonic_fidelity"][1].max() == pytest.approx(0.9)
    assert results.table.num_rows == 2


def test_failed_graphs_make_no_figure(tmp_path: Path) -> None:
    method = METHODS["HN"]
    broken = rows([1, 2], 0.6)
    at = broken.column_names.index("error")
    broken = broken.set_column(at, "error", pa.array([None, "ValueError: no"]))
    results = RowStore(tmp_path, "s")
    results.add(method, broken, TESTED)
    assert results.rows(method, "test", [1]) is not None
    assert results.rows(method, "test", [1, 2]) is None


def store(folder: Path, peaks: dict[str, tuple[float, float, int]]) -> SetupResults:
    """Results of a setup with given levels on validation and test, and where they peak there."""
    results = RowStore(folder, SETUP.name)
    results.note_graphs({"val": [1, 2], "test": [3, 4, 5]})
    for name, (val, test, peak) in peaks.items():
        results.add(METHODS[name], rows([1, 2], val, peak), ())
        results.add(METHODS[name], rows([3, 4, 5], test, 6), TESTED)
    return SetupResults(SETUP, folder)


def test_the_choice_is_made_on_validation_and_evaluated_on_test(tmp_path: Path) -> None:
    found = store(tmp_path, {"HN": (0.60, 0.7, 2), "Shapley": (0.65, 0.5, 1)})
    own = found.choose(OURS)
    assert own is not None
    assert (own.method.name, own.level) == ("Shapley", 1)
    # at that sparsity, not at the best one of the test split
    assert own.mean == pytest.approx(0.5 - 0.05 + 0.001, abs=1e-6)
    assert found.best("Shapley") == pytest.approx(0.501, abs=1e-6)
    gain = found.compare(own, own)
    assert gain.mean == 0


def test_shares_are_between_random_and_best_found(tmp_path: Path) -> None:
    levels = dict.fromkeys(RANDOM, (0.5, 0.5, 3))
    found = store(tmp_path, {**levels, "HN": (0.6, 0.56, 3), "best found": (0.6, 0.6, 3)})
    value = found.best("HN")
    assert value is not None
    assert found.share(value) == pytest.approx(0.6, abs=1e-6)
    assert found.share(0.5 + 0.001) == pytest.approx(0, abs=1e-6)


def test_methods_that_were_not_run_are_not_mentioned(tmp_path: Path) -> None:
    found = {name: SetupResults(setup, tmp_path) for name, setup in SETUPS.items()}
    found[SETUP.name] = store(tmp_path, {"HN": (0.6, 0.7, 2)})
    assert significance(gains_over_compared(found, list(SETUPS))) == ""
    found[SETUP.name] = store(tmp_path, {"GraphSVX": (0.6, 0.5, 2)})
    assert significance(gains_over_compared(found, list(SETUPS))) == (
        f"Significantly ahead of every compared method that was run: {SETUP.name}."
    )
    found[SETUP.name] = store(tmp_path, {"PGExplainer": (0.6, 0.7, 2), "OrphicX": (0.6, 0.8, 2)})
    assert significance(gains_over_compared(found, list(SETUPS))) == (
        f"No significant difference: {SETUP.name} (PGExplainer +0.0000). "
        f"Significantly behind: {SETUP.name} (OrphicX)."
    )


def test_the_paper_stands_in_brackets_and_the_best_in_bold(tmp_path: Path) -> None:
    found = {name: SetupResults(setup, tmp_path) for name, setup in SETUPS.items()}
    found[SETUP.name] = store(tmp_path, {"as published": (0.6, 0.6, 2), "GraphSVX": (0.6, 0.5, 2)})
    grid = headline(found, TABLE_1, "table_1", few=False)
    cells = {row[0]: row[1] for row in grid.rows}
    assert cells["as published"] == "**0.6010** (0.6171)"
    assert cells["GraphSVX"] == "0.5010 (0.5211)"
    assert grid.header[1:] == (*TABLE_1, "average")


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    grid = Grid("t", ("a", "b"), (("x, y", 0.5), ("z", None), ("w", 3)))
    grid.write(tmp_path)
    assert Grid.read(tmp_path, "t") == grid
    assert Grid.read(tmp_path, "other") is None
    assert grid.markdown().splitlines()[2] == "| x, y | 0.5000 |"


def test_methods_are_distinct_and_what_is_compared_exists() -> None:
    named = [method.name for stage in STAGES.values() for method in stage]
    assert len(named) == len(set(named))
    digests = [method.digest for method in METHODS.values()]
    assert len(digests) == len(set(digests))
    for change in CHANGES:
        assert {change.reference, *change.others} <= set(METHODS)
    assert len(RANDOM) == 5
    assert of_role("compared") == (
        "GraphSVX",
        "GNNExplainer",
        "PGExplainer",
        "SubgraphX",
        "OrphicX",
    )
    assert all("val" in METHODS[name].splits for name in (*OURS, *of_role("compared")))


def test_every_method_makes_a_valid_run() -> None:
    from gstarx import explainers
    from gstarx_bench.runs import RunSpec

    for method in METHODS.values():
        baseline = (0.5, 0.5) if isinstance(method.baseline, str) else method.baseline
        spec = RunSpec(
            dataset="mutag",
            model="w.pth",
            explainer={"name": method.explainer, "options": method.options},
            baseline=baseline,
        )
        assert spec.explainer.name in explainers.names(oracles=True)
        assert spec.explainer.options == method.options


def test_some_graphs_of_a_split_are_always_the_same() -> None:
    every = tuple(range(100, 200))
    assert len(set(chosen(every, 30))) == 30
    assert chosen(every, 30) == chosen(every, 60)[:30]
    assert set(chosen(every, None)) == set(every)
    assert Setup("a", "b", few=10).few_graphs(range(50), "val") == tuple(range(5))


def test_averages_of_the_paper_are_means_of_its_columns_but_one() -> None:
    table = paper()["table_1"]
    columns = np.array([table[name] for name in TABLE_1.values()])
    wrong = [
        name
        for name, mean, said in zip(
            table["methods"], columns.mean(axis=0), table["average"], strict=True
        )
        if abs(mean - said) > 1e-4
    ]
    assert wrong == ["OrphicX"]


def test_a_method_is_frozen() -> None:
    with pytest.raises(AttributeError):
        METHODS["HN"].seed = 3  # type: ignore[misc]
    assert isinstance(METHODS["HN"], Method)


def test_weights_are_looked_for_where_the_environment_says_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shared" / "checkpoints" / "mutag" / "gcn_3l_best.pth"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    monkeypatch.delenv("GSTARX_CHECKPOINTS", raising=False)
    with pytest.raises(Missing, match=r"set GSTARX_CHECKPOINTS .* \(got nothing\)"):
        SETUP.weights()
    monkeypatch.setenv("GSTARX_CHECKPOINTS", "nowhere")
    with pytest.raises(Missing, match=r"mutag/gcn_3l_best.pth \(got nowhere\)"):
        SETUP.weights()
    monkeypatch.setenv("GSTARX_CHECKPOINTS", str(tmp_path / "shared" / "checkpoints"))
    assert SETUP.weights() == file


def test_a_setup_without_its_data_says_why(tmp_path: Path) -> None:
    results = RowStore(tmp_path, "bbbp-gcn")
    assert results.missing == "nothing yet"
    results.note_missing("the weights are not at nowhere.pth")
    found = {name: SetupResults(SETUPS[name], tmp_path) for name in TABLE_1}
    assert found["bbbp-gcn"].missing == "the weights are not at nowhere.pth"
    for grid in (
        headline(found, TABLE_1, "t", few=False),
        chosen_on_validation(found, list(TABLE_1)),
    ):
        assert "the weights are not at nowhere.pth" in grid.markdown()
        assert {len(row) for row in grid.rows} == {len(grid.header)}
    results.note_graphs({"val": [1], "test": [2, 3]})
    results.note_missing("gone again")
    assert RowStore(tmp_path, "bbbp-gcn").missing is None
    assert RowStore(tmp_path, "bbbp-gcn").graphs("test") == (2, 3)
