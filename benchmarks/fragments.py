"""BRICS fragments as players on BBBP and BACE test molecules, against atoms.

Needs ``GSTARX_DATA`` and ``GSTARX_CHECKPOINTS``. Every molecule of the test split is explained by
its fragments and by its atoms, and the selected fragments are compared with as many atoms: the
fragments with the highest scores, a fifth of them and one at the least, against the same number of
atoms with the highest scores. Removal and metrics are those of nodes for both. Molecules become
rows of ``benchmarks/results/fragments.csv`` at once, and what is there is not measured again.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.players import add_row, interval, loaded, rows_of
from gstarx import Judge, explain
from gstarx.players import brics

ROWS = Path(__file__).parent / "results" / "fragments.csv"
_FIELDS = (
    "data",
    "graph",
    "value",
    "atoms",
    "fragments",
    "exact",
    "evaluations",
    "cpu_seconds",
    "atom_exact",
    "atom_evaluations",
    "atom_cpu_seconds",
    "selected_atoms",
    "fragment_h",
    "atom_h",
    "random_h",
)
_KEPT = 0.2
#: For scores of atoms, which are rarely exact.
_BUDGET = 5_000
_DRAWS = 10


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    values = os.environ.get("GSTARX_VALUES", "default shapley hn").split()
    for value in values:
        for name in ("bbbp", "bace"):
            _measure(name, value)
    _summary()


def _explained(model: Any, data: Any, value: str, seed: int, **options: Any) -> tuple[Any, float]:
    start = time.process_time()
    named = {"default": {}, "hn": {"value": "hn", "baseline": "uniform"}}
    chosen = named.get(value, {"value": value})
    found = explain(model, data, seed=seed, **chosen, **options)
    return found, time.process_time() - start


def _measure(name: str, value: str) -> None:
    dataset, model = loaded(name)
    done = {(row["data"], row["graph"], row["value"]) for row in rows_of(ROWS)}
    for at, data in enumerate(dataset.split("test")):
        if (name, str(at), value) in done or not data.get("smiles"):
            continue
        groups, seconds = _explained(model, data, value, at, players=brics)
        atoms, atom_seconds = _explained(model, data, value, at, budget=_BUDGET)
        best = groups.select(size=max(1, round(_KEPT * len(groups.players))))
        nodes = groups.nodes_of(best)
        draw = np.random.default_rng(at)
        chosen = [nodes, atoms.select(size=len(nodes))]
        chosen += [draw.permutation(data.num_nodes)[: len(nodes)] for _ in range(_DRAWS)]
        (judged,) = Judge(model).many([data], [chosen])
        heights = [one.harmonic_fidelity for one in judged]
        row = {
            "data": name,
            "graph": at,
            "value": value,
            "atoms": data.num_nodes,
            "fragments": len(groups.players),
            "exact": int(bool(groups.exact)),
            "evaluations": groups.evaluations,
            "cpu_seconds": seconds,
            "atom_exact": int(bool(atoms.exact)),
            "atom_evaluations": atoms.evaluations,
            "atom_cpu_seconds": atom_seconds,
            "selected_atoms": len(nodes),
            "fragment_h": heights[0],
            "atom_h": heights[1],
            "random_h": float(np.mean(heights[2:])),
        }
        add_row(ROWS, _FIELDS, row)


def _summary() -> None:
    by_case: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(ROWS):
        by_case[row["data"], row["value"]].append(row)
    for (name, value), rows in by_case.items():
        table = {key: np.array([float(row[key]) for row in rows]) for key in _FIELDS[3:]}
        heights = [f"{key[:-2]} {_shown(table[key])}" for key in _FIELDS[-3:]]
        print(
            f"{name}, {value}: {len(rows)} molecules, {table['atoms'].mean():.1f} atoms, "
            f"{table['fragments'].mean():.1f} fragments (most {table['fragments'].max():.0f}); "
            f"exact {table['exact'].mean():.1%}, {table['evaluations'].mean():.0f} evaluations, "
            f"{table['cpu_seconds'].mean():.3f} CPU s; atoms exact "
            f"{table['atom_exact'].mean():.1%}, "
            f"{table['atom_evaluations'].mean():.0f} evaluations, "
            f"{table['atom_cpu_seconds'].mean():.3f} CPU s; H-fidelity with "
            f"{table['selected_atoms'].mean():.1f} atoms: {', '.join(heights)}, "
            f"fragments less atoms {_shown(table['fragment_h'] - table['atom_h'])}"
        )


def _shown(values: Any) -> str:
    mean, low, high = interval(values)
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
