"""Chemprop models, trained for a moment or not at all; importing this needs Chemprop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from chemprop import nn as layers
from chemprop.data import BatchMolGraph, MoleculeDatapoint, MoleculeDataset
from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
from chemprop.models import MPNN
from rdkit import Chem

WIDTH = 12
#: 11 atoms.
PARACETAMOL = "CC(=O)Nc1ccc(O)cc1"
MOLECULES = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O", "CCCCO", "Oc1ccccc1C", "CCCl", "NCCO"]

PREDICTORS = {
    "regression": lambda n: layers.RegressionFFN(
        input_dim=n, output_transform=layers.UnscaleTransform([3.0], [5.0])
    ),
    "several regressions": lambda n: layers.RegressionFFN(n_tasks=3, input_dim=n),
    "mean and variance": lambda n: layers.MveFFN(
        n_tasks=2,
        input_dim=n,
        output_transform=layers.UnscaleTransform([3.0, -1.0], [5.0, 2.0]),
    ),
    "evidential": lambda n: layers.EvidentialFFN(input_dim=n),
    "quantiles": lambda n: layers.predictors.QuantileFFN(input_dim=n),
    "spectrum": lambda n: layers.SpectralFFN(n_tasks=4, input_dim=n),
    "binary": lambda n: layers.BinaryClassificationFFN(input_dim=n),
    "several binaries": lambda n: layers.BinaryClassificationFFN(n_tasks=3, input_dim=n),
    "binary Dirichlet": lambda n: layers.predictors.BinaryDirichletFFN(input_dim=n),
    "multiclass": lambda n: layers.MulticlassClassificationFFN(n_classes=3, input_dim=n),
    "multiclass Dirichlet": lambda n: layers.predictors.MulticlassDirichletFFN(
        n_classes=3, input_dim=n
    ),
}
AGGREGATIONS = {
    "mean": layers.MeanAggregation,
    "sum": layers.SumAggregation,
    "norm": lambda: layers.NormAggregation(norm=7.0),
    "attentive": lambda: layers.AttentiveAggregation(output_size=WIDTH),
}
PASSING = {
    "bonds": layers.BondMessagePassing,
    "atoms": layers.AtomMessagePassing,
}


def network(
    predictor: str = "regression",
    aggregation: str = "mean",
    passing: str = "bonds",
    *,
    extra: int = 0,
    seed: int = 0,
    **options: Any,
) -> MPNN:
    """A model with random weights, none of them zero."""
    torch.manual_seed(seed)
    model = MPNN(
        PASSING[passing](d_h=WIDTH, depth=3, **options),
        AGGREGATIONS[aggregation](),
        PREDICTORS[predictor](WIDTH + extra),
        batch_norm=True,
        X_d_transform=layers.ScaleTransform([1.0] * extra, [2.0] * extra) if extra else None,
    )
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.bn.running_mean.normal_()
    return model.eval()


def molecular_graph(smiles: str) -> Any:
    """Chemprop's own graph of a molecule."""
    return SimpleMoleculeMolGraphFeaturizer()(Chem.MolFromSmiles(smiles))


def predicted(model: MPNN, smiles: str, x_d: Any = None) -> torch.Tensor:
    """What Chemprop itself predicts."""
    with torch.no_grad():
        extra = None if x_d is None else torch.as_tensor(x_d, dtype=torch.float)[None]
        return model(BatchMolGraph([molecular_graph(smiles)]), None, extra)[0]


def trained(predictor: str) -> MPNN:
    """A small model trained for a few epochs: oxygen atoms count, or whether there is one."""
    from chemprop.data import collate_batch

    labels = [float(smiles.upper().count("O")) for smiles in MOLECULES]
    if predictor != "regression":
        labels = [float(label > 0) for label in labels]
    torch.manual_seed(0)
    model = MPNN(
        layers.BondMessagePassing(d_h=WIDTH, depth=2),
        layers.SumAggregation(),
        layers.RegressionFFN(input_dim=WIDTH)
        if predictor == "regression"
        else layers.BinaryClassificationFFN(input_dim=WIDTH),
    )
    points = [
        MoleculeDatapoint.from_smi(smiles, [label])
        for smiles, label in zip(MOLECULES, labels, strict=True)
    ]
    dataset = MoleculeDataset(points)
    batch = collate_batch([dataset[at] for at in range(len(dataset))])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    loss_of = (
        torch.nn.functional.mse_loss
        if predictor == "regression"
        else torch.nn.functional.binary_cross_entropy_with_logits
    )
    for _ in range(60):
        optimizer.zero_grad()
        outputs = model.predictor.train_step(model.fingerprint(batch.bmg))
        loss = loss_of(outputs, batch.Y)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1
    return model.eval()


def rows(count: int, columns: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(count, columns)).astype(np.float32)
