"""The figures that the paper prints, in one data file."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def paper() -> dict[str, Any]:
    """Tables and figures of the paper by name; see ``paper.json`` beside this file.

    >>> paper()["table_1"]["mutag"][-1]
    0.6171
    """
    found: dict[str, Any] = json.loads((files("gstarx") / "paper.json").read_text(encoding="utf-8"))
    return found
