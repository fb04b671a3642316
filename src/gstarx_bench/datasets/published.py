"""The paper's molecules (MUTAG, BBBP, BACE) and random graphs with motifs (BA-2Motifs, BA-Shapes).

MUTAG is read by PyG's reader of the TU collection, and molecules in tables as any other table.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.data.separate import separate
from torch_geometric.io import read_tu_data

from gstarx._internal.files import check_expanded_size
from gstarx.datasets import MUTAG_ATOMS, GraphDataset, random_split_indices
from gstarx.graphs import CommunicationGraph
from gstarx.registry import DatasetSource
from gstarx_bench.datasets.molecule_tables import read_table
from gstarx_bench.datasets.raw_files import (
    archive,
    download,
    find,
    not_found,
    read_arrays,
    warn_if_unlike_the_paper,
)
from gstarx_bench.datasets.tables import WrongColumnsError

Array = NDArray[Any]

#: Orders of the kinds of bonds of MUTAG: aromatic, single, double, triple.
_BOND_ORDERS = torch.tensor([1.5, 1.0, 2.0, 3.0], dtype=torch.float64)
#: Nodes of a graph of BA-2Motifs, of which the last five are the motif.
_NODES, _BASE = 25, 20


def load_mutag(root: Path) -> GraphDataset:
    """188 nitroaromatic molecules, class 1 mutagenic (TU text files in ``MUTAG/raw``).

    Node features are the one-hot atom; edges run both ways, ordered by source and target. Each
    graph has ``atoms``, the symbols of its atoms, and, if their file exists, ``bonds``, the order
    of every edge (1.5 for aromatic ones), which networks do not see.
    """
    raw = root / "MUTAG" / "raw"
    if not (raw / "MUTAG_A.txt").is_file():
        _download_mutag(raw)
    try:
        graphs = _read_mutag(raw)
    except FileNotFoundError:
        raise
    except Exception as error:  # PyG's reader trusts its files, and fails in any way
        raise ValueError(f"{raw} does not hold the files of MUTAG: {error}") from error
    return warn_if_unlike_the_paper(
        GraphDataset(
            "mutag",
            graphs,
            2,
            random_split_indices(len(graphs)),
            source="TU Dortmund graph collection; Debnath et al., J. Med. Chem. 34 (1991) 786-797",
            license="none stated",
            description="Aromatic and heteroaromatic nitro compounds; is it mutagenic on "
            "Salmonella?",
            class_names=("not mutagenic", "mutagenic"),
        )
    )


def _read_mutag(raw: Path) -> list[Data]:
    data, slices, _ = read_tu_data(str(raw), "MUTAG")
    if data.x.shape[1] != len(MUTAG_ATOMS):
        raise ValueError(f"atoms must be of {len(MUTAG_ATOMS)} kinds (got {data.x.shape[1]})")
    bounds = slices["x"].tolist()
    ends = data.edge_index
    sizes = torch.tensor(bounds).diff().repeat_interleave(slices["edge_index"].diff())
    if len(bounds) != len(data.y) + 1 or bool(((ends < 0) | (ends >= sizes)).any()):
        raise ValueError("bonds must join atoms of one molecule, and each must have a label")
    graphs = []
    for at in range(len(data.y)):
        graph = separate(Data, data, idx=at, slice_dict=slices, decrement=False).clone()
        if not graph.is_undirected():
            raise ValueError(f"every bond must run both ways (not so in molecule {at + 1})")
        bonds = graph.pop("edge_attr") if "edge_attr" in graph else None
        if bonds is not None:
            graph.bonds = _BOND_ORDERS[bonds.argmax(dim=1)].tolist()
        graph.atoms = [MUTAG_ATOMS[atom] for atom in graph.x.argmax(dim=1).tolist()]
        graphs.append(graph)
    return graphs


def _download_mutag(raw: Path) -> None:
    from torch_geometric.data import download_url, extract_zip
    from torch_geometric.datasets import TUDataset

    try:
        with TemporaryDirectory() as folder:
            packed = download_url(f"{TUDataset.url}/MUTAG.zip", folder)
            check_expanded_size(Path(packed))
            extract_zip(packed, folder)
            raw.mkdir(parents=True, exist_ok=True)
            # MUTAG_A.txt comes last: if it exists, nothing is downloaded again
            for path in sorted(Path(folder).rglob("MUTAG_*.txt"), reverse=True):
                shutil.move(path, raw / path.name)
    except Exception as error:
        raise not_found("MUTAG", raw / "MUTAG_A.txt", str(error)) from error


def load_bbbp(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """2,039 molecules, class 1 if it passes the blood–brain barrier (``BBBP/BBBP.csv``).

    RDKit cannot read eleven of the 2,050 rows; they are ``unreadable``. Nodes and options as for
    :func:`gstarx_bench.datasets.from_table`.
    """
    path = find(root, ["BBBP/BBBP.csv", "BBBP/raw/BBBP.csv", "bbbp/raw/BBBP.csv"])
    dataset = _moleculenet(
        "bbbp", path or root / "BBBP" / "BBBP.csv", ("smiles", "p_np"), split, bond_features
    )
    return dataset.replace(
        source="MoleculeNet; Martins et al., J. Chem. Inf. Model. 52 (2012) 1686-1697",
        license="MoleculeNet states none for this file; its code is under the MIT license",
        description="Drug-like molecules; does it pass the blood-brain barrier?",
        class_names=("does not pass", "passes"),
    )


def load_bace(root: Path, *, split: str = "random", bond_features: bool = False) -> GraphDataset:
    """1,513 molecules, class 1 if it inhibits human β-secretase 1 (``BACE/bace.csv``).

    Nodes and options as for :func:`gstarx_bench.datasets.from_table`.
    """
    path = find(root, ["BACE/bace.csv", "BACE/raw/bace.csv", "bace/raw/bace.csv"])
    dataset = _moleculenet(
        "bace", path or root / "BACE" / "bace.csv", ("mol", "Class"), split, bond_features
    )
    return dataset.replace(
        source="MoleculeNet; Subramanian et al., J. Chem. Inf. Model. 56 (2016) 1936-1949",
        license="CC0 as published with AttentiveFP",
        description="Candidate drugs; does it inhibit human beta-secretase 1?",
        class_names=("does not inhibit", "inhibits"),
    )


def _moleculenet(
    name: str, path: Path, columns: tuple[str, str], split: str, bond_features: bool
) -> GraphDataset:
    """The molecules of a table of MoleculeNet, which is downloaded if it is not there."""
    from torch_geometric.datasets import MoleculeNet

    if not path.is_file():
        download(path.name, MoleculeNet.url.format(MoleculeNet.names[name][1]), path)
    features = "molecule+bonds" if bond_features else "molecule"
    smiles, label = columns
    source = DatasetSource(
        file=str(path),
        smiles_column=smiles,
        name_column="",
        label=label,
        split=split,
        features=features,
    )
    try:
        dataset = read_table(source, name=name, delimiter=",")
    except WrongColumnsError as error:
        raise WrongColumnsError(f"this is not the file of {name}: {error}") from error
    if dataset.class_names != ("0", "1"):
        raise ValueError(f"{path}: {label} must be 0 or 1 (got {', '.join(dataset.class_names)})")
    return warn_if_unlike_the_paper(dataset)


def load_ba_2motifs(root: Path) -> GraphDataset:
    """1,000 graphs of 25 nodes, class 0 with a five-cycle, class 1 with a house.

    Read from ``BA_2Motifs/ba_2motifs.npz`` (``edge_index``, ``edge_ptr``, ``y``) or, without
    running its code, from the authors' pickle in ``BA_2Motifs/raw``. All features are 0.1.
    ``truth`` marks the motif, the last five nodes. Self-loops of the files are kept.
    """
    pickled = "BA_2Motifs/raw/BA-2motif.pkl"
    places = ["BA_2Motifs/ba_2motifs.npz", "BA_2Motifs/raw/BA_2Motifs.pkl", pickled]
    path = find(root, places) or _download_motifs(root / pickled)
    features: Any
    if path.suffix == ".npz":
        stored = _arrays(path, "BA_2Motifs", ("edge_index", "edge_ptr", "y"))
        edges, labels = _split_edges(path, stored), stored["y"]
        features = [np.full((_NODES, 10), 0.1)] * len(labels)
    else:
        adjacency, features, one_hot = _pickled(
            path, "BA_2Motifs", [(_NODES, _NODES), (_NODES, 10), (2,)]
        )
        edges = [np.stack(np.nonzero(matrix)) for matrix in adjacency]
        labels = one_hot.argmax(1)
    _check_labels(path, labels, 2)
    graphs = [
        Data(
            x=torch.tensor(x, dtype=torch.float),
            edge_index=torch.tensor(ends, dtype=torch.long),
            y=torch.tensor([int(label)]),
            truth=torch.arange(_NODES) >= _BASE,
        )
        for ends, label, x in zip(edges, labels, features, strict=True)
    ]
    dataset = GraphDataset(
        "ba_2motifs",
        tuple(graphs),
        2,
        random_split_indices(len(graphs)),
        source="Luo et al., Parameterized Explainer for Graph Neural Network, NeurIPS 2020",
        license="none stated",
        description="A random tree of 20 nodes with a motif of five; which motif is it?",
        class_names=("five-cycle", "house"),
    )
    return warn_if_unlike_the_paper(dataset)


def _download_motifs(target: Path) -> Path:
    from torch_geometric.datasets import BA2MotifDataset

    return download(target.name, f"{BA2MotifDataset.url}/{BA2MotifDataset.filename}", target)


def load_ba_shapes(root: Path) -> GraphDataset:
    """One graph of 700 nodes: a random graph of 300 and 80 houses; nodes have four classes.

    Read from ``BA_Shapes/ba_shapes.npz`` or, without running its code, from the authors' pickle.
    Every node has ten features, all one. ``train_mask``, ``val_mask`` and ``test_mask`` split the
    nodes, so every split holds the one graph. ``truth`` marks the nodes of houses, and ``motif``
    is the number of each node's house, -1 for none.
    """
    places = ["BA_Shapes/ba_shapes.npz", "BA_Shapes/raw/BA_shapes.pkl", "BA_Shapes/raw/syn1.pkl"]
    path = find(root, places)
    if path is None:
        raise not_found("ba_shapes.npz", root / places[0])
    if path.suffix == ".npz":
        names = ("edge_index", "y", "train", "val", "test", "motif_edges")
        stored = _arrays(path, "BA_Shapes", names)
    else:
        stored = _shapes_pickle(path)
    labels = stored["y"]
    _check_labels(path, labels, 4)
    count = len(labels)
    for name in ("edge_index", "motif_edges"):
        _check_edges(path, stored[name], count)
    masks = {}
    for name in ("train", "val", "test"):
        if stored[name].shape != (count,):
            raise ValueError(f"{path}: {name} must have {count} entries (got {stored[name].shape})")
        masks[f"{name}_mask"] = torch.tensor(stored[name], dtype=torch.bool)
    graph = Data(
        x=torch.ones(count, 10),
        edge_index=torch.tensor(stored["edge_index"], dtype=torch.long),
        y=torch.tensor(labels, dtype=torch.long),
        truth=torch.tensor(labels > 0),
        motif=torch.from_numpy(_houses(stored["motif_edges"], count)),
        **masks,
    )
    return GraphDataset(
        "ba_shapes",
        (graph,),
        4,
        {"train": [0], "val": [0], "test": [0]},
        source="Ying et al., GNNExplainer, NeurIPS 2019; file of Luo et al., NeurIPS 2020",
        license="none stated",
        description="A random graph with 80 houses attached; what part of a house is a node?",
        class_names=("none", "middle", "bottom", "top"),
    )


def _shapes_pickle(path: Path) -> dict[str, Array]:
    square = (read_arrays(path)[:1] or (np.zeros(0),))[0].shape[:1]
    shapes = [square, (10,), *[(4,)] * 3, *[()] * 3, square]
    adjacency, _, *labels, train, val, test, motifs = _pickled(path, "BA_Shapes", shapes)
    return {
        "edge_index": np.stack(np.nonzero(adjacency)),
        "y": np.sum(labels, axis=0).argmax(axis=1),
        **{"train": train, "val": val, "test": test},
        "motif_edges": np.stack(np.nonzero(motifs)),
    }


def _arrays(path: Path, title: str, names: tuple[str, ...]) -> dict[str, Array]:
    arrays = archive(path)
    if not set(names) <= set(arrays):
        raise ValueError(
            f"{path} is not {title}: it must hold {', '.join(names)} (got {', '.join(arrays)})"
        )
    return arrays


def _pickled(path: Path, title: str, shapes: list[tuple[int, ...]]) -> tuple[Array, ...]:
    """The arrays of a pickle, whose rows must have these shapes."""
    arrays = read_arrays(path)
    found = [array.shape for array in arrays]
    if [shape[1:] for shape in found] != shapes or len({shape[:1] for shape in found}) > 1:
        expected = ", ".join(f"(n, {', '.join(map(str, shape))})" for shape in shapes)
        raise ValueError(
            f"{path} is not {title}: expected arrays of shapes {expected} "
            f"(got {', '.join(map(str, found))})"
        )
    return arrays


def _split_edges(path: Path, stored: dict[str, Array]) -> list[Array]:
    ends, bounds = stored["edge_index"].astype(np.int64), stored["edge_ptr"]
    fits = bounds.shape == (len(stored["y"]) + 1,) and bounds[0] == 0
    if not fits or (np.diff(bounds) < 0).any() or ends.shape != (2, bounds[-1]):
        raise ValueError(f"{path}: edge_index, edge_ptr and y do not fit together")
    _check_edges(path, ends, _NODES)
    return np.split(ends, bounds[1:-1], axis=1)


def _check_labels(path: Path, labels: Array, classes: int) -> None:
    if labels.ndim != 1 or not len(labels) or labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"{path}: labels must be a list of numbers 0 to {classes - 1}")


def _check_edges(path: Path, ends: Array, count: int) -> None:
    pairs = ends.ndim == 2 and len(ends) == 2
    if not pairs or (ends.size and not 0 <= ends.min() <= ends.max() < count):
        raise ValueError(f"{path}: edges must join two nodes numbered 0 to {count - 1}")


def _houses(motif_edges: Array, count: int) -> NDArray[np.int64]:
    """For each node, its component among the edges of motifs; -1 if it has no such edge."""
    inside = np.zeros(count, dtype=np.bool_)
    inside[motif_edges.reshape(-1)] = True
    labels = CommunicationGraph(count, motif_edges.T.tolist()).component_labels(inside[None])[0]
    houses = np.full(count, -1, dtype=np.int64)
    houses[inside] = np.unique(labels[inside], return_inverse=True)[1]
    return houses
