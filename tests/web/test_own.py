"""A network of one's own with one's own table or graphs, for every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gstarx.cli.console import CommandError, WrongUse
from gstarx.cli.inputs import OwnGraphs
from gstarx.models import GCN, save_model
from gstarx.registry import DatasetSource, ModelSource
from gstarx_bench import runs
from gstarx_explorer import ServedModel, ServedRun, Settings
from gstarx_explorer.explaining import ExplanationWorker, QueryWorker
from gstarx_explorer.messages import Refused
from gstarx_explorer.serve_command import own_graphs, served_models
from gstarx_explorer.service import UNKNOWN_MODEL
from tests.cli.commands import refused
from tests.web.own_networks import MOLECULES, own, table, typed, weights

FACTORY = "tests.web.own_networks:with_bonds"
ROWS = {"sparsity": 0.7, "run": None, "filter": "all", "sort": "graph", "order": "asc"}


def asked(settings: Settings, query: str, **arguments: Any) -> Any:
    return QueryWorker(settings).answer({"query": query, "arguments": arguments})


def entry(served: ServedModel) -> dict[str, Any]:
    return {**UNKNOWN_MODEL, **asked(Settings(models=(served,)), "model", model=served.name)}


def explained(served: ServedModel, input: dict[str, Any], **more: Any) -> dict[str, list[Any]]:
    """The parts of an answer by kind."""
    worker = ExplanationWorker(Settings(models=(served,)))
    parts: dict[str, list[Any]] = {}
    job = {"model": served.name, "input": input, "target": None, "seed": 0, "best": True}
    job["explainers"] = [{"name": "leave_one_out", "options": {}}]
    worker.answer({**job, **more}, lambda kind, part: parts.setdefault(kind, []).append(part))
    return parts


def test_graphs_with_types_are_explained_by_their_nodes() -> None:
    served = typed()
    known = entry(served)
    assert known["problem"] is None
    assert (known["kind"], known["graphs"]) == ("graph", 3)
    assert [players["name"] for players in known["players"]] == ["nodes"]
    parts = explained(served, {"graph": 1})
    names = [node["name"] for node in parts["subject"][0]["nodes"]]
    assert {"author 0", "paper 0", "venue 0"} <= set(names)
    by_name = dict(zip(names, parts["result"][0]["scores"], strict=True))
    assert all(score == 0 for name, score in by_name.items() if not name.startswith("author"))
    assert any(score != 0 for score in by_name.values())


def test_what_is_said_of_a_table_reaches_the_server(tmp_path: Path) -> None:
    served = own(tmp_path, "classes")
    assert entry(served)["warnings"] == []
    path = tmp_path / "classes-table.csv"
    text = path.read_text().replace("acetone", "Säure").replace("dead", "maybe", 1)
    path.write_bytes(text.encode("latin-1"))
    with pytest.warns(UserWarning, match="maybe|UTF-8"):
        encoding, labels = entry(served)["warnings"]
    assert "is not in UTF-8" in encoding
    assert "such as 'maybe'" in labels


def test_a_network_of_a_table_is_listed_with_its_molecules(tmp_path: Path) -> None:
    served = own(tmp_path, "classes")
    known = entry(served)
    assert known["problem"] is None
    assert (known["inputs"], known["kind"]) == (["smiles", "graph"], "molecule")
    assert (known["task"], known["classes"], known["outputs"]) == (
        "classification",
        ["alive", "dead"],
        2,
    )
    assert (known["dataset"], known["graphs"], known["skipped"]) == ("classes-table", 6, 1)
    (row,) = known["unreadable"]
    assert "line 8" in row
    assert "ring" in row
    settings = Settings(models=(served,))
    page = {"model": "classes", "offset": 0, "limit": 50}
    listed = asked(settings, "graphs", **page, search="")
    assert [one["title"] for one in listed["graphs"]] == list(MOLECULES)
    assert [one["smiles"] for one in listed["graphs"]] == list(MOLECULES.values())
    assert [one["label"] for one in listed["graphs"]] == [0, 1, 0, 1, 0, 1]
    assert len(listed["graphs"][0]["picture"]["nodes"]) == 3
    for search, found in (("ANIL", ["aniline"]), ("[N+]", ["nitrobenzene"]), ("4", ["acetone"])):
        graphs = asked(settings, "graphs", **page, search=search)["graphs"]
        assert [one["title"] for one in graphs] == found


def test_a_molecule_that_is_not_in_the_table_is_explained(tmp_path: Path) -> None:
    parts = explained(own(tmp_path, "classes"), {"smiles": "CC(=O)O"})
    (subject,), (result,) = parts["subject"], parts["result"]
    assert subject["prediction"]["name"] in ("alive", "dead")
    assert sum(subject["prediction"]["probabilities"]) == pytest.approx(1)
    assert subject["target"] == subject["prediction"]["class"]
    assert {"name": "carboxylic acid", "nodes": [1, 2, 3]} in subject["groups"]
    assert len(result["scores"]) == 4
    assert parts["best"]


def test_what_is_noted_of_scores_that_say_little() -> None:
    served = ServedModel("indifferent", ModelSource("tests.web.own_networks:indifferent"))
    chosen = [
        {"name": "gstarx", "options": {}},
        {"name": "hn", "options": {"baseline": "uniform"}},
    ]
    faint, constant = explained(served, {"smiles": "CC(=O)O"}, explainers=chosen)["result"]
    (words,) = faint["notes"]
    assert words.startswith("No atom stands out: the largest score, ")
    assert faint["limit"] == 1.0
    assert constant["notes"][-1].startswith("Warning: the outputs for all evaluated parts of the")


@pytest.mark.parametrize(("salts", "atoms"), [("largest", 4), (None, 5)])
def test_molecules_are_read_as_those_of_the_training(
    tmp_path: Path, salts: str | None, atoms: int
) -> None:
    file = tmp_path / "salts.csv"
    file.write_text("smiles\nCC(=O)[O-].[Na+]\n")
    served = ServedModel(
        "mine",
        ModelSource(weights=weights(tmp_path / "w.safetensors", 2, salts=salts)),
        graphs=DatasetSource(file=str(file)),
    )
    for input in ({"smiles": "CC(=O)[O-].[Na+]"}, {"graph": 0}):
        (subject,) = explained(served, input)["subject"]
        assert len(subject["nodes"]) == atoms


def test_labels_are_compared_by_name(tmp_path: Path) -> None:
    file = table(tmp_path / "other.csv", "label", label=("dead",) * 5 + ("mad",))
    served = ServedModel(
        "mine",
        ModelSource(weights=weights(tmp_path / "w.safetensors", 2, class_names=("alive", "dead"))),
        graphs=DatasetSource(file=str(file)),
    )
    page = {"model": "mine", "offset": 0, "limit": 50, "search": ""}
    with pytest.warns(UserWarning, match="in label of 1 of 7 rows .such as 'mad'"):
        graphs = asked(Settings(models=(served,)), "graphs", **page)["graphs"]
    # 0 in this table, and a class that the network does not know
    assert [one["label"] for one in graphs] == [1, 1, 1, 1, 1, None]


def test_a_regression_has_values_and_metrics(tmp_path: Path) -> None:
    served = own(tmp_path, "value")
    assert entry(served)["classes"] == ["value"]
    parts = explained(served, {"graph": 1})
    (subject,), (result,) = parts["subject"], parts["result"]
    assert subject["title"] == "nitrobenzene"
    assert subject["measured"] == [-1.25]
    assert subject["prediction"]["class"] is None
    assert (subject["prediction"]["probabilities"], subject["remark"]) == ([], None)
    (value,) = subject["prediction"]["values"]
    assert isinstance(value, float)
    assert None not in result["metrics"]["harmonic_fidelity"][1:]
    score = asked(
        Settings(models=(served,)),
        "score",
        model="value",
        input={"graph": 1},
        target=None,
        nodes=result["selections"][3],
    )
    assert score["fidelity"] == pytest.approx(result["metrics"]["fidelity"][3])


@pytest.mark.parametrize("with_table", [True, False])
def test_a_regression_without_a_stored_reference(tmp_path: Path, with_table: bool) -> None:
    path = weights(tmp_path / "w.safetensors", 1, task="regression", target_names=("value",))
    file = table(tmp_path / "t.csv", "value")
    graphs = DatasetSource(file=str(file)) if with_table else None
    served = ServedModel("mine", ModelSource(weights=path), graphs=graphs)
    parts = explained(served, {"smiles": "CCO"})
    (subject,), (result,) = parts["subject"], parts["result"]
    assert len(result["scores"]) == 3
    assert [len(nodes) for nodes in result["selections"]] == [0, 1, 2, 3]
    asks = {"model": "mine", "input": {"smiles": "CCO"}, "target": None, "nodes": [0]}
    score = asked(Settings(models=(served,)), "score", **asks)
    if with_table:
        assert subject["remark"] is None
        assert result["metrics"]["fidelity"]
    else:
        assert "--file" in subject["remark"]
        assert result["metrics"]["fidelity"] == []
        assert "best" not in parts
        assert score["harmonic_fidelity"] is None


def test_one_of_several_targets_is_explained(tmp_path: Path) -> None:
    served = own(tmp_path, "targets")
    assert entry(served)["classes"] == ["acid", "ring"]
    with pytest.raises(Refused, match=r"2 targets: choose one in 0\.\.1"):
        explained(served, {"graph": 3})
    with pytest.raises(Refused, match=r"a target in 0\.\.1 \(got 2\)"):
        explained(served, {"graph": 3}, target=2)
    first, second = (explained(served, {"graph": 3}, target=target) for target in (0, 1))
    subject = first["subject"][0]
    assert (subject["target"], second["subject"][0]["target"]) == (0, 1)
    assert subject["measured"] == [0.0, None]
    assert subject["prediction"]["class"] is None
    assert len(subject["prediction"]["probabilities"]) == 2
    assert first["result"][0]["scores"] != second["result"][0]["scores"]
    told = [parts["result"][0]["explanation"]["explained"] for parts in (first, second)]
    assert told == [[0], [1]]


def test_a_factory_with_one_logit_and_bonds(tmp_path: Path) -> None:
    file = table(tmp_path / "t.csv", "label")
    source = ModelSource(FACTORY, task="binary")
    graphs = DatasetSource(file=str(file))
    served = ServedModel("mine", source, graphs=graphs, required=True)
    known = entry(served)
    assert (known["problem"], known["outputs"]) == (None, 2)
    assert known["classes"] == ["alive", "dead"]
    subject = explained(served, {"smiles": "CC=O"})["subject"][0]
    assert sum(subject["prediction"]["probabilities"]) == pytest.approx(1)
    assert subject["prediction"]["name"] in ("alive", "dead")


@pytest.mark.parametrize(
    ("source", "columns", "words"),
    [
        (ModelSource(FACTORY), ("label",), "one output: use --task binary"),
        (ModelSource(FACTORY, task="regression"), (), None),
        (ModelSource("tests.web.own_networks:wide"), ("label",), "cannot read this graph"),
        (ModelSource("tests.web.own_networks:table"), ("label",), "must need no arguments"),
        (ModelSource("motifs"), ("label",), "features"),
    ],
    ids=["one output", "without labels", "other features", "arguments", "other network"],
)
def test_an_unusable_model_has_a_problem(
    tmp_path: Path, source: ModelSource, columns: tuple[str, ...], words: str | None
) -> None:
    graphs = DatasetSource(file=str(table(tmp_path / "t.csv", *columns)))
    problem = entry(ServedModel("mine", source, graphs=graphs, required=True))["problem"]
    assert problem is None if words is None else words in problem


def test_graphs_that_cannot_be_loaded_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    served = own(tmp_path, "classes")
    broken = ServedModel(
        "mine",
        served.source,
        graphs=DatasetSource(file=str(tmp_path / "t.csv")),
        required=True,
    )
    assert "--smiles-column" in entry(broken)["problem"]


def test_a_network_without_anything_to_read_is_a_problem(tmp_path: Path) -> None:
    save_model(tmp_path / "w.safetensors", GCN(5, 8, 2))
    source = ModelSource(weights=tmp_path / "w.safetensors")
    problem = entry(ServedModel("mine", source, required=True))["problem"]
    assert "--file or --graphs" in problem


def test_options_select_the_model_of_the_table(tmp_path: Path) -> None:
    file = table(tmp_path / "t.csv", "label")
    graphs = own_graphs(OwnGraphs([file], label="label", limit=3))
    assert graphs is not None
    path = weights(tmp_path / "w.safetensors", 2)
    shipped, mine = served_models(["nitro"], path, graphs=graphs)
    assert (shipped.graphs, shipped.required) == (None, False)
    assert (mine.graphs, mine.required, mine.name) == (graphs, True, "w")
    with pytest.raises(WrongUse, match="goes with one model"):
        served_models([], None, graphs=graphs)
    with pytest.raises(WrongUse, match="not both"):
        own_graphs(OwnGraphs([file], "a:b"))
    with pytest.raises(WrongUse, match="can be given once"):
        own_graphs(OwnGraphs([file, file]))
    with pytest.raises(WrongUse, match="--limit goes with --file or --graphs"):
        own_graphs(OwnGraphs(limit=3))
    with pytest.raises(CommandError, match="no such file"):
        own_graphs(OwnGraphs([tmp_path / "no.csv"]))
    with pytest.raises(CommandError, match="directory"):
        own_graphs(OwnGraphs([tmp_path]))


def test_the_server_does_not_start_with_an_unusable_model(tmp_path: Path) -> None:
    served = own(tmp_path, "classes")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    message = refused(
        *("serve", "--port", 0, "--workers", 1, "--weights", served.source.weights),
        *("--file", tmp_path / "t.csv"),
    )
    assert "cannot be used" in message
    assert "--smiles-column" in message
    assert "http://" not in message


@pytest.fixture(scope="module")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with runs on a table, one for each of two targets."""
    folder = tmp_path_factory.mktemp("own")
    served = own(folder, "targets")
    assert served.graphs is not None
    spec = {
        "dataset": {"file": served.graphs.file, "options": {"label": "acid,ring"}},
        "model": {"weights": str(served.source.weights)},
        "explainer": "leave_one_out",
        "split": "all",
    }
    for target in (0, 1):
        runs.run({**spec, "target": target}, folder / "store", workers=1, progress=False)
    return folder / "store"


