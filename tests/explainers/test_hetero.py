"""Explanations of heterogeneous graphs: by every entry point, and by every method that can."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.explain import Explainer
from torch_geometric.explain import HeteroExplanation as PyGHeteroExplanation

import gstarx
from gstarx import GStarX, HeteroExplanation, explain, explain_many, explain_nodes
from gstarx.explainers import create, graph_generator, names
from gstarx.metrics import evaluate
from gstarx.metrics import sparsity as left_out
from gstarx.players import Nodes
from tests.gnn.hetero_networks import OnGraphs, OnPapers, part_of, seeded, small, typed_graph
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

CONFIG = {"mode": "multiclass_classification", "return_type": "raw"}


def graphs(count: int = 3) -> list[HeteroData]:
    return [small(seed=seed) for seed in range(count)]


def wider() -> HeteroData:
    """Four papers, so that the type of an index shows."""
    return typed_graph(
        {"author": 3, "paper": 4, "venue": 2},
        [(0, 0), (1, 0), (1, 1), (2, 3)],
        [(0, 0), (1, 0), (2, 1), (3, 1)],
    )


def test_an_explanation_is_one_of_pyg_with_what_ours_have() -> None:
    data, model = small(), seeded(OnGraphs)
    made = explain(model, data, value="myerson", baseline="uniform", seed=0)
    assert isinstance(made, HeteroExplanation)
    assert isinstance(made, PyGHeteroExplanation)
    assert made.validate()
    assert made.players == [
        *(("author", i) for i in range(3)),
        *(("paper", i) for i in range(3)),
        *(("venue", i) for i in range(2)),
    ]
    for at, (name, node) in enumerate(made.players):
        assert made[name].node_scores[node] == made.scores[at]
        assert made[name].node_mask[node, 0] == made.scores[at].float()
        assert torch.equal(made[name].x, data[name].x)
    assert made.node_mask_dict.keys() == set(data.node_types)
    assert made.exact
    assert made.estimator == "exact"
    assert made.evaluations > 0
    assert made.method == "gstarx"
    assert made.seconds >= 0
    assert not made.std_errors.any()
    full = model(data.x_dict, data.edge_index_dict).detach()
    assert torch.allclose(made.prediction, full)
    assert made.explained == [int(full.argmax())] == [made.target_class]
    chance = float(full.softmax(-1)[0, made.target_class])
    assert float(made.worth) == pytest.approx(chance - 1 / 3, abs=1e-12)
    assert float(made.scores.sum()) == pytest.approx(float(made.component_worth), abs=1e-12)


def test_other_forms_name_types_and_nodes() -> None:
    data, model = small(), seeded(OnGraphs)
    made = explain(model, data)
    assert made.score_edges() is made
    best = made.top(2)
    order = sorted(range(8), key=lambda at: (-float(made.scores[at]), at))
    assert best == [made.players[at] for at in order[:2]]
    assert sorted(made.select(size=2)) == sorted(best)
    assert len(made.select(sparsity=0.5)) == 4
    assert len(made.select(size=3, rule="connected")) <= 3
    assert all(node in made.players for node in made.select(rule="gap"))
    plain = json.loads(json.dumps(made.to_dict()))
    assert made.inputs == ("x", "edge_index", "batch", "batch_size")
    assert plain["inputs"] == list(made.inputs)
    for name in ("value", "two_sided", "payoff", "baseline_source"):
        assert plain[name] == getattr(made, name) == made.view[name]
    assert (
        explain(model, data, baseline="singletons", value=gstarx.Myerson(two_sided=True)).two_sided
        is True
    )
    assert plain["players"][0] == ["author", 0]
    assert plain["scores"] == made.scores.tolist()
    assert plain["node_types"] == ["author", "paper", "venue"]
    assert plain["edge_mask"]["author__writes__paper"] == (
        made["author", "writes", "paper"].edge_mask.tolist()
    )
    graph = made.to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.nodes["paper", 1]["type"] == "paper"
    assert graph.nodes["paper", 1]["score"] == float(made["paper"].node_scores[1])
    assert graph.has_edge(("author", 0), ("paper", 1), key="writes")
    name, node = best[0]
    assert f"{name} {node}" in made._repr_html_()
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert again.top(2) == best
    ends = made["author", "writes", "paper"].edge_index[:, 0].tolist()
    mean = (made["author"].node_mask[ends[0], 0] + made["paper"].node_mask[ends[1], 0]) / 2
    assert made["author", "writes", "paper"].edge_mask[0] == pytest.approx(float(mean))
    # PyG's own: nodes without a positive score leave
    kept = explain(model, data).get_explanation_subgraph()
    positive = int((made["author"].node_mask > 0).sum())
    assert kept["author"].num_nodes == positive


def test_a_table_of_players() -> None:
    pytest.importorskip("pandas")
    made = explain(seeded(OnGraphs), small())
    frame = made.to_frame()
    assert list(frame.columns) == ["type", "node", "score", "std_error"]
    assert (frame["type"][0], frame["node"][0]) == made.top(1)[0]


def test_several_targets() -> None:
    data, model = small(), seeded(OnGraphs)
    made = explain(model, data, target="all", value="shapley")
    assert made.scores.shape == (8, 3)
    assert "node_mask" not in made["author"]
    one = made.for_target(2)
    alone = explain(model, data, target=2, value="shapley")
    assert torch.allclose(one.scores, alone.scores, atol=1e-12)
    assert torch.allclose(one["paper"].node_mask, alone["paper"].node_mask)
    with pytest.raises(ValueError, match="choose one with"):
        made.top(1)


@for_each(
    "options",
    [
        {"value": "myerson", "baseline": "singletons"},
        {"value": gstarx.HN(two_sided=True)},
        {"value": gstarx.Banzhaf(presence=0.3)},
        {"value": "myerson", "baseline": 0.1, "game": gstarx.GameOptions(removal="split")},
        {"value": gstarx.Subgraphs(inner="exact", max_sample_size=4)},
        {"value": gstarx.Shapley(estimator="sampled"), "budget": 40},
    ],
)
def test_options_of_values_apply(options: dict[str, Any]) -> None:
    made = explain(seeded(OnGraphs), small(), seed=1, **options)
    again = explain(seeded(OnGraphs), small(), seed=1, **options)
    assert torch.equal(made.scores, again.scores)
    assert made.scores.isfinite().all()
    if options.get("baseline") == "singletons":
        model, target = seeded(OnGraphs), made.target_class
        singles = [worth(model, small(), [node], target) for node in made.players]
        assert made.baseline == [pytest.approx(np.mean(singles), abs=1e-12)]


def test_what_is_always_present_is_the_default_baseline() -> None:
    data, model = small(), seeded(OnGraphs)
    made = GStarX(players=Nodes(types=["author"], relations=["writes"])).explain(model, data)
    assert made.players == [("author", 0), ("author", 1), ("author", 2)]
    assert made.baseline_source == "no player present"
    others = [node for node in explain(model, data).players if node[0] != "author"]
    assert made.baseline == [pytest.approx(worth(model, data, others, made.target_class))]


def test_nodes_are_explained_with_the_row_of_their_type() -> None:
    data, model = wider(), seeded(OnPapers)
    made = explain(model, data, index=3, value="shapley", task="node")
    assert made.node_type == "paper"
    assert made.index.tolist() == [3]
    full = model(data.x_dict, data.edge_index_dict).detach()
    assert torch.allclose(made.prediction, full)
    assert made.target.tolist() == full.argmax(-1).tolist()
    assert made.explained == [int(full[3].argmax())]
    plain = made.to_dict()
    assert (plain["node_type"], plain["index"]) == ("paper", [3])
    assert len(plain["prediction"]) == 4


def test_many_graphs_get_the_numbers_of_each() -> None:
    model = seeded(OnGraphs)
    sampled = gstarx.Subgraphs(value="myerson", max_sample_size=4)
    for value in ("myerson", sampled):
        many = explain_many(model, graphs(), seed=5, progress=False, value=value)
        for at, (data, made) in enumerate(zip(graphs(), many, strict=True)):
            alone = explain(model, data, seed=graph_generator(5, at), value=value)
            assert isinstance(made, HeteroExplanation)
            assert torch.allclose(made.scores, alone.scores, atol=1e-12)
    with pytest.raises(TypeError, match="got one HeteroData"):
        explain_many(model, small())


def test_many_nodes_get_the_numbers_of_each() -> None:
    data, model = wider(), seeded(OnPapers)
    many = explain_nodes(
        model, data, [0, 3], progress=False, value="myerson", task={"node_type": "paper"}
    )
    for node, made in zip((0, 3), many, strict=True):
        alone = explain(model, data, index=node, value="myerson", task="node")
        assert made.index.tolist() == [node]
        assert made.players == alone.players
        assert torch.allclose(made.scores, alone.scores, atol=1e-12)


@pytest.mark.parametrize("kind", ["probs", "log_probs"])
def test_nodes_of_models_that_return_probabilities(kind: str) -> None:
    data, model = wider(), seeded(OnPapers)

    def normalized(x_dict: Any, edge_index_dict: Any) -> Any:
        out = model(x_dict, edge_index_dict)
        return out.softmax(-1) if kind == "probs" else out.log_softmax(-1)

    task = gstarx.Task(task_level="node", node_type="paper")
    alone = explain(model, data, index=3, task=task)
    told = replace(task, return_type=kind)
    made = explain(normalized, data, index=3, task=told)
    (listed,) = explain_nodes(normalized, data, [3], progress=False, task=told)
    for one in (made, listed):
        assert torch.allclose(one.scores, alone.scores, atol=1e-12)
    with pytest.raises(ValueError, match=f"return_type={kind!r} says that"):
        explain(model, data, index=3, task=told)


@pytest.mark.parametrize("level", ["graph", "node"])
def test_inside_pygs_explainer(level: str) -> None:
    data = wider()
    model = seeded(OnPapers if level == "node" else OnGraphs)
    explainer = Explainer(
        model,
        algorithm=GStarX(value="myerson", task={"node_type": "paper"}),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={**CONFIG, "task_level": level},
    )
    index = {"index": 2} if level == "node" else {}
    made = explainer(data.x_dict, data.edge_index_dict, **index)
    assert isinstance(made, HeteroExplanation)
    alone = explain(model, data, value="myerson", task=level, **index)
    assert made.players == alone.players
    assert torch.equal(made.scores, alone.scores)
    assert made.edge_mask_dict.keys() == set(data.edge_types)
    assert made.validate()


@for_each("name", names())
def test_every_method_explains_or_says_that_it_does_not(name: str) -> None:
    data, model = small(), seeded(OnGraphs)
    options = {"baseline": 0.3} if "published" in name else {}
    explainer = create(name, **options)
    if not explainer.heterogeneous:
        with pytest.raises(ValueError, match="explains homogeneous graphs"):
            explainer.explain(model, data, seed=0)
        return
    made = explainer.explain(model, data, seed=0)
    assert isinstance(made, HeteroExplanation)
    assert made.method == name
    assert made.validate()
    assert set(made.select(size=3)) <= set(explain(model, data).players)


def worth(model: Any, data: HeteroData, nodes: list[tuple[str, int]], target: int) -> float:
    part = part_of(data, nodes)
    with torch.no_grad():
        return float(model(part.x_dict, part.edge_index_dict).softmax(-1)[0, target])


def test_metrics_are_those_of_the_parts() -> None:
    data, model = small(), seeded(OnGraphs)
    made = explain(model, data)
    chosen, target = made.select(size=3), made.target_class
    rest = [node for node in made.players if node not in chosen]
    found = evaluate(model, data, chosen)
    whole = worth(model, data, made.players, target)
    assert found.fidelity == pytest.approx(whole - worth(model, data, rest, target), abs=1e-9)
    assert found.inverse_fidelity == pytest.approx(
        whole - worth(model, data, chosen, target), abs=1e-9
    )
    assert found.sparsity == pytest.approx(5 / 8) == left_out(data, chosen)
    by_type: dict[str, list[int]] = {}
    for name, node in chosen:
        by_type.setdefault(name, []).append(node)
    assert evaluate(model, data, by_type) == found
    many = gstarx.Judge(model).many([data, small(seed=1)], [[chosen, rest], chosen])
    assert many[0][0] == found
    assert many[0][1] == evaluate(model, data, rest)
    assert many[1] == evaluate(model, small(seed=1), chosen)
    gstarx.Judge(model).labels(data, chosen)
    everything = gstarx.Judge(model).robust(
        data, chosen, delete_inside=1.0, delete_outside=1.0, samples=1
    )
    assert everything.fidelity == pytest.approx(found.fidelity, abs=1e-9)
    curve = gstarx.Judge(model).curve(data, made.node_scores_dict, sparsities=[0.5])
    half = evaluate(model, data, made.select(sparsity=0.5))
    assert curve["harmonic_fidelity"] == [pytest.approx(half.harmonic_fidelity, abs=1e-12)]


def test_the_best_selection_beats_all_others() -> None:
    data, model = small(), seeded(OnGraphs)
    made = explain(model, data)
    best = gstarx.Judge(model).best(data, 3)
    assert best.optimal
    assert all(node in made.players for node in best.nodes)
    found = evaluate(model, data, best.nodes)
    assert found.harmonic_fidelity == pytest.approx(best.evaluation.harmonic_fidelity, abs=1e-12)
    chosen = made.select(size=3)
    explained = evaluate(model, data, chosen)
    assert best.evaluation.harmonic_fidelity >= explained.harmonic_fidelity - 1e-12
    random = gstarx.Judge(model).random(data, 3, count=10, seed=0)
    assert best.evaluation.harmonic_fidelity >= random.harmonic_fidelity
    refined = gstarx.Judge(model).refine(data, chosen)
    assert refined.after.harmonic_fidelity >= refined.before.harmonic_fidelity
    before, again = asdict(refined.before), asdict(explained)
    assert before == pytest.approx(again, abs=1e-12)


def test_metrics_of_a_node_and_of_some_types() -> None:
    data, model = wider(), seeded(OnPapers)
    made = explain(model, data, index=0, value="shapley", task="node")
    task = gstarx.Task(task_level="node", node_type="paper")
    chosen = made.select(size=2)
    found = evaluate(model, data, chosen, task=task, index=0)
    assert found.sparsity == pytest.approx(1 - 2 / len(made.players))
    everybody = evaluate(model, data, made.players, task=task, index=0)
    assert everybody.inverse_fidelity == pytest.approx(0.0, abs=1e-12)
    best = gstarx.Judge(model, task=task).best(data, 2, index=0)
    assert best.evaluation.harmonic_fidelity >= found.harmonic_fidelity - 1e-12
    # of authors alone: papers and venues stay
    on_graphs, authors = seeded(OnGraphs), Nodes(types=("author",))
    of_authors = evaluate(on_graphs, data, [("author", 1)], players=authors)
    target = explain(on_graphs, data).target_class
    every = explain(on_graphs, data).players
    kept = [n for n in every if n[0] != "author" or n == ("author", 1)]
    lost = worth(on_graphs, data, every, target) - worth(on_graphs, data, kept, target)
    assert of_authors.inverse_fidelity == pytest.approx(lost, abs=1e-9)
    assert of_authors.sparsity == pytest.approx(2 / 3)


def test_bad_selections_are_named() -> None:
    data, model = small(), seeded(OnGraphs)
    for nodes, words in (
        ([("autor", 0)], "did you mean 'author'"),
        ([("author", 9)], r"nodes in 0\.\.2 \(got 9\)"),
        ({"author": [True]}, "must have 3 entries"),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate(model, data, nodes)
    with pytest.raises(TypeError, match="pairs of a type and a number"):
        evaluate(model, data, [("author", 0), 3])


def test_the_expected_output_is_the_mean_over_graphs() -> None:
    model = seeded(OnGraphs)
    each = [model(d.x_dict, d.edge_index_dict).softmax(-1) for d in graphs()]
    found = gstarx.expected_output(model, graphs())
    assert torch.allclose(found, torch.cat(each).mean(dim=0).detach())
