"""Chemprop models as models that every explainer takes, and molecules as graphs that they read.

    from gstarx import explain
    from gstarx.integrations import chemprop

    model = chemprop.load("model.pt")              # or chemprop.wrap(mpnn)
    graph = chemprop.graph("CC(=O)Nc1ccc(O)cc1")
    explain(model, graph)

Atoms are the players, and bonds go with them. Chemprop's message passing on directed bonds needs to
know the reverse of every bond (``rev_edge_index``), which follows the bonds of a coalition.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from gstarx._internal.arguments import one_of
from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx._internal.molecules import read_molecule
from gstarx.gnn import EdgeNamingData
from gstarx.integrations.chemprop_files import load_checkpoint
from gstarx.models import SplitRecord
from gstarx.registry import TASKS

__all__ = ["FEATURES", "ChempropModel", "graph", "load", "wrap"]

#: Sets of atom and bond features that Chemprop computes, by the name of its option.
FEATURES = ("v2", "v1", "organic", "rigr")
#: Predictors of Chemprop that compute logits, and return them in training.
_WITH_LOGITS = ("BinaryClassificationFFN", "MulticlassClassificationFFN")


@dataclass
class _MolecularGraphs:
    """What Chemprop's layers read of a batch of molecules."""

    V: Tensor
    E: Tensor
    edge_index: Tensor
    rev_edge_index: Tensor | None
    batch: Tensor

    def __len__(self) -> int:
        return int(self.batch.max()) + 1


def wrap(mpnn: Any, *, return_type: str = "raw", output: int | None = None) -> ChempropModel:
    """A Chemprop model as a model that :func:`gstarx.explain` and all other entry points take.

    Parameters
    ----------
    mpnn
        A ``chemprop.models.MPNN`` of version 2, with any message passing, aggregation and
        predictor. It is neither copied nor changed.
    return_type
        What the wrapped model returns for a classification: ``"raw"`` for log-odds, which is what
        explainers expect by default, or ``"probs"`` for probabilities, as Chemprop predicts. Of a
        regression it always returns what Chemprop predicts, in the units of the training data: its
        scalers are undone. Of predictions with an uncertainty (mean and variance, evidential,
        quantiles, Dirichlet) only what Chemprop predicts is returned, which is the first number.
    output
        Which task of a multiclass model with several tasks.

    Returns
    -------
    ChempropModel
        With ``mode`` and ``task``, which say what it predicts; explainers read ``mode``.

    Raises
    ------
    TypeError
        If it is not a model of one molecule: several components, reactions, or predictions of atoms
        and bonds.
    """
    models = require("chemprop.models", extra="chemprop")
    kinds = {"MulticomponentMPNN": "several molecules", "MolAtomBondMPNN": "atoms and bonds"}
    name = type(mpnn).__name__
    if name in kinds or not isinstance(mpnn, models.MPNN):
        reads = f", a model of {kinds[name]}" if name in kinds else ""
        raise TypeError(f"mpnn must be a chemprop.models.MPNN of one molecule (got {name}{reads})")
    if _reads_reactions(mpnn):
        raise TypeError(
            "mpnn must be a chemprop.models.MPNN of one molecule (got one that reads condensed "
            "graphs of reactions)"
        )
    one_of(return_type, ("raw", "probs"), name="return_type")
    return ChempropModel(mpnn, return_type, output)


def _reads_reactions(mpnn: Any) -> bool:
    """Whether atoms and bonds have the features of reactions, by any of Chemprop's sets."""
    made = require("chemprop.featurizers", extra="chemprop")
    settings = mpnn.message_passing.hparams
    widths = {
        made.CondensedGraphOfReactionFeaturizer(
            atom_featurizer=single.atom_featurizer, bond_featurizer=single.bond_featurizer
        ).shape
        for single in map(_featurizer, FEATURES)
    }
    return (int(settings["d_v"]), int(settings["d_e"])) in widths


