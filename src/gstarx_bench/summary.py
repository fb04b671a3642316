"""Which parts of graphs drive each class over a whole dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx._internal import rounding
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

    @property
    def interval(self) -> str:
        """The interval in words; of a single graph there is none."""
        if self.graphs == 1:
            return "–"
        return f"{rounding.metric(self.low)} to {rounding.metric(self.high)}"

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
    found: dict[tuple[int | None, str, str], list[_Occurrence]] = defaultdict(list)
    for i, (graph, result) in enumerate(zip(listed, results, strict=True)):
        title = title_of(graph, f"graph {i}") if names is None else str(names[i])
        divided: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for name, nodes in groups_of(graph, by):
            divided[name].append(nodes)
        explanation = _explanation(result, graph, target)
        own = TASKS.get(explanation.get("mode") or mode, explanation.get("mode") or mode)
        words = ("raises", "lowers") if own == "regression" else ("for", "against")
        for column, explained, scores in _columns(
            explanation, target, own, mode, class_names, target_names
        ):
            for name, occurrences in divided.items():
                sums = [float(scores[list(nodes)].sum()) for nodes in occurrences]
                found[column, explained, name].append(_Occurrence(title, sums, words))
    rows = [
        _row(name, column, explained, occurrences, confidence, seed)
        for (column, explained, name), occurrences in found.items()
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


class _Occurrence(NamedTuple):
    """A graph that contains a group: the scores of the group, and what their signs mean."""

    title: str
    sums: list[float]
    words: tuple[str, str]


def _row(
    name: str,
    target: int | None,
    explained: str,
    found: Sequence[_Occurrence],
    confidence: float,
    seed: int,
) -> SummaryRow:
    scores = np.array([float(np.mean(one.sums)) for one in found])
    interval = paired_bootstrap(
        scores, np.zeros_like(scores), confidence=confidence, resamples=2_000, seed=seed
    )
    sign = "unclear"
    if len(scores) >= MIN_GRAPHS:
        up, down = found[-1].words
        sign = up if interval.low > 0 else down if interval.high < 0 else sign
    strongest = np.argsort(-scores * (-1 if interval.mean < 0 else 1), kind="stable")
    examples = dict.fromkeys(found[i].title for i in strongest)
    return SummaryRow(
        name,
        target,
        explained,
        interval.mean,
        interval.low,
        interval.high,
        len(scores),
        sum(len(one.sums) for one in found),
        sign,
        tuple(examples)[:_EXAMPLES],
    )


def _explanation(result: Explanation | ArrayLike, graph: Data, target: int | None) -> Explanation:
    """An explanation with a score for every node, which a summary needs."""
    if not isinstance(result, Explanation):
        count = int(graph.num_nodes or 0)
        return Explanation.from_scores(as_scores(result, count), num_nodes=count, target=target)
    if result.node_scores is not None:
        return result
    method = result.method or "the explanation"
    if result.scores is None:
        found, instead = "finds sets of nodes", "use an explainer with scores"
    else:
        kind = result.player_kind.replace("_", " ")
        found, instead = f"gives them to {kind} here", "explain nodes instead"
    raise ValueError(f"a summary needs scores of nodes, and {method} {found}: {instead}")


def _columns(
    explanation: Explanation,
    target: int | None,
    task: str,
    mode: str,
    class_names: Sequence[str],
    target_names: Sequence[str],
) -> Iterator[tuple[int | None, str, NDArray[np.float64]]]:
    """By explained class or output, its name and the scores of all nodes."""
    scores = explanation.node_scores.reshape(int(explanation.num_nodes or 0), -1).numpy()
    output = explanation.get("prediction")
    outputs = 1 if output is None else int(output.shape[1])
    # several binary outputs are several labels
    labels = mode == "multilabel" or (task == "binary_classification" and outputs > 1)
    by_output = labels or task == "regression"
    for column, number in enumerate(explanation.explained or [target]):
        if target is not None and number != target:
            continue
        if number is None:
            name = "explained class"
        elif by_output:
            name = output_name(number, target_names, outputs)
        else:
            name = class_name(number, class_names)
        yield number, name, as_scores(scores[:, column], len(scores))
