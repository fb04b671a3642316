"""``gstarx train``."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gstarx._internal.messages import unknown
from gstarx._internal.processes import one_thread
from gstarx.cli.console import (
    CommandError,
    WrongUse,
    only_json,
    out,
    print_json,
    show_progress,
    table,
    writable,
)
from gstarx.cli.options import complete_dataset, examples
from gstarx.registry import DATASETS, DatasetSource

if TYPE_CHECKING:
    from gstarx.datasets import GraphDataset
    from gstarx.models import SplitRecord
    from gstarx_bench.models import TrainingResult

EXAMPLES = examples(
    "gstarx train nitro --output nitro.safetensors",
    "gstarx train mutag --network gin --seed 1 --epochs 200",
    "gstarx train molecules.csv --label toxic --split scaffold --output toxic.safetensors",
    "gstarx train molecules.csv --label logp --task regression",
    "gstarx train --graphs my_module:my_graphs",
)


@dataclass(frozen=True)
class TrainingGraphs:
    """The graphs that the options select; every field is an option of the command."""

    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET|TABLE",
            help="A dataset, or a table of molecules and labels: .csv, .tsv, .sdf, .parquet, .xlsx",
            autocompletion=complete_dataset,
            show_default=False,
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", help="The table, as an option.", show_default=False),
    ] = None
    graphs: str | None = None
    task: str | None = None
    label: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    encoding: str | None = None
    split: Annotated[
        str,
        typer.Option(
            help="How molecules are split into train, val and test: [b]random[/b], "
            "[b]scaffold[/b], or a column of the table that names the split."
        ),
    ] = "random"
    limit: int | None = None
    sample: int | None = None
    salts: str = "warn"
    data: Path | None = None
    seed: int = 0

    @property
    def source(self) -> DatasetSource:
        """Where they come from, or an error about options that do not belong together."""
        sources = {
            "a dataset or table": self.dataset,
            "--file": self.file,
            "--graphs": self.graphs,
        }
        named = [name for name, value in sources.items() if value is not None]
        if len(named) != 1:
            got = " and ".join(named) or "none"
            raise WrongUse(f"specify what to train on with one of {', '.join(sources)} (got {got})")
        choices = {
            field.name: getattr(self, field.name)
            for field in fields(DatasetSource)
            if hasattr(self, field.name)
        }
        if self.dataset in DATASETS:
            root = None if self.data is None else str(self.data)
            choices |= {"name": self.dataset, "root": root}
        elif self.dataset is not None:
            # a name without a suffix is a misspelled dataset
            if not Path(self.dataset).suffix:
                problem = unknown("dataset", self.dataset, DATASETS)
                raise typer.BadParameter(problem, param_hint="DATASET")
            choices["file"] = self.dataset
        elif self.file is not None:
            choices["file"] = str(self.file)
        source = DatasetSource(**choices)
        _check(source)
        return source


def train(
    chosen: TrainingGraphs,
    network: Annotated[Literal["gcn", "gin", "gat"], typer.Option(help="The network.")] = "gcn",
    output: Annotated[
        Path | None,
        typer.Option(
            help="The weights file, .safetensors; by default DATASET-NETWORK-SEED.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="At most this many epochs; by default the recipe's.", show_default=False
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop after this many epochs without a better validation score; by default the "
            "recipe's.",
            show_default=False,
        ),
    ] = None,
    strict: bool = False,
    as_json: bool = False,
) -> None:
    """Train a network of the paper, with its published settings where they exist.

    Labels can be classes, several yes-or-no targets, or numbers. Rows of a table that cannot be
    read are skipped.
    """
    source, seed = chosen.source, chosen.seed
    path = output or Path(f"{source.title}-{network}-{seed}.safetensors")
    writable(path, ".safetensors")
    with one_thread(), only_json(as_json) as stream:
        loaded = _loaded(source)
        balance = _balance(loaded)
        if not as_json:
            _show_rows(balance)
        changes = {"epochs": epochs, "patience": patience}
        result = _trained(loaded, network, seed, changes)
        content = {**_stored(path, source, loaded, result), "balance": balance}
    if as_json:
        print_json(content, stream)
    else:
        _show(content)
    if strict and loaded.unreadable:
        raise typer.Exit(3)


def _check(source: DatasetSource) -> None:
    """Raise where options do not belong to this kind of data."""
    if source.limit is not None and source.sample is not None:
        raise WrongUse("use --limit or --sample, not both")
    if source.file is None:
        columns = ("smiles_column", "name_column", "label", "encoding")
        wrong = [name for name in columns if getattr(source, name) is not None]
        if wrong:
            option = f"--{wrong[0].replace('_', '-')}"
            raise WrongUse(f"{option} is for tables of molecules (got {source.title!r})")
    if source.graphs is not None and source.split not in ("random", "scaffold"):
        raise WrongUse(f"--split must be random or scaffold for --graphs (got {source.split!r})")


def _loaded(source: DatasetSource) -> GraphDataset:
    from gstarx.cli.inputs import load_dataset, warn_about_salts, warn_about_skipped
    from gstarx.datasets import title_of

    loaded = _by_name(source) if source.name is not None else load_dataset(source)
    if source.name is None:
        warn_about_skipped(loaded.unreadable, len(loaded))
    if source.salts == "warn" and source.file is not None:
        warn_about_salts([(title_of(graph, ""), graph) for graph in loaded])
    if any(graph.get("y") is None for graph in loaded):
        hint = ": name their column with --label" if source.file is not None else ""
        raise CommandError(f"{loaded.name} has no labels to learn{hint}")
    return loaded


def _by_name(source: DatasetSource) -> GraphDataset:
    """A dataset by name, with those of the options that can be applied to it."""
    from gstarx import datasets
    from gstarx.cli.inputs import load_dataset

    assert source.name is not None
    if source.split == "random":
        loaded = load_dataset(source)
    else:
        try:
            loaded = datasets.load(source.name, source.root, split=source.split)
        except TypeError as error:
            raise WrongUse(
                f"{source.name!r} has its own splits: leave out --split (got {source.split!r})"
            ) from error
    if source.task not in (None, loaded.task):
        if source.task != "binary" or loaded.num_classes != 2:
            raise WrongUse(
                f"the labels of {source.name!r} are a {loaded.task} of {loaded.num_classes} "
                f"classes (got --task {source.task})"
            )
        loaded = loaded.replace(task="binary")
    if source.limit is not None or source.sample is not None:
        loaded = datasets.from_graphs(
            loaded,
            name=loaded.name,
            limit=source.limit,
            sample=source.sample,
            seed=source.seed,
        )
    return loaded


def _balance(dataset: GraphDataset) -> list[dict[str, Any]]:
    """How labels are distributed: rows of a table."""
    import torch

    graphs = dataset.graphs
    if dataset.task in ("classification", "binary"):
        if any(graph.y.numel() != 1 for graph in graphs):  # labels of nodes
            return []
        names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
        rows = []
        for split, positions in dataset.split_indices.items():
            counts = Counter(int(graphs[position].y) for position in positions)
            rows.append({"split": split} | {name: counts[i] for i, name in enumerate(names)})
        return rows
    labels = torch.cat([graph.y.reshape(1, -1).double() for graph in graphs])
    names = dataset.target_names or tuple(map(str, range(labels.shape[1])))
    rows = []
    for name, column in zip(names, labels.T, strict=True):
        known = column[~column.isnan()]
        if dataset.task == "multilabel":
            positive = int(known.sum())
            row: dict[str, Any] = {"yes": positive, "no": len(known) - positive}
        elif len(known):
            row = {"mean": float(known.mean()), "std": float(known.std(correction=0))}
            row |= {"min": float(known.min()), "max": float(known.max())}
        else:
            row = {"mean": None, "std": None, "min": None, "max": None}
        rows.append({"target": name, **row, "missing": len(column) - len(known)})
    return rows


def _trained(
    dataset: GraphDataset, network: str, seed: int, changes: dict[str, Any]
) -> TrainingResult:
    from gstarx_bench import models

    changed = {name: value for name, value in changes.items() if value is not None}
    settings = models.recipe(dataset.name, network, **changed).settings
    return models.train(network, dataset, seed=seed, settings=settings, progress=show_progress())


def _stored(
    path: Path, source: DatasetSource, dataset: GraphDataset, result: TrainingResult
) -> dict[str, Any]:
    from gstarx.models import features_of, save_model

    table_of_molecules = source.file is not None and "smiles" in dataset[0]
    features = source.features if table_of_molecules else features_of(source.name)
    facts = save_model(
        path,
        result.model,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        seed=result.seed,
        accuracy=result.accuracy or None,
        task=dataset.task,
        class_names=dataset.class_names,
        target_names=dataset.target_names,
        label=source.label if dataset.class_names else None,
        smiles_column=source.smiles_column,
        name_column=source.name_column,
        features=features,
        salts="largest" if table_of_molecules and source.salts == "largest" else None,
        reference=result.reference,
        metrics=result.metrics,
        split=_split_record(source, dataset),
    )
    return {
        "weights": str(path),
        "network": facts.network,
        "dataset": dataset.name,
        "task": dataset.task,
        "graphs": len(dataset),
        "accuracy": result.accuracy,
        "metrics": facts.metrics,
        "reference": None if facts.reference is None else asdict(facts.reference),
        "best_epoch": result.best_epoch,
        "epochs": len(result.history),
        "seconds": result.seconds,
        "seed": result.seed,
        "settings": asdict(result.settings),
        "digest": facts.digest,
        "skipped": [asdict(row) for row in dataset.unreadable] if source.name is None else [],
    }


def _split_record(source: DatasetSource, dataset: GraphDataset) -> SplitRecord | None:
    """The split to keep with the weights, unless it is the dataset's own, or one of nodes."""
    from gstarx.models import SplitRecord

    own = (source.name, "random", None, None)
    if own == (dataset.name, source.split, source.limit, source.sample):
        return None
    by_class = dataset.task in ("classification", "binary")
    if by_class and any(graph.y.numel() != 1 for graph in dataset):
        return None
    return SplitRecord.of(dataset.graphs, dataset.split_indices)


def _show(content: dict[str, Any]) -> None:
    by_split = content["metrics"]
    names = list(dict.fromkeys(name for scores in by_split.values() for name in scores))
    rows = [
        {"metric": name, **{split: scores.get(name) for split, scores in by_split.items()}}
        for name in names
    ]
    _show_rows(rows)
    out().print(
        f"{content['epochs']} epochs, the best was epoch {content['best_epoch']}", style="dim"
    )
    out().print(f"wrote {content['weights']}", soft_wrap=True)


def _show_rows(rows: list[dict[str, Any]]) -> None:
    """Print dictionaries of the same keys as a table; what is not defined is blank."""
    if not rows:
        return
    shown = table(*rows[0])
    for row in rows:
        cells = ("" if cell is None else cell for cell in row.values())
        shown.add_row(*(f"{c:.4f}" if isinstance(c, float) else str(c) for c in cells))
    out().print(shown)
    out().print()