def load(path: Any, *, trust: bool = False, **options: Any) -> ChempropModel:
    """A wrapped model from a file of Chemprop 2: ``.pt``, or a ``.ckpt`` of its training.

    Parameters
    ----------
    path
        The file.
    trust
        Whether to run what the file asks for while it is read, as Chemprop itself does. By default
        only tensors, plain containers and Chemprop's own layers are read, and a file that holds
        anything else is refused.
    options
        As for :func:`wrap`.

    Warns
    -----
    UserWarning
        If the settings of the training, which Chemprop writes beside the file, say that molecules
        were read in another way than :func:`graph` reads a SMILES: with hydrogens, for example.
    """
    model = _loaded(path, trust, **options)
    if model.reading:
        warnings.warn(_how_to_read(path, model.reading), stacklevel=2)
    return model


def load_for_smiles(path: Any, *, trust: bool = False) -> ChempropModel:
    """The same as :func:`load` for graphs that are made of SMILES alone, as in the command line.

    Raises
    ------
    ValueError
        Where :func:`load` warns.
    """
    model = _loaded(path, trust)
    if model.reading:
        raise ValueError(_how_to_read(path, model.reading))
    return model


def _loaded(path: Any, trust: bool, **options: Any) -> ChempropModel:
    loaded = load_checkpoint(path, trust=trust)
    try:
        model = wrap(loaded.mpnn, **options)
    except TypeError as error:
        raise ValueError(f"{path} cannot be explained: {error}") from error
    model.target_names, model.reading = loaded.target_names, loaded.reading
    model.split = loaded.split
    return model.eval()


def _how_to_read(path: Any, reading: tuple[str, ...]) -> str:
    flags = ", ".join("--" + option.replace("_", "-") for option in reading)
    call = ", ".join(f"{option}=True" for option in reading)
    return (
        f"{path} was trained with {flags}, so that a SMILES alone does not give its graphs: "
        f"explain it from Python, with graph(chemprop.utils.make_mol(smiles, {call}))"
    )


