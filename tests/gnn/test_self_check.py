"""Models that mix a batch, or draw random numbers, do not give plausible wrong numbers."""

from __future__ import annotations

import threading
import warnings
from collections import UserList
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, GraphNorm, SAGEConv, global_mean_pool
from torch_geometric.utils import degree

from gstarx import (
    GameOptions,
    GNNGame,
    Judge,
    Passes,
    Subgraphs,
    expected_output,
    explain,
    explain_many,
    explainers,
)
from gstarx.gnn.self_check import BatchMixing, difference, rounding
from gstarx.metrics import evaluate
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import coalitions, graph, removed
from tests.pairs import for_each, in_turn

RAW: dict[str, Any] = {"payoff": "raw", "target": "all"}


class Mixing(nn.Module):
    """GraphNorm over the whole batch; remembers how many graphs it was shown at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = GCNConv(FEATURES, 8), GraphNorm(8)
        self.head = nn.Linear(8, CLASSES)
        self.shown: UserList[int] = UserList()  # a list would be put back

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        hidden = self.norm(self.conv(x, edge_index)).relu()
        out = self.head(global_mean_pool(hidden, batch))
        self.shown.append(len(out))
        return out


def mixing(seed: int = 0) -> Mixing:
    torch.manual_seed(seed)
    return Mixing().eval()


def alone(model: Any, data: Data, rows: Any) -> Any:
    with torch.no_grad():
        parts = [removed(data, torch.from_numpy(row.copy())) for row in rows]
        return torch.cat([model(part.x, part.edge_index) for part in parts]).numpy()


def test_a_batch_of_one_coalition_holds_one() -> None:
    model, data, rows = mixing(), graph("messy"), coalitions(7, at_most=20)
    game = GNNGame(model, data, lazy=True, passes=Passes(batch_nodes=1), **RAW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        worths = game(rows)
        found = explain(model, data, passes=Passes(batch_nodes=1))
    assert set(model.shown) == {1}
    np.testing.assert_allclose(worths, alone(model, data, rows), atol=1e-6)
    torch.testing.assert_close(found.prediction, model(data.x, data.edge_index))


def test_a_batch_is_evaluated_one_by_one_with_one_warning() -> None:
    model, graphs = mixing(), [graph("ring", seed=seed) for seed in range(3)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        many = explain_many(model, graphs, progress=False)
    assert [str(w.message).partition(":")[0] for w in said] == [
        "the model mixes the graphs of a batch"
    ]
    for data, found in zip(graphs, many, strict=True):
        expected = explain(model, data, passes=Passes(batch_nodes=1))
        torch.testing.assert_close(found.node_mask, expected.node_mask, atol=1e-6, rtol=0)
        assert found.check["one_by_one"] == "the model mixes the graphs of a batch"
        assert found.check["largest_difference"] > 1e-3


@pytest.mark.filterwarnings("ignore:the model mixes")
def test_shared_passes_metrics_and_baselines_do_not_mix_either() -> None:
    model, graphs = mixing(), [graph("ring", seed=seed) for seed in range(4)]
    value = Subgraphs(value="myerson", max_sample_size=4)
    options: dict[str, Any] = {"value": value, "seed": 0}
    many = explain_many(model, graphs, progress=False, **options)
    singly = explain_many(model, graphs, progress=False, passes=Passes(batch_nodes=1), **options)
    for found, expected in zip(many, singly, strict=True):
        torch.testing.assert_close(found.node_mask, expected.node_mask, atol=1e-6, rtol=0)
    judged = Judge(model).many(graphs, [[0, 1]] * 4)
    for data, one in zip(graphs, judged, strict=True):
        exact = evaluate(model, data, [0, 1], batch_nodes=1)
        assert one.fidelity == pytest.approx(exact.fidelity, abs=1e-6)
    with torch.no_grad():
        apart = torch.cat([model(g.x, g.edge_index) for g in graphs]).softmax(dim=1).mean(dim=0)
    torch.testing.assert_close(expected_output(model, graphs), apart.double(), atol=1e-6, rtol=0)


class Sized(nn.Module):
    """Keeps small batches apart and mixes large ones, as a model with a shortcut may."""

    def __init__(self, threshold: int) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(x[:, :3], batch)
        # from some point on the batches hold coalitions of several nodes
        late = len(out) > 1 and len(x) > self.threshold * len(out)
        return out + late * out.mean(dim=0)


class Cancelling(nn.Module):
    """Small outputs from large terms that cancel, and that differ with the size of the batch.

    In single precision the outputs differ by rounding; ``leak`` adds some of the others' mean.
    """

    def __init__(self, leak: float = 0.0) -> None:
        super().__init__()
        self.scale, self.leak = nn.Parameter(torch.ones(3)), leak

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(x[:, :3], batch) * self.scale
        large = 8000.0 if len(out) % 2 else 500.0
        return (out + large) - large + self.leak * out.mean(dim=0)


def test_rounding_where_large_terms_cancel_is_no_mixing() -> None:
    model, data, rows = Cancelling(), graph("ring"), coalitions(6)
    before = {key: (value.dtype, value.data_ptr()) for key, value in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game = GNNGame(model, data, passes=Passes(share=False), **RAW)
        game(rows)
        Judge(model).many([data] * 3, [[0, 1]] * 3)
        expected_output(model, [graph("ring", seed=seed) for seed in range(4)])
    assert game.check.largest_difference > rounding(torch.float32)
    assert game.check.one_by_one == ""
    after = {key: (value.dtype, value.data_ptr()) for key, value in model.state_dict().items()}
    assert after == before


def test_a_little_mixing_is_told_from_rounding() -> None:
    data, rows = graph("ring"), coalitions(6)
    graphs = [graph("ring", seed=seed) for seed in range(4)]
    for model in (Cancelling(leak=1e-3), Cancelling(leak=1e-3).forward):
        game = GNNGame(model, data, passes=Passes(share=False), **RAW)
        with pytest.warns(UserWarning, match="mixes"):
            game(rows)
        assert game.check.largest_difference < 100 * rounding(torch.float32)
        with pytest.warns(UserWarning, match="mixes"):
            expected_output(model, graphs)


class Flipping(Cancelling):
    """A choice that rounding decides, and that changes the output by much."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(x[:, :3], batch) * self.scale
        large = 8000.0 if len(out) % 2 else 0.0
        return out + (((out + large) - large - out).abs() > 1e-6)


