"""Nodes of citation and co-author graphs: fidelity and CPU seconds beside published figures.

The game and the metrics are those of GNNShap (Akkas and Azad, WWW 2024) and DistShap (2025): the
directed edges that carry messages to a node are the players, `computation_graph="gnnshap"`. Needs
the graphs, weights and `published.csv` in the directory `citation` of GSTARX_DATA. By default Cora
and CiteSeer; `CITATION=coauthor_cs,coauthor_physics,workers,growth,million,memory` names others,
`CITATION_NODES` limits nodes, `CITATION_METHODS` names methods (`HN`, which takes seconds for a
node, is left out by default), and results are kept as they grow in the directory `CITATION_ROWS`,
such as `benchmarks/results/citation`, where those of the page are.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gstarx import GameOptions, GNNGame, explain_nodes
from gstarx._internal.processes import forked_map
from gstarx.gnn import ModelTask, WholeGraph
from gstarx.players import Edges
from gstarx.values import (
    PrecisionWarning,
    banzhaf_value_sampled,
    hn_value_growth_sampled,
    myerson_value_sampled,
    shapley_value_sampled,
)
from gstarx_bench import datasets

Scores = NDArray[np.float64]
_COAUTHOR = ("explained_distshap", 60_000, "sub-graph")
#: Which nodes are explained, with how many coalitions, and on which graph the class is predicted.
_SETTINGS = {
    "cora": ("cora_gcn", "explained", 10_000, "whole graph"),
    "citeseer": ("citeseer_gcn", "explained", 10_000, "whole graph"),
    "coauthor_cs": ("coauthor_cs_gcn_distshap", *_COAUTHOR),
    "coauthor_physics": ("coauthor_physics_gcn", *_COAUTHOR),
}
_GAME: dict[str, Any] = {
    "players": Edges(directed=True),
    "game": GameOptions(computation_graph="gnnshap"),
    "payoff": "prob",
}
_CUTS = (("fid_minus", "0.3"), ("fid_minus", "0.6"), ("fid_plus", "10"), ("fid_plus", "30"))


class Network(nn.Module):
    """Two normalized convolutions."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        shapes = [weights[f"convs.{layer}.lin.weight"].shape for layer in (0, 1)]
        self.convs = nn.ModuleList([GCNConv(columns, width) for width, columns in shapes])
        self.load_state_dict(weights)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        hidden = self.convs[0](x, edge_index, edge_weight).relu()
        return self.convs[1](hidden, edge_index, edge_weight)


def main() -> None:
    folder = Path(os.environ.get("GSTARX_DATA", "")) / "citation"
    if not (folder / "cora_gcn.safetensors").is_file():
        print("skipped: needs the graphs and weights in the directory citation of GSTARX_DATA")
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", PrecisionWarning)
    published = _published(folder / "published.csv")
    for name in os.environ.get("CITATION", "cora,citeseer").split(","):
        if name in ("million", "growth", "memory"):
            {"million": _million, "growth": _growth, "memory": _memory}[name]()
        elif name == "workers":
            _workers(folder)
        else:
            _table(name, folder, published)


def _workers(folder: Path) -> None:
    """Wall and CPU seconds of Shapley values of all nodes with one and two processes, in turn."""
    for name in ("cora", "citeseer"):
        weights, nodes_key, budget, _ = _SETTINGS[name]
        data = datasets.load(name)[0]
        model = Network(load_file(folder / f"{weights}.safetensors")).eval()
        nodes = datasets.archive(folder / f"{name}.npz")[nodes_key].tolist()
        options = {**_GAME, "value": "shapley", "budget": budget, "on_error": "record"}
        explain_nodes(model, data, nodes[:2], **options, progress=False)
        for workers in (1, 2, 1, 2):
            wall, before = time.perf_counter(), _cpu_seconds()
            explain_nodes(model, data, nodes, **options, workers=workers, progress=False)
            wall, cpu = time.perf_counter() - wall, _cpu_seconds() - before
            print(f"{name}, {len(nodes)} nodes, {workers} processes: {wall:.2f} s, {cpu:.2f} CPU s")


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _made(nodes: int, edges: int) -> tuple[Network, Data, NDArray[np.int64]]:
    """A network and a graph whose in-degrees follow a power law."""
    draw = np.random.default_rng(0)
    # the node with number k sends and hears with a chance of about 1 / (k + 10)
    ends = (10 * (nodes / 10) ** draw.random((2, edges))).astype(np.int64) - 10
    ends = np.clip(ends, 0, nodes - 1)
    ends[0] = draw.integers(nodes, size=edges)
    torch.manual_seed(0)
    data = Data(x=torch.randn(nodes, 64), edge_index=torch.from_numpy(ends))
    weights = GCNConv(64, 16), GCNConv(16, 4)
    model = Network(
        {
            f"convs.{at}.{key}": v
            for at, c in enumerate(weights)
            for key, v in c.state_dict().items()
        }
    ).eval()
    return model, data, np.bincount(ends[1], minlength=nodes)


