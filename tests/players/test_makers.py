"""Makers of groups: fragments, functional groups, rings, phrases and communities."""

from __future__ import annotations

from itertools import chain

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gstarx import players
from gstarx.datasets import smiles_graph
from gstarx.players import (
    Groups,
    as_players,
    brics,
    communities,
    functional_groups,
    murcko,
    phrases,
    rings,
)
from gstarx.registry import PLAYERS, PlayersSpec, group_makers, kind_of_players, resolve
from tests.pairs import for_each

CASES = ["CC(=O)Oc1ccccc1C(=O)O", "c1ccc2ccccc2c1CC1CC1", "CCN(CC)CCNC(=O)c1ccc(N)cc1", "C"]


@for_each("smiles", CASES)
def test_fragments_cover_every_atom_once_and_are_connected(smiles: str) -> None:
    from rdkit import Chem

    groups = brics(smiles)
    molecule = Chem.MolFromSmiles(smiles)
    assert sorted(chain(*groups)) == list(range(molecule.GetNumAtoms()))
    graph = nx.Graph([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds()])
    graph.add_nodes_from(range(molecule.GetNumAtoms()))
    for nodes in groups:
        assert nx.is_connected(graph.subgraph(nodes))
    assert len(set(groups.names)) == len(groups)


@for_each("make", [brics, functional_groups, rings])
@for_each("smiles", CASES)
def test_a_molecule_may_be_a_smiles_a_graph_or_of_rdkit(make, smiles: str) -> None:
    from rdkit import Chem

    if make(smiles).sets == ():
        return
    assert make(smiles) == make(Chem.MolFromSmiles(smiles)) == make(smiles_graph(smiles))


def test_functional_groups_do_not_overlap_and_larger_ones_win() -> None:
    groups = functional_groups("CC(=O)Nc1ccc(O)cc1")
    assert "amide" in groups.names
    assert "amine" not in groups.names
    assert "ketone" not in groups.names
    assert len(list(chain(*groups))) == len(set(chain(*groups)))


def test_rings_that_share_atoms_are_one_group() -> None:
    assert len(rings("c1ccc2ccccc2c1CC1CC1")) == 2
    with_names = rings("c1ccccc1CCc1ccccc1")
    assert with_names.names == ("c1ccccc1 (1)", "c1ccccc1 (2)")


def tree(parents: list[int], words: list[str] | None = None) -> Data:
    ends = torch.tensor([(child + 1, parent) for child, parent in enumerate(parents)])
    edge_index = ends.reshape(-1, 2).t().long()
    data = Data(edge_index=torch.cat([edge_index, edge_index.flip(0)], 1))
    data.num_nodes = len(parents) + 1
    if words:
        data.words = words
    return data


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 100), max_size=20), st.integers(1, 6))
def test_phrases_are_connected_parts_of_bounded_length(drawn: list[int], most: int) -> None:
    sentence = tree([parent % (child + 1) for child, parent in enumerate(drawn)])
    groups = phrases(sentence, max_words=most)
    assert sorted(chain(*groups)) == list(range(len(drawn) + 1))
    graph = nx.Graph(sentence.edge_index.t().tolist())
    graph.add_nodes_from(range(len(drawn) + 1))
    for nodes in groups:
        assert len(nodes) <= most
        assert nx.is_connected(graph.subgraph(nodes))


def test_the_root_of_a_sentence_may_be_named() -> None:
    sentence = tree([0, 1, 2, 3], ["a", "b", "c", "d", "e"])
    assert phrases(sentence).names == ("a", "b", "c d e")
    sentence.root = 4
    assert phrases(sentence).names == ("a b c d", "e")


def test_communities_follow_the_method_and_the_seed() -> None:
    barbell = nx.barbell_graph(4, 0)
    assert communities(barbell).sets == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert communities(barbell, method="bridges").sets == ((0, 1, 2, 3), (4, 5, 6, 7))
    large = nx.random_geometric_graph(60, 0.2, seed=1)
    assert communities(large, seed=4) == communities(large, seed=4)
    with pytest.raises(ValueError, match="method must be one of"):
        communities(barbell, method="cliques")


def test_what_is_no_molecule_is_refused() -> None:
    with pytest.raises((ValueError, TypeError), match="molecule"):
        brics(Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long)))
    with pytest.raises((ValueError, TypeError), match="RDKit"):
        brics("not a molecule")
    with pytest.raises(TypeError, match="networkx"):
        communities("CCO")


