"""Attribution tasks: graphs whose deciding nodes are known, with every alternative truth.

The four tasks by name are those of Sanchez-Lengeling et al., Evaluating Attribution for Graph
Neural Networks, NeurIPS 2020: molecules of ZINC whose labels follow from a rule.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx._internal.files import atomic_path
from gstarx.datasets import GraphDataset, random_split_indices
from gstarx_bench.datasets.raw_files import archive

#: The node features: the element of an atom, ``*`` for any other.
ELEMENTS = ("C", "N", "O", "S", "F", "P", "Cl", "Br", "Na", "Ca", "I", "B", "H", "*")
#: The edge features: the type of a bond.
BONDS = ("single", "double", "triple", "aromatic", "unspecified")

_SOURCE = "Sanchez-Lengeling et al., Evaluating Attribution for Graph Neural Networks, NeurIPS 2020"
_REPOSITORY = "https://github.com/google-research/graph-attribution"
_KEYS = ("x", "node_ptr", "edge_index", "edge_ptr", "y", "alternatives", "truth", "truth_ptr")
_VALIDATION_SEED = 2


class TruthData(Data):  # type: ignore[misc]
    """A graph with its alternative truths, which PyG can batch, split and store.

    ``truths`` has a row for each alternative and a column for each node, (A, N): masks of the nodes
    that decide the label, any one of which is a full reason, or one row of real contributions. Both
    sizes differ between graphs, and PyG concatenates along one dimension only, so the rows are
    stored one after the other as ``truth_rows``. A batch has a list of ``truths``.

    Examples
    --------
    >>> graph = TruthData(x=torch.ones(3, 1), truths=torch.tensor([[1, 0, 0], [1, 1, 0]]).bool())
    >>> graph.truths.shape, [t.shape for t in Batch.from_data_list([graph, graph]).truths]
    (torch.Size([2, 3]), [torch.Size([2, 3]), torch.Size([2, 3])])
    """

    def __init__(self, x: Tensor | None = None, *, truths: Tensor | None = None, **fields: Any):
        super().__init__(x=x, **fields)
        if truths is not None:
            self.truths = truths

    def __getitem__(self, key: str) -> Any:
        return self.truths if key == "truths" else super().__getitem__(key)

    @property
    def truths(self) -> Any:
        """The alternative truths, (alternatives, nodes); of a batch, a list of them."""
        if isinstance(self, Batch):
            return [graph.truths for graph in self.to_data_list()]
        return self.truth_rows.view(-1, int(self.num_nodes or 0))

    @truths.setter
    def truths(self, truths: Tensor) -> None:
        if truths.dim() != 2 or truths.shape[1] != self.num_nodes or not len(truths):
            raise ValueError(
                f"truths must have the shape (alternatives, {self.num_nodes}), with a column for "
                f"each node (got {tuple(truths.shape)})"
            )
        self.truth_rows = truths.reshape(-1)


def load_attribution(
    path: str | os.PathLike[str], *, name: str | None = None, validation: float = 0.1
) -> GraphDataset:
    """Read an attribution task from an ``.npz`` file, without pickled objects.

    Parameters
    ----------
    path
        The file. Arrays over all graphs, one after the other: ``x`` (nodes, features),
        ``edge_index`` (2, edges) with nodes numbered within their graph, ``edge_attr`` (optional),
        ``node_ptr`` and ``edge_ptr`` (graphs + 1) where each graph begins; ``y`` (graphs), 0 and 1,
        or real numbers for a regression; ``alternatives`` (graphs), ``truth`` (flat) and
        ``truth_ptr`` (graphs + 1): the truths of a graph, row after row. Optional: positions
        ``train`` and ``test``, ``smiles`` and ``id``. :func:`save_attribution` writes such a file.
    name
        Name of the dataset; by default that of the file.
    validation
        Share of ``train`` that becomes the validation split, drawn with a fixed seed. Without
        ``train`` and ``test``, graphs are split at random.

    Returns
    -------
    GraphDataset
        Every graph has ``truths`` (alternatives, nodes), boolean for a classification. The last of
        them, the union of all, is also its ``truth``.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or its arrays do not fit together.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no attribution task at {file}")
    arrays = archive(file)
    missing = [key for key in _KEYS if key not in arrays]
    if missing:
        raise ValueError(
            f"{file} is not an attribution task: it must hold {', '.join(_KEYS)} "
            f"(got {', '.join(arrays)})"
        )
    classes = 2 if bool(np.isin(arrays["y"], (0, 1)).all()) else 0
    try:
        graphs = _graphs(arrays, classes)
    except Exception as error:  # arrays that do not fit together may fail in any way
        raise ValueError(f"{file}: its arrays do not fit together: {error}") from error
    return GraphDataset(
        name or file.stem,
        graphs,
        classes,
        _splits(file, arrays, validation),
        task="classification" if classes else "regression",
        target_names=() if classes else ("target",),
    )


