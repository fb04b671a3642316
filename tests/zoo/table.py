"""What happens to every model of the zoo, as the documentation links it: ``models.csv``."""

from __future__ import annotations

import csv
from pathlib import Path

TABLE = Path(__file__).with_name("models.csv")


def listed_models() -> dict[tuple[str, str], dict[str, str]]:
    """The rows of the table, by the kind and the name of the model."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["kind"], row["model"]): row for row in csv.DictReader(file)}
