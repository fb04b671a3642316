"""The explorer in a browser: no console messages, and no requests to other hosts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlparse
from xml.etree import ElementTree

import pytest

from gstarx.drawing.svg import score_color
from gstarx_explorer import Settings
from gstarx_explorer.server import address as address_of
from tests.browser import started_browser
from tests.web import made_answers
from tests.web.served import Served, wait_for

pytestmark = pytest.mark.browser

#: Nitrobenzene, and its nitrogen and oxygens.
SMILES, NITRO = "c1ccccc1[N+](=O)[O-]", [6, 7, 8]
ASKED = f"#ask?model=nitro&smiles={quote(SMILES)}&explainer=gstarx&explainer=leave_one_out"
READY = "#ask:visible, #browse:visible, #gallery:visible, #summary:visible"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def address(browser: Any, server: Served) -> str:
    """The address of the server, once all workers have recovered from earlier tests."""
    wait_for(lambda: len(server.service.pids) == 3)
    return f"http://127.0.0.1:{server.port}"


class Explorer:
    """The opened page, and its console messages."""

    def __init__(self, context: Any, address: str) -> None:
        self.address = address
        self.page = context.new_page()
        self.wrong: list[str] = []
        #: Refused requests, which the browser logs itself, and those that a test expects.
        self.refused = self.expected_refusals = 0
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.text.startswith("Failed to load resource"):
            self.refused += 1
        else:
            self.wrong.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address + "/", "blob:", "data:")):
            self.wrong.append(request.url)

    def open(self, view: str = "") -> Any:
        """The page, once it is ready."""
        self.page.goto(f"{self.address}/{view}")
        self.page.locator(READY).first.wait_for()
        return self.page

    def asked(self, view: str = ASKED) -> Any:
        """The page with results."""
        self.open(view)
        self.answered()
        return self.page

    def answered(self) -> None:
        self.page.get_by_text("Finished in").wait_for()

    def card(self, name: str) -> Any:
        return self.page.locator(f"[data-card={name}]")

    def figure(self, name: str, metric: str = "harmonic_fidelity") -> str:
        """A metric on a card, once it is there."""
        cell = self.card(name).locator(f"[data-metric={metric}]").filter(has_not_text="–")
        return str(cell.inner_text())

    def atom(self, card: str, node: int) -> Any:
        return self.card(card).locator(f".node[data-node='{node}']")

    def selected(self) -> list[int]:
        """The atoms of the user's own selection."""
        checked = self.card("own").locator(".node[aria-checked=true]").all()
        return [int(node.get_attribute("data-node")) for node in checked]

    def link(self) -> dict[str, list[str]]:
        """The parameters of the address."""
        return parse_qs(urlparse(self.page.url).fragment.partition("?")[2])

    def downloaded(self, kind: str) -> bytes:
        with self.page.expect_download() as waiting:
            self.page.locator(f"[data-download={kind}]").click()
        assert waiting.value.suggested_filename.endswith(f".{kind}")
        return Path(waiting.value.path()).read_bytes()

    def fits(self) -> bool:
        """Whether nothing has to be scrolled sideways."""
        return bool(
            self.page.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            )
        )


@pytest.fixture
def explorer(browser: Any, address: str) -> Iterator[Explorer]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce", accept_downloads=True
    )
    context.set_default_timeout(30_000)
    made = Explorer(context, address)
    yield made
    context.close()
    assert made.wrong == []
    assert made.refused == made.expected_refusals


