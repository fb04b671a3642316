"""Drawing a graph by its kind: a molecule, a sentence, or nodes and edges; and its caption."""

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
from gstarx.drawing.graph import NodeTypes, graph_name, graph_scene
from gstarx.drawing.molecule import molecule_name, molecule_scene, unknown_bonds
from gstarx.drawing.painted import Painted, at_stake_in
from gstarx.drawing.picture import Picture, Scene, card, color_bar
from gstarx.drawing.players import painted_players, player_noun, players_scene
from gstarx.drawing.sentence import as_pairs, sentence_scene
from gstarx.gnn import HeteroGraph, check_task, class_scores, hetero_of, view_of
from gstarx.metrics import as_scores, select_nodes
from gstarx.players import as_molecule, atom_names, is_molecule


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
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    legend: bool = True,
    seed: int = 0,
) -> Picture:
    """Draw a graph as a molecule, a sentence, or nodes and edges, depending on its attributes.

    Parameters
    ----------
    data
        With ``words`` it is drawn as a sentence, with ``smiles`` or ``atoms`` as a molecule, else
        as a graph, a heterogeneous one with a shape for every type. A string is a SMILES.
    scores
        A :class:`gstarx.Explanation` of the graph, or a score per node. An explanation brings its
        standard errors, its selection at ``sparsity``, and the prediction as the caption. Where its
        players are edges, they are tinted by their scores; groups are outlined, each in a color of
        its own; features are bars. Of its selection only what is above noise is outlined, and ties
        at the cut are dashed.
    selected
        Nodes to outline: ids, or a boolean mask.
    std_errors, limit, title, caption, legend
        As for :func:`draw_molecule`.
    sparsity
        The share of nodes that the selection of an explanation leaves out.
    class_names, target_names
        Names of classes, or of the outputs of a multilabel or regression model, for the caption.
    seed
        Of the layout of a graph.

    Examples
    --------
    >>> from gstarx.datasets import load
    >>> graph = load("nitro")[0]
    >>> draw(graph, graph.truth).title
    'Molecule C1CCCN1Cc1cccc([N+](=O)[O-])c1'
    """
    if isinstance(data, HeteroData):
        data, scores, selected = _viewed(data, scores, selected)
    nodes = _part_to_draw(data, scores)
    subject = Subject.of(data, seed=seed, nodes=nodes)
    count = len(subject.names) if nodes is None else int(data.num_nodes)  # type: ignore[union-attr]
    result, by_score = scored(scores, count, sparsity), False
    if hasattr(scores, "node_scores"):
        if not len(result.selected) and sparsity < 1:  # of few nodes, one is selected
            explanation: Any = scores
            result = replace(result, selected=explanation.select(size=1))
        by_score = selected is None
        if caption is None:
            caption = caption_of(scores, class_names=class_names, target_names=target_names)
    elif selected is None:
        result = replace(result, selected=np.zeros(0, dtype=np.int64))
    if selected is not None:
        result = replace(result, selected=np.asarray(selected))
    if std_errors is not None:
        result = replace(result, std_errors=np.asarray(std_errors, dtype=np.float64))
    if nodes is not None:
        result = result.part(nodes)
    painted = subject.painted(result, limit, by_score=by_score)
    return card(
        subject.scene(painted, result.explanation),
        title=title,
        caption=caption,
        alternative=subject.title,
        description=subject.described(painted, result.explanation),
        notes=painted.notes(subject.noun_of(result.explanation)),
        legend=color_bar(painted.limit, marks=painted.marks, regression=explains_value(scores))
        if legend
        else None,
    )


def explains_value(result: Any) -> bool:
    """Whether a result explains a regression, so that scores raise and lower a value."""
    return hasattr(result, "node_scores") and str(result.get("mode")) == "regression"


@dataclass(frozen=True)
class Scored:
    """Scores to draw, the players that follow from them, and standard errors where known.

    Players are nodes, unless an ``explanation`` says what else they are. ``at_stake`` is what the
    scores could explain, where that is known.
    """

    scores: NDArray[np.float64]
    selected: NDArray[np.int64]
    std_errors: NDArray[np.float64] | None = None
    explanation: Any = None
    at_stake: float | None = None

    def part(self, nodes: NDArray[np.int64]) -> Scored:
        """The same of some nodes only."""
        chosen = np.zeros(len(self.scores), dtype=np.bool_)
        chosen[self.selected] = True
        errors = None if self.std_errors is None else self.std_errors[nodes]
        selected = np.flatnonzero(chosen[nodes])
        return Scored(self.scores[nodes], selected, errors, at_stake=self.at_stake)


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
    if getattr(result, "player_kind", "nodes") != "nodes":
        scores = as_scores(result.scores, len(result.players))
        return Scored(scores, selected, explanation=result, at_stake=at_stake_in(result))
    if result.node_scores is not None:
        errors = _node_errors(result, count)
        scores = as_scores(result.node_scores, count)
        return Scored(scores, selected, errors, at_stake=at_stake_in(result))
    scores = np.zeros(count)
    scores[selected] = 1.0
    return Scored(scores, selected)


