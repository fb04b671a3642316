"""One page that holds it all: no network, no server, nothing to install."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from gstarx.drawing import escaped, write_file
from gstarx.report.data import ReportData
from gstarx.report.gallery import gallery
from gstarx.report.table import curves, summary, table, tiles

_SUFFIXES = (".html", ".htm")

_READING = """
<p><strong>Colors.</strong> An explainer gives every node a score. Orange speaks for what the model
predicts, blue against it, white has nothing to say. The nodes with the highest scores are selected
and outlined.</p>
<p><strong>Fidelity</strong> is what the probability of the prediction loses when the selected nodes
are taken away: are they necessary? High is good.</p>
<p><strong>Inverse fidelity</strong> is what it loses when nothing else is left: are they
sufficient? Low is good, and below 0 they are surer alone.</p>
<p><strong>H-fidelity</strong> puts both into one number between 0 and 1, weighed by the share of
nodes left out. About 0.5 is what no explanation at all gets.</p>
<p><strong>Random and best.</strong> A number says little by itself. A random selection is the
floor. The best selection that a search found is the ceiling; it was told the metric and explains
nothing. Gap closed is how far an explainer gets from one to the other.</p>
<p><strong>AUROC</strong>, where the page has it: the chance that a node known to matter scores
higher than another. It judges model and explainer together.</p>
<p><strong>With care.</strong> The model has rarely seen parts of graphs, so what it says of them is
an extrapolation. Where two groups are each enough for the prediction, taking one away loses little,
though both matter. Scores of different explainers have different units: compare colors within a
picture, and metrics between them.</p>
"""


def write_report(path: str | os.PathLike[str], data: ReportData) -> Path:
    """Write the report: one HTML file that fetches nothing, whole or not at all.

    Parameters
    ----------
    path
        Where, with the suffix ``.html``. Missing directories are made.
    data
        What to show: from :func:`gstarx.drawing.gather`, or filled otherwise.

    Returns
    -------
    Path
        The file.
    """
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        valid = " or ".join(map(repr, _SUFFIXES))
        raise ValueError(f"the name of a report must end in {valid} (got {target.name!r})")
    write_file(target, report_page(data).encode())
    return target


def report_page(data: ReportData) -> str:
    """The text of the file that :func:`report` writes.

    The same data gives the same text. Names, words and SMILES are shown as text whatever they
    hold, and the page forbids the browser to run or fetch anything that is not its own.
    """
    style, script = (_part(name) for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; img-src data:; script-src {_digest(script)}; "
        f"style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escaped(data.title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header><div><h1>{escaped(data.title)}</h1>
<p class="lead">{summary(data)}</p>{tiles(data)}</div></header>
<main id="main">
{_section("explainers", "The explainers compared", table(data) + curves(data))}
{_section("graphs", "Graph by graph", gallery(data)) if data.graphs else ""}
{_section("reading", "How to read it", f'<div class="panel reading">{_READING}</div>')}
{_section("making", "How it was made", _facts(data))}
</main>
<footer>Made by GStarX {escaped(data.versions.get("gstarx", ""))}.
This page is one file and fetches nothing.</footer>
<script>{script}</script>
</body>
</html>
"""


def _section(name: str, title: str, content: str) -> str:
    return (
        f'<section aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>'
        f"{content}</section>"
    )


def _facts(data: ReportData) -> str:
    settings = dict(data.settings)
    settings["sparsity"] = f"{data.sparsity:g}"
    if data.seed is not None:
        settings["seed"] = str(data.seed)
    lists: dict[str, Mapping[str, str]] = {
        "Model": data.model,
        "Data": data.dataset,
        "Settings": settings,
        "Versions": data.versions,
    }
    return (
        '<div class="facts">'
        + "".join(
            f'<div class="panel"><h3>{name}</h3><dl>{_listed(facts)}</dl></div>'
            for name, facts in lists.items()
            if facts
        )
        + "</div>"
    )


def _listed(facts: Mapping[str, str]) -> str:
    return "".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in facts.items()
    )


def _part(name: str) -> str:
    return files("gstarx.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """A text as a content security policy names it: nothing else may run in its place."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
