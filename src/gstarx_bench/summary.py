"""Which parts of graphs drive each class over a whole dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.datasets import title_of
from gstarx.drawing import class_name, output_name, signed, summary_chart
from gstarx.explanation import Explanation
from gstarx.metrics import as_scores, paired_bootstrap
from gstarx.players import groups_of
from gstarx.registry import TASKS

#: Fewer graphs than this cannot show a sign: all of six fair coins agree with a probability of 3%.
MIN_GRAPHS = 6
_EXAMPLES = 3

__all__ = ["SummaryRow", "summarize"]


@dataclass(frozen=True)
class SummaryRow:
    """One group over all explanations of one class, or of one output.

    Attributes
    ----------
    name
        The functional group, ring system, fragment, word or node type.
    target
        The class or output that was explained; ``None`` if the explanations do not say.
    explained
        Its name.
    mean
        The score of the group: the sum over its atoms, averaged over its occurrences in a graph,
        and then over the graphs that contain it.
    low, high
        The 95% interval of the mean, from resampled graphs. Of a single graph it is the mean.
    graphs, occurrences
        How many graphs contain it, and how often they do in all.
    sign
        ``"for"`` or ``"against"`` the class that was explained, or of a regression, whether the
        group ``"raises"`` or ``"lowers"`` the value; ``"unclear"`` if the interval includes 0, or
        fewer than six graphs contain the group.
    examples
        Names of graphs that contain it, those with the strongest scores of its sign first.
    """

    name: str
    target: int | None
    explained: str
    mean: float
    low: float
    high: float
    graphs: int
    occurrences: int
    sign: str
    examples: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON and tables."""
        return {**asdict(self), "examples": list(self.examples)}


class Summary(list[SummaryRow]):
    """The rows of :func:`summarize`, which notebooks show as a chart."""

    def _repr_svg_(self) -> str:
        return summary_chart(self).svg

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(row.explained)}</td><td>{escape(row.name)}</td>"
            f"<td>{signed(row.mean)}</td><td>{signed(row.low)} to {signed(row.high)}</td>"
            f"<td>{row.graphs}</td><td>{row.sign}</td></tr>"
            for row in self
        )
        names = ("explained", "group", "mean", "95% interval", "graphs", "sign")
        header = "".join(f"<th>{name}</th>" for name in names)
        chart = self._repr_svg_() if self else ""
        return f"<figure>{chart}</figure><table><tr>{header}</tr>{rows}</table>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(list(self))}


