"""Exact Myerson scores of a Chemprop model, against the `myerson` package's explainer of Chemprop.

Both get the same model, an MPNN of Chemprop's default width, and the same molecules. Chemprop's
callback takes exact values up to 20 atoms, which take minutes, and 1,000 samples above; here it is
exact up to 14 atoms. CPU seconds.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch

from gstarx import explain

#: Drug-like molecules by their number of atoms.
MOLECULES = {
    8: "CC(=O)NCCCO",
    11: "CC(=O)Nc1ccc(O)cc1",
    14: "CC(=O)Nc1ccc(OCC)cc1C",
    20: "COc1ccc(CCNC)c(OC)c1CCOC(C)=O",
    30: "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1OC(=O)c1ccccc1",
}
#: Up to how many atoms the other package is exact, and how many samples it draws above.
EXACT, SAMPLES = 14, 1000


def main() -> None:
    warnings.simplefilter("ignore")
    from chemprop import nn
    from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
    from chemprop.models import MPNN
    from myerson.chemprop_explain import MyersonExplainer, MyersonSamplingExplainer
    from rdkit import Chem

    from gstarx.integrations import chemprop

    torch.manual_seed(0)
    mpnn = MPNN(nn.BondMessagePassing(), nn.MeanAggregation(), nn.RegressionFFN()).eval()
    model = chemprop.wrap(mpnn)
    explain(model, chemprop.graph("CCO"), mode="regression", value="myerson", share=True)
    for smiles in MOLECULES.values():
        graph = chemprop.graph(smiles)
        atoms = int(graph.num_nodes)
        molgraph = SimpleMoleculeMolGraphFeaturizer()(Chem.MolFromSmiles(smiles))
        start = time.process_time()
        ours = explain(model, graph, mode="regression", value="myerson", baseline=0)
        spent = time.process_time() - start
        line = f"{atoms:2d} atoms: {spent:7.2f} s, exact={ours.exact}, {ours.evaluations:,} parts"
        start = time.process_time()
        with torch.no_grad():
            if atoms <= EXACT:
                theirs = MyersonExplainer(molgraph, mpnn).calculate_all_myerson_values()
            else:
                sampler = MyersonSamplingExplainer(
                    molgraph, mpnn, seed=0, number_of_samples=SAMPLES
                )
                theirs = sampler.sample_all_myerson_values()
        other = time.process_time() - start
        gap = np.abs(np.asarray(theirs).reshape(-1) - ours.scores.numpy())
        how = "exact" if atoms <= EXACT else f"{SAMPLES} samples"
        size = float(ours.scores.abs().max())
        line += f"; myerson {how} {other:7.2f} s, {other / spent:6.1f} times more, largest "
        print(line + f"difference {gap.max():.1e} where scores reach {size:.2g}", flush=True)
