"""Makers of groups of nodes; :data:`gstarx.registry.PLAYERS` has their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx._internal.imports import require
from gstarx.players.atoms import as_molecule
from gstarx.players.kinds import Groups
from gstarx.players.parts import groups_of

#: Longer phrases are divided.
_MOST_WORDS = 6
#: How :func:`communities` divides a graph.
METHODS = ("louvain", "bridges")


def brics(molecule: Any) -> Groups:
    """Fragments of a molecule between the bonds that BRICS breaks, named by their SMILES.

    Parameters
    ----------
    molecule
        A molecule of RDKit, a SMILES, or a graph with ``smiles``, an atom for each node.

    Examples
    --------
    >>> brics("CCOC(=O)c1ccccc1").sets
    ((0, 1), (2,), (3, 4), (5, 6, 7, 8, 9, 10))
    """
    return _named(groups_of(_readable(molecule), "brics"))


def rings(molecule: Any) -> Groups:
    """Ring systems of a molecule: rings that share atoms are one; other atoms are in no group.

    >>> rings("c1ccc2ccccc2c1CC1CC1").sets
    ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (11, 12, 13))
    """
    return _named(groups_of(_readable(molecule), "rings"))


def murcko(molecule: Any) -> Groups:
    """Murcko parts of a molecule: ring systems, the linkers between them, and side chains.

    Ring systems and linkers are the scaffold of Bemis and Murcko (1996), as RDKit finds it; what is
    attached to one ring system by a double bond belongs to that system. Every atom is in one part.

    Parameters
    ----------
    molecule
        A molecule of RDKit, a SMILES, or a graph with ``smiles``, an atom for each node.

    Examples
    --------
    >>> parts = murcko("CCc1ccccc1CC1CCC1=O")
    >>> dict(zip(parts.names, parts.sets))
    {'CC': (0, 1), 'c1ccccc1': (2, 3, 4, 5, 6, 7), 'C': (8,), 'O=C1CCC1': (9, 10, 11, 12, 13)}
    """
    data = _readable(molecule)
    known = as_molecule(data)
    if isinstance(data, Data) and data.get("smiles") is None:
        raise ValueError(
            "Murcko parts need the bonds of a molecule, from a SMILES (got a graph with atoms "
            "only): use rings"
        )
    chem = require("rdkit.Chem", extra="drawing")
    parts = _murcko_parts(known, [set(nodes) for _, nodes in groups_of(data, "rings")])
    names = [chem.MolFragmentToSmiles(known, sorted(part)) for part in parts]
    groups = [(name, tuple(sorted(part))) for name, part in zip(names, parts, strict=True)]
    return _named(sorted(groups, key=lambda group: group[1]))


def functional_groups(molecule: Any, *, smarts: Mapping[str, str] | None = None) -> Groups:
    """Functional groups of a molecule, by default those that RDKit lists; other atoms are in none.

    If groups overlap, the larger one is used, and of equally large ones the first. ``smarts`` maps
    names to your own SMARTS patterns.

    >>> groups = functional_groups("CC(=O)Oc1ccccc1C(=O)O")
    >>> dict(zip(groups.names, groups.sets))
    {'ester': (0, 1, 2, 3, 4), 'carboxylic acid': (10, 11, 12)}
    """
    by = "functional_groups" if smarts is None else smarts
    groups = sorted(groups_of(_readable(molecule), by), key=lambda g: -len(g[1]))
    taken: set[int] = set()
    kept = []
    for name, atoms in groups:
        if taken.isdisjoint(atoms):
            taken.update(atoms)
            kept.append((name, atoms))
    return _named(sorted(kept, key=lambda group: group[1]))


def phrases(sentence: Data, *, max_words: int = _MOST_WORDS) -> Groups:
    """Phrases of a sentence: the branches of its dependency tree, named by their words.

    The word with the most dependencies, the first of them if there are several, is the root and a
    group of its own, unless the graph names another one as ``root``. Every branch below it is a
    phrase; a branch of more than ``max_words`` words is divided the same way.

    Parameters
    ----------
    sentence
        A graph whose nodes are words, with ``words`` if phrases are to be named by them.
    max_words
        The longest phrase.

    Examples
    --------
    >>> import torch
    >>> arcs = torch.tensor([[0, 1, 3, 4], [1, 2, 2, 3]])  # the movie was not good
    >>> words = "the movie was not good".split()
    >>> sentence = Data(edge_index=arcs, words=words, num_nodes=5, root=2)
    >>> phrases(sentence).names
    ('the movie', 'was', 'not good')
    """
    tree = _networkx(sentence)
    sets: list[tuple[int, ...]] = []
    networkx = require("networkx", extra="drawing")
    roots = sentence.get("root")
    for part in networkx.connected_components(tree):
        root = max(sorted(part), key=tree.degree)
        if roots is not None and int(roots) in part:
            root = int(roots)
        sets += _branches(tree.subgraph(part), root, max_words)
    words = sentence.get("words")
    names = [" ".join(str(words[i]) for i in nodes) if words else str(nodes[0]) for nodes in sets]
    return _named(sorted(zip(names, sets, strict=True), key=lambda group: group[1]))


def communities(graph: Any, *, method: str = "louvain", seed: int = 0) -> Groups:
    """Communities of a graph: by Louvain, or what is left in one piece without bridges.

    Parameters
    ----------
    graph
        A PyG graph, or a graph of networkx with nodes ``0 .. n - 1``.
    method
        ``"louvain"``, communities of high modularity, or ``"bridges"``, connected components after
        all edges are removed whose removal disconnects the graph.
    seed
        The same seed gives the same communities.

    Examples
    --------
    >>> import networkx as nx
    >>> communities(nx.barbell_graph(4, 0)).sets
    ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    one_of(method, METHODS, name="method")
    networkx = require("networkx", extra="drawing")
    own = _networkx(graph)
    if method == "louvain":
        parts = networkx.community.louvain_communities(own, seed=seed)
    else:
        own = own.copy()
        own.remove_edges_from(list(networkx.bridges(own)))
        parts = networkx.connected_components(own)
    sets = tuple(sorted(tuple(sorted(nodes)) for nodes in parts))
    return Groups(sets, tuple(f"community {at}" for at in range(len(sets))))