def test_a_run_on_a_table_is_browsed(own_store: Path) -> None:
    settings = Settings(run=ServedRun(own_store))
    summary = asked(settings, "run")
    assert (summary["dataset"], summary["model"]) == ("targets-table", "targets")
    assert (summary["task"], summary["classes"]) == ("multilabel", ["acid", "ring"])
    titles = [run["title"] for run in summary["runs"]]
    assert titles == ["Leave one out (target 0)", "Leave one out (target 1)"]
    listed = asked(settings, "rows", **ROWS, search="an", offset=0, limit=5)
    assert [row["title"] for row in listed["rows"]] == ["ethanol", "aniline"]
    ethanol = listed["rows"][0]
    assert ethanol["prediction"] is None
    assert len(ethanol["outputs"]) == 2
    assert ethanol["measured"] == [0.0, 0.0]
    assert ethanol["picture"]["kind"] == "molecule"
    worker = ExplanationWorker(settings)
    parts: list[tuple[str, Any]] = []
    job = {"model": "targets", "input": {"run_graph": 3}, "target": None, "seed": 0}
    worker.answer(
        {**job, "explainers": [], "best": True}, lambda kind, part: parts.append((kind, part))
    )
    results = [part for kind, part in parts if kind == "result"]
    assert [result["explanation"]["explained"] for result in results] == [[0], [1]]
    assert "best" not in dict(parts), "no selection is the best for two targets"


