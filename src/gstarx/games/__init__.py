"""Cooperative games as functions of coalitions: table games, textbook games and transforms."""

from gstarx.games.gallery import (
    additive_game,
    airport_game,
    glove_game,
    random_game,
    unanimity_game,
    voting_game,
)
from gstarx.games.protocol import Game, Worths, evaluate
from gstarx.games.protocol import coalition_phrase as coalition_phrase
from gstarx.games.protocol import evaluate_masks as evaluate_masks
from gstarx.games.protocol import forget_coalitions as forget_coalitions
from gstarx.games.table import TableGame
from gstarx.games.transforms import dual, restricted_game, self_dual, superadditive_cover

__all__ = [
    "Game",
    "TableGame",
    "Worths",
    "additive_game",
    "airport_game",
    "dual",
    "evaluate",
    "glove_game",
    "random_game",
    "restricted_game",
    "self_dual",
    "superadditive_cover",
    "unanimity_game",
    "voting_game",
]
