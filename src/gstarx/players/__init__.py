"""Players beyond nodes: groups of nodes, edges and features, and makers of groups."""

from gstarx.players.kinds import Edges, Features, Groups, Nodes
from gstarx.players.kinds import PlayerKind as PlayerKind
from gstarx.players.kinds import PlayersLike as PlayersLike
from gstarx.players.kinds import as_players as as_players

__all__ = ["Edges", "Features", "Groups", "Nodes"]
