"""What the paper prints, from ``paper.json``, and its names for the setups and methods here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

#: Setups of Table 1 and of Table 2, each with the paper's name for it.
TABLE_1 = {
    "mutag-gcn": "mutag",
    "bace-gcn": "bace",
    "bbbp-gcn": "bbbp",
    "ba_2motifs-gcn": "ba_2motifs",
    "sst2-gcn": "graph_sst2",
    "tweets-gcn": "twitter",
}
TABLE_2 = {"mutag-gin": "mutag-gin", "sst2-gat": "graph_sst2-gat"}
#: The paper's names of methods.
PRINTED_NAMES = {
    "GNNExplainer": "GNNExplainer",
    "PGExplainer": "PGExplainer",
    "SubgraphX": "SubgraphX",
    "GraphSVX": "GraphSVX",
    "OrphicX": "OrphicX",
    "as published": "GStarX",
}


@cache
def paper() -> dict[str, Any]:
    """Tables and figures of the paper by name.

    >>> paper()["table_1"]["mutag"][-1]
    0.6171
    """
    path = Path(__file__).with_name("paper.json")
    printed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return printed


def printed_mean(column: Sequence[float]) -> float:
    """The mean of printed numbers to four digits, halves rounded up, as one would by hand.

    >>> printed_mean([0.4925, 0.4960, 0.4893, 0.5087, 0.4924, 0.4944])
    0.4956
    """
    mean = sum((Decimal(str(cell)) for cell in column), Decimal()) / len(column)
    return float(mean.quantize(Decimal("0.0001"), ROUND_HALF_UP))
