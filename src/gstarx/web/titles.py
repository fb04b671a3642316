"""What graphs of a dataset are called."""

from __future__ import annotations

from typing import Any


def title_of(graph: Any, dataset: str, position: int) -> str:
    """What to call a graph: its SMILES, its words, or its number.

    >>> from torch_geometric.data import Data
    >>> title_of(Data(smiles="CCO"), "own", 3), title_of(Data(), "own", 3)
    ('CCO', 'own 3')
    """
    if isinstance(graph.get("smiles"), str):
        return str(graph.smiles)
    words = graph.get("words")
    return " ".join(map(str, words)) if words else f"{dataset} {position}"
