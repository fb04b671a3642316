"""Jobs whose players are edges, groups or features."""

from __future__ import annotations

from typing import Any

import pytest

from gstarx import explain, metrics
from gstarx.datasets import load, smiles_graph
from gstarx.explainers import graph_generator
from gstarx.models import pretrained
from tests.web.served import MOLECULE, Served, problem

KINDS = {
    "edges": "edges",
    "brics": "groups",
    "functional_groups": "groups",
    "rings": "groups",
    "murcko": "groups",
    "features": "features",
}


@pytest.mark.parametrize("players", KINDS)
def test_a_molecule_with_other_players(server: Served, players: str) -> None:
    job = server.job(explainers=["gstarx", "shapley"], players=players, best=True)
    model, _ = pretrained("nitro")
    data = smiles_graph(MOLECULE, "nitro")
    expected = explain(model, data, players=players, seed=graph_generator(0, 0))
    subject, result = job["subject"], job["results"][0]
    assert subject["players"]["kind"] == KINDS[players]
    assert subject["players"]["name"] == players
    count = len(subject["players"]["entries"])
    assert count == len(expected.players)
    assert result["error"] is None
    assert result["scores"] == pytest.approx(expected.scores.tolist(), abs=1e-9)
    for size, chosen in enumerate(result["selections"]):
        assert chosen == sorted(expected.select(size=size).tolist())
        judged = metrics.evaluate(model, data, chosen, players=players)
        fidelity = result["metrics"]["fidelity"][size]
        assert fidelity == pytest.approx(judged.fidelity, abs=1e-6)
    assert len(job["best"]["selections"]) == count // 2 + 1
    for entry, player in zip(subject["players"]["entries"], range(count), strict=True):
        assert entry["nodes"] == expected.nodes_of([player]).tolist()
        assert entry["name"]


def test_edges_are_named_by_their_ends(server: Served) -> None:
    job = server.job(players="edges", input={"smiles": "CCO"})
    entries = job["subject"]["players"]["entries"]
    assert entries == [{"name": "C0-C1", "nodes": [0, 1]}, {"name": "C1-O2", "nodes": [1, 2]}]


def test_a_motif_with_edges_and_communities(server: Served) -> None:
    data = load("motifs")[3]
    for players in ("edges", "communities"):
        options = ("gstarx", {"budget": 200})
        job = server.job("motifs", [options], input={"graph": 3}, players=players)
        (result,) = job["results"]
        assert len(result["scores"]) == len(job["subject"]["players"]["entries"])
        assert result["error"] is None
    assert len({n for e in job["subject"]["players"]["entries"] for n in e["nodes"]}) == len(data.x)


def test_masks_of_edges_beside_values_of_edges(server: Served) -> None:
    chosen = ["leave_one_out", ("gnnexplainer", {"epochs": 5})]
    job = server.job(explainers=chosen, players="edges")
    for result in job["results"]:
        assert result["error"] is None
        assert len(result["scores"]) == len(job["subject"]["players"]["entries"])


IMPOSSIBLE: tuple[tuple[dict[str, Any], str, str | None], ...] = (
    ({"players": "bonds"}, "invalid", None),
    ({"players": ["edges"]}, "invalid", None),
    ({"players": None}, "invalid", None),
    ({"players": "phrases"}, "bad_players", "players"),
    ({"players": "communities"}, "bad_players", "players"),
    ({"players": "edges", "explainers": ["graphsvx"]}, "bad_players", "explainers.0.name"),
    ({"players": "brics", "explainers": ["gnnexplainer"]}, "bad_players", "explainers.0.name"),
    ({"players": "edges", "input": {"smiles": "C"}}, "bad_players", "players"),
    ({"explainers": [("gstarx", {"players": "edges"})]}, "bad_option", "explainers.0.options"),
)


def test_players_that_cannot_be(server: Served) -> None:
    for request, code, field in IMPOSSIBLE:
        error = problem(server.start(**request), 422, code)
        assert field in (None, error["field"]), request


def test_a_selection_of_players_is_scored(server: Served) -> None:
    model, _ = pretrained("nitro")
    data = smiles_graph(MOLECULE, "nitro")
    question = {"model": "nitro", "input": {"smiles": MOLECULE}, "target": None}
    for players in ("edges", "brics", "features"):
        asked = {**question, "players": players, "nodes": [0, 2]}
        answer = server.client.post("/score", json=asked).json()
        expected = metrics.evaluate(model, data, [0, 2], players=players)
        assert answer["fidelity"] == pytest.approx(expected.fidelity, abs=1e-6)
        assert answer["sparsity"] == pytest.approx(expected.sparsity)
    beyond = {**question, "players": "brics", "nodes": [7]}
    assert "0..2" in problem(server.client.post("/score", json=beyond), 422, "bad_nodes")["message"]
