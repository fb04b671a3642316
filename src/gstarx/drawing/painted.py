"""Scores and a selection, validated and in words, and scores summed over parts of a graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.drawing.svg import score_color, signed
from gstarx.metrics import above_noise, as_mask, as_scores, largest_gap, ties_at_cut, uncertain
from gstarx.players import as_molecule, groups_of

_NAMED = 5
#: Scores that are all below this share of what could be explained are noise to the reader.
_STANDS_OUT = 0.05
#: Of an output without a scale, such as a regression's: the share that counts as a change.
_LEAST_CHANGE = 0.01
#: Payoffs that are probabilities, or differences of them.
_PROBABILITIES = ("norm_prob", "prob", "contrast")
#: Scores of this share of the largest one are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Scored:
    """Scores to draw, the players that follow from them, and standard errors where known.

    Players are nodes, unless an ``explanation`` says what else they are. ``at_stake`` is what the
    scores could explain, where that is known.
    """

    scores: NDArray[np.float64]
    selected: Any = None
    std_errors: NDArray[np.float64] | None = None
    explanation: Any = None
    at_stake: float | None = None

    def part(self, nodes: NDArray[np.int64]) -> Scored:
        """The same of some nodes only."""
        chosen = as_mask([] if self.selected is None else self.selected, len(self.scores))
        errors = None if self.std_errors is None else self.std_errors[nodes]
        return Scored(self.scores[nodes], chosen[nodes], errors, at_stake=self.at_stake)


@dataclass(frozen=True)
class Painted:
    """Nodes with their scores, colors and outlines.

    Attributes
    ----------
    scores
        A score per node, (n,).
    selected
        Which nodes are outlined, (n,).
    limit
        The score at which colors saturate.
    names
        The name of each node.
    tied
        Nodes with the score at the cut, of which the selection takes some and leaves others, (n,).
    uncertain
        Nodes whose 95% interval includes 0, (n,): they are hatched.
    unmarked
        How many selected nodes are not outlined because their scores are not above noise.
    gap
        How many nodes lie above the largest gap of the scores, if the selection follows them.
    at_stake
        What could be explained, see :func:`at_stake_in`, if that is known.
    noun
        What one of them is.
    explanation
        Where they are not nodes, the explanation that says what else they are.
    """

    scores: NDArray[np.float64]
    selected: NDArray[np.bool_]
    limit: float
    names: tuple[str, ...]
    tied: NDArray[np.bool_]
    uncertain: NDArray[np.bool_]
    unmarked: int = 0
    gap: int | None = None
    at_stake: float | None = None
    noun: str = "node"
    explanation: Any = None

    @classmethod
    def of(
        cls,
        result: Scored,
        limit: float | None,
        names: Sequence[str],
        *,
        by_score: bool = False,
        noun: str = "node",
    ) -> Painted:
        """Validate scores, selection and limit for nodes with these names.

        With ``by_score`` the selection is made of the highest scores: what is not above noise is
        not outlined, and ties at the cut are marked. Otherwise it is the caller's own.
        """
        count = len(names)
        if not count:
            raise ValueError("there is nothing to draw: the graph has no nodes")
        values, std_errors = _without_rounding(as_scores(result.scores, count)), result.std_errors
        mask = as_mask([] if result.selected is None else result.selected, count)
        wanted = int(mask.sum())
        tied, gap = np.zeros(count, dtype=np.bool_), None
        if by_score:
            clear = above_noise(values, std_errors)
            gap = largest_gap(values[clear])
            tied = ties_at_cut(values, mask, std_errors) & clear
            mask = mask & clear
        return cls(
            values,
            mask & ~tied,
            color_limit([values], limit, result.at_stake),
            tuple(map(str, names)),
            tied,
            # bars and shapes of other players are not hatched
            uncertain(values, std_errors if result.explanation is None else None),
            wanted - int(mask.sum()),
            gap,
            result.at_stake,
            noun,
            result.explanation,
        )

    @property
    def marks(self) -> tuple[str, ...]:
        """What the legend must explain besides colors."""
        present = {"selected": self.selected, "tie": self.tied, "uncertain": self.uncertain}
        return tuple(name for name, nodes in present.items() if nodes.any())

    @property
    def largest(self) -> float:
        """The largest absolute score."""
        return float(np.abs(self.scores).max(initial=0.0))

    @property
    def faint(self) -> bool:
        """Whether no node stands out."""
        return is_faint(self.largest, self.at_stake)

    def color(self, node: int) -> str:
        """The color of a node."""
        return score_color(float(self.scores[node]), self.limit)

    def caption(self, node: int) -> str:
        """A node and its score, in words."""
        unsure = ", interval includes 0" if self.uncertain[node] else ""
        return f"{self.names[node]} {signed(float(self.scores[node]))}{unsure}"

    def described(self) -> str:
        """The picture in words: the highest and lowest scores, and what is selected."""
        order = np.argsort(-self.scores, kind="stable")
        high = [self.caption(i) for i in order[:_NAMED] if self.scores[i] > 0]
        low = [self.caption(i) for i in order[::-1][:_NAMED] if self.scores[i] < 0]
        count = len(self.scores)
        sentences = [f"{count} {self.noun}{'s' * (count != 1)}."]
        if high:
            sentences.append(f"Highest scores: {', '.join(high)}.")
        if low:
            sentences.append(f"Lowest scores: {', '.join(low)}.")
        if not high and not low:
            sentences.append("All scores are 0.")
        for what, nodes in (("Selected", self.selected), ("Tied at the cut", self.tied)):
            if nodes.any():
                sentences.append(f"{what}: {self._listed(nodes)}.")
        return " ".join([*sentences, *self.notes()])

    def notes(self) -> list[str]:
        """What the reader must know: whether anything stands out, and what the outlines leave out.

        A cut is suggested where it leaves out at least half of the nodes, and something stands out.
        """
        notes = [faint_words(self.largest, self.at_stake, self.noun)] if self.faint else []
        if self.unmarked:
            notes.append(
                f"{self.unmarked} more selected {self.noun}{'s' * (self.unmarked != 1)} without an "
                "outline: not above noise."
            )
        marked = int(self.selected.sum() + self.tied.sum())
        helpful = self.gap is not None and 0 < 2 * self.gap <= len(self.scores)
        if helpful and self.gap != marked and not self.faint:
            notes.append(
                f"Suggested cut, the largest gap of the scores: {self.gap} "
                f"{self.noun}{'s' * (self.gap != 1)}."
            )
        return notes

    def _listed(self, nodes: NDArray[np.bool_]) -> str:
        names = [self.names[i] for i in np.flatnonzero(nodes)]
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return f"{', '.join(names[:20])}{more}"


def _without_rounding(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores with 0 for those that are rounding errors of the largest one."""
    return np.where(np.abs(scores) > _ROUNDING * np.abs(scores).max(initial=0.0), scores, 0.0)