class ChempropModel(nn.Module):
    """A Chemprop model that takes the fields of :func:`graph`; made by :func:`wrap`.

    Attributes
    ----------
    mpnn
        The model of Chemprop.
    task
        ``"regression"``, ``"binary"``, ``"multilabel"`` (several binary tasks) or
        ``"classification"``.
    mode
        The same by PyG's name, as :func:`gstarx.explain` takes it.
    return_type
        ``"raw"`` or ``"probs"``.
    features
        Which of :data:`FEATURES` it reads, or ``None`` if they are of another width.
    target_names
        Names of its outputs, if known.
    reading
        Options of ``chemprop.utils.make_mol`` that molecules were read with in training.
    split
        Which molecules it was trained on, from the ``splits.json`` beside its file, if known.
    message_rounds
        How often messages are passed.
    """

    def __init__(self, mpnn: Any, return_type: str, output: int | None) -> None:
        super().__init__()
        layers = require("chemprop.nn", extra="chemprop")
        self.mpnn, self.return_type = mpnn, return_type
        predictor = mpnn.predictor
        self.output = _checked_output(predictor, output, layers)
        if isinstance(predictor, layers.MulticlassClassificationFFN):
            self.task = "classification"
        elif isinstance(predictor, layers.predictors.BinaryClassificationFFNBase):
            self.task = "binary" if predictor.n_tasks == 1 else "multilabel"
        else:
            self.task = "regression"
        self.mode = TASKS[self.task]
        self.target_names: tuple[str, ...] = ()
        self.reading: tuple[str, ...] = ()
        self.split: SplitRecord | None = None
        passing = mpnn.message_passing
        self.message_rounds = int(passing.depth)
        self.widths = int(passing.hparams["d_v"]), int(passing.hparams["d_e"])
        self._atom_extra = int(passing.hparams.get("d_vd") or 0)
        self._extra = int(predictor.input_dim) - int(passing.output_dim)
        self.features = next((name for name in FEATURES if _widths(name) == self.widths), None)

    def featurize(self, molecule: str | Any) -> EdgeNamingData:
        """A SMILES, or a ``Mol`` of RDKit, as a graph that the model reads: :func:`graph`."""
        if self.reading and isinstance(molecule, str):
            raise ValueError(_how_to_read("the model", self.reading))
        if self.features is None:
            raise ValueError(
                "the model reads features of its own: pass the graph that "
                f"gstarx.integrations.chemprop.graph(...) makes with them (got {molecule!r})"
            )
        return graph(molecule, features=self.features)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        batch: Tensor | None = None,
        rev_edge_index: Tensor | None = None,
        v_d: Tensor | None = None,
        x_d: Tensor | None = None,
    ) -> Tensor:
        """Outputs (graphs, columns).

        Without ``rev_edge_index`` a message is kept for each way of every bond, which gives the
        same outputs; explainers use it where coalitions share embeddings.
        """
        self._check(x, edge_attr, v_d, x_d)
        batch = edge_index.new_zeros(len(x)) if batch is None else batch
        graphs = _MolecularGraphs(x, edge_attr, edge_index, rev_edge_index, batch)
        if rev_edge_index is not None:
            return self._returned(self.mpnn.fingerprint(graphs, v_d, x_d))
        mpnn = self.mpnn
        hidden = _both_ways(mpnn.message_passing, graphs, v_d)
        pooled = mpnn.bn(_aggregated(mpnn.agg, hidden, batch))
        if x_d is not None:
            pooled = torch.cat([pooled, mpnn.X_d_transform(x_d)], dim=1)
        return self._returned(pooled)

    def _returned(self, fingerprint: Tensor) -> Tensor:
        """Outputs of the predictor as this model returns them."""
        predicted: Tensor = self.mpnn.predictor(fingerprint)
        # where there are logits, they stay finite where the probabilities are 0 or 1
        logits = type(self.mpnn.predictor).__name__ in _WITH_LOGITS and self.return_type == "raw"
        if logits:
            predicted = self.mpnn.predictor.train_step(fingerprint)
        if self.task == "classification":
            chosen = predicted[:, self.output]
            return chosen if logits or self.return_type == "probs" else chosen.log()
        if predicted.dim() == 3:  # the mean, and what says how certain it is
            predicted = predicted[..., 0]
        raw = self.task != "regression" and self.return_type == "raw" and not logits
        return predicted.logit() if raw else predicted

    def _check(self, x: Tensor, edge_attr: Tensor, v_d: Tensor | None, x_d: Tensor | None) -> None:
        """Raise where a graph lacks features that the model reads."""
        got = x.shape[1], edge_attr.shape[1]
        if got != self.widths:
            made = f"graph(smiles, features={self.features!r})" if self.features else "graph(...)"
            more = "" if self.features else " with atom_features=... and bond_features=..."
            raise ValueError(
                f"the model reads {self.widths[0]} numbers of an atom and {self.widths[1]} of a "
                f"bond (got {got[0]} and {got[1]}): make the graph with {made}{more}"
            )
        for name, field, width, what in (
            ("v_d", v_d, self._atom_extra, "an atom"),
            ("x_d", x_d, self._extra, "the molecule"),
        ):
            has = 0 if field is None else field.shape[1]
            if has != width:
                raise ValueError(
                    f"the model reads {width} extra descriptors of {what}, which a SMILES does not "
                    f"give (got {has}): make the graph with graph(smiles, {name}=...)"
                )


def _checked_output(predictor: Any, output: int | None, layers: Any) -> int:
    several = isinstance(predictor, layers.MulticlassClassificationFFN) and predictor.n_tasks > 1
    if several and (output is None or not 0 <= output < predictor.n_tasks):
        raise ValueError(
            f"the model has {predictor.n_tasks} multiclass tasks: choose one with output=0.."
            f"{predictor.n_tasks - 1} of wrap or load, which a factory of your own can do for the "
            f"command line (got {output})"
        )
    if output is not None and not several:
        raise ValueError(
            "output is for multiclass models with several tasks; choose one of other outputs with "
            f"explain(..., target=...) (got {output})"
        )
    return output or 0


