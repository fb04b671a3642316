"""Options are objects: what is none, or is said where it does not belong, is an error."""

from __future__ import annotations

from typing import Any

import pytest

from gstarx import (
    HN,
    Banzhaf,
    GameOptions,
    GNNGame,
    GStarX,
    Judge,
    Passes,
    Subgraphs,
    Task,
    expected_output,
    explain,
    explain_many,
    explain_nodes,
)
from gstarx.metrics import evaluate
from gstarx.models import GCN
from gstarx.players import Edges, Features, Groups, Nodes
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from tests.pairs import for_each

MODEL, DATA = GCN(FEATURES, 8, CLASSES), graph("ring")
TAKE_ALL = (explain, explain_many, explain_nodes, GStarX)

#: Where what used to be a keyword is now.
MOVED = {
    "task": [
        "Task(mode=...)",
        "Task(task_level=...)",
        "Task(return_type=...)",
        "Task(node_type=...)",
        "Task(keywords=...)",
    ],
    "value": [
        "Myerson(two_sided=...)",
        "Myerson(estimator=...)",
        "Banzhaf(presence=...)",
        "Subgraphs(max_sample_size=...)",
        "Subgraphs(num_samples=...)",
        "Subgraphs(sampling=...)",
        "Subgraphs(inner=...)",
        "Subgraphs(tau=...)",
        "Subgraphs(superadditive=...)",
    ],
    "players": [
        "Nodes(relations=...)",
        "Groups(rest=...)",
        "Edges(directed=...)",
        "Features(reference=...)",
        "Features(draws=...)",
    ],
    "game": [f"GameOptions({name}=...)" for name in GameOptions.__dataclass_fields__],
    "passes": [f"Passes({name}=...)" for name in Passes.__dataclass_fields__],
}
OLD_KEYWORDS = [
    (place.partition("(")[2].partition("=")[0], f"it is an option, {family}={place}")
    for family, places in MOVED.items()
    for place in places
] + [
    ("player_types", "it is an option, players=Nodes(types=...)"),
    ("feature_groups", "it is an option, players=Features(groups=...)"),
    ("edge_mask", "the result has score_edges()"),
    ("mask_range", "the result has in_unit_range()"),
]


@for_each(("keyword", "place"), OLD_KEYWORDS)
def test_an_old_keyword_is_an_error_that_says_where_it_is_now(keyword: str, place: str) -> None:
    of_a_game = not place.startswith(("it is an option, value=", "the result"))
    for function in (*TAKE_ALL, *([GNNGame] if of_a_game else [])):
        with pytest.raises(TypeError) as caught:
            function(**{keyword: None})
        assert str(caught.value) == f"{function.__name__}() has no keyword {keyword!r}: {place}"


def test_nodes_are_an_argument_of_their_own() -> None:
    with pytest.raises(TypeError, match="'indices': the nodes are the third argument, nodes"):
        explain_nodes(MODEL, DATA, indices=[0])  # type: ignore[call-arg]


@for_each("function", [explain, explain_many, explain_nodes, GStarX, evaluate, expected_output])
def test_a_keyword_that_never_was_is_compared_with_those_that_are(function: Any) -> None:
    with pytest.raises(TypeError, match="has no keyword 'tsk'; did you mean 'task'"):
        function(tsk="node")


@for_each(
    ("options", "error", "message"),
    [
        ({"value": Passes()}, TypeError, r"value must be one of 'myerson', .*\(got Passes\)"),
        ({"value": HN}, TypeError, r"value must be an object, HN\(\.\.\.\) \(got the class\)"),
        ({"value": "myersn"}, ValueError, "no value 'myersn'; did you mean 'myerson'"),
        ({"players": HN()}, TypeError, r"players must be a name, .*\(got HN\)"),
        ({"players": Nodes}, TypeError, r"an object, Nodes\(\.\.\.\) \(got the class\)"),
        ({"players": "egdes"}, ValueError, "kind of players 'egdes'; did you mean 'edges'"),
        ({"game": Passes()}, TypeError, r"game takes a gstarx.GameOptions\(\.\.\.\) \(got Passes"),
        ({"game": {"num_hops": 2}}, TypeError, r"GameOptions\(\.\.\.\) \(got {'num_hops': 2}\)"),
        ({"passes": GameOptions()}, TypeError, r"passes takes a gstarx.Passes\(\.\.\.\) \(got Ga"),
        ({"task": Banzhaf()}, TypeError, r"task must be a word such as .*\(got Banzhaf\)"),
        ({"task": "nod"}, ValueError, "no task 'nod'; did you mean 'node'"),
        ({"task": {"levl": "node"}}, ValueError, "field of a task 'levl'; did you mean 'task_l"),
    ],
)
def test_what_is_no_option_of_this_family_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        explain(MODEL, DATA, **options)
    with pytest.raises(error, match=message):
        GStarX(**options)
    if "value" not in options:
        with pytest.raises(error, match=message):
            GNNGame(MODEL, DATA, **options)


