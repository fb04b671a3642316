"""``python -m gstarx.experiments <what>``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gstarx.experiments import training
from gstarx.experiments.tables import accuracy_table, statistics_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment by name."""
    parser = argparse.ArgumentParser(prog="python -m gstarx.experiments", description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    train = what.add_parser("train", help="train networks from scratch with several seeds")
    train.add_argument("only", nargs="*", help="dataset-network, such as mutag-gcn (default: all)")
    train.add_argument("--seeds", type=int, default=3)
    train.add_argument("--results", type=Path, default=Path("results"))
    ship = what.add_parser("pretrain", help="train the networks that ship with the package")
    ship.add_argument("only", nargs="*", help="dataset-network, such as nitro-gcn (default: all)")
    ship.add_argument("--to", type=Path, default=Path("src/gstarx/models/trained"))
    tables = what.add_parser("tables", help="datasets and accuracies beside the paper's (5 to 7)")
    tables.add_argument("--results", type=Path, default=Path("results"))
    chosen = parser.parse_args(arguments)
    try:
        if chosen.what == "train":
            training.train_all(chosen.only, seeds=range(chosen.seeds), results=chosen.results)
        elif chosen.what == "pretrain":
            training.pretrain(chosen.only, to=chosen.to)
        else:
            print(statistics_table())
            print(accuracy_table(chosen.results), end="")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
