"""``gstarx datasets`` and ``gstarx train``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gstarx.datasets import load
from gstarx.models import LoadedNetwork, load_model, load_source
from gstarx.registry import ModelSource
from tests.cli.commands import found, gstarx, refused
from tests.shared import DATA, mutag


def test_datasets_are_listed_with_their_networks_and_described() -> None:
    rows = {row["name"]: row for row in found("datasets", "list")}
    assert rows["nitro"]["shipped"]
    assert rows["sst2"]["networks"] == ["sst2-gat", "sst2-gcn"]
    assert not rows["mutag"]["shipped"]
    assert "blood-brain" in " ".join(gstarx("datasets", "list").stdout.split())

    content = found("datasets", "info", "nitro")
    dataset = load("nitro")
    assert content["graphs"] == len(dataset)
    assert content["digest"] == dataset.digest
    assert content["splits"] == {"train": 400, "val": 50, "test": 50}
    assert content["mean_nodes"] == dataset.statistics().mean_nodes
    assert "aromatic nitro group" in gstarx("datasets", "info", "nitro").stdout
    assert found("datasets", "fetch", "nitro") == content


def test_data_is_looked_for_in_the_given_directory() -> None:
    mutag()
    assert found("datasets", "info", "mutag", "--data", DATA)["graphs"] == 188
    assert "SST-2" in refused("datasets", "info", "sst2", "--data", "empty")


def test_a_network_is_trained_and_can_be_explained() -> None:
    content = found("train", "nitro", "--epochs", "1", "--seed", "3")
    assert content["weights"] == "nitro-gcn-3.safetensors"
    assert content["accuracy"].keys() == {"train", "val", "test"}
    assert content["epochs"] == 1
    _, facts = load_model(content["weights"])
    assert (facts.seed, facts.dataset, facts.digest) == (3, "nitro", content["digest"])
    assert not list(Path().glob("*.training"))
    record = found("explain", "nitro", "0", "--weights", content["weights"], "-e", "random")
    assert len(record["labels"]) == 15
    again = found("train", "nitro", "--epochs", "1", "--seed", "3", "--output", "b.safetensors")
    assert again["digest"] == content["digest"]
    assert (
        "wrote c.safetensors"
        in gstarx("train", "nitro", "--epochs", "1", "--output", "c.safetensors").stdout
    )


def test_a_network_is_trained_on_a_table_of_molecules() -> None:
    lines = [f"{graph.smiles},{'yes' if int(graph.y) else 'no'}" for graph in load("nitro")[:40]]
    Path("mine.csv").write_text("\n".join(["molecule,toxic", *lines]) + "\n")
    columns = ("--smiles-column", "molecule", "--label", "toxic", "--epochs", "1")
    for network in ("gcn", "gin", "gat"):
        content = found("train", "mine.csv", *columns, "--network", network)
        assert content["weights"] == f"mine-{network}-0.safetensors"
        again = found("train", "mine.csv", *columns, "--network", network)
        assert again["digest"] == content["digest"]
    record = found("explain", "--smiles", "CCO", "--weights", "mine-gcn-0.safetensors")
    assert len(record["labels"]) == 3
    assert "name their column with --label" in refused("train", "mine.csv")
    Path("other.csv").write_text("formula,label\nC2H6,1\nCH4,0\n")
    assert "no column 'smiles'" in refused("train", "other.csv")


def test_a_network_without_a_recipe_for_the_dataset_gets_the_general_one() -> None:
    content = found("train", "motifs", "--network", "gat", "--epochs", "1")
    assert content["settings"]["batch_size"] == 64
    assert content["settings"]["epochs"] == content["epochs"] == 1


BAD_ROWS = ["CN(C)(C)C,broken,1,0.5,0", "C1CC,open,0,0.5,1", "CCO,unlabeled,,,"]


def write_molecules(path: str = "mine.csv", *, bad: bool = True) -> None:
    """40 molecules with a class, a number and another class; three rows cannot be used."""
    lines = ["smiles,id,nitro,size,large"]
    for at, graph in enumerate(load("nitro")[:40]):
        nodes = graph.num_nodes
        lines.append(f"{graph.smiles},m{at},{int(graph.y)},{nodes / 2},{int(nodes > 12)}")
        if bad and at < 3:
            lines.append(BAD_ROWS[at])
    Path(path).write_text("\n".join(lines) + "\n")


def test_rows_that_cannot_be_read_are_skipped_and_said() -> None:
    write_molecules()
    short = ("--label", "nitro", "--epochs", "1")
    done = gstarx("train", "mine.csv", *short)
    said = " ".join(done.stderr.split())
    assert "warning: skipped 3 of 43 molecules" in said
    assert "line 3 (broken): Explicit valence for atom # 1 N, 4, is greater" in said
    assert "line 5 (open): unclosed ring" in said
    assert "line 7 (unlabeled): no label" in said
    assert "skipped" not in done.stdout
    assert "average_precision" in done.stdout
    # how many of each class there are in each split
    assert {"split", "train", "val", "test"} <= set(done.stdout.split())
    content = found("train", "mine.csv", *short, "--strict", code=3)
    assert [row["line"] for row in content["skipped"]] == [3, 5, 7]
    assert content["graphs"] == 40
    total = sum(row["0"] + row["1"] for row in content["balance"])
    assert total == 40
    write_molecules(bad=False)
    gstarx("train", "mine.csv", *short, "--strict")


def test_every_task_is_trained_and_kept_with_the_weights() -> None:
    write_molecules("nitro.csv", bad=False)  # a name that means something else as well
    short = ("--epochs", "2", "--output", "own.safetensors")

    def trained(*options: str) -> LoadedNetwork:
        found("train", "nitro.csv", *short, *options)
        return load_source(ModelSource(weights=Path("own.safetensors")))

    classes = trained("--label", "nitro")
    assert (classes.task, classes.class_names) == ("classification", ("0", "1"))
    assert classes.features == "molecule"
    assert classes.dataset == "nitro.csv"
    binary = trained("--label", "nitro", "--task", "binary")
    assert binary.task == "binary"
    assert binary.model.config["out_channels"] == 1
    both = trained("--label", "nitro,large")
    assert (both.task, both.target_names) == ("multilabel", ("nitro", "large"))
    assert both.reference is None
    number = trained("--label", "size")
    assert (number.task, number.target_names) == ("regression", ("size",))
    assert number.reference is not None
    assert number.reference.range > 0  # type: ignore[operator]
    assert "test RMSE" in number.facts
    several = trained("--label", "size,large", "--task", "regression")
    assert several.reference is not None
    assert len(several.reference.mean) == 2  # type: ignore[arg-type]
    _, facts = load_model("own.safetensors")
    assert set(facts.metrics["test"]) == {  # type: ignore[index]
        *("rmse", "r2", "rmse size", "r2 size", "rmse large", "r2 large"),
    }
    record = found(
        "explain",
        "--smiles",
        "CCO",
        "--weights",
        "own.safetensors",
        "--target",
        "size",
        *("--baseline", "singletons"),
    )
    assert len(record["labels"]) == 3
    said = refused("explain", "nitro", "0", "--weights", "own.safetensors", "--target", "size")
    assert "takes 9 features per node" in said


def test_the_distribution_of_targets_is_printed() -> None:
    write_molecules(bad=False)
    balance = found("train", "mine.csv", "--label", "size", "--epochs", "1")["balance"]
    sizes = [graph.num_nodes / 2 for graph in load("nitro")[:40]]
    assert balance[0]["min"] == min(sizes)
    assert balance[0]["mean"] == pytest.approx(sum(sizes) / 40)
    both = found("train", "mine.csv", "--label", "nitro,large", "--epochs", "1")["balance"]
    assert [row["target"] for row in both] == ["nitro", "large"]
    assert all(row["yes"] + row["no"] + row["missing"] == 40 for row in both)


def test_rows_are_chosen_and_split_as_asked() -> None:
    write_molecules(bad=False)
    lines = Path("mine.csv").read_text().splitlines()
    sides = ["set", *(["train"] * 20), *(["valid"] * 10), *(["test"] * 10)]
    pairs = zip(lines, sides, strict=True)
    Path("split.tsv").write_text("\n".join(f"{a},{b}".replace(",", "\t") for a, b in pairs))
    short = ("--label", "nitro", "--epochs", "1")
    by_column = found("train", "split.tsv", *short, "--split", "set")
    assert [row["0"] + row["1"] for row in by_column["balance"]] == [20, 10, 10]
    assert found("train", "--file", "mine.csv", *short, "--head", "30")["graphs"] == 30
    assert found("train", "mine.csv", *short, "--sample", "25")["graphs"] == 25
    found("train", "mine.csv", *short, "--split", "scaffold")
    named = found("train", "nitro", "--epochs", "1", "--limit", "60", "--task", "binary")
    assert (named["graphs"], named["task"]) == (60, "binary")
    assert "not both" in refused("train", "mine.csv", "--limit", "5", "--sample", "5", code=2)


def test_salts_are_warned_of() -> None:
    write_molecules(bad=False)
    with Path("mine.csv").open("a") as file:
        file.write("[Na+].CC(=O)[O-],salt,0,2,0\n")
    short = ("--label", "nitro", "--epochs", "1")
    said = " ".join(gstarx("train", "mine.csv", *short).stderr.split())
    assert "1 molecule has several parts" in said
    assert "such as 'salt'" in said
    assert "parts" not in gstarx("train", "mine.csv", *short, "--salts", "largest").stderr


def test_weights_remember_that_they_were_trained_on_the_largest_parts() -> None:
    write_molecules(bad=False)
    how = ("--label", "nitro", "--epochs", "1", "--salts")
    gstarx("train", "mine.csv", *how, "largest", "--output", "largest.safetensors")
    gstarx("train", "mine.csv", *how, "keep", "--output", "all.safetensors")
    Path("salt.csv").write_text("smiles,name\n[Na+].CC(=O)[O-],salt\n")
    inputs = (("--smiles", "[Na+].CC(=O)[O-]"), ("--file", "salt.csv"))
    for asked in inputs:
        explain = ("explain", *asked, "-e", "leave_one_out", "--weights")
        assert len(found(*explain, "largest.safetensors")["labels"]) == 4
        assert len(found(*explain, "largest.safetensors", "--salts", "keep")["labels"]) == 5
        assert len(found(*explain, "all.safetensors")["labels"]) == 5


def test_every_target_has_a_picture_of_its_own_and_says_yes_or_no() -> None:
    lines = [
        f"C{'O' * (at % 2)}C{'N' * (at % 3 == 0)}C,{at % 2},{int(at % 3 == 0)}" for at in range(24)
    ]
    Path("two.csv").write_text("\n".join(["smiles,has O,has N", *lines]) + "\n")
    train = (
        "train",
        "two.csv",
        "--label",
        "has O,has N",
        "--epochs",
        "1",
        "--output",
        "two.safetensors",
    )
    gstarx(*train)
    explain = ("explain", "--smiles", "COCN", "--weights", "two.safetensors", "--target", "all")
    said = " ".join(gstarx(*explain, "--draw", "two.svg").stdout.split())
    drawn = sorted(path.name for path in Path().glob("two*.svg"))
    assert drawn == ["two-0-COCN-0_has_O.svg", "two-0-COCN-1_has_N.svg"]
    for name, record in zip(("has O", "has N"), found(*explain), strict=True):
        share = record["prediction"]["probabilities"][record["target"]]
        answer = "yes" if share > 0.5 else "no"
        # orange is for yes, whatever is predicted
        words = f"{answer}, probability {max(share, 1 - share):.3f}"
        words += "; explained: yes" * (answer == "no")
        assert f"Predicted: {name}: {words}" in said
        assert f"{name}: predicted {words}" in Path(drawn[record["target"]]).read_text()


FACTORY = """
import torch
from torch_geometric.data import Data

