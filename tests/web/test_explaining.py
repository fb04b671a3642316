"""A job from the request to the last event."""

from __future__ import annotations

import pytest

from gstarx import Explanation
from gstarx_explorer.app import Job
from tests.cli.commands import found as command_output
from tests.web.served import MOLECULE, Served, problem


def test_a_molecule_from_the_request_to_the_best_selections(server: Served) -> None:
    job = server.job(explainers=["gstarx", "graphsvx", "subgraphx"], best=True)
    Job.model_validate(job)
    assert job["state"] == "done"
    assert job["error"] is None
    assert job["progress"] == {"done": 4, "total": 4, "doing": ""}
    subject, count = job["subject"], 13
    assert subject["kind"] == "molecule"
    assert subject["title"] == MOLECULE
    assert subject["input"] == {"smiles": MOLECULE}
    assert [node["name"] for node in subject["nodes"]][8] == "N8"
    assert all(0 < node["x"] < subject["width"] for node in subject["nodes"])
    assert all(0 < node["y"] < subject["height"] for node in subject["nodes"])
    assert len(subject["edges"]) == count
    assert not subject["text"]
    assert sum(subject["prediction"]["probabilities"]) == pytest.approx(1)
    assert subject["prediction"]["name"] == "aromatic nitro group"
    assert [one["explainer"] for one in job["results"]] == ["gstarx", "graphsvx", "subgraphx"]
    for result in job["results"]:
        assert result["error"] is None
        assert len(result["selections"]) == count + 1
        for size, nodes in enumerate(result["selections"]):
            assert len(set(nodes)) == len(nodes) <= size
        assert all(len(column) == count + 1 for column in result["metrics"].values())
    found = job["results"][0]["explanation"]
    assert found["exact"] is True
    assert found["evaluations"] > 0
    assert Explanation.from_dict(found).node_scores.tolist() == job["results"][0]["scores"]
    assert job["results"][2]["scores"] is None
    best = job["best"]
    assert len(best["selections"]) == count // 2 + 1
    assert best["optimal"][0]
    for size, height in enumerate(best["metrics"]["harmonic_fidelity"]):
        for result in job["results"]:
            assert result["metrics"]["harmonic_fidelity"][size] <= height + 1e-9


@pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")
def test_the_page_and_the_command_give_the_same_numbers(server: Served) -> None:
    options = ("-o", "budget=200", "--seed", 3, "--sparsity", 0.7)
    expected = command_output("explain", "nitro", 15, "-e", "banzhaf", *options)
    job = server.job(explainers=[("banzhaf", {"budget": 200})], input={"graph": 15}, seed=3)
    (result,) = job["results"]
    assert result["explanation"]["exact"] is False  # so that there are random numbers at all
    assert result["scores"] == pytest.approx(expected["explanation"]["scores"], abs=1e-12)
    size = len(expected["selected"])
    assert result["metrics"]["fidelity"][size] == pytest.approx(expected["metrics"]["fidelity"])
    assert job["subject"]["label"] == expected["label"]
    assert job["subject"]["prediction"]["probabilities"] == pytest.approx(
        expected["prediction"]["probabilities"]
    )


def test_events_have_the_parts_of_the_job_in_order(server: Served) -> None:
    id = server.start(explainers=["gstarx", "random"], best=True).json()["id"]
    events = list(server.events(id))
    job = server.client.get(f"/jobs/{id}").json()
    assert [one["state"] for one in events if "state" in one] == ["running", "done"]
    assert [one["result"] for one in events if "result" in one] == job["results"]
    assert [one["subject"] for one in events if "subject" in one] == [job["subject"]]
    assert [one["best"] for one in events if "best" in one] == [job["best"]]
    kinds = [next(iter(one)) for one in events]
    assert kinds.index("subject") < kinds.index("result") < kinds.index("best")
    done = [one["progress"]["done"] for one in events if "progress" in one]
    assert done == sorted(done)
    assert list(server.events(id)) == events, "late listeners get all events"


def test_a_graph_of_the_motifs(server: Served) -> None:
    job = server.job("motifs", ["gstarx"], input={"graph": 3})
    subject = job["subject"]
    assert job["state"] == "done"
    assert subject["kind"] == "graph"
    assert subject["shapes"] == []
    assert len(subject["truth"]) == len(subject["nodes"])
    assert subject["label"] in (0, 1)
    assert {len(edge) for edge in subject["edges"]} == {2}


