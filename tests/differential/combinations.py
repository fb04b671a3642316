"""Drawing of a graph, a model and options, and the comparison of scores with brute force."""

from __future__ import annotations

import copy
import re
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gstarx import (
    HN,
    Banzhaf,
    CommunicationGraph,
    Contrast,
    GameOptions,
    Myerson,
    Passes,
    Position,
    Shapley,
    Task,
    explain,
)
from gstarx.players import Edges, Features, Groups
from tests.differential.brute_force import Game, Numbers, kind_of, linked, mean_filling
from tests.differential.graphs import EDGE_FEATURES, FEATURES, draw_graph, generator
from tests.differential.models import Network, draw_model

#: More players than this are more coalitions than brute force can afford, if all of them count.
MOST_PLAYERS = 8
#: Nodes of graphs for which scores inside of groups are compared, too.
MOST_INSIDE = 6
#: How far scores may be from those of brute force, in parts of the spread of the worths.
TOLERANCE = 1e-6
VALUES = {
    "hn": HN,
    "myerson": Myerson,
    "shapley": Shapley,
    "banzhaf": Banzhaf,
    "position": Position,
}
#: Combinations that make no sense, and the beginning of what the package says about them.
REFUSALS = (
    r"edge_index has only one direction of the edge",
    r"the graph has no edges between nodes: there are no players",
    r"no edge brings a message to node",
    r"no edge is near enough to",
)


@dataclass
class Combination:
    """A graph, a model and options by plain names, drawn from random numbers."""

    data: Data
    network: Network
    described: dict[str, Any]
    options: dict[str, Any]

    def __str__(self) -> str:
        edges = " ".join(f"{a}>{b}" for a, b in self.data.edge_index.t().tolist())
        x = self.data.x
        alike = "one-hot" if bool(((x == 0) | (x == 1)).all()) else "real"
        lines = [f"graph: {len(x)} nodes ({alike} features), edges {edges or 'none'}"]
        if "edge_label_index" in self.data:
            lines.append(f"pairs: {self.data.edge_label_index.t().tolist()}")
        lines += [f"{name}: {what}" for name, what in self.described.items() if what]
        return "\n".join([*lines, f"options: {self.options}"])


def attempts(number: int) -> Iterator[Combination]:
    """Combinations that a number stands for: the first that is not refused counts."""
    rng = Random(number)
    while True:
        yield _draw(rng)


def _draw(rng: Random) -> Combination:
    level = rng.choices(("graph", "node", "edge"), (70, 20, 10))[0]
    options: dict[str, Any] = {} if level == "graph" else {"task_level": level}
    options |= _value_and_players(rng)
    edges, features = kind_of(options) == "edges", "features" in kind_of(options)
    large = _many_nodes(rng, options, level)
    undirected = edges and not options.get("directed")
    while True:
        data = draw_graph(rng, both_ways=undirected or rng.random() < 0.6, large=large)
        few = (
            not edges
            or len({tuple(sorted(pair)) for pair in data.edge_index.t().tolist()}) <= MOST_PLAYERS
        )
        few &= not options.get("directed") or data.edge_index.shape[1] <= MOST_PLAYERS
        if few and not (level == "edge" and data.num_nodes < 2):
            break
    columns = _task(rng, options)
    mode = options.get("mode", "multiclass_classification")
    _payoff_and_baseline(rng, options, level, columns)
    if features:
        _references(rng, options)
    if options.get("players") == "groups":
        _groups(rng, options, data.num_nodes)
    if level == "node":
        options["index"] = rng.randrange(data.num_nodes)
    elif level == "edge":
        pairs = [rng.sample(range(data.num_nodes), 2) for _ in range(rng.randint(1, 3))]
        data.edge_label_index = torch.tensor(pairs).t().contiguous()
        options["index"] = rng.randrange(len(pairs))
    if level != "graph" and not features and rng.random() < 0.15:
        options["num_hops"] = rng.choice((1, 2))
    if not edges and not features and rng.random() < 0.3:
        options["removal"] = rng.choice(
            ("split", "split", "zero_filling", "zero_filling", mean_filling)
        )
    options["share"] = rng.choices((True, "auto", False), (80, 10, 10))[0]
    if rng.random() < 0.15:
        options["batch_nodes"] = rng.choice((1, 7, 7, 20, 20))
    returned = options.get("return_type", "raw")
    network, described = draw_model(
        rng, level, large=bool(large), columns=columns, mode=mode, returned=returned
    )
    return Combination(data, network, described, options)


