"""A new user's path: an own table or model, from the file to the report."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gstarx_bench import runs
from tests.cli.commands import environment, found, gstarx, refused, scores
from tests.cli.own_table import PAGE, write_own_project, write_own_table

pytest.importorskip("rdkit", reason="needs the molecules extra")


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """``molecules.csv`` in the working directory: 60 molecules with names, three of them bad."""
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "my_project", raising=False)
    write_own_table(Path("molecules.csv"))


#: A network that ships with the package.
NITRO = ("--model", "nitro")


def commands(text: str) -> list[list[str]]:
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


def test_from_a_table_to_an_explanation() -> None:
    weights = ("--weights", "own.safetensors")
    limit = ("--file", "molecules.csv", "--limit", "5", "-e", "single_node")
    done = gstarx(
        "train", "molecules.csv", "--label", "logP", "--epochs", "1", "--output", weights[1]
    )
    assert "skipped 3 of 60 molecules" in done.stderr
    assert "line 5 (open ring): unclosed ring: 'C1CC'" in done.stderr
    (_, first, *_) = found("explain", *limit, *weights)
    assert first["graph"] == "molecule 0"
    assert first["target_name"] == "logP"
    with open("molecules.csv", newline="") as file:
        assert first["label"] == pytest.approx(float(next(csv.DictReader(file))["logP"]))


@pytest.mark.slow
def test_the_commands_on_the_page_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    write_own_project(Path("my_project.py"))
    for arguments in commands(text):
        done = gstarx(*arguments)
        assert done.stdout, arguments
        if "molecules.csv" in arguments and "--limit" not in arguments:
            assert "skipped 3 of 60 molecules" in done.stderr
            assert "line 5 (open ring): unclosed ring: 'C1CC'" in done.stderr
    with open("scores.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["graph"] for row in rows} == {"molecule 0", "molecule 1", "molecule 2"}
    assert all(row["score"] for row in rows)
    page = Path("mine.html").read_text(encoding="utf-8")
    assert "molecule 3" in page
    rows = runs.read("mine").to_pylist()
    assert {row["name"] for row in rows} == {f"molecule {at}" for at in (0, 1, 2, 3)}
    assert all(row["smiles"] for row in rows)


def test_strict_says_that_rows_were_skipped_and_does_the_rest() -> None:
    arguments = ("explain", "--file", "molecules.csv", *NITRO, "--limit", "5", "-e", "single_node")
    records = json.loads(gstarx(*arguments, "--strict", "--json", code=3).stdout)
    assert [record.get("error") for record in records] == ["skipped: unclosed ring", *[None] * 4]
    assert records[0]["line"] == 5
    assert records[0]["graph"] == "open ring"


def test_a_million_rows_are_not_read_for_ten() -> None:
    with open("long.csv", "w") as file:
        file.write("smiles,label\n" + "CCO,1\n" * 10**6)
    start = time.process_time()
    records = found("explain", "--file", "long.csv", *NITRO, "--limit", "10", "-e", "single_node")
    taken = time.process_time() - start
    assert len(records) == 10
    Path("short.csv").write_text("smiles,label\n" + "CCO,1\n" * 10)
    start = time.process_time()
    found("explain", "--file", "short.csv", *NITRO, "--head", "10", "-e", "single_node")
    assert taken < 3 * (time.process_time() - start) + 1


def test_a_sample_depends_on_the_seed() -> None:
    common = ("explain", "--file", "molecules.csv", *NITRO, "--sample", "4", "-e", "random")

    def names(seed: int) -> list[str]:
        return [record["graph"] for record in found(*common, "--seed", seed)]

    assert names(1) == names(1) != names(2)
    assert len(names(1)) == 4
    assert "--limit or --sample" in refused(*common, "--limit", "3", code=2)


def test_labels_that_the_network_does_not_know_cost_no_row() -> None:
    Path("some.csv").write_text("smiles,label\nCCO,1\nCC,perhaps\nCCC,\nCCCC,0\n")
    with pytest.warns(UserWarning, match="in label of 1 of 4 rows .such as 'perhaps'"):
        records = found("explain", "--file", "some.csv", *NITRO, "-e", "single_node")
    assert [record["label"] for record in records] == [1, None, None, 0]


def test_classes_are_numbered_as_the_network_numbers_them() -> None:
    """Two of three classes in the rows that are read do not become the classes 0 and 1."""
    lines = ["smiles,label"]
    for at in range(1, 13):
        lines += [f"{'C' * at}O,a", f"{'C' * at}N,b", f"{'C' * at}Cl,c"]
    Path("three.csv").write_text("\n".join(lines))
    gstarx("train", "three.csv", "--epochs", "1", "--output", "three.safetensors")
    Path("rest.csv").write_text("smiles,label\nCCN,b\nCCCl,c\nCCC,d\n")
    arguments = ("--file", "rest.csv", "--weights", "three.safetensors", "-e", "single_node")
    with pytest.warns(UserWarning, match="1 of 3 rows .such as 'd'; its classes: a, b, c"):
        records = found("explain", *arguments)
    assert [record["label"] for record in records] == [1, 2, None]
    assert records[0]["prediction"]["name"] in ("a", "b", "c")


@pytest.mark.filterwarnings("ignore:.*the outputs for all evaluated parts of the graph are")
def test_salts() -> None:
    Path("salts.csv").write_text("smiles,name\nCC(=O)[O-].[NH4+],salt\nCCO,ethanol\n")
    arguments = ("explain", "--file", "salts.csv", *NITRO, "-e", "leave_one_out")
    done = gstarx(*arguments)
    assert "1 molecule has several parts (salts or mixtures), such as 'salt'" in done.stderr
    assert "HN and Myerson scores sum to the worths of the parts" in done.stderr
    assert gstarx(*arguments, "--salts", "keep").stderr == ""
    kept = found(*arguments, "--salts", "largest")
    assert kept[0]["smiles"] == "CC(=O)[O-]"
    how = ("-e", "hn", "--baseline", "uniform")
    hn = gstarx("explain", "--file", "salts.csv", *NITRO, "--limit", "1", *how).stdout
    assert "the scores sum to" in " ".join(hn.split())


def test_a_table_that_cannot_be_used() -> None:
    for command, content, message in (
        ("explain", "", "is empty"),
        ("compare", "a,b\n1,2\n", "has no column 'smiles'"),
        ("evaluate", "smiles\nC1CC\nxx\n", "can be read: line 2: unclosed ring"),
        ("report", "smiles\n", "holds no molecules"),
        ("summarize", "", "is empty"),
    ):
        Path("bad.csv").write_text(content)
        assert message in refused(command, "--file", "bad.csv", *NITRO)
    said = refused("explain", "--file", "molecules.csv", "--model", "motifs", "--limit", "2")
    assert "takes 10 features per node" in said


@pytest.mark.slow
def test_an_evaluation_that_is_killed_goes_on() -> None:
    gstarx(
        "train", "molecules.csv", "--label", "toxic", "--epochs", "2", "--output", "t.safetensors"
    )
    arguments = [
        *("evaluate", "--file", "molecules.csv", "--weights", "t.safetensors", "-e", "shapley"),
        *("-o", "budget=3000", "--no-references", "--workers", "2", "--store", "kept"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "gstarx", *arguments], env=environment(), start_new_session=True
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if any(path.stat().st_size for path in Path("kept").rglob("journal-*.jsonl")):
            break
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    content = found(*arguments)
    (run,) = content["runs"]
    assert run["graphs"] == 57
    assert run["found"] + run["done"] == 57
    assert run["found"] > 0
    alone = found(*arguments[:-1], "alone")
    best, other = run["best"], alone["runs"][0]["best"]
    assert best == pytest.approx(other)


def test_a_table_that_is_named_like_a_dataset_of_the_package() -> None:
    Path("molecules.csv").rename("nitro.csv")
    train = ("train", "nitro.csv", "--label", "toxic", "--epochs", "1", "--output", "n.safetensors")
    assert found(*train)["dataset"] == "nitro.csv"
    limit = ("--file", "nitro.csv", "--limit", "3", "-e", "single_node")
    content = found("evaluate", *limit, "--weights", "n.safetensors", "--workers", "1")
    assert content["runs"][0]["explained"] == 3
    # without labels too: the shipped network of that name knows no column 'toxic'
    found("evaluate", *limit, *NITRO, "--no-references", "--workers", "1", "--store", "unlabeled")


def test_the_weights_remember_the_column_of_their_labels() -> None:
    gstarx(
        "train", "molecules.csv", "--label", "toxic", "--epochs", "1", "--output", "t.safetensors"
    )
    arguments = ("explain", "--file", "molecules.csv", "--limit", "3", "-e", "single_node")
    with open("molecules.csv", newline="") as file:
        true = [int(row["toxic"]) for row in list(csv.DictReader(file))[:3]]
    assert [one["label"] for one in found(*arguments, "--weights", "t.safetensors")] == true
    text = gstarx(*arguments, "--weights", "t.safetensors").stdout
    assert "(0)" not in text, "a class that is called 0 is not named twice"
    # a table without that column has no labels
    Path("bare.csv").write_text("smiles\nCCO\n")
    record = found("explain", "--file", "bare.csv", "--weights", "t.safetensors", "-e", "random")
    assert record["label"] is None


def test_the_weights_remember_the_columns_of_molecules_and_names() -> None:
    rows = ["Stoff;Struktur;aktiv", *(f"S{n};{'C' * n}O;{n % 2}" for n in range(1, 13))]
    Path("stoffe.csv").write_text("\n".join(rows))
    named = ("--smiles-column", "Struktur", "--name-column", "Stoff", "--label", "aktiv")
    gstarx("train", "stoffe.csv", *named, "--epochs", "1", "--output", "s.safetensors")
    explain = ("explain", "--weights", "s.safetensors", "-e", "random", "--limit", "1", "--file")
    record = found(*explain, "stoffe.csv")
    assert (record["graph"], record["smiles"], record["label"]) == ("S1", "CO", 1)
    Path("other.csv").write_text("smiles,name\nCCO,ethanol\n")
    assert found(*explain, "other.csv")["graph"] == "ethanol"


def test_rdkit_prints_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    Path("proton.csv").write_text("smiles,name\n[H+].CCO,proton\nCCO,ethanol\n")
    found("explain", "--file", "proton.csv", *NITRO, "-e", "single_node", code=0)
    assert "not removing hydrogen" not in capfd.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_results_for_other_programs(suffix: str) -> None:
    path = Path(f"scores{suffix}")
    arguments = (
        "explain",
        "--file",
        "molecules.csv",
        *NITRO,
        "--limit",
        "4",
        "-e",
        "leave_one_out",
    )
    records = found(*arguments, "--output", path)
    if suffix == ".csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    assert [row["error"] for row in rows if row["graph"] == "open ring"] == [
        "skipped: unclosed ring"
    ]
    for record in records[1:]:
        own = [row for row in rows if row["graph"] == record["graph"]]
        assert {row["smiles"] for row in own} == {record["smiles"]}
        assert [float(row["score"]) for row in own] == scores(record)
        chosen = [at for at, row in enumerate(own) if str(row["selected"]) == "True"]
        assert chosen == record["selected"]
        probability = record["prediction"]["probabilities"][record["target"]]
        assert {float(row["prediction"]) for row in own} == {probability}


ODD_NAMES = ("=HYPERLINK(1)", "+x", "-x", "@x", "-12", "\x1b[31mred", "\u202eright", "nul\x9b")


def test_names_that_are_formulas_or_control_a_terminal() -> None:
    rows = [f'"{name}",c1ccccc1O' for name in ODD_NAMES]
    Path("odd.csv").write_text("\n".join(["name,smiles", *rows]), encoding="utf-8")
    arguments = ("--file", "odd.csv", "--model", "nitro", "-e", "leave_one_out")
    done = gstarx("explain", *arguments, "--output", "found.csv")
    with open("found.csv", newline="", encoding="utf-8") as file:
        rows_of_nodes = list(csv.DictReader(file))
    written = list(dict.fromkeys(row["graph"] for row in rows_of_nodes))
    assert written == [f"'{name}" for name in ODD_NAMES[:4]] + list(ODD_NAMES[4:])
    assert any(float(row["score"]) < 0 for row in rows_of_nodes)
    for shown in (r"\x1b[31mred", r"\u202eright", r"nul\x9b"):
        assert shown in done.stdout
    printed = gstarx("explain", *arguments, "--json").stdout
    assert [record["graph"] for record in json.loads(printed)] == list(ODD_NAMES)
    for text in (done.stdout, done.stderr, printed):
        assert not set("\x1b\x9b\u202e") & set(text)


def test_an_sdf_has_scores_as_properties_of_atoms() -> None:
    from rdkit import Chem

    arguments = (
        "explain",
        "--file",
        "molecules.csv",
        *NITRO,
        "--limit",
        "4",
        "-e",
        "leave_one_out",
    )
    records = [r for r in found(*arguments, "--output", "scores.sdf") if "error" not in r]
    molecules = list(Chem.SDMolSupplier("scores.sdf"))
    assert [molecule.GetProp("_Name") for molecule in molecules] == [r["graph"] for r in records]
    for molecule, record in zip(molecules, records, strict=True):
        written = [atom.GetDoubleProp("score") for atom in molecule.GetAtoms()]
        assert written == pytest.approx(scores(record), abs=1e-5)
        assert list(map(int, molecule.GetProp("highlight_atoms").split())) == record["selected"]
        colors = molecule.GetProp("highlight_colors").split()
        assert len(colors) == molecule.GetNumAtoms()
        assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
    # what was written is read again, with its names
    again = found("explain", "--file", "scores.sdf", *NITRO, "-e", "single_node")
    assert [record["graph"] for record in again] == [record["graph"] for record in records]


def test_a_directory_and_a_missing_file_are_no_tables_and_need_a_network() -> None:
    Path("folder.csv").mkdir()
    for command, network in (("evaluate", NITRO), ("train", ())):
        said = refused(command, "--file", "folder.csv", *network)
        assert "folder.csv is a directory" in said
        said = refused(command, "--file", "missing.csv", *network)
        assert "no table of molecules at missing.csv" in said
    said = refused("evaluate", "--file", "molecules.csv", code=2)
    assert "choose the network that explains --file: --weights" in said
    assert "--model module:factory" in said


def test_a_report_of_all_targets_is_a_page_for_each() -> None:
    weights = ("--weights", "own.safetensors")
    columns = ("--label", "oxygen,chlorine")
    gstarx("train", "molecules.csv", *columns, "--epochs", "1", "--output", weights[1])
    few = ("--file", "molecules.csv", "--limit", "3", "-e", "single_node")
    pages = found("report", *few, *weights, "--target", "all", "--output", "mine.html")
    assert [page["report"] for page in pages] == ["mine-0-oxygen.html", "mine-1-chlorine.html"]
    assert not Path("mine.html").exists()
    for name, page in zip(("oxygen", "chlorine"), pages, strict=True):
        assert name in Path(page["report"]).read_text(encoding="utf-8")
    assert "choose one with --target" in refused("report", *few, *weights, code=2)


def test_a_table_in_latin_1_is_read_with_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    Path("latin.csv").write_bytes("name,smiles\nCaféine,CCO\nÄthan,CC\n".encode("latin-1"))
    arguments = ("explain", "--file", "latin.csv", *NITRO, "-e", "single_node")
    with pytest.warns(UserWarning, match="latin.csv line 2 is not in UTF-8.*read as cp1252"):
        records = found(*arguments)
    assert [record["graph"] for record in records] == ["Caféine", "Äthan"]
    plain = ("evaluate", *arguments[1:], "--workers", "2")
    with pytest.warns(UserWarning, match="read as cp1252"):
        gstarx(*plain)
    said = capfd.readouterr().err  # of the worker processes
    assert "UserWarning" not in said
    named = found(*arguments, "--encoding", "latin-1")
    assert [record["graph"] for record in named] == ["Caféine", "Äthan"]
    assert "encoding must be one that Python knows" in refused(*arguments, "--encoding", "klingon")
