"""Two workers against one, beside two bare forward-pass processes against one.

A model-bound run: exact HN values on nitro molecules with a GCN of width 128. Rates of runs are
taken from when rows were finished, between the first and the last tenth, so that the start of
processes does not count. Bare processes repeat one forward pass over a batch of coalitions. All
four in turn, medians of five. The share is that of the scaling which the machine allows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Batch

from gstarx import datasets
from gstarx.models import GCN, save_model
from gstarx.runs import RunSpec, read, run

_TURNS = 5
_GRAPHS = 120
_SECONDS = 6.0


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        save_model(folder / "gcn.safetensors", GCN(8, 128, 2))
        turns = []
        for turn in range(_TURNS):
            # what is compared runs side by side in time
            pairs = [(_bare(folder, n), _ours(folder, n, turn)) for n in (1, 2)]
            bare, ours = zip(*pairs, strict=True)
            turns.append((bare[1] / bare[0], ours[1] / ours[0]))
            print(
                f"bare {bare[0]:.0f} and {bare[1]:.0f} passes per second, runs {ours[0]:.1f} and "
                f"{ours[1]:.1f} graphs per second",
                flush=True,
            )
    allowed, reached = np.median(turns, axis=0)
    share = np.median([ours / bare for bare, ours in turns])
    print(
        f"scaling of two bare processes {allowed:.2f}, of two workers {reached:.2f}; "
        f"share {share:.2f} (median of the turns; of the medians {reached / allowed:.2f})"
    )


def _bare(folder: Path, count: int) -> float:
    """Forward passes per second of so many processes together."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.run_scaling", str(folder / "gcn.safetensors")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    # all are ready: now they begin together
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in processes)


def _forward(weights: str) -> None:
    from gstarx.models import load_model

    torch.set_num_threads(1)
    model, _ = load_model(weights)
    batch = Batch.from_data_list(list(datasets.load("nitro"))[:100])
    with torch.inference_mode():
        model(batch.x, batch.edge_index, batch.batch)
        print("ready", flush=True)
        sys.stdin.readline()
        start, passes = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < _SECONDS:
            model(batch.x, batch.edge_index, batch.batch)
            passes += 1
    print(passes / spent)


def _ours(folder: Path, workers: int, turn: int) -> float:
    """Graphs per second of a run."""
    store = folder / f"store-{workers}-{turn}"
    spec = RunSpec(
        dataset="nitro",
        model=str(folder / "gcn.safetensors"),
        explainer="gstarx",
        split="all",
        graphs=tuple(range(_GRAPHS)),
    )
    run(spec, store, workers=workers, progress=False)
    times = np.sort(read(store, columns=["finished"]).column("finished").to_numpy())
    low, high = len(times) // 10, len(times) - 1 - len(times) // 10
    return float((high - low) / (times[high] - times[low]))


if __name__ == "__main__":
    _forward(sys.argv[1])
