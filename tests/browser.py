"""A real browser for tests of pages, and what these pages must not do in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "install one by `apt-get install chromium`, or `python -m playwright install chromium`"


def executable(playwright: Any) -> str:
    """A Chromium of the system, or the one that Playwright installed; skips where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    found = found or playwright.chromium.executable_path
    if not os.path.exists(found):
        pytest.skip(f"there is no Chromium to open the page in: {INSTALL}")
    return str(found)


@contextmanager
def started_browser() -> Iterator[Any]:
    """Chromium, for as long as the block lasts; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with api.sync_playwright() as playwright:
        # a container has no sandbox to start one in
        started = playwright.chromium.launch(
            executable_path=executable(playwright), args=["--no-sandbox"]
        )
        try:
            yield started
        finally:
            started.close()
