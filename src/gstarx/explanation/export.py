"""Explanations in other forms: plain values, pandas, networkx, and a page for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.optional import require
from gstarx.explanation.stored import plain
from gstarx.gnn import HeteroGraph, hetero_of

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from gstarx.explanation.explanation import Explanation


def to_frame(explanation: Explanation) -> pd.DataFrame:
    """A pandas table with a row per player, best first."""
    pandas = require("pandas", extra="pandas")
    if explanation.scores is None:
        members = [(at, int(n)) for at, s in enumerate(explanation.sets) for n in s]
        graph = hetero_of(explanation)
        if graph is not None:
            typed = [(at, *graph.pair(node)) for at, node in members]
            return pandas.DataFrame(typed, columns=["rank", "type", "node"])
        return pandas.DataFrame(members, columns=["rank", "node"])
    columns: dict[str, Any] = _player_columns(explanation)
    for name, values in (("score", explanation.scores), ("std_error", explanation.std_errors)):
        for at, target in enumerate(explanation.explained):
            label = name if values.dim() == 1 else f"{name}_{target}"
            columns[label] = (values if values.dim() == 1 else values[:, at]).numpy()
    first = next(name for name in columns if name.startswith("score"))
    frame = pandas.DataFrame(columns)
    return frame.sort_values(first, ascending=False, kind="stable", ignore_index=True)


def _player_columns(explanation: Explanation) -> dict[str, Any]:
    """What the players are, as columns of a table."""
    if explanation.player_edges is not None:
        ends, columns = explanation.player_edges.numpy(), columns_of_parallel(explanation)
        apart = {} if columns is None else {"column": columns}
        return {"source": ends[:, 0], "target": ends[:, 1], **apart}
    if explanation.player_kind == "groups":
        return {
            "group": list(explanation.player_names),
            "nodes": [list(g) for g in explanation.groups],
        }
    if explanation.player_kind.endswith("features"):
        return {"feature": list(explanation.player_names)}
    graph = hetero_of(explanation)
    if graph is not None:
        pairs = [graph.pair(number) for number in explanation.players.tolist()]
        return {"type": [name for name, _ in pairs], "node": [node for _, node in pairs]}
    return {"node": explanation.players.numpy()}


def columns_of_parallel(explanation: Explanation) -> NDArray[np.int64] | None:
    """The column of ``edge_index`` of every player, if some players have the same two ends.

    ``None`` if all of them differ, or if the graph is not known.
    """
    ends = explanation.player_edges
    if ends is None or len(ends.unique(dim=0)) == len(ends):
        return None
    owner = explanation.unit_players.numpy()
    columns = np.full(len(ends), -1)
    columns[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
    return columns if len(owner) else None


def require_graph(explanation: Explanation) -> None:
    """Raise if an explanation came from a file or a dictionary, which do not hold its graph."""
    if explanation.edge_index is None:
        raise ValueError(
            "the explanation has no graph: files and dictionaries hold everything else. Give it "
            "its graph back with explanation.update(data)"
        )


def to_networkx(explanation: Explanation) -> nx.Graph:
    """The graph for networkx, with the scores of nodes and, if there are any, of edges."""
    networkx = require("networkx", extra="drawing")
    typed = hetero_of(explanation)
    if typed is not None:
        return _typed_networkx(networkx, explanation, typed)
    require_graph(explanation)
    directed = explanation.player_edges is not None and not explanation.symmetric
    graph = networkx.DiGraph() if directed else networkx.Graph()
    if columns_of_parallel(explanation) is not None:
        graph = networkx.MultiDiGraph()
    scores, errors = explanation.node_scores, {}
    if explanation.player_kind == "nodes":
        errors = dict(
            zip(explanation.players.tolist(), plain(explanation.std_errors) or (), strict=False)
        )
    for node in range(int(explanation.num_nodes or 0)):
        graph.add_node(node)
        if scores is not None:
            graph.nodes[node].update(score=plain(scores[node]), std_error=errors.get(node))
        if (
            explanation.player_kind == "groups"
            and (player := int(explanation.unit_players[node])) >= 0
        ):
            named = {"group": explanation.player_names[player]}
            graph.nodes[node].update(named, group_score=plain(explanation.scores[player]))
    mask = explanation.get("edge_mask")
    for at, (a, b) in enumerate(explanation.edge_index.t().tolist()):
        graph.add_edge(a, b, **({} if mask is None else {"score": plain(mask[at])}))
    return graph


def _typed_networkx(networkx: Any, explanation: Explanation, typed: HeteroGraph) -> Any:
    """A graph whose nodes are pairs of a type and a number, and whose keys are relations."""
    graph = networkx.MultiDiGraph()
    scores, mask = explanation.node_scores, explanation.get("edge_mask")
    errors = dict(
        zip(explanation.players.tolist(), plain(explanation.std_errors) or (), strict=False)
    )
    for number in range(typed.num_nodes):
        node = typed.pair(number)
        graph.add_node(node, type=node[0])
        if scores is not None:
            graph.nodes[node].update(score=plain(scores[number]), std_error=errors.get(number))
    for at, (a, b) in enumerate(explanation.edge_index.t().tolist()):
        scored = {} if mask is None else {"score": plain(mask[at])}
        relation = typed.edge_types[int(typed.relation_of[at])]
        graph.add_edge(typed.pair(a), typed.pair(b), key=relation[1], **scored)
    return graph


def to_html(explanation: Explanation, picture: str) -> str:
    """A picture as SVG, and a table of the best players."""
    errors = plain(explanation.std_errors)
    rows = "".join(
        f"<tr><td>{escape(explanation.name_of(player))}</td>"
        f"<td>{_number(_score_of(explanation, player))}</td></tr>"
        for player in explanation.top(5)
    )
    how = {True: "exact", False: "estimated"}.get(explanation.exact, "")
    facts = [explanation.method, how, f"target {explanation.explained}"]
    if errors is not None and explanation.exact is False and explanation.scores.dim() == 1:
        finite = [error for error in errors if error is not None]
        facts.append(f"largest standard error {max(finite, default=math.nan):.2g}")
    if explanation.get("fixed"):
        facts.append(f"{' and '.join(explanation.fixed)} the same in every coalition")
    caption = escape(", ".join(str(part) for part in facts if part))
    what = explanation.player_kind.removesuffix("s").replace("_", " ")
    header = f"<tr><th>{what}</th><th>score</th></tr>"
    figure = f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
    return f"{figure}<table>{header}{rows}</table>"


def _score_of(explanation: Explanation, player: int) -> float | None:
    if explanation.player_kind != "nodes":
        return float(explanation._one_column()[int(player)])
    return None if explanation.node_scores is None else float(explanation.node_scores[int(player)])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.4f}"
