"""Commands carried out in this process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
from typer.testing import CliRunner, Result

import gstarx as package
from gstarx.cli.app import app

#: A molecule with an aromatic nitro group, and the number of its nitrogen in that group.
MOLECULE = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"
NITROGEN = 8


_RECORD = jsonschema.Draft202012Validator({**package.schema(), "$ref": "#/$defs/record"})


def scores(record: dict[str, Any]) -> Any:
    """The scores in a record of ``gstarx explain``, which must fit the schema."""
    _RECORD.validate(record)
    return record["explanation"]["scores"]


def environment() -> dict[str, str]:
    """Variables with which another process finds the same package, wherever it runs."""
    source = str(Path(package.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, *([known] if known else [])])}


def gstarx(*arguments: object, code: int = 0) -> Result:
    """Carry out a command, which must end with ``code``."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def found(*arguments: object, code: int = 0) -> Any:
    """What a command prints with ``--json``."""
    return json.loads(gstarx(*arguments, "--json", code=code).stdout)


def refused(*arguments: object, code: int = 1) -> str:
    """What a command that fails says, in one line; it prints no result."""
    done = gstarx(*arguments, code=code)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    # usage errors stand in a frame
    return " ".join(done.stderr.replace("│", " ").split())
