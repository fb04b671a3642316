"""The plain functions: one graph, and many."""

from __future__ import annotations

import copy
import os
import re
import sys
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_mean_pool

from gstarx import (
    HN,
    GameOptions,
    GStarX,
    Myerson,
    Passes,
    Position,
    Subgraphs,
    explain,
    explain_many,
    explain_nodes,
)
from gstarx._internal.processes import can_fork
from gstarx._internal.progress import no_bars
from gstarx.explainers import FailedExplanation, graph_generator
from gstarx.models import GCN
from gstarx.values import PrecisionWarning, Value
from tests.gnn.networks import CLASSES, FEATURES, GIN, NETWORKS, build
from tests.gnn.one_by_one import graph
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

SHAPES = ("ring", "messy", "one node")


def model() -> GCN:
    torch.manual_seed(0)
    return GCN(FEATURES, 8, CLASSES)


def test_the_graph_comes_back_with_the_scores() -> None:
    data = graph("messy")
    found = explain(model(), data)
    assert isinstance(found, Explanation)
    for key, value in data:
        assert found[key] is value or found[key] == value
    assert found.num_nodes == 7
    assert found.validate()
    assert "edge_mask" not in found
    assert found.node_mask.dtype == torch.float32


def test_the_data_is_left_alone() -> None:
    data = graph("messy")
    before = {key: copy.deepcopy(value) for key, value in data}
    explain(model(), data)
    explain(model(), data, game=GameOptions(removal="zero_filling"))
    explain(GCN(FEATURES, 8, CLASSES, readout=None), data, index=2, task="node")
    assert set(before) == set(data.keys())
    for key, value in before.items():
        same = torch.equal(data[key], value) if isinstance(value, Tensor) else data[key] == value
        assert same, key


def test_names_of_the_result_that_the_data_has_too_are_the_results() -> None:
    data = graph("ring")
    data.worth, data.value = "of a graph", 5
    found = explain(model(), data)
    assert isinstance(found.worth, Tensor)
    assert found.value == "myerson"


def test_the_ground_truth_of_a_dataset_is_not_taken_for_a_finding() -> None:
    data = graph("ring")
    data.node_mask, data.edge_mask = torch.ones(6), torch.ones(12)
    found = explain(model(), data)
    assert "edge_mask" not in found
    assert found.node_mask.shape == (6, 1)
    assert found.validate()
    assert (explain(model(), data).score_edges().edge_mask != 1).all()


@pytest.mark.parametrize(("target", "columns"), [("all", 3), ([1], 1), ([2, 0], 2), (2, 1)])
def test_a_column_per_target(target: Any, columns: int) -> None:
    data = graph("messy")
    found = explain(model(), data, target=target)
    shape = (7,) if columns == 1 else (7, columns)
    assert found.scores.shape == found.std_errors.shape == found.node_scores.shape == shape
    # PyG would refuse a mask with a column per target
    assert ("node_mask" in found) == (columns == 1)
    assert found.validate()
    assert found.worth.shape == found.component_worth.shape == (columns,)
    assert len(found.explained) == len(found.baseline) == columns
    for at, column in enumerate(found.explained):
        alone = explain(model(), data, target=column)
        own = found.for_target(column)
        torch.testing.assert_close(own.scores, alone.scores)
        torch.testing.assert_close(own.node_mask, alone.node_mask)
        assert torch.equal(own.target, alone.target)
        assert own.target_class == column
        assert own.validate()
        assert found.worth[at].item() == pytest.approx(alone.worth.item())
        assert found.component_worth[at].item() == pytest.approx(alone.component_worth.item())
    torch.testing.assert_close(
        found.scores.reshape(7, -1).sum(dim=0), found.component_worth, atol=1e-12, rtol=0
    )


def test_the_prediction_is_the_models() -> None:
    data, net = graph("messy"), model()
    with torch.no_grad():
        out = net(data.x, data.edge_index, edge_weight=data.edge_weight)[0]
    found = explain(net, data)
    torch.testing.assert_close(found.prediction, out[None])
    assert found.explained == [int(out.argmax())]


