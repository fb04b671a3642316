"""Many nodes of one graph: the same numbers from any number of processes."""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from gstarx import GameOptions, Passes, explain, explain_nodes
from gstarx._internal.processes import can_fork, forked_map
from gstarx.explainers import FailedExplanation, graph_generator, iter_explanations
from gstarx.players import Edges
from gstarx.values import PrecisionWarning
from tests.pairs import for_each

NODES = [3, 8, 0, 22, 5]
pytestmark = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(6, 8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.fixture(scope="module")
def subject() -> tuple[Network, Data]:
    torch.manual_seed(1)
    ends = torch.randint(30, (2, 70))
    ends = ends[:, (ends != 29).all(dim=0)]  # the last node is isolated
    return Network().eval(), Data(
        x=torch.randn(30, 6), edge_index=torch.cat([ends, ends.flip(0)], 1)
    )


OPTIONS: list[dict[str, Any]] = [
    {"value": "shapley", "players": Edges(directed=True), "budget": 600},
    {"value": "banzhaf", "budget": 300, "game": GameOptions(computation_graph="gnnshap")},
    {"value": "myerson", "target": [0, 2], "budget": 300},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_number_of_processes_changes_nothing(
    subject: tuple[Network, Data], options: dict[str, Any]
) -> None:
    def explained(workers: int) -> Any:
        return explain_nodes(*subject, NODES, **options, seed=1, workers=workers, progress=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        one, two = explained(1), explained(2)
        alone = explain(*subject, index=8, seed=graph_generator(1, 8), task="node", **options)
    for first, second in zip(one, two, strict=True):
        assert torch.equal(first.scores, second.scores)
        assert torch.equal(first.std_errors, second.std_errors)
        assert first.to_dict().keys() == second.to_dict().keys()
        assert int(first.index) == int(second.index)
        assert torch.equal(first.prediction, second.prediction)
        assert first.seconds > 0
        assert second.seconds > 0
    assert torch.equal(two[1].scores, alone.scores)


def test_failures_and_warnings_come_back(subject: tuple[Network, Data]) -> None:
    options: dict[str, Any] = {"players": Edges(directed=True), "value": "shapley"}
    made = explain_nodes(
        *subject, [3, 29, 5], **options, workers=2, on_error="record", progress=False
    )
    assert isinstance(made[1], FailedExplanation)
    assert (made[1].position, str(made[1].error)) == (
        29,
        "no edge brings a message to node 29: there are no players",
    )
    with pytest.raises(ValueError, match="no edge brings a message") as caught:
        explain_nodes(*subject, [3, 29, 5], **options, workers=2, progress=False)
    assert caught.value.__notes__ == ["while explaining node 29"]
    few = {**options, "value": "banzhaf", "budget": 112}
    with pytest.warns(PrecisionWarning):
        explain_nodes(*subject, [3, 8], **few, seed=4, workers=2, progress=False)


@for_each("workers", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_workers(subject: tuple[Network, Data], workers: Any) -> None:
    with pytest.raises(ValueError, match="workers must be an integer of at least 1"):
        explain_nodes(*subject, [3], workers=workers)


def test_processes_that_die_and_errors_that_cannot_be_sent() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    def odd(item: int) -> int:
        if item == 1:
            raise Odd(item, 2)
        return item

    outcomes = list(forked_map(odd, [0, 1, 2], 2))
    assert [outcomes[0].get(), outcomes[2].get()] == [0, 2]
    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        outcomes[1].get()

    (unsendable,) = forked_map(lambda _: odd, [0], 2)
    with pytest.raises((AttributeError, pickle.PicklingError), match="odd"):
        unsendable.get()

    def dies(item: int) -> int:
        os._exit(3)

    for outcome in forked_map(dies, [0, 1], 2):
        with pytest.raises(RuntimeError, match="the worker process died, with exit code 3"):
            outcome.get()


def test_a_process_that_dies_costs_only_its_node() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    data = Data(
        x=torch.randn(600, 6), edge_index=torch.cat([edge + i for i in range(0, 600, 2)], 1)
    )
    data.x[[4, 8], 0] = torch.tensor([1e3, 2e3])
    network, parent = Network().eval(), os.getpid()

    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        if (x == 1e3).any() and os.getpid() != parent:
            os._exit(3)
        if (x == 2e3).any() and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return network(x, edge_index)

    nodes = [4, 0, 2, 8, 6, 10, 12]
    options: dict[str, Any] = {"seed": 0, "progress": False, "passes": Passes(share=False)}
    made = explain_nodes(model, data, nodes, workers=2, on_error="record", **options)
    alone = dict(zip(nodes, explain_nodes(model, data, nodes, **options), strict=True))
    died = {one.position: str(one.error) for one in made if isinstance(one, FailedExplanation)}
    assert died.keys() == {4, 8}
    assert died[4] == "the worker process died, with exit code 3"
    assert "killed by signal 9" in died[8]
    for node, one in zip(nodes, made, strict=True):
        if node not in died:
            assert torch.equal(one.scores, alone[node].scores)
    with pytest.raises(RuntimeError, match="died, with exit code 3") as caught:
        explain_nodes(model, data, nodes, workers=2, **options)
    assert caught.value.__notes__ == ["while explaining node 4"]


KINDS: list[dict[str, Any]] = [
    {},
    {"value": "myerson", "target": [0, 2]},
    {"players": Edges(directed=True)},
    {"players": "edges", "value": "banzhaf", "target": "all"},
]


@pytest.mark.parametrize("options", KINDS[::2])
def test_results_hold_their_players_only(options: dict[str, Any]) -> None:
    count = 20_000
    ring = torch.arange(count)
    there = torch.stack([ring, (ring + 1) % count])
    data = Data(x=torch.randn(count, 6), edge_index=torch.cat([there, there.flip(0)], dim=1))
    options = {"value": "shapley", **options}
    made = explain_nodes(Network().eval(), data, range(0, 40, 2), progress=False, **options)
    if "players" not in options:
        made = [one.score_edges() for one in made]
    first, last = made[0], made[-1]
    assert len({one.prediction.data_ptr() for one in made}) == 1
    # a number for every node takes 160 kB
    assert len(pickle.dumps(made)) - len(pickle.dumps(made[:1])) < 200_000
    # what is made on request is what was held before
    for one in (first, last):
        if "players" not in options:
            assert one.node_scores[one.players].tolist() == one.scores.tolist()
            assert one.node_scores.shape[0] == count
            assert int((one.node_scores != 0).sum()) <= one.scores.numel()
        mask = one.get("edge_mask" if one.scores.dim() == 1 else "edge_scores")
        assert mask.shape[0] == 2 * count
        predicted = one.prediction[one.index].argmax(-1).tolist()
        assert one.target[one.index].tolist() == predicted
        assert one.validate()
    assert not torch.equal(first.scores, last.scores)


def test_results_come_one_at_a_time(subject: tuple[Network, Data]) -> None:
    model, data = subject
    options: dict[str, Any] = {"value": "shapley", "seed": 1, "progress": False}
    expected = explain_nodes(model, data, NODES, **options)
    model.train()
    try:
        results = iter_explanations(model, data, NODES, **options)
        for one, found in zip(expected, results, strict=True):
            assert model.training  # between two nodes, the model is as it was
            assert torch.equal(one.scores, found.scores)
        next(iter_explanations(model, data, NODES, **options, workers=2)).validate()
        assert model.training
    finally:
        model.eval()
    bad = iter_explanations(model, data, [3, 29, 5], players="edges", on_error="record", **options)
    assert [isinstance(one, FailedExplanation) for one in bad] == [False, True, False]


def test_arguments_are_checked_before_the_first_result(subject: tuple[Network, Data]) -> None:
    for wrong, message in (
        ({"nodes": [99]}, "nodes must lie in"),
        ({"nodes": [0], "on_error": "?"}, "on_error"),
        ({"nodes": [0], "valeu": "hn"}, "valeu"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            iter_explanations(*subject, **wrong)