def _many_nodes(rng: Random, options: dict[str, Any], level: str) -> int:
    """How many nodes a large graph has, if the value can be had by brute force; mostly 0."""
    chance = rng.random()
    if kind_of(options) != "nodes" or options.get("two_sided"):
        return 0
    if options["value"] in ("hn", "myerson"):
        return rng.choice((10, 11, 12, 13)) if chance < 0.2 else 0
    return 9 if level == "graph" and chance < 0.05 else 0


def _value_and_players(rng: Random) -> dict[str, Any]:
    kind = rng.choices(
        ("nodes", "groups", "edges", "directed", "position", "features", "edge_features"),
        (55, 10, 11, 6, 5, 9, 4),
    )[0]
    value = rng.choice(("hn", "myerson", "shapley", "banzhaf"))
    options: dict[str, Any] = {"value": "position" if kind == "position" else value}
    if kind == "directed":
        options["directed"] = True
    if kind != "nodes":
        options["players"] = "edges" if kind in ("directed", "position") else kind
    if options["value"] in ("hn", "myerson") and rng.random() < 0.3:
        options["two_sided"] = True
    if options["value"] == "banzhaf" and rng.random() < 0.4:
        options["presence"] = rng.choice((0.2, 0.7))
    return options


def _task(rng: Random, options: dict[str, Any]) -> int:
    """What the model predicts; how many outputs it has."""
    mode = rng.choices(("multiclass", "binary", "multilabel", "regression"), (60, 12, 10, 18))[0]
    columns = {"multiclass": rng.choice((2, 3)), "binary": 1, "multilabel": 2}.get(
        mode
    ) or rng.choice((1, 2))
    if mode == "multiclass":
        options |= rng.choice(({}, {}, {"return_type": "probs"}, {"return_type": "log_probs"}))
    else:
        options["mode"] = mode if mode != "binary" else "binary_classification"
        if mode != "regression" and rng.random() < 0.3:
            options["return_type"] = "probs"
    classes = max(columns, 2) if mode in ("multiclass", "binary") else columns
    if mode in ("multilabel", "regression") and columns > 1:
        options["target"] = rng.choice((rng.randrange(columns), "all"))
    elif rng.random() < 0.4 and classes > 1:
        options["target"] = rng.choice((rng.randrange(classes), rng.randrange(classes), "all"))
    return columns


def _largest(outputs: torch.Tensor) -> torch.Tensor:
    """A payoff of one's own."""
    return outputs.square().sum(dim=1)


def _payoff_and_baseline(rng: Random, options: dict[str, Any], level: str, columns: int) -> None:
    mode = options.get("mode")
    payoffs: list[Any] = ["auto", "raw", _largest]
    classes = max(2, columns)
    if mode != "regression":
        payoffs += ["auto", "norm_prob", "prob", "log_prob", Contrast(1, 0)]
    payoff = rng.choice(payoffs)
    if payoff != "auto":
        options["payoff"] = payoff
    if not isinstance(payoff, str):
        options.pop("target", None)
        if mode in ("multilabel", "regression") and columns > 1:
            options["target"] = 0  # which column is explained has to be said even so
    position = options["value"] == "position"
    if kind_of(options) != "nodes" and not (position and level == "graph"):
        return
    per_class = [
        round(rng.random(), 2) for _ in range(columns if mode == "regression" else classes)
    ]
    given: list[Any] = [None, None, 0.25, "singletons"]
    if payoff is not _largest:
        given.append(per_class)
    baseline = rng.choice(given)
    if baseline is not None:
        options["baseline"] = baseline