def _both_ways(passing: Any, graphs: Any, v_d: Tensor | None) -> Tensor:
    """Chemprop's message passing without the numbers of reverse bonds: (atoms, width).

    ``there`` are messages along the edges, and ``back`` those that would go against them. Only
    messages along edges reach an atom, so the edges need not come in pairs.
    """
    nn_ = require("chemprop.nn", extra="chemprop")
    bonds = type(passing) is nn_.BondMessagePassing
    if not bonds and type(passing) is not nn_.AtomMessagePassing:
        raise NotImplementedError(f"{type(passing).__name__} needs rev_edge_index")
    graphs = passing.graph_transform(graphs)
    atoms, edges, (source, target) = graphs.V, graphs.E, graphs.edge_index

    def started(ends: Tensor) -> Tensor:
        read = torch.cat([atoms[ends], edges], dim=1) if bonds else atoms[ends]
        return passing.W_i(read)  # type: ignore[no-any-return]

    def heard(messages: Tensor) -> Tensor:
        return messages.new_zeros(len(atoms), messages.shape[1]).index_add_(0, target, messages)

    first, back_first = started(source), started(target)
    there, back = passing.tau(first), passing.tau(back_first)
    for _ in range(1, passing.depth):
        if passing.undirected:
            there = back = (there + back) / 2
        if bonds:
            sums = heard(there)
            new, new_back = sums[source] - back, sums[target] - there
        else:
            sums = heard(torch.cat([there, edges], dim=1))
            new, new_back = sums[source], sums[target]
        there = passing.update(new, first)
        if bonds or passing.undirected:
            back = passing.update(new_back, back_first)
    return passing.finalize(heard(there), atoms, v_d)  # type: ignore[no-any-return]


def _aggregated(aggregation: Any, hidden: Tensor, batch: Tensor) -> Tensor:
    """Chemprop's readouts as plain sums over the atoms of every molecule."""
    nn_ = require("chemprop.nn", extra="chemprop")
    kind = type(aggregation)
    graphs = int(batch.max()) + 1

    def summed(rows: Tensor) -> Tensor:
        index = batch.reshape(-1, 1).expand(-1, rows.shape[1])
        return rows.new_zeros(graphs, rows.shape[1]).scatter_add_(0, index, rows)

    if kind is nn_.SumAggregation:
        return summed(hidden)
    if kind is nn_.NormAggregation:
        return summed(hidden) / float(aggregation.norm)
    if kind is nn_.MeanAggregation:
        return summed(hidden) / torch.bincount(batch, minlength=graphs)[:, None]
    if kind is nn_.AttentiveAggregation:
        weights = aggregation.W(hidden).exp()
        return summed(weights * hidden) / summed(weights)
    raise NotImplementedError(f"{kind.__name__} needs rev_edge_index")


def graph(
    smiles: str | Any,
    *,
    features: str = "v2",
    x_d: ArrayLike | None = None,
    v_d: ArrayLike | None = None,
    atom_features: ArrayLike | None = None,
    bond_features: ArrayLike | None = None,
) -> EdgeNamingData:
    """A molecule as a graph with Chemprop's features.

    Parameters
    ----------
    smiles
        The molecule, as SMILES or as a ``Mol`` of RDKit. Node ``i`` is its atom ``i``; hydrogens
        that are implicit are not nodes. For a model that was trained with ``--add-h``, ``--keep-h``
        or ``--ignore-stereo``, pass ``chemprop.utils.make_mol(smiles, add_h=True)`` or alike.
    features
        The set of features that the model was trained with, one of :data:`FEATURES`; ``"v2"`` is
        Chemprop's default.
    x_d
        Extra descriptors of the molecule (d,), if the model reads any. They are the same in every
        coalition: scores share among atoms what the prediction owes to the graph, given these.
    v_d
        Extra descriptors of every atom (n, d), which come and go with the atom.
    atom_features, bond_features
        Extra features of atoms (n, d) and bonds (bonds, d) that go through message passing.

    Returns
    -------
    Data
        With ``x``, ``edge_index``, ``edge_attr``, ``rev_edge_index``, ``atoms`` and ``smiles``, or
        ``bonds``, their orders, if no SMILES has these atoms in this order.

    Raises
    ------
    ValueError
        If RDKit cannot read the molecule.
    """
    chem = require("rdkit.Chem", extra="chemprop")
    if isinstance(smiles, str):
        molecule, reason = read_molecule(smiles)
        if molecule is None:
            raise ValueError(f"{reason}: {quoted(smiles)}")
    elif isinstance(smiles, chem.Mol):
        molecule, smiles = smiles, _smiles_in_order(chem, smiles)
        if not molecule.GetNumAtoms():
            raise ValueError("the molecule has no atoms")
    else:
        raise TypeError(f"smiles must be a SMILES or a Mol of RDKit (got {type(smiles).__name__})")
    atoms, bonds = molecule.GetNumAtoms(), molecule.GetNumBonds()
    extra = [
        None if values is None else _table(values, name, rows, what)
        for values, name, rows, what in (
            (atom_features, "atom_features", atoms, "each atom"),
            (bond_features, "bond_features", bonds, "each bond"),
        )
    ]
    widths = [0 if table is None else table.shape[1] for table in extra]
    made = _featurizer(features, *widths)(molecule, *extra)
    fields: dict[str, Any] = {"smiles": smiles}
    if smiles is None:
        orders = [bond.GetBondTypeAsDouble() for bond in molecule.GetBonds()]
        fields = {"bonds": torch.tensor(orders, dtype=torch.float).repeat_interleave(2)}
    if x_d is not None:
        fields["x_d"] = torch.from_numpy(_table(x_d, "x_d", 1, "the molecule"))
    if v_d is not None:
        fields["v_d"] = torch.from_numpy(_table(v_d, "v_d", atoms, "each atom"))
    return EdgeNamingData(
        x=_tensor(made.V),
        edge_index=torch.from_numpy(np.asarray(made.edge_index, dtype=np.int64).reshape(2, -1)),
        edge_attr=_tensor(made.E),
        rev_edge_index=torch.from_numpy(np.array(made.rev_edge_index, dtype=np.int64)),
        atoms=[atom.GetSymbol() for atom in molecule.GetAtoms()],
        **fields,
    )