def at_stake_in(explanation: Any) -> float | None:
    """What the scores of an explanation could explain, at which the colors of faint ones end.

    Of probabilities it is 1, however little of it the players changed. Of a regression, and of
    other payoffs, it is the worth of everybody, or 1 % of the payoff itself if that is more:
    a model that returns 5.0001 instead of 5 has nothing to explain. Methods that do not play a game
    have scores of units of their own, of which nothing is known: ``None``. Stored explanations have
    it as ``at_stake``.
    """
    if explanation.get("at_stake") is not None:
        return float(explanation.get("at_stake"))
    worth, payoff = explanation.get("worth"), explanation.get("payoff")
    if worth is None or payoff is None:
        return None
    if payoff in _PROBABILITIES:
        return 1.0
    fields = [explanation.get(name) for name in ("component_worth", "baseline")]
    parts, baseline = (np.zeros(1) if field is None else np.asarray(field) for field in fields)
    everybody = np.asarray(worth)
    known = [everybody, parts, _LEAST_CHANGE * (everybody + baseline)]
    largest = max(float(np.abs(change).max(initial=0.0)) for change in known)
    return largest if math.isfinite(largest) and largest > 0 else None


def is_faint(largest: float, at_stake: float | None) -> bool:
    """Whether the largest absolute score is so small that nothing stands out.

    >>> is_faint(0.000111, 1.0), is_faint(0.2, 1.0), is_faint(0.000111, None), is_faint(0.0, 1.0)
    (True, False, False, False)
    """
    # without any score there is nothing to be pale, and the description says so
    return at_stake is not None and 0 < largest < _STANDS_OUT * at_stake


