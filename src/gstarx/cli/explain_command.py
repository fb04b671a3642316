"""``gstarx explain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from gstarx._internal.one_thread import one_thread
from gstarx.cli.console import (
    CommandError,
    note,
    only_json,
    progress,
    uninterrupted,
    writable,
    write,
)
from gstarx.cli.console import as_json as json_text
from gstarx.cli.graphs import Subject
from gstarx.cli.options import (
    SPARSITY,
    AsJson,
    Baseline,
    Data,
    Draw,
    Explainer,
    Files,
    JsonFile,
    Limit,
    MaybeDataset,
    MaybeSplit,
    Model,
    Options,
    Positions,
    ReturnType,
    Seed,
    Sentences,
    Share,
    Smiles,
    Sparsity,
    Target,
    Weights,
    examples,
)

if TYPE_CHECKING:
    from gstarx.cli.records import Record

EXAMPLES = examples(
    "gstarx explain nitro 15 44",
    'gstarx explain --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" --draw molecule.svg',
    'gstarx explain --sentence "a gripping and wonderfully acted film" --json',
    "gstarx explain nitro --split test --limit 20 -e subgraphx --json > found.json",
    "gstarx explain --file graphs.pt --model my_code:make_model --weights weights.pt",
)


class Printer:
    """Explanations as they come: one is printed as an object, several as a list that is closed."""

    def __init__(self, stream: IO[str] | None, *, draw: Path | None, several: bool) -> None:
        self.stream = stream
        self.draw = draw
        self.several = several
        self.printed: list[dict[str, Any]] = []

    def add(self, content: dict[str, Any], record: Record | None = None) -> None:
        """Print one more, as JSON where there is a stream for it, and draw it if that is wanted."""
        with uninterrupted():
            if self.stream is not None:
                start = "" if not self.several else ",\n" if self.printed else "[\n"
                self.stream.write(start + json_text(content))
                self.stream.flush()
            elif record is not None:
                record.show()
            self.printed.append(content)
        if record is not None and self.draw is not None:
            _draw(record, picture_path(self.draw, record.subject, several=self.several))

    def close(self) -> None:
        """End the list, so that it can be read however it came to its end."""
        if self.stream is not None:
            if self.several:
                self.stream.write("\n]" if self.printed else "[]")
            if self.several or self.printed:
                self.stream.write("\n")
            self.stream.flush()

    @property
    def content(self) -> Any:
        """All that was printed."""
        return self.printed if self.several else next(iter(self.printed), None)


def explain(
    ctx: typer.Context,
    dataset: MaybeDataset = None,
    graphs: Positions = None,
    smiles: Smiles = None,
    sentence: Sentences = None,
    file: Files = None,
    split: MaybeSplit = None,
    limit: Limit = None,
    data: Data = None,
    model: Model = None,
    weights: Weights = None,
    return_type: ReturnType = "raw",
    explainer: Explainer = "gstarx",
    option: Options = None,
    target: Target = None,
    sparsity: Sparsity = SPARSITY,
    baseline: Baseline = None,
    share: Share = None,
    seed: Seed = 0,
    draw: Draw = None,
    output: JsonFile = None,
    as_json: AsJson = False,
) -> None:
    """Explain predictions: which nodes they depend on.

    Graphs come from a dataset, or are molecules, sentences or files of your own. After Ctrl-C the
    explanations that are finished are printed and written. With [b]--json[/b] one graph is an
    object, several are a list.
    """
    from gstarx.cli.graphs import InputSelection
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.records import Judge

    writable(output, ".json")
    writable(draw, ".svg", ".png")
    options = parse_options(option or (), [explainer], getattr(ctx.obj, "explainers", {}), share)
    asked = InputSelection(
        dataset, graphs, smiles, sentence, file, split, limit, data, model, weights
    )
    asked.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        subjects = asked.subjects()
        (method,) = create_explainers(asked, options, baseline=baseline, seed=seed).values()
        judge = Judge(asked, sparsity, seed, target, return_type)
        printer = Printer(stream if as_json else None, draw=draw, several=len(subjects) > 1)
        try:
            errors = _explain_all(
                subjects, printer, lambda one: judge.record(explainer, method, one, options)
            )
        finally:
            with uninterrupted():
                printer.close()
                if output is not None and printer.printed:
                    write(output, json_text(printer.content) + "\n")
    if errors:
        raise typer.Exit(1)


def _explain_all(
    subjects: Sequence[Subject], printer: Printer, explained: Callable[[Subject], Record]
) -> int:
    """Explain and print graph after graph; how many of them failed."""
    from gstarx.cli.records import failed

    errors = 0
    try:
        with progress("explaining", len(subjects)) as step:
            for subject in subjects:
                try:
                    record = explained(subject)
                except CommandError:
                    raise
                except Exception as error:
                    printer.add(failed(subject, error))
                    errors += 1
                else:
                    printer.add(record.as_dict(), record)
                step()
    except KeyboardInterrupt:
        note(f"stopped: {len(printer.printed)} of {len(subjects)} graphs are finished")
        raise
    return errors


def picture_path(path: Path, subject: Subject, *, several: bool) -> Path:
    """Where the picture of a graph goes.

    >>> from torch_geometric.data import Data
    >>> picture_path(Path("a.svg"), Subject("nitro 15", Data(), 15, "nitro"), several=True).name
    'a-nitro_15.svg'
    """
    return path.with_name(f"{path.stem}-{subject.slug}{path.suffix}") if several else path


def _draw(record: Record, path: Path) -> None:
    from gstarx import drawing

    title = f"{record.explainer}: {record.subject.name}"
    drawing.draw(record.subject.data, record.drawn_scores, record.selected, title=title).save(path)
    note(f"drew {path}")
