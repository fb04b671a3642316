"""Several outputs of a model explained together, as PyG's ``Explainer`` asks for them.

PyG's ``index`` names rows of the model's output, all of them by default: nodes, pairs of nodes, or
graphs of a batch. The worth of a coalition is then the sum of the payoffs of these rows. The values
are additive, so that the scores are the sums of those of the single outputs, and each output is
explained by itself, on its own graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask, cut, graphs_in, hetero_of, roles_of, same_outputs
from gstarx.players import Groups, Nodes, PlayerSet, player_set


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a model and the graph that it is explained on.

    Attributes
    ----------
    row
        Its row in the model's output for all graphs.
    data
        The graph.
    index
        The node or pair in this graph.
    nodes, edges
        Numbers of the nodes and edges of this graph among those of all graphs; ``None`` for all.
    """

    row: int
    data: Data
    index: int | None
    nodes: NDArray[np.int64] | None = None
    edges: NDArray[np.int64] | None = None


def chosen_rows(index: Any, count: int, name: str, what: str) -> list[int]:
    """Numbers of rows from a list, a tensor or a mask, or an error that says what came instead."""
    listed = index.detach().cpu().numpy() if isinstance(index, Tensor) else index
    numbers = np.asarray(listed if isinstance(listed, np.ndarray | int) else list(listed))
    if numbers.dtype == np.bool_:
        if numbers.shape != (count,):
            raise ValueError(
                f"a mask of {what} must have {count} entries (got shape {numbers.shape})"
            )
        return [int(row) for row in np.flatnonzero(numbers)]
    if numbers.size and (numbers.ndim > 1 or numbers.dtype.kind not in "iu"):
        raise TypeError(
            f"{name} must be a list of integers or a boolean mask of {what} (got {index!r})"
        )
    numbers = numbers.reshape(-1)
    wrong = [int(row) for row in numbers if not 0 <= row < count]
    if wrong:
        raise ValueError(f"{name} must lie in 0..{count - 1} (got {wrong[0]})")
    return [int(row) for row in numbers]


def numbered(data: Data, task: ModelTask) -> tuple[int, int]:
    """How many outputs a model has, and the number of the first among the nodes of all types."""
    graph = hetero_of(data)
    if graph is None or graph.output_type is None:
        return 0, task.rows(data)
    return int(graph.rows(graph.output_type).start), graph.count(graph.output_type)


def outputs_of(model: Any, data: Data, task: ModelTask, index: Any) -> list[Output]:
    """The outputs that PyG's index names, each with the graph to explain it on.

    Raises if the output on this graph is another one than on all graphs together.
    """
    first, count = numbered(data, task)
    rows = list(range(count)) if index is None else chosen_rows(index, count, "index", "outputs")
    if not rows:
        raise ValueError(f"index names no output to explain (got {index!r})")
    if graphs_in(data) == 1:
        whole = task.task_level == "graph"
        return [Output(row, data, None if whole else first + row) for row in rows]
    everything = task.output(model, data)
    found = [_own_graph(data, task, row) for row in rows]
    for output in found:
        alone = task.output(model, output.data)[[output.index or 0]]
        if not same_outputs(alone, everything[[output.row]], everything):
            raise ValueError(
                f"output {output.row} depends on the other graphs of the batch, so it cannot be "
                f"explained by its own: it is {everything[output.row].tolist()} in the batch and "
                f"{alone[0].tolist()} without the others"
            )
    return found


def _own_graph(data: Data, task: ModelTask, row: int) -> Output:
    """An output on its own graph; on all of them where edges or pairs join nodes of several."""
    column = _edge_between_graphs(data)
    if task.task_level == "graph":
        if column is not None:
            (a, b), batch = data.edge_index[:, column].tolist(), data.batch
            raise ValueError(
                f"edge_index joins node {a} of graph {int(batch[a])} to node {b} of graph "
                f"{int(batch[b])}: an edge between graphs of a batch has no meaning. Give every "
                "graph its own edges, or explain all as one graph, without batch"
            )
        return _separate(data, row, row)
    of_pair = task.task_level == "edge"
    ends = data.edge_label_index[:, row] if of_pair else torch.tensor([row])
    graphs = data.batch[ends.to(data.batch.device)].unique()
    if column is not None or len(graphs) > 1:
        return Output(row, as_one_graph(data), row)
    own = _separate(data, row, int(graphs[0]), row if of_pair else None)
    assert own.nodes is not None
    return own if of_pair else replace(own, index=int(np.searchsorted(own.nodes, row)))


def _separate(data: Data, row: int, number: int, pair: int | None = None) -> Output:
    """An output on its own graph, given by its number in the batch vector.

    With ``pair``, a column of ``edge_label_index``, which the graph gets. Of a field with a row for
    every graph it has its own row.
    """
    batch = data.batch.cpu().numpy()
    nodes = np.flatnonzero(batch == number)
    edges = np.flatnonzero(batch[data.edge_index[0].cpu().numpy()] == number)
    count, roles = graphs_in(data), roles_of(as_one_graph(data))
    for key, role in roles.items():
        if role in ("ids", "edge_ids"):
            raise ValueError(
                f"{key!r} names nodes or edges of {count} graphs, which cannot be told apart: "
                "explain one graph at a time"
            )
    made = cut(data, roles, nodes, edges)
    for key, role in roles.items():
        value = made[key]
        if role == "rest" and isinstance(value, Tensor) and value.dim() and len(value) == count:
            made[key] = value[number : number + 1]
    if pair is not None:
        ends = np.searchsorted(nodes, data.edge_label_index[:, [pair]].cpu().numpy())
        made.edge_label_index = torch.from_numpy(ends).to(data.edge_label_index.device)
    return Output(row, made, None if pair is None else 0, nodes, edges)


