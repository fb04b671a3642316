"""The split of a training is kept with the weights, by rows and not by their places."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gstarx.datasets import load, load_source
from gstarx.models import SplitRecord, load_model
from gstarx.registry import DatasetSource, ModelSource
from gstarx_bench.datasets import from_table
from gstarx_explorer.library import Library
from gstarx_explorer.settings import ServedModel, Settings
from tests.cli.commands import found, gstarx, refused

pytest.importorskip("rdkit", reason="needs the molecules extra")

WEIGHTS = ("--weights", "own.safetensors")
FAST = ("-e", "single_node")
#: Name, SMILES and label.
Row = tuple[str, str, object]


def write(path: Path | str, rows: Sequence[Row]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("id", "smiles", "toxic"), *rows])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A network trained on 40 molecules of ``own.csv``, and the rows; two have no label."""
    folder = tmp_path_factory.mktemp("project")
    chosen = list({graph.smiles: graph for graph in load("nitro")}.values())[:40]
    named = [(f"m{at}", graph.smiles, int(graph.y)) for at, graph in enumerate(chosen)]
    everything: list[Row] = [("u0", "CCO", ""), *named[:7], ("u1", "CCN", ""), *named[7:]]
    write(folder / "own.csv", everything)
    weights = folder / WEIGHTS[1]
    gstarx("train", folder / "own.csv", "--label", "toxic", "--epochs", 1, "--output", weights)
    return folder, everything


@pytest.fixture
def rows(project: tuple[Path, list[Row]]) -> list[Row]:
    """The project in the working directory."""
    for path in project[0].iterdir():
        shutil.copy(path, path.name)
    return project[1]


def sides_of_training() -> dict[str, set[str]]:
    """What training used: labeled rows only."""
    trained = from_table("own.csv", label="toxic")
    return {side: {graph.name for graph in trained.split(side)} for side in ("train", "test")}


def test_the_test_split_is_that_of_the_training(rows: list[Row]) -> None:
    expected = sides_of_training()
    for table in (rows, rows[::-1], [row for row in rows if row[0] != "m3"] + [("n", "CCCC", 1)]):
        write("other.csv", table)
        for side, names in expected.items():
            records = found("explain", "--file", "other.csv", *WEIGHTS, "--split", side, *FAST)
            present = {row[0] for row in table}
            assert {record["graph"] for record in records} == names & present