def test_a_run_is_summarized_by_functional_groups(own_store: Path) -> None:
    settings = Settings(run=ServedRun(own_store))
    summary = asked(settings, "groups", run=None, by=None)
    assert (summary["by"], summary["graphs"]) == ("functional_groups", 6)
    named = {row["name"]: row for row in summary["rows"]}
    assert {row["explained"] for row in summary["rows"]} == {"acid"}
    assert named["nitro"]["examples"] == ["nitrobenzene"]
    rows = runs.read(own_store).to_pylist()
    (scores,) = [
        row["scores"] for row in rows if row["target"] == 0 and row["name"] == "nitrobenzene"
    ]
    assert named["nitro"]["mean"] == pytest.approx(sum(scores[6:9]))
    with pytest.raises(Refused, match="no division 'words'"):
        asked(settings, "groups", run=None, by="words")


def test_a_table_that_has_changed_is_not_shown_with_old_scores(own_store: Path) -> None:
    settings = Settings(run=ServedRun(own_store))
    worker = QueryWorker(settings)
    file = Path(asked_file(own_store))
    text = file.read_text()
    file.write_text(text.replace(",CCO,", ",CCN,"))
    try:
        arguments = {"model": "targets", "input": {"run_graph": 0}, "target": 0, "nodes": [0]}
        with pytest.raises(Refused, match="has changed since the run"):
            worker.answer({"query": "score", "arguments": arguments})
    finally:
        file.write_text(text)


def asked_file(store: Path) -> str:
    (spec, *_) = [request["spec"] for request in runs.Store(store).requests()]
    return str(spec["dataset"]["file"])
