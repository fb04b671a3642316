"""Steps that read the edges outside of any layer, each right for a batch of disjoint graphs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.utils import degree, scatter

from tests.differential.inputs import Inputs

Reader = Callable[[Inputs], Tensor]


def _adjacency(g: Inputs) -> Tensor:
    """Which pairs of nodes are linked, either way, without loops."""
    n = len(g.x)
    matrix = g.x.new_zeros(n, n)
    matrix[g.edge_index[0], g.edge_index[1]] = 1.0
    matrix = torch.maximum(matrix, matrix.t())
    return matrix * (1 - torch.eye(n, dtype=matrix.dtype))


def _to_nodes(g: Inputs, of_edges: Tensor, reduce: str = "sum", end: int = 1) -> Tensor:
    return scatter(of_edges, g.edge_index[end], dim_size=len(g.x), reduce=reduce)


def _to_graphs(g: Inputs, of_edges: Tensor, reduce: str = "sum") -> Tensor:
    """A number for every graph from those of its edges, given to all its nodes."""
    owner = g.owner
    return scatter(of_edges, owner[g.edge_index[0]], dim_size=g.graphs, reduce=reduce)[owner]


def _ones(g: Inputs) -> Tensor:
    return g.x.new_ones(g.edge_index.shape[1])


def in_degree(g: Inputs) -> Tensor:
    return degree(g.edge_index[1], len(g.x), dtype=g.x.dtype)


def out_degree(g: Inputs) -> Tensor:
    return degree(g.edge_index[0], len(g.x), dtype=g.x.dtype)


def isolated(g: Inputs) -> Tensor:
    return (_adjacency(g).sum(dim=1) == 0).to(g.x.dtype)


def loops(g: Inputs) -> Tensor:
    return _to_nodes(g, (g.edge_index[0] == g.edge_index[1]).to(g.x.dtype))


def parity(g: Inputs) -> Tensor:
    return in_degree(g) % 2


def neighbor_degrees(g: Inputs) -> Tensor:
    return _to_nodes(g, in_degree(g)[g.edge_index[0]], "mean")


def largest_neighbor(g: Inputs) -> Tensor:
    return _to_nodes(g, out_degree(g)[g.edge_index[0]], "max")


def degree_differences(g: Inputs) -> Tensor:
    sizes = in_degree(g)
    return _to_nodes(g, (sizes[g.edge_index[0]] - sizes[g.edge_index[1]]).abs())


def triangles(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    return torch.diagonal(adjacency @ adjacency @ adjacency) / 2


def clustering(g: Inputs) -> Tensor:
    sizes = _adjacency(g).sum(dim=1)
    return 2 * triangles(g) / (sizes * (sizes - 1)).clamp(min=1)


def squares(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    common = adjacency @ adjacency
    common = common - torch.diag(torch.diagonal(common))
    return (common * (common - 1) / 2).sum(dim=1)


def common_neighbors(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    return _to_nodes(g, (adjacency @ adjacency)[g.edge_index[0], g.edge_index[1]])


def jaccard(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    both, sizes = adjacency @ adjacency, adjacency.sum(dim=1)
    either = (sizes[:, None] + sizes[None] - both).clamp(min=1)
    return _to_nodes(g, (both / either)[g.edge_index[0], g.edge_index[1]])


def two_hops(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    return ((adjacency @ adjacency) > 0).to(g.x.dtype).sum(dim=1)


def random_walk(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    step = adjacency / adjacency.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.diagonal(step @ step) + torch.diagonal(step @ step @ step)


def core_number(g: Inputs) -> Tensor:
    adjacency = _adjacency(g)
    cores, alive = g.x.new_zeros(len(g.x)), g.x.new_ones(len(g.x))
    for k in range(1, len(g.x) + 1):
        while True:
            weak = (alive > 0) & ((adjacency @ alive) < k)
            if not weak.any():
                break
            alive = alive.masked_fill(weak, 0.0)
        if not alive.any():
            break
        cores = torch.where(alive > 0, float(k), cores)
    return cores


def component_size(g: Inputs) -> Tensor:
    reach = _adjacency(g) + torch.eye(len(g.x), dtype=g.x.dtype)
    for _ in range(len(g.x).bit_length()):
        reach = ((reach @ reach) > 0).to(g.x.dtype)
    return reach.sum(dim=1)


def page_rank(g: Inputs) -> Tensor:
    sent = out_degree(g).clamp(min=1)
    rank = g.x.new_ones(len(g.x))
    for _ in range(12):
        rank = 0.15 + 0.85 * _to_nodes(g, (rank / sent)[g.edge_index[0]])
    return rank


def reciprocity(g: Inputs) -> Tensor:
    n = len(g.x)
    matrix = g.x.new_zeros(n, n)
    matrix[g.edge_index[0], g.edge_index[1]] = 1.0
    return (matrix * matrix.t()).sum(dim=1) / matrix.sum(dim=1).clamp(min=1)


def multiplicity(g: Inputs) -> Tensor:
    n = len(g.x)
    counts = g.x.new_zeros(n, n)
    counts.index_put_((g.edge_index[0], g.edge_index[1]), g.x.new_ones(()), accumulate=True)
    return counts.amax(dim=0)


def number_of_edges(g: Inputs) -> Tensor:
    return _to_graphs(g, _ones(g)) / 4


def number_of_loops(g: Inputs) -> Tensor:
    return _to_graphs(g, (g.edge_index[0] == g.edge_index[1]).to(g.x.dtype))


def density(g: Inputs) -> Tensor:
    sizes = scatter(torch.ones_like(g.x[:, 0]), g.owner, dim_size=g.graphs)[g.owner]
    return _to_graphs(g, _ones(g)) / sizes.square()


def mean_attributes(g: Inputs) -> Tensor:
    return _to_graphs(g, g.edge_attr[:, 0], "mean")


def largest_attribute(g: Inputs) -> Tensor:
    return _to_nodes(g, g.edge_attr[:, 1], "max")


def weights(g: Inputs) -> Tensor:
    return _to_nodes(g, g.edge_weight)


#: Those that only see what is near a node.
LOCAL: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        in_degree,
        out_degree,
        isolated,
        loops,
        parity,
        neighbor_degrees,
        largest_neighbor,
        degree_differences,
        triangles,
        clustering,
        squares,
        common_neighbors,
        jaccard,
        two_hops,
        random_walk,
        reciprocity,
        multiplicity,
        largest_attribute,
        weights,
    )
}
#: Those that see the whole component, or the whole graph.
GLOBAL: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        core_number,
        component_size,
        page_rank,
        number_of_edges,
        number_of_loops,
        density,
        mean_attributes,
    )
}
TAKES = {
    "largest_attribute": {"edge_attr"},
    "mean_attributes": {"edge_attr"},
    "weights": {"edge_weight"},
    "number_of_edges": {"batch"},
    "number_of_loops": {"batch"},
    "density": {"batch"},
}


class Reads(nn.Module):
    """What is read is added to the features, or scales them."""

    def __init__(self, width: int, name: str, scales: bool) -> None:
        super().__init__()
        self.read, self.scales = {**LOCAL, **GLOBAL}[name], scales
        self.lin = nn.Linear(1, width)

    def forward(self, h: Tensor, g: Inputs) -> Tensor:
        found = self.read(g)[:, None] / 2
        return h * (1 + found) if self.scales else h + self.lin(found)
