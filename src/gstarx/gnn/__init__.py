"""The network as a game: coalitions of nodes, evaluated in batches."""

from gstarx.gnn.baseline import expected_output
from gstarx.gnn.game import GNNGame
from gstarx.gnn.payoff import Contrast

__all__ = ["Contrast", "GNNGame", "expected_output"]