def _smiles_in_order(chem: Any, molecule: Any) -> str | None:
    """A SMILES that is read as the atoms of the molecule in their order, if there is one."""
    if not molecule.GetNumAtoms():
        return None
    written = chem.MolToSmiles(molecule, canonical=False, rootedAtAtom=0)
    order = molecule.GetProp("_smilesAtomOutputOrder").strip("[],").split(",")
    parsed = chem.MolFromSmiles(written)
    same = parsed is not None and parsed.GetNumAtoms() == molecule.GetNumAtoms()
    in_order = [int(at) for at in order] == list(range(molecule.GetNumAtoms()))
    return str(written) if same and in_order else None


def _tensor(values: ArrayLike) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float32))


def _table(values: ArrayLike, name: str, rows: int, what: str) -> NDArray[np.float32]:
    """Extra numbers as a table with a row for every atom or bond, or for the molecule."""
    table = np.asarray(values, dtype=np.float32)
    if table.ndim == 1:
        table = table[None] if what == "the molecule" else table[:, None]
    if table.ndim != 2 or len(table) != rows:
        got = "x".join(map(str, np.shape(values)))
        raise ValueError(f"{name} must have {rows} row(s), for {what} (got {got} numbers)")
    if not np.isfinite(table).all():
        raise ValueError(f"{name} must be finite (got nan or inf)")
    return table


def _featurizer(features: str, extra_atom: int = 0, extra_bond: int = 0) -> Any:
    """Chemprop's featurizer of molecules by the name of a set of features."""
    one_of(features, FEATURES, name="features")
    made = require("chemprop.featurizers", extra="chemprop")
    options: dict[str, Any] = {}
    if features == "rigr":
        atom = require("chemprop.featurizers.atom", extra="chemprop").RIGRAtomFeaturizer()
        bond = require("chemprop.featurizers.bond", extra="chemprop").RIGRBondFeaturizer()
        options = {"atom_featurizer": atom, "bond_featurizer": bond}
    elif features != "v2":
        options = {"atom_featurizer": getattr(made.MultiHotAtomFeaturizer, features)()}
    return made.SimpleMoleculeMolGraphFeaturizer(
        extra_atom_fdim=extra_atom, extra_bond_fdim=extra_bond, **options
    )


def _widths(features: str) -> tuple[int, int]:
    featurizer = _featurizer(features)
    return int(featurizer.atom_fdim), int(featurizer.bond_fdim)
