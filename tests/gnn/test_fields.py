"""Fields that name edges follow the edges of a coalition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool

from gstarx import GameOptions, GNNGame, Passes, explain
from gstarx.gnn.fields import roles_of
from gstarx.metrics import relabeling_stability

RAW: dict[str, Any] = {"payoff": "raw", "target": "all"}


class DirectedBonds(nn.Module):
    """Messages on directed edges that do not turn back, as in a D-MPNN."""

    message_rounds = 3

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.start, self.step = nn.Linear(3, 5), nn.Linear(5, 5)
        self.end, self.head = nn.Linear(8, 4), nn.Linear(4, 2)

    def messages(self, x: Tensor, edge_index: Tensor, rev_edge_index: Tensor) -> Tensor:
        first = self.start(x[edge_index[0]])
        hidden = first.tanh()
        for _ in range(2):
            heard = global_add_pool(hidden, edge_index[1], len(x))
            hidden = (first + self.step(heard[edge_index[0]] - hidden[rev_edge_index])).tanh()
        return global_add_pool(hidden, edge_index[1], len(x))

    def embedded(self, x: Tensor, edge_index: Tensor, rev_edge_index: Tensor) -> Tensor:
        heard = self.messages(x, edge_index, rev_edge_index)
        return self.end(torch.cat([x, heard], dim=1)).tanh()

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, rev_edge_index: Tensor
    ) -> Tensor:
        hidden = self.embedded(x, edge_index, rev_edge_index)
        return self.head(global_add_pool(hidden, batch))


class BothWays(DirectedBonds):
    """The same, which without the reverse edges keeps a message for each way of every edge."""

    def forward(  # type: ignore[override]
        self, x: Tensor, edge_index: Tensor, batch: Tensor, rev_edge_index: Tensor | None = None
    ) -> Tensor:
        if rev_edge_index is not None:
            return super().forward(x, edge_index, batch, rev_edge_index)
        source, target = edge_index
        first, back_first = self.start(x[source]), self.start(x[target])
        there, back = first.tanh(), back_first.tanh()
        for _ in range(2):
            heard = global_add_pool(there, target, len(x))
            there, back = (
                (first + self.step(heard[source] - back)).tanh(),
                (back_first + self.step(heard[target] - there)).tanh(),
            )
        heard = global_add_pool(there, target, len(x))
        hidden = self.end(torch.cat([x, heard], dim=1)).tanh()
        return self.head(global_add_pool(hidden, batch))


class Ignoring(DirectedBonds):
    """Does something else where it does not get the reverse edges."""

    def forward(  # type: ignore[override]
        self, x: Tensor, edge_index: Tensor, batch: Tensor, rev_edge_index: Tensor | None = None
    ) -> Tensor:
        if rev_edge_index is not None:
            return super().forward(x, edge_index, batch, rev_edge_index)
        return self.head(global_add_pool(self.end(torch.cat([x, x, x], dim=1)[:, :8]), batch))


class Molecule(Data):
    """Says that two of its fields name edges, and that one names nothing."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key in ("rev_edge_index", "turns"):
            return self.edge_index.shape[1]
        return 0 if key == "kind_index" else super().__inc__(key, value, *args, **kwargs)


#: A ring of five with a tail of three.
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 5), (5, 6), (6, 7)]


def graph(kind: type[Data] = Data, pairs: list[tuple[int, int]] = PAIRS, seed: int = 0) -> Data:
    """Edges in a random order, each with the number of the edge that goes back."""
    shuffle = np.random.default_rng(seed)
    both = shuffle.permutation([*pairs, *((b, a) for a, b in pairs)])
    numbers = {(a, b): at for at, (a, b) in enumerate(both.tolist())}
    back = [numbers[b, a] for a, b in both.tolist()]
    count = 1 + max(map(max, pairs))
    draw = torch.Generator().manual_seed(seed)
    return kind(
        x=torch.eye(3)[torch.randint(3, (count,), generator=draw)],
        edge_index=torch.from_numpy(both.T.copy()),
        rev_edge_index=torch.tensor(back),
    )


