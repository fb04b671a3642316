"""A graph neural network as a cooperative game on nodes, evaluated in batches."""

from gstarx.gnn.baseline import expected_output
from gstarx.gnn.game import GNNGame
from gstarx.gnn.payoff import Contrast

__all__ = ["Contrast", "GNNGame", "expected_output"]