def summarize(
    graphs: Iterable[Data],
    explanations: Iterable[Explanation | ArrayLike],
    *,
    by: str | Mapping[str, str] | None = None,
    target: int | None = None,
    mode: str = "multiclass_classification",
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Summary:
    """Which functional groups, rings, fragments, words or node types drive each class.

    The score of a group is the sum of the scores of its atoms. Explanations of different classes
    are kept apart: what supports one class counts against another.

    Parameters
    ----------
    graphs
        The graphs, molecules or other.
    explanations
        An explanation of every graph, in order, or just its scores, whose class is unknown.
    by
        What graphs are divided into, as for :func:`gstarx.drawing.group_scores`:
        ``"functional_groups"``, ``"rings"``, ``"brics"``, ``"words"``, ``"node_types"``, or names
        with SMARTS. By default what suits the first graph.
    target
        Only explanations of this class or output.
    mode
        What the model does: with several binary outputs, or for a regression, targets are outputs
        with ``target_names``, else classes with ``class_names``. The mode of an explanation
        that has one takes precedence.
    class_names, target_names
        Names of classes or outputs.
    names
        Names of the graphs, for the examples; by default their own.
    confidence
        Of the intervals.
    seed
        Of the resampling.

    Returns
    -------
    list of SummaryRow
        By explained class; within a class, groups that support it first, highest mean first, then
        those that are unclear, then those that count against it.

    Examples
    --------
    >>> graphs = [Data(smiles="CO", num_nodes=2), Data(smiles="CCO", num_nodes=3)]
    >>> for row in summarize(graphs, [[0.1, 0.4], [0.0, 0.1, 0.6]], by="node_types"):
    ...     print(row.name, round(row.mean, 3), row.graphs, row.sign)
    O 0.5 2 unclear
    C 0.075 2 unclear
    """
    listed, results = list(graphs), list(explanations)
    if len(listed) != len(results):
        raise ValueError(
            f"there must be one explanation for each graph (got {len(results)} for {len(listed)})"
        )
    if names is not None and len(names) != len(listed):
        raise ValueError(f"names must have {len(listed)} entries, one per graph (got {len(names)})")
    groups: dict[tuple[int | None, str, str], _Group] = defaultdict(_Group)
    for i, (graph, result) in enumerate(zip(listed, results, strict=True)):
        title = title_of(graph, f"graph {i}") if names is None else str(names[i])
        divided: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for name, nodes in groups_of(graph, by):
            divided[name].append(nodes)
        words = _words(result, mode)
        for column, explained, scores in _columns(
            result, graph, target, mode, class_names, target_names
        ):
            for name, occurrences in divided.items():
                sums = [float(scores[list(nodes)].sum()) for nodes in occurrences]
                groups[column, explained, name].add(title, sums, words)
    rows = [
        group.row(name, column, explained, confidence, seed)
        for (column, explained, name), group in groups.items()
    ]
    order = {"for": 0, "raises": 0, "unclear": 1, "against": 2, "lowers": 2}
    return Summary(
        sorted(
            rows,
            key=lambda row: (
                -1 if row.target is None else row.target,
                row.explained,
                order[row.sign],
                -row.mean,
                row.name,
            ),
        )
    )


class _Group:
    """The graphs that contain a group, and its score in each."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.scores: list[float] = []
        self.occurrences = 0
        self.words = ("for", "against")

    def add(self, title: str, sums: Sequence[float], words: tuple[str, str]) -> None:
        self.titles.append(title)
        self.words = words
        self.scores.append(float(np.mean(sums)))
        self.occurrences += len(sums)

    def row(
        self, name: str, target: int | None, explained: str, confidence: float, seed: int
    ) -> SummaryRow:
        scores = np.array(self.scores)
        interval = paired_bootstrap(
            scores, np.zeros_like(scores), confidence=confidence, resamples=2_000, seed=seed
        )
        sign = "unclear"
        if len(scores) >= MIN_GRAPHS:
            up, down = self.words
            sign = up if interval.low > 0 else down if interval.high < 0 else sign
        strongest = np.argsort(-scores * (-1 if interval.mean < 0 else 1), kind="stable")
        examples = dict.fromkeys(self.titles[i] for i in strongest)
        return SummaryRow(
            name,
            target,
            explained,
            interval.mean,
            interval.low,
            interval.high,
            len(scores),
            self.occurrences,
            sign,
            tuple(examples)[:_EXAMPLES],
        )


def _require_node_scores(explanation: Explanation) -> None:
    """Raise unless an explanation has a score for every node, which a summary needs."""
    if explanation.node_scores is not None:
        return
    method = explanation.method or "the explanation"
    if explanation.scores is None:
        found, instead = "finds sets of nodes", "use an explainer with scores"
    else:
        kind = explanation.player_kind.replace("_", " ")
        found, instead = f"gives them to {kind} here", "explain nodes instead"
    raise ValueError(f"a summary needs scores of nodes, and {method} {found}: {instead}")


def _task(result: Explanation | ArrayLike, mode: str) -> str:
    """The mode by PyG's name: that of an explanation which has one, else the given one."""
    own = result.get("mode") if isinstance(result, Explanation) else None
    return TASKS.get(own or mode, own or mode)


def _words(result: Explanation | ArrayLike, mode: str) -> tuple[str, str]:
    """What positive and negative scores mean."""
    return ("raises", "lowers") if _task(result, mode) == "regression" else ("for", "against")


def _columns(
    result: Explanation | ArrayLike,
    graph: Data,
    target: int | None,
    mode: str,
    class_names: Sequence[str],
    target_names: Sequence[str],
) -> Iterator[tuple[int | None, str, NDArray[np.float64]]]:
    """By explained class or output, its name and the scores of all nodes."""
    count = int(graph.num_nodes or 0)
    if not isinstance(result, Explanation):
        name = "explained class" if target is None else class_name(target, class_names)
        yield target, name, as_scores(result, count)
        return
    _require_node_scores(result)
    scores = result.node_scores.reshape(count, -1).numpy()
    output = result.get("prediction")
    outputs = 1 if output is None else int(output.shape[1])
    task = _task(result, mode)
    # several binary outputs are several labels
    labels = mode == "multilabel" or (task == "binary_classification" and outputs > 1)
    by_output = labels or task == "regression"
    explained = result.explained or [target]
    for column, output_index in enumerate(explained):
        if target is not None and output_index != target:
            continue
        if output_index is None:
            name = "explained class"
        elif by_output:
            name = output_name(output_index, target_names, outputs)
        else:
            name = class_name(output_index, class_names)
        yield output_index, name, as_scores(scores[:, column], count)
