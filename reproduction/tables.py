"""Tables 3 to 7: cost, entropy of the scores, datasets, and accuracies, each beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from gstarx import datasets
from gstarx.metrics import poisson_entropy, uniform_entropy
from gstarx_bench.datasets.raw_files import TABLE_5
from reproduction import RESULTS
from reproduction.explaining import training_seconds
from reproduction.grids import Cell, Grid
from reproduction.paper import PRINTED_NAMES, TABLE_1, paper
from reproduction.results import Curves, SetupResults
from reproduction.training import TRAININGS, Trained, read

#: Test accuracy in the paper's Tables 6 and 7, by dataset and network.
ACCURACY: dict[str, float] = paper()["accuracy"]
#: Datasets rebuilt from text, and the rows of Table 5 that they replace.
_REPLACES = {"sst2": "graph_sst2", "tweets": "twitter"}


def seconds(results: SetupResults, folder: Path) -> Grid:
    """Table 3: CPU seconds per BBBP graph, without training, beside the paper's GPU seconds."""
    trained = training_seconds(folder).get(results.setup.name, {})
    rows: list[tuple[Cell, ...]] = []

    def row(label: str, curves: Curves, training: str, printed: str) -> tuple[Cell, ...]:
        own = curves.cpu_seconds
        return label, f"{own.mean():.3f}", f"{np.median(own):.3f}", training, len(own), printed

    for name, label in PRINTED_NAMES.items():
        curves = results.curves(name) or results.curves(name, few=True)
        printed = paper()["table_3"][label]
        cell = f"{printed['seconds']:g}"
        if "training" in printed:
            cell += f" (training {printed['training']:g})"
        if curves is None:
            rows.append((label, results.missing or "not yet", None, None, None, cell))
        else:
            training = f"{trained[name]:.0f}" if name in trained else ""
            rows.append(row(label, curves, training, cell))
    for name in ("HN", "Shapley", "Banzhaf", "Banzhaf, 10,000 evaluations"):
        if (curves := results.curves(name)) is not None:
            label = name if "evaluations" in name else f"{name}, 2,000 evaluations"
            rows.append(row(label, curves, "", ""))
    header = ("method", "CPU s per graph", "median", "training CPU s", "graphs", "paper, GPU s")
    return Grid("table_3", header, tuple(rows))


def entropies(results: Mapping[str, SetupResults]) -> Grid:
    """Table 4: entropy-based sparsity of the scores, beside three reference distributions."""
    table = paper()["table_4"]
    at = {name: table["datasets"].index(printed) for name, printed in TABLE_1.items()}
    rows: list[tuple[Cell, ...]] = []
    for label, method in (("GStarX, as published", "as published"), ("HN", "HN")):
        curves = {name: results[name].curves(method) for name in TABLE_1}
        own = [None if c is None else float(np.nanmean(c.entropy)) for c in curves.values()]
        printed = [table["GStarX"][at[name]] for name in TABLE_1]
        if method == "as published":
            rows.append((label, *(_both(o, p) for o, p in zip(own, printed, strict=True))))
        else:
            rows.append((label, *own))
    for label, entropy in (
        ("Uniform(n)", lambda n: uniform_entropy(n)),
        ("Uniform(0.25 n)", lambda n: uniform_entropy(n, 0.25)),
        ("Poisson(0.25 n)", poisson_entropy),
    ):
        cells: list[Cell] = []
        for name in TABLE_1:
            if results[name].missing:
                cells.append(results[name].missing)
                continue
            # over the whole test split, of which only some sentences are explained
            graphs = results[name].setup.data().split("test")
            own_mean = float(np.mean([entropy(int(g.num_nodes or 0)) for g in graphs]))
            cells.append(_both(own_mean, table[label][at[name]]))
        rows.append((label, *cells))
    return Grid("table_4", ("scores", *TABLE_1), tuple(rows))


def statistics_table(names: Iterable[str] | None = None) -> str:
    """Table 5 as Markdown, ours beside the paper's; a missing dataset gets a row that says so."""
    lines = [
        "| dataset | graphs | paper | test | paper | nodes | paper | edges | pairs | paper |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names or ("mutag", "bace", "bbbp", "ba_2motifs", "sst2", "tweets"):
        printed = TABLE_5[_REPLACES.get(name, name)]
        try:
            dataset = datasets.load(name)
        except (OSError, ImportError) as error:
            lines.append(f"| {name} | missing: {str(error).splitlines()[0]} |")
            continue
        own = dataset.statistics()
        lines.append(
            f"| {name} | {own.graphs:,} | {printed.graphs:,} | "
            f"{len(dataset.split_indices['test']):,} | {printed.test_graphs:,} | "
            f"{own.mean_nodes:.2f} | {printed.nodes:.2f} | {own.mean_edges:.2f} | "
            f"{own.mean_undirected_edges:.2f} | {printed.edges:.2f} |"
        )
    return "\n".join(lines) + "\n"


def accuracy_table(results: Path = RESULTS) -> str:
    """Tables 6 and 7 as Markdown: networks trained from scratch, the mean over seeds."""
    by_name: dict[str, list[Trained]] = {}
    for one in read(results):
        by_name.setdefault(f"{one.dataset}-{one.network}", []).append(one)
    lines = [
        "| dataset | network | seeds | validation | test | each seed | paper | seconds per seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in TRAININGS:
        dataset, network = name.rsplit("-", 1)
        printed = f"{ACCURACY[name]:.4f}" if name in ACCURACY else ""
        runs = sorted(by_name.get(name, []), key=lambda one: one.seed)
        if not runs:
            lines.append(f"| {dataset} | {network.upper()} | none yet | | | | {printed} | |")
            continue
        means = {s: np.mean([one.accuracy[s] for one in runs]) for s in ("val", "test")}
        each = ", ".join(f"{one.accuracy['test']:.3f}" for one in runs)
        took = np.mean([one.seconds for one in runs])
        lines.append(
            f"| {dataset} | {network.upper()} | {len(runs)} | {means['val']:.4f} | "
            f"{means['test']:.4f} | {each} | {printed} | {took:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _both(own: float | None, printed: float) -> str:
    return f"{'–' if own is None else f'{own:.4f}'} ({printed:.4f})"
