"""Conformance tests for explainers and values of your own; those of the package pass them."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer

from gstarx.explainers import NodeExplainer, explain
from gstarx.explanation import Explanation
from gstarx.games import TableGame
from gstarx.graphs import Coalitions, CommunicationGraph, TooManyCoalitions
from gstarx.models import GCN
from gstarx.values import Allocation, Position, Value

_FEATURES, _CLASSES = 4, 3


class ExplainerCheckError(AssertionError):
    """An explainer breaks the contract of :class:`gstarx.explainers.NodeExplainer`."""


class ValueCheckError(AssertionError):
    """A value breaks the contract of :class:`gstarx.values.Value`."""


def check_explainer(
    explainer: NodeExplainer | Callable[[], NodeExplainer],
    *,
    model: Any = None,
    graphs: list[Data] | None = None,
) -> None:
    """Check on small graphs that an explainer keeps the contract, and raise if it does not.

    It must subclass :class:`gstarx.explainers.NodeExplainer` and return finite scores, one per
    node, or sets of nodes; the same for the same seed, whatever the global random state; for the
    requested target; leave the model and the graph exactly as they were; obey its own ``seed``;
    state how the result was computed; and work inside PyG's ``Explainer``.

    Parameters
    ----------
    explainer
        The explainer, or a function that makes one. One that needs training is trained here.
    model
        A graph classifier of three classes for four features; by default a small GCN.
    graphs
        Graphs for it; by default a path, a ring with a tail, a graph in two parts, and a pair.

    Raises
    ------
    ExplainerCheckError
        With the name of the check that failed.

    Examples
    --------
    >>> from gstarx.explainers import LeaveOneOut
    >>> check_explainer(LeaveOneOut())
    """
    checked = explainer() if not isinstance(explainer, NodeExplainer) else explainer
    _require(isinstance(checked, NodeExplainer), "type", "is not a gstarx.explainers.NodeExplainer")
    network = _network() if model is None else model
    cases = _graphs() if graphs is None else graphs
    if checked.requires_training:
        with _unchanged(network, cases[0], "fit"):
            checked.fit(network, cases, seed=0)
    for data in cases:
        with _unchanged(network, data, "explain"):
            explanation = checked.explain(network, data, seed=0)
        _check_result(explanation, data)
        _check_repeats(checked, network, data, explanation)
        _check_target(checked, network, data)
    _check_own_seed(checked, network, cases[0])
    _check_inside_pyg(checked, network, cases[0])


def _require(holds: bool, check: str, what: str) -> None:
    if not holds:
        raise ExplainerCheckError(f"{check}: the explainer {what}")


def _check_result(explanation: Any, data: Data) -> None:
    count = int(data.num_nodes or 0)
    _require(isinstance(explanation, Explanation), "result", "must return a gstarx.Explanation")
    scores = explanation.scores
    if scores is None:
        ids = {int(node) for nodes in explanation.sets for node in nodes}
        _require(ids <= set(range(count)), "sets", f"names nodes outside of 0..{count - 1}")
    else:
        players = explanation.players
        _require(scores.shape == players.shape, "scores", "must score every player once")
        _require(scores.dtype == torch.float64, "scores", "must give scores in double precision")
        _require(bool(scores.isfinite().all()), "scores", "gives scores that are not finite")
        errors = explanation.std_errors
        _require(errors.shape == scores.shape, "std_errors", "must have an error for every score")
        _require(not bool((errors < 0).any()), "std_errors", "gives negative standard errors")
        _require(explanation.node_scores.shape == (count,), "node_scores", "must score all nodes")
    _require(explanation.node_mask.shape == (count, 1), "node_mask", "must have a mask [N, 1]")
    _require(explanation.validate(), "validate", "gives an explanation that PyG refuses")
    _require(bool(explanation.method), "method", "must have a name")
    for size in range(count + 1):
        selected = explanation.select(size=size)
        ascending = bool((np.diff(selected) > 0).all())
        _require(len(selected) <= size and ascending, "select", "selects too many nodes, or twice")
    json.dumps(explanation.to_dict(), allow_nan=False)


def _check_repeats(explainer: NodeExplainer, model: Any, data: Data, first: Explanation) -> None:
    """The same seed gives the same result, whatever the state of the global generators."""
    torch.manual_seed(12345)
    np.random.seed(12345)  # noqa: NPY002
    again = explainer.explain(model, data, seed=0)
    _require(_same(first, again), "seed", "gives other results for the same seed")


def _check_target(explainer: NodeExplainer, model: Any, data: Data) -> None:
    for target in range(_CLASSES):
        explanation = explainer.explain(model, data, target=target, seed=0)
        _require(
            explanation.explained == [target],
            "target",
            f"explains {explanation.explained} where target={target} was asked for",
        )


def _check_own_seed(explainer: NodeExplainer, model: Any, data: Data) -> None:
    seeded = copy.copy(explainer)
    seeded.seed = 7
    once, again = (seeded.explain(model, data) for _ in range(2))
    explicit = explainer.explain(model, data, seed=7)
    _require(_same(once, again) and _same(once, explicit), "own seed", "does not obey its own seed")


def _check_inside_pyg(explainer: NodeExplainer, model: Any, data: Data) -> None:
    if not isinstance(model, torch.nn.Module):
        return
    config = {
        "mode": "multiclass_classification",
        "task_level": "graph",
        "return_type": "raw",
    }
    for edges in (None, "object"):
        wrapped = Explainer(
            model,
            algorithm=explainer,
            explanation_type="model",
            node_mask_type="object",
            edge_mask_type=edges,
            model_config=config,
        )
        explanation = wrapped(data.x, data.edge_index)
        count = int(data.num_nodes or 0)
        _require(explanation.node_mask.shape == (count, 1), "PyG", "must return a node mask [N, 1]")
        if edges is not None:
            mask = explanation.get("edge_mask")
            shaped = mask is not None and mask.shape == (data.num_edges,)
            _require(shaped, "PyG", "must return an edge mask [E] where one is asked for")


def _same(one: Explanation, other: Explanation) -> bool:
    if one.scores is None or other.scores is None:
        sets = [[nodes.tolist() for nodes in each.sets] for each in (one, other)]
        return one.scores is other.scores and sets[0] == sets[1]
    return bool(torch.equal(one.scores, other.scores))


@contextmanager
def _unchanged(model: Any, data: Data, check: str) -> Iterator[None]:
    """Raise if the model's parameters, buffers, mode or hooks, or the graph, change inside."""
    before, graph = _state(model), copy.deepcopy(data)
    yield
    after = _state(model)
    for name, value in before.items():
        now = after.get(name)
        if isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor):
            equal = torch.equal(value, now)
        else:
            equal = value is now or value == now
        _require(bool(equal), check, f"changes the model ({name})")
    _require(before.keys() == after.keys(), check, "changes the model")
    _require(graph.keys() == data.keys(), check, "changes the fields of the graph")
    for key, value in graph:
        if isinstance(value, torch.Tensor):
            _require(torch.equal(value, data[key]), check, f"changes the graph ({key})")


