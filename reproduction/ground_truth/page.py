"""The page of the ground-truth benchmark, ``docs/ground-truth.md``, written from the rows."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

import numpy as np

from gstarx._internal.files import write_atomically
from gstarx.metrics import rank_correlation
from reproduction.defaults import summary
from reproduction.grids import REPOSITORY, Cell, Grid
from reproduction.ground_truth import FOLDER, NETWORKS, TASKS
from reproduction.ground_truth.evidence import (
    DEFAULT,
    RESPECTING,
    best_of_respecting,
    paired_table,
    published_table,
    verdict,
)
from reproduction.ground_truth.explaining import FEW, applies
from reproduction.ground_truth.measuring import read_notes
from reproduction.ground_truth.methods import METHODS, PUBLISHED
from reproduction.ground_truth.outcomes import Outcome, read_outcomes
from reproduction.ground_truth.training import read_training

#: Names of the networks in the tables: those of ours, and those of the published table.
TITLES = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "edge": "bond network"}
BLOCKS = ("gcn", "gat", "mpnn", "graphnet")
#: Methods that the page compares with the default; the CSV file has more.
_PAIRED = ("minus HN", "minus Shapley", "minus Banzhaf", "minus leave one out")


def read_published(data: Path | None = None) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Published quartiles (low, median, high) by task, block and technique, from the data.

    Empty where ``attribution/published.csv`` is not in the data directory.
    """
    folder = data or Path(os.environ.get("GSTARX_DATA") or Path.home() / ".cache" / "gstarx")
    path = folder / "attribution" / "published.csv"
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] in ("ATT AUROC", "ATT tau")]
    return {
        (row["task"], row["block"], row["technique"]): tuple(
            float(row[name]) for name in ("q25", "median", "q75")
        )
        for row in rows
        if row["task"] in TASKS
    }


def task_table(
    task: str,
    outcomes: Mapping[str, Mapping[str, Outcome]],
    published: Mapping[tuple[str, str, str], tuple[float, ...]],
) -> Grid:
    """Our means with intervals, and published medians with quartiles, side by side."""
    networks = [name for name in NETWORKS if f"{task}-{name}" in outcomes]
    blocks = [block for block in BLOCKS if any(key[:2] == (task, block) for key in published)]
    best = {name: _best(outcomes[f"{task}-{name}"]) for name in networks}
    rows: list[tuple[Cell, ...]] = []
    for name, method in METHODS.items():
        cells: list[Cell] = []
        for network in networks:
            outcome = outcomes[f"{task}-{network}"].get(name)
            if outcome is None:
                reason = "" if applies(method, f"{task}-{network}") else "does not apply"
                cells.append(reason or None)
                continue
            low, high = outcome.interval
            mean = f"{outcome.mean:.3f}"
            leads = not method.slow and outcome.mean >= best[network] - 5e-4
            mean = f"**{mean}**" if leads else mean
            few = f", {len(outcome.graphs)} graphs" if method.slow else ""
            cells.append(f"{mean} [{low:.3f}, {high:.3f}]{few}")
        technique = PUBLISHED.get(name)
        cells += [_quartiles(published.get((task, b, technique or ""))) for b in blocks]
        if any(cell is not None for cell in cells):
            rows.append((_label(name), *cells))
    random = [_quartiles(published.get((task, block, "Random"))) for block in blocks]
    rows.append(("Random of the paper (atoms and bonds)", *[None] * len(networks), *random))
    own = (f"{TITLES[name]}, {_size(outcomes[f'{task}-{name}'])} graphs" for name in networks)
    header = ("method", *own, *(f"published {block}" for block in blocks))
    return Grid(f"truth_{task}", header, tuple(rows))


def _label(method: str) -> str:
    return f"{method} (default)" if method == DEFAULT else method


def _size(outcomes: Mapping[str, Outcome]) -> int:
    """How many graphs the methods that are not slow explain."""
    return max(len(outcome.graphs) for outcome in outcomes.values())


def _best(outcomes: Mapping[str, Outcome]) -> float:
    return max(outcome.mean for name, outcome in outcomes.items() if not METHODS[name].slow)


def _quartiles(values: tuple[float, ...] | None) -> str | None:
    return None if values is None else f"{values[1]:.3f} ({values[0]:.3f}–{values[2]:.3f})"