def graphs():
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    return [
        Data(x=torch.randn(3, 4), edge_index=ring, y=torch.tensor([[k / 7]])) for k in range(40)
    ]

def needs(count):
    return []

def unlabeled():
    return [Data(x=torch.ones(2, 4), edge_index=torch.tensor([[0], [1]]))] * 9
"""


def test_graphs_of_a_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_graphs_to_train.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(Path.cwd())
    content = found("train", "--graphs", "own_graphs_to_train:graphs", "--epochs", "1")
    assert content["task"] == "regression"
    assert content["weights"] == "own_graphs_to_train.graphs-gcn-0.safetensors"
    loaded = load_source(ModelSource(weights=Path(content["weights"])))
    assert loaded.features is None
    assert loaded.reference is not None
    assert "needs count" in refused("train", "--graphs", "own_graphs_to_train:needs")
    assert "no labels" in refused("train", "--graphs", "own_graphs_to_train:unlabeled")
    factory = ("train", "--graphs", "own_graphs_to_train:graphs")
    assert "is for tables" in refused(*factory, "--label", "a", code=2)
    assert "random or scaffold" in refused(*factory, "--split", "a", code=2)


def test_labels_that_cannot_be_used() -> None:
    write_molecules(bad=False)
    said = refused("train", "mine.csv", "--label", "id", "--task", "regression")
    assert "no row has a label for regression in id" in said
    assert "has no column 'toxic'" in refused("train", "mine.csv", "--label", "toxic")
    table = Path("mine.csv").read_text().splitlines()
    Path("one.csv").write_text("\n".join(["smiles,label", *(f"{'C' * k},1" for k in range(1, 30))]))
    assert "at least two classes" in refused("train", "one.csv")
    Path("none.csv").write_text(
        "\n".join([table[0], *(line.split(",")[0] + ",,,," for line in table[1:])])
    )
    assert "no row has a class" in refused(
        "train", "none.csv", "--label", "nitro", "--task", "binary"
    )
    Path("same.csv").write_text(
        "\n".join(["smiles,label", *(f"{'C' * k},1.5" for k in range(1, 30))])
    )
    assert "must differ between training graphs" in refused("train", "same.csv", "--json")
    assert "binary label has two values" in refused(
        "train", "mine.csv", "--label", "id", "--task", "binary"
    )


def test_bad_input_is_said_in_a_line() -> None:
    assert "there is no dataset 'nitor'" in refused("train", "nitor", code=2)
    assert "specify what to train on" in refused("train", code=2)
    assert "got a dataset or table and --file" in refused(
        "train", "nitro", "--file", "a.csv", code=2
    )
    assert "has its own splits" in refused("train", "motifs", "--split", "scaffold", code=2)
    assert "is for tables" in refused("train", "nitro", "--label", "a", code=2)
    assert "are a classification of 2" in refused("train", "nitro", "--task", "regression", code=2)
    assert "is a directory" in refused("train", "--file", ".")
    Path("mine.docx").touch()
    assert "graphs are read from" in refused("train", "mine.docx")
    assert "must end in .safetensors" in refused("train", "nitro", "--output", "a.pt", code=2)
    assert "nowhere.csv" in refused("train", "nowhere.csv")
