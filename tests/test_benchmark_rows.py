"""The tables on the pages of players and integrations are those of the stored rows."""

from __future__ import annotations

from benchmarks import chemprop_myerson, players
from tests.test_documentation import ROOT


def test_the_table_of_edges_is_that_of_the_rows() -> None:
    page = (ROOT / "docs" / "players.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- edges:")[2].partition("-->")[2].partition("<!-- end of edges")[0]
    assert shown.strip().splitlines() == players.edge_table()


def test_the_tables_against_the_myerson_package_are_those_of_the_rows() -> None:
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    for name, table in (
        ("exact", chemprop_myerson.exact_table()),
        ("sampled", chemprop_myerson.sampled_table()),
    ):
        shown = page.partition(f"<!-- {name}:")[2].partition("-->")[2]
        assert shown.partition(f"<!-- end of {name}")[0].strip().splitlines() == table
