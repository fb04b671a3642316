"""What drawing needs."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _drawing_extra() -> None:
    for package in ("rdkit", "resvg_py"):
        pytest.importorskip(package, reason="needs the drawing extra")
