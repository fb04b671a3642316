"""Figures 1 to 3 and appendix F.2, as numbers and drawings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.drawing import Picture, compare, draw
from gstarx.explainers import create, explain
from gstarx.games import TableGame
from gstarx.gnn import expected_output
from gstarx.graphs import CommunicationGraph
from gstarx.metrics import Judge
from gstarx.values import c_shapley_value, hn_value, myerson_value, shapley_value
from gstarx_bench.datasets.sentences import sentence_graph
from reproduction.grids import Cell, Grid
from reproduction.paper import paper
from reproduction.setups import SETUPS, load_weights

#: The sentence of Figures 1b and 2, which is part of one in SST-2's training file.
SENTENCE = "is still quite good-natured and not a bad way to spend an hour"
#: The molecule of Figure 3, by its position in MUTAG.
MOLECULE = 28
_PATH = CommunicationGraph(3, [(0, 1), (1, 2)])
#: Coalitions that node 0 of the path joins: the empty one, node 1, node 2, both.
_JOINED = ((), (1,), (2,), (1, 2))


@dataclass(frozen=True)
class Figure:
    """A table with pictures."""

    grid: Grid
    pictures: tuple[tuple[str, Picture], ...] = ()


def marginal_weights(value: Callable[..., Any]) -> NDArray[np.float64]:
    """Weights of the marginal contributions of an end of the three-node path in its value.

    The weight of ``m(S) = v(S + 0) - v(S)``, read off games in which a single coalition has worth
    one. On this path a coalition without the node has exactly the opposite weight.
    """
    weights = []
    for joined in _JOINED:
        worths = np.zeros(8)
        worths[1 + sum(2**node for node in joined)] = 1.0
        one = TableGame(3, worths)
        weights.append(float(value(one, _PATH).values[0]))
    return np.array(weights)


def small_weights() -> Figure:
    """Figure 1a and the coefficients of appendix F.2."""
    printed_weights = paper()

    def shapley(game: Any, graph: CommunicationGraph) -> Any:
        return shapley_value(game, graph.num_nodes)

    rows: list[tuple[Cell, ...]] = []
    for label, value, printed in (
        ("HN", hn_value, printed_weights["figure_1a"]["HN"]),
        ("Shapley", shapley, printed_weights["figure_1a"]["Shapley"]),
        ("Myerson", myerson_value, printed_weights["appendix_f2"]["Myerson"]),
        ("C-Shapley, corrected", c_shapley_value, printed_weights["appendix_f2"]["Myerson"]),
    ):
        own = marginal_weights(value)
        rows.append((label, *(f"{a:.4f} ({b:.4f})" for a, b in zip(own, printed, strict=True))))
    header = ("value of node 1", "∅", "{2}", "{3}", "{2, 3}")
    return Figure(Grid("figure_1a", header, tuple(rows)))


def sentence() -> Figure:
    """Figures 1b and 2: the sentence, and the share of "good" in the scores."""
    setup = SETUPS["sst2-gcn"]
    model = load_weights(setup.weights())
    graph = sentence_graph(SENTENCE)
    baseline = expected_output(model, setup.data().split("train"))
    good = list(graph.words).index("good")
    printed_shares = paper()["figure_2"]["good"]
    rows: list[tuple[Cell, ...]] = []
    pictures = []
    for label, value in (("HN", "hn"), ("Myerson", "myerson"), ("Shapley", "shapley")):
        explanation = explain(model, graph, value=value, baseline=baseline, seed=0)
        own = explanation.scores.numpy()
        share = float(own[good] / np.abs(own).sum())
        rank = int((own > own[good]).sum()) + 1
        printed = printed_shares.get(label)
        rows.append((label, share, printed, rank, "exact" if explanation.exact else "estimated"))
        picture = draw(graph, own, title=label)
        pictures.append((f"sentence-{value}", picture))
    header = ("value", 'share of "good"', "paper", "rank among words", "computation")
    return Figure(Grid("figure_2", header, tuple(rows)), tuple(pictures))


def molecule() -> Figure:
    """Figure 3: MUTAG's graph 28, its nitro groups, their oxygens, and selections of explainers."""
    setup = SETUPS["mutag-gcn"]
    model = load_weights(setup.weights())
    dataset = setup.data()
    data = dataset[MOLECULE]
    baseline = expected_output(model, dataset.split("test"))
    atoms = np.array(data.x.argmax(dim=1))
    links = data.edge_index.numpy()
    nitrogens = [
        int(n) for n in np.flatnonzero(atoms == 1) if _oxygens(int(n), links, atoms).size == 2
    ]
    oxygens = np.concatenate([_oxygens(n, links, atoms) for n in nitrogens])
    chosen: dict[str, Any] = {
        "ground truth (NO₂)": np.sort(np.concatenate([np.array(nitrogens), oxygens])),
        "oxygens of NO₂": np.sort(oxygens),
    }
    size = len(oxygens)
    explanations: dict[str, Any] = {}
    for label, name, options in (
        ("GStarX, as published", "gstarx_published", {"baseline": baseline}),
        ("HN", "hn", {"baseline": baseline, "budget": 1_000_000}),
        ("Shapley", "shapley", {"baseline": baseline}),
        ("SubgraphX", "subgraphx", {}),
        ("GNNExplainer", "gnnexplainer", {}),
        ("GraphSVX", "graphsvx", {}),
    ):
        explanation = create(name, dataset="mutag", **options).explain(model, data, seed=0)
        chosen[label] = explanation.select(size=size)
        explanations[label] = explanation
    rows: list[tuple[Cell, ...]] = []
    printed_fidelity = paper()["figure_3"]["inverse_fidelity"]
    judge = Judge(model)
    for label, nodes in chosen.items():
        judged = judge(data, nodes)
        printed = printed_fidelity.get(
            {"ground truth (NO₂)": "ground truth", "oxygens of NO₂": "GStarX"}.get(label, "")
        )
        rows.append(
            (
                label,
                len(nodes),
                judged.harmonic_fidelity,
                judged.fidelity,
                judged.inverse_fidelity,
                printed,
            )
        )
    header = ("selection", "atoms", "H-fidelity", "fidelity", "inverse fidelity", "paper")
    shown = {label: one for label, one in explanations.items() if one.node_scores is not None}
    picture = compare(data, shown, judge=judge, sparsity=1 - size / int(data.num_nodes))
    return Figure(Grid("figure_3", header, tuple(rows)), (("molecule-28", picture),))


FIGURES = (small_weights, sentence, molecule)


def _oxygens(
    nitrogen: int, links: NDArray[np.int64], atoms: NDArray[np.int64]
) -> NDArray[np.int64]:
    near = links[1, links[0] == nitrogen]
    oxygens: NDArray[np.int64] = near[atoms[near] == 2]
    return oxygens
