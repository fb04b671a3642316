"""The ground-truth benchmark: explainers against the atoms that are known to decide the label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproduction import RESULTS

#: The tasks of Sanchez-Lengeling et al., and the networks that are explained on each.
TASKS = ("benzene", "logic7", "logic8", "crippen")
NETWORKS = ("gin", "edge", "gcn", "gat")

#: The rules of the classification tasks, as SMARTS.
RULES: dict[str, str | Sequence[str]] = {
    "benzene": "c1ccccc1",
    "logic7": ["[FX1]", "[CX3]=O"],
    "logic8": ["[R0;D2,D1][R0;D2][R0;D2,D1]", "[CX3]=O"],
}

#: Rows and trainings that are kept with the code.
FOLDER = RESULTS / "ground_truth"
#: Trained networks, kept with the code but not in the package.
WEIGHTS = Path(__file__).with_name("weights")
