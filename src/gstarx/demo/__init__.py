"""See it work: ``python -m gstarx.demo``."""

from __future__ import annotations

from gstarx.demo.explaining import show_explanations
from gstarx.demo.worked import show_gloves, show_long_path, show_path

__all__ = ["main"]


def main(*, epochs: int = 150) -> int:
    """Print the paper's worked examples, then explain a network that is trained on the spot.

    Parameters
    ----------
    epochs
        How long to train.

    Returns
    -------
    int
        0 when the examples agree with the paper and scores sum to the worth, else 1.
    """
    agree = show_path()
    show_gloves()
    show_long_path()
    complete = show_explanations(epochs=epochs)
    return 0 if agree and complete else 1