def faint_words(largest: float, at_stake: float | None, noun: str) -> str:
    """What is said where nothing stands out.

    >>> faint_words(0.000111, 1.0, "atom")
    'No atom stands out: the largest score, 0.000111, is below 5% of what could be explained, 1.'
    """
    return (
        f"No {noun} stands out: the largest score, {largest:.3g}, is below {_STANDS_OUT:.0%} of "
        f"what could be explained, {at_stake:.3g}."
    )


def color_limit(
    scores: Sequence[NDArray[np.float64]], limit: float | None, at_stake: float | None = None
) -> float:
    """The score at which colors saturate: ``limit``, or the largest absolute one; 1 if all are 0.

    Where all are below 5 % of what is ``at_stake``, colors end there, so that noise stays pale.

    >>> color_limit([np.array([0.5, -2.0]), np.array([1.0])], None)
    2.0
    >>> color_limit([np.array([0.0001, 0.0])], None, at_stake=1.0)
    1.0
    """
    if limit is None:
        largest = max(
            (float(np.abs(of_graph).max(initial=0.0)) for of_graph in scores), default=0.0
        )
        if at_stake is not None and is_faint(largest, at_stake):
            return at_stake
        # a subnormal number cannot be divided by
        return largest if largest > 1e-300 else 1.0
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.number):
        raise TypeError(f"limit must be a number above 0, or None (got {limit!r})")
    if not (math.isfinite(limit) and limit > 0):
        raise ValueError(f"limit must be a number above 0, or None (got {limit!r})")
    return float(limit)


@dataclass(frozen=True)
class GroupScore:
    """One part of a graph, such as a functional group of a molecule.

    Attributes
    ----------
    name
        What the group is called.
    atoms
        Its atoms, or nodes, ascending.
    score
        The sum of their scores.
    """

    name: str
    atoms: tuple[int, ...]
    score: float


def group_scores(
    scores: ArrayLike, data: Data | str, *, by: str | Mapping[str, str] | None = None
) -> list[GroupScore]:
    """Scores of nodes summed over every named part of a graph, highest first.

    Parameters
    ----------
    scores
        A score per node.
    data
        The graph, or a SMILES.
    by
        What the parts are. ``"functional_groups"``: those that RDKit lists; ``"rings"``: systems of
        rings that share atoms, and ``"brics"``: fragments between the bonds that BRICS breaks, both
        named by their SMILES; ``"words"``; ``"node_types"``: elements, or ``labels``, ``node_type``
        or one-hot rows of ``x``. A dictionary maps names to your own SMARTS patterns; a pattern of
        aromatic atoms is only found where the molecule has a SMILES or states its ``bonds``. By
        default the functional groups of a molecule, the words of a sentence, else node types.

    Returns
    -------
    list of GroupScore
        An entry for each occurrence; matches of one pattern over the same atoms are one. Rings,
        fragments, words and types do not overlap. Functional groups and patterns may: an atom
        counts in each, so that the sums need not add up.

    Examples
    --------
    >>> scores = [0.1, 0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 0.4, 0.3]
    >>> for group in group_scores(scores, "c1ccccc1[N+](=O)[O-]"):
    ...     print(group.name, group.atoms, round(group.score, 3))
    nitro (6, 7, 8) 1.2
    >>> [group.name for group in group_scores(scores, "c1ccccc1[N+](=O)[O-]", by="rings")]
    ['c1ccccc1']
    >>> group_scores(scores, "c1ccccc1[N+](=O)[O-]", by={"N-O": "[N+](=O)[O-]"})
    [GroupScore(name='N-O', atoms=(6, 7, 8), score=1.2)]
    """
    groups = list(groups_of(data, by))
    count = as_molecule(data).GetNumAtoms() if isinstance(data, str) else int(data.num_nodes or 0)
    values = as_scores(scores, count)
    summed = [GroupScore(name, atoms, float(values[list(atoms)].sum())) for name, atoms in groups]
    return sorted(summed, key=lambda group: -group.score)
