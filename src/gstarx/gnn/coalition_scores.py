"""Payoffs of coalitions: evaluated once each, in batches or by shared embeddings, and cached."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gstarx._internal.progress import GrowingBar
from gstarx.gnn.batching import coalition_sizes
from gstarx.gnn.evaluator import Ends, Evaluator
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.model_state import untouched
from gstarx.gnn.options import ShareLike
from gstarx.gnn.payoff import Payoff
from gstarx.gnn.self_check import (
    BatchMixing,
    SelfCheck,
    refuse_random,
    require_apart,
    say_one_by_one,
    size_of,
    smallest_and_largest,
)
from gstarx.gnn.sharing import SharedPasses
from gstarx.gnn.watched_edges import NotShareable
from gstarx.graphs import Masks, compiled, same_mask, sharing_order, slot_of, unpack, words_for
from gstarx.players import PlayerSet

log = logging.getLogger("gstarx")
#: Coalitions of so many edges at most are put in an order in which they share more.
_MOST_ORDERED = 64
#: Finds out the output for the whole graph and the payoff in force, once they are needed.
Settle = Callable[[], tuple[Tensor, Payoff]]
_FIRST_ROOM = 1024


class CoalitionScores:
    """Payoffs of the coalitions of one game before the baseline.

    Attributes
    ----------
    cache
        The payoffs of all coalitions that were evaluated.
    shared
        Evaluates coalitions by embeddings that they have in common, where that works.
    check
        What the self-check compared and found.
    bar
        The progress bar.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        players: PlayerSet,
        *,
        fallback: float | None,
        check: bool,
        share: ShareLike,
    ) -> None:
        self._evaluator, self._players, self._fallback = evaluator, players, fallback
        self._n = len(players)
        self.cache = WorthCache(words_for(self._n))
        self.check = SelfCheck(enabled=check)
        self.shared = SharedPasses(evaluator, share, self.check)
        self._ends = Ends(evaluator)
        self.bar = GrowingBar(False, "coalitions", " coalitions")
        #: Batches of several coalitions that went through the model, and whether scores of any
        #: of them have been given out.
        self._batches, self._answered = 0, False
        self._fallbacks = 0
        #: The mean payoff of single players, once it is known.
        self.singleton_baseline: tuple[float, ...] | None = None
        self._explained: tuple[Tensor, Payoff] | None = None
        if not evaluator.batched:
            self.check.one_by_one = "the model does not take batch, or normalizes by the batch"
            log.info("the model does not keep coalitions apart: they are evaluated one by one")

    def of(self, masks: Masks, settle: Settle) -> NDArray[np.float64]:
        """Payoffs (k, q) of packed coalitions; ``nan`` where the model fails.

        Those that are not known yet go through the model.
        """
        rows = self.cache.rows_of(masks)
        known, top = self.cache.count, int(rows.max(initial=-1)) + 1
        if top > known:
            try:
                if self._evaluate(known, top, settle):
                    rows = self.cache.rows_of(masks)
            finally:
                # whatever stopped us, Ctrl-C included: what was evaluated stays, the rest goes
                if self.cache.count < top:
                    self.cache.forget_unknown()
        return self.cache.worths(rows)

    def give_out(self) -> None:
        """Note that scores leave the game: from now on they cannot be replaced quietly."""
        self._answered |= self._batches > 0

    def can_share(self, settle: Settle) -> bool:
        """Whether coalitions share embeddings and that is worth it, tried on random ones."""
        with untouched(self._evaluator.model):
            self._explained = settle()
            return self.shared.try_out(self._everybody_output())

    @property
    def _prediction(self) -> Tensor:
        assert self._explained is not None
        return self._explained[0]

    @property
    def _payoff(self) -> Payoff:
        assert self._explained is not None
        return self._explained[1]

    def _evaluate(self, known: int, top: int, settle: Settle) -> bool:
        """Send coalitions through the model into the cache; whether its rows got another order."""
        self.bar.begin(top - known)
        with untouched(self._evaluator.model):
            self._explained = settle()
            arranged = self.shared.consider(self.cache.masks(known, top))
            if arranged:
                masks = self.cache.masks(known, top)
                if self._players.kind != "edges" or self._n <= _MOST_ORDERED:
                    self.cache.arrange(
                        known, sharing_order(masks, self._players.graph.edges.T, self._n)
                    )
                self._evaluate_shared(known, top)
            if self.cache.count < top:
                self._evaluate_batches(self.cache.masks(self.cache.count, top))
        return arranged

    def _evaluate_shared(self, known: int, top: int) -> None:
        """Worths of coalitions that share embeddings; none of them where they cannot."""
        masks = self.cache.masks(known, top)
        try:
            for outputs in self.shared.outputs(masks, self._everybody_output()):
                self._batches += not self._batches
                rows = self.cache.masks(self.cache.count, self.cache.count + len(outputs))
                self.cache.add(self._coalition_scores(rows, outputs))
                self.bar.update(len(outputs))
        except NotShareable as error:
            used = self.shared.sharing.used
            if used:
                # earlier ones are not to be trusted either
                self.cache.count = self._batches = 0
            self.shared.forget(str(error))
            log.info("coalitions do not share embeddings: %s", error)
            if used:
                self._forget_answers(str(error))

    def _evaluate_batches(self, masks: Masks) -> None:
        """Send packed coalitions through the model, batch by batch, into the cache."""
        known = self.cache.count
        singly = not self._evaluator.batched or self._evaluator.batch_nodes == 1
        if self.check.enabled and singly and not self.check.comparisons:
            self._compare_alone(self._evaluator.everybody, self._everybody_output())
        # in front of the others those that will be compared with themselves alone
        compared = self.check.enabled and not singly
        everyone = compared and self._ends.all_alone(masks)
        front = self._extremes(masks) if compared and not everyone else masks[:0]
        evaluated = np.concatenate([front, masks])
        for batch in self._evaluator.batches(evaluated):
            extra = max(min(batch.stop, len(front)) - batch.start, 0)
            alone = batch.stop - batch.start if everyone else extra
            try:
                scores = self._batch_scores(evaluated[batch], alone)
            except BatchMixing:
                self._start_over(known + len(masks))
                return
            self.cache.add(scores[extra:])
            self.bar.update(len(scores) - extra)

    def _extremes(self, masks: Masks) -> Masks:
        """Coalitions to evaluate alone as well: the ends, and everybody the first time."""
        ends = masks[self._ends.fresh(masks)]
        if self._batches:
            return ends if len(masks) > 1 else masks[:0]
        everybody = self._evaluator.everybody
        if self._n > 1:
            self._compare_one_player(everybody)
        return np.concatenate([everybody, ends])

    def _compare_one_player(self, everybody: Masks) -> None:
        """Compare a single player with itself alone, whether or not it will be asked for."""
        pair = np.concatenate([everybody, self._evaluator.one_player])
        try:
            outputs = self._outputs(pair)
        except Exception as error:  # it is met again where it is asked for
            log.info("a single player could not be evaluated beside the whole graph: %r", error)
            return
        self._compared(pair, outputs, len(pair))

    def _batch_scores(self, masks: Masks, alone: int) -> NDArray[np.float64]:
        """Payoffs of one batch, compared with those of single coalitions now and then.

        In the first batch of several coalitions, in the 2nd, 4th, 8th and so on, and wherever the
        first so many are to be compared with themselves ``alone``.
        """
        self._batches += len(masks) > 1
        seldom = bool(self._batches & (self._batches - 1)) and not alone
        if len(masks) == 1 or not self.check.enabled or seldom:
            return self._coalition_scores(masks)
        try:
            outputs = self._outputs(masks)
        except Exception as error:
            return self._one_by_one(masks, error)
        if not self._compared(masks, outputs, alone):
            return self._one_by_one(masks)
        return self._coalition_scores(masks, outputs)

    def _one_by_one(self, masks: Masks, error: Exception | None = None) -> NDArray[np.float64]:
        """Payoffs of the coalitions of a batch that failed as a whole, or is not to be trusted."""
        before = self._fallbacks
        if error is not None:
            log.info("one by one, because of a batch of %d: %r", len(masks), error)
        rows = range(len(masks))
        scores = np.concatenate([self._coalition_scores(masks[i : i + 1]) for i in rows])
        if error is not None and self._fallbacks == before:
            # nothing is wrong with any of them
            self._evaluator.batched = False
            self.check.one_by_one = f"the model fails on a batch: {error!r}"
        return scores

    def _compared(self, masks: Masks, outputs: Tensor, alone: int) -> bool:
        """Whether the outputs of a batch are to be trusted, by comparing some of them."""
        sizes = coalition_sizes(masks, np.zeros_like(masks[:1]))
        ends = [*range(alone), *smallest_and_largest(sizes)]

        def again(rows: NDArray[np.int64]) -> Tensor:
            known = len(rows) == 1 and sizes[rows[0]] == self._n
            return self._everybody_output() if known else self._outputs(masks[rows])

        def in_double(rows: NDArray[np.int64]) -> Tensor:
            return self._evaluator.double_outputs(masks[rows])

        try:
            require_apart(outputs, ends, again, self.check, in_double)
        except BatchMixing as mixing:
            if mixing.__cause__ is None:
                mask = masks[mixing.row : mixing.row + 1]
                self._compare_alone(mask, self._evaluator.outputs(mask))
                say_one_by_one()
            # from now on one at a time; worths of earlier batches are not to be trusted
            self._evaluator.batched = False
            self.check.one_by_one = str(mixing)
            if self._batches > 1:
                raise
            return False
        return True

    def _compare_alone(self, mask: Masks, known: Tensor) -> None:
        """Raise if the model says something else of the same coalition a second time."""

        def again() -> Tensor:
            return self._evaluator.outputs(mask)

        self.check.comparisons += 1
        refuse_random(self._evaluator.model, again, known, again(), size_of(known))

    def _start_over(self, top: int) -> None:
        """Evaluate everything again one by one, unless worths have been given out already."""
        self._forget_answers(
            "the model mixes the graphs of a batch", "one at a time", "batch_nodes=1"
        )
        for mask in self.cache.masks(0, top):
            self.cache.add(self._coalition_scores(mask[None]))

    def _forget_answers(
        self, reason: str, how: str = "the ordinary way", option: str = "share=False"
    ) -> None:
        """Forget all worths, which are not to be trusted; raise if some were given out."""
        self.cache.count = 0
        self.singleton_baseline = None
        if self._answered:
            raise BatchMixing(
                f"{reason}, and this showed only after some worths had been given out. Ask for "
                f"everything again: coalitions are evaluated {how} from now on, as "
                f"passes=Passes({option}) does from the start"
            )

    def _coalition_scores(self, masks: Masks, outputs: Tensor | None = None) -> NDArray[np.float64]:
        """Payoffs (k, q) before the baseline, ``nan`` where the model fails and may."""
        try:
            scores = self._payoff.scores_array(self._outputs(masks) if outputs is None else outputs)
        except Exception as error:
            if len(masks) > 1:
                # find the one at fault, or give each of the others its own worth
                return self._one_by_one(masks, error)
            if self._fallback is None:
                error.add_note(
                    f"raised on {self._describe(masks[0])}; GameOptions(fallback=...) gives such "
                    "coalitions a worth of their own"
                )
                raise
            self._fallbacks += 1
            return np.full((1, len(self._payoff.baseline)), np.nan)
        bad = ~np.isfinite(scores).all(axis=1)
        if bad.any():
            if self._fallback is None:
                raise ValueError(
                    f"the model's output for {self._describe(masks[bad][0])} gives a "
                    f"worth of {scores[bad][0].tolist()}; GameOptions(fallback=...) gives such "
                    "coalitions one"
                )
            scores[bad] = np.nan
        return scores

    def _outputs(self, masks: Masks) -> Tensor:
        outputs = self._evaluator.outputs(masks)
        columns = outputs.shape[1] // self._evaluator.removal.draws
        if columns != len(self._prediction):
            raise ValueError(
                f"the model must return {len(self._prediction)} columns, as for the whole graph "
                f"(got {columns})"
            )
        return outputs

    def _everybody_output(self) -> Tensor:
        """The output for everybody, as the evaluator returns it."""
        if self._players.touched:  # nodes that no edge touches are not there
            return self._evaluator.outputs(self._evaluator.everybody)
        return self._prediction.repeat(self._evaluator.removal.draws)[None]

    def _absent_types(self, mask: NDArray[np.uint64]) -> str:
        """Which types of a heterogeneous graph have no nodes in a coalition, in words."""
        removal = self._evaluator.removal
        graph = hetero_of(removal.data)
        if graph is None:
            return ""
        there = self._evaluator.units_of(mask[None]) | removal.present
        numbers = removal.data.node_id[unpack(there, removal.num_units)[0]].numpy()
        present = {graph.node_types[at] for at in graph.type_of[numbers]}
        absent = [repr(t) for t in graph.node_types if graph.count(t) and t not in present]
        return f", without nodes of type {' and '.join(absent)}" if absent else ""

    def _describe(self, mask: NDArray[np.uint64]) -> str:
        """A coalition in words, and which types of nodes it lacks."""
        return self._players.describe(unpack(mask[None], self._n)[0]) + self._absent_types(mask)