def _growth(coalitions: int = 20_000) -> None:
    """CPU seconds and memory of nodes with a hundred to ten thousand players."""
    model, data, _ = _made(100_000, 1_000_000)
    whole = WholeGraph.of(model, data, ModelTask(task_level="node"))
    incoming = whole.incoming
    some = np.random.default_rng(0).integers(100_000, size=4_000)
    sizes = np.array([len(incoming.edges_to(incoming.within(node, 1))) for node in some])
    _shapley(model, data, whole, int(some[np.abs(sizes - 100).argmin()]), 300)  # is compiled
    print(
        f"\n{coalitions:,} coalitions\n| players | CPU seconds | more memory, MB |\n|---|---|---|"
    )
    for wanted in (100, 300, 1_000, 3_000, 10_000):
        node = int(some[np.abs(sizes - wanted).argmin()])
        (outcome,) = forked_map(
            lambda node: _measured(model, data, whole, node, coalitions), [node], 1
        )
        players, seconds, memory = outcome.get()
        print(f"| {players:,} | {seconds:.2f} | {memory:.0f} |", flush=True)


def _measured(
    model: Any, data: Data, whole: WholeGraph, node: int, coalitions: int
) -> tuple[int, float, float]:
    """Players, CPU seconds and megabytes of Shapley values, in a process of their own."""
    warnings.simplefilter("ignore")
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    players = _shapley(model, data, whole, node, coalitions)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return players, time.process_time() - start, (after - before) / 2**10


def _shapley(model: Any, data: Data, whole: WholeGraph, node: int, budget: int) -> int:
    game = GNNGame(model, data, task="node", **_GAME, index=node, whole_graph=whole)
    shapley_value_sampled(game, game.n, budget=budget, seed=0)
    return game.n


def _million(nodes: int = 1_000_000, edges: int = 10_000_000) -> None:
    """Ten nodes of a made graph, the largest hub included."""
    model, data, degrees = _made(nodes, edges)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.process_time()
    whole = WholeGraph.of(model, data, ModelTask(task_level="node"))
    print(
        f"\n{nodes:,} nodes, {edges:,} edges: {time.process_time() - start:.1f} s for all outputs"
    )
    quantiles = np.linspace(0.5, 1, 10)
    for node in np.argsort(degrees, kind="stable")[((nodes - 1) * quantiles).astype(int)].tolist():
        start = time.process_time()
        try:
            said = f"{_shapley(model, data, whole, node, 2_000):,} players"
        except ValueError as error:
            said = str(error)
        took = time.process_time() - start
        print(f"node {node}, {degrees[node]:,} edges to it: {took:.2f} s, {said}", flush=True)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {after:.2f} GB, {before:.2f} GB of it before; {data.num_edges:,} edges")


def _memory(nodes: int = 200_000, explained: int = 3_000) -> None:
    """What many explanations of nodes with few players add to the memory of the process."""
    model, data, _ = _made(nodes, 10)
    ends = torch.from_numpy(np.random.default_rng(0).integers(nodes, size=(2, nodes)))
    data.edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    options: dict[str, Any] = {"value": "shapley", "budget": 300, "seed": 0, "progress": False}
    explain_nodes(model, data, [0], **options)  # is compiled, and has run on the whole graph
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    made = explain_nodes(model, data, range(explained), **options)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    players = np.mean([len(one.players) for one in made])
    print(
        f"\n{explained:,} nodes of {nodes:,} with {players:.1f} players: peak memory grew by "
        f"{(after - before) / 2**10:.0f} MB, {time.process_time() - start:.0f} s"
    )


