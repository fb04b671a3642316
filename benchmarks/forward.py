"""The bare forward pass: what an explainer of this kind cannot be faster than."""

from __future__ import annotations

import time
from typing import Any

from gstarx.coalitions import GNNGame
from gstarx.coalitions.guard import untouched
from gstarx.coalitions.signature import call_model
from gstarx.graphs.bitmasks import Masks

BATCH_NODES = (512, 724, 1024, 1448, 2048, 2896, 4096)


def prebuilt(game: GNNGame, masks: Masks) -> list[dict[str, Any]]:
    """Model inputs for packed coalitions, batch by batch."""
    evaluator = game._evaluator
    return [evaluator.removal.fields(masks[batch])[0] for batch in evaluator.batches(masks)]


def forward_seconds(game: GNNGame, batches: list[dict[str, Any]], repeats: int = 3) -> float:
    """Least CPU seconds of the forward passes alone."""
    signature = game._evaluator.signature
    best = float("inf")
    with untouched(game.model):
        for _ in range(repeats):
            start = time.process_time()
            for fields in batches:
                call_model(game.model, signature, fields)
            best = min(best, time.process_time() - start)
    return best


def best_forward_seconds(game: GNNGame, masks: Masks) -> tuple[float, int]:
    """Least CPU seconds over several batch sizes, and the size that gave it."""
    found = []
    before = game._evaluator.batch_nodes
    for size in BATCH_NODES:
        game._evaluator.batch_nodes = size
        found.append((forward_seconds(game, prebuilt(game, masks)), size))
    game._evaluator.batch_nodes = before
    return min(found)
