"""The bare forward pass: what an explainer of this kind cannot be faster than."""

from __future__ import annotations

import time
from typing import Any

from gstarx.gnn import GNNGame
from gstarx.gnn.model_state import untouched
from gstarx.gnn.signature import call_model
from gstarx.graphs.bitmasks import Masks

BATCH_NODES = (512, 724, 1024, 1448, 2048, 2896, 4096)


def prebuilt(game: GNNGame, masks: Masks) -> list[dict[str, Any]]:
    """Model inputs for packed coalitions, batch by batch."""
    evaluator = game._evaluator
    return [evaluator.removal.fields(masks[batch])[0] for batch in evaluator.batches(masks)]


def best_forward_seconds(work: list[tuple[GNNGame, Masks]], repeats: int = 3) -> tuple[float, int]:
    """Least CPU seconds of one forward pass over every batch of every game, and the batch size."""
    return min((min(Forward(work, s).seconds() for _ in range(repeats)), s) for s in BATCH_NODES)


class Forward:
    """The forward passes of some games of one model in batches of one size, ready to run.

    The games take turns, as they do when they are explained: a batch that is run again and again
    would find its memory still warm.
    """

    def __init__(self, work: list[tuple[GNNGame, Masks]], batch_nodes: int) -> None:
        self.model = work[0][0].model
        self.batches = []
        for game, masks in work:
            before = game._evaluator.batch_nodes
            game._evaluator.batch_nodes = batch_nodes
            self.batches.append((game._evaluator.signature, prebuilt(game, masks)))
            game._evaluator.batch_nodes = before

    def seconds(self) -> float:
        """CPU seconds of all of them."""
        with untouched(self.model):
            start = time.process_time()
            for signature, prepared in self.batches:
                for fields in prepared:
                    call_model(self.model, signature, fields)
            return time.process_time() - start