def _references(rng: Random, options: dict[str, Any]) -> None:
    width = FEATURES if options["players"] == "features" else EDGE_FEATURES
    draw = generator(rng)
    kind = rng.choice(("zero", "mean", "row", "rows"))
    options["reference"] = kind
    if kind == "row":
        options["reference"] = torch.randn(width, generator=draw, dtype=torch.float64)
    elif kind == "rows":
        rows = rng.randint(1, 4)
        options["reference"] = torch.randn(rows, width, generator=draw, dtype=torch.float64)
        options["draws"] = rng.choice((1, 2, 3))
    count = width
    if rng.random() < 0.4:
        options["feature_groups"] = {"first": [0, width - 1]}
        count -= 1
    if options["value"] in ("hn", "myerson") and rng.random() < 0.5:
        links = [(at, at + 1) for at in range(count - 1) if rng.random() < 0.8]
        options["communication"] = CommunicationGraph(count, links)


def _groups(rng: Random, options: dict[str, Any], count: int) -> None:
    nodes = rng.sample(range(count), rng.randint(1, count))
    cuts = sorted(rng.sample(range(1, len(nodes)), min(len(nodes) - 1, rng.randint(0, 3))))
    sets = [nodes[a:b] for a, b in zip([0, *cuts], [*cuts, len(nodes)], strict=True)]
    options["players"] = (
        sets if rng.random() < 0.5 else {f"group {at}": s for at, s in enumerate(sets)}
    )
    if rng.random() < 0.5:
        options["rest"] = "present"


@dataclass
class Outcome:
    """What came out of a combination.

    Attributes
    ----------
    problems
        In words, empty if scores agree.
    """

    number: int
    combination: Combination
    problems: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    ours: Numbers | None = None
    theirs: Numbers | None = None
    gap: float = 0.0
    shared: bool = False
    why_not_shared: str = ""
    check: dict[str, Any] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)
    seconds: tuple[float, float] = (0.0, 0.0)

    def __str__(self) -> str:
        lines = [f"combination {self.number}", str(self.combination)]
        for name, scores in (("gstarx", self.ours), ("brute force", self.theirs)):
            if scores is not None:
                lines.append(f"{name}: {np.array2string(scores.squeeze(), precision=10)}")
        lines.append(f"shared: {self.shared} {self.why_not_shared}")
        lines.append(f"check: {self.check}")
        lines += [f"warned: {words}" for words in self.warned]
        lines += [f"refused before: {words}" for words in self.refusals]
        return "\n".join([*lines, *(f"PROBLEM: {problem}" for problem in self.problems)])


def outcome(number: int) -> Outcome:
    """Explain a combination, and compare with brute force."""
    refusals: list[str] = []
    for combination in attempts(number):
        made = Outcome(number, combination, refusals=refusals)
        start = time.process_time()
        try:
            explanation = _explained(made)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            if isinstance(error, ValueError) and any(re.match(r, str(error)) for r in REFUSALS):
                refusals.append(words)
                continue
            if _fails_by_itself(combination):
                refusals.append("the model fails on a part of the graph by itself")
                continue
            made.problems.append(f"fails: {words}")
            return made
        middle = time.process_time()
        try:
            _compare(made, explanation)
        except Exception as error:
            made.problems.append(f"brute force fails: {type(error).__name__}: {error}")
        made.seconds = middle - start, time.process_time() - middle
        return made
    raise AssertionError


def _fails_by_itself(combination: Combination) -> bool:
    """Whether the model fails on what is always needed of the graph, evaluated alone."""
    game = Game(combination.network.alone, combination.data, combination.options)
    game.players = _expected_players(game)
    try:
        for at in range(len(game.players)):
            game.worth(1 << at)
        if combination.options.get("value") == "position":
            _ = game.singles
        if not isinstance(combination.options.get("players", ""), str):
            # scores inside of groups need nodes by themselves
            for node in (node for group in game.players for node in group):
                game.payoffs(game.fixed | {node})
        return not np.isfinite(game.worth(2 ** len(game.players) - 1)).all()
    except Exception:
        return True


