"""Networks of one's own in the browser, and what the page owes to everyone who uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gstarx.drawing.picture import TIE_DASHES
from gstarx_explorer import Limits, ServedRun, Settings
from tests.browser import started_browser
from tests.web import made_answers, odd_models
from tests.web.own_networks import own
from tests.web.served import served
from tests.web.test_in_browser import Explorer
from tests.web.test_own import own_store  # noqa: F401

pytestmark = pytest.mark.browser

#: A chain of 85 atoms.
LONG = "C" * 84 + "O"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def address(
    browser: Any,
    tmp_path_factory: pytest.TempPathFactory,
    own_store: Any,  # noqa: F811
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("own-models")
    models = tuple(own(folder, name) for name in ("classes", "value", "targets"))
    limits = Limits(best_seconds=1.0)
    settings = Settings(
        models=(*models, odd_models.SHIPPED[0]), run=ServedRun(own_store), limits=limits
    )
    with served(settings) as running:
        yield f"http://127.0.0.1:{running.port}"


@pytest.fixture
def explorer(browser: Any, address: str) -> Iterator[Explorer]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, reduced_motion="reduce", accept_downloads=True
    )
    context.set_default_timeout(60_000)
    made = Explorer(context, address)
    yield made
    context.close()
    assert made.wrong == []
    assert made.refused == made.expected_refusals


def ask(explorer: Explorer, smiles: str) -> Any:
    page = explorer.page
    page.locator("#smiles").fill(smiles)
    page.locator("#smiles").press("Enter")
    explorer.answered()
    return page


def test_an_own_network_from_a_typed_molecule_to_a_selection(explorer: Explorer) -> None:
    page = explorer.open()
    assert page.locator("#model-list b").all_inner_texts()[:3] == ["classes", "value", "targets"]
    assert "1 row of the table could not be read" in page.locator("#model-list").inner_text()
    button = page.locator("#explain").bounding_box()
    assert button["y"] + button["height"] <= 720, "Explain is in sight without scrolling"
    ask(explorer, "CC(=O)O")
    assert page.locator(".head strong").inner_text() in ("alive", "dead")
    assert page.locator(".class-name").all_inner_texts() == ["alive", "dead"]
    # bars share an axis
    tracks = [track.bounding_box() for track in page.locator(".track").all()]
    assert len({(round(box["x"]), round(box["width"])) for box in tracks}) == 1
    explorer.atom("own", 2).click()
    assert explorer.figure("own").startswith("0.")
    card = explorer.card("gstarx")
    card.locator(".groups summary").click()
    assert "carboxylic acid" in card.locator(".group-table").inner_text()
    assert "sum of the scores" in card.locator(".groups").inner_text()
    page.locator("#tab-browse").click()
    page.goto(f"{explorer.address}/#browse?model=classes")
    page.get_by_text("1–6 of 6", exact=True).wait_for()
    assert page.locator(".gallery svg.graph").count() == 6
    page.get_by_text("1 row could not be read").click()
    assert "line 8" in page.locator("#gallery details").inner_text()
    page.locator("#gallery").get_by_label("Search").fill("anil")
    page.get_by_text("1–1 of 1", exact=True).wait_for()
    page.locator(".gallery a").click()
    explorer.answered()
    assert page.locator(".head h2").inner_text() == "aniline"
    assert page.title() == "aniline · GStarX explorer"


def test_a_value_is_explained(explorer: Explorer) -> None:
    page = explorer.asked("#ask?model=value&graph=1&explainer=leave_one_out")
    words = page.locator(".head-title").inner_text()
    assert "The model predicts value" in words
    assert "the label is −1.25" in words
    assert "raises" in page.locator(".legend").text_content()
    assert page.locator("#target-box").is_hidden()
    assert explorer.figure("leave_one_out")


def test_one_of_two_targets_is_chosen(explorer: Explorer) -> None:
    page = explorer.open("#ask?model=targets&graph=2")
    explorer.answered()
    assert page.locator(".head strong").inner_text() == "acid"
    page.get_by_label("Target to explain").select_option(label="ring")
    page.locator("#explain").click()
    page.locator(".head strong", has_text="ring").wait_for()
    explorer.answered()
    assert explorer.link()["target"] == ["1"]
    assert page.locator(".classes .predicted").inner_text().startswith("ring")


def test_a_run_on_a_table_has_a_summary(explorer: Explorer) -> None:
    page = explorer.open("#browse")
    page.get_by_text("1–6 of 6 graphs").wait_for()
    assert page.locator(".rows tbody .thumb svg").count() == 6
    page.locator("#browse").get_by_label("Search").fill("nitro")
    page.get_by_text("1–1 of 1 graphs").wait_for()
    page.locator("#tab-summary").click()
    page.locator("#summary tbody tr").first.wait_for()
    assert page.locator("#summary h3").all_inner_texts() == ["acid"]
    assert "sum of the scores of its atoms" in page.locator("#summary").inner_text()
    page.get_by_label("Divided into").select_option("rings")
    page.get_by_role("row", name="benzene").wait_for()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 720})
        assert explorer.fits()


def test_the_first_atom_is_ten_tabs_from_the_input(explorer: Explorer) -> None:
    page = explorer.open("#ask?model=classes")
    ask(explorer, "CCO")
    tabs = 0
    while not page.evaluate("document.activeElement.classList.contains('node')"):
        page.keyboard.press("Tab")
        tabs += 1
        assert tabs <= 10
    # and from the input itself, by the button that appears there
    page.locator("#smiles").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "to-results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"


def test_a_text_that_is_too_long_is_refused_and_not_cut(explorer: Explorer) -> None:
    page = explorer.open("#ask?model=classes")
    page.locator("#smiles").fill("C" * 1_200)
    assert len(page.locator("#smiles").input_value()) == 1_200
    page.locator("#explain").click()
    message = page.locator("#input-error").inner_text().replace("\u2009", "")
    assert "1000 characters" in message
    assert "(got 1200)" in message


def test_curves_stay_small_beside_a_large_molecule(explorer: Explorer) -> None:
    view = f"#ask?model=classes&smiles={quote(LONG)}&explainer=leave_one_out&best=no"
    page = explorer.asked(view)
    assert page.locator(".plot-card .plot").bounding_box()["height"] < 400


def test_metrics_of_an_earlier_selection_do_not_appear(explorer: Explorer) -> None:
    page = explorer.open("#ask?model=classes")
    ask(explorer, "CCO")
    held: list[Any] = []
    page.route("**/api/v1/score", lambda route: held.append(route))
    explorer.atom("own", 0).click()
    while not held:
        page.wait_for_timeout(20)
    # the second selection is painted, and its own request has not been sent yet
    figures = {"fidelity": 0.987, "inverse_fidelity": 0.987, "harmonic_fidelity": 0.987}
    explorer.atom("own", 1).click()
    held[0].fulfill(json={"size": 1, "sparsity": 0.7, **figures})
    page.wait_for_timeout(60)
    assert "0.987" not in explorer.card("own").inner_text()
    page.unroute("**/api/v1/score")


def test_ties_and_doubtful_scores_are_shown(explorer: Explorer) -> None:
    page = explorer.open()
    code = """async () => {
      const { ranksOf, tieAtTheCut, tieWords, unsureOf } = await import('/page/ranks.js');
      const scores = [0.5, 0.2, 0.2 + 1e-13, -0.1];
      const ranks = ranksOf(scores);
      return [
        ranks.map(({ rank }) => rank),
        tieWords(ranks[1]),
        tieAtTheCut(ranks, new Set([0, 2])),
        tieAtTheCut(ranks, new Set([0, 1, 2])),
        tieAtTheCut(ranks, new Set()),
        [...unsureOf({ scores, std_errors: [0.2, 0.11, 0, 0.05] })],
      ];
    }"""
    ranks, words, tied, whole, nothing, unsure = page.evaluate(code)
    assert ranks == [1, 2, 2, 4]
    assert words == ", tied with 1 other"
    assert tied == {"kept": 1, "nodes": [1, 2]}
    assert whole is nothing is None
    # 0.5 is 2.5 standard errors from 0, 0.2 is 1.8, and -0.1 is 2
    assert unsure == [1]
    # in benzene all atoms are alike
    page = explorer.asked("#ask?model=classes&smiles=c1ccccc1&explainer=leave_one_out")
    assert "A tie at the cut (dashed): 1 of 6 atoms" in explorer.card("leave_one_out").inner_text()
    # a dashed outline means what it means in the pictures of Python
    ties = page.locator("[data-card=leave_one_out] .tie:not([stroke=none])")
    assert ties.count() == 6
    assert ties.nth(0).get_attribute("stroke-dasharray") == TIE_DASHES


def test_few_atoms_keep_one(explorer: Explorer) -> None:
    page = explorer.asked("#ask?model=classes&smiles=CCO&explainer=leave_one_out")
    assert "keeps 1 of 3 atoms" in page.locator("output.kept").inner_text()
    assert "–" not in page.locator("[data-card=leave_one_out] dl").first.inner_text()


def test_hatching_means_that_a_score_may_be_zero(explorer: Explorer) -> None:
    # 0.5 and -0.25, with standard errors of 0.1 and 0.2
    made_answers.answer_everything(explorer.page, groups=False)
    page = explorer.open()
    page.locator("#smiles").fill("C")
    page.locator("#explain").click()
    page.get_by_text("Finished in").wait_for()
    outlines = page.locator("[data-card=made] .doubt")
    strokes = [outlines.nth(node).get_attribute("stroke") for node in (0, 1)]
    assert (strokes[0], strokes[1] == "none") == ("none", False)
    assert outlines.nth(1).get_attribute("stroke-dasharray") is None
    assert outlines.nth(1).get_attribute("d").startswith("M")
    note = page.locator("[data-card=made] .note").inner_text()
    assert "The scores of 1 node may be 0" in note


def test_what_is_selected_never_has_the_color_of_what_speaks_against(explorer: Explorer) -> None:
    page = explorer.open()
    hues = """() => {
      const probe = document.body.appendChild(document.createElement('i'));
      const hue = (name) => {
        probe.style.color = `var(${name})`;
        const parts = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
        const [red, green, blue] = parts;
        return [red - green, blue - green];
      };
      return [hue('--chosen'), hue('--against')];
    }"""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        chosen, against = page.evaluate(hues)
        assert chosen[0] > 0 > against[0], "violet has more red than green, blue has less"


#: The rules of accessibility checkers that a page like this can break.
RULES = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_keeps_the_rules_of_accessibility(explorer: Explorer, scheme: str) -> None:
    page = explorer.page
    page.emulate_media(color_scheme=scheme)
    for view, shown in (
        ("", "#explain"),
        ("#ask?model=targets&graph=2&explainer=gstarx", ".head"),
        ("#browse", ".rows tbody tr"),
        ("#browse?model=value", ".gallery li"),
        ("#summary", "#summary tbody tr"),
    ):
        explorer.open(view)
        page.locator(shown).first.wait_for()
        if "targets" in view:
            explorer.answered()
        assert page.evaluate(RULES) == [], view