def bond_table(tables: Mapping[str, Grid]) -> Grid:
    """The columns of the bond network, one for every task."""
    columns = {}
    for task, grid in tables.items():
        for at, title in enumerate(grid.header):
            if title.startswith(TITLES["edge"]):
                columns[f"{task}, {title.partition(', ')[2]}"] = {r[0]: r[at] for r in grid.rows}
    names = [_label(name) for name in METHODS if name != "attention"]
    rows = [(name, *(column.get(name) for column in columns.values())) for name in names]
    return Grid("truth_bond", ("method", *columns), tuple(rows))


def networks_table(outcomes: Mapping[str, Mapping[str, Outcome]], folder: Path) -> Grid:
    """What the networks have learned: test scores, positives found, and pairs they get right."""
    training, notes = read_training(folder), read_notes(folder)
    rows: list[tuple[Cell, ...]] = []
    for task in TASKS:
        for network in NETWORKS:
            scores = training.get(f"{task}-{network}", {}).get("scores", {}).get("test")
            if scores is None:
                continue
            note = notes.get(f"{task}-{network}", {})
            if "rmse" in scores:
                cells: list[Cell] = [f"RMSE {scores['rmse']:.3f}", f"R² {scores['r2']:.3f}"]
            else:
                cells = [f"{scores['accuracy']:.3f}", f"{scores['auroc']:.3f}"]
            explained = set(_explained(outcomes.get(f"{task}-{network}", {})))
            found = len(explained - set(note.get("missed", ())))
            right = f"{found} of {len(explained)}" if explained and "missed" in note else None
            pairs = f"{note['pairs_right']} of {note['pairs']}" if "pairs" in note else None
            rows.append((task, TITLES[network], *cells, right, pairs))
    header = ("task", "network", "accuracy", "AUROC", "explained positives found", "pairs right")
    return Grid("truth_networks", header, tuple(rows))


def costs_table(outcomes: Mapping[str, Mapping[str, Outcome]]) -> Grid:
    """Evaluations and CPU milliseconds of a graph, means over tasks."""
    networks = [n for n in NETWORKS if any(s.endswith(f"-{n}") for s in outcomes)]
    rows: list[tuple[Cell, ...]] = []
    for name in METHODS:
        cells: list[Cell] = []
        for network in networks:
            own = [o[name] for s, o in outcomes.items() if s.endswith(f"-{network}") and name in o]
            counted = [one.evaluations for one in own if one.evaluations is not None]
            cells.append(f"{np.mean(counted):,.0f}" if counted else None)
            cells.append(f"{1000 * np.mean([o.seconds for o in own]):.0f} ms" if own else None)
        if any(cell is not None for cell in cells):
            rows.append((name, *cells))
    header = [h for n in networks for h in (f"{TITLES[n]}: evaluations", f"{TITLES[n]}: CPU")]
    return Grid("truth_costs", ("method", *header), tuple(rows))


def agreement_table(outcomes: Mapping[str, Mapping[str, Outcome]]) -> Grid:
    """Rank correlations over methods between agreement with the truth and fidelities."""
    rows: list[tuple[Cell, ...]] = []
    for setup, own in outcomes.items():
        methods = [name for name in own if not METHODS[name].slow and len(own[name].robust)]
        if len(methods) < 5:
            continue
        truth = [own[name].mean for name in methods]
        plain = rank_correlation(truth, [own[name].best_fidelity for name in methods])
        robust = rank_correlation(truth, [float(own[name].robust.mean()) for name in methods])
        rows.append((setup, len(methods), f"{plain:+.2f}", f"{robust:+.2f}"))
    if rows:
        means = [np.mean([float(str(row[at])) for row in rows]) for at in (2, 3)]
        rows.append(("mean", None, *(f"{mean:+.2f}" for mean in means)))
    header = ("setup", "methods", "truth and H-fidelity", "truth and robust fidelity")
    return Grid("truth_agreement", header, tuple(rows))


def _explained(outcomes: Mapping[str, Outcome]) -> tuple[int, ...]:
    """The graphs that all methods explain that are not slow."""
    return max((outcome.graphs for outcome in outcomes.values()), key=len, default=())


def right_and_wrong_table(
    outcomes: Mapping[str, Mapping[str, Outcome]], folder: Path, names: Sequence[str]
) -> Grid:
    """Mean agreement on positives that the network finds, and on those that it misses."""
    notes = read_notes(folder)
    rows: list[tuple[Cell, ...]] = []
    for setup, own in outcomes.items():
        if "missed" not in notes.get(setup, {}):
            continue
        missed = np.isin(_explained(own), notes[setup]["missed"])
        for name in names:
            if name not in own:
                continue
            values = own[name].agreement
            cells = [f"{values[m].mean():.3f}" if m.any() else None for m in (~missed, missed)]
            rows.append((setup, name, int((~missed).sum()), cells[0], int(missed.sum()), cells[1]))
    header = ("setup", "method", "found", "AUROC there", "missed", "AUROC there ")
    return Grid("truth_found", header, tuple(rows))