def test_node_ids_of_an_ego_graph_are_the_originals() -> None:
    data = graph("wide")
    data.node_names = [f"node {i}" for i in range(70)]
    net = GCN(FEATURES, 8, CLASSES, num_layers=1, normalize=False, readout=None)
    found = explain(net, data, index=5, task="node")
    ends = data.edge_index[:, data.edge_index[1] == 5]
    assert found.players.tolist() == sorted(set(ends.flatten().tolist()))
    assert found.node_mask.shape == (70, 1)
    scored = found.node_mask[:, 0].nonzero()[:, 0]
    assert set(scored.tolist()) <= set(found.players.tolist())
    assert len(scored) > 1
    kept = found.get_explanation_subgraph()
    assert kept.num_nodes == int((found.node_mask > 0).sum())


def test_equal_nodes_score_alike_and_numbering_does_not_matter() -> None:
    """Sixfold symmetry, and the same molecule with its atoms in another order."""
    data = graph("ring")
    plain = Data(x=torch.ones(6, FEATURES), edge_index=data.edge_index)
    scores = explain(model(), plain).node_mask[:, 0]
    assert scores.max() - scores.min() < 1e-6
    data = Data(x=graph("messy").x, edge_index=graph("messy").edge_index)
    order = torch.tensor([4, 2, 6, 0, 1, 5, 3])
    place = torch.argsort(order)
    turned = Data(x=data.x[order], edge_index=place[data.edge_index].flip(1))
    torch.testing.assert_close(
        explain(model(), turned).node_mask, explain(model(), data).node_mask[order]
    )


def test_a_budget_is_kept() -> None:
    data = graph("wide")
    for budget in (150, 500):
        found = explain(model(), data, budget=budget, seed=1)
        assert not found.exact
        # the whole of a disconnected graph is asked for besides
        assert found.evaluations <= budget + 1
        assert found.std_errors.shape == (70,)
    assert explain(model(), graph("ring"), budget=31).exact
    assert not explain(model(), graph("ring"), budget=30, seed=0).exact


def test_batch_sizes_agree() -> None:
    masks = [
        explain(
            model(), graph("wide"), budget=200, seed=0, passes=Passes(batch_nodes=size)
        ).node_mask
        for size in (50, 1000, None)
    ]
    torch.testing.assert_close(masks[0], masks[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(masks[0], masks[2], atol=1e-5, rtol=0)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    explain(model(), graph("ring"))
    assert capsys.readouterr().err == ""
    explain(model(), graph("ring"), progress=True)
    assert "coalitions: 100%" in capsys.readouterr().err


# -- many ------------------------------------------------------------------------------------------


def test_a_bar_after_two_seconds_if_somebody_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = graph("wide")
    options: dict[str, Any] = {"budget": 200, "seed": 0}

    def pyg(data: Data) -> None:
        explainer = Explainer(
            model(),
            algorithm=GStarX(**options),
            explanation_type="model",
            node_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "graph",
                "return_type": "raw",
            },
        )
        explainer(data.x, data.edge_index)

    entries: dict[str, Callable[[], Any]] = {
        "explain": lambda: explain(model(), data, **options),
        "pyg": lambda: pyg(data),
        "explain_many": lambda: explain_many(model(), [data], **options),
        "explain_nodes": lambda: explain_nodes(
            GCN(FEATURES, 8, CLASSES, readout=None), data, [3], value="shapley", **options
        ),
    }
    for patience, terminal in ((1000.0, True), (0.0, False), (0.0, True)):
        monkeypatch.setattr("gstarx._internal.progress._PATIENCE", patience)
        for name, call in entries.items():
            monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)  # noqa: B023
            call()
            shown = capsys.readouterr().err
            assert ("coalitions:" in shown) == (terminal and not patience), name
    with no_bars():
        explain(model(), data, **options)
    explain(model(), data, **options, progress=False)
    assert capsys.readouterr().err == ""
    # one bar for all that is evaluated, which knows the budget from the start
    explain(model(), data, **options, progress=True)
    shown = capsys.readouterr().err
    assert "/200 [" in shown
    assert shown.count("100%") == 1


