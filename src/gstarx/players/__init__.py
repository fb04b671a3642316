"""Players: nodes, groups of nodes, edges and features; functions that make groups; their names."""

from gstarx.players.atoms import as_molecule as as_molecule
from gstarx.players.atoms import atom_names as atom_names
from gstarx.players.atoms import is_molecule as is_molecule
from gstarx.players.kinds import Edges, Features, Groups, Nodes
from gstarx.players.kinds import PlayerKind as PlayerKind
from gstarx.players.kinds import PlayersLike as PlayersLike
from gstarx.players.kinds import as_players as as_players
from gstarx.players.makers import brics, communities, functional_groups, murcko, phrases, rings
from gstarx.players.parts import default_kind as default_kind
from gstarx.players.parts import groups_of as groups_of
from gstarx.players.sets import NoPlayersError as NoPlayersError
from gstarx.players.sets import PlayerSet as PlayerSet
from gstarx.players.sets import edge_players as edge_players
from gstarx.players.sets import named_edges as named_edges
from gstarx.players.sets import named_groups as named_groups
from gstarx.players.sets import parallel_mark as parallel_mark
from gstarx.players.sets import player_set as player_set
from gstarx.players.sets import reference_rows as reference_rows

__all__ = [
    "Edges",
    "Features",
    "Groups",
    "Nodes",
    "brics",
    "communities",
    "functional_groups",
    "murcko",
    "phrases",
    "rings",
]
