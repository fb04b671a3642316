"""The paper's Tables 5 to 7 again: datasets and accuracies, the published figure beside each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gstarx import datasets
from gstarx.datasets.paper import TABLE_5
from reproduction import RESULTS
from reproduction.paper import paper
from reproduction.training import TRAININGS, Trained, read

#: Test accuracy in the paper's Tables 6 and 7, by dataset and network.
ACCURACY: dict[str, float] = paper()["accuracy"]
#: Datasets made anew, and the row of Table 5 that they stand in for.
_STANDS_FOR = {"sst2": "graph_sst2", "tweets": "twitter"}


def statistics_table(names: Iterable[str] | None = None) -> str:
    """Table 5 as Markdown, ours beside the paper's; a row says where its data is missing."""
    lines = [
        "| dataset | graphs | paper | test | paper | nodes | paper | edges | pairs | paper |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names or ("mutag", "bace", "bbbp", "ba_2motifs", "sst2", "tweets"):
        paper = TABLE_5[_STANDS_FOR.get(name, name)]
        try:
            dataset = datasets.load(name)
        except (OSError, ImportError) as error:
            lines.append(f"| {name} | not here: {str(error).splitlines()[0]} |")
            continue
        found = dataset.statistics()
        lines.append(
            f"| {name} | {found.graphs:,} | {paper.graphs:,} | "
            f"{len(dataset.split_indices['test']):,} | {paper.test_graphs:,} | "
            f"{found.mean_nodes:.2f} | {paper.nodes:.2f} | {found.mean_edges:.2f} | "
            f"{found.mean_undirected_edges:.2f} | {paper.edges:.2f} |"
        )
    return "\n".join(lines) + "\n"


def accuracy_table(results: Path = RESULTS) -> str:
    """Tables 6 and 7 as Markdown: networks trained from scratch, the mean over seeds."""
    by_name: dict[str, list[Trained]] = {}
    for one in read(results):
        by_name.setdefault(f"{one.dataset}-{one.network}", []).append(one)
    lines = [
        "| dataset | network | seeds | validation | test | each seed | paper | seconds a seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in TRAININGS:
        dataset, network = name.rsplit("-", 1)
        paper = f"{ACCURACY[name]:.4f}" if name in ACCURACY else ""
        runs = sorted(by_name.get(name, []), key=lambda one: one.seed)
        if not runs:
            lines.append(f"| {dataset} | {network.upper()} | none yet | | | | {paper} | |")
            continue
        means = {s: np.mean([one.accuracy[s] for one in runs]) for s in ("val", "test")}
        each = ", ".join(f"{one.accuracy['test']:.3f}" for one in runs)
        seconds = np.mean([one.seconds for one in runs])
        lines.append(
            f"| {dataset} | {network.upper()} | {len(runs)} | {means['val']:.4f} | "
            f"{means['test']:.4f} | {each} | {paper} | {seconds:.0f} |"
        )
    return "\n".join(lines) + "\n"
