"""What needs the networks: predictions, counterfactual pairs, and robust fidelity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gstarx import Judge
from gstarx._internal.files import write_atomically
from gstarx.gnn import graph_outputs
from gstarx.metrics import reference_of, select_nodes
from gstarx_bench.datasets import check_counterfactuals, planted
from reproduction import checked
from reproduction.ground_truth import FOLDER, NETWORKS, RULES, TASKS
from reproduction.ground_truth.explaining import FEW, graphs_to_explain, load_network, load_task
from reproduction.ground_truth.methods import METHODS
from reproduction.ground_truth.rows import TruthRows
from reproduction.setups import chosen

#: The share of nodes that a selection leaves out, and random deletions of each kind.
_SPARSITY, _DELETIONS = 0.7, 20
#: Molecules from which counterfactual pairs are made.
_PAIRS = 100


def measure_networks(setups: Sequence[str] = (), *, folder: Path = FOLDER) -> None:
    """Measure what is not measured yet: notes in ``networks.json``, robust fidelity in the rows."""
    every = [f"{task}-{network}" for network in NETWORKS for task in TASKS]
    for setup in checked("setup", setups, every):
        rows = TruthRows(setup, folder)
        if not rows.table.num_rows:
            continue
        notes = read_notes(folder)
        if setup not in notes:
            notes[setup] = _notes(setup)
            text = json.dumps(notes, indent=1, sort_keys=True) + "\n"
            write_atomically(folder / "networks.json", text.encode())
        _robustness(setup, rows)
        print(f"{setup}: measured", flush=True)


def read_notes(folder: Path = FOLDER) -> dict[str, Any]:
    """What is known about the networks, by setup."""
    path = folder / "networks.json"
    notes: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return notes


def _notes(setup: str) -> dict[str, Any]:
    """Positives that the network misses, and pairs on which it is right."""
    task = setup.split("-")[0]
    dataset, model = load_task(task), load_network(setup)
    positions = graphs_to_explain(task, METHODS["CAM"], whole=True)
    tested = len(dataset.split_indices["test"])
    left_out = tested - len(positions)
    if dataset.task == "regression":
        return {"test": tested, "left_out": left_out}
    outputs = torch.cat(list(graph_outputs(model, [dataset[at] for at in positions])))
    shares = outputs.softmax(dim=1)[:, 1].tolist()
    test = [dataset[at] for at in chosen(dataset.split_indices["test"], None)]
    positive = [graph.smiles for graph in test if int(graph.y)][:_PAIRS]
    negative = [graph.smiles for graph in test if not int(graph.y)][:10]
    pairs = planted("group", smiles=positive + negative, rule=RULES[task], size=_PAIRS + 10)
    check = check_counterfactuals(model, pairs)
    return {
        "test": tested,
        "left_out": left_out,
        "missed": [at for at, share in zip(positions, shares, strict=True) if share <= 0.5],
        "pairs": check.pairs,
        "pairs_right": check.right,
    }


def _robustness(setup: str, rows: TruthRows) -> None:
    """Fidelity less inverse fidelity under random partial deletion, on a few graphs."""
    task = setup.split("-")[0]
    dataset, model = load_task(task), load_network(setup)
    regression = dataset.task == "regression"
    few = graphs_to_explain(task, METHODS["CAM"])[: FEW[task]]
    reference = reference_of(model, dataset.split("val")) if regression else None
    measured = []
    for method in METHODS.values():
        for at, row in rows.of(method).items():
            if at not in few or row["scores"] is None or row["robust_fidelity"] is not None:
                continue
            nodes = select_nodes(np.array(row["scores"]), _SPARSITY)
            robust = Judge(
                model,
                task="regression" if regression else "multiclass_classification",
                reference=reference,
            ).robust(
                dataset[at], nodes, samples=_DELETIONS, seed=0, target=None if regression else 1
            )
            measured.append({**row, "robust_fidelity": robust.fidelity - robust.inverse_fidelity})
    if measured:
        rows.add(measured)
