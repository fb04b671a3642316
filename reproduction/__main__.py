"""``python -m reproduction <what>``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reproduction import RESULTS, training
from reproduction.tables import accuracy_table, statistics_table

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment by name."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    train = what.add_parser("train", help="train networks from scratch with several seeds")
    train.add_argument("only", nargs="*", help="dataset-network, such as mutag-gcn (default: all)")
    train.add_argument("--seeds", type=int, default=3)
    train.add_argument("--results", type=Path, default=RESULTS)
    ship = what.add_parser("pretrain", help="train the networks that ship with the package")
    ship.add_argument("only", nargs="*", help="dataset-network, such as nitro-gcn (default: all)")
    ship.add_argument("--to", type=Path, default=ROOT / "src" / "gstarx" / "models" / "trained")
    tables = what.add_parser("tables", help="datasets and accuracies beside the paper's (5 to 7)")
    tables.add_argument("--results", type=Path, default=RESULTS)
    explain = what.add_parser("explain", help="explain the graphs of the tables, as far as needed")
    explain.add_argument("setups", nargs="*", help="dataset-network, such as mutag-gcn")
    explain.add_argument("--stages", nargs="*", default=[], help="headline rivals ablation ...")
    explain.add_argument("--results", type=Path, default=RESULTS)
    explain.add_argument("--workers", type=int)
    explain.add_argument("--engine", default="local")
    measured = what.add_parser("measure", help="figures and claims of the paper, measured again")
    measured.add_argument("only", nargs="*", help="such as sentence, molecule or fits")
    measured.add_argument("--results", type=Path, default=RESULTS)
    measured.add_argument("--pictures", type=Path, default=DOCS / "figures")
    page = what.add_parser("page", help="write docs/results.md from what was found")
    page.add_argument("--results", type=Path, default=RESULTS)
    page.add_argument("--to", type=Path, default=DOCS / "results.md")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.what == "train":
            training.train_all(chosen.only, seeds=range(chosen.seeds), results=chosen.results)
        elif chosen.what == "pretrain":
            training.pretrain(chosen.only, to=chosen.to)
        elif chosen.what == "explain":
            from reproduction.explaining import explain_all

            explain_all(
                chosen.setups,
                chosen.stages,
                results=chosen.results,
                workers=chosen.workers,
                engine=chosen.engine,
            )
        elif chosen.what == "measure":
            from reproduction.measuring import measure

            measure(tuple(chosen.only), results=chosen.results, pictures=chosen.pictures)
        elif chosen.what == "page":
            from reproduction.page import write_page

            print(f"written: {write_page(chosen.results, chosen.to)}")
        else:
            print(statistics_table())
            print(accuracy_table(chosen.results), end="")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