@for_each(
    ("make", "error", "message"),
    [
        (lambda: Passes(batch_nodes=0), ValueError, r"batch_nodes must be at least 1 \(got 0\)"),
        (lambda: Passes(batch_nodes=2.5), TypeError, r"batch_nodes must be an integer \(got 2.5"),
        (lambda: Passes(check="no"), TypeError, "check must be True or False"),
        *(
            (lambda wrong=wrong: Passes(share=wrong), ValueError, r"share must be 'auto', True or")
            for wrong in ("yes", None, 1, "True")
        ),
        (lambda: GameOptions(num_hops=-1), ValueError, r"num_hops must be at least 0 \(got -1\)"),
        (
            lambda: GameOptions(computation_graph="all"),
            ValueError,
            r"'exact', 'gnnshap' \(got 'all",
        ),
        (lambda: GameOptions(fallback=float("nan")), ValueError, "a finite number"),
        (
            lambda: Groups([[0]], rest="gone"),
            ValueError,
            "rest must be one of 'players', 'present'",
        ),
        (lambda: Nodes(types="paper"), TypeError, r"types must be a list .*pass \['paper'\]"),
        (lambda: Nodes(types=()), ValueError, "at least one type of nodes"),
        (lambda: Edges(directed="yes"), TypeError, "directed must be True or False"),
        (lambda: Features(reference="median"), ValueError, "reference must be one of"),
        (lambda: Features(draws=0), ValueError, "draws must be an integer of at least 1"),
        (lambda: Features(groups=[[0]]), TypeError, "mapping from names to columns"),
        (lambda: Banzhaf(presence=1.5), ValueError, "presence must"),
        (lambda: HN(two_sided="yes"), TypeError, "two_sided must be True or False"),
        (lambda: HN(estimator="sampled"), ValueError, "no estimator 'sampled' for HN"),
        (lambda: Subgraphs(inner="exakt"), ValueError, "inner must be one of"),
        (lambda: Subgraphs(estimator="exact"), ValueError, "no estimator 'exact' for Subgraphs"),
        (lambda: Subgraphs(value="banzhaf"), ValueError, "value must be one of"),
    ],
)
def test_a_value_that_is_none_is_refused_where_it_is_given(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


class Regressor(GCN):
    """Says of itself what it does."""

    mode = "regression"


def test_what_a_model_says_of_itself_holds_and_is_not_contradicted() -> None:
    model = Regressor(FEATURES, 8, 1)
    assert explain(model, DATA).baseline_source == "singletons"
    assert explain(model, DATA, task="regression").worth == explain(model, DATA).worth

    class Binary(Regressor):
        mode = "binary"  # one of the words of a task, which PyG does not have

    assert explain(Binary(FEATURES, 8, 1), DATA).mode == "binary_classification"
    calls: list[Any] = [
        lambda: explain(model, DATA, task="binary"),
        lambda: GNNGame(model, DATA, task="binary"),
        lambda: expected_output(model, [DATA], task="binary"),
        lambda: evaluate(model, DATA, [0], task="binary"),
        lambda: Judge(model, task="binary")(DATA, [0]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"its mode is 'regression', and task says 'binary_cl"):
            call()


@for_each(
    ("call", "error", "message"),
    [
        (lambda: GStarX.as_published(baseline=0.5, value="hn"), TypeError, r"Subgraphs\(\.\.\.\)"),  # type: ignore[arg-type]
        (lambda: Judge(MODEL)(DATA, explain(MODEL, DATA)), TypeError, r"explanation\.select"),
        (lambda: Judge(MODEL).compare([DATA], [[0]], []), ValueError, r"each of 1 .*1 and 0"),
        (
            lambda: Judge(MODEL).compare([DATA], [[0]], [[1]], metric="fidelty"),
            ValueError,
            "metric must be one of 'fidelity'",
        ),
        (lambda: explain_many(MODEL, "CCO"), TypeError, "takes several graphs .*one str"),
    ],
)
def test_arguments_of_another_kind_are_named(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_an_explainer_and_its_call_say_the_same_task() -> None:
    model, explainer = GCN(FEATURES, 8, CLASSES, readout=None), GStarX(task="node")
    found = explainer.explain(model, DATA, index=1)
    assert found.scores.equal(explainer.explain(model, DATA, index=1, task="node").scores)
    with pytest.raises(ValueError, match=r"the explainer has task=.*'node'.* got .*'edge'.*keep"):
        explainer.explain(model, DATA, index=1, task="edge")
    with pytest.raises(ValueError, match=r"explain_nodes explains nodes \(got task='edge'\)"):
        explain_nodes(model, DATA, [0], task=Task(task_level="edge"))
