"""``gstarx demo``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gstarx._internal.processes import one_thread
from gstarx.cli.console import note, only_json, out, print_json, writable, write
from gstarx.cli.options import examples

if TYPE_CHECKING:
    from gstarx_bench.report import ReportData

EXAMPLES = examples("gstarx demo", "gstarx demo --output somewhere/report.html")

#: GStarX by default, with the value that suits fidelity best, and two other methods.
_EXPLAINERS = {
    "gstarx": "GStarX",
    "banzhaf": "GStarX, Banzhaf value",
    "subgraphx": "SubgraphX",
    "graphsvx": "GraphSVX",
}


class _Shown(NamedTuple):
    """A network that comes with the package: its tab, its title, and how many test graphs."""

    dataset: str
    tab: str
    title: str
    graphs: int


_SHOWN = (
    _Shown("nitro", "Molecules", "Which atoms make a nitro group?", 20),
    _Shown("motifs", "Motifs", "Which nodes make a house or a cycle?", 8),
)


def demo(
    output: Annotated[Path, typer.Option(help="The page, .html.")] = Path("demo/report.html"),
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many graphs per network.", show_default=False),
    ] = None,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Explain two networks with GStarX and two other methods, as one page for a browser.

    Needs gstarx[drawing] and less than two minutes; the data comes with the package.
    """
    from gstarx._internal.imports import require
    from gstarx.cli.inputs import InputSelection
    from gstarx.cli.methods import OptionsOf, create_explainers
    from gstarx_bench.cli.report_command import collect_report, summary
    from gstarx_bench.report import report_page

    # fail now and not after a minute of work
    for package in ("rdkit", "networkx"):
        require(package, extra="drawing")
    writable(output, ".html")
    pages, summaries = {}, []
    with one_thread(), only_json(as_json) as stream:
        for shown in _SHOWN:
            note(f"{shown.dataset}: explaining by {'; '.join(_EXPLAINERS.values())} ...")
            count = min(shown.graphs, limit or shown.graphs)
            inputs = InputSelection(dataset=shown.dataset, split="test", limit=count, seed=seed)
            options: OptionsOf = {name: {} for name in _EXPLAINERS}
            explainers = create_explainers(inputs, options, baseline="singletons")
            methods = {_EXPLAINERS[name]: explainer for name, explainer in explainers.items()}
            report_data = collect_report(inputs, methods, title=shown.title)
            pages[shown.tab] = report_page(report_data)
            summaries.append(summary(report_data, output))
            if not as_json:
                _show(report_data)
        write(output, tabbed_page("GStarX: two networks explained", pages))
    if as_json:
        print_json({"report": str(output.resolve()), "networks": summaries}, stream)
    else:
        out().print("Open this in a browser:")
        out().print(str(output.resolve()), soft_wrap=True)


def _show(report_data: ReportData) -> None:
    """Print the table of a report: means of explainers, random orders and the best selections."""
    from gstarx_bench.cli.run_tables import metric_cells, metric_table

    shown = metric_table("", title=report_data.title)
    for row in report_data.rows:
        shown.add_row(row.name, *metric_cells(vars(row.mean)))
    out().print(shown)
    out().print()


def tabbed_page(title: str, pages: Mapping[str, str]) -> str:
    """One page with a tab for each of several pages, all inside it.

    Parameters
    ----------
    title
        Of the page.
    pages
        Whole HTML pages by the name of their tab.

    Examples
    --------
    >>> tabbed_page("Two", {"a": "<p>1</p>", "b": "<p>2</p>"}).count("<iframe")
    2
    """
    from gstarx_bench.report import render

    return render("cli/pages.html.jinja", title=title, pages=pages)