def _table(name: str, folder: Path, published: dict[tuple[str, str], list[str]]) -> None:
    _, _, budget, rule = _SETTINGS[name]
    rows = _rows(name, folder)
    players = [row["players"] for row in rows]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\n{name}: {len(players)} nodes, {min(players)} to {max(players)} players "
        f"(median {np.median(players):.0f}), {budget:,} coalitions per node, class predicted on "
        f"the {rule}; peak memory {memory:.2f} GB"
    )
    columns = [f"{metric} {cut}" for metric, cut in _CUTS]
    print("| method | " + " | ".join(columns) + " | CPU seconds |")
    print("|---|" + "---|" * (len(columns) + 1))
    methods = list(rows[0]["fidelities"])
    tables = {m: np.array([row["fidelities"][m] for row in rows]) for m in methods}
    for method, table in tables.items():
        cells = [_interval(column) for column in table.T]
        seconds = sum(row["seconds"][method] for row in rows)
        print(f"| {method} | " + " | ".join(cells) + f" | {seconds:.1f} |")
    for (dataset, method), cells in published.items():
        if dataset == name:
            print(f"| {method}, published | " + " | ".join(cells) + " |")
    for method, table in tables.items():
        if method != "Shapley":
            gap = ", ".join(map(_interval, (table - tables["Shapley"]).T))
            print(f"{method} less Shapley, node by node: {gap}")


def _rows(name: str, folder: Path) -> list[dict[str, Any]]:
    """Fidelities and CPU seconds of all methods, node by node.

    In the directory CITATION_ROWS, if it is given, they are kept as they grow and taken up again.
    """
    weights, nodes_key, budget, rule = _SETTINGS[name]
    data = datasets.load(name)[0]
    model = Network(load_file(folder / f"{weights}.safetensors")).eval()
    listed = datasets.archive(folder / f"{name}.npz")[nodes_key].tolist()
    listed = listed[: int(os.environ.get("CITATION_NODES", "1000"))]
    methods = _methods(budget)
    wanted = os.environ.get("CITATION_METHODS", ",".join(m for m in methods if m != "HN"))
    methods = {method: methods[method] for method in wanted.split(",")}
    kept = Path(os.environ.get("CITATION_ROWS", os.devnull))
    kept = kept / f"{name}.jsonl" if kept.is_dir() else kept
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
    done = {row["node"] for row in rows}
    if any(set(methods) - set(row["fidelities"]) for row in rows):
        raise SystemExit(f"{kept} has rows without some of {', '.join(methods)}: use another one")
    whole = WholeGraph.of(model, data, ModelTask(task_level="node"))
    sizes = {v: len(whole.incoming.edges_to(whole.incoming.within(v, 1))) for v in listed}
    with open(kept, "a") as file:
        for node in sorted(listed, key=sizes.__getitem__):  # the largest parts at the end
            if node in done:
                continue
            try:
                judge = _Judge(model, data, whole, node, rule)
            except ValueError:  # no edge brings a message to it
                continue
            if judge.game.n < 2:
                continue
            row = _row(model, data, whole, node, judge, methods)
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
    return rows


def _row(
    model: Any, data: Data, whole: WholeGraph, node: int, judge: _Judge, methods: dict[str, Any]
) -> dict[str, Any]:
    fidelities: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for method, score in methods.items():
        start = time.process_time()
        if method == "best found":
            fidelities[method] = judge.best(fidelities)
        else:
            scores = score(model, data, whole, node, judge)
        seconds[method] = time.process_time() - start
        if method != "best found":
            fidelities[method] = judge.fidelities(np.abs(scores))
    return {"node": node, "players": judge.game.n, "fidelities": fidelities, "seconds": seconds}


def _methods(budget: int) -> dict[str, Callable[..., Scores]]:
    """Scores of the players by method."""

    def sampled(value: Callable[..., Any]) -> Callable[..., Scores]:
        def scores(model: Any, data: Data, whole: WholeGraph, node: int, judge: Any) -> Scores:
            game = GNNGame(
                model,
                data,
                task="node",
                **_GAME,
                index=node,
                target=judge.scored,
                whole_graph=whole,
            )
            values: Scores = value(game, game.n, budget=max(budget, game.n), seed=0).values
            return values

        return scores

    def left_out(model: Any, data: Data, whole: WholeGraph, node: int, judge: Any) -> Scores:
        game = GNNGame(
            model, data, task="node", **_GAME, index=node, target=judge.scored, whole_graph=whole
        )
        everybody = np.ones((1, game.n), dtype=np.bool_)
        rows = np.concatenate([everybody, ~np.eye(game.n, dtype=np.bool_)])
        worths = game(rows)
        return worths[0] - worths[1:]

    def gradient(model: Any, data: Data, whole: WholeGraph, node: int, judge: Any) -> Scores:
        part = judge.game.data
        weight = torch.ones(part.edge_index.shape[1], requires_grad=True)
        output = model(part.x, part.edge_index, weight)[judge.place]
        output.softmax(dim=0)[judge.scored].backward()
        assert weight.grad is not None
        return weight.grad.double().numpy()

    def random(model: Any, data: Data, whole: WholeGraph, node: int, judge: Any) -> Scores:
        return np.random.default_rng(node).random(judge.game.n)

    def myerson(game: GNNGame, n: int, **options: Any) -> Any:
        return myerson_value_sampled(game, game.graph, **options)

    def hn(game: GNNGame, n: int, **options: Any) -> Any:
        return hn_value_growth_sampled(game, game.graph, **options)

    return {
        "Shapley": sampled(shapley_value_sampled),
        "Banzhaf": sampled(banzhaf_value_sampled),
        "Myerson": sampled(myerson),
        "HN": sampled(hn),
        "leave one out": left_out,
        "gradient": gradient,
        "random": random,
        "best found": random,
    }


