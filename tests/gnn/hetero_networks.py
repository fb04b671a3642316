"""Heterogeneous graphs and networks of every kind, and their games as they are defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import (
    GATConv,
    HANConv,
    HeteroConv,
    HGTConv,
    SAGEConv,
    global_add_pool,
    global_mean_pool,
    to_hetero,
)

WIDTHS = {"author": 3, "paper": 4, "venue": 2}
WRITES = ("author", "writes", "paper")
APPEARS = ("paper", "appears_in", "venue")
RELATIONS = (
    WRITES,
    ("paper", "rev_writes", "author"),
    APPEARS,
    ("venue", "rev_appears_in", "paper"),
)
METADATA = (list(WIDTHS), list(RELATIONS))
Pairs = Sequence[tuple[int, int]]


def typed_graph(
    counts: dict[str, int],
    writes: Pairs,
    appears: Pairs,
    *,
    seed: int = 0,
    attributes: bool = False,
) -> HeteroData:
    """A graph of authors, papers and venues in double precision, with both directions of links."""
    draw = torch.Generator().manual_seed(seed)
    data = HeteroData()
    for name, width in WIDTHS.items():
        data[name].x = torch.randn(counts[name], width, generator=draw, dtype=torch.float64)
    for relation, back, pairs in (
        (RELATIONS[0], RELATIONS[1], writes),
        (RELATIONS[2], RELATIONS[3], appears),
    ):
        ends = torch.tensor(list(pairs), dtype=torch.long).reshape(-1, 2).t().contiguous()
        data[relation].edge_index = ends
        data[back].edge_index = ends.flip(0)
        if attributes:
            for kind in (relation, back):
                data[kind].edge_attr = torch.randn(
                    ends.shape[1], 2, generator=draw, dtype=torch.float64
                )
    return data


def small(**options: Any) -> HeteroData:
    """Three authors, three papers and two venues; an author without papers."""
    return typed_graph(
        {"author": 3, "paper": 3, "venue": 2},
        [(0, 1), (1, 0), (1, 1)],
        [(0, 0), (1, 0), (2, 1)],
        **options,
    )


def _relu(by_type: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: rows.relu() for name, rows in by_type.items()}


class Convolved(nn.Module):
    """Two layers of ``HeteroConv``; a row for every paper, or the mean over papers of a graph."""

    def __init__(self, level: str = "graph", *, attributes: bool = False, layers: int = 2) -> None:
        super().__init__()
        self.level, self.attributes = level, attributes

        def layer(first: bool) -> HeteroConv:
            convs = {}
            for source, name, target in RELATIONS:
                widths = (WIDTHS[source], WIDTHS[target]) if first else (8, 8)
                convs[source, name, target] = (
                    GATConv(widths, 8, edge_dim=2, add_self_loops=False)
                    if attributes
                    else SAGEConv(widths, 8)
                )
            return HeteroConv(convs)

        self.layers = nn.ModuleList([layer(at == 0) for at in range(layers)])
        self.head = nn.Linear(8, 3)

    def hidden(self, x_dict: Any, edge_index_dict: Any, edge_attr_dict: Any = None) -> Any:
        more = {"edge_attr_dict": edge_attr_dict} if self.attributes else {}
        for layer in self.layers:
            x_dict = _relu(layer(x_dict, edge_index_dict, **more))
        return x_dict


class OnGraphs(Convolved):
    """Takes dictionaries, and tells its readout how many graphs there are."""

    def forward(
        self, x_dict: Any, edge_index_dict: Any, batch_dict: Any = None, batch_size: int = 1
    ) -> Tensor:
        papers = self.hidden(x_dict, edge_index_dict)["paper"]
        batch = papers.new_zeros(len(papers), dtype=torch.long)
        batch = batch if batch_dict is None else batch_dict["paper"]
        return self.head(global_mean_pool(papers, batch, size=batch_size))


class Unsized(Convolved):
    """The same without a size, as most models are written."""

    def forward(self, x_dict: Any, edge_index_dict: Any, batch_dict: Any) -> Tensor:
        papers = self.hidden(x_dict, edge_index_dict)["paper"]
        return self.head(global_mean_pool(papers, batch_dict["paper"]))


class OfAttributes(Convolved):
    """Takes attributes of edges."""

    def forward(
        self, x_dict: Any, edge_index_dict: Any, edge_attr_dict: Any, batch_dict: Any
    ) -> Tensor:
        papers = self.hidden(x_dict, edge_index_dict, edge_attr_dict)["paper"]
        return self.head(global_add_pool(papers, batch_dict["paper"]))


class OfData(Convolved):
    """Takes one graph object."""

    def forward(self, data: HeteroData) -> Tensor:
        papers = self.hidden(data.x_dict, data.edge_index_dict)["paper"]
        size = getattr(data, "_num_graphs", 1)
        batch = data["paper"].get("batch")
        batch = papers.new_zeros(len(papers), dtype=torch.long) if batch is None else batch
        return self.head(global_mean_pool(papers, batch, size=size))


class Alone(Convolved):
    """Takes one graph at a time."""

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        papers = self.hidden(x_dict, edge_index_dict)["paper"]
        return self.head(papers.sum(dim=0))[None]


class OnPapers(Convolved):
    """A row for every paper."""

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return self.head(self.hidden(x_dict, edge_index_dict)["paper"])


class _Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def transformed(data: HeteroData) -> nn.Module:
    """A network by ``to_hetero``: a dictionary of rows for all types."""
    model = to_hetero(_Plain(), data.metadata()).double()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    return model


class Transformer(nn.Module):
    """Two layers of ``HGTConv``."""

    def __init__(self) -> None:
        super().__init__()
        self.first = HGTConv(WIDTHS, 8, METADATA, heads=2)
        self.second = HGTConv(8, 8, METADATA, heads=2)
        self.head = nn.Linear(8, 3)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        hidden = _relu(self.first(x_dict, edge_index_dict))
        return self.head(self.second(hidden, edge_index_dict)["paper"])


class Attention(nn.Module):
    """One layer of ``HANConv``, whose weights of relations are means over all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = HANConv(WIDTHS, 8, METADATA, heads=2)
        self.head = nn.Linear(8, 3)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return self.head(self.conv(x_dict, edge_index_dict)["paper"])


def seeded(make: Any, *args: Any, **options: Any) -> Any:
    """A network with the same random weights every time, in double precision."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make(*args, **options).double().eval()


def part_of(data: HeteroData, nodes: Sequence[tuple[str, int]]) -> HeteroData:
    """The subgraph of some nodes, by PyG."""
    kept = {
        name: torch.tensor(sorted(node for kind, node in nodes if kind == name), dtype=torch.long)
        for name in data.node_types
    }
    return data.subgraph(kept)