def save_attribution(path: str | os.PathLike[str], dataset: Sequence[Data]) -> None:
    """Write a dataset with ``truths`` as a file that :func:`load_attribution` reads.

    The validation split of a :class:`GraphDataset` goes back into ``train``, from which it was cut.
    """
    graphs = list(dataset)
    truths = [np.atleast_2d(np.asarray(graph.truths, dtype=np.float32)) for graph in graphs]
    arrays: dict[str, Any] = {
        "x": np.concatenate([graph.x.numpy() for graph in graphs]),
        "node_ptr": _pointers([graph.num_nodes for graph in graphs]),
        "edge_index": np.concatenate([graph.edge_index.numpy() for graph in graphs], axis=1),
        "edge_ptr": _pointers([graph.num_edges for graph in graphs]),
        "y": np.array([float(graph.y) for graph in graphs], dtype=np.float64),
        "alternatives": np.array([len(rows) for rows in truths], dtype=np.int32),
        "truth": np.concatenate([rows.reshape(-1) for rows in truths]),
        "truth_ptr": _pointers([rows.size for rows in truths]),
    }
    if all(graph.get("edge_attr") is not None for graph in graphs):
        arrays["edge_attr"] = np.concatenate([graph.edge_attr.numpy() for graph in graphs])
    for field, key in (("smiles", "smiles"), ("name", "id")):
        if all(isinstance(graph.get(field), str) for graph in graphs):
            arrays[key] = np.array([graph[field] for graph in graphs])
    splits: Mapping[str, Sequence[int]] = getattr(dataset, "split_indices", {})
    if splits:
        train = [*splits.get("train", ()), *splits.get("val", ())]
        arrays |= {"train": np.array(train, np.int32)}
        arrays |= {"test": np.array(splits.get("test", ()), np.int32)}
    with atomic_path(Path(path)) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def load_benzene(root: Path) -> GraphDataset:
    """12,000 molecules, class 1 with a benzene ring (``attribution/benzene.npz``)."""
    return _named(root, "benzene", "Molecules; is there a benzene ring?", "benzene ring")


def load_logic7(root: Path) -> GraphDataset:
    """4,326 molecules, class 1 with fluoride and carbonyl (``attribution/logic7.npz``)."""
    about = "Molecules; is there a fluoride and a carbonyl group?"
    return _named(root, "logic7", about, "fluoride and carbonyl")


def load_logic8(root: Path) -> GraphDataset:
    """8,671 molecules, class 1 with unbranched alkane and carbonyl (``attribution/logic8.npz``)."""
    about = "Molecules; is there an unbranched alkane and a carbonyl group?"
    return _named(root, "logic8", about, "unbranched alkane and carbonyl")


def load_crippen(root: Path) -> GraphDataset:
    """1,127 molecules with hydrogens and Crippen's logP (``attribution/crippen.npz``).

    ``truths`` is one row: what each atom contributes to logP.
    """
    return _named(root, "crippen", "Molecules with hydrogens; what is Crippen's logP?", "")


