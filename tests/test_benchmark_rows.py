"""The tables on the pages of players and integrations are those of the stored rows."""

from __future__ import annotations

from benchmarks import chemprop_myerson, players
from tests.test_documentation import ROOT


def test_the_table_of_edges_is_that_of_the_rows() -> None:
    page = (ROOT / "docs" / "players.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- edges:")[2].partition("-->")[2].partition("<!-- end of edges")[0]
    assert shown.strip().splitlines() == players.edge_table()


def test_what_the_page_says_against_the_myerson_package_is_what_the_rows_say() -> None:
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- exact:")[2].partition("-->")[2]
    table = shown.partition("<!-- end of exact")[0].strip().splitlines()
    assert table == chemprop_myerson.exact_table()
    ratios = [int(row.split("|")[-2]) for row in chemprop_myerson.sampled_table()[2:]]
    assert f"takes {min(ratios)} to {max(ratios)} times as long" in page
