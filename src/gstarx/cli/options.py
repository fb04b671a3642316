"""The options of all commands, each described once, by the name of its parameter."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

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


def _option(panel: str, kind: Any, help: str, *flags: str, **settings: Any) -> Any:
    """An option, by default called like its parameter; a default of ``None`` is not shown."""
    shown = type(None) not in get_args(kind)
    option = typer.Option(*flags, help=help, rich_help_panel=panel, show_default=shown, **settings)
    return Annotated[kind, option]


_graphs, _network, _work, _out = (
    partial(_option, panel) for panel in ("Graphs", "Network", "Computation", "Output")
)


def _dataset_argument(kind: Any) -> Any:
    help = "A dataset, see [b]gstarx datasets list[/b]."
    settings: dict[str, Any] = {"autocompletion": complete_dataset, "callback": _dataset}
    argument = typer.Argument(metavar="DATASET", help=help, show_default=False, **settings)
    return Annotated[kind, argument]


#: What the parameters of commands are, by name. A parameter that is annotated with another name,
#: as in ``Annotated[list[str], "explainers"]``, is what that name says.
OPTIONS: dict[str, Any] = {
    "dataset": _dataset_argument(str | None),
    "one dataset": _dataset_argument(str),
    "positions": Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH",
            help="Positions in the dataset, from 0: [b]15 44[/b], or [b]15-20[/b] for several.",
            show_default=False,
        ),
    ],
    "smiles": _graphs(list[str] | None, "A molecule; can be repeated."),
    "sentence": _graphs(
        list[str] | None,
        "A sentence; can be repeated. Needs gstarx\\[text].",
    ),
    "file": _graphs(
        list[Path] | None,
        "Your own graphs: PyG Data in .pt, .npz, .safetensors, .json; or a table of molecules: "
        ".csv, .tsv, .smi, .sdf, .parquet, .xlsx.",
    ),
    "graphs": _graphs(
        str | None,
        "Your own graphs of any kind: a function without arguments that returns a PyG dataset or "
        "a list of Data.",
        metavar="MODULE:FACTORY",
    ),
    "smiles_column": _graphs(
        str | None,
        "For a table: the SMILES column; by default found by its name.",
    ),
    "name_column": _graphs(
        str | None,
        "For a table: the column of names; by default found by its name.",
    ),
    "label": _graphs(
        str | None,
        "For a table: the label column, or several separated by commas; by default found by its "
        "name.",
    ),
    "encoding": _graphs(
        str | None,
        "For a table that is a text file: its encoding, such as latin-1; by default detected.",
    ),
    "salts": _graphs(
        Literal["keep", "largest", "warn"],
        "Molecules with several parts: keep all parts, the largest one, or keep all and warn, "
        "unless the weights were trained on the largest.",
    ),
    "split": _graphs(
        Literal["train", "val", "test", "all"] | None,
        "All graphs of this part of the dataset.",
    ),
    "limit": _graphs(
        int | None,
        "Only the first graphs of the split, or the first rows of a table without --split.",
        "--limit",
        "--head",
        min=1,
    ),
    "sample": _graphs(
        int | None,
        "This many graphs or rows of a table, drawn at random with --seed.",
        min=1,
    ),
    "data": _graphs(
        Path | None,
        "Directory of the datasets; by default $GSTARX_DATA or ~/.cache/gstarx.",
    ),
    "model": _network(
        str | None,
        "A network that ships with the package, such as [b]sst2-gat[/b], or "
        "[b]module:factory[/b], a function without arguments that returns yours.",
        autocompletion=complete_network,
    ),
    "weights": _network(
        Path | None,
        "A file of weights: .safetensors of [b]gstarx train[/b], a .pt or .ckpt of Chemprop, or a "
        "published .pth; with [b]--model module:factory[/b] a state dictionary for that model.",
    ),
    "trust": _network(
        bool,
        "Allow a Chemprop .pt or .ckpt file to run code while it is read, if it contains more "
        "than weights and Chemprop's own layers. Use it only for files you trust.",
        "--trust",
    ),
    "task": _network(
        Literal["classification", "binary", "multilabel", "regression"] | None,
        "What the model predicts: one of several classes, one logit for two classes, several "
        "yes-or-no targets, or numbers; by default, inferred from the labels or the weights.",
    ),
    "return_type": _network(
        Literal["raw", "probs", "log_probs"],
        "What the model returns: logits, probabilities or their logarithms.",
    ),
    "explainer": _work(
        str,
        "The explainer, such as [b]gstarx[/b] or [b]banzhaf[/b].",
        "--explainer",
        "-e",
        autocompletion=complete_explainer,
        callback=_explainer,
    ),
    "explainers": _work(
        list[str],
        "The explainers: repeat the option, or separate them by commas.",
        "--explainer",
        "-e",
        autocompletion=complete_explainer,
        callback=_explainers,
    ),
    "option": _work(
        list[str] | None,
        "An option of the explainer, such as [b]budget=5000[/b]; with several explainers "
        "[b]gstarx.budget=5000[/b]. Can be repeated.",
        "--option",
        "-o",
        metavar="NAME=VALUE",
    ),
    "target": _work(
        str | None,
        "The class or output to explain, by its name or number, or [b]all[/b]; by default the "
        "predicted class.",
    ),
    "sparsity": _work(
        float,
        "The share of nodes that an explanation leaves out.",
        callback=_sparsity,
    ),
    "baseline": _work(
        str | None,
        "Compare predictions with the mean over this part of the dataset, over single nodes of "
        "the graph, which is the default of gstarx, with equal probabilities of all classes, or "
        "with a number.",
        metavar="|".join([*_BASELINES, "NUMBER"]),
        callback=_baseline,
        autocompletion=lambda incomplete: [n for n in _BASELINES if n.startswith(incomplete)],
    ),
    "nodes": _work(
        str | None,
        "Nodes of one graph to explain, for a network that classifies nodes: numbers such as "
        "37,52-60, or @file with a list of them. Every player gets a score.",
    ),
    "node_type": _work(
        str | None,
        "With [b]--nodes[/b], for heterogeneous graphs: the type of these nodes. Needed if it "
        "cannot be inferred from the output of the network.",
        metavar="TYPE",
    ),
    "players": _work(
        str | None,
        "What to score instead of nodes: [b]edges[/b], [b]features[/b], or groups of nodes: "
        + ", ".join(f"[b]{name.replace('_', '-')}[/b]" for name in group_makers())
        + ".",
        metavar="PLAYERS",
    ),
    "share": _work(
        Literal["auto", "true", "false"] | None,
        "Compute embeddings that parts of a graph have in common only once: if it saves enough "
        "([b]auto[/b], the default), whenever outputs agree, or never.",
    ),
    "seed": _work(int, "Seed of the random numbers.", min=0),
    "strict": _work(bool, "Exit code 3 if a row could not be read.", "--strict"),
    "engine": _work(
        Literal["local", "ray"],
        "Processes of this machine, or a Ray cluster.",
    ),
    "workers": _work(
        int | None,
        "Number of processes or tasks at a time; by default all cores.",
        min=1,
    ),
    "store": _work(
        Path,
        "Where results are stored; graphs already explained there are not explained again.",
    ),
    "stored runs": Annotated[
        Path,
        typer.Argument(metavar="STORE", help="The directory of the store.", show_default=False),
    ],
    "as_json": _out(bool, "Print only JSON.", "--json"),
    "draw": _out(
        Path | None,
        "A picture, .svg, .png or .pdf. With several graphs their names are added.",
    ),
    "json file": _out(Path | None, "Also write the results to this .json file."),
    "results file": _out(
        Path | None,
        "Also write the results: .json, .csv or .parquet with a row for every node, or .sdf with "
        "atom properties.",
        "--output",
    ),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its parameters as they are described in :data:`OPTIONS`.

    A parameter whose type is a dataclass stands for an option for each of its fields.
    """
    hints = get_type_hints(command, include_extras=True)
    given = inspect.signature(command).parameters.values()
    expanded: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for parameter in given:
        name = parameter.name
        if name in expanded:
            own = get_type_hints(expanded[name], include_extras=True)
            parameters += [
                (field.name, field.default, own[field.name]) for field in fields(expanded[name])
            ]
        else:
            parameters.append((name, parameter.default, hints[name]))
    signature = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=_described(name, hint),
            )
            for name, default, hint in parameters
        ]
    )

    @wraps(command)
    def with_fields(**values: Any) -> None:
        for name, made in expanded.items():
            values[name] = made(**{field.name: values.pop(field.name) for field in fields(made)})
        command(**values)

    with_fields.__signature__ = signature  # type: ignore[attr-defined]
    with_fields.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return with_fields


def _described(name: str, hint: Any) -> Any:
    """The annotation of a parameter, with its description."""
    if get_origin(hint) is Annotated:
        described = hint.__metadata__[0]
        return OPTIONS[described] if isinstance(described, str) else hint
    return hint if hint is typer.Context else OPTIONS[name]


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
