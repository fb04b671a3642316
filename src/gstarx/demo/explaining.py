"""A network trained on the spot, and which atoms made it decide."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch
from torch_geometric.explain import Explanation
from tqdm import tqdm

from gstarx.coalitions import expected_output
from gstarx.demo.molecules import ATOMS, Molecule, draw_molecule, draw_molecules
from gstarx.demo.worked import print_table
from gstarx.explainers import explain
from gstarx.models import GCN

_BUDGET = 100
_WIDTH = 24


def train(molecules: list[Molecule], *, epochs: int) -> GCN:
    """A graph convolutional network that tells molecules with a nitro group from others.

    The same weights on every run: the random numbers are seeded, and nobody else's are touched.
    """
    batch = Batch.from_data_list([molecule.graph for molecule in molecules])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GCN(len(ATOMS), 32, 2, num_layers=3)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        # silent when it is over within two seconds
        for _ in tqdm(range(epochs), desc="training", delay=2, leave=False):
            optimizer.zero_grad()
            loss = cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return model.eval()


def accuracy(model: GCN, molecules: list[Molecule]) -> float:
    """Share of molecules that the network puts into their class."""
    batch = Batch.from_data_list([molecule.graph for molecule in molecules])
    with torch.inference_mode():
        found = model(batch.x, batch.edge_index, batch.batch).argmax(dim=1)
    return float((found == batch.y).float().mean())


def bar(score: float, scale: float, *, width: int = 20) -> str:
    """A bar of ``width`` signs at ``scale``: to the right of the axis, or to the left if negative.

    >>> print(bar(1.0, 1.0, width=4), bar(-0.5, 1.0, width=4), sep="!")
        |####!  --|
    """
    length = round(width * abs(score) / scale) if scale else 0
    left, right = ("-" * length, "") if score < 0 else ("", "#" * length)
    return f"{left:>{width}}|{right:<{width}}" if right else f"{left:>{width}}|"


def show_scores(molecule: Molecule, found: Explanation, *, top: int = 3) -> None:
    """Atoms in reading order, the highest scores marked with a star."""
    scores = found.node_mask[:, 0]
    best = set(scores.topk(top).indices.tolist())
    below = float((-scores).clamp(min=0).max())
    scale = float(scores.abs().max())
    # no wider to the left of the axis than the most negative score needs
    margin = _WIDTH - math.ceil(_WIDTH * below / scale) if scale else 0
    for i, score in enumerate(scores.tolist()):
        drawn = bar(score, scale, width=_WIDTH)[margin:].rstrip()
        mark = "*" if i in best else " "
        name = f"{molecule.atoms[i]:<2} {molecule.parts[i]}"
        print(f"  {i:>2} {name:<12} {score:+.3f} {mark} {drawn}")
    named = sorted(f"{molecule.atoms[i]}{i}" for i in best)
    right = sum(molecule.parts[i] == "nitro" for i in best)
    print(f"\n  The {top} highest ({', '.join(named)}): {right} of them belong to the nitro group.")


def show_exact(molecule: Molecule, model: GCN, mean: Tensor) -> tuple[Explanation, bool]:
    """Explain a molecule exactly; returns the explanation and whether it shares out the worth."""
    began = perf_counter()
    found = explain(model, molecule.graph, target=1, baseline=mean)
    seconds = perf_counter() - began
    chance, total = float(found.prediction.softmax(0)[1]), float(found.node_mask.sum())
    print(f"A molecule of {len(molecule.atoms)} atoms: nitro group with probability {chance:.3f},")
    print(f"which is {float(found.worth):+.3f} against the mean of all molecules.\n")
    show_scores(molecule, found)
    complete = abs(total - float(found.worth)) < 1e-5
    print(
        f"  The scores sum to {total:+.3f}, {'as they should' if complete else 'WHICH IS WRONG'}:"
    )
    print(f"  exact, from {found.evaluations:,} connected coalitions, in {seconds:.3f} seconds.\n")
    return found, complete


def show_budget(molecule: Molecule, model: GCN, mean: Tensor, exact: Explanation) -> None:
    """The same from a budget, with standard errors, beside the exact scores."""
    began = perf_counter()
    found = explain(model, molecule.graph, target=1, baseline=mean, budget=_BUDGET, seed=0)
    seconds = perf_counter() - began
    print(f"The same molecule with {_BUDGET} of its {exact.evaluations:,} coalitions:\n")
    rows = [
        [
            f"{i:>2} {molecule.atoms[i]:<2} {molecule.parts[i]}",
            f"{float(exact.node_mask[i]):+.3f}",
            f"{float(found.node_mask[i]):+.3f} ± {float(found.node_std_error[i]):.3f}",
        ]
        for i in range(len(molecule.atoms))
    ]
    print_table(["atom", "exact", "estimate"], rows)
    off = (found.node_mask - exact.node_mask).abs()
    inside = int((off <= 2 * found.node_std_error).sum())
    print(f"  {found.evaluations} coalitions, {seconds:.3f} seconds; {inside} of {len(off)} exact")
    print("  scores lie within two standard errors.")


def show_explanations(*, epochs: int) -> bool:
    """Train, explain two molecules; returns whether exact scores sum to the worth."""
    print("Now a graph neural network. 300 made-up molecules, half of them with a nitro group; the")
    print("others have the same atoms bound otherwise.\n")
    learned, unseen = draw_molecules(300, seed=0), draw_molecules(100, seed=1)
    began = perf_counter()
    model = train(learned, epochs=epochs)
    seconds = perf_counter() - began
    right = accuracy(model, unseen)
    print(f"A GCN of three layers, trained for {epochs} epochs in {seconds:.1f} seconds, is right")
    print(f"about {right:.0%} of {len(unseen)} molecules it has not seen.\n")
    mean = expected_output(model, [molecule.graph for molecule in learned])
    rng = np.random.default_rng(5)
    small, large = (draw_molecule(rng, nitro=True, rings=rings) for rings in (1, 2))
    # what is compiled on first use is not timed
    explain(model, small.graph, budget=_BUDGET // 2, seed=0)
    _, complete = show_exact(small, model, mean)
    print("  Below zero: coalitions are on balance worth less because the atom is there.\n")
    exact, also = show_exact(large, model, mean)
    show_budget(large, model, mean, exact)
    return complete and also