class WorthCache:
    """A growing table from bitmasks to worths: about 32 bytes per coalition of up to 64 nodes."""

    def __init__(self, words: int) -> None:
        self.count = 0
        self._masks = np.empty((_FIRST_ROOM, words), dtype=np.uint64)
        #: As many games as the first worths have.
        self._worths = np.empty((_FIRST_ROOM, 0))
        self._table = np.full(2 * _FIRST_ROOM, -1, dtype=np.int32)

    def rows_of(self, masks: Masks) -> NDArray[np.int64]:
        """Row of every mask; those not seen before get new rows from ``self.count`` on."""
        self._reserve(self.count + len(masks))
        rows = np.empty(len(masks), dtype=np.int64)
        _find_or_add(self._masks, self._table, self.count, masks, rows)
        return rows

    def masks(self, first: int, last: int) -> Masks:
        """Masks of some rows, filled by ``rows_of`` though not yet counted."""
        return self._masks[first:last]

    def arrange(self, first: int, order: NDArray[np.int64]) -> None:
        """Put the rows from ``first`` on, not yet counted, in another order."""
        rows = self._masks[first : first + len(order)]
        rows[:] = rows[order]
        self._look_up_first(first + len(order))

    def add(self, worths: NDArray[np.float64]) -> None:
        """Give the next rows their worths (k, q), which makes them known."""
        if not self.count:
            self._worths = np.empty((len(self._masks), worths.shape[1]))
        self._worths[self.count : self.count + len(worths)] = worths
        self.count += len(worths)

    def forget_unknown(self) -> None:
        """Drop rows that were added but never got worths, after an evaluation failed."""
        self._look_up_first(self.count)

    def _look_up_first(self, count: int) -> None:
        """Let the table know the first rows only, wherever they are now."""
        self._table[:] = -1
        masks, rows = self._masks[:count].copy(), np.empty(count, dtype=np.int64)
        _find_or_add(self._masks, self._table, 0, masks, rows)

    def worths(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Worths (k, q) of rows."""
        return self._worths[rows]

    def span(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest and the largest of all known worths, (q,) each."""
        known = self._worths[: self.count]
        return np.nanmin(known, axis=0), np.nanmax(known, axis=0)

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._masks):
            return
        capacity = len(self._masks)
        while capacity < needed:
            capacity *= 2
        for name in ("_masks", "_worths"):
            old = getattr(self, name)
            new = np.empty((capacity, old.shape[1]), dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)
        self._table = np.full(2 * capacity, -1, dtype=np.int32)
        self.forget_unknown()


@compiled
def _find_or_add(known, table, count, masks, rows):  # type: ignore[no-untyped-def]
    slots = len(table)
    for k in range(len(masks)):
        s = slot_of(masks[k], slots)
        while table[s] >= 0 and not same_mask(known[table[s]], masks[k]):
            s = (s + 1) & (slots - 1)
        if table[s] < 0:
            for w in range(masks.shape[1]):
                known[count, w] = masks[k, w]
            table[s] = count
            count += 1
        rows[k] = table[s]
