"""Reproduce the tables, figures and claims of the paper: ``python -m reproduction <command>``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reproduction import RESULTS, checked, claims, figures, headroom, remedies, training
from reproduction.defaults import defaults
from reproduction.explaining import explain_all
from reproduction.grids import Grid
from reproduction.methods import STAGES
from reproduction.page import write_page
from reproduction.results import SetupResults
from reproduction.setups import SETUPS, Missing
from reproduction.tables import accuracy_table, entropies, statistics_table

_ROOT = Path(__file__).resolve().parents[1]
_PAGE = _ROOT / "docs" / "results.md"
_TRUTH_PAGE = _ROOT / "docs" / "ground-truth.md"
#: Steps of the ground-truth benchmark, in their order.
TRUTH_STEPS = ("train", "explain", "measure", "page")
_FIGURES = _ROOT / "docs" / "figures"
_SHIPPED = _ROOT / "src" / "gstarx" / "models" / "trained"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.command == "train":
            training.train_all(chosen.only, seeds=range(chosen.seeds), results=chosen.results)
        elif chosen.command == "pretrain":
            training.pretrain(chosen.only, to=chosen.to)
        elif chosen.command == "explain":
            explain_all(
                chosen.setups,
                chosen.stages,
                results=chosen.results,
                workers=chosen.workers,
                engine=chosen.engine,
            )
        elif chosen.command == "measure":
            measure(chosen.only, results=chosen.results, pictures=chosen.pictures)
        elif chosen.command == "ground-truth":
            ground_truth(
                chosen.setups,
                chosen.stages,
                steps=chosen.steps,
                whole=chosen.whole,
                workers=chosen.workers,
                to=chosen.to,
            )
        elif chosen.command == "remedies":
            graphs = tuple(chosen.graphs)
            remedies.measure_all(chosen.only, results=chosen.results, graphs=graphs)
        elif chosen.command == "page":
            print(f"written: {write_page(chosen.results, chosen.to)}")
        else:
            print(statistics_table())
            print(accuracy_table(chosen.results), end="")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def measure(only: Sequence[str] = (), *, results: Path, pictures: Path) -> None:
    """Compute what needs the data: figures, claims and statistics, stored beside the rows.

    Whatever lacks its data is skipped with a message.

    Parameters
    ----------
    only
        Names of figures and claims; all by default.
    results, pictures
        Directories for the tables and for the drawings.
    """

    def entropy() -> Grid:
        return entropies({name: SetupResults(setup, results) for name, setup in SETUPS.items()})

    grids = (*claims.CLAIMS, headroom.differences, headroom.pairs, entropy, defaults)
    makers = {make.__name__: make for make in (*figures.FIGURES, *grids)}
    for chosen in checked("figure or claim", only, makers):
        print(f"{chosen} ...", file=sys.stderr, flush=True)
        try:
            made = makers[chosen]()
        except (Missing, ImportError, OSError) as error:
            print(f"{chosen}: {error}", file=sys.stderr)
            continue
        figure = made if isinstance(made, figures.Figure) else figures.Figure(made)
        figure.grid.write(results)
        pictures.mkdir(parents=True, exist_ok=True)
        for name, picture in figure.pictures:
            picture.save(pictures / f"{name}.svg")


def ground_truth(
    setups: Sequence[str] = (),
    stages: Sequence[str] = (),
    *,
    steps: Sequence[str] = (),
    whole: bool = False,
    workers: int | None = None,
    to: Path = _TRUTH_PAGE,
) -> None:
    """Train the networks of the ground-truth benchmark, explain, measure, and write its page.

    Every step skips what is done.

    Parameters
    ----------
    setups, stages
        Such as ``benzene-gin``, and stages of explaining; all by default.
    steps
        Of ``train``, ``explain``, ``measure`` and ``page``; all by default.
    whole
        Explain whole test splits instead of samples.
    workers
        As for :func:`gstarx_bench.runs.run`.
    to
        The file of the page.
    """
    from reproduction.ground_truth.explaining import explain_tasks
    from reproduction.ground_truth.measuring import measure_networks
    from reproduction.ground_truth.page import write_ground_truth
    from reproduction.ground_truth.training import train_networks

    for step in checked("step", steps, TRUTH_STEPS):
        if step == "train":
            train_networks(setups)
        elif step == "explain":
            explain_tasks(setups, stages, workers=workers, whole=whole)
        elif step == "measure":
            measure_networks(setups)
        else:
            print(f"written: {write_ground_truth(to=to)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction", description=(__doc__ or "").partition(":")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train networks from scratch with several seeds")
    train.add_argument("only", nargs="*", help="dataset-network, such as mutag-gcn (default: all)")
    train.add_argument("--seeds", type=int, default=3)
    ship = commands.add_parser("pretrain", help="train the networks that ship with the package")
    ship.add_argument("only", nargs="*", help="dataset-network, such as nitro-gcn (default: all)")
    ship.add_argument("--to", type=Path, default=_SHIPPED)
    tables = commands.add_parser("tables", help="print datasets and accuracies (Tables 5 to 7)")
    explain = commands.add_parser("explain", help="run the explanations that are still missing")
    explain.add_argument("setups", nargs="*", help="dataset-network, such as mutag-gcn")
    explain.add_argument("--stages", nargs="*", default=[], help=f"of {', '.join(STAGES)}")
    explain.add_argument("--workers", type=int)
    explain.add_argument("--engine", default="local")
    measured = commands.add_parser("measure", help="compute the figures and test the claims")
    measured.add_argument("only", nargs="*", help="such as sentence, molecule or fits")
    measured.add_argument("--pictures", type=Path, default=_FIGURES)
    judged = commands.add_parser("remedies", help="judge variants of HN and Myerson values")
    judged.add_argument("only", nargs="*", help="dataset-network, nitro or motifs")
    judged.add_argument(
        "--graphs",
        nargs=2,
        type=int,
        default=remedies.GRAPHS,
        metavar=("VALIDATION", "TEST"),
        help="at most so many graphs of each split (default: %(default)s)",
    )
    page = commands.add_parser("page", help="write docs/results.md from the stored results")
    page.add_argument("--to", type=Path, default=_PAGE)
    truth = commands.add_parser("ground-truth", help="compare explanations with known truths")
    truth.add_argument("setups", nargs="*", help="task-network, such as benzene-gin (default: all)")
    truth.add_argument("--steps", nargs="*", default=[], help=f"of {', '.join(TRUTH_STEPS)}")
    truth.add_argument("--stages", nargs="*", default=[], help="of explaining, such as values")
    truth.add_argument("--whole", action="store_true", help="whole test splits, not samples")
    truth.add_argument("--workers", type=int)
    truth.add_argument("--to", type=Path, default=_TRUTH_PAGE)
    for command in (train, tables, explain, measured, judged, page):
        command.add_argument("--results", type=Path, default=RESULTS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
