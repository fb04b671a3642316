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


def best_forward_seconds(work: list[tuple[GNNGame, Masks]], repeats: int = 3) -> tuple[float, int]:
    """Least CPU seconds of one forward pass over every batch of every game, and the batch size.

    All games take turns, as they do when they are explained: a batch that is run again and again
    would find its memory still warm.
    """
    found = []
    for size in BATCH_NODES:
        batches = []
        for game, masks in work:
            before = game._evaluator.batch_nodes
            game._evaluator.batch_nodes = size
            batches.append((game, prebuilt(game, masks)))
            game._evaluator.batch_nodes = before
        for _ in range(repeats):
            start = time.process_time()
            for game, prepared in batches:
                with untouched(game.model):
                    for fields in prepared:
                        call_model(game.model, game._evaluator.signature, fields)
            found.append((time.process_time() - start, size))
    return min(found)
