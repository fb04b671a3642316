"""The report in a browser: no errors, no requests, and every control works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gstarx_bench.report import write_report
from tests.browser import started_browser
from tests.report.made import SCRIPT, report_data

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(path, report_data()).as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The opened report; console messages and requests fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(10_000)
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: wrong.append(request.url))
    opened.goto(address)
    yield opened
    context.close()
    assert wrong == [address]


def shown(page: Any) -> list[str]:
    """Headings of the cards that can be seen, in order."""
    return [card.inner_text() for card in page.locator("#gallery > li:visible h3").all()]


def names(page: Any) -> list[str]:
    """First column of the table, notes left out."""
    cells = page.locator("#explainers tbody th").all()
    return [cell.inner_text().partition("\n")[0] for cell in cells]


ALL = ["methanol\nCO", SCRIPT, "a graph", "methylamine\nCN"]


def test_a_script_as_a_name_is_shown_as_text(page: Any) -> None:
    assert shown(page) == ALL
    assert page.title() == f"A report on {SCRIPT}"
    assert page.locator("h1").inner_text() == f"A report on {SCRIPT}"
    assert page.locator("script").count() == 1
    assert page.locator("#count").inner_text() == "All 4 graphs"


def test_the_table_sorts_by_any_column(page: Any) -> None:
    assert names(page)[0] == "best selection found"
    heading = page.get_by_role("button", name="Fidelity", exact=True)
    heading.click()
    assert names(page) == ["best selection found", "first", "second & co", "random selection"]
    assert page.locator("th[aria-sort]").count() == 1
    heading.click()
    assert names(page) == ["random selection", "second & co", "first", "best selection found"]
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Fidelity")
    page.get_by_role("button", name="Explainer", exact=True).click()
    assert names(page) == sorted(names(page))


def test_cards_are_found_by_text(page: Any) -> None:
    page.fill("#search", "METH")
    assert shown(page) == [ALL[0], ALL[3]]
    assert page.locator("#count").inner_text() == "2 of 4 graphs"
    page.fill("#search", "<script>")
    assert shown(page) == [SCRIPT]
    page.fill("#search", "nothing like it")
    assert shown(page) == []


def test_cards_are_found_by_prediction_class_and_metric(page: Any) -> None:
    page.select_option("#verdict", "wrong")
    assert shown(page) == ["a graph"]
    page.select_option("#verdict", "right")
    assert shown(page) == [ALL[0], SCRIPT, ALL[3]]
    page.select_option("#class", "1")
    assert shown(page) == [SCRIPT, ALL[3]]
    page.select_option("#metric", "fidelity")
    page.fill("#least", "0.6")
    assert shown(page) == [ALL[3]]
    page.select_option("#explainer", "second & co")
    assert shown(page) == []
    page.click("#reset")
    assert shown(page) == ALL
    assert page.evaluate("document.activeElement.id") == "search"


def test_cards_are_sorted(page: Any) -> None:
    page.select_option("#order", "high")
    assert shown(page) == [ALL[3], SCRIPT, "a graph", ALL[0]]
    page.select_option("#explainer", "second & co")
    assert shown(page) == [ALL[0], ALL[3], SCRIPT, "a graph"]
    page.select_option("#order", "low")
    assert shown(page) == ["a graph", SCRIPT, ALL[3], ALL[0]]
    page.select_option("#order", "sure")
    assert shown(page) == ALL[::-1]
    page.select_option("#order", "given")
    assert shown(page) == ALL


def test_a_picture_is_enlarged_with_the_keyboard(page: Any) -> None:
    picture = page.locator(".open").first
    picture.focus()
    page.keyboard.press("Enter")
    assert page.locator("#large").is_visible()
    assert page.locator("#large-name").inner_text() == "first: methanol"
    assert page.locator("#large-picture svg").count() == 1
    for text in ("H-fidelity", "inverse", "hydroxyl −0.25"):
        assert text in page.locator("#large-caption").inner_text()
    assert page.locator("#large .legend svg").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#large").is_visible()
    assert page.evaluate("document.activeElement.className") == "open picture"


def test_a_functional_group_finds_its_molecules(page: Any) -> None:
    page.get_by_role("button", name="hydroxyl").click()
    assert page.locator("#search").input_value() == "hydroxyl"
    assert shown(page) == [ALL[0]]


def test_a_wide_table_says_that_it_scrolls(page: Any) -> None:
    hint = page.locator(".sideways")
    assert not hint.is_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    hint.wait_for(state="visible")
    table = page.get_by_role("region", name="Table of explainers")
    assert table.evaluate("panel => panel.scrollWidth > panel.clientWidth")
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert table.evaluate("panel => panel.scrollLeft") > 0


def test_controls_can_be_reached_by_the_keyboard(page: Any) -> None:
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    controls = {"search", "verdict", "class", "explainer", "metric", "least", "order", "reset"}
    assert controls <= reached
    page.locator("#search").focus()
    page.keyboard.type("amine")
    page.keyboard.press("Enter")
    assert shown(page) == [ALL[3]]


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_its_window(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for picture in page.locator(".open svg").all():
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_dark_page_is_dark_and_pictures_stay_on_light_paper(page: Any) -> None:
    def background(selector: str) -> str:
        script = "s => getComputedStyle(document.querySelector(s)).backgroundColor"
        return str(page.evaluate(script, selector))

    light = background("body")
    page.emulate_media(color_scheme="dark")
    assert background("body") == "rgb(18, 22, 27)" != light
    assert background(".open") == "rgb(255, 255, 255)"