WORKERS = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked")


@WORKERS
@pytest.mark.parametrize("how", [{"budget": 200}, {"value": Subgraphs(inner="exact")}])
def test_many_by_workers(how: dict[str, Any]) -> None:
    graphs = [graph(name) for name in (*SHAPES, "wide", *SHAPES)]
    options: dict[str, Any] = {**how, "seed": 3, "progress": False}
    alone = explain_many(model(), graphs, **options)
    many = explain_many(model(), graphs, **options, workers=2)
    for data, one, other in zip(graphs, alone, many, strict=True):
        assert isinstance(one, Explanation)
        assert isinstance(other, Explanation)
        assert other.x is data.x
        assert torch.equal(one.scores, other.scores)
        assert (one.estimator, one.evaluations) == (other.estimator, other.evaluations)
    with pytest.raises(ValueError, match=r"workers must be an integer of at least 1 \(got 0\)"):
        explain_many(model(), graphs, workers=0)


@WORKERS
@pytest.mark.parametrize("value", [HN(), Subgraphs(inner="exact")])
def test_a_worker_that_dies_loses_one_graph(value: Value) -> None:
    network = model()

    def deadly(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if bool((x > 50).any()):
            os._exit(3)
        if bool((x < -50).any()):
            raise ValueError("too small")
        return network(x, edge_index, batch)

    graphs = [graph("ring") for _ in range(5)]
    graphs[1].x = graphs[1].x + 100
    graphs[3].x = graphs[3].x - 100
    options: dict[str, Any] = {"value": value, "seed": 3, "progress": False}
    many = explain_many(deadly, graphs, **options, workers=2, on_error="record")
    assert [isinstance(made, FailedExplanation) for made in many] == [False, True] * 2 + [False]
    assert [many[at].position for at in (1, 3)] == [1, 3]
    assert "the worker process died, with exit code 3" in str(many[1].error)
    assert "too small" in str(many[3].error)
    alone = explain(deadly, graphs[4], **{**options, "seed": graph_generator(3, 4)})
    torch.testing.assert_close(many[4].scores, alone.scores, atol=1e-6, rtol=0)
    with pytest.raises(RuntimeError, match="died") as raised:
        explain_many(deadly, graphs, **options, workers=2)
    assert raised.value.__notes__ == ["while explaining graph 1 of 5"]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=WORKERS)])
