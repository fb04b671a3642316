"""Drawing a graph by its kind: a molecule, a sentence, or nodes and edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from torch_geometric.data import Data

from gstarx.drawing.atoms import as_molecule, atom_names, is_molecule
from gstarx.drawing.frame import Scene, card, color_bar
from gstarx.drawing.graph import graph_name, graph_scene
from gstarx.drawing.molecule import molecule_name, molecule_scene, unknown_bonds
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import Picture
from gstarx.drawing.sentence import as_pairs, sentence_scene


def draw(
    data: Data | str,
    scores: ArrayLike,
    selected: ArrayLike | None = None,
    *,
    limit: float | None = None,
    title: str | None = None,
    legend: bool = True,
    seed: int = 0,
) -> Picture:
    """Draw a graph as a molecule, a sentence, or nodes and edges, depending on its attributes.

    Parameters
    ----------
    data
        With ``words`` it is drawn as a sentence, with ``smiles`` or ``atoms`` as a molecule, else
        as a graph. A string is a SMILES.
    scores
        A score per node.
    selected
        Nodes to outline: ids, or a boolean mask.
    limit, title, legend
        As for :func:`draw_molecule`.
    seed
        Of the layout of a graph.

    Examples
    --------
    >>> from gstarx.datasets import load
    >>> graph = load("nitro")[0]
    >>> draw(graph, graph.truth).title
    'Molecule C1CCCN1Cc1cccc([N+](=O)[O-])c1'
    """
    subject = Subject.of(data, seed=seed)
    painted = Painted.of(scores, selected, limit, subject.names)
    return card(
        subject.scene(painted),
        title=title,
        alternative=subject.title,
        description=subject.described(painted),
        legend=color_bar(painted.limit, selected=bool(painted.selected.any())) if legend else None,
    )


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
    """

    kind: str
    title: str
    names: tuple[str, ...]
    source: Any
    seed: int = 0
    remark: str = ""

    @classmethod
    def of(cls, data: Data | str, *, seed: int = 0) -> Subject:
        """The subject of a graph or a SMILES."""
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

    def described(self, painted: Painted) -> str:
        """The picture in words."""
        nouns = {"molecule": "atom", "sentence": "word"}
        return painted.described(nouns.get(self.kind, "node")) + self.remark

    def scene(self, painted: Painted, *, width: float | None = None) -> Scene:
        """The drawing without its frame; ``width`` does not apply to molecules."""
        if self.kind == "molecule":
            return molecule_scene(self.source, painted)
        if self.kind == "sentence":
            return sentence_scene(painted, self.source, width=width or 760)
        return graph_scene(painted, self.source, seed=self.seed, width=width or 460)


def _words(data: Data | str) -> list[str]:
    return [str(word) for word in getattr(data, "words", None) or ()]