def all_coalitions(n: int) -> Any:
    return (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1 == 1


def cut_by_hand(data: Data, inside: Any) -> Data:
    """The nodes inside and the edges between them, with the edges that go back looked up anew."""
    place = {node: at for at, node in enumerate(np.flatnonzero(inside).tolist())}
    ends = [(place[a], place[b]) for a, b in data.edge_index.t().tolist() if {a, b} <= set(place)]
    back = [ends.index((b, a)) for a, b in ends]
    return Data(
        x=data.x[torch.from_numpy(inside)],
        edge_index=torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t(),
        rev_edge_index=torch.tensor(back, dtype=torch.long),
    )


def by_hand(model: nn.Module, data: Data, coalitions: Any) -> Any:
    rows = []
    with torch.no_grad():
        for inside in coalitions:
            part = cut_by_hand(data, inside)
            batch = torch.zeros(len(part.x), dtype=torch.long)
            rows.append(model(part.x, part.edge_index, batch, part.rev_edge_index)[0])
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("kind", [Data, Molecule])
def test_worths_are_those_of_graphs_that_were_cut_by_hand(kind: type[Data]) -> None:
    model, data = DirectedBonds(), graph(kind)
    coalitions = all_coalitions(8)
    worths = GNNGame(model, data, passes=Passes(share=False), **RAW)(coalitions)
    assert np.allclose(worths, by_hand(model, data, coalitions), atol=1e-5)


@pytest.mark.parametrize("kind", [Data, Molecule])
def test_two_nodes_with_two_edges_are_distinguished(kind: type[Data]) -> None:
    model, data = DirectedBonds(), graph(kind, [(0, 1)])
    assert roles_of(data) == {"x": "node", "rev_edge_index": "edge_ids"}
    worths = GNNGame(model, data, **RAW)(all_coalitions(2))
    assert np.allclose(worths, by_hand(model, data, all_coalitions(2)), atol=1e-5)


def test_a_class_says_what_its_fields_name() -> None:
    data = graph(Molecule)
    data.kind_index, data.turns = torch.zeros(8, dtype=torch.long), torch.zeros(2, 3).long()
    assert roles_of(data)["kind_index"] == "node"
    assert roles_of(data)["turns"] == "edge_ids"
    plain = Data(**data.to_dict())
    assert roles_of(plain)["kind_index"] == "ids"
    assert roles_of(plain)["turns"] == "rest"
    plain.neg_edge_index = torch.zeros(2, 5, dtype=torch.long)
    assert roles_of(plain)["neg_edge_index"] == "ids"


def test_columns_that_name_an_absent_edge_are_dropped() -> None:
    data = graph(Molecule)
    ends = data.edge_index.t().tolist()
    turns = [(a, b) for a, e in enumerate(ends) for b, f in enumerate(ends) if e[1] == f[0]]
    data.turns = torch.tensor(turns).t()

    def model(x: Tensor, edge_index: Tensor, batch: Tensor, turns: Tensor) -> Tensor:
        assert torch.equal(edge_index[1, turns[0]], edge_index[0, turns[1]])
        owner = batch[edge_index[0, turns[0]]]
        count = torch.bincount(owner, minlength=int(batch.max()) + 1).float()
        return torch.stack([count, count], dim=1)

    coalitions = all_coalitions(8)
    worths = GNNGame(model, data, **RAW)(coalitions)[:, 0]
    expected = [
        sum(all(inside[node] for node in (*ends[a], *ends[b])) for a, b in turns)
        for inside in coalitions
    ]
    assert worths.tolist() == expected


@pytest.mark.parametrize("kind", [Data, Molecule])
def test_a_model_that_takes_data_can_take_the_batch_apart(kind: type[Data]) -> None:
    network = DirectedBonds()

    def model(data: Batch) -> Tensor:
        outputs = []
        for part in data.to_data_list():
            source, target = part.edge_index
            assert torch.equal(source[part.rev_edge_index], target)
            batch = torch.zeros(part.num_nodes, dtype=torch.long)
            outputs.append(network(part.x, part.edge_index, batch, part.rev_edge_index))
        together = network(data.x, data.edge_index, data.batch, data.rev_edge_index)
        assert torch.allclose(torch.cat(outputs), together, atol=1e-5)
        return together

    data, coalitions = graph(kind), all_coalitions(8)[::5]
    game = GNNGame(model, data, **RAW)
    assert np.allclose(game(coalitions), by_hand(network, data, coalitions), atol=1e-5)
    assert game.sharing.reason in ("the model takes a field that names edges", "")


def test_nodes_of_a_large_graph_keep_their_reverse_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    # its own code reads edges, and small graphs would be left whole
    monkeypatch.setattr("gstarx.gnn.own_code._SMALL", 0)
    network = DirectedBonds()

    class OfNodes(nn.Module):
        message_rounds = 3

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Tensor, edge_index: Tensor, rev_edge_index: Tensor) -> Tensor:
            return network.head(network.embedded(x, edge_index, rev_edge_index))

    data = graph(pairs=[(i, i + 1) for i in range(40)], seed=1)
    game = GNNGame(OfNodes(), data, index=20, task="node", **RAW)
    assert game.nodes.tolist() == list(range(17, 24))  # as far as the declared rounds go
    assert game.data.num_nodes < 41
    own = network.head(network.embedded(data.x, data.edge_index, data.rev_edge_index))[20]
    assert np.allclose(game.prediction.numpy(), own.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", [Data, Molecule])
def test_a_removal_of_ones_own_leaves_numbers_of_edges_of_its_graph(kind: type[Data]) -> None:
    def removed(data: Data, inside: Tensor) -> Data:
        cut = cut_by_hand(data, inside.numpy())
        return kind(**cut.to_dict())

    model, data, coalitions = DirectedBonds(), graph(kind), all_coalitions(8)[::3]
    worths = GNNGame(model, data, game=GameOptions(removal=removed), **RAW)(coalitions)
    assert np.allclose(worths, by_hand(model, data, coalitions), atol=1e-5)


def test_coalitions_do_not_share_where_reverse_edges_are_needed() -> None:
    game = GNNGame(DirectedBonds(), graph(), **RAW)
    game(all_coalitions(8))
    assert game.sharing.reason == "the model takes a field that names edges"
    with pytest.raises(ValueError, match="field that names edges"):
        GNNGame(DirectedBonds(), graph(), passes=Passes(share=True), **RAW)


def test_coalitions_share_where_a_model_can_do_without_reverse_edges() -> None:
    model, data, coalitions = BothWays(), graph(), all_coalitions(8)
    game = GNNGame(model, data, passes=Passes(share=True), **RAW)
    assert np.allclose(game(coalitions), by_hand(model, data, coalitions), atol=1e-5)
    assert game.sharing.used
    assert game.sharing.states < game.sharing.nodes / 2


def test_a_model_that_differs_without_reverse_edges_is_found_out() -> None:
    model, data, coalitions = Ignoring(), graph(), all_coalitions(8)
    game = GNNGame(model, data, **RAW)
    game._scores.shared._share = True  # whether or not it is worth it
    with pytest.raises(ValueError, match="cannot share"):
        game(coalitions)
    game = GNNGame(model, data, passes=Passes(share=False), **RAW)
    assert np.allclose(game(coalitions), by_hand(model, data, coalitions), atol=1e-5)


def test_edges_that_do_not_join_the_same_nodes_are_refused() -> None:
    data = graph()
    data.rev_edge_index = data.rev_edge_index.roll(1)
    with pytest.raises(ValueError, match=r"rev_edge_index names edge \d+ for edge \d+"):
        explain(DirectedBonds(), data, value="shapley")


@pytest.mark.parametrize("wrong", [-1, 16])
def test_an_edge_that_is_not_there_is_refused(wrong: int) -> None:
    data = graph()
    data.rev_edge_index[3] = wrong
    with pytest.raises(ValueError, match=rf"numbers in 0\.\.15 \(got {wrong}\)"):
        GNNGame(DirectedBonds(), data)


def test_numbers_of_edges_stay_when_nodes_are_renumbered() -> None:
    model = DirectedBonds()

    def scores(data: Data) -> Any:
        source, target = data.edge_index
        assert torch.equal(source[data.rev_edge_index], target)
        return explain(model, data, value="myerson", target=0, task="regression").scores

    assert relabeling_stability(scores, graph(), repeats=2, seed=0).largest < 1e-5
