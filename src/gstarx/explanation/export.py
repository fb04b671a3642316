"""Explanations in other forms: dictionaries, files, pandas, networkx, pictures and notebooks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.files import write_atomically
from gstarx._internal.imports import require
from gstarx.explanation import stored
from gstarx.explanation.stored import plain
from gstarx.gnn import hetero_of

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from gstarx.drawing import Picture
    from gstarx.explanation.explanation import Explanation


class Exports:
    """What explanations of homogeneous and of heterogeneous graphs can be turned into."""

    #: Fields of every explanation, ``None`` where a method does not have them.
    _optional = frozenset(
        {"scores", "std_errors", "method", "exact", "estimator", "evaluations", "seconds"}
        | {"explained", "inputs", "fixed", "value", "two_sided", "payoff", "sharing"}
        | {"worth", "component_worth", "baseline", "baseline_source"}
    )

    def __getattr__(self, key: str) -> Any:
        if key in type(self)._optional:
            return self._homogeneous._store.get(key)
        return super().__getattr__(key)  # type: ignore[misc]

    @property
    def _homogeneous(self) -> Any:
        """The explanation, or that of the homogeneous view of the graph."""
        return self

    def to_dict(self, *, all_outputs: bool = True) -> dict[str, Any]:
        """Everything but the graph, ready for JSON, as :func:`gstarx.schema` describes it.

        Numbers that are not known are ``None``. Without ``all_outputs``, what the model says of
        nodes that were not explained is left out, as for many nodes of one large graph. Nodes of a
        heterogeneous graph are pairs of a type and a number.
        """
        return stored.to_dict(self._homogeneous, all_outputs=all_outputs)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """The explanation, without its graph, from the result of :meth:`to_dict`.

        Every number is the same again; ``None`` among numbers becomes ``nan``.
        """
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str], *, all_outputs: bool = True) -> None:
        """Write what :meth:`to_dict` returns to a file, as JSON."""
        content = json.dumps(self.to_dict(all_outputs=all_outputs), allow_nan=False)
        write_atomically(Path(path), content.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The explanation, without its graph, that :meth:`save` wrote to a file."""
        try:
            found, reason = json.loads(Path(path).read_bytes()), ""
        except (ValueError, RecursionError) as error:
            found, reason = None, f" ({error})"
        if not isinstance(found, dict) or "player_kind" not in found:
            raise ValueError(f"{os.fspath(path)} holds no explanation that save() wrote{reason}")
        return cls.from_dict(found)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with a row per player, best first; nodes that have types with these."""
        pandas, explanation = require("pandas", extra="pandas"), self._homogeneous
        if explanation.scores is None:
            members = [(at, int(n)) for at, s in enumerate(explanation.sets) for n in s]
            graph = hetero_of(explanation)
            if graph is not None:
                typed = [(at, *graph.pair(node)) for at, node in members]
                return pandas.DataFrame(typed, columns=["rank", "type", "node"])
            return pandas.DataFrame(members, columns=["rank", "node"])
        columns: dict[str, Any] = _player_columns(explanation)
        scored = (("score", explanation.scores), ("std_error", explanation.std_errors))
        for name, values in scored:
            for at, target in enumerate(explanation.explained):
                label = name if values.dim() == 1 else f"{name}_{target}"
                columns[label] = (values if values.dim() == 1 else values[:, at]).numpy()
        first = next(name for name in columns if name.startswith("score"))
        frame = pandas.DataFrame(columns)
        return frame.sort_values(first, ascending=False, kind="stable", ignore_index=True)

    def to_networkx(self) -> nx.Graph:
        """The graph for networkx, with the scores of nodes and, if there are any, of edges.

        Nodes also have the name of their group, if players are groups. If edges are players whose
        directions differ, it is a directed graph; with parallel edges, one of several edges. Nodes
        of a heterogeneous graph are pairs of a type and a number, and keys of edges the relations.
        """
        networkx, explanation = require("networkx", extra="drawing"), self._homogeneous
        require_graph(explanation)
        typed = hetero_of(explanation)
        directed = explanation.player_edges is not None and not explanation.symmetric
        graph = networkx.DiGraph() if directed else networkx.Graph()
        if typed is not None or columns_of_parallel(explanation) is not None:
            graph = networkx.MultiDiGraph()
        scores, errors = explanation.node_scores, {}
        if explanation.player_kind == "nodes":
            known = plain(explanation.std_errors) or ()
            errors = dict(zip(explanation.players.tolist(), known, strict=False))
        for number in range(int(explanation.num_nodes or 0)):
            node: Any = number if typed is None else typed.pair(number)
            graph.add_node(node, **({} if typed is None else {"type": node[0]}))
            if scores is not None:
                graph.nodes[node].update(score=plain(scores[number]), std_error=errors.get(number))
            if explanation.player_kind == "groups":
                player = int(explanation.unit_players[number])
                if player >= 0:
                    named = {"group": explanation.player_names[player]}
                    graph.nodes[node].update(named, group_score=plain(explanation.scores[player]))
        mask = explanation.get("edge_mask")
        for at, (a, b) in enumerate(explanation.edge_index.t().tolist()):
            scored = {} if mask is None else {"score": plain(mask[at])}
            if typed is None:
                graph.add_edge(a, b, **scored)
            else:
                relation = typed.edge_types[int(typed.relation_of[at])]
                graph.add_edge(typed.pair(a), typed.pair(b), key=relation[1], **scored)
        return graph

    def draw(
        self,
        *,
        sparsity: float = 0.7,
        title: str | None = None,
        names: Sequence[str] = (),
    ) -> Picture:
        """A picture of the graph with its scores: a molecule, a sentence, or nodes and edges.

        Its caption is the prediction: the class and its probability, or the value. The nodes that
        :meth:`select` keeps at the sparsity are outlined if their scores are above noise; see
        :func:`gstarx.drawing.draw`. In a heterogeneous graph every type has a shape of its own; for
        node tasks, the picture is of the players and the node that was explained.
        """
        from gstarx.drawing import draw

        require_graph(self._homogeneous)
        return draw(
            *(self._homogeneous, self._homogeneous),
            sparsity=sparsity,
            title=title,
            names=names,
        )

    def _repr_svg_(self) -> str | None:
        """The picture for notebooks, if all that it needs is installed."""
        try:
            return self.draw().svg
        except Exception:
            return None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        """The picture for notebooks, and the best players; only these where it cannot be drawn."""
        explanation = self._homogeneous
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
        figure = f"<figure>{self._repr_svg_() or ''}<figcaption>{caption}</figcaption></figure>"
        return f"{figure}<table>{header}{rows}</table>"


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


def _score_of(explanation: Explanation, player: int) -> float | None:
    if explanation.player_kind != "nodes":
        return float(explanation._one_column()[int(player)])
    return None if explanation.node_scores is None else float(explanation.node_scores[int(player)])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.4f}"
