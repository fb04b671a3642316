"""Where models and graphs come from: datasets and networks by name, and sources as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gstarx.registry.specs import DatasetSpec, NetworkSpec, Registered

#: What the labels of a dataset can be, and the name that PyG has for such a model.
TASKS = {
    "classification": "multiclass_classification",
    "binary": "binary_classification",
    "multilabel": "binary_classification",
    "regression": "regression",
}
#: Files of models that other packages write, by suffix, and what loads them.
MODEL_FILES = dict.fromkeys((".pt", ".ckpt"), "gstarx.integrations.chemprop:load_for_smiles")
#: Features of molecules that this package computes, and what computes them.
MOLECULE_READERS = dict.fromkeys(
    ("molecule", "molecule+bonds", "nitro", "mutag"), "gstarx.datasets:smiles_graph"
)
#: Features of molecules that other packages compute, and what computes them.
FEATURIZERS = {
    f"chemprop{suffix}": "gstarx.integrations.chemprop:graph"
    for suffix in ("", "-v1", "-organic", "-rigr")
}


#: All datasets by name.
DATASETS = Registered(
    "DATASETS",
    (
        DatasetSpec(
            "motifs",
            "Motifs",
            "400 random trees with a motif: house or five-cycle?",
            "gstarx.datasets.shipped:load_motifs",
            shipped=True,
            like="ba_2motifs",
        ),
        DatasetSpec(
            "nitro",
            "Nitro",
            "500 molecules: an aromatic nitro group?",
            "gstarx.datasets.shipped:load_nitro",
            shipped=True,
            like="mutag",
        ),
    ),
)

#: All networks that ship, by name; the name of a dataset alone stands for its GCN.
NETWORKS = Registered(
    "NETWORKS",
    (NetworkSpec("motifs-gcn", "motifs", "gcn"), NetworkSpec("nitro-gcn", "nitro", "gcn")),
)


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from; :func:`gstarx.models.load_source` loads it, in any process.

    Attributes
    ----------
    model
        The name of a network that ships, ``module:factory``, or ``None``.
    weights
        A file of weights: ``.safetensors`` of :func:`gstarx.models.save_model`, a published
        ``.pth``, a file of another package in :data:`MODEL_FILES`, or the state dictionary of a
        custom model; or ``None``.
    dataset
        For a custom model: the dataset whose features it reads.
    task
        What the model does, one of :data:`TASKS`; by default what its file says, or else
        ``"classification"``.
    trust
        Whether to run what a file of another package asks for while it is read.
    """

    model: str | None = None
    weights: Path | None = None
    dataset: str | None = None
    task: str | None = None
    trust: bool = False


@dataclass(frozen=True)
class DatasetSource:
    """Which graphs are meant; :func:`gstarx.datasets.load_source` loads them, in any process.

    Exactly one of ``name``, ``file`` and ``graphs`` is set.

    Attributes
    ----------
    name
        The name of a dataset in :data:`DATASETS`.
    root
        The directory of that dataset.
    file
        A table of molecules: ``.csv``, ``.tsv``, ``.smi``, ``.sdf``, ``.parquet`` or ``.xlsx``.
    graphs
        ``module:factory``, a function that returns a PyG dataset or a list of ``Data``.
    smiles_column, name_column
        Columns of the table; by default found by their usual names; ``""`` for no names.
    label
        The column of labels, or several separated by commas; without it and without a column of a
        usual name, molecules have no label.
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``; by default what
        the labels look like.
    split
        ``"random"``: 80/10/10 by a fixed seed, as in the paper; ``"scaffold"``: 80/10/10 with no
        Bemis–Murcko scaffold on two sides; a column of the table whose cells are ``train``,
        ``val`` or ``valid``, and ``test``; or ``"none"`` where graphs are only explained: a new
        split would not be that of the model.
    limit
        The first rows only.
    sample
        So many rows, drawn at random by ``seed``.
    salts
        ``"keep"`` all parts of a molecule, keep the ``"largest"`` part, or keep all and ``"warn"``.
    features
        What is read of a molecule, one of :data:`gstarx.datasets.MOLECULE_FEATURES`.
    class_names
        The classes of the network that is to read the graphs, in order; empty if it has none.
        Labels are then read as these classes, or as numbers, and one that does not fit is left
        out. ``None`` to train on the labels, which therefore have to be right.
    encoding
        The encoding of a table that is a text file; by default detected.
    """

    name: str | None = None
    root: str | None = None
    file: str | None = None
    graphs: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    label: str | None = None
    task: str | None = None
    split: str = "random"
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    salts: str = "warn"
    features: str = "molecule"
    class_names: tuple[str, ...] | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.class_names is not None:  # a list, where it comes from JSON
            object.__setattr__(self, "class_names", tuple(self.class_names))
        sources = [self.name, self.file, self.graphs]
        if sum(source is not None for source in sources) != 1:
            raise ValueError(
                f"a dataset is a name, a file or a factory: exactly one of them (got {sources})"
            )

    @property
    def title(self) -> str:
        """What to call the dataset."""
        if self.file is not None:
            path = Path(self.file)
            # a file may be named like a dataset of the package, and is another one
            return path.name if path.stem in DATASETS else path.stem
        return self.name or (self.graphs or "").replace(":", ".")
