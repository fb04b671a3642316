"""Tables and networks of one's own, for every task."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import torch
from torch_geometric.nn import NNConv, global_add_pool

from gstarx.metrics import Reference
from gstarx.models import GCN, save_model
from gstarx.registry import DatasetSource, ModelSource
from gstarx_bench.datasets import bibliographies
from gstarx_explorer import ServedModel

#: Names and SMILES of the tables.
MOLECULES = {
    "ethanol": "CCO",
    "nitrobenzene": "c1ccccc1[N+](=O)[O-]",
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "aniline": "Nc1ccccc1",
    "acetone": "CC(C)=O",
    "phenol": "Oc1ccccc1",
}
_LABELS = {
    "label": ("alive", "dead", "alive", "dead", "alive", "dead"),
    "value": (0.5, -1.25, 2.0, 0.25, 1.0, -0.5),
    "acid": (0, 0, 1, 0, 0, 1),
    "ring": (0, 1, 1, "", 0, 1),
}


def table(path: Path, *columns: str, **changed: tuple[object, ...]) -> Path:
    """A table with names and some labels, and a row that cannot be read."""
    labels = {**_LABELS, **changed}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smiles", *columns])
        for at, (name, smiles) in enumerate(MOLECULES.items()):
            writer.writerow([name, smiles, *(labels[column][at] for column in columns)])
        writer.writerow(["broken", "C1CC", *(labels[column][0] for column in columns)])
    return path


def weights(path: Path, outputs: int, **facts: Any) -> Path:
    """A network that reads molecules, not trained."""
    torch.manual_seed(0)
    save_model(path, GCN(9, 16, outputs), dataset=path.stem, features="molecule", **facts)
    return path


def typed_graphs() -> list[Any]:
    """Graphs of authors, papers and venues."""
    return list(bibliographies(count=3))


class Typed(torch.nn.Module):
    """Two classes from the sum of what authors have."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head = torch.nn.Linear(typed_graphs()[0]["author"].num_features, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any, batch_dict: Any) -> Any:
        return self.head(global_add_pool(x_dict["author"], batch_dict["author"]))


def typed() -> ServedModel:
    """A network and graphs with types of nodes."""
    here = "tests.web.own_networks"
    graphs = DatasetSource(graphs=f"{here}:typed_graphs")
    return ServedModel("typed", ModelSource(f"{here}:Typed"), graphs=graphs, required=True)


def own(folder: Path, name: str) -> ServedModel:
    """``classes``, ``value`` or ``targets``: a network of one's own and its table."""
    columns, outputs, facts = {
        "classes": (("label",), 2, {"class_names": ("alive", "dead")}),
        "value": (
            ("value",),
            1,
            {
                "task": "regression",
                "target_names": ("value",),
                "reference": Reference(range=0.5, mean=0.0),
            },
        ),
        "targets": (
            ("acid", "ring"),
            2,
            {"task": "multilabel", "target_names": ("acid", "ring")},
        ),
    }[name]
    file = table(folder / f"{name}-table.csv", *columns)
    return ServedModel(
        name,
        ModelSource(weights=weights(folder / f"{name}.safetensors", outputs, **facts)),
        graphs=DatasetSource(file=str(file), label=",".join(columns)),
        required=True,
    )


class _WithBonds(torch.nn.Module):
    """One logit, from atoms and bonds."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = NNConv(9, 8, torch.nn.Linear(3, 72))
        self.out = torch.nn.Linear(8, 1)

    def forward(self, x: Any, edge_index: Any, edge_attr: Any, batch: Any) -> Any:
        atoms = self.convolution(x, edge_index, edge_attr).relu()
        return self.out(global_add_pool(atoms, batch)) / 100


def with_bonds() -> _WithBonds:
    torch.manual_seed(0)
    return _WithBonds()


def indifferent() -> torch.nn.Module:
    """Prefers one class a lot, and hardly because of the molecule."""

    class Indifferent(torch.nn.Module):
        def forward(self, x: Any, edge_index: Any, batch: Any) -> Any:
            added = global_add_pool(x[:, :2].double(), batch) * 1e-6
            return added + torch.tensor([0.0, 3.0])

    return Indifferent()


def wide() -> torch.nn.Module:
    """Reads other features than molecules have."""

    class Wide(torch.nn.Module):
        def forward(self, x: Any, edge_index: Any, batch: Any) -> Any:
            return global_add_pool(x @ torch.ones(30, 2), batch)

    return Wide()
