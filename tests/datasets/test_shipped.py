"""Data that comes with the package: made by rule, the same every time, with exact ground truth."""

from __future__ import annotations

import sys
from importlib.resources import files

import networkx as nx
import numpy as np
import pytest
import torch

from gstarx.datasets import load
from gstarx.datasets.dataset import random_split_indices
from gstarx.datasets.molecules import NITRO_FEATURES
from gstarx.datasets.shipped import RULE, load_motifs


def test_motifs_are_what_they_say() -> None:
    dataset = load("motifs")
    assert len(dataset) == 400
    shapes = {0: nx.cycle_graph(5), 1: nx.house_graph()}
    for number, graph in enumerate(dataset):
        assert int(graph.y) == number % 2
        assert (graph.x == 0.1).all()
        assert graph.x.shape == (25, 10)
        whole = nx.Graph(graph.edge_index.T.tolist())
        assert nx.is_connected(whole)
        assert graph.num_edges == 2 * whole.number_of_edges()
        marked = graph.truth.nonzero().flatten().tolist()
        assert nx.is_isomorphic(whole.subgraph(marked), shapes[int(graph.y)])
        rest = whole.subgraph(set(whole) - set(marked))
        assert nx.is_tree(rest)
        assert len(rest) == 20
    assert dataset.split_indices == random_split_indices(400)
    assert len({graph.edge_index.numpy().tobytes() for graph in dataset}) == 400


def test_motifs_are_the_same_every_time() -> None:
    assert load("motifs").digest == (
        "132e93d9948630fb4ccf9441ce0b08a13eadda31ee6c77b930c357657d08efdb"
    )
    assert load_motifs(size=10, seed=1).digest == load_motifs(size=10, seed=1).digest
    assert load_motifs(size=10, seed=1).digest != load_motifs(size=10, seed=2).digest


def test_motifs_leave_the_generators_alone() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    load_motifs(size=10)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    np.random.random(7)  # noqa: NPY002
    torch.rand(7)
    assert load_motifs(size=10).digest == load_motifs(size=10).digest


def test_sizes_of_motifs() -> None:
    assert [int(graph.y) for graph in load_motifs(size=11)] == [0, 1] * 5 + [0]
    with pytest.raises(ValueError, match=r"size must be at least 10, to be split \(got 9\)"):
        load_motifs(size=9)


def test_nitro_is_balanced_and_varied() -> None:
    dataset = load("nitro")
    labels = [int(graph.y) for graph in dataset]
    assert labels.count(0) == labels.count(1) == 250
    sizes = [graph.num_nodes for graph in dataset]
    assert min(sizes) >= 8
    assert max(sizes) <= 30
    assert len(set(sizes)) > 15
    assert dataset.split_indices == random_split_indices(500)
    for graph in dataset:
        assert nx.is_connected(nx.Graph(graph.edge_index.T.tolist()))
        marked = [graph.atoms[node] for node in graph.truth.nonzero().flatten()]
        assert marked == (["C", "N", "O", "O"] if graph.y else [])
        assert graph.x.shape == (graph.num_nodes, len(NITRO_FEATURES))
        assert (graph.x[:, :-1].sum(dim=1) == 1).all()
    groups = {"nitro": "[N+](=O)[O-]", "nitrile": "C#N", "nitroso": "N=O)", "acid": "C(=O)O)"}
    for group in groups.values():  # in both classes, so that no group alone gives the class away
        with_group = {int(graph.y) for graph in dataset if group in graph.smiles}
        assert with_group == {0, 1}


def test_counting_atoms_does_not_tell_the_classes_apart() -> None:
    dataset = load("nitro")
    counts = torch.stack([graph.x.sum(dim=0) for graph in dataset])
    labels = torch.tensor([float(graph.y) for graph in dataset])
    inputs = torch.cat([counts, torch.ones(500, 1)], dim=1)
    weights = torch.linalg.lstsq(inputs, 2 * labels[:, None] - 1).solution[:, 0]
    assert ((inputs @ weights > 0) == (labels > 0)).float().mean() < 0.65


def test_nitro_is_small() -> None:
    assert len(files("gstarx.datasets").joinpath("nitro.csv").read_bytes()) < 60_000
    assert load("nitro").digest == load("nitro").digest


def test_nitro_needs_no_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.startswith("rdkit.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert len(load("nitro")) == 500
    with pytest.raises(ImportError, match=r"needs rdkit: pip install 'gstarx\[molecules\]'"):
        load("nitro", split="scaffold")


def test_nitro_is_written_again_byte_for_byte() -> None:
    pytest.importorskip("rdkit", reason="needs the molecules extra")
    from reproduction.nitro import build

    shipped = files("gstarx.datasets").joinpath("nitro.csv").read_bytes()
    assert build().encode() == shipped


def test_nitro_graphs_are_those_of_rdkit() -> None:
    chem = pytest.importorskip("rdkit.Chem", reason="needs the molecules extra")
    rule = chem.MolFromSmarts(RULE)
    names = set()
    for graph in load("nitro"):
        molecule = chem.MolFromSmiles(graph.smiles)
        assert graph.atoms == [atom.GetSymbol() for atom in molecule.GetAtoms()]
        aromatic = [atom.GetIsAromatic() for atom in molecule.GetAtoms()]
        assert graph.x[:, -1].bool().tolist() == aromatic
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
        assert graph.edge_index.T.tolist() == sorted([*map(list, ends), *([b, a] for a, b in ends)])
        matched = {atom for match in molecule.GetSubstructMatches(rule) for atom in match}
        assert set(graph.truth.nonzero().flatten().tolist()) == matched
        assert int(graph.y) == molecule.HasSubstructMatch(rule)
        names.add(chem.MolToSmiles(molecule))
    assert len(names) == 500


def test_nitro_split_by_scaffold() -> None:
    pytest.importorskip("rdkit", reason="needs the molecules extra")
    split = load("nitro", split="scaffold").split_indices
    assert sorted(sum(split.values(), [])) == list(range(500))  # noqa: RUF017
    assert split != load("nitro").split_indices