def test_one_warning_about_the_precision_of_many(workers: int) -> None:
    torch.manual_seed(0)
    graphs = [Data(x=torch.randn(40, FEATURES), edge_index=ring(40)) for _ in range(4)]
    graphs.append(graph("ring"))
    options: dict[str, Any] = {"budget": 45, "value": "shapley", "workers": workers}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explain_many(model(), graphs, **options, seed=0, progress=False)
    (warning,) = [each for each in caught if each.category is PrecisionWarning]
    assert warning.filename == __file__
    assert re.match(
        r"4 of 5 graphs have imprecise scores, the worst being graph [0-3]: ", str(warning.message)
    )
    node_model = GCN(FEATURES, 8, CLASSES, readout=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explain_nodes(node_model, graphs[0], [3, 9], **options | {"budget": 10}, progress=False)
    (warning,) = [each for each in caught if each.category is PrecisionWarning]
    assert str(warning.message).startswith("2 of 2 nodes have imprecise scores, the worst being")


def ring(n: int) -> Tensor:
    nodes = torch.arange(n)
    ends = torch.stack([nodes, (nodes + 1) % n])
    return torch.cat([ends, ends.flip(0)], dim=1)


def test_many_are_one_after_the_other() -> None:
    graphs = [graph(shape) for shape in SHAPES]
    results = explain_many(model(), graphs, progress=False)
    assert len(results) == 3
    for data, found in zip(graphs, results, strict=True):
        assert torch.equal(found.node_mask, explain(model(), data).node_mask)
    assert explain_many(model(), [], progress=False) == []


def test_many_take_any_iterable_and_every_option() -> None:
    graphs = [graph(shape) for shape in SHAPES]
    options: dict[str, Any] = {"value": "myerson", "target": "all"}
    results = explain_many(model(), (data for data in graphs), progress=False, **options)
    for data, found in zip(graphs, results, strict=True):
        expected = explain(model(), data, **options).score_edges()
        assert torch.equal(found.scores, expected.scores)
        assert torch.equal(found.score_edges().edge_scores, expected.edge_scores)
        assert "edge_mask" not in found  # PyG would refuse it
        assert torch.equal(found.for_target(1).edge_mask, found.edge_scores[:, 1].float())
    singly = explain_many(model(), DataLoader(graphs, batch_size=1), progress=False)
    assert [found.num_nodes for found in singly] == [6, 7, 1]


@pytest.mark.parametrize("name", sorted(NETWORKS)[::2])
def test_many_of_every_signature(name: str) -> None:
    """Predictions that are made for many graphs at once are those of each graph."""
    net, graphs = build(name), [graph(shape, seed=1) for shape in ("messy", "ring", "one node")]
    for data, scale in zip(graphs, (0.5, 1.5, -2.0), strict=True):
        data.scale = scale
    found = explain_many(net, graphs, progress=False)
    for data, several in zip(graphs, found, strict=True):
        alone = explain(net, data)
        torch.testing.assert_close(several.prediction, alone.prediction)
        assert several.explained == alone.explained
        torch.testing.assert_close(several.node_mask, alone.node_mask, atol=1e-6, rtol=0)


def test_many_in_batches_of_one_and_otherwise_keep_their_order() -> None:
    graphs = [graph("ring", seed=seed) for seed in range(6)]
    mixed = [Batch.from_data_list([g]) if seed % 2 else g for seed, g in enumerate(graphs)]
    for data, found in zip(graphs, explain_many(model(), mixed, progress=False), strict=True):
        torch.testing.assert_close(found.prediction, explain(model(), data).prediction)


def test_many_with_layers_that_normalize_by_the_batch() -> None:
    torch.manual_seed(0)
    net = GIN(track_running_stats=False)
    graphs = [graph("ring", seed=seed) for seed in range(3)]
    game = GameOptions(removal="split")
    many = explain_many(net, graphs, progress=False, game=game)
    for data, found in zip(graphs, many, strict=True):
        torch.testing.assert_close(found.prediction, explain(net, data, game=game).prediction)


def test_a_small_graph_takes_one_call() -> None:
    sizes: list[int] = []

    def net(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        sizes.append(int(batch.max()) + 1)
        return global_mean_pool(x[:, :3], batch)

    found = explain_many(net, [graph("one node"), graph("ring")], progress=False)
    # the whole graph alone, and beside one player; then it and the extremes in front of all
    # coalitions, each extreme alone, and up to 16 others once more
    first, second = sizes[:2], sizes[2:]
    assert first == [1, 2 + found[0].evaluations]
    assert second[:3] == [1, 2, 1]
    assert second[3] == found[1].evaluations + 4
    assert second[4:] == [1] * (len(second) - 5) + [16]
    assert len(second) <= 10
    eager = explain(net, graph("ring"), target=int(net(*_whole(graph("ring"))).argmax()))
    torch.testing.assert_close(found[1].node_mask, eager.node_mask)


def _whole(data: Data) -> tuple[Tensor, Tensor, Tensor]:
    return data.x, data.edge_index, torch.zeros(len(data.x), dtype=torch.long)


def test_a_wrong_question_is_not_blamed_on_a_coalition() -> None:
    with pytest.raises(ValueError, match=r"target must name a class in 0\.\.2 \(got 7\)") as caught:
        explain(model(), graph("ring"), target=7)
    assert not getattr(caught.value, "__notes__", [])

    def broken(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        raise RuntimeError("always")

    with pytest.raises(RuntimeError, match="always") as raised:
        explain(broken, graph("ring"))
    assert not getattr(raised.value, "__notes__", [])
    with pytest.raises(RuntimeError, match="always") as raised:
        explain(broken, graph("ring"), value=Myerson(two_sided=True))
    assert not getattr(raised.value, "__notes__", [])


def test_notes_that_the_model_wrote_are_kept() -> None:
    def broken(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        error = RuntimeError("always")
        error.add_note("call the vendor")
        raise error

    for value, players in (
        (Myerson(), "nodes"),
        (Myerson(two_sided=True), "nodes"),
        (Position(), "edges"),
    ):
        with pytest.raises(RuntimeError, match="always") as raised:
            explain(broken, graph("ring"), value=value, players=players)
        assert raised.value.__notes__ == ["call the vendor"]


def test_a_user_error_keeps_its_notes_once_the_question_is_settled() -> None:
    def picky(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if 2 in torch.bincount(batch).tolist():
            raise RuntimeError("two")
        return global_mean_pool(x[:, :3], batch)

    with pytest.raises(RuntimeError, match="two") as caught:
        explain(picky, graph("ring"))
    assert "raised on coalition" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="two") as both:
        explain(picky, graph("ring"), value=Myerson(two_sided=True))
    # the same for both sides: which coalition failed, and what the game was asked for
    assert [len(raised.value.__notes__) for raised in (caught, both)] == [2, 2]


def test_a_warning_is_given_once() -> None:
    def net(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_mean_pool(x[:, :3], batch).softmax(1)

    options: dict[str, Any] = {"value": Subgraphs(), "baseline": 0.5}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        explain_many(net, [graph("wide")] * 3, progress=False, **options)
    assert len([w for w in caught if "look like probabilities" in str(w.message)]) == 1


def test_many_have_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    explain_many(model(), [graph("ring")] * 3)
    assert "explaining: 100%" in capsys.readouterr().err
    explain_many(model(), [graph("ring")] * 3, progress=False)
    assert capsys.readouterr().err == ""


class Picky(nn.Module):
    """Does not take graphs of seven nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = model()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if len(x) == 7 and int(batch.max()) == 0:
            raise RuntimeError("seven")
        return self.net(x, edge_index, batch)


def test_errors_are_recorded_on_request() -> None:
    graphs = [graph("ring"), graph("messy"), graph("one node"), 5]
    results = explain_many(Picky(), graphs, on_error="record", progress=False)
    assert [type(found) is FailedExplanation for found in results] == [False, True, False, True]
    assert results[1].position == 1
    assert isinstance(results[1].error, RuntimeError)
    assert str(results[1].error) == "seven"
    assert results[3].position == 3
    assert "must be a torch_geometric.data.Data" in str(results[3].error)
    with pytest.raises(RuntimeError, match="seven") as caught:
        explain_many(Picky(), graphs, progress=False)
    assert "while explaining graph 1 of 4" in caught.value.__notes__


@pytest.mark.parametrize("after", [0, 1])
def test_ctrl_c_is_not_an_error_to_be_recorded(after: int) -> None:
    calls: list[int] = []

    def interrupted(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if len(calls) == after:
            raise KeyboardInterrupt
        calls.append(len(x))
        return global_mean_pool(x[:, :3], batch)

    with pytest.raises(KeyboardInterrupt):
        explain_many(
            interrupted,
            [graph("ring")],
            on_error="record",
            progress=False,
            passes=Passes(batch_nodes=2),
        )


def test_seeds_are_by_position() -> None:
    wide, ring = graph("wide"), graph("ring")

    def second(graphs: list[Data], seed: int | None) -> Tensor:
        results = explain_many(model(), graphs, seed=seed, budget=150, progress=False)
        return results[1].node_mask

    assert torch.equal(second([ring, wide], 5), second([wide, wide, ring], 5))
    assert not torch.equal(second([ring, wide], 5), second([ring, wide], 6))
    assert not torch.equal(second([ring, wide], None), second([ring, wide], None))
    results = explain_many(model(), [wide, wide], seed=5, budget=150, progress=False)
    assert not torch.equal(results[0].node_mask, results[1].node_mask)


def test_a_generator_may_be_the_seed_of_one() -> None:
    masks = [
        explain(model(), graph("wide"), budget=150, seed=np.random.default_rng(4)).node_mask
        for _ in range(2)
    ]
    assert torch.equal(masks[0], masks[1])


def test_every_signature_can_be_explained() -> None:
    for name in ("data", "function of data", "no batch", "keywords", "positions", "pairs"):
        found = explain(build(name), graph("messy"))
        assert found.exact, name
        total = found.node_mask.sum().item()
        assert total == pytest.approx(found.component_worth.item(), abs=1e-5), name


PUBLISHED: dict[str, Any] = {
    **{"value": Subgraphs(inner="exact", max_sample_size=4), "baseline": 0.5}
}


@pytest.mark.parametrize("name", sorted(NETWORKS)[1::2])
def test_graphs_that_share_passes_get_the_scores_they_get_alone(name: str) -> None:
    net = build(name)
    graphs = [graph(shape) for shape in ("ring", "messy", "one node", "wide", "ring")]
    many = explain_many(net, graphs, seed=3, progress=False, **PUBLISHED)
    for position, (data, found) in enumerate(zip(graphs, many, strict=True)):
        alone = explain(net, data, seed=graph_generator(3, position), **PUBLISHED)
        torch.testing.assert_close(found.node_mask, alone.node_mask, rtol=0, atol=1e-6)
        torch.testing.assert_close(found.prediction, alone.prediction, rtol=0, atol=1e-5)
        torch.testing.assert_close(found.worth, alone.worth, rtol=0, atol=1e-6)
        assert found.evaluations == alone.evaluations
        assert found.explained == alone.explained


@pytest.mark.parametrize("removal", ["remove", "split", "zero_filling"])
def test_passes_are_shared_for_every_removal(removal: str) -> None:
    calls: list[int] = []
    net = model()

    def counted(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        calls.append(len(x))
        return net(x, edge_index, batch)

    graphs = [graph("ring"), graph("messy"), graph("wide")]
    options = {**PUBLISHED, "game": GameOptions(removal=removal), "seed": 0, "progress": False}
    unchecked = Passes(batch_nodes=1 << 20, check=False)
    explain_many(counted, graphs, passes=unchecked, **options)
    assert len(calls) == 1
    calls.clear()
    explain_many(counted, graphs, passes=Passes(batch_nodes=1 << 20), **options)
    assert len(calls) == 4  # the largest and the smallest part also alone, and some others
    calls.clear()
    explain_many(counted, graphs, passes=Passes(batch_nodes=128), **options)
    assert len(calls) > 1
    assert max(calls) <= 128


def test_a_graph_that_breaks_a_shared_pass_costs_the_others_nothing() -> None:
    def broken(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if bool((x[:, 0] == 99).any()):
            raise RuntimeError("ninety-nine")
        return global_mean_pool(x[:, :3], batch)

    bad = graph("messy")
    bad.x = bad.x.clone()
    bad.x[2, 0] = 99
    graphs = [graph("ring"), bad, graph("ring")]
    results = explain_many(broken, graphs, on_error="record", progress=False, seed=0, **PUBLISHED)
    assert [type(found) is FailedExplanation for found in results] == [False, True, False]
    assert "ninety-nine" in str(results[1].error)
    bad.x[2, 0] = float("nan")
    results = explain_many(broken, graphs, on_error="record", progress=False, seed=0, **PUBLISHED)
    assert [type(found) is FailedExplanation for found in results] == [False, True, False]


def test_graphs_with_many_coalitions_are_not_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gstarx.explainers.explaining._MOST_CELLS", 0)
    monkeypatch.setattr("gstarx.explainers.explaining.outputs_and_sharing", None)
    (found,) = explain_many(model(), [graph("wide")], seed=0, progress=False, **PUBLISHED)
    assert found.node_mask.abs().sum() > 0


@for_each("function", [explain, explain_many, explain_nodes])
def test_the_functions_have_the_options_of_the_class(function: Any) -> None:
    own, others = signature(GStarX).parameters, signature(function).parameters
    for name in own.keys() - {"seed", "progress"}:
        if (name, function) == ("task", explain_nodes):
            continue  # it is one of nodes
        assert others[name] == own[name], name
