"""The options that commands share, each in one place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from gstarx._internal.suggestions import unknown
from gstarx.registry import DATASETS, EXPLAINERS, NETWORKS, explainer_names

#: The sparsity at which explanations are shown and judged, unless something else is said.
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
    listed = [part.strip() for name in names for part in name.split(",") if part.strip()]
    return list(dict.fromkeys(map(_explainer, listed)))


def _share(share: float) -> float:
    if not 0 <= share < 1:
        raise typer.BadParameter(f"sparsity must lie in [0, 1), below 1 (got {share:g})")
    return share


def _starting(known: dict[str, str], incomplete: str) -> Iterator[tuple[str, str]]:
    return ((name, about) for name, about in known.items() if name.startswith(incomplete))


def complete_dataset(incomplete: str) -> Iterator[tuple[str, str]]:
    """Datasets that begin so."""
    return _starting({name: spec.about for name, spec in DATASETS.items()}, incomplete)


def complete_explainer(incomplete: str) -> Iterator[tuple[str, str]]:
    """Explainers that begin so."""
    known = {n: EXPLAINERS[n].about if n in EXPLAINERS else "" for n in explainer_names()}
    return _starting(known, incomplete)


def complete_network(incomplete: str) -> Iterator[tuple[str, str]]:
    """Networks that begin so."""
    return _starting(dict.fromkeys(NETWORKS, "comes with the package"), incomplete)


_WHICH = "Which graphs"
_NETWORK = "Which network"
_WORK = "How it is done"
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
        help="Graphs of your own: .pt of PyG Data, .npz, .safetensors, .json; or molecules: .smi, "
        ".csv with a column 'smiles'.",
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
        min=1,
        help="No more graphs than this, the first of the split.",
        rich_help_panel=_WHICH,
        show_default=False,
    ),
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
        help="A network that comes with the package, such as [b]sst2-gat[/b], or "
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
        help="A file of weights: .safetensors of [b]gstarx train[/b] or a published .pth; with "
        "[b]--model module:factory[/b] a state dictionary for that model.",
        rich_help_panel=_NETWORK,
        show_default=False,
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
        help="Which method.",
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
        help="Which methods: repeat it, or separate them by commas.",
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
    int | None,
    typer.Option(
        "--target",
        min=0,
        help="The class to explain; by default the predicted one.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Sparsity = Annotated[
    float,
    typer.Option(
        "--sparsity",
        help="The share of nodes that an explanation leaves out.",
        callback=_share,
        rich_help_panel=_WORK,
    ),
]
Baseline = Annotated[
    SPLITS | None,
    typer.Option(
        "--baseline",
        help="Compare predictions with the mean over this part of the dataset.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Share = Annotated[
    Literal["auto", "true", "false"] | None,
    typer.Option(
        "--share",
        help="Compute embeddings that parts of a graph have in common once: where it is worth it "
        "([b]auto[/b], the default), wherever it is right, or never.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, help="The same seed gives the same numbers.", rich_help_panel=_WORK
    ),
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
        help="How many at a time; by default all cores.",
        rich_help_panel=_WORK,
        show_default=False,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print JSON and nothing else.", rich_help_panel=_OUT),
]
Draw = Annotated[
    Path | None,
    typer.Option(
        "--draw",
        help="A picture, .svg or .png. With several graphs their names are added.",
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
        help="Where results are kept; what is there already is not done again.",
        rich_help_panel=_WORK,
    ),
]


def help_of(command: Callable[..., Any]) -> str:
    """The docstring of a command as its help: a line for each paragraph, wrapped when shown."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy.

    >>> print(examples("gstarx version"))
    [b]Examples[/b]
    <BLANKLINE>
    [cyan]gstarx version[/cyan]
    """
    # a bracket in a command is no markup
    shown = (line.replace("[", r"\[") for line in lines)
    return "\n\n".join(["[b]Examples[/b]", *(f"[cyan]{line}[/cyan]" for line in shown)])
