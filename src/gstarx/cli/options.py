"""The options that commands share, each in one place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from gstarx._internal.messages import quoted, unknown
from gstarx.registry import DATASETS, EXPLAINERS, NETWORKS, explainer_names, group_makers

#: The sparsity at which explanations are shown and evaluated by default.
SPARSITY = 0.7


def _dataset(name: str | None) -> str | None:
    if name is not None and name not in DATASETS:
        raise typer.BadParameter(unknown("dataset", name, DATASETS))
    return name


def _explainer(name: str) -> str:
    if name not in explainer_names():
        raise typer.BadParameter(unknown("explainer", name, explainer_names()))
    return name


def _explainers(names: list[str]) -> list[str]:
    listed = [name.strip() for text in names for name in text.split(",") if name.strip()]
    if not listed:
        got, valid = quoted(", ".join(names)), ", ".join(explainer_names())
        raise typer.BadParameter(f"name at least one explainer (got {got}). Valid are {valid}")
    return list(dict.fromkeys(map(_explainer, listed)))


def _sparsity(sparsity: float) -> float:
    if not 0 <= sparsity < 1:
        raise typer.BadParameter(f"sparsity must lie in [0, 1), below 1 (got {sparsity:g})")
    return sparsity


#: Baselines by name: parts of the dataset to average over, and rules.
_BASELINES = ("train", "val", "test", "all", "singletons", "uniform")


def _baseline(baseline: Any) -> Any:
    """The baseline of the command: a name, or a number."""
    if baseline is None or baseline in _BASELINES or isinstance(baseline, float):
        return baseline
    try:
        number = float(baseline)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(
            f"a baseline is a finite number or one of {', '.join(_BASELINES)} (got {baseline})"
        )
    return number


def _starting(known: dict[str, str], incomplete: str) -> Iterator[tuple[str, str]]:
    return ((name, about) for name, about in known.items() if name.startswith(incomplete))


def complete_dataset(incomplete: str) -> Iterator[tuple[str, str]]:
    """Datasets whose names begin with ``incomplete``."""
    return _starting({name: spec.about for name, spec in DATASETS.items()}, incomplete)


def complete_explainer(incomplete: str) -> Iterator[tuple[str, str]]:
    """Explainers whose names begin with ``incomplete``."""
    known = {n: EXPLAINERS[n].about if n in EXPLAINERS else "" for n in explainer_names()}
    return _starting(known, incomplete)


def complete_network(incomplete: str) -> Iterator[tuple[str, str]]:
    """Networks whose names begin with ``incomplete``."""
    return _starting(dict.fromkeys(NETWORKS, "ships with the package"), incomplete)


_WHICH = "Graphs"
_NETWORK = "Network"
_WORK = "Computation"
_OUT = "Output"

DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A dataset, see [b]gstarx datasets list[/b].",
        autocompletion=complete_dataset,
        callback=_dataset,
    ),
]
MaybeDataset = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET",
        help="A dataset, see [b]gstarx datasets list[/b].",
        autocompletion=complete_dataset,
        callback=_dataset,
        show_default=False,
    ),
]
Positions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GRAPH",
        help="Positions in the dataset, from 0: [b]15 44[/b], or [b]15-20[/b] for several.",
        show_default=False,
    ),
]
Smiles = Annotated[
    list[str] | None,
    typer.Option(
        "--smiles", help="A molecule; can be repeated.", rich_help_panel=_WHICH, show_default=False
    ),
]
Sentences = Annotated[
    list[str] | None,
    typer.Option(
        "--sentence",
        help="A sentence; can be repeated. Needs gstarx\\[text].",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        help="Your own graphs: PyG Data in .pt, .npz, .safetensors, .json; or a table of "
        "molecules: .csv, .tsv, .smi, .sdf, .parquet, .xlsx.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
SPLITS = Literal["train", "val", "test", "all"]
MaybeSplit = Annotated[
    SPLITS | None,
    typer.Option(
        "--split",
        help="All graphs of this part of the dataset.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Split = Annotated[
    SPLITS, typer.Option("--split", help="Which part of the dataset.", rich_help_panel=_WHICH)
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "--head",
        min=1,
        help="Only the first graphs of the split, or the first rows of a table without --split.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        min=1,
        help="This many graphs or rows of a table, drawn at random with --seed.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
GraphsFactory = Annotated[
    str | None,
    typer.Option(
        "--graphs",
        metavar="MODULE:FACTORY",
        help="Your own graphs of any kind: a function without arguments that returns a PyG dataset "
        "or a list of Data.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
SmilesColumn = Annotated[
    str | None,
    typer.Option(
        "--smiles-column",
        help="For a table: the SMILES column; by default found by its name.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="For a table that is a text file: its encoding, such as latin-1; by default detected.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="For a table: the label column, or several separated by commas; by default found "
        "by its name.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
NameColumn = Annotated[
    str | None,
    typer.Option(
        "--name-column",
        help="For a table: the column of names; by default found by its name.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Salts = Annotated[
    Literal["keep", "largest", "warn"],
    typer.Option(
        "--salts",
        help="Molecules with several parts: keep all parts, the largest one, or keep all and warn, "
        "unless the weights were trained on the largest.",
        rich_help_panel=_WHICH,
    ),
]
Task = Annotated[
    Literal["classification", "binary", "multilabel", "regression"] | None,
    typer.Option(
        "--task",
        help="What the model predicts: one of several classes, one logit for two classes, several "
        "yes-or-no targets, or numbers; by default, inferred from the labels or the weights.",
        rich_help_panel=_NETWORK,
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit code 3 if a row could not be read.", rich_help_panel=_WORK),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Directory of the datasets; by default $GSTARX_DATA or ~/.cache/gstarx.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A network that ships with the package, such as [b]sst2-gat[/b], or "
        "[b]module:factory[/b], a function without arguments that returns yours.",
        autocompletion=complete_network,
        rich_help_panel=_NETWORK,
        show_default=False,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="A file of weights: .safetensors of [b]gstarx train[/b], a .pt or .ckpt of Chemprop, "
        "or a published .pth; with [b]--model module:factory[/b] a state dictionary for that "
        "model.",
        rich_help_panel=_NETWORK,
        show_default=False,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Allow a Chemprop .pt or .ckpt file to run code while it is read, if it contains more "
        "than weights and Chemprop's own layers. Use it only for files you trust.",
        rich_help_panel=_NETWORK,
    ),
]
ReturnType = Annotated[
    Literal["raw", "probs", "log_probs"],
    typer.Option(
        "--return-type",
        help="What the model returns: logits, probabilities or their logarithms.",
        rich_help_panel=_NETWORK,
    ),
]
Explainer = Annotated[
    str,
    typer.Option(
        "--explainer",
        "-e",
        help="The explainer, such as [b]gstarx[/b] or [b]banzhaf[/b].",
        autocompletion=complete_explainer,
        callback=_explainer,
        rich_help_panel=_WORK,
    ),
]
Explainers = Annotated[
    list[str],
    typer.Option(
        "--explainer",
        "-e",
        help="The explainers: repeat the option, or separate them by commas.",
        autocompletion=complete_explainer,
        callback=_explainers,
        rich_help_panel=_WORK,
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the explainer, such as [b]budget=5000[/b]; with several explainers "
        "[b]gstarx.budget=5000[/b]. Can be repeated.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The class or output to explain, by its name or number, or [b]all[/b]; by default the "
        "predicted class.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Sparsity = Annotated[
    float,
    typer.Option(
        "--sparsity",
        help="The share of nodes that an explanation leaves out.",
        callback=_sparsity,
        rich_help_panel=_WORK,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="|".join([*_BASELINES, "NUMBER"]),
        help="Compare predictions with the mean over this part of the dataset, over single nodes "
        "of the graph, which is the default of gstarx, with equal probabilities of all classes, or "
        "with a number.",
        callback=_baseline,
        autocompletion=lambda incomplete: [n for n in _BASELINES if n.startswith(incomplete)],
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        help="Nodes of one graph to explain, for a network that classifies nodes: numbers such as "
        "37,52-60, or @file with a list of them. Every player gets a score.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
NodeType = Annotated[
    str | None,
    typer.Option(
        "--node-type",
        metavar="TYPE",
        help="With [b]--nodes[/b], for heterogeneous graphs: the type of these nodes. Needed if it "
        "cannot be inferred from the output of the network.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Players = Annotated[
    str | None,
    typer.Option(
        "--players",
        metavar="PLAYERS",
        help="What to score instead of nodes: [b]edges[/b], [b]features[/b], or groups of nodes: "
        + ", ".join(f"[b]{name.replace('_', '-')}[/b]" for name in group_makers())
        + ".",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Share = Annotated[
    Literal["auto", "true", "false"] | None,
    typer.Option(
        "--share",
        help="Compute embeddings that parts of a graph have in common only once: if it saves "
        "enough ([b]auto[/b], the default), whenever outputs agree, or never.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, help="Seed of the random numbers.", rich_help_panel=_WORK),
]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--engine", help="Processes of this machine, or a Ray cluster.", rich_help_panel=_WORK
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Number of processes or tasks at a time; by default all cores.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print only JSON.", rich_help_panel=_OUT),
]
Draw = Annotated[
    Path | None,
    typer.Option(
        "--draw",
        help="A picture, .svg, .png or .pdf. With several graphs their names are added.",
        rich_help_panel=_OUT,
        show_default=False,
    ),
]
ResultsFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help="Also write the results: .json, .csv or .parquet with a row for every node, or .sdf "
        "with atom properties.",
        rich_help_panel=_OUT,
        show_default=False,
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help="Also write the results to this .json file.",
        rich_help_panel=_OUT,
        show_default=False,
    ),
]
StorePath = Annotated[
    Path, typer.Argument(metavar="STORE", help="The directory of the store.", show_default=False)
]
StoreOption = Annotated[
    Path,
    typer.Option(
        "--store",
        help="Where results are stored; graphs already explained there are not explained again.",
        rich_help_panel=_WORK,
    ),
]


def help_of(command: Callable[..., Any]) -> str:
    """The docstring of a command as its help: one line per paragraph, wrapped when shown."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy.

    >>> print(examples("gstarx version"))
    [b]Examples[/b]
    <BLANKLINE>
    [cyan]gstarx version[/cyan]
    """
    # a bracket in a command is not markup
    shown = (line.replace("[", r"\[") for line in lines)
    return "\n\n".join(["[b]Examples[/b]", *(f"[cyan]{line}[/cyan]" for line in shown)])