def _named(root: Path, name: str, about: str, positive: str) -> GraphDataset:
    path = root / "attribution" / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"{name}.npz is not at {path}; put it there, or pass root=... or set GSTARX_DATA to "
            f"the directory of attribution/. The molecules are in {_REPOSITORY} (data/{name}): "
            "datasets.attribution_task makes labels and truths from their SMILES, and "
            "datasets.save_attribution writes the file"
        )
    dataset = load_attribution(path, name=name)
    if (dataset.task == "classification") != bool(positive):
        raise ValueError(f"{path} is not {name}: it holds a {dataset.task} task")
    return dataset.replace(
        source=f"{_SOURCE}; compounds of ZINC12",
        license="Apache-2.0",
        description=about,
        class_names=(f"no {positive}", positive) if positive else (),
        target_names=() if positive else ("logP",),
    )


def _graphs(arrays: Mapping[str, NDArray[Any]], classes: int) -> list[Data]:
    count = len(arrays["y"])
    sizes = {"node": len(arrays["x"]), "edge": arrays["edge_index"].shape[1]}
    for kind, size in (sizes | {"truth": len(arrays["truth"])}).items():
        at = arrays[f"{kind}_ptr"]
        if len(at) != count + 1 or (at[0], at[-1]) != (0, size) or (np.diff(at) < 0).any():
            raise ValueError(f"{kind}_ptr must rise from 0 to {size} in {count} steps")
    for key in ("x", "y", "truth"):
        if not np.isfinite(arrays[key]).all():
            raise ValueError(f"{key} must hold finite numbers")
    x, ends, truth = (torch.from_numpy(arrays[key]) for key in ("x", "edge_index", "truth"))
    bonds = torch.from_numpy(arrays["edge_attr"]).float() if "edge_attr" in arrays else None
    nodes, edges, rows = (arrays[f"{key}_ptr"].tolist() for key in ("node", "edge", "truth"))
    if bonds is not None and len(bonds) != ends.shape[1]:
        raise ValueError(f"edge_attr must have {ends.shape[1]} rows (got {len(bonds)})")
    graphs = []
    for number, label in enumerate(arrays["y"].tolist()):
        n, e, t = (slice(ptr[number], ptr[number + 1]) for ptr in (nodes, edges, rows))
        y = torch.tensor([int(label)]) if classes else torch.tensor([[label]], dtype=torch.float)
        # copies: a view would carry the arrays of all graphs along when one graph is pickled
        graph = TruthData(x=x[n].float().clone(), edge_index=ends[:, e].long().contiguous(), y=y)
        its_truth = truth[t].bool() if classes else truth[t].float().clone()
        graph.truths = its_truth.view(int(arrays["alternatives"][number]), -1)
        if classes:
            graph.truth = graph.truths[-1].clone()
        if bonds is not None:
            graph.edge_attr = bonds[e].clone()
        for key, field in (("smiles", "smiles"), ("id", "name")):
            if key in arrays:
                graph[field] = str(arrays[key][number])
        graph.validate(raise_on_error=True)
        graphs.append(graph)
    return graphs


def _splits(
    path: Path, arrays: Mapping[str, NDArray[Any]], validation: float
) -> dict[str, list[int]]:
    """The splits of the file, with a validation split cut from the training graphs."""
    if not 0 <= validation < 1:
        raise ValueError(f"validation must be a share, at least 0 and below 1 (got {validation})")
    count = len(arrays["y"])
    if "train" not in arrays or "test" not in arrays:
        return random_split_indices(count)
    train, test = (arrays[key].astype(np.int64) for key in ("train", "test"))
    both = np.concatenate([train, test])
    if both.size and (both.min() < 0 or both.max() >= count or len(np.unique(both)) < both.size):
        raise ValueError(
            f"{path}: train and test must be distinct positions in 0..{count - 1} (got "
            f"{len(train)} and {len(test)} of them)"
        )
    generator = torch.Generator().manual_seed(_VALIDATION_SEED)
    order = torch.randperm(len(train), generator=generator).tolist()
    cut = round(validation * len(train))
    return {
        "train": train[sorted(order[cut:])].tolist(),
        "val": train[sorted(order[:cut])].tolist(),
        "test": test.tolist(),
    }


def _pointers(sizes: Sequence[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
