"""Games on heterogeneous graphs: against their definition, for networks of every kind."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GCNConv, HeteroConv, RGCNConv, global_mean_pool

from gstarx import (
    HN,
    Banzhaf,
    GameOptions,
    GNNGame,
    GStarX,
    Myerson,
    Passes,
    Shapley,
    Subgraphs,
    Task,
    explain,
)
from gstarx.gnn import as_task, hetero_of, view_of
from gstarx.graphs import CommunicationGraph, pack
from gstarx.players import Nodes
from gstarx.values import Value
from tests.gnn.by_definition import table, value_of
from tests.gnn.hetero_networks import (
    APPEARS,
    RELATIONS,
    WRITES,
    Alone,
    Attention,
    OfAttributes,
    OfData,
    OnGraphs,
    OnPapers,
    Transformer,
    Unsized,
    part_of,
    seeded,
    small,
    transformed,
    typed_graph,
)
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

OF_PAPERS = Task(task_level="node", node_type="paper")
VALUES = ("hn", "myerson", "shapley", "banzhaf")
Node = tuple[str, int]


@st.composite
def typed_graphs(draw: st.DrawFn, most: int = 6) -> HeteroData:
    """At most so many nodes of three types, some of them without nodes or edges."""
    authors = draw(st.integers(0, 3))
    papers = draw(st.integers(1, 3))
    venues = draw(st.integers(0, max(0, min(2, most - authors - papers))))

    def pairs(first: int, second: int) -> list[tuple[int, int]]:
        every = [(a, b) for a in range(first) for b in range(second)]
        return draw(st.lists(st.sampled_from(every), max_size=6)) if every else []

    counts = {"author": authors, "paper": papers, "venue": venues}
    writes, appears = pairs(authors, papers), pairs(papers, venues)
    return typed_graph(counts, writes, appears, seed=draw(st.integers(0, 99)))


def nodes_of(data: HeteroData) -> list[Node]:
    return [(name, node) for name in data.node_types for node in range(data[name].num_nodes)]


def links_of(data: HeteroData, relations: Any = RELATIONS) -> CommunicationGraph:
    """Who communicates with whom, by hand."""
    place = {node: at for at, node in enumerate(nodes_of(data))}
    pairs = [
        (place[source, a], place[target, b])
        for source, name, target in relations
        for a, b in data[source, name, target].edge_index.t().tolist()
    ]
    return CommunicationGraph(len(place), pairs)


def on_part(model: Any, data: HeteroData, nodes: list[Node], *inputs: str) -> Tensor:
    """What a model says of a part of a graph, alone."""
    part = part_of(data, nodes)
    more = {name: part.collect(name.removesuffix("_dict")) for name in inputs}
    with torch.no_grad():
        return model(part.x_dict, part.edge_index_dict, **more)


def around(model: Any, data: HeteroData, nodes: list[Node], target: Node) -> Tensor:
    """The output for a paper, which is there without its edges if it is not in the coalition."""
    part = part_of(data, sorted({*nodes, target}))
    place = sorted(node for name, node in {*nodes, target} if name == "paper").index(target[1])
    if target not in nodes:
        for source, name, other in RELATIONS:
            ends = part[source, name, other].edge_index
            here = torch.zeros(ends.shape[1], dtype=torch.bool)
            for row, kind in enumerate((source, other)):
                here |= (ends[row] == place) & (kind == "paper")
            part[source, name, other].edge_index = ends[:, ~here]
    with torch.no_grad():
        out = model(part.x_dict, part.edge_index_dict)
    return (out["paper"] if isinstance(out, dict) else out)[[place]]


def probability(output: Tensor, target: int) -> float:
    return float(output.softmax(-1)[0, target])


@pytest.mark.parametrize("value", VALUES)
@settings(max_examples=12)
@given(data=typed_graphs())
def test_values_of_graphs_agree_with_their_definition(value: str, data: HeteroData) -> None:
    model = seeded(OnGraphs)
    explanation = GStarX(value=value, baseline="uniform").explain(model, data)
    every, target = nodes_of(data), explanation.target_class
    whole = on_part(model, data, every)
    assert target == int(whole.argmax())

    def worth(inside: list[int]) -> float:
        return probability(on_part(model, data, [every[i] for i in inside]), target)

    game = table(worth, len(every), 1 / 3)
    expected = value_of(game, links_of(data), value)
    assert explanation.players == every
    assert explanation.exact
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("value", VALUES)
@settings(max_examples=12)
@given(data=typed_graphs(), paper=st.integers(0, 2), changed=st.booleans())
def test_values_of_nodes_agree_with_their_definition(
    value: str, data: HeteroData, paper: int, changed: bool
) -> None:
    model = seeded(transformed, data) if changed else seeded(OnPapers)
    target = ("paper", paper % data["paper"].num_nodes)
    # all nodes play, however far away they are: those without influence get nothing
    explanation = GStarX(value=value, game=GameOptions(num_hops=9)).explain(
        model, data, index=target[1], task=OF_PAPERS
    )
    players, column = explanation.players, explanation.target_class
    assert set(players) <= set(nodes_of(data))
    others = [node for node in nodes_of(data) if node not in players]

    def worth(inside: list[int]) -> float:
        there = [*others, *(players[i] for i in inside)]
        return probability(around(model, data, there, target), column)

    game = table(worth, len(players), worth([]))
    numbers = [nodes_of(data).index(node) for node in players]
    expected = value_of(game, links_of(data).subgraph(numbers), value)
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize(
    "value",
    [
        HN(estimator="growth"),
        Subgraphs(inner="exact", max_sample_size=8),
        Myerson(estimator="sampled"),
        Shapley(estimator="sampled"),
        Banzhaf(estimator="sampled"),
    ],
)
def test_estimates_agree_with_exact_values(value: Value) -> None:
    data, model = small(), seeded(OnGraphs)
    exact = GStarX(value=value.name).explain(model, data)
    first, again = (GStarX(value=value, budget=60).explain(model, data, seed=3) for _ in range(2))
    assert torch.equal(first.scores, again.scores)
    gap = (first.scores - exact.scores).abs()
    if isinstance(value, Subgraphs):  # the whole graph is one sample
        assert float(gap.max()) < 1e-9
    else:
        assert bool((gap <= 5 * first.std_errors + 1e-9).all())


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (OnGraphs, ()),
        (Unsized, ("batch_dict",)),
        (OfData, ()),
        (Alone, ()),
        (OfAttributes, ("edge_attr_dict", "batch_dict")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_way_to_take_a_graph_gives_the_worths_of_its_parts(make: Any, inputs: Any) -> None:
    data = small(attributes=make is OfAttributes)
    model = seeded(make, attributes=make is OfAttributes)
    game = GNNGame(model, data, payoff="raw", target=1)
    every = nodes_of(data)
    coalitions = np.random.default_rng(0).random((40, len(every))) < 0.5
    coalitions = np.concatenate([coalitions, np.eye(len(every), dtype=bool)])
    worths = game(coalitions)
    for row, found in zip(coalitions, worths, strict=True):
        inside = [node for node, there in zip(every, row, strict=True) if there]
        if not inside:
            continue
        part = part_of(data, inside)
        for name in data.node_types:
            part[name].batch = torch.zeros(part[name].num_nodes, dtype=torch.long)
        with torch.no_grad():
            if make is OfData:
                out = model(part)
            else:
                more = {name: part.collect(name.removesuffix("_dict")) for name in inputs}
                out = model(part.x_dict, part.edge_index_dict, **more)
        # without a size, the mean of no papers has no row: it is that of zeros
        nothing = model.head(torch.zeros(1, 8, dtype=torch.float64)).detach()
        expected = out if len(out) else nothing
        assert found == pytest.approx(float(expected[0, 1]), abs=1e-9)
    assert game.check.comparisons
    assert bool(game.check.one_by_one) == (make is Alone)


def test_a_transformer_is_explained_and_left_as_it_was() -> None:
    data, model = small(), seeded(Transformer)
    model.train()
    before = copy.deepcopy(model.state_dict())
    explanation = GStarX(value="shapley").explain(model, data, index=1, task=OF_PAPERS)
    assert model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert float(explanation.scores.sum()) == pytest.approx(float(explanation.worth), abs=1e-12)
    full = model.eval()(data.x_dict, data.edge_index_dict)
    assert torch.allclose(explanation.prediction, full)
    # the last paper and its venue are in a component of their own
    assert ("paper", 2) not in explanation.players
    assert ("venue", 1) not in explanation.players


def test_attention_over_relations_takes_the_whole_graph_one_part_at_a_time() -> None:
    data, model = small(), seeded(Attention)
    with pytest.warns(UserWarning, match="mixes the graphs of a batch"):
        explanation = GStarX(value="shapley").explain(model, data, index=0, task=OF_PAPERS)
    # the mean over all papers decides how much each relation counts
    assert ("paper", 2) in explanation.players
    target, column = ("paper", 0), explanation.target_class
    players = explanation.players
    others = [node for node in nodes_of(data) if node not in players]

    def worth(inside: list[int]) -> float:
        there = [*others, *(players[i] for i in inside)]
        return probability(around(model, data, there, target), column)

    expected = value_of(table(worth, len(players), worth([])), links_of(data), "shapley")
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)


def test_the_relations_of_homogeneous_data_are_kept_with_their_edges() -> None:
    """``RGCNConv`` takes the relation of every edge, a field of edges like any other."""

    class Relational(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = RGCNConv(3, 6, num_relations=3), torch.nn.Linear(6, 2)

        def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor, batch: Any) -> Tensor:
            hidden = self.conv(x, edge_index, edge_type).relu()
            return self.head(global_mean_pool(hidden, batch))

    model = seeded(Relational)
    edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    kinds = torch.tensor([0, 1, 2, 0, 1, 2, 2, 1])
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, generator=draw, dtype=torch.float64)
    data = Data(x=x, edge_index=edges, edge_type=kinds)
    explanation = GStarX(value="myerson", baseline="uniform").explain(model, data)

    def worth(inside: list[int]) -> float:
        part = data.subgraph(torch.tensor(inside))
        batch = torch.zeros(len(inside), dtype=torch.long)
        with torch.no_grad():
            out = model(part.x, part.edge_index, part.edge_type, batch)
        return probability(out, explanation.target_class)

    graph = CommunicationGraph(4, edges.t().tolist())
    expected = value_of(table(worth, 4, 0.5), graph, "myerson")
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)


def test_types_that_do_not_play_are_always_there() -> None:
    data, model = small(), seeded(OnGraphs)
    explanation = GStarX(value="shapley", players=Nodes(types=("author", "venue"))).explain(
        model, data
    )
    every, target = nodes_of(data), explanation.target_class
    players = [node for node in every if node[0] != "paper"]
    assert explanation.players == players

    def worth(inside: list[int]) -> float:
        there = [node for node in every if node[0] == "paper"] + [players[i] for i in inside]
        return probability(on_part(model, data, there), target)

    game = table(worth, len(players), worth([]))
    assert explanation.baseline == [pytest.approx(worth([]), abs=1e-12)]
    expected = value_of(game, CommunicationGraph(len(players), []), "shapley")
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)
    assert not explanation["paper"].node_mask.any()


@pytest.mark.parametrize("relations", [[WRITES], ["writes"], [APPEARS, "writes"]])
def test_communication_runs_along_the_relations_that_are_named(relations: list[Any]) -> None:
    data, model = small(), seeded(OnGraphs)
    how = {"value": "myerson", "baseline": "uniform"}
    explanation = GStarX(**how, players=Nodes(relations=tuple(relations))).explain(model, data)
    every, target = nodes_of(data), explanation.target_class
    named = [WRITES] if len(relations) == 1 else [WRITES, APPEARS]

    def worth(inside: list[int]) -> float:
        return probability(on_part(model, data, [every[i] for i in inside]), target)

    game = table(worth, len(every), 1 / 3)
    expected = value_of(game, links_of(data, named), "myerson")
    np.testing.assert_allclose(explanation.scores.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("removal", ["split", "zero_filling"])
def test_other_removals(removal: str) -> None:
    data, model = small(), seeded(OnGraphs)
    game = GNNGame(model, data, payoff="raw", target=0, game=GameOptions(removal=removal))
    every = nodes_of(data)
    coalitions = np.random.default_rng(1).random((20, len(every))) < 0.5
    for row, found in zip(coalitions, game(coalitions), strict=True):
        part = data.clone()
        there = {
            name: torch.zeros(data[name].num_nodes, dtype=torch.bool) for name in data.node_types
        }
        for (name, node), inside in zip(every, row, strict=True):
            there[name][node] = bool(inside)
        if removal == "zero_filling":
            for name in data.node_types:
                part[name].x = data[name].x * there[name][:, None]
        else:
            for source, name, target in RELATIONS:
                ends = data[source, name, target].edge_index
                both = there[source][ends[0]] & there[target][ends[1]]
                part[source, name, target].edge_index = ends[:, both]
        with torch.no_grad():
            expected = model(part.x_dict, part.edge_index_dict)
        assert found == pytest.approx(float(expected[0, 0]), abs=1e-9)


def test_only_the_neighborhood_plays_and_everybody_gives_the_prediction() -> None:
    """Layers of several relations count once: two layers reach two hops, not eight."""
    generator = np.random.default_rng(0)
    papers, authors, venues = 120, 90, 10
    data = typed_graph(
        {"author": authors, "paper": papers, "venue": venues},
        list({(int(generator.integers(authors)), p) for p in range(papers) for _ in range(2)}),
        [(p, int(generator.integers(venues))) for p in range(papers)],
    )
    for model in (seeded(OnPapers), seeded(transformed, data), seeded(Transformer)):
        game = GNNGame(model, data, index=7, task=OF_PAPERS)
        reached = {("paper", 7)}
        for _ in range(2):
            reached |= {
                (source, a)
                for source, name, target in RELATIONS
                for a, b in data[source, name, target].edge_index.t().tolist()
                if (target, b) in reached
            }
        graph = hetero_of(view_of(data))
        assert graph is not None
        assert {graph.pair(int(node)) for node in game.nodes} == reached
        with torch.no_grad():
            out = model(data.x_dict, data.edge_index_dict)
        expected = (out["paper"] if isinstance(out, dict) else out)[7]
        everybody = game(np.ones((1, game.n), dtype=bool))
        assert torch.allclose(game.prediction, expected, atol=1e-12)
        # in the part of the graph that is kept, too
        column = game.payoff.columns[0]
        whole = float(expected.softmax(-1)[column])
        assert everybody[0] + game.payoff.baseline[0] == pytest.approx(whole, abs=1e-12)


def test_coalitions_of_a_node_share_embeddings_and_agree() -> None:
    data, model = small(), seeded(OnPapers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        games = [
            GNNGame(
                model,
                data,
                index=0,
                task=OF_PAPERS,
                game=GameOptions(num_hops=9),
                passes=Passes(share=share),
            )
            for share in (True, False)
        ]
    coalitions = np.random.default_rng(0).random((300, games[0].n)) < 0.5
    shared, plain = (game(coalitions) for game in games)
    assert games[0].sharing.used
    np.testing.assert_allclose(shared, plain, atol=1e-12)


class TwoRelations(nn.Module):
    """Relations within one type: a layer of each, side by side."""

    def __init__(self) -> None:
        super().__init__()
        relations = [("a", "one", "a"), ("a", "other", "a")]
        self.convs = nn.ModuleList(
            HeteroConv({relation: GCNConv(width, 4) for relation in relations}) for width in (3, 4)
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        for conv in self.convs:
            x_dict = {key: x.tanh() for key, x in conv(x_dict, edge_index_dict).items()}
        found: Tensor = self.head(x_dict["a"])
        return found


def test_relations_within_one_type_share_embeddings_and_agree() -> None:
    draw, data = torch.Generator().manual_seed(0), HeteroData()
    data["a"].x = torch.randn(8, 3, generator=draw, dtype=torch.float64)
    data["a", "one", "a"].edge_index = torch.randint(8, (2, 12), generator=draw)
    data["a", "other", "a"].edge_index = torch.randint(8, (2, 7), generator=draw)
    model = seeded(TwoRelations)
    games = [
        GNNGame(
            model,
            data,
            index=1,
            task=Task(task_level="node", node_type="a"),
            passes=Passes(share=share),
        )
        for share in (True, False)
    ]
    coalitions = np.random.default_rng(0).random((200, games[0].n)) < 0.5
    shared, plain = (game(coalitions) for game in games)
    assert games[0].sharing.used
    np.testing.assert_allclose(shared, plain, atol=1e-12)


def test_a_view_survives_pickling() -> None:
    view = view_of(small())
    again = pickle.loads(pickle.dumps(view))
    graph = hetero_of(again)
    assert graph is not None
    assert graph.name(4) == "paper 1"
    assert torch.equal(again.edge_index, view.edge_index)


class Needs(torch.nn.Module):
    """Reads the first venue of a graph, so that it needs one."""

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        first = x_dict["venue"][0]
        return torch.stack([first.sum(), x_dict["author"].sum()])[None]


class Averages(torch.nn.Module):
    """The mean over venues, which is not a number without any."""

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return torch.stack([x_dict["venue"].mean(), x_dict["author"].sum()])[None]


def test_a_model_that_needs_a_type_is_told_which() -> None:
    data = small()
    with pytest.raises(IndexError) as raised:
        GStarX().explain(Needs(), data)
    said = " ".join(raised.value.__notes__)
    assert (
        "{author 0}, without nodes of type 'paper' and 'venue'; GameOptions(fallback=...)" in said
    )
    with pytest.raises(ValueError, match=r"without nodes of type .*'venue'"):
        GStarX().explain(Averages(), data)
    for model in (Needs(), Averages()):
        explanation = GStarX(value="shapley", game=GameOptions(fallback=0.0)).explain(model, data)
        assert explanation.scores.isfinite().all()


def _changed(change: Any) -> HeteroData:
    data = small()
    change(data)
    return data


def test_a_model_without_an_output_if_no_player_is_present() -> None:
    def mean(x_dict: Any, edge_index_dict: Any) -> Tensor:
        return x_dict["paper"].mean().reshape(1)

    options: dict[str, Any] = {"task": "regression", "players": Nodes(types=("paper",))}
    # a fallback is for coalitions, not for what is subtracted from all of them
    for game in (GameOptions(), GameOptions(fallback=0.0)):
        with pytest.raises(ValueError, match=r"with no player present.*\[nan\]: give baseline"):
            explain(mean, small(), **options, game=game)
    assert explain(mean, small(), **options, baseline=0.0).scores.isfinite().all()


@for_each(
    ("data", "options", "error", "message"),
    [
        (HeteroData(), {}, ValueError, "no nodes"),
        (
            lambda: _changed(lambda d: d["venue"].pop("x")),
            {},
            ValueError,
            "number of nodes of type 'venue' is not known",
        ),
        (
            lambda: _changed(lambda d: setattr(d[WRITES], "edge_index", torch.tensor([[0], [9]]))),
            {},
            ValueError,
            "names node 9 of 3 nodes of type 'paper'",
        ),
        (
            lambda: _changed(lambda d: setattr(d[WRITES], "edge_index", torch.tensor([0, 1]))),
            {},
            ValueError,
            "must have shape",
        ),
        (
            lambda: _changed(
                lambda d: setattr(
                    d["paper", "cites", "book"], "edge_index", torch.tensor([[0], [0]])
                )
            ),
            {},
            ValueError,
            "nodes of type 'book'",
        ),
        (small, {"players": Nodes(types=("autor",))}, ValueError, "did you mean 'author'"),
        (small, {"players": Nodes(relations=("writs",))}, ValueError, "did you mean 'writes'"),
        (small, {"players": "edges"}, ValueError, "players of a heterogeneous graph are its nodes"),
        (small, {"players": "features"}, ValueError, "players of a heterogeneous graph"),
        (small, {"players": [{0, 1}]}, ValueError, "players of a heterogeneous graph"),
        (
            small,
            {"game": GameOptions(removal=lambda d, nodes: d)},
            ValueError,
            "removal of your own",
        ),
        (small, {"task": "edge", "index": 0}, ValueError, "homogeneous graphs"),
        (small, {"task": Task(node_type="paper")}, ValueError, "task='node'"),
        (
            small,
            {"task": Task(task_level="node", node_type="papper"), "index": 0},
            ValueError,
            "did you mean 'paper'",
        ),
        (
            small,
            {"task": OF_PAPERS, "index": 3},
            ValueError,
            r"nodes in 0\.\.2 \(got 3\)",
        ),
    ],
)
def test_bad_input_is_named(data: Any, options: Any, error: Any, message: str) -> None:
    graph = data() if callable(data) else data
    of_nodes = as_task(options.get("task")).task_level == "node"
    model = seeded(OnPapers) if of_nodes else seeded(OnGraphs)
    with pytest.raises(error, match=message):
        GNNGame(model, graph, **options)


def test_the_type_of_an_index_is_inferred_only_if_it_shows() -> None:
    model = seeded(OnPapers)
    with pytest.raises(ValueError, match=r"author, paper.*node_type='author' or node_type='paper'"):
        GNNGame(model, small(), index=0, task="node")
    four = typed_graph({"author": 3, "paper": 4, "venue": 2}, [(0, 0)], [(3, 1)])
    game = GNNGame(model, four, index=0, task="node")
    assert game.players.names[0] in ("author 0", "paper 0")
    with pytest.raises(ValueError, match="outputs for 3 types"):
        GNNGame(seeded(transformed, four), four, index=0, task="node")
    with pytest.raises(ValueError, match="a row for each of 2 nodes of type 'venue'"):
        GNNGame(model, four, index=0, task=Task(task_level="node", node_type="venue"))


def test_options_of_types_are_refused_for_homogeneous_graphs() -> None:
    data = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    every: list[dict[str, Any]] = [
        {"players": Nodes(types=("author",))},
        {"players": Nodes(relations=("writes",))},
        {"task": Task(task_level="node", node_type="author"), "index": 0},
    ]
    for options in every:
        with pytest.raises(ValueError, match="heterogeneous graphs"):
            GNNGame(lambda x, edge_index, batch: x, data, **options)


def test_several_graphs_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="holds 2 graphs"):
        GNNGame(seeded(OnGraphs), Batch.from_data_list([small(), small()]))


def test_a_type_without_features_is_left_out_of_x() -> None:
    data = small()
    del data["venue"].x
    data["venue"].num_nodes = 2

    def model(x_dict: Any, edge_index_dict: Any, num_nodes_dict: Any) -> Tensor:
        assert "venue" not in x_dict
        total = x_dict["paper"].sum() + num_nodes_dict["venue"]
        return torch.stack([total, total * 0])[None]

    game = GNNGame(model, data, payoff="raw", target=0)
    papers = data["paper"].x.sum(dim=1)
    worth = game(np.array([[0, 0, 0, 1, 0, 0, 1, 1]], dtype=bool))
    assert worth[0] == pytest.approx(float(papers[0]) + 2, abs=1e-9)
    with pytest.raises(ValueError, match="features x of every type, and 'venue' has none"):
        GNNGame(model, data, game=GameOptions(removal="zero_filling"))


def test_nodes_far_away_play_if_their_features_matter_though_all_are_the_same() -> None:
    """What is left out is checked by noise, not only by the features of others."""
    data = small()
    data["venue"].x = torch.ones_like(data["venue"].x)
    base = seeded(OnPapers)

    class WithVenues(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = base

        def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
            return self.base(x_dict, edge_index_dict) * x_dict["venue"].sum()

    task, passes = OF_PAPERS, Passes(check=False)
    alone, together = (
        GNNGame(model, data, index=0, task=task, passes=passes) for model in (base, WithVenues())
    )
    assert "venue 1" not in alone.players.names
    assert "venue 1" in together.players.names


def test_weights_of_edges_and_fields_of_the_graph_are_passed_on() -> None:
    data = small()
    for at, kind in enumerate(data.edge_types):
        count = data[kind].edge_index.shape[1]
        data[kind].edge_weight = torch.arange(1.0, count + 1, dtype=torch.float64) * (at + 1)
    data.context = torch.tensor([[2.0, 3.0]], dtype=torch.float64)

    def model(
        x_dict: Any, edge_index_dict: Any, edge_weight_dict: Any, batch_dict: Any, context: Tensor
    ) -> Tensor:
        total = x_dict["paper"].new_zeros(len(context))
        for source, name, target in edge_index_dict:
            owner = batch_dict[source][edge_index_dict[source, name, target][0]]
            total = total.index_add(0, owner, edge_weight_dict[source, name, target])
        return torch.stack([total * context[:, 0], context[:, 1]], dim=1)

    game = GNNGame(model, data, payoff="raw", target="all")
    every = nodes_of(data)
    coalitions = np.random.default_rng(2).random((30, len(every))) < 0.6
    for row, found in zip(coalitions, game(coalitions), strict=True):
        inside = [node for node, there in zip(every, row, strict=True) if there]
        part = part_of(data, inside)
        weights = sum(float(part[kind].edge_weight.sum()) for kind in data.edge_types)
        assert found.tolist() == pytest.approx([2 * weights, 3.0] if inside else [0.0, 0.0])
    assert game.fixed == ["context"]
    assert not game.check.one_by_one


@pytest.mark.parametrize("make", [OnGraphs, OfData, OfAttributes])
def test_doubt_about_rounding_is_settled_in_double_precision(make: Any) -> None:
    data = small(attributes=make is OfAttributes)
    model = seeded(make, attributes=make is OfAttributes)
    precise = GNNGame(model, data, payoff="raw", target=1)
    coalitions = np.random.default_rng(0).random((9, precise.n)) < 0.5
    expected = precise(coalitions)
    single = data.clone().apply(lambda value: value.float() if value.is_floating_point() else value)
    game = GNNGame(copy.deepcopy(model).float(), single, payoff="raw", target=1)
    assert np.abs(game(coalitions) - expected).max() > 1e-9
    evaluator = game._scores._evaluator
    outputs = evaluator.double_outputs(pack(coalitions))
    assert outputs.dtype == torch.float64
    plain = evaluator.outputs(pack(coalitions))
    assert plain.dtype == torch.float32
    torch.testing.assert_close(outputs, plain.double(), atol=1e-4, rtol=1e-4)


def test_a_single_player_in_single_precision_does_not_look_like_mixing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            generator = torch.Generator().manual_seed(seed)
            data = HeteroData()
            for kind, count in (("author", 6), ("paper", 4)):
                data[kind].x = torch.randn(count, 8, generator=generator).double()
            ends = torch.randint(4, (2, 3), generator=generator)
            data["author", "writes", "paper"].edge_index = ends
            data["paper", "by", "author"].edge_index = ends[:, :2].flip(0)
            network = seeded(transformed, data).float()
            for kind in ("author", "paper"):
                data[kind].x = data[kind].x.float()
            for index in set(ends[1, :2].tolist()) | set(ends[0, :2].tolist()):
                explain(
                    network, data, index=index, task=Task(task_level="node", node_type="author")
                )
