"""Several reports in one file: nothing is fetched, tabs work with mouse and keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gstarx_bench.cli.demo_command import tabbed_page

PAGE = "<!doctype html><p id='it'>{}</p><script>window.ran = true</script>"


def test_names_and_pages_are_escaped() -> None:
    text = tabbed_page("<b>", {"<script>alert(1)</script>": '"><img src=x>'})
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<title>&lt;b&gt;</title>" in text


@pytest.mark.browser
def test_tabs_in_a_browser() -> None:
    browsers = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    path = Path("pages.html").resolve()
    path.write_text(tabbed_page("Two", {"First": PAGE.format("one"), "Second": PAGE.format("two")}))
    fetched, said = [], []
    with browsers.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: fetched.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        first, second = page.locator("iframe").all()
        assert first.is_visible()
        assert not second.is_visible()
        assert first.content_frame.locator("#it").inner_text() == "one"
        page.get_by_role("tab", name="Second").click()
        assert second.is_visible()
        assert not first.is_visible()
        assert second.content_frame.locator("#it").inner_text() == "two"
        page.keyboard.press("ArrowLeft")
        assert first.is_visible()
        assert page.get_by_role("tab", name="First").get_attribute("aria-selected") == "true"
        browser.close()
    assert fetched == [path.as_uri()]
    assert said == []