def test_a_limit_or_sample_is_of_the_split(rows: list[Row]) -> None:
    tested = [name for name, _, _ in rows if name in sides_of_training()["test"]]
    of_test = ("--file", "own.csv", *WEIGHTS, "--split", "test", *FAST)
    records = found("explain", *of_test, "--limit", 2)
    assert [record["graph"] for record in records] == tested[:2]
    drawn = [record["graph"] for record in found("explain", *of_test, "--sample", 3)]
    assert len(drawn) == 3
    assert set(drawn) < set(tested)
    for cut in (("--limit", 2), ("--sample", 3)):
        content = found("evaluate", *of_test, *cut, "--no-references", "--store", f"runs{cut[1]}")
        assert content["sides"] == {"train": 0, "val": 0, "test": cut[1], "other": 0}
    gstarx("report", "--store", "runs3", "--output", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert [name for name in tested if f">{name}<" in page] == drawn


def test_a_molecule_is_known_without_its_name_and_in_another_spelling(rows: list[Row]) -> None:
    from rdkit import Chem

    expected = sides_of_training()
    known = {text for name, text, _ in rows if name in expected["test"]}
    Path("plain.smi").write_text("".join(f"{text}\n" for _, text, _ in rows))
    records = found("explain", "--file", "plain.smi", *WEIGHTS, "--split", "test", *FAST)
    assert {record["graph"] for record in records} == known
    spelled: list[Row] = []
    for name, smiles, label in rows:
        molecule = Chem.MolFromSmiles(smiles)
        last = Chem.MolToSmiles(molecule, rootedAtAtom=molecule.GetNumAtoms() - 1)
        spelled.append((f"{name} again", last, label))
    assert not {smiles for _, smiles, _ in rows} >= {smiles for _, smiles, _ in spelled}
    write("spelled.csv", spelled)
    for side, names in expected.items():
        records = found("explain", "--file", "spelled.csv", *WEIGHTS, "--split", side, *FAST)
        assert {record["graph"].removesuffix(" again") for record in records} == names


def test_a_report_on_single_molecules_counts_training_graphs(rows: list[Row]) -> None:
    trained = next(smiles for name, smiles, _ in rows if name in sides_of_training()["train"])
    molecules = ("--smiles", trained, "--smiles", "CCCCCCC")
    gstarx("report", *molecules, *WEIGHTS, *FAST, "--output", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "training graphs: 1 of 2 (1 in no split of the training)" in page


def test_a_run_without_a_record_has_no_test_split(rows: list[Row]) -> None:
    from gstarx_bench.runs import RunSpec, run

    how = {"dataset": {"file": "own.csv"}, "model": WEIGHTS[1], "explainer": "single_node"}
    once = {"workers": 1, "progress": False}
    recorded = run(RunSpec(**how, split="test"), "recorded", **once)
    assert recorded.done == len(sides_of_training()["test"])
    content = json.loads(Path("own.json").read_text())
    Path("own.json").write_text(json.dumps({**content, "split": None}))
    with pytest.raises(ValueError, match=r"the test split of 'own' is unknown.*split='all'"):
        run(RunSpec(**how, split="test"), "unknown", **once)
    assert run(RunSpec(**how, split="all"), "unknown", **once).done == len(rows)


def test_a_run_reads_molecules_as_the_training_did(rows: list[Row]) -> None:
    from gstarx_bench.runs import RunSpec, read, run

    content = json.loads(Path("own.json").read_text())
    Path("own.json").write_text(json.dumps({**content, "salts": "largest"}))
    write("salt.csv", [("salt", "CC(=O)[O-].[Na+]", 0)])
    for options, atoms in (({}, 4), ({"salts": "keep"}, 5)):
        spec = RunSpec(
            dataset={"file": "salt.csv", "options": options},
            model=WEIGHTS[1],
            explainer="single_node",
            split="all",
        )
        name = run(spec, "runs", workers=1, progress=False).run
        assert read("runs", run=name)["num_nodes"].to_pylist() == [atoms]


def test_evaluate_and_report_count_training_graphs(rows: list[Row]) -> None:
    arguments = ("--file", "own.csv", *WEIGHTS, *FAST)
    content = found("evaluate", *arguments, "--no-references")
    assert content["sides"] == {"train": 32, "val": 4, "test": 4, "other": 2}
    printed = gstarx("evaluate", *arguments, "--no-references").stdout
    said = "32 of 42 (4 validation, 4 test, 2 in no split of the training)"
    assert f"training graphs: {said}" in " ".join(printed.split())
    few = ("--limit", 3, "--output", "report.html")
    for what in (arguments, ("--store", "gstarx-runs")):
        gstarx("report", *what, *few)
        said = "2 of 3 (1 in no split of the training)"
        page = Path("report.html").read_text(encoding="utf-8")
        assert f"training graphs: {said}" in page.partition("<table")[0]  # where a reader begins


def test_an_unknown_split_is_called_unknown(rows: list[Row]) -> None:
    content = json.loads(Path("own.json").read_text())
    Path("own.json").write_text(json.dumps({**content, "split": None}))
    arguments = ("--file", "own.csv", *WEIGHTS)
    for command in ("explain", "evaluate", "report"):
        said = refused(command, *arguments, "--split", "test", *FAST)
        assert "the test split of own is unknown: own has no record" in said
    assert found("evaluate", *arguments, *FAST, "--no-references")["sides"] is None
    gstarx("report", *arguments, "--limit", 3, *FAST, "--output", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "training graphs: unknown" in page.partition("<table")[0]
    assert "unknown: own has no record of its training graphs" in page
    said = refused("explain", *arguments, "--baseline", "test")
    assert "the split of 'own' is not known" in said


def test_a_table_that_the_training_did_not_have_has_no_test_split(
    rows: list[Row],
) -> None:
    write("other.csv", [("a", "CCCCCC", 0), ("b", "CCCCCO", 1)])
    said = refused("explain", "--file", "other.csv", *WEIGHTS, "--split", "test")
    assert "none of the 2 graphs of other is in the test split" in said
    # a dataset with a split of its own keeps it
    tested = found("explain", "motifs", "--split", "test", "--limit", 2, *FAST)
    assert [record["position"] for record in tested] == sorted(
        load("motifs").split_indices["test"]
    )[:2]


def test_the_explorer_shows_the_recorded_split(rows: list[Row]) -> None:
    source = ModelSource(weights=Path(WEIGHTS[1]))
    write("other.csv", rows[::-1])
    served = ServedModel("own", source, graphs=DatasetSource(file="other.csv", label="toxic"))
    library = Library(Settings(models=(served,)))
    dataset = library.local_dataset(library.get("own"))
    assert dataset is not None
    for side, names in sides_of_training().items():
        assert {graph.name for graph in dataset.split(side)} == names
    assert library.local_dataset(library.get("own")) is dataset


def test_a_scaffold_split_of_a_named_dataset_is_kept() -> None:
    arguments = ("train", "nitro", "--epochs", 1, "--output", "own.safetensors")
    gstarx(*arguments)
    assert load_model("own.safetensors")[1].split is None  # the dataset has it
    gstarx(*arguments, "--split", "scaffold")
    position = load("nitro", split="scaffold").split_indices["test"][0]
    first = found("explain", "nitro", *WEIGHTS, "--split", "test", "--limit", 1, *FAST)
    assert first["position"] == position


def test_equal_molecules_on_two_sides_are_told_apart_by_name() -> None:
    Path("twice.csv").write_text("id,smiles\na,CCO\nb,CCO\nc,CCN\n")
    graphs = load_source(DatasetSource(file="twice.csv", split="none"))
    assert graphs.split_indices == {}
    record = SplitRecord.of(graphs.graphs, {"train": [0, 2], "test": [1]})
    assert [record.side(graph) for graph in graphs] == ["train", "test", "train"]
    other = graphs[1].clone()
    other.name = "d"
    assert record.side(other) == "train"  # the network has seen the molecule
    for name, side in (("b", "test"), ("d", "train")):
        other.name, other.smiles = name, "OCC"  # the same molecule
        assert record.side(other) == side
    with pytest.raises(ValueError, match="not base64"):
        SplitRecord.read({"train": "?"})
    with pytest.raises(ValueError, match="8 bytes each"):
        SplitRecord.read({"train": "AAAA"})
    with pytest.raises(ValueError, match="train, val, test"):
        SplitRecord.read({"training": ""})