def _node_errors(result: Any, count: int) -> NDArray[np.float64] | None:
    """Standard errors of all nodes: 0 for those that do not play, None if none is known."""
    std_errors = result.std_errors
    if std_errors is None or bool(std_errors.isnan().all()):
        return None
    errors = np.zeros(count)
    errors[result.players.numpy()] = std_errors.numpy()
    return errors


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
    remark
        A note that is added to its description.
    types
        The types of nodes of a heterogeneous graph.
    """

    kind: str
    title: str
    names: tuple[str, ...]
    source: Any
    seed: int = 0
    remark: str = ""
    types: NodeTypes | None = None

    @classmethod
    def of(
        cls,
        data: Data | HeteroData | str,
        *,
        seed: int = 0,
        nodes: NDArray[np.int64] | None = None,
    ) -> Subject:
        """The subject of a graph or a SMILES; of a heterogeneous graph, ``nodes`` are drawn."""
        if isinstance(data, HeteroData):
            data = view_of(data)
        graph = hetero_of(data)
        if graph is not None:
            return cls._typed(graph, data, seed, nodes)
        if isinstance(data, str) or (is_molecule(data) and not _words(data)):
            molecule = as_molecule(data)
            title = f"Molecule {molecule_name(data)}"
            remark = unknown_bonds(data)
            return cls("molecule", title, tuple(atom_names(molecule)), molecule, remark=remark)
        if not isinstance(data, Data):
            raise TypeError(f"data must be a PyG Data or a SMILES (got {type(data).__name__})")
        count = int(data.num_nodes or 0)
        pairs = [] if data.edge_index is None else as_pairs(data.edge_index, count)
        words = _words(data)
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
        ends = ends[:, (ends >= 0).all(axis=0)]
        pairs = as_pairs(torch.from_numpy(ends), len(shown))
        of_types = [graph.pair(number) for number in shown.tolist()]
        kinds = np.array([graph.node_types.index(name) for name, _ in of_types])
        types = NodeTypes(graph.node_types, kinds, tuple(str(node) for _, node in of_types))
        names = tuple(graph.name(number) for number in shown.tolist())
        title = f"Heterogeneous {graph_name(len(shown), len(pairs)).lower()}"
        return cls("graph", title, names, pairs, seed=seed, types=types)

    @property
    def noun(self) -> str:
        """What a node is."""
        return {"molecule": "atom", "sentence": "word"}.get(self.kind, "node")

    def noun_of(self, explanation: Any) -> str:
        """What a player is: a node, or what an explanation by other players says."""
        return self.noun if explanation is None else player_noun(explanation)

    def painted(self, result: Scored, limit: float | None, *, by_score: bool = True) -> Painted:
        """Colors and outlines of a result; by default its selection follows from its scores."""
        if result.explanation is not None:
            return painted_players(
                result.explanation,
                self.names,
                result.selected,
                limit,
                by_score=by_score,
                at_stake=result.at_stake,
            )
        return Painted.of(
            result.scores,
            result.selected,
            limit,
            self.names,
            std_errors=result.std_errors,
            by_score=by_score,
            at_stake=result.at_stake,
        )

    def described(self, painted: Painted, explanation: Any = None) -> str:
        """The picture in words."""
        return painted.described(self.noun_of(explanation)) + self.remark

    def scene(
        self, painted: Painted, explanation: Any = None, *, width: float | None = None
    ) -> Scene:
        """The drawing without its frame; ``width`` does not apply to molecules.

        ``explanation`` is given where its players are not nodes.
        """
        if explanation is not None:
            return players_scene(
                explanation,
                painted,
                self.kind,
                self.source,
                self.names,
                seed=self.seed,
                width=width,
            )
        if self.kind == "molecule":
            return molecule_scene(self.source, painted)
        if self.kind == "sentence":
            return sentence_scene(painted, self.source, width=width or 760)
        return graph_scene(
            painted, self.source, seed=self.seed, width=width or 460, types=self.types
        )


def _words(data: Data | str) -> list[str]:
    return [str(word) for word in getattr(data, "words", None) or ()]


def prediction_caption(
    output: Tensor,
    target: int | None = None,
    *,
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
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
    class_names, target_names
        Names of the classes, or of the outputs of a multilabel or regression model.

    Examples
    --------
    >>> import torch
    >>> prediction_caption(torch.tensor([[0.0, 2.0]]), class_names=("inactive", "active"))
    'predicted: active, probability 0.881'
    >>> prediction_caption(torch.tensor([[1.25]]), mode="regression", target_names=("logP",))
    'logP: predicted 1.25'
    """
    row = output.detach().reshape(1, -1)
    mode, return_type = check_task(mode, return_type)
    if mode == "regression" or (mode == "binary_classification" and row.shape[1] > 1):
        column = target or 0
        name = output_name(column, target_names, row.shape[1])
        value = float(class_scores(row, mode, return_type, "prob")[0, column])
        if mode == "regression":
            return f"{name}: predicted {rounding.output(value)}"
        return f"{name}: predicted {rounding.yes_or_no(value, explained=True)}"
    shares = class_scores(row, mode, return_type, "prob")[0]
    best = int(shares.argmax())

    def named(number: int) -> str:
        share = rounding.probability(float(shares[number]))
        return f"{class_name(number, class_names)}, probability {share}"

    if target is None or target == best:
        return f"predicted: {named(best)}"
    return f"explained: {named(target)}; predicted: {named(best)}"


def caption_of(
    explanation: Any, *, class_names: Sequence[str] = (), target_names: Sequence[str] = ()
) -> str | None:
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
        class_names=class_names,
        target_names=target_names,
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
