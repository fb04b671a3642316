"""The network as a game: coalitions of nodes, evaluated in batches."""

from gstarx.coalitions.expectation import expected_output
from gstarx.coalitions.game import GNNGame
from gstarx.coalitions.payoff import Contrast

__all__ = ["Contrast", "GNNGame", "expected_output"]
