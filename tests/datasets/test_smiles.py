"""Molecules of one's own, as the networks of the datasets read them."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.utils import from_smiles

from gstarx.datasets import load, smiles_graph
from tests.shared import mutag


def test_a_molecule_of_nitro_comes_out_as_it_ships() -> None:
    for at in (
        0,
        15,
        44,
        499,
    ):
        shipped = load("nitro")[at]
        made = smiles_graph(shipped.smiles, "nitro")
        assert torch.equal(made.x, shipped.x)
        assert torch.equal(made.edge_index, shipped.edge_index)


def test_a_molecule_of_mutag_has_mutags_features() -> None:
    nitrobenzene = smiles_graph("[O-][N+](=O)c1ccccc1", "mutag")
    assert nitrobenzene.x.shape[1] == mutag()[0].x.shape[1] == 7
    assert nitrobenzene.x.argmax(dim=1).tolist() == [2, 1, 2, 0, 0, 0, 0, 0, 0]


def test_others_get_the_nine_numbers_of_pyg() -> None:
    for dataset in (
        None,
        "bbbp",
        "of my own",
    ):
        plain = from_smiles("CCO")
        made = smiles_graph(" CCO ", dataset, bond_features=True)
        assert torch.equal(made.x, plain.x.float())
        assert torch.equal(made.edge_attr, plain.edge_attr.float())


def test_what_a_network_cannot_read_is_reported() -> None:
    for smiles, dataset, message in (
        ("C(", None, r"^syntax error: 'C\('"),
        ("", "nitro", "^no SMILES: ''"),
        ("CCP", "nitro", r"networks of 'nitro' know C, N, O, F, S, Cl, Br only \(got P\): 'CCP'"),
        ("CS", "mutag", r"networks of 'mutag' know C, N, O, F, I, Cl, Br only \(got S\): 'CS'"),
    ):
        with pytest.raises(ValueError, match=message):
            smiles_graph(smiles, dataset)