def _murcko_parts(molecule: Any, systems: list[set[int]]) -> list[set[int]]:
    """Ring systems with what hangs on them alone by a double bond, linkers, and side chains."""
    scaffolds = require("rdkit.Chem.Scaffolds.MurckoScaffold", extra="drawing")
    marked = require("rdkit.Chem", extra="drawing").Mol(molecule)
    for atom in marked.GetAtoms():
        atom.SetIntProp("node", atom.GetIdx())
    core = {atom.GetIntProp("node") for atom in scaffolds.GetScaffoldForMol(marked).GetAtoms()}
    networkx = require("networkx", extra="drawing")
    bonds = networkx.Graph()
    bonds.add_nodes_from(range(molecule.GetNumAtoms()))
    bonds.add_edges_from((b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds())
    inside = core - set().union(*systems)
    linkers = []
    for piece in networkx.connected_components(bonds.subgraph(inside)):
        near = {other for atom in piece for other in bonds[atom]}
        touched = [system for system in systems if system & near]
        if len(touched) == 1:
            touched[0].update(piece)
        else:
            linkers.append(set(piece))
    outside = set(bonds) - core.union(*systems)
    chains = [set(piece) for piece in networkx.connected_components(bonds.subgraph(outside))]
    return [*systems, *linkers, *chains]


def _readable(molecule: Any) -> Any:
    """A SMILES or graph as it is; of an RDKit molecule itself."""
    return molecule if isinstance(molecule, str | Data) else as_molecule(molecule)


def _named(groups: Iterable[tuple[str, tuple[int, ...]]]) -> Groups:
    """Groups with distinct names: those that occur more than once get numbers."""
    listed = list(groups)
    several = {name for name, count in Counter(name for name, _ in listed).items() if count > 1}
    seen: Counter[str] = Counter()
    names = []
    for name, _ in listed:
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if name in several else name)
    return Groups(tuple(nodes for _, nodes in listed), tuple(names))


def _networkx(graph: Any) -> Any:
    networkx = require("networkx", extra="drawing")
    if isinstance(graph, networkx.Graph):
        return graph
    if not isinstance(graph, Data):
        raise TypeError(
            f"graph must be a PyG Data or a networkx graph (got {type(graph).__name__})"
        )
    made = networkx.Graph()
    made.add_nodes_from(range(int(graph.num_nodes or 0)))
    made.add_edges_from((a, b) for a, b in graph.edge_index.t().tolist() if a != b)
    return made


def _branches(tree: Any, root: int, max_words: int) -> list[tuple[int, ...]]:
    """The root, and its branches, divided while they are long."""
    networkx = require("networkx", extra="drawing")
    sets: list[tuple[int, ...]] = [(root,)]
    below = tree.subgraph([node for node in tree if node != root])
    for part in networkx.connected_components(below):
        if len(part) <= max_words:
            sets.append(tuple(sorted(part)))
        else:
            head = min(node for node in tree.neighbors(root) if node in part)
            sets += _branches(below.subgraph(part), head, max_words)
    return sets