def test_another_class_can_be_explained(server: Served) -> None:
    one, other = (server.job(target=target)["results"][0] for target in (1, 0))
    assert [each["explanation"]["explained"] for each in (one, other)] == [[1], [0]]
    # without any node nothing is left of a probability, and the two of them add up to 1
    assert one["metrics"]["fidelity"][-1] + other["metrics"]["fidelity"][-1] == pytest.approx(1)
    assert one["scores"] != other["scores"]


def test_the_same_seed_gives_the_same_numbers(server: Served) -> None:
    first, again, other = (
        server.job(explainers=["random"], seed=seed)["results"][0]["scores"] for seed in (5, 5, 6)
    )
    assert first == again != other


@pytest.mark.parametrize("smiles", ["C", "CC.O", "[O-][N+](=O)c1ccccc1.Cl", "  CCO "])
def test_small_and_disconnected_molecules_are_explained(server: Served, smiles: str) -> None:
    job = server.job(
        explainers=["gstarx", "banzhaf", "graphsvx", "subgraphx", "leave_one_out"],
        input={"smiles": smiles},
        best=True,
    )
    assert job["state"] == "done"
    assert [one["error"] for one in job["results"]] == [None] * 5


def test_one_explainer_that_fails_does_not_stop_the_others(server: Served) -> None:
    explainers = [("shapley", {"estimator": "exact", "budget": 10}), "random"]
    first, second = server.job(explainers=explainers)["results"]
    assert "10" in first["error"]
    assert first["selections"] == []
    assert second["error"] is None


def test_explainers_are_trained_on_the_dataset(server: Served) -> None:
    (result,) = server.job("motifs", [("pgexplainer", {"epochs": 1})], input={"graph": 3})[
        "results"
    ]
    assert result["error"] is None
    assert result["scores"]


def test_a_selection_is_scored_like_those_of_explainers(server: Served) -> None:
    (result,) = server.job()["results"]
    request = {"model": "nitro", "input": {"smiles": MOLECULE}, "nodes": result["selections"][4]}
    score = server.client.post("/score", json=request).json()
    assert score["size"] == 4
    assert score["sparsity"] == pytest.approx(1 - 4 / 13)
    for name, column in result["metrics"].items():
        assert score[name] == pytest.approx(column[4])


def test_an_unknown_job(server: Served) -> None:
    problem(server.client.get("/jobs/nothing"), 404, "gone")
    problem(server.client.get("/jobs/nothing/events"), 404, "gone")
    problem(server.client.delete("/jobs/nothing"), 404, "gone")


def test_graphs_are_listed_and_searched(server: Served) -> None:
    page = server.client.get("/models/nitro/graphs", params={"limit": 3, "offset": 2}).json()
    assert page["total"] == 500
    assert [one["position"] for one in page["graphs"]] == [2, 3, 4]
    assert {one["split"] for one in page["graphs"]} <= {"train", "val", "test"}
    fewer = server.client.get("/models/nitro/graphs", params={"search": "Br"}).json()
    assert 0 < fewer["total"] < 500
    assert all("br" in one["title"].lower() for one in fewer["graphs"])
    (one,) = server.client.get("/models/motifs/graphs", params={"search": "399"}).json()["graphs"]
    assert one["position"] == 399


def test_models_and_explainers_are_listed(server: Served) -> None:
    about = server.about()
    models = {one["name"]: one for one in about["models"]}
    assert models["nitro"]["inputs"] == ["smiles", "graph"]
    assert models["nitro"]["kind"] == "molecule"
    assert models["nitro"]["graphs"] == 500
    assert models["motifs"]["inputs"] == ["graph"]
    assert "gstarx[text]" in models["missing"]["problem"]
    assert "no weights in (a file)" in models["unloadable"]["problem"]
    assert [one["name"] for one in about["explainers"] if one["default"]] == [
        "gstarx",
        "banzhaf",
        "graphsvx",
    ]
    for model in models.values():
        for example in model["examples"]:
            assert set(example["input"]) <= set(model["inputs"])
    example = models["nitro"]["examples"][-1]["input"]
    assert server.job(input=example, explainers=["leave_one_out"])["state"] == "done"
