"""Random models: rounds of messages of all kinds, and what people put between them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tests.differential import layers, parts, readers
from tests.differential.graphs import FEATURES
from tests.differential.inputs import Inputs

#: Kinds of models, and how often they are drawn. The first is the one that most people have.
FAMILIES = {
    "plain": 54,
    "by hand": 11,
    "reader": 14,
    "guard": 6,
    "graph norm": 4,
    "mixing": 4,
    "together": 4,
    "readout": 6,
    "cached": 3,
    "in place": 4,
}
#: The same for large graphs, where most coalitions are not compared when embeddings are shared.
FAMILIES_OF_LARGE = {"plain": 40, "by hand": 20, "reader": 30, "guard": 5, "mixing": 5}


class Network(nn.Module):
    """Steps, and a row for every graph, node or pair."""

    #: The fields that it is given, in this order.
    inputs: tuple[str, ...] = ()

    def __init__(self, steps: list[nn.Module], last: nn.Module | None, width: int) -> None:
        super().__init__()
        self.first, self.steps = nn.Linear(FEATURES, width), nn.ModuleList(steps)
        self.last, self.writes = last, None
        self.head: nn.Module = nn.Identity()
        self.jumps, self.flat, self.returned = False, False, "raw"
        self.remembers = False
        self.mode = "multiclass_classification"

    def compute(self, g: Inputs) -> Tensor:
        if self.writes is not None:
            self.writes(g)
        h = self.first(g.x)
        seen = [h]
        for step in self.steps:
            h = step(h, g)
            seen.append(h)
        if self.jumps:
            h = torch.stack(seen).sum(dim=0)
        if self.last is not None:
            h = self.last(h, g)
        out = self.head(h)
        if self.returned != "raw":
            binary = self.mode != "multiclass_classification"
            out = out.sigmoid() if binary else out.softmax(dim=-1)
            out = out.log() if self.returned == "log_probs" else out
        return out[:, 0] if self.flat else out

    def alone(self, graph: Data) -> Tensor:
        """The output for one graph, cut out by somebody else."""
        # nothing is kept from the graph before
        model = copy.deepcopy(self) if self.remembers else self
        g = {name: graph[name] for name in ("x", "edge_index", "edge_attr", "edge_weight")}
        g["batch"] = torch.zeros(len(graph.x), dtype=torch.long)
        if "places" in graph and len(graph.places) == 2:
            g["edge_label_index"] = torch.tensor(graph.places)[:, None]
        if self.inputs == ("data",):
            return model(Data(**g))
        return model(**{name: g[name] for name in self.inputs})


class WithBatch(Network):
    inputs = ("x", "edge_index", "batch")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.compute(Inputs(x, edge_index, batch=batch))


class MayHaveBatch(Network):
    inputs = ("x", "edge_index", "batch")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.compute(Inputs(x, edge_index, batch=batch))


class WithAttributes(Network):
    inputs = ("x", "edge_index", "edge_attr", "batch")

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Any = None
    ) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_attr, batch=batch))


class WithWeights(Network):
    inputs = ("x", "edge_index", "edge_weight", "batch")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, *, batch: Any) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_weight=edge_weight, batch=batch))


class WithEverything(Network):
    inputs = ("x", "edge_index", "edge_attr", "edge_weight", "batch")

    def forward(
        self, x: Any, edge_index: Any, edge_attr: Any, edge_weight: Any, batch: Any
    ) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_attr, edge_weight, batch))


class TakesData(Network):
    inputs = ("data",)

    def forward(self, data: Data) -> Tensor:
        fields = ("x", "edge_index", "edge_attr", "edge_weight", "batch", "edge_label_index")
        return self.compute(Inputs(**{name: data.get(name) for name in fields}))


class OfOneGraph(Network):
    inputs = ("x", "edge_index")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.compute(Inputs(x, edge_index))


class OfOneGraphWithAll(Network):
    inputs = ("x", "edge_index", "edge_attr", "edge_weight")

    def forward(self, x: Any, edge_index: Any, edge_attr: Any, edge_weight: Any) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_attr, edge_weight))


class OfPairs(Network):
    inputs = ("x", "edge_index", "edge_label_index")

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_label_index=edge_label_index))


class OfPairsWithAll(Network):
    inputs = ("x", "edge_index", "edge_attr", "edge_weight", "edge_label_index", "batch")

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Any,
        edge_weight: Any,
        edge_label_index: Any,
        batch: Any,
    ) -> Tensor:
        return self.compute(Inputs(x, edge_index, edge_attr, edge_weight, batch, edge_label_index))


class Drawn:
    """The steps of a model while they are drawn, with their names and the fields they take."""

    def __init__(self, rng: Random, level: str, large: bool) -> None:
        self.rng, self.level, self.width = rng, level, rng.choice((4, 6, 8))
        self.steps: list[tuple[str, nn.Module]] = []
        self.takes: set[str] = set()
        families = FAMILIES_OF_LARGE if large else FAMILIES
        chosen = rng.choices(list(families), list(families.values()), k=2)
        self.families = {chosen[0], *(chosen[1:] if rng.random() < 0.15 else ())}
        if level != "graph":
            self.families = {family for family in self.families if family != "readout"} or {"plain"}
        for _ in range(rng.choice((1, 2, 2, 3))):
            self._round()
        for family in sorted(self.families):
            self._special(family)

    def _round(self) -> None:
        kind = self.rng.random()
        kinds = layers.PLAIN if kind < 0.5 else layers.NORMALIZED if kind < 0.8 else layers.OF_EDGES
        self._add(layers.layer(self.rng, self.width, kinds), len(self.steps))
        if self.rng.random() < 0.2:
            self._one_of(parts.NODE_NORMS, len(self.steps))

    def _add(self, step: tuple[str, nn.Module], at: int | None = None) -> None:
        place = self.rng.randint(0, len(self.steps)) if at is None else at
        self.steps.insert(place, step)
        self.takes |= set(getattr(step[1], "extra", ()))

    def _one_of(self, kinds: dict[str, Callable[[int], nn.Module]], at: int | None = None) -> None:
        name = self.rng.choice(sorted(kinds))
        self._add((name, kinds[name](self.width)), at)

    def _special(self, family: str) -> None:
        """The step that makes a model one of its kind, anywhere among the others."""
        rng = self.rng
        if family == "by hand":
            way = rng.choice(sorted(layers.HAND_MADE))
            self._add((way, layers.ByHand(self.width, way)))
            self.takes |= {"edge_weight"} if way == "sparse.mm_weighted" else set()
            self.takes |= {"edge_attr"} if way == "attributes" else set()
        elif family == "reader":
            name = rng.choice(sorted({**readers.LOCAL, **readers.GLOBAL}))
            self._add((name, readers.Reads(self.width, name, rng.random() < 0.3)))
            self.takes |= readers.TAKES.get(name, set())
        elif family == "guard":
            self._one_of(parts.GUARDS)
        elif family == "graph norm":
            self._one_of(parts.GRAPH_NORMS)
            self.takes.add("batch")
        elif family == "mixing":
            self._one_of(parts.MIXING_NORMS)
        elif family == "together":
            self._one_of(parts.TOGETHER)
            self.takes.add("batch")
        elif family == "cached":
            self.steps[0] = layers.layer(rng, self.width, layers.CACHED)

    def form(self) -> type[Network]:
        """A signature that has all fields that are needed."""
        rng, takes = self.rng, self.takes
        if rng.random() < 0.15:
            return TakesData
        of_edges = bool(takes & {"edge_attr", "edge_weight"})
        if self.level == "edge":
            return OfPairsWithAll if of_edges or "batch" in takes else OfPairs
        together = rng.random() < (0.9 if self.level == "graph" or "batch" in takes else 0.25)
        if not together:
            return OfOneGraphWithAll if of_edges else OfOneGraph
        if not of_edges:
            return rng.choice((WithBatch, MayHaveBatch, MayHaveBatch, WithEverything))
        fields = {
            WithAttributes: {"edge_attr"},
            WithWeights: {"edge_weight"},
            WithEverything: takes,
        }
        return rng.choice([form for form, given in fields.items() if takes - {"batch"} <= given])

    def last(self) -> tuple[str, nn.Module | None, int]:
        """How nodes become a row, and how wide it is."""
        if self.level == "node":
            return "nodes", None, self.width
        if self.level == "edge":
            way = self.rng.choice(parts.PAIRS)
            return way, parts.Pairs(self.width, way), self.width
        readouts = parts.OTHER_READOUTS if "readout" in self.families else parts.SIMPLE_READOUTS
        name = self.rng.choice(sorted(readouts))
        make, factor = readouts[name]
        return name, make(self.width), factor * self.width


def draw_model(
    rng: Random, level: str, *, large: bool, columns: int, mode: str, returned: str
) -> tuple[Network, dict[str, Any]]:
    """A network in double precision with random weights, and what it consists of."""
    with torch.random.fork_rng():
        torch.manual_seed(rng.randrange(2**31))
        drawn = Drawn(rng, level, large)
        name, last, wide = drawn.last()
        form = drawn.form()
        network = form([step for _, step in drawn.steps], last, drawn.width)
        network.head = nn.Linear(wide, columns)
        network.head.weight.data.mul_(3.0)
        network.mode, network.returned = mode, returned
        network.jumps = rng.random() < 0.1
        network.flat = columns == 1 and rng.random() < 0.3
        written = ""
        if "in place" in drawn.families:
            written = rng.choice(parts.IN_PLACE)
            network.writes = parts.InPlace(written)
        network.remembers = "cached" in drawn.families
        network = network.double().eval()
    described = {
        "families": sorted(drawn.families),
        "steps": [step for step, _ in drawn.steps],
        "readout": name,
        "form": form.__name__,
        "writes": written,
        "function": form is WithBatch and rng.random() < 0.25,
        "normalized": any(
            step in {**layers.NORMALIZED, **layers.CACHED} for step, _ in drawn.steps
        ),
    }
    return network, described