def test_rounding_that_changes_outputs_by_much_counts_as_mixing() -> None:
    game = GNNGame(Flipping(), graph("ring"), passes=Passes(share=False), **RAW)
    with pytest.warns(UserWarning, match="mixes"):
        game(coalitions(6))


def test_rounding_of_what_has_no_precision_of_its_own_counts_as_mixing() -> None:
    def without_network(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(x[:, :3], batch)
        large = 8000.0 if len(out) % 2 else 500.0
        return (out + large) - large

    game = GNNGame(without_network, graph("ring"), **RAW)
    with pytest.warns(UserWarning, match="mixes"):
        game(coalitions(6))


def test_mixing_that_shows_later_is_handled_too() -> None:
    data = graph("ring")
    rows = np.concatenate([np.eye(6, dtype=bool), ~np.eye(6, dtype=bool)])
    game = GNNGame(Sized(2), data, passes=Passes(batch_nodes=13), **RAW)
    with pytest.warns(UserWarning, match="mixes"):
        worths = game(rows)
    expected = [data.x[row, :3].mean(dim=0).tolist() for row in rows]
    np.testing.assert_allclose(worths, expected, atol=1e-6)


def test_worths_that_were_given_out_already_are_not_mixed_with_others() -> None:
    data = graph("ring")
    game = GNNGame(Sized(4), data, passes=Passes(batch_nodes=13), **RAW)
    game(np.eye(6, dtype=bool))
    rows = ~np.eye(6, dtype=bool)
    with pytest.warns(UserWarning, match="mixes"), pytest.raises(BatchMixing, match="Ask for ev"):
        game(rows)
    assert game.evaluations == 0
    expected = [data.x[row, :3].mean(dim=0).tolist() for row in rows]
    np.testing.assert_allclose(game(rows), expected, atol=1e-6)


class Guarded(nn.Module):
    """Does something else with small graphs."""

    def __init__(self, guard: str) -> None:
        super().__init__()
        self.guard, self.conv = guard, GCNConv(FEATURES, 8)
        self.lin, self.head = nn.Linear(FEATURES, 8), nn.Linear(8, 3)
        self.norm = nn.BatchNorm1d(8)
        self.norm.running_mean += 0.5  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        edgeless = self.guard == "no edges" and edge_index.numel() == 0
        hidden = self.lin(x) if edgeless else self.conv(x, edge_index)
        if self.guard == "more than one row" and len(x) > 1:
            hidden = self.norm(hidden)
        if self.guard == "a scale":
            hidden = hidden / max(1, 6 - len(x))
        out = self.head(global_mean_pool(hidden.relu(), batch))
        return 0 * out if self.guard == "at least four" and len(x) < 4 else out


GUARDS = ("no edges", "more than one row", "a scale", "at least four")


@pytest.mark.parametrize(
    ("guard", "nodes", "share"), in_turn(GUARDS, [6, 12], ["auto", False], each=2)
)
def test_small_graphs_are_evaluated_alone(guard: str, nodes: int, share: Any) -> None:
    torch.manual_seed(0)
    ring = torch.arange(nodes)
    ends = torch.stack([ring, (ring + 1) % nodes])
    data = Data(x=torch.randn(nodes, FEATURES), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    model = Guarded(guard).eval()
    for value in ("hn", "shapley"):
        with pytest.warns(UserWarning, match="mixes the graphs"):
            found = explain(model, data, value=value, target=1, passes=Passes(share=share))
        alone = explain(model, data, value=value, target=1, passes=Passes(batch_nodes=1))
        torch.testing.assert_close(found.scores, alone.scores)


def test_small_graphs_that_come_late_are_evaluated_alone_too() -> None:
    game = GNNGame(Guarded("no edges").eval(), graph("ring"), passes=Passes(share=False), **RAW)
    game._scores._compare_one_player = lambda everybody: None  # type: ignore[method-assign]
    game(~np.eye(6, dtype=bool))
    with pytest.warns(UserWarning, match="mixes"), pytest.raises(BatchMixing, match="Ask for ev"):
        game(coalitions(6))


class Blended(nn.Module):
    """Outputs with a share of those of the others in the batch, and an offset."""

    def __init__(self, share: float, offset: float = 0.0) -> None:
        super().__init__()
        self.conv, self.share, self.offset = GCNConv(FEATURES, 3), share, offset

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out = global_mean_pool(self.conv(x, edge_index), batch)
        return out + self.share * out.mean(dim=0) + self.offset


@for_each(
    ("dtype", "mixed", "offset", "share"),
    [
        (torch.float16, 0.3, 0.0, "auto"),
        (torch.bfloat16, 0.3, 0.0, False),
        (torch.float32, 1e-3, 0.0, "auto"),
        (torch.float32, 1e-3, 0.0, False),
        (torch.float32, 0.05, 1_000.0, False),
        (torch.float64, 1e-6, 1_000.0, "auto"),
    ],
)
def test_mixing_is_measured_by_the_spread(
    dtype: torch.dtype, mixed: float, offset: float, share: Any
) -> None:
    torch.manual_seed(0)
    data = graph("ring")
    data.x = data.x.to(dtype)
    for leak in (mixed, 0.0):
        game = GNNGame(
            Blended(leak, offset).to(dtype).eval(), data, passes=Passes(share=share), **RAW
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            game(coalitions(6))
        assert bool(said) == bool(leak), game.check


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.drop = GCNConv(FEATURES, 3), nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        hidden = nn.functional.dropout(self.drop(self.conv(x, edge_index)), 0.5)
        return global_mean_pool(hidden, batch)


NAMED = r"in evaluation mode \(they differ by .* drawn by dropout in Drawing"


def test_a_random_model_is_refused_by_the_name_of_what_is_random() -> None:
    model, data = Drawing(), graph("ring")
    for task in ({}, {"task": "node", "index": 2}):
        with pytest.raises(ValueError, match=NAMED if not task else "in evaluation mode"):
            explain(model if not task else NodeDrawing(), data, **task)
    with pytest.raises(ValueError, match=NAMED):
        explain(model, data, passes=Passes(batch_nodes=1))  # there is no batch to blame
    eager = GNNGame(model, data, passes=Passes(batch_nodes=1))
    with pytest.raises(ValueError, match=NAMED):
        eager(np.eye(6, dtype=bool))
    with pytest.raises(ValueError, match=NAMED):
        expected_output(model, [graph("ring"), graph("messy")])
    with pytest.raises(ValueError, match=NAMED):
        explain(model, data, game=GameOptions(fallback=0.0))
    explain(model, data, passes=Passes(check=False))


class NodeDrawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return nn.functional.dropout(self.conv(x, edge_index), 0.5)


def test_a_model_that_remembers_is_refused() -> None:
    calls = []

    def counting(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        calls.append(1)
        return global_mean_pool(x[:, :3], batch) + len(calls)

    with pytest.raises(ValueError, match="may draw elsewhere or keep state"):
        explain(counting, graph("ring"))


def test_the_check_can_be_left_out() -> None:
    model, data = mixing(), graph("ring")
    found = explain(model, data, passes=Passes(check=False))
    assert found.check == {
        "enabled": False,
        "comparisons": 0,
        "largest_difference": 0.0,
        "one_by_one": "",
    }
    model.shown.clear()
    explainers.create("shapley", check=False).explain(model, data)
    assert max(model.shown) > 1


def test_a_model_that_keeps_graphs_apart_is_compared_and_passes() -> None:
    torch.manual_seed(0)
    found = explain(GCN(FEATURES, 8, CLASSES), graph("ring"))
    assert found.check["comparisons"] > 8
    assert found.check["largest_difference"] < rounding(torch.float32)
    assert found.check["one_by_one"] == ""


def test_differences() -> None:
    nan, inf = float("nan"), float("inf")
    assert difference(torch.tensor([1.0, nan, inf]), torch.tensor([1.5, nan, inf])) == 0.5
    assert difference(torch.tensor([nan]), torch.tensor([1.0])) == inf
    assert difference(torch.tensor([inf]), torch.tensor([-inf])) == inf
    assert difference(torch.zeros(1, 2), torch.zeros(1, 3)) == inf
    assert difference(torch.zeros(0), torch.zeros(0)) == 0


# -- threads ---------------------------------------------------------------------------------------


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.drop, self.head = GCNConv(FEATURES, 8), nn.Dropout(0.5), nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.head(global_mean_pool(self.drop(self.conv(x, edge_index)), batch))


@pytest.mark.parametrize("wrapped", [False, True])
def test_threads_that_share_a_model_in_training_mode(wrapped: bool) -> None:
    torch.manual_seed(0)
    model = Dropping().train()
    graphs = [graph("messy", seed=seed) for seed in range(6)]
    expected = [explain(model, data).node_mask for data in graphs]
    found: dict[tuple[int, int], Tensor] = {}
    errors: list[Exception] = []

    def work(thread: int) -> None:
        # every thread has its own wrapper around the same layers
        network = nn.DataParallel(model) if wrapped and thread % 2 else model
        try:
            for at, data in enumerate(graphs):
                found[thread, at] = explain(network, data, passes=Passes(check=False)).node_mask
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(module.training for module in model.modules())
    for (_, at), mask in found.items():
        torch.testing.assert_close(mask, expected[at], atol=1e-6, rtol=0)
    assert len(found) == 24


# -- what comes in ---------------------------------------------------------------------------------


def test_loaders_and_batches_of_many_graphs() -> None:
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES)
    graphs = [Data(x=g.x, edge_index=g.edge_index) for g in map(graph, ("ring", "messy", "ring"))]
    expected = [found.node_mask for found in explain_many(model, graphs, progress=False)]
    for source in (DataLoader(graphs, batch_size=2), Batch.from_data_list(graphs), iter(graphs)):
        many = explain_many(model, source, progress=False)
        for found, mask in zip(many, expected, strict=True):
            torch.testing.assert_close(found.node_mask, mask)
    with pytest.raises(TypeError, match=r"several graphs \(got one Data\); use explain"):
        explain_many(model, graphs[0])
    with pytest.raises(ValueError, match="data holds 3 graphs: explain one at a time, or use exp"):
        explain(model, Batch.from_data_list(graphs))


def test_one_logit_between_zero_and_one_is_no_sum() -> None:
    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_mean_pool(x[:, :1].sigmoid(), batch)

    with pytest.warns(UserWarning, match=r"\(all lie between 0 and 1\): if they are, say"):
        explain(model, graph("ring"), task="binary_classification")


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_sparse_adjacency_is_refused_with_the_way_out() -> None:
    data = graph("ring")
    data.adj_t = torch.sparse_coo_tensor(
        data.edge_index.flip(0), torch.ones(12), (6, 6)
    ).to_sparse_csr()
    edges, data.edge_index = data.edge_index, None
    with pytest.raises(TypeError, match=r"got NoneType\)\. The data has adj_t: .*to_edge_index"):
        explain(GCN(FEATURES, 8, CLASSES), data)
    from torch_geometric.utils import to_edge_index

    again = to_edge_index(data.adj_t)[0].flip(0)
    assert sorted(again.t().tolist()) == sorted(edges.t().tolist())


class Memorizing(nn.Module):
    """Keeps degrees by the number of nodes, which are those of the first graph of this size."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.head = SAGEConv(FEATURES, 8), nn.Linear(8, CLASSES)
        self.kept, self.degrees = kept, dict[int, Tensor]()
        self.last: Tensor | None = None
        self.register_buffer("buffered", None)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = len(x)
        known = {
            "dictionary": self.degrees.get(count),
            "attribute": self.last,
            "buffer": self.buffered,
        }[self.kept]
        if known is None or len(known) != count:
            known = degree(edge_index[1], count)[:, None]
            if self.kept == "dictionary":
                self.degrees[count] = known
            elif self.kept == "attribute":
                self.last = known
            else:
                self.buffered = known
        return self.head((self.conv(x, edge_index).tanh() / (1 + known)).sum(dim=0, keepdim=True))


@pytest.mark.parametrize("kept", ["dictionary", "attribute", "buffer"])
def test_nothing_is_remembered_from_one_coalition_to_the_next(kept: str) -> None:
    model, data, rows = Memorizing(kept).eval(), graph("ring"), coalitions(6, at_most=40)
    expected = []
    for row in rows:
        part = removed(data, torch.from_numpy(row.copy()))
        with torch.no_grad():
            expected.append(Memorizing(kept).eval()(part.x, part.edge_index)[0].numpy())
    found = GNNGame(model, data, baseline=0.0, **RAW)(rows)
    np.testing.assert_allclose(found, np.array(expected), atol=1e-6)
    assert not model.degrees
    assert model.last is None
    assert model.buffered is None