def as_one_graph(data: Data) -> Data:
    """The same nodes and edges without the fields of a batch."""
    of_batch = ("batch", "batch_size", "ptr")
    kept = {key: value for key, value in data if key not in of_batch}
    return Data(**{"num_nodes": int(data.num_nodes or 0), **kept})


def _edge_between_graphs(data: Data) -> int | None:
    """A column of ``edge_index`` that joins nodes of different graphs, if there is one."""
    of_graph = data.batch[data.edge_index.to(data.batch.device)]
    columns = (of_graph[0] != of_graph[1]).nonzero()
    return int(columns[0]) if len(columns) else None


def summed(
    attributions: Sequence[Attribution], outputs: Sequence[Output], data: Data
) -> Attribution:
    """The sum of the scores of several outputs, as scores of the players of all graphs."""
    if any(one.scores is None for one in attributions):
        raise ValueError(
            f"a method that finds sets of nodes explains one output at a time (got "
            f"{len(outputs)}): there is no sum of sets"
        )
    players, places = _together(attributions, outputs, data)
    first = attributions[0]
    scores = np.zeros((len(players), *np.asarray(first.scores).shape[1:]))
    variance: Any = np.zeros_like(scores)
    for one, at in zip(attributions, places, strict=True):
        scores[at] += np.asarray(one.scores)
        # the draws of different outputs are independent
        errors = np.nan if one.std_errors is None else one.std_errors
        variance[at] += np.square(errors)
    exact = [one.exact for one in attributions]
    counts = [one.evaluations for one in attributions]
    return Attribution(
        scores,
        np.sqrt(variance),
        players=players,
        target=[target for one in attributions for target in np.asarray(one.target).flat],
        edge_mask=_edge_mask(attributions, outputs, data),
        exact=None if None in exact else all(exact),
        estimator=_common(one.estimator for one in attributions),
        evaluations=None if None in counts else sum(count or 0 for count in counts),
        details=_details(attributions),
    )


def _together(
    attributions: Sequence[Attribution], outputs: Sequence[Output], data: Data
) -> tuple[PlayerSet, list[NDArray[np.int64]]]:
    """All players of several outputs, and the places among them of those of each output."""
    spec = next((p.spec for one in attributions if isinstance(p := one.players, PlayerSet)), None)
    if isinstance(spec, Groups) and any(output.nodes is not None for output in outputs):
        raise ValueError(
            "players that are groups of nodes belong to one graph: explain the graphs of a batch "
            "one at a time, or with explain_many"
        )
    everyone = player_set(data, Nodes() if spec is None else spec, one_way=True)
    units = [_units(one.players, output) for one, output in zip(attributions, outputs, strict=True)]
    playing = np.zeros(len(everyone.player_of), dtype=np.bool_)
    for own in units:
        playing[own] = True
    players = everyone.restricted(playing)
    return players, [players.player_of[own] for own in units]


def _units(players: Any, output: Output) -> NDArray[np.int64]:
    """A node, edge or feature of every player, in the numbers of all graphs."""
    if not isinstance(players, PlayerSet):
        count = int(output.data.num_nodes or 0)
        nodes = np.arange(count) if players is None else np.asarray(players, dtype=np.int64)
        return nodes if output.nodes is None else output.nodes[nodes]
    owned = np.flatnonzero(players.player_of >= 0)
    _, first = np.unique(players.player_of[owned], return_index=True)
    of_graph = {"nodes": output.nodes, "groups": output.nodes, "edges": output.edges}
    numbers = of_graph.get(players.kind)
    return owned[first] if numbers is None else numbers[owned[first]]


def _edge_mask(
    attributions: Sequence[Attribution], outputs: Sequence[Output], data: Data
) -> Tensor | None:
    """The sum of the masks of methods that score edges themselves."""
    if attributions[0].edge_mask is None:
        return None
    mask = torch.zeros(int(data.edge_index.shape[1]))
    for one, output in zip(attributions, outputs, strict=True):
        assert one.edge_mask is not None
        own = slice(None) if output.edges is None else torch.from_numpy(output.edges)
        mask[own] += one.edge_mask.detach().float().cpu()
    return mask


def _common(values: Any) -> Any:
    """What all have in common, or nothing."""
    first, *others = values
    return first if all(other == first for other in others) else None


def _details(attributions: Sequence[Attribution]) -> dict[str, Any]:
    """Sums of worths and baselines, and what all outputs have in common."""
    details = [dict(one.details) for one in attributions]
    made: dict[str, Any] = {}
    for key in ("worth", "component_worth"):
        if all(key in one for one in details):
            made[key] = torch.stack([one[key] for one in details]).sum(dim=0)
    if all("baseline" in one for one in details):
        made["baseline"] = np.sum([one["baseline"] for one in details], axis=0).tolist()
    shared = ("payoff", "baseline_source", "value", "two_sided", "converged", "fixed")
    for key in shared:
        if all(key in one for one in details):
            made[key] = _common(one[key] for one in details)
    return made
