"""Molecules: every atom in its place and color, whatever says which atoms there are."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch_geometric.data import Data

from gstarx.datasets import load, smiles_graph
from gstarx.drawing import draw
from gstarx.drawing.molecule import _rdkit_drawing
from gstarx.drawing.svg import INK, NEGATIVE, POSITIVE, score_color
from gstarx.players import as_molecule
from tests.drawing.parsed import elements, parsed, texts, tips
from tests.shared import mutag

NITROBENZENE = "c1ccccc1[N+](=O)[O-]"
ATORVASTATIN = "CC(C)c1c(C(=O)Nc2ccccc2)c(-c2ccccc2)c(-c2ccc(F)cc2)n1CC[C@@H](O)C[C@@H](O)CC(=O)O"


def nitrobenzene(**fields: object) -> Data:
    bonds = torch.tensor([[0, 1, 2, 3, 4, 5, 5, 6, 6], [1, 2, 3, 4, 5, 0, 6, 7, 8]])
    edges = torch.cat([bonds, bonds.flip(0)], dim=1)
    return Data(edge_index=edges, atoms=[*"CCCCCCNOO"], num_nodes=9, **fields)


def test_every_atom_has_the_color_of_its_score() -> None:
    scores = np.linspace(-0.4, 0.5, 9)
    shown = tips(draw(NITROBENZENE, scores))
    symbols = "CCCCCCNOO"
    assert len(shown) == 9
    for atom, score in enumerate(scores):
        said = next(name for name in shown if name.startswith(f"{symbols[atom]}{atom} "))
        assert shown[said].attrib["fill"] == score_color(score, 0.5)

    picture = draw("CO", [0, 0])
    assert {part.attrib["fill"] for part in tips(picture).values()} == {"#ffffff"}
    assert {"−1", "+1"} <= set(texts(picture))


def test_a_limit_is_shared_and_colors_end_there() -> None:
    one = tips(draw("CO", [0.1, -0.1], limit=0.4))
    other = tips(draw("CO", [0.9, -0.9], limit=0.4))
    assert one["C0 +0.1"].attrib["fill"] == score_color(0.1, 0.4)
    assert other["C0 +0.9"].attrib["fill"] == POSITIVE
    assert other["O1 −0.9"].attrib["fill"] == NEGATIVE
    assert {"−0.4", "+0.4", "0"} <= set(texts(draw("CO", [0.1, -0.1], limit=0.4)))


def test_selected_atoms_are_outlined_as_one_piece() -> None:
    picture = draw(NITROBENZENE, np.zeros(9), [5, 6, 7], legend=False)
    rims = [part for part in elements(picture, "circle") if part.attrib["fill"] == INK]
    bridges = [part for part in elements(picture, "line") if part.attrib["stroke"] == INK]
    assert (len(rims), len(bridges)) == (3, 2)
    inner = float(tips(picture)["C5 0"].attrib["r"])
    assert all(float(rim.attrib["r"]) > inner + 2 for rim in rims)
    nothing = draw(NITROBENZENE, np.zeros(9), legend=False)
    assert not [part for part in elements(nothing, "circle") if part.attrib["fill"] == INK]

    mask = np.zeros(9, dtype=bool)
    mask[[1, 4]] = True
    assert draw(NITROBENZENE, np.ones(9), mask).svg == draw(NITROBENZENE, np.ones(9), [4, 1]).svg


def test_the_legend_can_be_left_out() -> None:
    assert "selected" in texts(draw("CO", [1, 0], [0]))
    assert "selected" not in texts(draw("CO", [1, 0]))
    assert texts(draw("CO", [1, 0], [0], legend=False)) == []


def test_a_drug_fits_on_its_paper() -> None:
    picture = draw(ATORVASTATIN, np.arange(41), labels="numbers")
    width, height = picture.size
    circles = list(tips(picture).values())
    assert len(circles) == 41
    for circle in circles:
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height
    assert len(picture.svg) > len(draw(ATORVASTATIN, np.arange(41)).svg)


def test_graphs_with_smiles_and_the_smiles_give_one_picture() -> None:
    graph = smiles_graph(ATORVASTATIN)
    assert graph is not None
    scores = torch.linspace(-1, 1, 41)
    assert draw(graph, scores).svg == draw(ATORVASTATIN, scores[:, None]).svg


def test_atoms_of_the_shipped_molecules_are_those_of_their_smiles() -> None:
    for graph in load("nitro")[:60]:
        molecule = as_molecule(graph)
        assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == graph.atoms
        drawn = {frozenset((b.GetBeginAtomIdx(), b.GetEndAtomIdx())) for b in molecule.GetBonds()}
        assert drawn == {frozenset(pair) for pair in graph.edge_index.T.tolist()}


def test_a_graph_of_atoms_keeps_its_bonds() -> None:
    molecule = as_molecule(nitrobenzene())
    assert molecule.GetNumBonds() == 9
    assert [atom.GetFormalCharge() for atom in molecule.GetAtoms()] == [0] * 6 + [1, 0, -1]
    orders = [b.GetBondTypeAsDouble() for b in molecule.GetBonds()]
    assert sorted(orders) == [1] * 8 + [2]
    said = parsed(draw(nitrobenzene(), np.zeros(9))).attrib["aria-label"]
    assert said.startswith("Molecule C6 N O2.")
    assert "orders of its bonds are not known" in said


def test_stated_bonds_make_it_aromatic() -> None:
    one_way = torch.tensor([1.5] * 6 + [1, 2, 1])
    stated = nitrobenzene(bonds=torch.cat([one_way, one_way]))
    assert [a.GetIsAromatic() for a in as_molecule(stated).GetAtoms()] == [True] * 6 + [False] * 3
    picture = draw(stated, np.zeros(9))
    assert "not known" not in parsed(picture).attrib["aria-label"]
    # three double bonds more than in the skeleton are three lines more
    skeleton = draw(nitrobenzene(), np.zeros(9))
    assert len(elements(picture, "path")) == len(elements(skeleton, "path")) + 3


def test_mutag_can_be_drawn() -> None:
    for graph in mutag()[:20]:
        picture = draw(graph, np.arange(graph.num_nodes))
        assert len(tips(picture)) == graph.num_nodes


def test_nothing_is_run_or_fetched() -> None:
    picture = draw(NITROBENZENE, np.zeros(9), title="<script>alert(1)</script>")
    assert texts(picture)[0] == "<script>alert(1)</script>"
    assert elements(picture, "script") == []
    assert not re.search(r"style=|href=|url\(|\bon\w+=", picture.svg)


def test_bad_input_is_refused() -> None:
    for molecule, scores, message in (
        ("C(", [1], r"RDKit can read \(got 'C\('"),
        ("C(C)(C)(C)(C)C", [0] * 6, r"RDKit can read \(got 'C\(C"),
        ("", [], "the molecule has no atoms"),
        ("CO", [1], r"scores must have shape \(2,\) \(got \(1,\)\)"),
        ("CO", [1, float("nan")], "scores must be finite"),
        (Data(smiles="CO", num_nodes=3), [1, 2, 3], "one atom for each of 3 nodes"),
        (
            Data(atoms=["C", "Xx"], edge_index=torch.zeros(2, 0).long(), num_nodes=2),
            [0, 0],
            r"symbols of elements \(got 'Xx' at 1\)",
        ),
        (nitrobenzene(bonds=torch.ones(3)), [0] * 9, "an order for each of 18 columns"),
        (nitrobenzene(bonds=torch.full((18,), 7.0)), [0] * 9, r"among 1, 1.5, 2, 3 \(got 7\)"),
    ):
        with pytest.raises(ValueError, match=message):
            draw(molecule, scores)

    for limit in (
        0,
        -1,
        float("inf"),
        float("nan"),
    ):
        with pytest.raises(ValueError, match="limit must be a number above 0"):
            draw("CO", [0, 1], limit=limit)


def test_parts_that_are_not_joined_do_not_touch() -> None:
    for smiles in (
        "C.C",
        "CC(=O)Oc1ccccc1C(=O)[O-].[Na+].[Cl-]",
        "O.O.CC(=O)[O-]",
    ):
        _, places, size = _rdkit_drawing(as_molecule(smiles), False)
        parts = Chem.GetMolFrags(Chem.MolFromSmiles(smiles))
        for a, b in combinations(parts, 2):
            gaps = np.linalg.norm(places[list(a)][:, None] - places[list(b)][None], axis=-1)
            # discs have a radius of 14.5 and an outline
            assert gaps.min() > 40
        assert (places >= 0).all()
        assert (places <= size).all()
