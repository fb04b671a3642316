"""What a graph of a dataset is called, and which class it is of."""

from __future__ import annotations

from torch_geometric.data import Data


def title_of(graph: Data, otherwise: str) -> str:
    """What to call a graph: its SMILES, its words, or what it is called otherwise.

    >>> title_of(Data(smiles="CCO"), "own 3"), title_of(Data(), "own 3")
    ('CCO', 'own 3')
    """
    if isinstance(graph.get("smiles"), str):
        return str(graph.smiles)
    words = graph.get("words")
    return " ".join(map(str, words)) if words else otherwise


def label_of(graph: Data) -> int | None:
    """The class of a graph, where it has one.

    >>> import torch
    >>> label_of(Data(y=torch.tensor([1]))), label_of(Data())
    (1, None)
    """
    y = graph.get("y")
    return int(y) if y is not None and y.numel() == 1 else None