def _explained(made: Outcome) -> Any:
    """The explanation, with shared embeddings where that is possible."""
    combination = made.combination
    network, data = copy.deepcopy(combination.network), combination.data.clone()
    options, refused = dict(combination.options), ""
    model: Any = network
    if combination.described["function"]:
        model = lambda x, edge_index, batch: network(x, edge_index, batch)  # noqa: E731
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            explanation = explain(model, data, **_arguments(options))
        except ValueError as error:
            refused = str(error)
            if not refused.startswith("share=True"):
                raise
            explanation = explain(model, data, **_arguments(options | {"share": "auto"}))
    made.warned = sorted({str(warning.message) for warning in caught})
    made.shared = explanation.sharing.used
    made.why_not_shared = refused or explanation.sharing.reason
    made.check = explanation.check
    for key, value in combination.data:
        if not torch.equal(data[key], value):
            made.problems.append(f"data.{key} was changed")
    if not _same_state(network, combination.network):
        made.problems.append("the model was changed")
    return explanation


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The options as the objects that the package takes."""
    rest = dict(options)

    def taken(*names: str, **renamed: str) -> dict[str, Any]:
        every = {name: name for name in names} | renamed
        return {new: rest.pop(old) for new, old in every.items() if old in rest}

    made: dict[str, Any] = {
        "value": VALUES[rest.pop("value")](**taken("two_sided", "presence")),
        "task": Task(**taken("mode", "task_level", "return_type")),
        "game": GameOptions(**taken("removal", "communication", "num_hops")),
        "passes": Passes(**taken("batch_nodes", "share")),
    }
    players = rest.pop("players", "nodes")
    if options.get("directed"):
        players = Edges(**taken("directed"))
    elif "rest" in options:
        players = Groups(players, **taken("rest"))
    elif "features" in kind_of(options):
        field = "x" if players == "features" else "edge_attr"
        players = Features(**taken("reference", "draws", groups="feature_groups"), field=field)
    return {**rest, **made, "players": players}


def _same_state(network: Network, before: Network) -> bool:
    """Whether a model is what it was, with nothing kept of the graphs that it has seen."""
    kept = network.state_dict()
    same = all(torch.equal(kept[key], value) for key, value in before.state_dict().items())
    for module in network.modules():
        caches = (name for name in vars(module) if name.startswith("_cached"))
        same &= not module.training and all(getattr(module, name) is None for name in caches)
    return same


def _compare(made: Outcome, explanation: Any) -> None:
    combination = made.combination
    game = Game(combination.network.alone, combination.data, combination.options)
    game.players = _players_of(made, game, explanation)
    communication = combination.options.get("communication")
    game.links = linked(game, None if communication is None else communication.edges.tolist())
    made.theirs = game.scores()
    made.ours = explanation.scores.numpy().reshape(len(explanation.scores), len(game.baseline))
    worths = np.array([*game.known.values(), game.payoff_of(game.everything)]) - game.baseline
    spread = np.ptp(worths, axis=0).clip(min=1e-9)
    # what double precision leaves of numbers of this size is no difference, nor is what a change
    # of the last digits of the features does: norms of nodes that are alike enlarge it
    rounding = 1e-12 * float(np.abs(worths).max() + np.abs(game.baseline).max())
    rounding += 4 * _rounded_otherwise(game)
    tolerance = TOLERANCE * spread + rounding
    if not explanation.exact:
        made.problems.append("the scores are not exact")
    pairs = [("scores", made.ours, made.theirs)]
    pairs.append(("baseline", np.array(explanation.baseline), game.baseline))
    everybody = game.worth(2 ** len(game.players) - 1)
    pairs.append(("worth", explanation.worth.numpy(), everybody))
    pairs += _node_scores(made, game, explanation)
    for name, ours, theirs in pairs:
        if ours.shape != theirs.shape:
            made.problems.append(f"{name}: shape {ours.shape}, not {theirs.shape}")
            continue
        apart = np.abs(ours - theirs)
        if not (apart <= tolerance).all():
            gap = float((apart / spread).max())
            made.gap = max(made.gap, gap)
            made.problems.append(f"{name}: {gap:.2e} of the spread apart")
    whole = "num_hops" not in combination.options and not combination.described["normalized"]
    if game.anchors and whole:
        could = {unit for units in _expected_players(game) for unit in units}
        overlooked = game.overlooked(could, 1e-8 * (1.0 + float(game.everything.abs().max())))
        if overlooked:
            made.problems.append(f"overlooked: {game.kind} {overlooked} matter and do not play")


def _rounded_otherwise(game: Game) -> float:
    """How much outputs for the whole graph change with the last digits of its features."""
    draw, changes = generator(Random(0)), []
    for _ in range(4):
        data = copy.copy(game.data)
        noise = torch.randn(data.x.shape, generator=draw, dtype=data.x.dtype)
        data.x = data.x * (1 + torch.finfo(data.x.dtype).eps * noise)
        other = Game(game.run, data, game.options).everything
        changes.append(float((other - game.everything).abs().nan_to_num(0.0).max()))
    return max(changes)


def _node_scores(made: Outcome, game: Game, explanation: Any) -> list[tuple[str, Any, Any]]:
    """Scores of nodes where others are the players, and what components are worth."""
    options, count = made.combination.options, made.combination.data.num_nodes
    if options["value"] == "position":
        ours = explanation.node_scores.numpy().reshape(count, -1)
        return [("node scores", ours, game.node_scores(made.theirs))]
    together = [("components", explanation.component_worth.numpy(), game.component_worth())]
    if game.anchors or explanation.player_kind != "groups" or count > MOST_INSIDE:
        return together
    nodes, left = game.inside_groups()
    return [
        *together,
        ("node scores", explanation.node_scores.numpy().reshape(nodes.shape), nodes),
        ("rest of groups", explanation.group_remainder.numpy().reshape(left.shape), left),
    ]


def _expected_players(game: Game) -> list[list[int]]:
    """The units of everybody who could play, in any order."""
    options, count = game.options, game.data.num_nodes
    if "features" in game.kind:
        groups = list(options.get("feature_groups", {}).values())
        named = {column for columns in groups for column in columns}
        width = FEATURES if game.kind == "features" else EDGE_FEATURES
        return groups + [[column] for column in range(width) if column not in named]
    if game.kind == "edges":
        columns = _columns(game)
        if options.get("directed"):  # every column is a player
            return [[e] for edges in columns.values() for e in edges]
        return list(columns.values())
    given = options.get("players", "nodes")
    if given == "nodes":
        return [[node] for node in range(count)]
    sets = list(given.values()) if isinstance(given, dict) else list(given)
    named = {node for nodes in sets for node in nodes}
    alone = [] if options.get("rest") == "present" else set(range(count)) - named
    return sets + [[node] for node in sorted(alone)]


def _columns(game: Game) -> dict[tuple[int, int], list[int]]:
    """The columns of ``edge_index`` by the nodes they join, from the lower or from the first."""
    columns: dict[tuple[int, int], list[int]] = {}
    for e, (a, b) in enumerate(game.ends):
        if a != b:
            pair = (a, b) if game.options.get("directed") else (min(a, b), max(a, b))
            columns.setdefault(pair, []).append(e)
    return columns


def _players_of(made: Outcome, game: Game, explanation: Any) -> list[list[int]]:
    """The units of every player in the order of the scores."""
    options, expected = made.combination.options, _expected_players(game)
    if "features" in game.kind:
        groups = options.get("feature_groups", {})
        names = explanation.player_names
        players = [groups[name] if name in groups else [int(name)] for name in names]
    elif game.kind == "edges":
        players = _edges_of(game, explanation)
    elif options.get("players", "nodes") == "nodes":
        players = [[int(node)] for node in explanation.players]
    else:
        players = [list(nodes) for nodes in explanation.groups]
    found, could = ([sorted(units) for units in listed] for listed in (players, expected))
    # on a whole graph all of them play, around a node or pair some of them
    around = bool(game.anchors) and "features" not in game.kind
    if not all(units in could for units in found) or (not around and len(found) < len(could)):
        made.problems.append(f"players: {sorted(found)}, not {sorted(could)}")
    return players


def _edges_of(game: Game, explanation: Any) -> list[list[int]]:
    """The columns of every player; of parallel ones that all play, in their order."""
    columns = _columns(game)
    listed = [tuple(pair) for pair in explanation.player_edges.tolist()]
    if len(set(listed)) == len(listed):
        return [columns[pair] for pair in listed]
    return [[columns[pair].pop(0)] for pair in listed]
