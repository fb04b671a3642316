"""Functional groups, rings, fragments, words and node types."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from gstarx.drawing import group_scores
from gstarx.players.parts import FUNCTIONAL_GROUPS, groups_of

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_functional_groups_are_those_a_chemist_sees() -> None:
    for smiles, names in (
        (ASPIRIN, {"carboxylic acid", "ester", "ether"}),
        ("c1ccccc1[N+](=O)[O-]", {"nitro"}),
        ("CCN", {"amine"}),
        ("CC(=O)N", {"amide"}),
        ("Oc1ccccc1", {"hydroxyl"}),
        ("FC(F)(F)C", {"halogen"}),
        ("CC#N", {"nitrile"}),
        ("CC(=O)C", {"ketone"}),
        ("NS(=O)(=O)c1ccccc1", {"sulfonamide"}),
        ("CCCC", set()),
    ):
        assert {name for name, _ in groups_of(smiles)} == names


def test_every_pattern_of_the_list_can_be_read() -> None:
    assert len(list(groups_of("C"))) == 0
    from gstarx.players.parts import _functional_groups, _query

    assert set(_functional_groups()) == set(FUNCTIONAL_GROUPS)
    for pattern in _functional_groups().values():
        assert _query(pattern).GetNumAtoms() >= 1


def test_the_atoms_of_a_nitro_group_are_all_in_it() -> None:
    assert list(groups_of("c1ccccc1[N+](=O)[O-]")) == [("nitro", (6, 7, 8))]


def test_rings_that_share_atoms_are_one_system() -> None:
    found = dict(groups_of("c1ccc2ccccc2c1CC1CCCC12CC2", "rings"))
    assert set(found) == {"c1ccc2ccccc2c1", "C1CCC2(C1)CC2"}
    assert found["c1ccc2ccccc2c1"] == tuple(range(10))


def test_fragments_are_every_atom_once() -> None:
    for smiles in (
        ASPIRIN,
        "CCCC",
        "CCN(CC)C(=O)c1ccc(OC)cc1.Cl",
    ):
        atoms = sorted(atom for _, nodes in groups_of(smiles, "brics") for atom in nodes)
        assert atoms == list(range(len(atoms)))
        names = [name for name, _ in groups_of(smiles, "brics")]
        assert ("." in smiles) or len(names) == (1 if smiles == "CCCC" else 4)


def test_graphs_without_smiles_have_what_can_be_known() -> None:
    edges = torch.tensor([[0, 1, 1, 3, 4], [1, 2, 3, 4, 5]])
    both = torch.cat([edges, edges.flip(0), torch.tensor([[3, 5], [5, 3]])], dim=1)
    graph = Data(atoms=["O", "N", "O", "C", "C", "C"], edge_index=both, num_nodes=6)
    assert list(groups_of(graph)) == [("nitro", (0, 1, 2))]
    assert list(groups_of(graph, "rings")) == [("ring of C C C", (3, 4, 5))]
    # an amine or an imine, a chloride or not: nobody knows
    pair = Data(atoms=["C", "N"], edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    assert list(groups_of(pair)) == []
    with pytest.raises(ValueError, match="BRICS fragments need the bonds"):
        list(groups_of(graph, "brics"))


def test_words_and_node_types() -> None:
    sentence = Data(words=["Not", "bad", "not"], num_nodes=3)
    assert list(groups_of(sentence)) == [("not", (0,)), ("bad", (1,)), ("not", (2,))]
    assert [name for name, _ in groups_of("Cc1ccccc1", "node_types")] == ["C"] + 6 * ["aromatic C"]
    labeled = Data(labels=["hub", "leaf"], num_nodes=2)
    assert [name for name, _ in groups_of(labeled)] == ["hub", "leaf"]
    typed = Data(node_type=torch.tensor([3, 1]), num_nodes=2)
    assert [name for name, _ in groups_of(typed)] == ["3", "1"]
    one_hot = Data(x=torch.eye(3)[[2, 0]], num_nodes=2)
    assert [name for name, _ in groups_of(one_hot)] == ["type 2", "type 0"]


def test_sums_are_those_of_atoms() -> None:
    (found,) = group_scores([1, 2, 4], "CCO", by={"mine": "CO"})
    assert (found.name, found.atoms, found.score) == ("mine", (1, 2), 6.0)
    rings = group_scores(range(13), ASPIRIN, by="rings")
    assert [group.score for group in rings] == [4 + 5 + 6 + 7 + 8 + 9]


def test_bad_input_is_refused() -> None:
    for data, by, words in (
        ("CO", "atoms", r"by must be one of 'functional_groups', .* \(got 'atoms'\)"),
        ("CO", "words", "needs graphs with words"),
        ("CO", {"x": "C("}, r"patterns that RDKit can read \(got 'C\('\)"),
        (Data(x=torch.ones(2, 2), num_nodes=2), None, "got a graph with num_nodes, x"),
        (Data(num_nodes=2), "rings", "a graph with smiles or atoms"),
    ):
        with pytest.raises(ValueError, match=words):
            list(groups_of(data, by))  # type: ignore[arg-type]
