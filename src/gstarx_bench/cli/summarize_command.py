"""``gstarx summarize``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gstarx._internal import rounding
from gstarx._internal.processes import one_thread
from gstarx.cli.console import (
    CommandError,
    as_csv,
    note,
    only_json,
    out,
    print_json,
    progress,
    table,
    uninterrupted,
    writable,
    write,
)
from gstarx.cli.console import as_json as json_text
from gstarx.cli.inputs import InputSelection, Subject
from gstarx.cli.options import examples
from gstarx.registry import PARTS

if TYPE_CHECKING:
    from gstarx.explainers import NodeExplainer
    from gstarx.explanation import Explanation
    from gstarx_bench.summary import SummaryRow

EXAMPLES = examples(
    "gstarx summarize nitro --split test",
    "gstarx summarize nitro --split test --by brics --output fragments.csv",
    "gstarx summarize --file molecules.csv --weights mine.safetensors --output summary.html",
    "gstarx summarize sst2 --split test --limit 200 --by words --json",
)
_SUFFIXES = (".csv", ".json", ".html")


def summarize(
    ctx: typer.Context,
    inputs: InputSelection,
    by: Annotated[
        Literal[*PARTS] | None,  # type: ignore[valid-type]
        typer.Option(
            "--by",
            help="The groups to score; by default functional groups of molecules, words "
            "of sentences, and node types of other graphs.",
            rich_help_panel="Computation",
            show_default=False,
        ),
    ] = None,
    explainer: str = "gstarx",
    option: list[str] | None = None,
    baseline: str | None = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Also write the summary: .csv, .json, or a page with a picture, .html.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    as_json: bool = False,
) -> None:
    """Which functional groups, rings, fragments or words drive each class, over many graphs.

    Every graph is explained. The score of a group is the sum of the scores of its atoms; the table
    shows its mean over the graphs that contain it, with a 95% bootstrap interval. After
    Ctrl-C the finished graphs are summarized.
    """
    from gstarx.cli.methods import create_explainers, parse_options

    writable(output, *_SUFFIXES)
    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), [explainer], known, baseline=baseline)
    inputs.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        subjects = inputs.subjects()
        (method,) = create_explainers(inputs, options, baseline=baseline).values()
        finished: list[tuple[Subject, Explanation]] = []
        try:
            failures = _explain_all(inputs, method, subjects, finished)
        finally:
            with uninterrupted():
                if finished:
                    content = _summary(inputs, finished, explainer, by)
                    _show(content, output, stream if as_json else None)
    if not finished:
        raise CommandError(f"none of the {len(subjects)} graphs could be explained")
    if failures:
        raise typer.Exit(1)
    inputs.finish()


def _explain_all(
    inputs: InputSelection,
    method: NodeExplainer,
    subjects: Sequence[Subject],
    finished: list[tuple[Subject, Explanation]],
) -> int:
    """Explain one graph after another; return how many failed."""
    from gstarx.cli.records import failed

    pipelines = [inputs.pipeline(target) for target in inputs.targets(subjects)]
    failures = 0
    try:
        with progress("explaining", len(subjects)) as step:
            for subject in subjects:
                try:
                    explanations = [
                        p.explain(method, subject.data, subject.position) for p in pipelines
                    ]
                except Exception as error:
                    failed(subject, error)
                    failures += 1
                else:
                    if explanations[0].node_scores is None:  # fail at once, not at the end
                        raise CommandError(
                            f"{explanations[0].method} finds sets of nodes: a summary needs scores"
                        )
                    finished += [(subject, explanation) for explanation in explanations]
                step(subject.name)
    except KeyboardInterrupt:
        done = len(finished) // len(pipelines)
        note(f"stopped: the summary is about the first {done} of {len(subjects)} graphs")
        raise
    return failures


def _summary(
    inputs: InputSelection,
    finished: Sequence[tuple[Subject, Explanation]],
    explainer: str,
    by: str | None,
) -> dict[str, Any]:
    from gstarx.players import default_kind
    from gstarx_bench.summary import summarize as summarized

    subjects, explanations = zip(*finished, strict=True)
    kind = by or default_kind(subjects[0].data)
    try:
        rows = summarized(
            [subject.data for subject in subjects],
            explanations,
            by=kind,
            mode=inputs.network.task,
            class_names=inputs.output_names,
            target_names=inputs.output_names,
            names=[subject.name for subject in subjects],
            seed=inputs.seed,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    return {
        "by": kind,
        "explainer": explainer,
        "network": inputs.network.name,
        "graphs": len({subject.position for subject in subjects}),
        "seed": inputs.seed,
        "rows": rows,
    }


def _show(content: dict[str, Any], output: Path | None, stream: Any) -> None:
    """Print the summary, as a table or to a stream as JSON, and write it."""
    rows: list[SummaryRow] = content["rows"]
    plain = {**content, "rows": [row.as_dict() for row in rows]}
    if stream is not None:
        print_json(plain, stream)
    else:
        _print(content)
    if output is None:
        return
    if output.suffix == ".json":
        write(output, json_text(plain) + "\n")
    elif output.suffix == ".csv":
        write(output, _csv(rows))
    else:
        from gstarx_bench.report import summary_page

        facts = {name: str(content[name]) for name in ("network", "graphs", "seed")}
        division = str(content["by"]).replace("_", " ")
        title = f"What drives {content['network']}, by {division}"
        write(output, summary_page(title, {content["explainer"]: rows}, facts=facts))
    note(f"wrote {output}")


def _print(content: dict[str, Any]) -> None:
    rows: list[SummaryRow] = content["rows"]
    if not rows:
        out().print(f"No {content['by'].replace('_', ' ')} in {content['graphs']} graphs.")
        return
    for explained in dict.fromkeys(row.explained for row in rows):
        title = f"class {explained}" if explained.isdigit() else explained
        shown = table("group", "mean score", "95% interval", "graphs", "sign", title=title)
        shown.columns[-1].justify = "left"
        for row in rows:
            if row.explained == explained:
                shown.add_row(
                    row.name,
                    rounding.metric(row.mean),
                    row.interval,
                    f"{row.graphs:,}",
                    row.sign,
                    style="dim" if row.sign == "unclear" else "",
                )
        out().print(shown)
        out().print()
    out().print(
        f"Scores by {content['explainer']} on {content['graphs']:,} graphs: sums over the atoms of "
        "a group, averaged over graphs. Unclear: the interval includes 0, or fewer than 6 graphs.",
        style="dim",
    )


def _csv(rows: Sequence[SummaryRow]) -> str:
    columns = ("name", "target", "explained", "mean", "low", "high", "graphs", "occurrences")
    listed = ({**row.as_dict(), "examples": "; ".join(row.examples)} for row in rows)
    return as_csv((*columns, "sign", "examples"), listed)