def test_a_molecule_is_explained(explorer: Explorer) -> None:
    page = explorer.open()
    page.get_by_label("SMILES", exact=True).last.fill(SMILES)
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    titles = page.locator(".card h3").all_inner_texts()
    assert titles == [
        "GStarX",
        "Banzhaf value",
        "GraphSVX",
        "Best found",
        "Your selection",
    ]
    assert page.locator(".head h2").inner_text() == SMILES
    assert page.locator(".head strong").inner_text() == "aromatic nitro group"
    shares = page.locator(".classes .value").all_inner_texts()
    assert sum(float(share.removesuffix(" %")) for share in shares) == pytest.approx(100, abs=0.2)
    methods = ("gstarx", "banzhaf", "graphsvx")
    for name in (*methods, "best"):
        assert 0 <= float(explorer.figure(name)) <= 1
        assert explorer.card(name).locator(".node").count() == 9
    assert explorer.card("gstarx").locator(".badges").inner_text() == "exact"
    assert "evaluations" in explorer.card("gstarx").locator(".foot").inner_text()
    best = float(explorer.figure("best"))
    assert all(float(explorer.figure(name)) <= best for name in methods)
    assert explorer.link()["smiles"] == [SMILES]


def test_a_graph_of_a_dataset_is_found_and_explained(explorer: Explorer) -> None:
    page = explorer.open()
    page.get_by_role("radio", name="House or five-cycle").check()
    page.get_by_text("1–8 of 400").wait_for()
    page.get_by_role("button", name="Next graphs").click()
    page.get_by_text("9–16 of 400").wait_for()
    page.get_by_label("Find a graph").fill("197")
    chosen = page.locator("#graph-list").get_by_role("radio")
    page.get_by_text("1–1 of 1").wait_for()
    chosen.check()
    for name in ("Banzhaf value", "GStarX"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    page.get_by_text("Class, seed, best selection").click()
    page.get_by_label("Search for the best selection").uncheck()
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    assert explorer.card("best").count() == 0
    assert explorer.card("graphsvx").locator(".node").count() == 25
    assert page.locator(".badge").inner_text() == "correct prediction"
    truth = page.get_by_label("mark the true nodes")
    marks = explorer.card("graphsvx").locator(".truth:not([stroke=none])")
    assert marks.count() == 0
    truth.check()
    assert marks.count() == 5


def test_the_slider_selects_and_scores_at_once(explorer: Explorer) -> None:
    page = explorer.asked()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    slider = page.get_by_role("slider", name="Sparsity")
    assert page.locator("output.kept").inner_text() == "keeps 2 of 9 atoms"
    before = explorer.figure("gstarx")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("output.kept").inner_text() == "keeps 3 of 9 atoms"
    assert slider.get_attribute("aria-valuetext") == "keeps 3 of 9 atoms, sparsity 0.67"
    assert explorer.card("gstarx").locator(".bars .kept").count() == 3
    assert explorer.figure("gstarx") != before
    page.keyboard.press("End")
    assert page.locator("output.kept").inner_text() == "keeps 0 of 9 atoms"
    assert explorer.figure("gstarx", "fidelity") == "0.000"
    assert "Not searched" not in explorer.card("best").inner_text()
    page.keyboard.press("Home")
    assert explorer.figure("gstarx", "inverse_fidelity") == "0.000"
    assert "Not searched" in explorer.card("best").inner_text()
    # the icon of the tab comes when the browser likes
    assert [url for url in asked if "/api/" in url] == []
    page.wait_for_timeout(300)
    assert explorer.link()["sparsity"] == ["0"]


def test_a_selection_is_compared_with_the_explainers(explorer: Explorer) -> None:
    page = explorer.asked()
    for atom in NITRO:
        explorer.atom("own", atom).click()
    assert explorer.selected() == NITRO
    shown = {name: explorer.figure("own", name) for name in ("fidelity", "harmonic_fidelity")}
    question = {"model": "nitro", "input": {"smiles": SMILES}, "target": None, "nodes": NITRO}
    answer = page.request.post(f"{explorer.address}/api/v1/score", data=question).json()
    assert shown == {name: f"{answer[name]:.3f}" for name in shown}
    rows = page.locator(".compared tr").all_inner_texts()
    assert {row.split("\t")[0].strip() for row in rows} == {
        "yours",
        "GStarX",
        "Leave one out",
        "Best found",
    }
    values = [float(row.split()[-1]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert page.locator(".own-point").count() == 1
    explorer.atom("own", 6).click()
    assert explorer.selected() == NITRO[1:]
    page.get_by_label("Copy the selection of").select_option(label="GStarX")
    kept = explorer.card("gstarx").locator(".bars .kept").all()
    assert explorer.selected() == sorted(int(row.get_attribute("data-node")) for row in kept)
    assert explorer.figure("own") == explorer.figure("gstarx")
    page.get_by_role("button", name="Clear").click()
    assert explorer.selected() == []
    assert page.locator(".own-point").count() == 0


def test_bonds_get_scores_and_can_be_selected(explorer: Explorer) -> None:
    page = explorer.open()
    page.get_by_label("SMILES", exact=True).last.fill(SMILES)
    page.get_by_label("What gets scores").select_option(label="bonds")
    assert page.get_by_role("checkbox", name="GraphSVX").is_disabled()
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    assert explorer.link()["players"] == ["edges"]
    card = explorer.card("gstarx")
    assert card.locator(".player").count() == 9
    assert "keeps 2 of 9 bonds" in page.locator(".kept").first.inner_text()
    assert card.locator(".bars li").first.inner_text().split()[0] in ("C5-N6", "N6-O7", "N6-O8")
    assert page.locator(".card h3").all_inner_texts() == [
        "GStarX",
        "Banzhaf value",
        "Best found",
        "Your selection",
    ]
    # bonds lie behind each other: the middle of a bar may belong to a letter
    for bond in (6, 7):
        explorer.atom("own", bond).dispatch_event("click")
    assert explorer.selected() == [6, 7]
    shown = explorer.figure("own")
    question = {"model": "nitro", "input": {"smiles": SMILES}, "target": None}
    question |= {"players": "edges", "nodes": [6, 7]}
    answer = page.request.post(f"{explorer.address}/api/v1/score", data=question).json()
    assert shown == f"{answer['harmonic_fidelity']:.3f}"
    assert explorer.downloaded("csv").decode().startswith("player,name,nodes,")
    assert b"<svg" in explorer.downloaded("svg")
    address = page.url
    explorer.asked(address.partition("/#")[2].join(["#", ""]))
    assert explorer.selected() == [6, 7]
    assert page.get_by_label("What gets scores").input_value() == "edges"


@pytest.mark.parametrize(
    ("players", "count", "word"),
    [("brics", 1, "fragment"), ("rings", 4, "groups"), ("features", 8, "features")],
)
def test_other_players_have_pictures_and_keys(
    explorer: Explorer, players: str, count: int, word: str
) -> None:
    page = explorer.asked(f"{ASKED}&players={players}")
    for name in ("gstarx", "leave_one_out", "own"):
        assert explorer.card(name).locator(".player").count() == count
    assert f"of {count} {word}" in page.locator(".kept").first.inner_text()
    first = explorer.atom("own", 0)
    first.focus()
    page.keyboard.press("Enter")
    assert explorer.selected() == [0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert explorer.selected() == []
    # a model whose graphs have no such players
    page.get_by_role("radio", name="House or five-cycle").check()
    chosen = page.get_by_label("What gets scores").input_value()
    assert chosen == ("features" if players == "features" else "nodes")


def test_a_node_is_highlighted_in_all_cards(explorer: Explorer) -> None:
    page = explorer.asked()
    explorer.atom("gstarx", 6).hover()
    for card in ("gstarx", "leave_one_out", "best", "own"):
        assert "lit" in explorer.atom(card, 6).get_attribute("class").split()
    tip = page.locator("#tooltip").inner_text()
    assert tip.splitlines()[0] == "N6"
    assert "rank 1 of 9" in tip
    page.mouse.move(5, 5)
    assert page.locator(".lit").count() == 0
    assert page.locator("#tooltip").is_hidden()


def test_a_job_is_canceled_and_the_next_one_finishes(explorer: Explorer) -> None:
    page = explorer.open(f"{ASKED}&explainer=orphicx")
    explorer.figure("gstarx")
    page.get_by_role("button", name="Cancel").click()
    page.locator("#progress-text", has_text="Canceled.").wait_for()
    assert "Canceled." in explorer.card("orphicx").inner_text()
    assert explorer.figure("gstarx")
    page.get_by_role("checkbox", name="OrphicX", exact=True).uncheck()
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    assert explorer.figure("gstarx")


def test_errors_are_shown_next_to_their_field(explorer: Explorer) -> None:
    page = explorer.open()
    field = page.locator("#smiles")
    field.fill("c1ccc")
    field.press("Enter")
    page.locator("#input-error:visible").wait_for()
    assert "c1ccc" in page.locator("#input-error").inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "smiles"
    explorer.expected_refusals = 1
    field.fill("")
    field.press("Enter")
    assert "SMILES" in page.locator("#input-error").inner_text()
    for name in ("GStarX", "Banzhaf value", "GraphSVX"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    field.fill(SMILES)
    field.press("Enter")
    assert page.locator("#input-error").is_hidden()
    assert page.locator("#explainers-error").inner_text() == "Choose at least one explainer."
    page.get_by_role("checkbox", name="GStarX", exact=True).check()
    page.get_by_label("About GStarX and its options", exact=True).click()
    page.locator("#option-gstarx-budget").fill("1")
    field.press("Enter")
    problem = page.locator("[data-explainer=gstarx] .error")
    problem.wait_for()
    assert "budget" in problem.inner_text()
    explorer.expected_refusals = 2
    page.locator("#option-gstarx-budget").fill("500")
    field.press("Enter")
    explorer.answered()
    assert problem.is_hidden()
    assert explorer.link()["gstarx.budget"] == ["500"]


def test_a_long_message_is_not_hidden_by_the_button(explorer: Explorer) -> None:
    page = explorer.open()
    field, words = "explainers.2.options.num_samples", "would take about 37.6 GB of memory, " * 5
    refusal = {"error": {"code": "too_much_memory", "message": words, "field": field}}
    page.route("**/api/v1/jobs", lambda route: route.fulfill(status=422, json=refusal))
    page.locator("#smiles").fill(SMILES)
    page.get_by_label("About GraphSVX and its options").click()
    page.locator("#smiles").press("Enter")
    problem = page.locator("[data-explainer=graphsvx] .error:visible")
    problem.wait_for()
    explorer.expected_refusals = 1
    box, button = problem.bounding_box(), page.locator(".go").bounding_box()
    assert box["y"] + box["height"] <= button["y"]


def test_a_busy_server_is_tried_again(explorer: Explorer) -> None:
    page = explorer.open()
    turned_away = []

    def busy(route: Any) -> None:
        if turned_away:
            route.fallback()
            return
        turned_away.append(route.request.url)
        problem = {"code": "busy", "message": "All workers are busy.", "field": None}
        route.fulfill(status=429, headers={"Retry-After": "2"}, json={"error": problem})

    page.route("**/api/v1/jobs", busy)
    page.get_by_role("button", name="Explain", exact=True).click()
    page.get_by_text("All workers are busy. Trying again in 2 s.").wait_for()
    page.get_by_role("button", name="Try now").wait_for()
    explorer.answered()
    assert page.locator("#form-error").is_hidden()
    explorer.expected_refusals = 1


def test_escape_cancels_a_request_that_is_not_accepted_yet(explorer: Explorer) -> None:
    page = explorer.open()
    held: list[Any] = []
    dropped: list[str] = []
    page.on("request", lambda asked: asked.method == "DELETE" and dropped.append(asked.url))
    page.route("**/api/v1/jobs", lambda route: held.append(route))
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator("#cancel").wait_for()
    wait_for(lambda: (page.wait_for_timeout(20), held)[1])
    page.keyboard.press("Escape")
    page.locator("#progress").wait_for(state="hidden")
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as waiting:
        held[0].continue_()  # the server takes the job when nobody wants it any more
    assert waiting.value.ok
    assert len(dropped) == 1
    assert page.locator("#results").is_hidden()


def test_a_server_that_does_not_respond_is_tried_again(explorer: Explorer) -> None:
    page = explorer.open()
    page.route("**/api/v1/**", lambda route: route.abort())
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator("#banner", has_text="The server does not respond").wait_for()
    assert page.locator("#form-error").inner_text() == "The server does not respond."
    page.unroute("**/api/v1/**")
    page.locator("#banner").wait_for(state="hidden")
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    explorer.expected_refusals = explorer.refused


def test_a_link_restores_the_view(explorer: Explorer) -> None:
    view = (
        f"#ask?model=nitro&smiles={quote(SMILES)}&explainer=shapley&shapley.budget=600"
        "&explainer=random&seed=3&best=no&target=0&sparsity=0.5&own=6.7"
    )
    page = explorer.asked(view)
    assert page.locator(".card h3").all_inner_texts() == [
        "Shapley value",
        "Random",
        "Your selection",
    ]
    assert page.locator("output.kept").inner_text() == "keeps 4 of 9 atoms"
    assert explorer.selected() == [6, 7]
    assert explorer.figure("own")
    assert page.locator("#seed").input_value() == "3"
    assert page.locator("#option-shapley-budget").input_value() == "600"
    assert page.locator("#target").input_value() == "0"
    assert "not the predicted one" in page.locator(".head").inner_text()
    figure = explorer.figure("random")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    other = page.context.new_page()
    other.goto(copied)
    other.get_by_text("Finished in").wait_for()
    assert (
        other.locator("[data-card=random] [data-metric=harmonic_fidelity]").inner_text() == figure
    )
    assert other.locator("output.kept").inner_text() == "keeps 4 of 9 atoms"
    other.close()


def test_results_stay_until_the_next_request_is_accepted(explorer: Explorer) -> None:
    page = explorer.asked()
    view = page.url
    page.locator("#smiles").fill("no molecule")
    page.locator("#smiles").press("Enter")
    page.locator("#input-error:visible").wait_for()
    explorer.expected_refusals = 1
    assert page.locator(".head h2").inner_text() == SMILES
    assert page.url == view
    page.get_by_role("link", name="Browse").click()
    page.get_by_text("1–4 of 4 graphs").wait_for()
    page.get_by_role("link", name="Ask", exact=True).click()
    assert page.locator(".head h2").inner_text() == SMILES


@pytest.mark.parametrize("view", ["#ask?model=nothing&smiles=CC", "#ask?model=motifs"])
def test_an_invalid_address_does_not_show_other_results(explorer: Explorer, view: str) -> None:
    page = explorer.asked()
    page.evaluate("view => { location.hash = view; }", view)
    page.locator("#results").wait_for(state="hidden")
    assert page.locator("#model-error").is_visible() == ("nothing" in view)
    page.go_back()
    explorer.answered()
    assert page.locator(".head h2").inner_text() == SMILES


def test_hostile_addresses_do_no_harm(explorer: Explorer) -> None:
    hostile = quote(made_answers.HOSTILE)
    page = explorer.open(f"#ask?model={hostile}&smiles={hostile}&sparsity=abc&own=999.x&seed=-1")
    assert made_answers.HOSTILE in page.locator("#model-error").inner_text()
    page = explorer.asked(f"{ASKED}&sparsity=7&own=999.6.abc&explainer={hostile}&gstarx.budget=[")
    assert explorer.selected() == [6]
    assert page.locator("output.kept").inner_text() == "keeps 2 of 9 atoms"
    assert page.evaluate("'hacked' in window") is False


def test_the_sparsity_is_not_changed_by_a_small_molecule(
    explorer: Explorer,
) -> None:
    page = explorer.asked("#ask?model=nitro&smiles=C&explainer=gstarx&own=0")
    assert page.locator("output.kept").inner_text() == "keeps 1 of 1 atom"
    assert "1 evaluation " in explorer.card("gstarx").locator(".foot").inner_text()
    explorer.figure("own")
    page.wait_for_timeout(300)
    assert explorer.link()["sparsity"] == ["0.7"]
    page.locator("#smiles").fill("C" * 10)
    page.locator("#smiles").press("Enter")
    page.locator("output.kept", has_text="keeps 3 of 10 atoms").wait_for()
    explorer.answered()


def test_large_molecules_get_wider_cards(explorer: Explorer) -> None:
    def width() -> float:
        return float(explorer.card("random").bounding_box()["width"])

    explorer.asked(f"#ask?model=nitro&smiles={quote(SMILES)}&explainer=random&best=no")
    usual = width()
    explorer.asked(f"#ask?model=nitro&smiles={'CCO' * 13}&explainer=random&best=no")
    assert width() > 1.3 * usual
    explorer.page.set_viewport_size({"width": 390, "height": 844})
    assert explorer.fits()


def test_the_position_in_the_queue_is_shown(explorer: Explorer) -> None:
    parts = [{"position": 2}, {"position": 1}, {"position": 0}]
    stream = "".join(f"event: job\ndata: {json.dumps(part)}\n\n" for part in parts)
    page = explorer.open()
    page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => {
            window.seen.push(document.getElementById('progress-text').textContent);
        }).observe(document.getElementById('progress-text'), { childList: true }); }"""
    )
    events = "**/api/v1/jobs/*/events"
    page.route(
        events, lambda route: route.fulfill(content_type="text/event-stream", body=stream), times=1
    )
    page.get_by_role("button", name="Explain", exact=True).click()
    page.locator("#progress-text", has_text="next in the queue").wait_for()
    assert {"in the queue behind 2", "in the queue behind 1"} <= set(page.evaluate("window.seen"))


def test_back_and_forward_move_between_requests(explorer: Explorer) -> None:
    page = explorer.asked()
    page.locator("#smiles").fill("CCO")
    page.locator("#smiles").press("Enter")
    page.locator(".head h2", has_text="CCO").wait_for()
    page.go_back()
    page.locator(".head h2", has_text=SMILES).wait_for()
    assert page.locator("#smiles").input_value() == SMILES
    page.go_forward()
    page.locator(".head h2", has_text="CCO").wait_for()
    explorer.answered()


def test_the_view_can_be_exported(explorer: Explorer) -> None:
    explorer.asked(f"{ASKED}&own=6.7.8&sparsity=0.6")
    explorer.figure("own")
    picture = explorer.downloaded("svg")
    root = ElementTree.fromstring(picture)
    words = [text for part in root.iter() if (text := part.text)]
    assert {"GStarX", "Leave one out", "Best found", "Your selection", SMILES} <= set(words)
    assert b"var(" not in picture
    assert explorer.downloaded("png").startswith(b"\x89PNG\r\n")
    exported = json.loads(explorer.downloaded("json"))
    assert [one["explainer"] for one in exported["explainers"]] == ["gstarx", "leave_one_out"]
    assert exported["size"] == len(exported["explainers"][0]["selected"]) == 3
    assert exported["own"]["selected"] == NITRO
    figure = exported["explainers"][0]["metrics"]["harmonic_fidelity"]
    assert f"{figure:.3f}" == explorer.figure("gstarx")
    rows = list(csv.DictReader(io.StringIO(explorer.downloaded("csv").decode())))
    assert [row["name"] for row in rows][6:] == ["N6", "O7", "O8"]
    scores = exported["explainers"][0]["scores"]
    assert [float(row["GStarX score"]) for row in rows] == scores
    assert [row["Your selection kept"] for row in rows] == ["0"] * 6 + ["1"] * 3


def test_a_run_is_browsed_and_a_graph_opened(explorer: Explorer) -> None:
    page = explorer.open("#browse")
    rows = page.locator(".rows tbody tr")
    page.get_by_text("1–4 of 4 graphs").wait_for()
    assert page.locator(".rows .position").all_inner_texts() == ["15", "44", "45", "60"]
    page.get_by_role("button", name="Lowest H-fidelity first").click()
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("GStarX")
    page.locator("[aria-busy=false]").wait_for()
    shown = [row.locator("td.number:not(.wide)").first.inner_text() for row in rows.all()]
    known = [float(figure) for figure in shown if figure != "–"]
    assert len(known) == 3
    assert known == sorted(known)
    page.get_by_role("button", name="Random").click()
    assert page.locator("th[aria-sort]").inner_text().startswith("Random")
    page.get_by_role("radio", name="Wrong predictions").check()
    page.get_by_text("There are no such graphs.").wait_for()
    page.go_back()
    page.get_by_text("1–4 of 4 graphs").wait_for()
    page.locator(".rows a", has_text="44").click()
    explorer.answered()
    assert explorer.card("gstarx").locator(".node").count() == 8
    assert page.locator("#form").is_hidden()
    explorer.atom("own", 0).click()
    assert explorer.figure("own")
    page.get_by_role("link", name="All graphs of the run").click()
    page.get_by_text("1–4 of 4 graphs").wait_for()
    assert page.locator("th[aria-sort]").inner_text().startswith("Random")


def test_links_to_the_previous_and_next_graphs(explorer: Explorer) -> None:
    page = explorer.asked("#ask?run_graph=44")
    assert page.get_by_role("link", name="Next").count() == 0, "no table has been seen yet"
    page.get_by_role("link", name="All graphs of the run").click()
    page.locator(".rows a", has_text="44").click()
    page.get_by_role("link", name="Next").click()
    page.locator(".head h2", has_text="nitro 45").wait_for()
    explorer.answered()
    assert page.get_by_role("link", name="Previous").count() == 1


def test_runs_that_differ_in_their_seed_have_a_card_each(explorer: Explorer) -> None:
    def again(route: Any) -> None:
        """The events of the job, with what the first run found once more under another title."""
        body = route.fetch().text()
        first = next(event for event in body.split("\n\n") if '"result"' in event)
        other = first.replace('"title":"GStarX"', '"title":"GStarX (seed 7)"')
        assert other != first
        body = body.replace(first, f"{first}\n\n{other}")
        route.fulfill(content_type="text/event-stream", body=body)

    explorer.page.route("**/api/v1/jobs/*/events", again)
    page = explorer.asked("#ask?run_graph=44")
    titles = page.locator(".card h3").all_inner_texts()
    assert titles[:3] == ["GStarX", "GStarX (seed 7)", "Random"]


def test_a_store_without_rows_is_reported_and_tried_again(explorer: Explorer) -> None:
    def without(route: Any) -> None:
        about = route.fetch().json()
        route.fulfill(json={**about, "run": None, "run_problem": "the store has no rows"})

    problem = {"code": "no_run", "message": "the store has no rows yet", "field": None}
    page = explorer.page
    page.route("**/api/v1/about", without)
    page.route("**/api/v1/run", lambda route: route.fulfill(status=404, json={"error": problem}))
    explorer.open("#browse")
    page.get_by_text("the store has no rows yet.").wait_for()
    explorer.expected_refusals = 1
    page.unroute("**/api/v1/run")
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("1–4 of 4 graphs").wait_for()


def test_wrong_and_failed_graphs_are_marked_on_all_pages(explorer: Explorer) -> None:
    asked: list[dict[str, list[str]]] = []

    def rows(route: Any) -> None:
        query = parse_qs(urlparse(route.request.url).query)
        asked.append(query)
        route.fulfill(json=made_answers.rows(made_answers.run(explorer.page), query))

    explorer.page.route("**/api/v1/run/rows?**", rows)
    page = explorer.open("#browse")
    page.get_by_text("1–25 of 60 graphs").wait_for()
    assert page.locator(".rows .badge.wrong").count() == 3
    assert page.locator(".rows .error").inner_text() == made_answers.HOSTILE
    page.get_by_role("button", name="Next rows").click()
    page.get_by_text("26–50 of 60 graphs").wait_for()
    assert page.get_by_role("button", name="Previous rows").is_enabled()
    page.get_by_role("radio", name="Failed").check()
    page.get_by_text("1–1 of 1 graphs").wait_for()
    page.get_by_role("combobox", name="Metric").select_option("inverse_fidelity")
    page.get_by_role("combobox", name="Sparsity").select_option("0.5")
    page.locator("[aria-busy=false]").wait_for()
    assert asked[-1]["filter"] == ["failed"]
    assert asked[-1]["sparsity"] == ["0.5"]
    assert page.locator("script:not([src])").count() == 0


def test_the_keyboard_is_enough(explorer: Explorer) -> None:
    page = explorer.open()
    page.locator("#smiles").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(SMILES)
    page.keyboard.press("Enter")
    explorer.answered()
    page.locator("#sparsity").focus()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        card = "e => e.closest('[data-card]')?.dataset.card ?? ''"
        if page.locator(":focus").evaluate(f"e => e.matches('.node') ? ({card})(e) : ''"):
            reached.append(page.locator(":focus").evaluate(card))
        if reached and reached[-1] == "own":
            break
    assert reached == ["gstarx", "banzhaf", "graphsvx", "best", "own"]
    page.keyboard.press("Space")
    first = explorer.selected()
    assert len(first) == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert len(explorer.selected()) == 2
    assert page.locator("#tooltip").is_visible()
    assert page.locator(":focus").get_attribute("aria-checked") == "true"
    page.keyboard.press("Escape")
    assert explorer.selected() == []


@pytest.mark.parametrize("groups", [False, True])
def test_untrusted_text_is_not_markup(explorer: Explorer, groups: bool) -> None:
    made_answers.answer_everything(explorer.page, groups=groups)
    page = explorer.open()
    page.get_by_role("button", name="Explain", exact=True).click()
    explorer.answered()
    hostile = made_answers.HOSTILE
    assert page.locator(".head h2").inner_text() == hostile
    assert page.locator(".choice b").first.inner_text() == hostile
    assert page.locator(".card h3").first.inner_text() == hostile
    assert hostile in page.locator(".classes").inner_text()
    assert page.locator(".bars .name").first.inner_text() == hostile
    page.locator("[data-card] .node").first.hover()
    assert page.locator("#tooltip b").inner_text() == hostile
    root = ElementTree.fromstring(explorer.downloaded("svg"))
    assert not [part for part in root.iter() if part.tag.endswith(("script", "img"))]
    assert hostile in explorer.downloaded("csv").decode().replace('""', '"')
    assert page.evaluate("'hacked' in window") is False
    assert page.locator("img[onerror], script:not([src])").count() == 0


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_fits_its_window(explorer: Explorer, width: int) -> None:
    explorer.page.set_viewport_size({"width": width, "height": 844})
    page = explorer.asked("#ask?model=nitro&graph=44&explainer=gstarx")
    assert explorer.fits()
    assert page.locator("#content").bounding_box()["width"] <= width
    page.goto(f"{explorer.address}/#browse")
    page.get_by_text("1–4 of 4 graphs").wait_for()
    assert explorer.fits()


def test_the_dark_page_is_dark_and_the_choice_is_kept(explorer: Explorer) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = explorer.open()
    light = background()
    page.emulate_media(color_scheme="dark")
    dark = background()
    assert dark != light
    toggle = page.locator("#theme")
    toggle.click()
    assert (toggle.inner_text().strip(), background()) == ("Dark", dark)
    toggle.click()
    assert (toggle.inner_text().strip(), background()) == ("Light", light)
    page.reload()
    page.locator(READY).first.wait_for()
    assert background() == light


def test_colors_match_those_of_the_package(explorer: Explorer) -> None:
    page = explorer.open()
    scores = [-2.0, -1.0, -0.4, -0.01, 0.0, 0.2, 0.7, 1.0]
    code = """async (scores) => {
        const { scoreColor } = await import('/page/colors.js');
        return scores.map((score) => scoreColor(score, 1));
    }"""
    assert page.evaluate(code, scores) == [score_color(score, 1.0) for score in scores]


def test_a_link_with_special_characters_in_the_token(browser: Any) -> None:
    settings = Settings(token="plus+and&hash#and space, grüße")
    running = Served(settings)
    try:
        page = browser.new_context().new_page()
        with page.expect_response("**/api/v1/about") as about:
            page.goto(f"{address_of(settings, running.port)}#browse?sort=nodes")
        assert about.value.status == 200
        assert page.url == f"http://127.0.0.1:{running.port}/#browse?sort=nodes"
        page.context.close()
    finally:
        running.stop()