def _state(model: Any) -> dict[str, Any]:
    if not isinstance(model, torch.nn.Module):
        return {}
    state: dict[str, Any] = {name: t.detach().clone() for name, t in model.state_dict().items()}
    for name, module in model.named_modules():
        state[f"{name}.training"] = module.training
        state[f"{name}.hooks"] = len(module._forward_hooks) + len(module._forward_pre_hooks)
    for name, parameter in model.named_parameters():
        state[f"{name}.grad"] = parameter.grad is None
        state[f"{name}.requires_grad"] = parameter.requires_grad
    return state


def _network() -> GCN:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GCN(_FEATURES, 8, _CLASSES).train()


def _graphs() -> list[Data]:
    edges = (
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5)],
        [(0, 1), (1, 2), (3, 4), (4, 5), (5, 3)],
        [(0, 1)],
    )
    generator = torch.Generator().manual_seed(0)
    listed = []
    for pairs in edges:
        one_way = torch.tensor(pairs).t()
        count = int(one_way.max()) + 1
        x = torch.randn(count, _FEATURES, generator=generator)
        listed.append(Data(x=x, edge_index=torch.cat([one_way, one_way.flip(0)], dim=1)))
    return listed


def check_value(value: Value) -> None:
    """Check on small games that a value keeps the contract, and raise if it does not.

    Exact values must be finite, linear in the game, independent of how players are numbered, and
    follow from at most as many distinct coalitions as :meth:`~gstarx.values.Value.count` says, none
    of them empty. Estimates must keep to their budget, be the same for the same seed, and agree
    with the exact value within their standard errors. :func:`gstarx.explain` must take it.

    Parameters
    ----------
    value
        The value, with its options.

    Raises
    ------
    ValueCheckError
        With the name of the check that failed.

    Examples
    --------
    >>> from gstarx import Banzhaf
    >>> check_value(Banzhaf(presence=0.3))
    """
    _hold(isinstance(value, Value), "type", "is not a gstarx.values.Value")
    _hold(bool(value.name) and value == copy.copy(value), "name", "must have a name and be frozen")
    for at, data in enumerate(_graphs()):
        count = int(data.num_nodes or 0)
        graph = CommunicationGraph(count, data.edge_index.t().numpy())
        table = np.random.default_rng(at).normal(size=(2**count, 3))
        table[:, 2] = 2 * table[:, 0] - table[:, 1]
        if "exact" in value.estimators:
            found = _check_exact(value, table, graph)
            _check_sampled(value, table, graph, found)
    model = _network()
    players = "edges" if isinstance(value, Position) else "nodes"
    for data in _graphs():
        with warnings.catch_warnings():  # of what an untrained network says
            warnings.simplefilter("ignore", UserWarning)
            scores = explain(model, data, value=value, players=players).scores
        _hold(bool(scores.isfinite().all()), "explain", "gives scores that are not finite")


