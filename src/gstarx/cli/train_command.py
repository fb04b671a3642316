"""``gstarx train``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gstarx._internal.one_thread import one_thread
from gstarx._internal.suggestions import unknown
from gstarx.cli.console import (
    note,
    only_json,
    out,
    print_json,
    show_progress,
    table,
    writable,
)
from gstarx.cli.options import AsJson, Data, Seed, complete_dataset, examples
from gstarx.registry import DATASETS, DatasetSource

if TYPE_CHECKING:
    from gstarx.datasets import GraphDataset
    from gstarx.models import TrainingResult

EXAMPLES = examples(
    "gstarx train nitro --output nitro.safetensors",
    "gstarx train mutag --network gin --seed 1 --epochs 200",
    "gstarx train molecules.csv --label toxic --output toxic.safetensors",
)


def train(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET|CSV",
            help="A dataset, or a .csv of molecules and their classes.",
            autocompletion=complete_dataset,
        ),
    ],
    network: Annotated[Literal["gcn", "gin", "gat"], typer.Option(help="Which network.")] = "gcn",
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where the weights go, .safetensors; by default DATASET-NETWORK-SEED.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs at most; by default the recipe's.", show_default=False),
    ] = None,
    smiles: Annotated[str, typer.Option(help="Of a .csv: the column of molecules.")] = "smiles",
    label: Annotated[str, typer.Option(help="Of a .csv: the column of classes.")] = "label",
    data: Data = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a network of the paper, with its published settings where they exist.

    Ctrl-C pauses it: the same command continues where it stopped.
    """
    if not dataset.endswith(".csv") and dataset not in DATASETS:
        raise typer.BadParameter(unknown("dataset", dataset, DATASETS), param_hint="DATASET")
    path = output or Path(f"{Path(dataset).stem}-{network}-{seed}.safetensors")
    writable(path, ".safetensors")
    with one_thread(), only_json(as_json) as stream:
        loaded = _loaded(dataset, data, smiles, label)
        result = _trained(loaded, network, seed, epochs, path.with_suffix(".training"))
        content = _stored(path, loaded, result)
    if as_json:
        print_json(content, stream)
        return
    shown = table("split", "accuracy")
    for part, share in content["accuracy"].items():
        shown.add_row(part, f"{share:.4f}")
    out().print(shown)
    out().print(
        f"{content['epochs']} epochs, the best one was number {content['best_epoch']}", style="dim"
    )
    out().print(f"wrote {path}", soft_wrap=True)


def _loaded(name: str, root: Path | None, smiles: str, label: str) -> GraphDataset:
    from gstarx import datasets
    from gstarx.cli.inputs import load_dataset

    if name.endswith(".csv"):
        return datasets.from_table(name, smiles=smiles, label=label)
    return load_dataset(DatasetSource(name=name, root=None if root is None else str(root)))


def _trained(
    dataset: GraphDataset, network: str, seed: int, epochs: int | None, pause: Path
) -> TrainingResult:
    from gstarx import models

    changes = {} if epochs is None else {"epochs": epochs}
    recipe = models.recipe(dataset.name, network, **changes)
    if pause.exists():
        note(f"going on with {pause}")
    try:
        result = models.train(
            network,
            dataset,
            seed=seed,
            settings=recipe.settings,
            checkpoint=pause,
            progress=show_progress(),
        )
    except KeyboardInterrupt:
        if pause.exists():
            note(f"paused: the same command goes on from {pause}")
        raise
    pause.unlink(missing_ok=True)
    return result


def _stored(path: Path, dataset: GraphDataset, result: TrainingResult) -> dict[str, Any]:
    from gstarx.models import save_model

    accuracy = {part: float(share) for part, share in result.accuracy.items()}
    facts = save_model(
        path,
        result.model,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        seed=result.seed,
        accuracy=accuracy,
    )
    return {
        "weights": str(path),
        "network": facts.network,
        "dataset": dataset.name,
        "accuracy": accuracy,
        "best_epoch": result.best_epoch,
        "epochs": len(result.history),
        "seconds": result.seconds,
        "seed": result.seed,
        "settings": asdict(result.settings),
        "digest": facts.digest,
    }
