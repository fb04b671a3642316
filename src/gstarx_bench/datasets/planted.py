"""Planted truths that need no download: molecules labeled by rules, and synthetic graphs.

Every positive graph has a counterfactual partner wherever one was found: the same graph, changed in
the planted part alone, so that its label changes. A network that is right on such pairs uses the
planted part; one that is not may be explained correctly and still seem wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx._internal.imports import require
from gstarx._internal.molecules import rdkit_messages, read_molecule
from gstarx.datasets import GraphDataset, UnreadableRow, load, random_split_indices
from gstarx.gnn import ModelTask, graph_outputs
from gstarx_bench.datasets.attribution import TruthData
from gstarx_bench.datasets.attribution_rules import (
    Fragment,
    describe,
    labeled_molecule,
    occurrences,
    read_rule,
)

#: Rules for the molecules that come with the package.
RULES: dict[str, Fragment | Sequence[Fragment]] = {
    "ring": "c1ccccc1",
    "group": "[CX3]=O",
    "and": ["c1ccccc1", "[OX2H]"],
    "or": [["[CX3]=O", "[OX2H]"]],
}
_MOST_ALTERNATIVES = 4095
_TREE = 15
#: Nodes and edges of a motif, and the edge without which it is another one.
_HOUSE = (5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])
_CLIQUE = (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])

Pair = tuple[TruthData, ...]


@dataclass(frozen=True)
class CounterfactualCheck:
    """The accuracy of a network on counterfactual pairs.

    Attributes
    ----------
    pairs
        Number of pairs.
    right
        In how many of them both graphs are classified correctly.
    wrong
        The numbers of the other pairs.
    """

    pairs: int
    right: int
    wrong: tuple[int, ...]

    @property
    def share(self) -> float:
        """Share of the pairs that are right."""
        return self.right / self.pairs


def planted(
    kind: str,
    *,
    smiles: Iterable[str] | None = None,
    rule: Fragment | Sequence[Fragment] | None = None,
    size: int = 500,
    seed: int = 0,
) -> GraphDataset:
    """Graphs with a planted truth, and counterfactual pairs to check a network with.

    Parameters
    ----------
    kind
        Molecules (needs RDKit): ``"ring"``, ``"group"``, ``"and"`` (a ring and a group) or ``"or"``
        (one of two groups). Synthetic: ``"motif"`` (a house in a tree or, in class 0, a
        five-cycle), ``"motif_pair"`` (a house and a clique of four), ``"edge"`` (an edge between
        the red and the blue node) or ``"feature"`` (two features at the same node).
    smiles
        Molecules to use; by default those of ``"nitro"``, which come with the package.
    rule
        The substructures instead, as for :func:`attribution_task`.
    size
        How many molecules are used at most, or how many synthetic pairs are made.
    seed
        The same seed gives the same graphs.

    Returns
    -------
    GraphDataset
        Graphs with ``truths`` (alternatives, nodes), ``truth`` (their union), ``edge_truth`` (the
        edges inside the planted part; none for ``"feature"``, which has ``feature_truth`` instead)
        and ``pair``: the number that a positive graph shares with its counterfactual, -1 without
        one. Pairs are never split.

    Examples
    --------
    >>> dataset = planted("edge", size=20)
    >>> dataset, int(dataset[0].truth.sum()), int(dataset[0].edge_truth.sum())
    (GraphDataset('planted-edge', 40 graphs, 2 classes), 2, 2)
    """
    one_of(kind, (*RULES, *_SYNTHETIC), name="kind")
    if size < 10:
        raise ValueError(f"size must be at least 10, to be split (got {size})")
    generator = np.random.default_rng(seed)
    unreadable: list[UnreadableRow] = []
    if kind in _SYNTHETIC:
        if smiles is not None or rule is not None:
            raise ValueError(f"kind {kind!r} is synthetic: it takes neither smiles nor rule")
        units: list[Pair] = [_SYNTHETIC[kind](generator) for _ in range(size)]
        about = _ABOUT[kind]
    else:
        wanted = RULES[kind] if rule is None else rule
        units = _molecules(smiles, wanted, size, generator, unreadable)
        about = f"does {describe(wanted)} occur?"
    return _dataset(f"planted-{kind}", units, about, tuple(unreadable))


def check_counterfactuals(
    model: Any,
    graphs: Iterable[Data],
    *,
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
) -> CounterfactualCheck:
    """Check that a network is right on both graphs of every counterfactual pair.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    graphs
        Graphs of :func:`planted`, for instance its test split; those without a partner among them
        do not count.
    mode, return_type, keywords
        As for :func:`gstarx.explain`.

    Raises
    ------
    ValueError
        If there are no pairs.
    """
    partners: dict[int, list[Data]] = {}
    for graph in graphs:
        pair = graph.get("pair")
        if pair is not None and int(pair) >= 0:
            partners.setdefault(int(pair), []).append(graph)
    pairs = {number: both for number, both in partners.items() if len(both) == 2}
    if not pairs:
        raise ValueError(
            "the graphs hold no counterfactual pairs: give those of datasets.planted, with both "
            f"graphs of a pair (got {sum(map(len, partners.values()))} graphs with a number)"
        )
    members = [graph for both in pairs.values() for graph in both]
    outputs = torch.cat(list(graph_outputs(model, members, keywords=keywords)))
    predicted = ModelTask(mode, "graph", return_type).label(outputs).cpu()
    right = (predicted == torch.tensor([int(graph.y) for graph in members])).reshape(-1, 2)
    both_right = right.all(dim=1).tolist()
    wrong = tuple(number for number, fine in zip(pairs, both_right, strict=True) if not fine)
    return CounterfactualCheck(len(pairs), sum(both_right), wrong)


def _dataset(
    name: str, units: Sequence[Pair], about: str, unreadable: tuple[UnreadableRow, ...]
) -> GraphDataset:
    graphs: list[TruthData] = []
    places: list[list[int]] = []
    for number, unit in enumerate(units):
        places.append([len(graphs) + at for at in range(len(unit))])
        for graph in unit:
            graph.pair = torch.tensor([number if len(unit) > 1 else -1])
            graphs.append(graph)
    parts = random_split_indices(len(units))
    return GraphDataset(
        name,
        graphs,
        2,
        {side: [at for unit in own for at in places[unit]] for side, own in parts.items()},
        source="made by this package",
        license="MIT, as this package",
        description=f"Planted truth: {about}",
        unreadable=unreadable,
        class_names=("no", "yes"),
    )


def _molecules(
    smiles: Iterable[str] | None,
    rule: Fragment | Sequence[Fragment],
    size: int,
    generator: np.random.Generator,
    unreadable: list[UnreadableRow],
) -> list[Pair]:
    """Molecules labeled by a rule, each positive one with its counterfactual if there is one."""
    if smiles is None:
        smiles = [graph.smiles for graph in load("nitro")]
    patterns = read_rule(rule)
    units: list[Pair] = []
    for line, text in enumerate(smiles, start=1):
        if len(units) == size:
            break
        graph, reason = _labeled(text, patterns)
        if graph is None:
            unreadable.append(UnreadableRow(line, text, reason))
            continue
        other = _counterfactual(graph, patterns, generator) if int(graph.y) else None
        units.append((graph,) if other is None else (graph, other))
    labels = {int(graph.y) for unit in units for graph in unit}
    if len(units) < 10 or len(labels) < 2:
        raise ValueError(
            f"planted molecules need both classes and at least 10 SMILES that RDKit can read (got "
            f"{len(units)}, with the classes {sorted(labels)})"
        )
    return units


def _labeled(smiles: str, patterns: Any) -> tuple[TruthData | None, str]:
    """A molecule with its label and truths, and the bonds inside the planted part."""
    graph, reason = labeled_molecule(smiles, patterns, _MOST_ALTERNATIVES)
    if graph is None:
        return None, reason
    inside = np.zeros(graph.num_edges, dtype=bool)
    source, target = graph.edge_index.numpy()
    for fragment in occurrences(read_molecule(smiles)[0], patterns) if int(graph.y) else ():
        for match in fragment:
            inside |= np.isin(source, match) & np.isin(target, match)
    graph.edge_truth = torch.from_numpy(inside)
    return graph, ""


def _counterfactual(
    graph: TruthData, patterns: Any, generator: np.random.Generator
) -> TruthData | None:
    """The molecule with one atom of the planted part replaced, so that the rule fails."""
    chem = require("rdkit.Chem", extra="molecules")
    molecule, _ = read_molecule(graph.smiles)
    atoms = generator.permutation(graph.truth.nonzero().flatten().numpy())
    for atom in atoms.tolist():
        for number in (7, 6, 16, 8):
            if number == molecule.GetAtomWithIdx(atom).GetAtomicNum():
                continue
            edited = chem.RWMol(molecule)
            edited.GetAtomWithIdx(atom).SetAtomicNum(number)
            edited.GetAtomWithIdx(atom).SetNoImplicit(False)
            edited.GetAtomWithIdx(atom).SetNumExplicitHs(0)
            with rdkit_messages():
                valid = not chem.SanitizeMol(edited, catchErrors=True)
            if valid and not all(occurrences(edited, patterns)):
                # atoms of a SMILES that is written again come in another order
                partner, _ = _labeled(chem.MolToSmiles(edited), patterns)
                if partner is not None and not int(partner.y):
                    return partner
    return None


def _tree(generator: np.random.Generator, count: int) -> list[tuple[int, int]]:
    """A random tree in which popular nodes become more popular (Barabási and Albert)."""
    edges = [(0, 1)]
    for node in range(2, count):
        ends = [end for edge in edges for end in edge]
        edges.append((int(generator.choice(ends)), node))
    return edges


def _synthetic(
    x: NDArray[np.float64],
    edges: Sequence[tuple[int, int]],
    label: int,
    nodes: Sequence[int],
    true_edges: Iterable[tuple[int, int]] | None = None,
) -> TruthData:
    """A graph with its truth; without edges of its own, the truth of edges is left out."""
    both = sorted({*edges, *((b, a) for a, b in edges)})
    graph = TruthData(
        x=torch.tensor(x, dtype=torch.float),
        edge_index=torch.tensor(both).t().contiguous(),
        y=torch.tensor([label]),
    )
    truth = torch.zeros(len(x), dtype=torch.bool)
    truth[list(nodes)] = True
    graph.truths, graph.truth = truth[None], truth.clone()
    if true_edges is not None:
        true = {end for a, b in true_edges for end in ((a, b), (b, a))}
        graph.edge_truth = torch.tensor([edge in true for edge in both])
    return graph


def _motifs(generator: np.random.Generator, motifs: Sequence[Any]) -> Pair:
    """A tree with motifs, and the same with one of them broken."""
    edges = _tree(generator, _TREE)
    count, planted_edges, planted_nodes, breakable = _TREE, [], [], []
    for size, inside in motifs:
        own = [(count + a, count + b) for a, b in inside]
        edges.append((int(generator.integers(_TREE)), count + size - 1))
        planted_edges += own
        planted_nodes += list(range(count, count + size))
        breakable.append(own[0])
        count += size
    broken = breakable[int(generator.integers(len(breakable)))]
    x = np.ones((count, 1))
    all_edges = [*edges, *planted_edges]
    less = [edge for edge in all_edges if edge != broken]
    return (
        _synthetic(x, all_edges, 1, planted_nodes, planted_edges),
        _synthetic(x, less, 0, [], []),
    )


def _edge(generator: np.random.Generator) -> Pair:
    """A red and a blue node that are joined, and the same with one end of the edge moved."""
    edges = _tree(generator, _TREE)
    red, blue, far = generator.choice(_TREE, 3, replace=False).tolist()
    rest = [edge for edge in edges if set(edge) != {red, blue}]
    if len(rest) < len(edges):  # keep the tree in one part
        rest += [(red, far), (far, blue)]
    x = np.zeros((_TREE, 3))
    x[np.arange(_TREE), [0 if n == red else 1 if n == blue else 2 for n in range(_TREE)]] = 1
    free = [n for n in range(_TREE) if n not in (red, blue) and {n, red} not in map(set, rest)]
    moved = (red, int(generator.choice(free))) if free else (far, blue)
    return (
        _synthetic(x, [*rest, (red, blue)], 1, [red, blue], [(red, blue)]),
        _synthetic(x, [*rest, moved], 0, [], []),
    )


def _feature(generator: np.random.Generator) -> Pair:
    """A node that is both a and b, and the same with b moved to a node that is not a."""
    edges = _tree(generator, _TREE)
    x = np.zeros((_TREE, 4))
    x[:, 2:] = generator.integers(0, 2, (_TREE, 2))
    node, other, *more = generator.permutation(_TREE).tolist()
    x[[node, *more[:3]], 0] = 1
    x[more[3:6], 1] = 1
    with_both, without = x.copy(), x.copy()
    with_both[node, 1] = without[other, 1] = 1
    pair = (_synthetic(with_both, edges, 1, [node]), _synthetic(without, edges, 0, []))
    for graph in pair:
        graph.feature_truth = torch.zeros_like(graph.x, dtype=torch.bool)
    pair[0].feature_truth[node, :2] = True
    return pair


_SYNTHETIC: dict[str, Callable[[np.random.Generator], Pair]] = {
    "motif": lambda generator: _motifs(generator, [_HOUSE]),
    "motif_pair": lambda generator: _motifs(generator, [_HOUSE, _CLIQUE]),
    "edge": _edge,
    "feature": _feature,
}
_ABOUT = {
    "motif": "a tree with a house, or with a five-cycle",
    "motif_pair": "a tree with a house and a clique of four, or with one of them broken",
    "edge": "is there an edge between the red and the blue node?",
    "feature": "does a node have both of the first two features?",
}