class _Judge:
    """The probabilities of all classes, for the fidelity of any scores of one node."""

    def __init__(self, model: Any, data: Data, whole: WholeGraph, node: int, rule: str) -> None:
        self.game = GNNGame(
            model, data, task="node", **_GAME, index=node, target="all", whole_graph=whole
        )
        self.place = int(self.game._evaluator.removal.anchors[0])
        on_part = int(self._probabilities(np.ones((1, self.game.n), dtype=np.bool_)).argmax())
        on_whole = int(whole.node_outputs[node].argmax())
        self.judged = on_part
        self.scored = on_whole if rule == "whole graph" else on_part

    def _probabilities(self, rows: NDArray[np.bool_]) -> Scores:
        found: Scores = self.game(rows) + np.array(self.game.payoff.baseline)
        return found

    def dropped(self, metric: str, cut: str) -> int:
        """How many players are left out."""
        n = self.game.n
        if metric == "fid_minus":
            return n - int(np.ceil(n * (1 - float(cut))))
        return min(n, int(cut))

    def best(self, known: dict[str, list[float]]) -> list[float]:
        """The best of all methods and of dropping players one by one, both up and down."""
        found = []
        for at, (metric, cut) in enumerate(_CUTS):
            least = metric == "fid_minus"
            gaps = [fidelities[at] for fidelities in known.values()]
            count = self.dropped(metric, cut)
            gaps += [self._greedy(count, sign) for sign in ((0,) if least else (1, -1))]
            found.append(min(gaps) if least else max(gaps))
        return found

    def _greedy(self, count: int, sign: int) -> float:
        """|p(rest) - p(all)| after dropping the player of most gain, or least change, in turn."""
        rest = np.ones(self.game.n, dtype=np.bool_)
        start = p = self._probabilities(rest[None])[0, self.judged]
        # a few at a time where many are to be dropped
        step = max(1, count // 40)
        while count:
            players = np.flatnonzero(rest)
            rows = np.repeat(rest[None], len(players), axis=0)
            rows[np.arange(len(players)), players] = False
            changes = self._probabilities(rows)[:, self.judged] - (start if sign == 0 else p)
            order = np.argsort(np.abs(changes) if sign == 0 else -sign * changes)
            rest[players[order[: min(step, count)]]] = False
            count -= min(step, count)
            p = self._probabilities(rest[None])[0, self.judged]
        return float(abs(p - start))

    def fidelities(self, sizes: Scores) -> list[float]:
        """Fid- at sparsities 0.3 and 0.6 and Fid+ without the top 10 and 30, by |score|."""
        n = len(sizes)
        order = np.argsort(sizes)
        rows = np.ones((5, n), dtype=np.bool_)
        for row, (metric, cut) in enumerate(_CUTS):
            count = self.dropped(metric, cut)
            rows[row, order[:count] if metric == "fid_minus" else order[n - count :]] = False
        probabilities = self._probabilities(rows)[:, self.judged]
        return [float(gap) for gap in np.abs(probabilities[:4] - probabilities[4])]


def _interval(values: Scores) -> str:
    """The mean, and twice its standard error over nodes."""
    spread = 2 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.4f} ± {spread:.4f}"


def _published(path: Path) -> dict[tuple[str, str], list[str]]:
    """Printed figures of two-layer GCNs by dataset and method: the metrics, then seconds."""
    names = {"Cora": "cora", "CiteSeer": "citeseer", "Coauthor-CS": "coauthor_cs"}
    names["Coauthor-Physics"] = "coauthor_physics"
    wanted = [*_CUTS, ("explain_seconds", "")]
    cells: dict[tuple[str, str], list[str]] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["metric"], row["cutoff"].rpartition(" ")[2]
            dataset = names.get(row["dataset"], row["dataset"].lower().replace("-", "_"))
            if row["model"] != "GCN" or key not in wanted:
                continue
            line = cells.setdefault((dataset, row["method"]), ["–"] * len(wanted))
            line[wanted.index(key)] = row["value"] + (
                f" on {row['gpus']} GPU" if key[0] == "explain_seconds" and row["gpus"] else ""
            )
    return cells
