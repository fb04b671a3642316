"""Players other than nodes: groups of nodes, edges and features, and functions that make groups."""

from gstarx.players.atoms import as_molecule as as_molecule
from gstarx.players.atoms import atom_names as atom_names
from gstarx.players.atoms import is_molecule as is_molecule
from gstarx.players.kinds import Edges, Features, Groups, Nodes
from gstarx.players.kinds import PlayerKind as PlayerKind
from gstarx.players.kinds import PlayersLike as PlayersLike
from gstarx.players.makers import as_players as as_players
from gstarx.players.makers import brics, communities, functional_groups, murcko, phrases, rings
from gstarx.players.parts import default_kind as default_kind
from gstarx.players.parts import groups_of as groups_of

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
