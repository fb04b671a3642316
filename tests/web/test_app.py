"""Invalid requests get an error that says what is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gstarx_explorer.app import strict_json
from tests.web.served import MOLECULE, Served, problem

INPUTS: list[tuple[Any, str, str | None]] = [
    ({"smiles": "no molecule"}, "bad_smiles", "input.smiles"),
    ({"smiles": "c1ccccc"}, "bad_smiles", "input.smiles"),
    ({"smiles": ""}, "bad_smiles", "input.smiles"),
    ({"smiles": " \t "}, "bad_smiles", "input.smiles"),
    ({"smiles": "CC[Si]"}, "bad_smiles", "input.smiles"),
    ({"smiles": "<script>alert(1)</script>"}, "bad_smiles", "input.smiles"),
    ({"smiles": "C" * 41}, "too_many_nodes", "input.smiles"),
    ({"smiles": "C" * 201}, "too_long", "input.smiles"),
    ({"smiles": "C\x00C"}, "bad_smiles", "input.smiles"),
    ({"graph": 500}, "bad_graph", "input.graph"),
    ({"graph": -1}, "invalid", None),
    ({"graph": True}, "invalid", None),
    ({"graph": 1.5}, "invalid", None),
    ({"graph": 10**400}, "invalid", None),
    ({"sentence": "a film"}, "bad_input", "input"),
    ({"run_graph": 15}, "no_run", "model"),
    ({"smiles": "C", "graph": 1}, "invalid", None),
    ({}, "invalid", None),
    ({"path": "/etc/passwd"}, "invalid", None),
    ([], "invalid", None),
    ("C", "invalid", None),
    (None, "invalid", None),
]


def test_inputs(server: Served) -> None:
    for input, code, field in INPUTS:
        error = problem(server.start(input=input), 404 if code == "no_run" else 422, code)
        assert field in (None, error["field"]), input


EXPLAINERS: list[tuple[Any, str, str | None]] = [
    ([], "invalid", "explainers"),
    (["gstarks"], "unknown_explainer", "explainers.0.name"),
    (["best_found"], "unknown_explainer", "explainers.0.name"),
    (["os.system"], "unknown_explainer", "explainers.0.name"),
    ([("gstarx", {"budgt": 5})], "bad_option", "explainers.0.options"),
    ([("gstarx", {"budget": 5})], "bad_option", "explainers.0.options.budget"),
    ([("gstarx", {"budget": 50_001})], "bad_option", "explainers.0.options.budget"),
    ([("gstarx", {"budget": 20.5})], "bad_option", "explainers.0.options.budget"),
    ([("gstarx", {"budget": True})], "bad_option", "explainers.0.options.budget"),
    ([("gstarx", {"budget": "100"})], "bad_option", "explainers.0.options.budget"),
    ([("gstarx", {"payoff": "os.system"})], "bad_option", "explainers.0.options.payoff"),
    ([("gstarx", {"baseline": 1})], "bad_option", "explainers.0.options.baseline"),
    ([("gstarx", {"two_sided": 1})], "bad_option", "explainers.0.options.two_sided"),
    ([("random", {"seed": 1})], "bad_option", "explainers.0.options"),
    ([("banzhaf", {"presence": 2})], "bad_option", "explainers.0.options.presence"),
    ([("gstarx", {"budget": [1]})], "invalid", None),
    ([("gstarx", {"budget": None})], "invalid", None),
    (["random"] * 9, "too_many_explainers", "explainers"),
    (["random"] * 51, "invalid", "explainers"),
]


def test_explainers(server: Served) -> None:
    for chosen, code, field in EXPLAINERS:
        error = problem(server.start(explainers=chosen), 422, code)
        assert field in (None, error["field"]), chosen


def test_errors_suggest_the_nearest_name(server: Served) -> None:
    assert (
        "'gstarx'"
        in problem(server.start(explainers=["gstarks"]), 422, "unknown_explainer")["message"]
    )
    assert "'nitro'" in problem(server.start("nitros"), 404, "unknown_model")["message"]
    assert (
        "budget"
        in problem(server.start(explainers=[("gstarx", {"budgt": 5})]), 422, "bad_option")[
            "message"
        ]
    )


OTHER_FIELDS: list[dict[str, Any]] = [
    {"seed": -1},
    {"seed": 1.5},
    {"seed": 2**60},
    {"seed": "0"},
    {"target": -1},
    {"target": True},
    {"best": "yes"},
    {"best": 1},
    {"surprise": 1},
    {"model": ""},
    {"model": ["nitro"]},
    {"model": "n" * 101},
]


def test_other_fields(server: Served) -> None:
    body = {"model": "nitro", "input": {"smiles": "CC"}, "explainers": [{"name": "random"}]}
    for more in OTHER_FIELDS:
        problem(server.client.post("/jobs", json={**body, **more}), 422, "invalid")


def test_an_unknown_class(server: Served) -> None:
    assert "0..1" in problem(server.start(target=2), 422, "bad_target")["message"]


def test_a_model_with_a_problem_cannot_be_used(server: Served) -> None:
    for model in ("unloadable", "missing"):
        problem(server.start(model), 422, "no_model")
        problem(server.client.get(f"/models/{model}/graphs"), 422, "no_model")


SELECTIONS: list[tuple[Any, str]] = [
    ([13], "bad_nodes"),
    ([1, 1], "bad_nodes"),
    ([-1], "invalid"),
    ([0.5], "invalid"),
    (["0"], "invalid"),
    (list(range(1001)), "invalid"),
    ("012", "invalid"),
    (None, "invalid"),
]


def test_selections(server: Served) -> None:
    for nodes, code in SELECTIONS:
        request = {"model": "nitro", "input": {"smiles": MOLECULE}, "nodes": nodes}
        problem(server.client.post("/score", json=request), 422, code)


def test_nothing_and_everything_can_be_selected(server: Served) -> None:
    for nodes in ([], list(range(13))):
        request = {"model": "nitro", "input": {"smiles": MOLECULE}, "nodes": nodes}
        assert server.client.post("/score", json=request).json()["size"] == len(nodes)


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a number": b"1",
    "NaN": b'{"model": "nitro", "input": {"graph": NaN}}',
    "infinity": b'{"model": "nitro", "input": {"graph": 0}, "seed": Infinity}',
    "a huge number": b'{"model": "nitro", "input": {"graph": ' + b"9" * 5000 + b"}}",
    "a huge float": b'{"model": "nitro", "input": {"graph": 1e999}}',
    "nested": b"[" * 30_000,
    "nested objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "a name twice": b'{"model": "nitro", "model": "motifs", "input": {"graph": 1}}',
    "half a character": b'{"model": "\\ud800", "input": {"graph": 1}}',
    "latin": '{"model": "ä"}'.encode("latin-1"),
    "utf-16": '{"model": "nitro"}'.encode("utf-16"),
    "a null byte": b'{"model": "nitro\\u0000", "input": {"graph": 1}}',
}


@pytest.mark.parametrize("path", ["/jobs", "/score"])
def test_bodies_that_are_not_valid_json(server: Served, path: str) -> None:
    headers = {"content-type": "application/json"}
    for body in BODIES.values():
        answer = server.client.post(path, content=body, headers=headers)
        assert answer.status_code in (404, 422)
        code = "invalid" if answer.status_code == 422 else "unknown_model"
        problem(answer, answer.status_code, code)


def test_errors_say_what_is_wrong_with_the_json(server: Served) -> None:
    headers = {"content-type": "application/json"}
    for body, words in ((b'{"model": NaN}', "NaN"), (b"[" * 30_000, "recursion")):
        answer = server.client.post("/jobs", content=body, headers=headers)
        error = problem(answer, 422, "invalid")
        assert words in error["message"]
        assert error["field"] is None


def test_too_large_a_body(server: Served) -> None:
    headers = {"content-type": "application/json"}
    body = b" " * (1 << 16) + b"{}"
    problem(server.client.post("/jobs", content=body, headers=headers), 413, "too_large")
    pieces = (body[at : at + 1000] for at in range(0, len(body), 1000))
    problem(server.client.post("/jobs", content=pieces, headers=headers), 413, "too_large")


def test_pages_of_graphs(server: Served) -> None:
    long = "search=" + "a" * 201
    for query in ("limit=0", "limit=101", "offset=-1", "offset=x", "limit=1e3", long):
        problem(server.client.get(f"/models/nitro/graphs?{query}"), 422, "invalid")


def test_unknown_addresses(server: Served) -> None:
    problem(server.client.get("/nothing"), 404, "not_found")
    problem(server.client.get("/jobs"), 405, "not_allowed")
    problem(server.client.put("/about"), 405, "not_allowed")


def test_strict_json_is_strict() -> None:
    for text in (b'{"a": 1, "a": 2}', b"[NaN]", b"\xff", b"[" * 100):
        with pytest.raises(json.JSONDecodeError):
            strict_json(text)