def write_ground_truth(folder: Path = FOLDER, *, to: Path, data: Path | None = None) -> Path:
    """Write the page, its tables as CSV, and its plot.

    Parameters
    ----------
    folder
        The directory of the rows.
    to
        The file of the page; the plot goes to ``figures`` beside it.
    data
        The data directory, for the published figures.
    """
    outcomes, published = read_outcomes(folder), read_published(data)
    tables = {task: task_table(task, outcomes, published) for task in TASKS}
    networks, agreements = networks_table(outcomes, folder), agreement_table(outcomes)
    paired, best = paired_table(outcomes), published_table(outcomes, published)
    found = right_and_wrong_table(outcomes, folder, ("HN", DEFAULT, "Shapley", "CAM"))
    grids = (networks, costs_table(outcomes), agreements, paired, best, found, *tables.values())
    for grid in grids:
        grid.write(folder)
    shown = (networks, bond_table(tables), paired.columns(_PAIRED), best)
    words = {grid.name: grid.markdown().strip() for grid in shown}
    means = agreements.rows[-1][2:] if agreements.rows else ("?", "?")
    words |= dict(zip(("plain_agreement", "robust_agreement"), map(str, means), strict=True))
    words["measured"] = f"{REPOSITORY}/reproduction/results/tables"
    words["tables"] = f"{REPOSITORY}/reproduction/results/ground_truth/tables"
    for other in ("HN", "Shapley", "Banzhaf"):
        words[f"against_{other.lower()}"] = verdict(outcomes, other)
    words["count_respecting"] = str(len(RESPECTING))
    words["best_of_respecting"] = best_of_respecting(outcomes)
    words["left_out"] = ", ".join(
        f"{task} {note['left_out']:,} of {note['test']:,}"
        for task in TASKS
        if (note := read_notes(folder).get(f"{task}-gin")) is not None
    )
    words["few"] = ", ".join(f"{task} {count}" for task, count in FEW.items())
    totals = [outcome for own in outcomes.values() for outcome in own.values()]
    words["rows"] = f"{sum(len(outcome.graphs) for outcome in totals):,}"
    words["failed"] = str(sum(outcome.failed for outcome in totals))
    words["plot"] = _plot(outcomes, to.parent / "figures" / "fidelity-and-truth.svg")
    measured = Grid.read(folder.parent, "defaults")
    words["defaults"] = (
        "Not measured yet." if measured is None else summary(measured).markdown().strip()
    )
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    write_atomically(to, Template(template).substitute(words).encode())
    return to


def _plot(outcomes: Mapping[str, Mapping[str, Outcome]], path: Path) -> str:
    """Agreement with the truth against H-fidelity, a panel per task; Markdown that shows it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    colors = {"ours": "tab:blue", "compared": "tab:orange", "control": "tab:gray"}
    marks = {"gin": "o", "edge": "s", "gcn": "D", "gat": "^"}
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    axes = figure.subplots(1, len(TASKS), squeeze=False)[0]
    for axis, task in zip(axes, TASKS, strict=True):
        for network in NETWORKS:
            for name, outcome in outcomes.get(f"{task}-{network}", {}).items():
                if METHODS[name].slow:
                    continue
                color, mark = colors[METHODS[name].role], marks[network]
                place = (outcome.best_fidelity, outcome.mean)
                edge = "black" if name == DEFAULT else color
                axis.plot(*place, mark, color=color, mec=edge, markersize=4, alpha=0.8)
        axis.set_title(task)
        axis.set_xlabel("H-fidelity")
    axes[0].set_ylabel("AUROC against the truth (crippen: tau)")
    handles = [Line2D([], [], ls="", marker="o", color=color) for color in colors.values()]
    handles += [Line2D([], [], ls="", marker=marks[n], color="black") for n in NETWORKS]
    handles.append(Line2D([], [], ls="", marker="o", color=colors["ours"], mec="black"))
    labels = ["values of games", "compared", "controls", *(TITLES[n] for n in NETWORKS)]
    figure.legend(handles, [*labels, "default"], fontsize=7, loc="outside right center")
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "gstarx"}):
        figure.savefig(path, metadata={"Date": None})
    return f"![Agreement with the truth against H-fidelity](figures/{path.name})"
