"""The report as text: it is complete, loads nothing, and shows untrusted text as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gstarx import __version__
from gstarx.report import ExplainerRow, ReportData, report_page, write_report
from tests.report.made import SCRIPT, faithfulness, report_data, row

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """Tags with their attributes, texts, and whether every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(report_page(report_data()))


def test_tags_are_closed_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(names) == len(set(names))


def test_nothing_is_loaded(page: Page) -> None:
    for tag, attrs in page.tags:
        for name in ("src", "href", "data", "action", "srcset", "poster"):
            assert attrs.get(name, "#")[:1] in ("#", "d"), (tag, attrs)  # type: ignore[index]
            assert not (attrs.get(name) or "").startswith("//")
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
    assert "url(" not in report_page(report_data())


def test_there_is_one_script_and_the_policy_names_it(page: Page) -> None:
    assert [tag for tag, _ in page.tags].count("script") == 1
    policy = next(
        attrs["content"]
        for tag, attrs in page.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert len(re.findall("'sha256-[A-Za-z0-9+/]{43}='", policy)) == 2


def test_untrusted_text_is_not_markup(page: Page) -> None:
    assert SCRIPT in page.texts  # the heading of a card
    assert f"A report on {SCRIPT}" in page.texts
    assert "<b>weights</b>" in page.texts
    assert "second & co" in page.texts


def test_names_are_not_markup_in_any_place() -> None:
    nasty = "\"'><i>&\x00{{ 7 * 7 }}{% if %}"
    data = report_data()
    first, *others = data.rows

    def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
        return {nasty if name == first.name else name: value for name, value in values.items()}

    graphs = [
        replace(
            graph,
            name=nasty,
            scores=renamed(graph.scores),
            selected=renamed(graph.selected),
            metrics=renamed(graph.metrics),
        )
        for graph in data.graphs
    ]
    facts = {nasty: nasty}
    text = report_page(
        replace(
            data,
            title=nasty,
            rows=(replace(first, name=nasty, note=nasty), *others),
            graphs=tuple(graphs),
            class_names=(nasty, nasty),
            model=facts,
            dataset=facts,
            settings=facts,
            versions=facts,
        )
    )
    page = Page(text)
    assert page.open == []
    assert "i" not in [tag for tag, _ in page.tags]
    shown = nasty.replace("\x00", "\ufffd")
    # title and heading, the summary and its tile, the table and its note, cards, facts, choices
    outside = Page(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    assert outside.texts.count(shown) == 2 + 2 + 2 + 2 * 4 + 2 * 4 + 3
    assert [attrs["data-name"] for _, attrs in page.tags if "data-name" in attrs] == [
        f"{name}: {shown}" for _ in graphs for name in (shown, "second & co")
    ]
    cards = [attrs for _, attrs in page.tags if "data-metrics" in attrs]
    assert [set(json.loads(attrs["data-metrics"] or "")) for attrs in cards] == [
        {nasty, "second & co"}
    ] * 4
    assert "\x00" not in "".join(page.texts)


def test_everything_is_there(page: Page) -> None:
    text = " ".join(page.texts)
    for words in (
        "2 explainers on 4 graphs.",
        "75%",
        "inactive",
        "random selection",
        "best selection found",
        "How to read this report",
        "remove",
        __version__,
        "four graphs",
    ):
        assert words in text, words
    pictures = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "img"]
    # two of each graph, intervals, three curves, the legend
    assert len(pictures) == 2 * 4 + 1 + 3 + 1
    assert all(attrs["aria-label"] for attrs in pictures)
    assert "7" in page.texts  # the seed


def test_the_highest_explainer_is_named_not_the_optimum(page: Page) -> None:
    best = report_data().rows[0]
    assert f"{best.mean.harmonic_fidelity:.3f}" in page.texts
    place = page.texts.index("first")
    assert page.texts[place + 1].startswith(" has the highest H-fidelity")


def test_the_same_data_gives_the_same_page() -> None:
    assert report_page(report_data()) == report_page(report_data())


def test_a_report_may_have_no_gallery_no_baselines_and_no_labels() -> None:
    bare = ReportData("Bare", (row("only", [0.2]),), (), 0.5)
    page = Page(report_page(bare))
    assert "gallery" not in [attrs.get("id") for _, attrs in page.tags]
    assert '<button type="button">AUROC</button>' not in report_page(bare)
    unknown = [replace(graph, label=None) for graph in report_data().graphs]
    data = replace(report_data(), graphs=tuple(unknown), accuracy=None)
    text = report_page(data)
    assert text.count('data-verdict=""') == 4
    assert "badge" not in text.partition("<main")[2]


def test_the_page_says_how_many_graphs_are_shown() -> None:
    data = report_data()
    text = report_page(replace(data, graphs=data.graphs[:1]))
    assert "The first 1 of 4." in text
    assert "The first" not in report_page(data)


def test_the_file_is_the_page(tmp_path: Path) -> None:
    path = write_report(tmp_path / "new" / "a.html", report_data())
    assert path.read_text(encoding="utf-8") == report_page(report_data())
    assert [p.name for p in path.parent.iterdir()] == ["a.html"]


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.txt"])
def test_an_unknown_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=rf"must end in '.html' or '.htm' \(got '{name}'\)"):
        write_report(tmp_path / name, report_data())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot write .*file/a\.html"):
        write_report(tmp_path / "file" / "a.html", report_data())


def test_rows_must_fit_together() -> None:
    with pytest.raises(ValueError, match="at least one explainer"):
        ReportData("t", (), (), 0.5)
    with pytest.raises(ValueError, match="different names"):
        ReportData("t", (row("a", [0.1]), row("a", [0.2])), (), 0.5)
    with pytest.raises(ValueError, match="about the same graphs"):
        ReportData("t", (row("a", [0.1]), row("b", [0.2, 0.3])), (), 0.5)
    with pytest.raises(ValueError, match=r"'explainer', 'random', 'optimum' \(got 'best'\)"):
        ExplainerRow("a", (faithfulness(0.1),), "best")
    with pytest.raises(ValueError, match="must not be empty"):
        ExplainerRow("a", ())
