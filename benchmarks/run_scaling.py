"""Two workers against one, beside two bare forward-pass processes against one.

A model-bound run: exact HN values on nitro molecules with a GCN of width 256. Bare processes repeat
one forward pass over molecules, as large as those of the run. All four are started and warm, then
they take turns of one second, the others being stopped, so that all meet the same machine. Rates
are passes, or coalitions of finished graphs, per second of their turns; medians of five stretches
of eight rounds. The share is that of the scaling which the machine allows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Batch

from gstarx import datasets
from gstarx.gnn.evaluator import default_batch_nodes
from gstarx.gnn.model_state import keep_freed_memory
from gstarx.models import GCN, load_model, save_model
from gstarx_bench.runs import RunSpec, read, run

_STRETCHES = 5
_ROUNDS = 8
_SECONDS = 1.0
_WARM = 10


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        save_model(folder / "gcn.safetensors", GCN(8, 256, 2))
        everybody = [_Team("bare", 1), _Team("run", 1), _Team("bare", 2), _Team("run", 2)]
        for team in everybody:
            team.start(folder)
        try:
            turns = [_stretch(everybody) for _ in range(_STRETCHES)]
        finally:
            for team in everybody:
                team.end()
    allowed, reached = np.median(turns, axis=0)
    share = np.median([ours / bare for bare, ours in turns])
    print(
        f"scaling of two bare processes {allowed:.2f}, of two workers {reached:.2f}; "
        f"share {share:.2f} (median of the stretches; of the medians {reached / allowed:.2f})"
    )


class _Team:
    """Processes that do one thing, and stand still unless it is their turn."""

    def __init__(self, kind: str, count: int) -> None:
        self.kind, self.count = kind, count

    def start(self, folder: Path) -> None:
        self.places = [folder / f"{self.kind}-{self.count}-{i}" for i in range(self.count)]
        if self.kind == "run":
            self.places = self.places[:1]
        self.processes = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.run_scaling",
                    self.kind,
                    str(folder / "gcn.safetensors"),
                    str(place),
                    str(self.count),
                ]
            )
            for place in self.places
        ]
        while self.done() < _WARM:
            time.sleep(0.1)
        self.signal(signal.SIGSTOP)

    def done(self) -> int:
        """Coalitions of finished graphs, or passes."""
        if self.kind == "bare":
            counts = [place.read_text() if place.exists() else "" for place in self.places]
            return sum(int(count or 0) for count in counts) if all(counts) else 0
        there = (self.places[0] / "store.json").exists()
        # molecules differ, coalitions hardly
        return sum(read(self.places[0], columns=["evaluations"])[0].to_pylist()) if there else 0

    def signal(self, number: int) -> None:
        for process in self.processes:
            for child in _children(process.pid):
                os.kill(child, number)
            process.send_signal(number)

    def turn(self) -> tuple[float, int]:
        """Seconds of a turn, and what was done in it."""
        before = self.done()
        start = time.perf_counter()
        self.signal(signal.SIGCONT)
        time.sleep(_SECONDS)
        self.signal(signal.SIGSTOP)
        spent = time.perf_counter() - start
        return spent, self.done() - before

    def end(self) -> None:
        self.signal(signal.SIGCONT)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def _stretch(everybody: list[_Team]) -> tuple[float, float]:
    """How much more two of a kind do than one: bare processes, and workers."""
    turns = np.zeros((len(everybody), 2))
    for _ in range(_ROUNDS):
        for at, team in enumerate(everybody):
            turns[at] += team.turn()
    rates = turns[:, 1] / turns[:, 0]
    print(
        f"bare {rates[0]:.0f} and {rates[2]:.0f} passes per second, runs {rates[1]:,.0f} and "
        f"{rates[3]:,.0f} coalitions per second",
        flush=True,
    )
    return rates[2] / rates[0], rates[3] / rates[1]


def _forward(weights: str, counter: str) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    model, _ = load_model(weights)
    room = default_batch_nodes(model, torch.device("cpu"))
    molecules = list(datasets.load("nitro"))
    ends = np.cumsum([molecule.num_nodes for molecule in molecules])
    batch = Batch.from_data_list(molecules[: int((ends <= room).sum())])
    passes = 0
    with torch.inference_mode(), open(counter, "w") as file:
        while True:
            model(batch.x, batch.edge_index, batch.batch)
            passes += 1
            file.seek(0)
            file.write(str(passes))
            file.flush()


def _explain(weights: str, store: str, workers: int) -> None:
    spec = RunSpec(dataset="nitro", model=weights, explainer="gstarx", split="all")
    run(spec, store, workers=workers, progress=False)


if __name__ == "__main__":
    kind, weights, place, count = sys.argv[1:]
    if kind == "bare":
        _forward(weights, place)
    else:
        _explain(weights, place, int(count))