def test_groups_are_a_sequence_of_sets() -> None:
    groups = Groups([{2, 0}, [3]])
    assert len(groups) == 2
    assert list(groups) == [(0, 2), (3,)]
    assert groups[1] == (3,)


MURCKO = [
    "CC(=O)Nc1ccc([N+](=O)[O-])cc1",
    "O=C(CCc1ccccc1)N1CCCC1=O",
    "C1CC1C(=O)C1CC1",
    "CS(=O)(=O)c1ccc2[nH]cc(CCN)c2c1",
    "[Na+].[O-]C(=O)c1ccccc1",
    "CCCC",
    "O=C1CC2(CC1)OCCO2",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "Clc1ccccc1N=Nc1ccccc1",
]


@for_each("smiles", MURCKO)
def test_murcko_parts_are_the_scaffold_and_what_hangs_on_it(smiles: str) -> None:
    """By another way: prune ends that are in no ring, keep double bonds on what is left."""
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    groups = murcko(smiles)
    assert sorted(n for nodes in groups for n in nodes) == list(range(molecule.GetNumAtoms()))
    bonds = nx.Graph((b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in molecule.GetBonds())
    bonds.add_nodes_from(range(molecule.GetNumAtoms()))
    for nodes in groups:
        assert nx.is_connected(bonds.subgraph(nodes))
    ringed = {a.GetIdx() for a in molecule.GetAtoms() if a.IsInRing()}
    core = bonds.copy()
    while ends := [n for n in core if core.degree(n) <= 1 and n not in ringed]:
        core.remove_nodes_from(ends)
    scaffold = set(core)
    for bond in molecule.GetBonds():
        ends = {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()}
        if bond.GetBondTypeAsDouble() == 2 and ends & set(core):
            scaffold |= ends
    for nodes in groups:  # a part is of the scaffold, or not
        assert set(nodes) <= scaffold or not set(nodes) & scaffold
    systems = {frozenset(nodes) for nodes in rings(smiles)}
    for system in systems:
        assert any(system <= set(nodes) for nodes in groups)


def test_murcko_parts_need_bonds() -> None:
    atoms = Data(atoms=["C", "C"], edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(ValueError, match="from a SMILES"):
        murcko(atoms)


def test_functional_groups_of_ones_own() -> None:
    groups = functional_groups("CCOCCO", smarts={"alcohol": "[OX2H]", "ethyl": "[CH3][CH2]"})
    assert dict(zip(groups.names, groups.sets, strict=True)) == {"ethyl": (0, 1), "alcohol": (5,)}


def test_linkers_are_parts_of_their_own() -> None:
    parts = murcko("c1ccccc1CCC1CC1")
    assert parts.sets == ((0, 1, 2, 3, 4, 5), (6, 7), (8, 9, 10))
    assert murcko("O=C1CCC1CC1CC1").sets == ((0, 1, 2, 3, 4), (5,), (6, 7, 8))


def test_every_kind_of_groups_is_registered_once_and_offered_everywhere() -> None:
    makers = {name: resolve(home) for name, home in group_makers().items()}
    assert {name: as_players(name) for name in makers} == {
        name: Groups(maker) for name, maker in makers.items()
    }
    assert {getattr(players, name) for name in makers} == set(makers.values())
    for name in makers:
        assert PLAYERS[name].titles, "nobody could choose it in the explorer"
        assert as_players(name.replace("_", "-")).sets is makers[name]


def halves(graph: Data) -> Groups:
    """Another kind of groups, as a package may add it."""
    return Groups.from_labels([node % 2 for node in range(int(graph.num_nodes or 0))])


def test_a_kind_of_groups_needs_a_function_and_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    added = PlayersSpec("halves", "groups", {"graph": "halves"}, f"{__name__}:halves")
    known = {added.name: added, **PLAYERS._specified}
    monkeypatch.setitem(vars(PLAYERS), "_specified", known)
    assert as_players("halves") == Groups(halves)
    assert kind_of_players("halves") == "groups"
    assert list(PLAYERS)[-1] == "halves"
    with pytest.raises(ValueError, match=r"did you mean 'halves'\?.*communities.*halves"):
        as_players("halvs")
