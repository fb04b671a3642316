"""The tables on the page of players are those of the stored rows."""

from __future__ import annotations

from benchmarks import players
from tests.test_documentation import ROOT


def test_the_table_of_edges_is_that_of_the_rows() -> None:
    page = (ROOT / "docs" / "players.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- edges:")[2].partition("-->")[2].partition("<!-- end of edges")[0]
    assert shown.strip().splitlines() == players.edge_table()