def _hold(holds: bool, check: str, what: str) -> None:
    if not holds:
        raise ValueCheckError(f"{check}: the value {what}")


class _Counted:
    """A game that counts the distinct coalitions that it is asked for."""

    def __init__(self, table: Any, n: int) -> None:
        self.game, self.asked = TableGame(n, table), set[bytes]()

    def __call__(self, coalitions: Coalitions) -> Any:
        _hold(bool(coalitions.any(axis=1).all()), "game", "asks for the empty coalition")
        self.asked |= {row.tobytes() for row in np.asarray(coalitions, dtype=np.bool_)}
        return self.game(coalitions)


def _check_exact(value: Value, table: Any, graph: CommunicationGraph) -> Allocation:
    """The exact value of three games, the last of which is 2 times the first minus the second."""
    n = graph.num_nodes
    everything, game = 2**n - 1, _Counted(table, n)
    found = value.exact(game, graph, max_coalitions=everything)
    _hold(found.exact, "exact", "must say that exact values are exact")
    _hold(found.values.shape == (n, 3), "exact", "must give a number per player and game")
    _hold(bool(np.isfinite(found.values).all()), "exact", "gives values that are not finite")
    first, second, combined = found.values.T
    _hold(np.allclose(combined, 2 * first - second), "linear", "is not linear in the game")
    count = value.count(graph, everything)
    _hold(len(game.asked) <= count, "count", f"evaluates {len(game.asked)} coalitions, not {count}")
    single = value.exact(TableGame(n, table[:, 0]), graph, max_coalitions=everything)
    _hold(single.values.shape == (n,), "columns", "must give (n,) for a game of one number")
    _hold(np.allclose(single.values, first), "columns", "differs for one game and for several")
    try:
        value.exact(TableGame(n, table), graph, max_coalitions=min(count, len(game.asked)) - 1)
        _hold(False, "max_coalitions", "must raise TooManyCoalitions beyond max_coalitions")
    except TooManyCoalitions:
        pass
    order = np.random.default_rng(0).permutation(n)
    masks = np.arange(2**n)[:, None] >> np.arange(n) & 1
    moved = TableGame(n, table[(masks[:, order] << np.arange(n)).sum(axis=1)])
    renamed = CommunicationGraph(n, order[graph.edges])
    again = value.exact(moved, renamed, max_coalitions=everything)
    _hold(np.allclose(again.values[order], found.values), "names", "depends on players' numbers")
    return found


def _check_sampled(value: Value, table: Any, graph: CommunicationGraph, exact: Allocation) -> None:
    """Estimates of a value that has a sampler of its own."""
    if type(value).sampled is Value.sampled:
        return
    n = graph.num_nodes
    budget, drawn = 2 * n, []
    for seed in range(20):
        game = _Counted(table, n)
        found = value.sampled(game, graph, budget=budget, seed=seed)
        most = value.sides * budget + 1
        _hold(len(game.asked) <= most, "budget", f"evaluates {len(game.asked)} of {budget}")
        drawn.append(found)
    again = value.sampled(TableGame(n, table), graph, budget=budget, seed=0)
    same = np.array_equal(again.values, drawn[0].values)
    _hold(same, "seed", "gives other estimates for the same seed")
    errors = np.array([one.std_error for one in drawn])
    _hold(bool((errors >= 0).all()), "std_error", "gives standard errors that are no numbers")
    off = np.mean([one.values for one in drawn], axis=0) - exact.values
    within = 6 * np.sqrt((errors**2).mean(axis=0) / len(drawn)) + 1e-9
    _hold(bool((np.abs(off) <= within).all()), "estimate", "is estimated with a bias")
