"""What all models of the zoo are run under."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _wrappers_without_compilation() -> Iterator[None]:
    """Let the wrapper of ``torch.compile`` call its model directly, which spares the seconds."""
    with torch.compiler.set_stance("force_eager"):
        yield
