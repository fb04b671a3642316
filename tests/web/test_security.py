"""Access control: hosts, origins, tokens, and the headers for browsers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gstarx_explorer import Settings
from gstarx_explorer.app import create_app
from gstarx_explorer.server import POLICY, address, serve
from gstarx_explorer.settings import is_loopback

TOKEN = "a-token-that-is-long-enough"
JOB = {"model": "nitro", "input": {"smiles": "C"}, "explainers": [{"name": "random"}]}


def client(base: str = "http://127.0.0.1:8000", **settings: Any) -> TestClient:
    """A client of an application whose workers are never started."""
    app = create_app(Settings(**settings))
    return TestClient(app, base_url=base, raise_server_exceptions=False, follow_redirects=False)


def test_every_response_has_the_security_headers() -> None:
    of_page = ("/", "/page/main.js", "/favicon.ico", "/page/x")
    for path in (*of_page, "/api/v1/about", "/api/v1/nothing"):
        headers = client().get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        if path.startswith("/api"):
            assert headers["cache-control"] == "no-store"


def test_the_policy_allows_no_other_host() -> None:
    assert "default-src 'none'" in POLICY
    for word in ("unsafe", "http:", "https:", "*"):
        assert word not in POLICY


def test_our_own_names_are_answered() -> None:
    for host in ("127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:9"):
        assert client().get("/api/v1/about", headers={"host": host}).status_code == 200


OTHER_NAMES = (
    "evil.example",
    "127.0.0.1.evil.example",
    "192.168.0.7:8000",
    "",
    "[",
    "localhost@x",
    "x@localhost",
    "localhost/x",
    "localhost#x",
    "localhost:x",
    "localhost:99999",
)


def test_other_names_are_not_answered() -> None:
    for host in OTHER_NAMES:
        answer = client().get("/api/v1/about", headers={"host": host})
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "forbidden"


def test_a_name_can_be_added() -> None:
    answer = client(names=("lab.example",)).get("/api/v1/about", headers={"host": "lab.example"})
    assert answer.status_code == 200


FOREIGN: tuple[dict[str, str], ...] = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://["},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
)


def test_pages_of_other_sites_cannot_write() -> None:
    browser = client()
    for headers in FOREIGN:
        assert browser.post("/api/v1/jobs", json=JOB, headers=headers).status_code == 403
        assert browser.delete("/api/v1/jobs/x", headers=headers).status_code == 403


def test_our_own_page_can_write() -> None:
    headers = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    answer = client().post("/api/v1/jobs", json=JOB, headers=headers)
    assert answer.status_code == 503, "allowed, but nothing is loaded"
    assert answer.headers["retry-after"]


def test_only_json_is_accepted() -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client().post("/api/v1/jobs", content=b"{}", headers={"content-type": kind})
        assert answer.status_code == 415
        assert answer.json()["error"]["code"] == "not_json"
        for path, status in (("/", 405), ("/api/v1/about", 405), ("/api/v1/nothing", 404)):
            answer = client().post(path, content=b"{}", headers={"content-type": kind})
            assert answer.status_code == status


OTHER_FILES = (
    "/page/../app.py",
    "/page/%2e%2e/app.py",
    "/page/..%2fapp.py",
    "/page/%2e%2e%2f%2e%2e%2fcli%2fapp.py",
    "/page//etc/passwd",
    "/page/",
    "/page",
    "/app.py",
    "/page/index.html%00.js",
)


def test_no_file_but_those_of_the_page() -> None:
    for path in OTHER_FILES:
        answer = client().get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]["code"] == "not_found"


def test_there_is_no_page_that_fetches_scripts_from_elsewhere() -> None:
    for path in ("/docs", "/redoc", "/api/v1/docs"):
        assert client().get(path).status_code == 404


class TestToken:
    def test_it_is_required(self) -> None:
        browser = client(token=TOKEN)
        for path in ("/", "/page/main.js", "/api/v1/about", "/api/v1/openapi.json"):
            answer = browser.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert browser.get("/api/v1/about").json()["error"]["code"] == "unauthorized"

    def test_a_wrong_one_is_refused(self) -> None:
        for shown in (f"Bearer {TOKEN}x", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer é"):
            headers = {"authorization": shown.encode("utf-8")}
            assert client(token=TOKEN).get("/api/v1/about", headers=headers).status_code == 401

    def test_as_a_bearer(self) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert client(token=TOKEN).get("/api/v1/about", headers=headers).status_code == 200

    def test_once_in_the_address_and_then_as_a_cookie(self) -> None:
        browser = client(token=TOKEN)
        assert browser.get("/?token=wrong").status_code == 401
        answer = browser.get(f"/?token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/api/v1/about").status_code == 200
        assert browser.get(f"/api/v1/about?token={TOKEN}").status_code == 200

    @pytest.mark.parametrize(
        "token",
        [
            "plus+and&hash#and space/slash?=%25",
            "quotes\"';, and \\ backslash",
            "grüße an alle, 你好",
            "[bold]no markup[/bold]",
        ],
    )
    def test_special_characters_work_in_every_place(self, token: str) -> None:
        link = address(Settings(token=token), 8000)
        assert " " not in link
        assert link.isascii()
        assert link.count("#") == 0
        browser = client(token=token)
        answer = browser.get(link)
        assert answer.status_code == 303
        assert browser.get("/api/v1/about").status_code == 200, "by the cookie"
        headers = {"authorization": f"Bearer {token}".encode()}
        assert client(token=token).get("/api/v1/about", headers=headers).status_code == 200

    def test_connections_without_it_are_closed(self) -> None:
        browser = client(token=TOKEN)
        for path in ("/", "/api/v1/about", "/?token=wrong"):
            assert browser.get(path).headers["connection"] == "close"
        other = browser.get("/", headers={"host": "evil.example"})
        assert (other.status_code, other.headers["connection"]) == (403, "close")
        known = browser.get("/api/v1/about", headers={"authorization": f"Bearer {TOKEN}"})
        assert "connection" not in known.headers

    def test_the_api_does_not_accept_it_in_the_address(self) -> None:
        assert client(token=TOKEN).get(f"/api/v1/about?token={TOKEN}").status_code == 401

    def test_it_is_required_if_other_machines_can_connect(self) -> None:
        with pytest.raises(ValueError, match="token"):
            serve(Settings(host="0.0.0.0"))

    def test_any_ip_address_is_accepted_then_but_no_other_name(self) -> None:
        browser = client(host="0.0.0.0", token=TOKEN)
        headers = {"authorization": f"Bearer {TOKEN}"}
        for host, status in (
            ("10.1.2.3:8000", 200),
            ("[fe80::1]:8000", 200),
            ("evil.example", 403),
        ):
            answer = browser.get("/api/v1/about", headers={**headers, "host": host})
            assert answer.status_code == status


def test_an_unexpected_error_reveals_no_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = create_app(Settings())

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError(f"lost {__file__}")

    answer = TestClient(app, base_url="http://localhost").get("/broken")
    assert answer.status_code == 500
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.json()["error"]["message"] == "an unexpected error occurred on the server"
    assert "lost" in caplog.text


def test_printed_addresses() -> None:
    assert address(Settings(), 8000) == "http://127.0.0.1:8000/"
    assert address(Settings(host="::1", token=TOKEN), 80) == f"http://[::1]:80/?token={TOKEN}"
    assert address(Settings(host="192.168.1.5"), 80) == "http://192.168.1.5:80/"
    assert address(Settings(host="0.0.0.0"), 80) == f"http://{socket.gethostname()}:80/"
    assert not is_loopback("example.org")


def test_the_server_imports_nothing_heavy(tmp_path: Path) -> None:
    import subprocess
    import sys

    from tests.cli.commands import environment

    code = (
        "import sys, gstarx_explorer.server, gstarx_explorer.app, gstarx_explorer.service\n"
        "import gstarx.cli.app\n"
        "from gstarx_explorer import Settings\n"
        "gstarx_explorer.app.create_app(Settings()).openapi()\n"
        "print({'torch', 'numpy', 'torch_geometric', 'rdkit', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout.strip() == "set()"
