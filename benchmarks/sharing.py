"""Shared embeddings: explanations with `share="auto"` against `share=False`, in turn.

CPU seconds of the same call, one thread. The published networks on molecules of their test splits,
and networks of other layers with random weights. `share=False` is measured on a random sample of
the coalitions where there are more than 60,000, and scaled to their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from gstarx import HN, Banzhaf, GNNGame, Passes, Shapley, datasets, explain
from gstarx.graphs import CommunicationGraph
from gstarx.models import GAT
from gstarx_bench.models import load_published_checkpoint

_SAMPLED = 60_000
NETWORKS = (("mutag", "gcn"), ("mutag", "gin"), ("bbbp", "gcn"), ("bace", "gcn"))
#: Coalitions of the molecules that are explained exactly, and how many molecules.
_EXACT = {"mutag": (25_000, 250_000, 4), "bbbp": (100_000, 1_200_000, 3)}
_EXACT["bace"] = _EXACT["bbbp"]


def main() -> None:
    weights = os.environ.get("GSTARX_CHECKPOINTS")
    if not os.environ.get("GSTARX_DATA") or not weights:
        print("skipped: needs GSTARX_DATA and the published weights in GSTARX_CHECKPOINTS")
        return
    torch.set_num_threads(1)
    found = {
        (name, kind): load_published_checkpoint(Path(weights) / name / f"{kind}_3l_best.pth")
        for name, kind in NETWORKS
    }
    for part in (_exact, _sampled, _differences):
        for (name, kind), model in found.items():
            part(f"{name} {kind}", model, name)
    _others()
    _never_slower(found["mutag", "gcn"])
    _growth(found["bace", "gcn"])


def _molecules(
    name: str, fewest: int, most: int, count: int, split: str | None = "test"
) -> list[Data]:
    """The first molecules of a split, or of all, with so many connected coalitions."""
    dataset = datasets.load(name)
    molecules: list[Data] = []
    for data in dataset if split is None else dataset.split(split):
        graph = CommunicationGraph.from_edge_index(data.edge_index, data.num_nodes)
        if fewest <= graph.count_connected_coalitions(most + 1) <= most:
            molecules.append(data)
        if len(molecules) == count:
            break
    return molecules


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _turns(run: Callable[[Any], Any], turns: int = 3) -> tuple[float, float]:
    """Least seconds with sharing and without."""
    run("auto")
    both = [(_seconds(lambda: run("auto")), _seconds(lambda: run(False))) for _ in range(turns)]
    shared, plain = np.min(both, axis=0)
    return float(shared), float(plain)


def _exact(title: str, model: Any, name: str) -> None:
    fewest, most, count = _EXACT[name]
    ratios, lines = [], []
    for data in _molecules(name, fewest, most, count):
        rows = GNNGame(model, data).graph.connected_coalitions()
        games: dict[Any, GNNGame] = {}

        def run(share: Any, data: Data = data, rows: Any = rows, games: Any = games) -> None:
            games[share] = GNNGame(model, data, passes=Passes(share=share))
            few = np.random.default_rng(0).permutation(len(rows))[:_SAMPLED]
            games[share](rows if share or len(rows) <= _SAMPLED else rows[few])

        shared, plain = _turns(run, 2)
        plain *= max(1.0, len(rows) / _SAMPLED)
        whole = _seconds(lambda data=data: explain(model, data, value="hn", budget=2_000_000))
        ratios.append(plain / shared)
        happened = games["auto"].sharing
        lines.append(
            f"  {rows.shape[1]} atoms, {len(rows):,} coalitions, {happened.nodes:,} nodes, "
            f"{happened.states:,} states: {1e6 * shared / len(rows):.2f} us per coalition, without "
            f"{1e6 * plain / len(rows):.1f}: {plain / shared:.1f} times; the whole explanation "
            f"{whole:.2f} s"
        )
    print(f"exact, {title}: {np.mean(ratios):.1f} times (least {min(ratios):.1f})")
    print("\n".join(lines), flush=True)


def _sampled(title: str, model: Any, name: str) -> None:
    data = _molecules(name, 25_000, 1_200_000, 2)
    for value in (Shapley(estimator="sampled"), Banzhaf(estimator="sampled")):
        ratios = []
        for one in data:

            def run(share: Any, one: Data = one, value: Any = value) -> None:
                passes = Passes(share=share)
                explain(model, one, value=value, budget=10_000, seed=0, passes=passes)

            shared, plain = _turns(run)
            ratios.append(plain / shared)
        print(
            f"10,000 sampled coalitions, {value.name}, {title}: "
            f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} times",
            flush=True,
        )


def _differences(title: str, model: Any, name: str) -> None:
    """Largest difference of the worths of 20 graphs, by the spread of the outputs."""
    worst = {}
    for dtype in (torch.float32, torch.float64):
        own = load(model, dtype)
        gaps = []
        for data in _molecules(name, 500, 20_000, 20, split=None):
            graph = data.clone()
            graph.x = graph.x.to(dtype)
            game = GNNGame(own, graph, payoff="raw", target="all", passes=Passes(share=True))
            rows = game.graph.connected_coalitions()
            plain = GNNGame(own, graph, payoff="raw", target="all", passes=Passes(share=False))(
                rows
            )
            gaps.append(np.abs(game(rows) - plain).max() / np.ptp(plain, axis=0).max())
        worst[str(dtype).removeprefix("torch.")] = (len(gaps), max(gaps))
    print(
        f"largest difference, {title}: "
        + ", ".join(f"{gap:.1e} of the spread ({dtype})" for dtype, (_, gap) in worst.items())
        + f", {worst['float32'][0]} molecules",
        flush=True,
    )


def load(model: Any, dtype: torch.dtype) -> Any:
    """The network in another precision."""
    other = type(model)(**model.config)
    other.load_state_dict(model.state_dict())
    return other.to(dtype).eval()


class _Stack(nn.Module):
    """Layers of one kind, a readout and a head; with the attributes of edges or without."""

    def __init__(self, make: Callable[[int], nn.Module], *, attributes: bool = False) -> None:
        super().__init__()
        self.convs = nn.ModuleList([make(7), make(64), make(64)])
        self.head = nn.Linear(64, 2)
        self.attributes = attributes

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor) -> Tensor:
        more = (edge_attr,) if self.attributes else ()
        for conv in self.convs:
            x = conv(x, edge_index, *more).relu()
        return self.head(pyg.global_mean_pool(x, batch))


class _Jumping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = pyg.GraphSAGE(7, 64, 3, jk="cat")
        self.head = nn.Linear(64, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(pyg.global_add_pool(self.net(x, edge_index), batch))


def _networks() -> Iterator[tuple[str, nn.Module]]:
    degrees = torch.tensor([0, 10, 20, 10, 2])
    scalers = ["identity", "amplification", "attenuation"]
    yield "GAT", GAT(7, 8, 2, heads=8)
    yield (
        "GIN with edge attributes",
        _Stack(lambda width: pyg.GINEConv(nn.Linear(width, 64), edge_dim=4), attributes=True),
    )
    yield (
        "GAT with edge attributes",
        _Stack(lambda width: pyg.GATConv(width, 16, heads=4, edge_dim=4), attributes=True),
    )
    yield "SAGE with JumpingKnowledge", _Jumping()
    yield "SAGE", _Stack(lambda width: pyg.SAGEConv(width, 64))
    yield (
        "PNA",
        _Stack(lambda width: pyg.PNAConv(width, 64, ["mean", "max", "std"], scalers, degrees)),
    )
    yield "TransformerConv", _Stack(lambda width: pyg.TransformerConv(width, 16, heads=4))


def _others() -> None:
    (data,) = _molecules("mutag", 25_000, 250_000, 1)
    data = data.clone()
    ends = data.edge_index.sort(dim=0).values.sum(dim=0)
    data.edge_attr = torch.eye(4)[ends % 4]
    for name, model in _networks():
        torch.manual_seed(0)
        model.eval()
        rows = GNNGame(model, data).graph.connected_coalitions()

        def run(share: Any, model: Any = model, rows: Any = rows) -> None:
            GNNGame(model, data, passes=Passes(share=share))(rows)

        shared, plain = _turns(run, 1)
        print(
            f"{name}, {len(rows):,} coalitions: {1e6 * shared / len(rows):.2f} us per coalition, "
            f"without {1e6 * plain / len(rows):.1f}: {plain / shared:.1f} times",
            flush=True,
        )


def _never_slower(model: Any) -> None:
    """Where little can be shared: tiny graphs, few coalitions, dense graphs."""
    generator = np.random.default_rng(0)

    def graph(ends: Tensor, n: int) -> Data:
        both = torch.cat([ends, ends.flip(0)], dim=1)
        return Data(x=torch.eye(7)[torch.arange(n) % 7], edge_index=both)

    smallest = sorted(datasets.load("mutag").split("test"), key=lambda data: data.num_nodes)[0]
    cases: list[tuple[str, Data, Any]] = [("the smallest molecule of MUTAG", smallest, None)]
    cases += [
        (f"a path of {n} nodes", graph(torch.arange(n).unfold(0, 2, 1).t(), n), None)
        for n in (3, 6, 12, 20)
    ]
    for n, part, count in ((20, 0.5, 1_000), (40, 0.3, 2_000), (60, 0.8, 500), (30, 1.0, 1_000)):
        pairs = torch.combinations(torch.arange(n)).t()
        dense = graph(pairs[:, torch.from_numpy(generator.random(pairs.shape[1]) < part)], n)
        rows = generator.random((count, n)) < 0.5
        cases.append(
            (f"{count:,} coalitions of a graph with {n} nodes and {part:.0%} of edges", dense, rows)
        )
    for name, data, rows in cases:

        def run(share: Any, data: Data = data, rows: Any = rows) -> None:
            if rows is None:
                explain(model, data, value="hn", passes=Passes(share=share))
            else:
                GNNGame(model, data, passes=Passes(share=share))(rows)

        run(False)
        both = [
            (_seconds(lambda run=run: run("auto")), _seconds(lambda run=run: run(False)))
            for _ in range(15 if rows is None else 5)
        ]
        ratios = [plain / shared for shared, plain in both]
        shared, plain = np.min(both, axis=0)
        print(
            f"{name}: {plain / shared:.2f} times by the least, {np.median(ratios):.2f} by the "
            "median of turns",
            flush=True,
        )


def _growth(model: Any) -> None:
    """Time and memory per coalition, from a thousand to ten million."""
    import resource

    for power in range(3, 8):
        low = 10**power
        # the test split has no small ones
        (data,) = _molecules("bace", low, 2 * low, 1, "train" if power < 4 else "test")
        if power < 7:
            explain(model, data, budget=2 * low, value=HN(estimator="exact"))
        start = time.process_time()
        found = explain(model, data, budget=2 * low, value=HN(estimator="exact"))
        seconds = time.process_time() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = found.evaluations
        print(
            f"{data.num_nodes} atoms, {count:,} coalitions: {seconds:.2f} s, "
            f"{1e6 * seconds / count:.2f} us each, "
            f"{found.sharing.nodes / found.sharing.states:.0f} nodes per state; "
            f"peak memory of the process {memory / 1024:.0f} MB",
            flush=True,
        )
