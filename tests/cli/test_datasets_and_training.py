"""``gstarx datasets`` and ``gstarx train``."""

from __future__ import annotations

from pathlib import Path

from gstarx.datasets import load
from gstarx.models import load_model
from tests.cli.commands import found, gstarx, refused
from tests.shared import DATA, mutag


def test_datasets_are_listed_with_their_networks() -> None:
    rows = {row["name"]: row for row in found("datasets", "list")}
    assert rows["nitro"]["shipped"]
    assert rows["sst2"]["networks"] == ["sst2-gat", "sst2-gcn"]
    assert not rows["mutag"]["shipped"]
    assert "blood-brain" in " ".join(gstarx("datasets", "list").stdout.split())


def test_a_dataset_is_described() -> None:
    content = found("datasets", "info", "nitro")
    dataset = load("nitro")
    assert content["graphs"] == len(dataset)
    assert content["digest"] == dataset.digest
    assert content["splits"] == {"train": 400, "val": 50, "test": 50}
    assert content["mean_nodes"] == dataset.statistics().mean_nodes
    assert "aromatic nitro group" in gstarx("datasets", "info", "nitro").stdout
    assert found("datasets", "fetch", "nitro") == content


def test_data_is_looked_for_where_it_is_said() -> None:
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
    assert len(record["nodes"]) == 15
    again = found("train", "nitro", "--epochs", "1", "--seed", "3", "--output", "b.safetensors")
    assert again["digest"] == content["digest"]
    assert (
        "wrote c.safetensors"
        in gstarx("train", "nitro", "--epochs", "1", "--output", "c.safetensors").stdout
    )


def test_a_network_is_trained_on_a_table_of_molecules() -> None:
    lines = [f"{graph.smiles},{'yes' if int(graph.y) else 'no'}" for graph in load("nitro")[:40]]
    Path("mine.csv").write_text("\n".join(["molecule,toxic", *lines]) + "\n")
    columns = ("--smiles", "molecule", "--label", "toxic", "--epochs", "1")
    for network in ("gcn", "gin", "gat"):
        content = found("train", "mine.csv", *columns, "--network", network)
        assert content["weights"] == f"mine-{network}-0.safetensors"
        again = found("train", "mine.csv", *columns, "--network", network)
        assert again["digest"] == content["digest"]
    record = found("explain", "--smiles", "CCO", "--weights", "mine-gcn-0.safetensors")
    assert len(record["nodes"]) == 3
    assert "smiles" in refused("train", "mine.csv")


def test_a_network_without_a_recipe_for_the_dataset_gets_the_general_one() -> None:
    content = found("train", "motifs", "--network", "gat", "--epochs", "1")
    assert content["settings"]["batch_size"] == 64
    assert content["settings"]["epochs"] == content["epochs"] == 1


def test_bad_input_is_said_in_a_line() -> None:
    assert "must end in .safetensors" in refused("train", "nitro", "--output", "a.pt", code=2)
    assert "nowhere.csv" in refused("train", "nowhere.csv")
