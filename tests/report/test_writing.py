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
from gstarx.metrics import Faithfulness
from gstarx_bench.report import (
    Explained,
    ExplainerRow,
    ReportData,
    report_page,
    summary_page,
    write_report,
)
from gstarx_bench.summary import SummaryRow
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


def test_the_page_is_whole_and_loads_nothing(page: Page) -> None:
    assert page.open == []
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(names) == len(set(names))
    for tag, attrs in page.tags:
        for name in ("src", "href", "data", "action", "srcset", "poster"):
            assert attrs.get(name, "#")[:1] in ("#", "d"), (tag, attrs)  # type: ignore[index]
            assert not (attrs.get(name) or "").startswith("//")
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
    assert "url(" not in report_page(report_data())
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
            results=renamed(graph.results),
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
            facts=dict.fromkeys(("model", "dataset", "settings"), facts),
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
    # two of each graph, intervals, three curves, the legend here and beside a large picture
    assert len(pictures) == 2 * 4 + 1 + 3 + 2
    assert all(attrs["aria-label"] for attrs in pictures)
    assert "7" in page.texts  # the seed
    # the highest of the explainers, not the optimum
    best = report_data().rows[0]
    assert f"{best.mean.harmonic_fidelity:.4f}" in page.texts
    place = page.texts.index("first")
    assert page.texts[place + 1].startswith(" has the highest H-fidelity")


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
    data = report_data()
    text = report_page(replace(data, graphs=data.graphs[:1]))
    assert "The first 1 of 4." in text
    assert "The first" not in report_page(data)


def test_the_file_is_the_page(tmp_path: Path) -> None:
    path = write_report(tmp_path / "new" / "a.html", report_data())
    assert path.read_text(encoding="utf-8") == report_page(report_data())
    assert [p.name for p in path.parent.iterdir()] == ["a.html"]

    with pytest.raises(ValueError, match=r"must end in '.html' or '.htm' \(got 'a.html.txt'\)"):
        write_report(tmp_path / "a.html.txt", report_data())
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


def test_cards_have_names_smiles_and_functional_groups(page: Page) -> None:
    cards = [attrs for _, attrs in page.tags if "data-metrics" in attrs]
    assert "methanol" in page.texts
    assert "CO" in page.texts
    assert "predicted: " in page.texts
    assert "inactive, probability 0.600" in page.texts
    assert "hydroxyl" in (cards[0]["data-text"] or "")
    assert "amine" in (cards[3]["data-text"] or "")
    tags = [attrs for tag, attrs in page.tags if attrs.get("class") == "tag"]
    assert len(tags) == 2
    assert any("It does not search for substructures." in " ".join(t.split()) for t in page.texts)
    assert "hydroxyl −0.25" in " ".join(page.texts)


def test_worse_than_random_is_reported() -> None:
    data = report_data()
    rows = (row("bad", [0.0] * 4), *data.rows[1:])
    graphs = [
        replace(graph, random=0.9, metrics={"second & co": graph.metrics["second & co"]})
        for graph in data.graphs
    ]
    text = report_page(replace(data, rows=rows, graphs=tuple(graphs)))
    # once in the table, and below the pictures of one explainer
    assert text.count("worse than a random selection: do not use this") == 1 + 4
    assert "worse than a random" not in report_page(data)
    # a regression is not condemned
    graphs = [replace(graph, value=1.0) for graph in graphs]
    text = report_page(replace(data, rows=rows, graphs=tuple(graphs), task="regression"))
    assert "do not use this" not in text
    assert text.count("below random, which is no verdict on a regression") == 1 + 4
    assert "What these numbers cannot tell." in text
    assert "What these numbers cannot tell." not in report_page(data)


def test_the_gap_is_blank_where_random_and_best_do_not_differ() -> None:
    data = report_data()
    first, second, random, _ = data.rows
    barely = tuple(replace(g, harmonic_fidelity=g.harmonic_fidelity + 1e-9) for g in random.graphs)
    same = replace(random, name="best", kind="optimum", curve=None, graphs=barely)
    page = Page(report_page(replace(data, rows=(first, second, random, same))))
    assert "Gap closed" in page.texts
    assert not [text for text in page.texts if re.fullmatch(r"−?\d+%", text) and text != "75%"]
    assert any("is blank" in text for text in page.texts)
    assert "100%" in Page(report_page(data)).texts


def test_metrics_that_are_undefined_are_dashes_and_valid_json() -> None:
    data = report_data()
    nan = float("nan")
    undefined = Faithfulness(nan, nan, 0.5, nan, nan, nan, 0.0, 1.0)
    rows = tuple(replace(r, graphs=(undefined, *r.graphs[1:])) for r in data.rows)
    graphs = (replace(data.graphs[0], metrics={"first": undefined}), *data.graphs[1:])
    page = Page(report_page(replace(data, rows=rows, graphs=graphs)))
    metrics = [json.loads(a["data-metrics"] or "") for _, a in page.tags if "data-metrics" in a]
    assert metrics[0]["first"]["fidelity"] is None
    assert "nan" not in page.texts


def test_values_of_a_regression_take_the_place_of_classes() -> None:
    data = report_data()
    graphs = tuple(
        Explained(g.name, g.data, value=1.5 - i, measured=2.0, results=g.results, metrics=g.metrics)
        for i, g in enumerate(data.graphs)
    )
    changes = {"task": "regression", "explained": "logP", "accuracy": None, "error": 0.5}
    text = report_page(replace(data, graphs=graphs, class_names=(), **changes))
    page = Page(text)
    assert "logP 1.5" in page.texts
    assert "logP −1.5" in page.texts
    assert "measured: 2" in page.texts
    shown = " ".join(page.texts)
    assert "Error of the model" in shown
    assert "highest value first" in shown
    for absent in ("most confident", "probability of the prediction", "predicts", 'id="class"'):
        assert absent not in text, absent
    # labels of several tasks are yes or no
    data = replace(report_data(), task="multilabel", explained="liver", class_names=())
    page = Page(report_page(data))
    assert "liver: yes, probability 0.600" in page.texts
    assert "label: yes" in page.texts
    assert "liver" in page.texts


def test_summaries_are_shown_with_the_best_explainer_first() -> None:
    rows = [SummaryRow("<nitro>", 1, "active", 0.5, 0.4, 0.6, 20, 21, "for", ("a", "b"))]
    data = replace(report_data(), summaries={"second & co": rows, "first": rows})
    page = Page(report_page(data))
    assert page.open == []
    opened = [attrs for tag, attrs in page.tags if tag == "details"]
    assert [("open" in attrs) for attrs in opened] == [True, False]
    assert page.texts.index("What drives the model") < page.texts.index("Individual graphs")
    for text in ("<nitro>", "0.4000 to 0.6000", "for", "a, b"):
        assert page.texts.count(text) >= 2, text
    assert "The score of a group is the sum" in " ".join(page.texts)


def test_a_summary_is_a_page_of_its_own() -> None:
    rows = [SummaryRow(SCRIPT, 1, "active", 0.5, 0.4, 0.6, 20, 21, "for", ("a",))]
    text = summary_page("What & why", {"gstarx": rows, "none": []}, facts={"graphs": "20"})
    page = Page(text)
    assert page.open == []
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "What & why" in page.texts
    assert SCRIPT in page.texts
    assert "No group was found in these graphs." in page.texts
    page = " ".join(report_page(replace(report_data(), accuracy=0.75)).split())
    assert "<strong>75%</strong> of the labeled graphs correctly" in page
