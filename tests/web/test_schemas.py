"""The OpenAPI description, and random requests that it allows: none is answered with 5xx.

Short by default, long with the soak profile.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gstarx_explorer.settings import offered
from tests.web.served import Served

schemathesis = pytest.importorskip("schemathesis")

SOAK = settings.default is settings.get_profile("soak")


def description() -> dict[str, Any]:
    from gstarx_explorer import Settings
    from gstarx_explorer.app import create_app

    content: dict[str, Any] = create_app(Settings()).openapi()
    return content


def test_all_routes_are_described() -> None:
    content = description()
    assert content["openapi"].startswith("3.")
    assert {path: sorted(kinds) for path, kinds in content["paths"].items()} == {
        "/api/v1/about": ["get"],
        "/api/v1/models/{model}/graphs": ["get"],
        "/api/v1/score": ["post"],
        "/api/v1/jobs": ["post"],
        "/api/v1/jobs/{job}": ["delete", "get"],
        "/api/v1/jobs/{job}/events": ["get"],
        "/api/v1/run": ["get"],
        "/api/v1/run/rows": ["get"],
        "/api/v1/run/groups": ["get"],
    }
    for path, kinds in content["paths"].items():
        for kind, operation in kinds.items():
            assert operation["description"] or operation["summary"], (kind, path)
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    (schema,) = [one["schema"] for one in answer["content"].values()]
                    assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}
    assert "HTTPValidationError" not in json.dumps(content)


def test_the_server_serves_the_description(server: Served) -> None:
    served = server.client.get("/openapi.json").json()
    assert served["paths"].keys() == description()["paths"].keys()


OPTIONS = st.dictionaries(
    st.sampled_from(
        sorted({option.name for spec in offered().values() for option in spec.options})
    ),
    st.integers() | st.floats() | st.booleans() | st.sampled_from(["auto", "exact", "prob", ""]),
    max_size=2,
)
SMILES = st.text(alphabet="CNOcn1()=[]+-#/\\.@% 2ÿ", max_size=12)
REQUESTS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["nitro", "motifs", "nan", "missing", "nitro-gcn"]),
        "input": st.builds(lambda text: {"smiles": text}, SMILES)
        | st.builds(lambda at: {"graph": at}, st.integers(-1, 600))
        | st.builds(lambda at: {"run_graph": at}, st.sampled_from([15, 44, 3])),
        "target": st.none() | st.integers(-1, 3),
    }
)


@given(
    request=REQUESTS,
    names=st.lists(st.sampled_from(list(offered())), max_size=3),
    options=OPTIONS,
    nodes=st.lists(st.integers(-1, 20), max_size=5),
)
@settings(
    max_examples=1_000 if SOAK else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_requests_that_are_nearly_right(
    server: Served, request: Any, names: list[str], options: Any, nodes: list[int]
) -> None:
    chosen = [{"name": name, "options": options} for name in names]
    headers = {"content-type": "application/json"}
    body = json.dumps({**request, "explainers": chosen})
    answer = server.client.post("/jobs", content=body, headers=headers)
    assert answer.status_code in (202, 404, 422, 429), answer.text
    if answer.status_code == 202:
        server.client.delete(f"/jobs/{answer.json()['id']}")
    body = json.dumps({**request, "nodes": nodes})
    answer = server.client.post("/score", content=body, headers=headers)
    assert answer.status_code in (200, 404, 422), answer.text


schema = schemathesis.openapi.from_dict(description())


@schema.exclude(path_regex="/events$").parametrize()
@settings(
    max_examples=1_000 if SOAK else 25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_server(case: Any, server: Served) -> None:
    answer = case.call(base_url=f"http://127.0.0.1:{server.port}")
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    checks = schemathesis.checks
    case.validate_response(
        answer,
        checks=[
            checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ],
    )
