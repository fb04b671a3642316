"""A graph neural network as a cooperative game on nodes, evaluated in batches."""

from gstarx.gnn.baseline import expected_output
from gstarx.gnn.game import GNNGame
from gstarx.gnn.model_state import restored
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.payoff import Contrast

__all__ = ["Contrast", "GNNGame", "ModelTask", "expected_output", "restored"]
