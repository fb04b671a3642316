"""An optional package is named together with the extra that installs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gstarx._internal import imports


def test_what_is_installed_is_imported() -> None:
    assert imports.require("json", extra="any") is json
    assert imports.require("json.decoder", extra="any").JSONDecoder is json.JSONDecoder


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"needs no_such: pip install 'gstarx\[some\]'") as caught:
        imports.require("no_such.part", extra="some")
    assert caught.value.name == "no_such"


def test_an_installed_package_keeps_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        imports.require("half_there", extra="some")
    assert "half_there" not in sys.modules
