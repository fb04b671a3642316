"""Drawings of molecules, sentences and graphs with scores, and their captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal import rounding
from gstarx.drawing.geometry import Geometry, as_pairs
from gstarx.drawing.graph import graph_geometry, graph_name
from gstarx.drawing.molecule import molecule_geometry, molecule_name, unknown_bonds
from gstarx.drawing.painted import Painted, Scored, at_stake_in
from gstarx.drawing.picture import Picture, Scene, card, color_bar
from gstarx.drawing.scenes import interactions_scene, nodes_scene, players_scene
from gstarx.drawing.sentence import sentence_geometry
from gstarx.drawing.svg import signed
from gstarx.gnn import HeteroGraph, check_task, class_scores, hetero_of, view_of
from gstarx.metrics import as_scores, select_nodes
from gstarx.players import as_molecule, atom_names, is_molecule, named_edges, named_groups


def draw(
    data: Data | HeteroData | str,
    scores: ArrayLike | Any,
    selected: ArrayLike | None = None,
    *,
    std_errors: ArrayLike | None = None,
    sparsity: float = 0.7,
    limit: float | None = None,
    title: str | None = None,
    caption: str | None = None,
    names: Sequence[str] = (),
    legend: bool = True,
    labels: str | Sequence[str] | None = None,
    seed: int = 0,
    width: float | None = None,
) -> Picture:
    """Draw a graph as a molecule, a sentence, or nodes and edges, depending on its attributes.

    White is 0, orange supports the explained class, blue opposes it. Words stand in reading order,
    with dependencies as arcs above them; long sentences wrap. Edges between selected nodes are
    heavy. Directions are not drawn.

    Parameters
    ----------
    data
        With ``words`` it is drawn as a sentence, with ``smiles`` or ``atoms`` as a molecule, else
        as a graph, a heterogeneous one with a shape for every type. A string is a SMILES. A graph
        with ``atoms``, as MUTAG's, may state its ``bonds``: the order (1, 1.5 for aromatic, 2, 3)
        of each column of ``edge_index``. Otherwise bonds are single except in nitro groups, and no
        hydrogens are drawn.
    scores
        A :class:`gstarx.Explanation` of the graph, or a score per node: an array, a tensor, or a
        PyG explanation's ``node_mask``. An explanation brings its standard errors, its selection at
        ``sparsity``, and the prediction as the caption. Where its players are edges, they are
        tinted by their scores; groups are outlined, each in a color of its own; features are bars.
        Of its selection only what is above noise is outlined, and ties at the cut are dashed.
    selected
        Nodes to outline: ids, or a boolean mask.
    std_errors
        Standard errors of the scores: nodes whose 95% interval includes 0 are hatched.
    sparsity
        The share of nodes that the selection of an explanation leaves out.
    limit
        The absolute score at which colors saturate; by default the largest one. Give pictures the
        same limit to compare them.
    title
        What to print above.
    caption
        What to print below the title, such as the prediction.
    names
        Names of the classes, or of the outputs of a multilabel or regression model.
    legend
        Whether to draw the color bar.
    labels
        Names of the nodes of a graph, which are written on them if they fit; by default their
        numbers. ``"numbers"`` writes its number beside every atom of a molecule.
    seed
        Of the layout of a graph: the same seed gives the same picture.
    width
        Width of a graph, or the largest width of a line of words.

    Examples
    --------
    >>> picture = draw("c1ccccc1[N+](=O)[O-]", [0, 0, 0, 0, 0, 0.2, 0.5, 0.4, 0.4], [6, 7, 8])
    >>> picture.title
    'Molecule c1ccccc1[N+](=O)[O-]'
    >>> ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    >>> draw(ring, [0.5, -0.1, 0.0]).title
    'Graph of 3 nodes and 3 edges'
    """
    if isinstance(data, HeteroData):
        data, scores, selected = _viewed(data, scores, selected)
    nodes = _part_to_draw(data, scores)
    subject = Subject.of(data, seed=seed, nodes=nodes, labels=labels)
    count = len(subject.names) if nodes is None else int(data.num_nodes)  # type: ignore[union-attr]
    result, by_score = scored(scores, count, sparsity), False
    if hasattr(scores, "node_scores"):
        if not len(result.selected) and sparsity < 1:  # of few nodes, one is selected
            explanation: Any = scores
            result = replace(result, selected=explanation.select(size=1))
        by_score = selected is None
        if caption is None:
            caption = caption_of(scores, names=names)
    else:
        result = replace(result, selected=None)
    if selected is not None:
        result = replace(result, selected=selected)
    if std_errors is not None:
        result = replace(result, std_errors=np.asarray(std_errors, dtype=np.float64))
    if nodes is not None:
        result = result.part(nodes)
    painted = subject.painted(result, limit, by_score=by_score)
    return subject.picture(
        painted,
        scene=subject.scene(painted, width=width),
        title=title,
        caption=caption,
        legend=legend,
        regression=explains_value(scores),
    )


def draw_interactions(
    data: Data | str,
    interactions: Mapping[tuple[int, ...], float],
    scores: ArrayLike | None = None,
    *,
    strongest: int = 5,
    title: str | None = None,
    caption: str | None = None,
    legend: bool = True,
    seed: int = 0,
) -> Picture:
    """Draw interactions between nodes as arcs, wider for stronger interactions.

    Parameters
    ----------
    data
        A graph or a SMILES, as for :func:`draw`.
    interactions
        Values of sets of two or more nodes. Orange arcs join nodes that are worth more together
        than apart, and blue arcs nodes that are worth less. A set of three nodes has three arcs.
    scores
        A score per node, its color; by default none has any.
    strongest
        How many interactions to draw, those of the largest absolute value.
    title, caption, legend, seed
        As for :func:`draw`.

    Examples
    --------
    >>> picture = draw_interactions("CC(=O)O", {(1, 2): 0.4, (2, 3): -0.2})
    >>> picture.title
    'Molecule CC(=O)O'
    """
    if strongest < 0:
        raise ValueError(f"strongest must be 0 or more (got {strongest!r})")
    subject = Subject.of(data, seed=seed)
    count = len(subject.names)
    wrong = [
        nodes for nodes in interactions if len(nodes) < 2 or not set(nodes) <= set(range(count))
    ]
    if wrong:
        raise ValueError(
            f"interactions are of two or more nodes in 0..{count - 1} (got {wrong[0]})"
        )
    order = sorted(interactions, key=lambda nodes: -abs(interactions[nodes]))[:strongest]
    values = {nodes: float(interactions[nodes]) for nodes in order if interactions[nodes]}
    given = np.zeros(count) if scores is None else as_scores(scores, count)
    # one scale for nodes and bows, so that the legend holds for both
    limit = max(map(abs, (*values.values(), *given.tolist())), default=0.0) or 1.0
    painted = subject.painted(Scored(given), limit, by_score=False)
    said = {
        nodes: f"{' and '.join(subject.names[node] for node in nodes)} {signed(value)}"
        for nodes, value in values.items()
    }
    return card(
        interactions_scene(subject.geometry(), painted, values, said),
        title=title,
        caption=caption,
        alternative=subject.title,
        description=f"Strongest interactions: {', '.join(said.values()) or 'none'}. "
        + subject.described(painted),
        legend=color_bar(limit) if legend else None,
    )


def geometry(data: Data | str, *, seed: int = 0, width: float | None = None) -> Geometry:
    """The layout of the picture that :func:`gstarx.drawing.draw` makes.

    Parameters
    ----------
    data
        As for :func:`gstarx.drawing.draw`.
    seed
        Of the layout of a graph.
    width
        The largest width of a line of words or a graph. Molecules have their own size.

    Examples
    --------
    >>> found = geometry("c1ccccc1[N+](=O)[O-]")
    >>> found.kind, len(found.nodes), found.nodes[6].name, found.nodes[6].label
    ('molecule', 9, 'N6', 'N')
    """
    subject = Subject.of(data, seed=seed)
    if not subject.names:
        raise ValueError("there is nothing to draw: the graph has no nodes")
    return subject.geometry(width=width)


def explains_value(result: Any) -> bool:
    """Whether a result explains a regression, so that scores raise and lower a value."""
    return hasattr(result, "node_scores") and str(result.get("mode")) == "regression"


def _viewed(data: HeteroData, scores: Any, selected: Any) -> tuple[Any, Any, Any]:
    """A heterogeneous graph as its view, and scores and a selection of it in its numbers."""
    view = view_of(data)
    if isinstance(scores, HeteroData):  # an explanation, of ours or of PyG
        scores = getattr(scores, "view", None) or scores.node_mask_dict
    if isinstance(scores, Mapping):
        scores = np.concatenate([as_scores(scores[name]) for name in data.node_types])
    return view, scores, view.hetero.numbers(selected)


def _part_to_draw(data: Any, scores: Any) -> NDArray[np.int64] | None:
    """Of a heterogeneous graph, the players and the node that was explained; None for all."""
    index = scores.get("index") if hasattr(scores, "node_scores") else None
    if hetero_of(data) is None or index is None:
        return None
    return np.unique(np.append(scores.players.numpy(), int(index)))


def scored(result: Any, count: int, sparsity: float) -> Scored:
    """The scores and selected players of a result; sets of nodes become scores of 1 and 0."""
    if not hasattr(result, "node_scores"):
        plain = as_scores(getattr(result, "node_mask", result), count)
        return Scored(plain, np.sort(select_nodes(plain, sparsity)))
    selected = result.select(sparsity=sparsity)
    std_errors = None if result.std_errors is None else result.std_errors.numpy()
    if std_errors is not None and np.isnan(std_errors).all():
        std_errors = None
    if getattr(result, "player_kind", "nodes") != "nodes":
        scores = as_scores(result.scores, len(result.players))
        return Scored(scores, selected, std_errors, result, at_stake_in(result))
    scores = np.zeros(count)
    if result.node_scores is None:
        scores[selected] = 1.0
        return Scored(scores, selected)
    if std_errors is not None:  # those of nodes that do not play are 0
        scores[result.players.numpy()], std_errors = std_errors, scores
    scores = as_scores(result.node_scores, count)
    return Scored(scores, selected, std_errors, at_stake=at_stake_in(result))


@dataclass(frozen=True)
class Subject:
    """What to draw, independent of scores.

    Attributes
    ----------
    kind
        ``"molecule"``, ``"sentence"`` or ``"graph"``.
    title
        What it is, in words.
    names
        Names of its nodes.
    source
        The RDKit molecule, or pairs of joined nodes.
    seed
        Of a layout.
    numbered
        Whether its number is written beside every atom.
    remark
        A note that is added to its description.
    types, kinds, labels
        Of a heterogeneous graph: its types of nodes, the type of every node drawn, and what is
        written on it.
    """

    kind: str
    title: str
    names: tuple[str, ...]
    source: Any
    seed: int = 0
    numbered: bool = False
    remark: str = ""
    types: tuple[str, ...] = ()
    kinds: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        data: Data | HeteroData | str,
        *,
        seed: int = 0,
        nodes: NDArray[np.int64] | None = None,
        labels: str | Sequence[str] | None = None,
    ) -> Subject:
        """The subject of a graph or a SMILES; of a heterogeneous graph, ``nodes`` are drawn."""
        if isinstance(data, HeteroData):
            data = view_of(data)
        graph, words = hetero_of(data), getattr(data, "words", None)
        if isinstance(words, str):
            raise TypeError("words must be a list of words (got one string)")
        numbered = isinstance(labels, str) and labels == "numbers"
        if graph is not None:
            found = cls._typed(graph, data, seed, nodes)
        elif isinstance(data, str) or (is_molecule(data) and not words):
            molecule = as_molecule(data)
            title, names = f"Molecule {molecule_name(data)}", tuple(atom_names(molecule))
            remark = unknown_bonds(data)
            found = cls("molecule", title, names, molecule, numbered=numbered, remark=remark)
        elif not isinstance(data, Data):
            raise TypeError(f"data must be a PyG Data or a SMILES (got {type(data).__name__})")
        else:
            found = cls._plain(data, [str(word) for word in words or ()], seed)
        return found if labels is None or numbered else found.with_labels(labels)

    @classmethod
    def _plain(cls, data: Data, words: Sequence[str], seed: int) -> Subject:
        """A graph whose nodes are words or numbers."""
        count = int(data.num_nodes or 0)
        pairs = [] if data.edge_index is None else as_pairs(data.edge_index, count)
        if words:
            if len(words) != count:
                raise ValueError(f"words must be one for each of {count} nodes (got {len(words)})")
            return cls("sentence", f"Sentence: {' '.join(words)}", tuple(words), pairs)
        names = tuple(str(node) for node in range(count))
        return cls("graph", graph_name(count, len(pairs)), names, pairs, seed=seed)

    @classmethod
    def _typed(
        cls, graph: HeteroGraph, data: Any, seed: int, nodes: NDArray[np.int64] | None
    ) -> Subject:
        """Nodes of a heterogeneous graph, each with the shape of its type."""
        shown = np.arange(graph.num_nodes) if nodes is None else nodes
        place = np.full(graph.num_nodes, -1)
        place[shown] = np.arange(len(shown))
        ends = place[data.edge_index.cpu().numpy()]
        pairs = as_pairs(torch.from_numpy(ends[:, (ends >= 0).all(axis=0)]), len(shown))
        of_types = [graph.pair(number) for number in shown.tolist()]
        return cls(
            "graph",
            f"Heterogeneous {graph_name(len(shown), len(pairs)).lower()}",
            tuple(graph.name(number) for number in shown.tolist()),
            pairs,
            seed=seed,
            types=graph.node_types,
            kinds=tuple(graph.node_types.index(name) for name, _ in of_types),
            labels=tuple(str(node) for _, node in of_types),
        )

    def with_labels(self, labels: str | Sequence[str]) -> Subject:
        """The same graph with other names of its nodes."""
        if self.kind != "graph" or self.types or isinstance(labels, str):
            raise ValueError(
                "labels are names of the nodes of a graph, or 'numbers' for the atoms of a "
                f"molecule (got {labels!r} for {self.title!r})"
            )
        if len(labels) != len(self.names):
            raise ValueError(
                f"labels must be one for each of {len(self.names)} nodes (got {len(labels)})"
            )
        return replace(self, names=tuple(map(str, labels)))

    @property
    def noun(self) -> str:
        """What a node is."""
        return {"molecule": "atom", "sentence": "word"}.get(self.kind, "node")

    def noun_of(self, explanation: Any) -> str:
        """What a player is: a node, or what an explanation by other players says."""
        if explanation is None:
            return self.noun
        return str(explanation.player_kind).removesuffix("s").replace("_", " ")

    def painted(self, result: Scored, limit: float | None, *, by_score: bool = True) -> Painted:
        """Colors and outlines of a result; by default its selection follows from its scores."""
        explanation, names = result.explanation, self.names
        if explanation is not None:
            names = tuple(player_names(explanation, names))
        noun = self.noun_of(explanation)
        return Painted.of(result, limit, names, by_score=by_score, noun=noun)

    def described(self, painted: Painted) -> str:
        """The picture in words."""
        return painted.described() + self.remark

    def geometry(self, *, width: float | None = None) -> Geometry:
        """The layout; ``width`` does not apply to molecules."""
        if self.kind == "molecule":
            return molecule_geometry(self.source, self.title, numbers=self.numbered)
        if self.kind == "sentence":
            return sentence_geometry(self.names, self.source, self.title, width=width or 760)
        return graph_geometry(
            self.source,
            self.names,
            self.title,
            seed=self.seed,
            width=width or 460,
            types=self.types,
            kinds=self.kinds,
            labels=self.labels,
        )

    def scene(self, painted: Painted, *, width: float | None = None) -> Scene:
        """The drawing without its frame; ``width`` does not apply to molecules."""
        drawn = self.geometry(width=width)
        if painted.explanation is not None:
            return players_scene(painted.explanation, painted, drawn)
        return nodes_scene(drawn, painted)

    def picture(
        self, painted: Painted, *, scene: Scene, legend: bool, regression: bool = False, **more: Any
    ) -> Picture:
        """A drawing on its card, with ``title`` and ``caption``."""
        bar = color_bar(painted.limit, marks=painted.marks, regression=regression)
        return card(
            scene,
            alternative=self.title,
            description=self.described(painted),
            notes=painted.notes(),
            legend=bar if legend else None,
            **more,
        )


def prediction_caption(
    output: Tensor,
    target: int | None = None,
    *,
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    names: Sequence[str] = (),
) -> str:
    """The prediction for one graph in words.

    Parameters
    ----------
    output
        The model's output (1, C) or (C,).
    target
        The class or output that was explained; by default the predicted class, or the first output.
    mode, return_type
        What the model does, as for :func:`gstarx.explain`.
    names
        Names of the classes, or of the outputs of a multilabel or regression model.

    Examples
    --------
    >>> import torch
    >>> prediction_caption(torch.tensor([[0.0, 2.0]]), names=("inactive", "active"))
    'predicted: active, probability 0.881'
    >>> prediction_caption(torch.tensor([[1.25]]), mode="regression", names=("logP",))
    'logP: predicted 1.25'
    """
    row = output.detach().reshape(1, -1)
    mode, return_type = check_task(mode, return_type)
    if mode == "regression" or (mode == "binary_classification" and row.shape[1] > 1):
        column = target or 0
        name = output_name(column, names, row.shape[1])
        value = float(class_scores(row, mode, return_type, "prob")[0, column])
        if mode == "regression":
            return f"{name}: predicted {rounding.output(value)}"
        return f"{name}: predicted {rounding.yes_or_no(value, explained=True)}"
    shares = class_scores(row, mode, return_type, "prob")[0]
    best = int(shares.argmax())

    def named(number: int) -> str:
        share = rounding.probability(float(shares[number]))
        return f"{class_name(number, names)}, probability {share}"

    if target is None or target == best:
        return f"predicted: {named(best)}"
    return f"explained: {named(target)}; predicted: {named(best)}"


def caption_of(explanation: Any, *, names: Sequence[str] = ()) -> str | None:
    """The caption of an explanation; ``None`` if it does not know the model's output."""
    output = explanation.get("prediction")
    if output is None or explanation.get("mode") is None:
        return None
    if explanation.get("index") is not None:
        output = output[int(explanation.index)]
    own_payoff = explanation.get("payoff") == "callable"
    explained = [] if own_payoff else explanation.explained
    predicted = prediction_caption(
        output,
        int(explained[0]) if len(explained) == 1 else None,
        mode=explanation.mode,
        return_type=explanation.return_type,
        names=names,
    )
    fixed = explanation.get("fixed")
    return f"{predicted}; {' and '.join(fixed)} the same in every coalition" if fixed else predicted


def class_name(number: int, names: Sequence[str]) -> str:
    """The name of a class, or its number."""
    return str(names[number]) if 0 <= number < len(names) else f"class {number}"


def output_name(number: int, names: Sequence[str], count: int = 2) -> str:
    """The name of an output of a model with ``count`` of them, or its number."""
    if 0 <= number < len(names):
        return str(names[number])
    return "value" if count == 1 else f"output {number}"


def player_names(explanation: Any, names: Sequence[str]) -> list[str]:
    """What the players of an explanation are called, given the names of the nodes."""
    if explanation.player_edges is None:
        return named_groups(explanation.player_names, explanation.groups, names)
    return named_edges(explanation.player_edges.tolist(), names, symmetric=explanation.symmetric)
