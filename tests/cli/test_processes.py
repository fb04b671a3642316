"""The command as users run it: a process with its own streams, exit codes and Ctrl-C."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from gstarx.cli import main
from tests.cli.commands import environment

SLOW = """
import time

from gstarx.models import pretrained


def make():
    model = pretrained("nitro")[0]

    def slow(x, edge_index, batch):
        time.sleep(0.05)
        return model(x, edge_index, batch)

    return slow
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gstarx", *arguments]


def carried_out(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, env=environment()
    )


def test_results_go_to_stdout() -> None:
    done = carried_out("explain", "nitro", "0", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["explainer"] == "gstarx"
    assert done.stderr == ""


def test_errors_go_to_stderr_without_a_traceback() -> None:
    done = carried_out("explain", "--smiles", "C1CC")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no molecule can be read: unclosed ring: 'C1CC'\n"
    done = carried_out("explian")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'explain'?" in done.stderr
    assert "Traceback" not in done.stderr


NAMES = ["sm\N{LATIN SMALL LETTER O WITH DIAERESIS}r \N{FULL BLOCK}", "\N{ROCKET}"]
NAMED = ["explain", "--file", "named.csv", "--model", "nitro", "-e", "leave_one_out"]


def write_named() -> None:
    rows = [f"{name},O=[N+]([O-])c1ccccc1" for name in NAMES]
    Path("named.csv").write_text("\n".join(["name,smiles", *rows]), encoding="utf-8")


def assert_shown(text: str) -> None:
    assert "##########\n" in text
    assert r"\U0001f680" in text


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_any_encoding_of_the_output(
    encoding: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> str:
        content = io.BytesIO()
        with monkeypatch.context() as patched:
            patched.setattr("sys.stdout", io.TextIOWrapper(content, encoding=encoding))
            code = main([*NAMED, *arguments])
            assert (code, capsys.readouterr().err) == (0, "")
            return content.getvalue().decode(encoding)

    write_named()
    assert_shown(printed())
    assert [record["graph"] for record in json.loads(printed("--json"))] == NAMES


def test_the_encoding_of_a_process() -> None:
    write_named()
    done = subprocess.run(
        command(*NAMED),
        capture_output=True,
        check=False,
        env={**environment(), "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert_shown(done.stdout.decode("ascii"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("arguments", [["explain", "--help"], ["version", "--json"]])
def test_output_that_cannot_be_written(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(*arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(),
        )
    assert done.returncode == 1
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


def test_warnings_and_logs_are_shown_without_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def app(**_: object) -> None:
        sys.stderr.write(warnings.formatwarning("red \x1b[31m", UserWarning, "file", 1))
        logging.Logger("alone").warning("right %s", "\u202e")

    monkeypatch.setattr("gstarx.cli.app.app", app)
    assert main([]) == 0
    assert capsys.readouterr().err == "warning: red \\x1b[31m\nright \\u202e\n"


def test_the_traceback_is_shown_on_request() -> None:
    done = carried_out("--traceback", "--settings", "nowhere.toml", "version")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another Ctrl-C")
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "slow_model.py").write_text(SLOW)
    arguments = ("explain", "nitro", "--split", "all", "--model", "slow_model:make")
    process = subprocess.Popen(
        command(*arguments, "-e", "leave_one_out", "--json", "--output", "kept.json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=tmp_path,
    )
    with process as started:
        assert started.stdout is not None
        assert started.stderr is not None
        first = ""
        while '"explanation"' not in first:  # the last field of the first graph
            line = started.stdout.readline()
            assert line, started.stderr.read()
            first += line
        time.sleep(0.3)
        started.send_signal(signal.SIGINT)
        # communicate() would miss what readline() has read ahead
        rest, said = started.stdout.read(), started.stderr.read()
    assert started.returncode == 130, said
    printed = json.loads(first + rest)
    assert 1 <= len(printed) < 500
    assert f"stopped: {len(printed)} of 500 graphs are finished" in said
    assert "Traceback" not in said
    assert json.loads((tmp_path / "kept.json").read_text()) == printed
