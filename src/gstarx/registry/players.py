"""Who can get scores: nodes, edges, features and the kinds of groups of nodes, by name.

This list is the only one: what ``players=`` takes, the choices of commands and of the explorer, and
the messages that list them follow from it. A kind of groups is a maker, a function of the graph in
:mod:`gstarx.players.makers`, and an entry here.
"""

from __future__ import annotations

from gstarx.registry.specs import PlayersSpec, Registered

#: All players by name, in the order in which they are offered.
PLAYERS = Registered(
    "PLAYERS",
    (
        PlayersSpec("nodes", "nodes", {"molecule": "atoms", "sentence": "words", "graph": "nodes"}),
        PlayersSpec(
            "edges", "edges", {"molecule": "bonds", "sentence": "dependencies", "graph": "edges"}
        ),
        PlayersSpec(
            "brics",
            "groups",
            {"molecule": "BRICS fragments"},
            "gstarx.players.makers:brics",
        ),
        PlayersSpec(
            "functional_groups",
            "groups",
            {"molecule": "functional groups"},
            "gstarx.players.makers:functional_groups",
        ),
        PlayersSpec("rings", "groups", {"molecule": "ring systems"}, "gstarx.players.makers:rings"),
        PlayersSpec(
            "murcko", "groups", {"molecule": "Murcko parts"}, "gstarx.players.makers:murcko"
        ),
        PlayersSpec("phrases", "groups", {"sentence": "phrases"}, "gstarx.players.makers:phrases"),
        PlayersSpec(
            "communities",
            "groups",
            {"graph": "communities"},
            "gstarx.players.makers:communities",
        ),
        PlayersSpec(
            "features",
            "features",
            dict.fromkeys(("molecule", "sentence", "graph"), "features"),
        ),
        PlayersSpec("edge_features", "features"),
    ),
)
#: Parts with names that several graphs share, over which scores are summed, and the kind of graphs
#: that they suit. The first that suits a graph is its default.
PARTS = {
    "functional_groups": "molecule",
    "rings": "molecule",
    "brics": "molecule",
    "words": "sentence",
    "node_types": "graph",
}


def group_makers() -> dict[str, str]:
    """The kinds of groups by name, and where their makers are: ``module:function``."""
    return {name: spec.home for name, spec in PLAYERS.items() if spec.home}


def kind_of_players(name: str) -> str:
    """What players of a name are: nodes, edges, features, or groups of nodes.

    >>> kind_of_players("edges"), kind_of_players("brics"), kind_of_players("edge-features")
    ('edges', 'groups', 'features')
    """
    plain = name.replace("-", "_")
    return PLAYERS[plain].kind if plain in PLAYERS else "groups"
