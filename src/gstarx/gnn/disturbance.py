"""A graph of states that is changed in some places, to see how far away the change is noticed.

If embeddings depend on messages alone, a change of some nodes reaches those within as many hops as
there are rounds of messages, and no other. A layer that sends messages farther than it says, a mean
over all nodes, or a look at the order of nodes or edges shows in the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gstarx.gnn.shared_rows import gathered_now
from gstarx.gnn.signature import Model, submodules
from gstarx.graphs import Block

#: Shares of the states that change: fewer, if hardly any would stay as they are.
_SHARES = (0.125, 0.03, 0.0)
_LEAST_UNCHANGED = 0.25


#: The layers of models, and how often they could have been disturbed; 0 if they could not share.
_asked: WeakKeyDictionary[Any, tuple[tuple[int, ...], int]] = WeakKeyDictionary()


def is_due(model: Model) -> bool:
    """Whether a model is to be disturbed: the first time with these layers, the 2nd, 4th, 8th...

    Always, if it could not share once.
    """
    layers = tuple(map(id, submodules(model)))
    try:
        known, count = _asked.get(model, ((), 0))
        if known == layers and count == 0:
            return True
        count = count + 1 if known == layers else 1
        _asked[model] = layers, count
    except TypeError:  # of what cannot be remembered nothing is known
        return True
    return not count & (count - 1)


def suspect(model: Model) -> None:
    """Remember that a model could not share."""
    with suppress(TypeError):
        _asked[model] = tuple(map(id, submodules(model))), 0


@dataclass(frozen=True)
class Disturbance:
    """A block with its states and edges in another order, some of them changed, and one more state.

    Attributes
    ----------
    block
        The block.
    place
        The number in it of every state of the block it was made from, (S,).
    unchanged
        Which states of that block no message can tell of a change, (S,).
    features
        Node of the graph whose fields every state gets, (S + 1,).
    noisy
        States whose real features get noise on top, (S + 1,).
    """

    block: Block
    place: NDArray[np.int64]
    unchanged: NDArray[np.bool_]
    features: NDArray[np.int64]
    noisy: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        block: Block,
        rounds: int,
        like: NDArray[np.int64],
        random: np.random.Generator,
        *,
        counted: bool,
    ) -> Disturbance | None:
        """Change a block, or return ``None`` if every change would be noticed everywhere.

        ``like`` (n,) is the type of every node of the graph; edges between nodes of several types
        keep their fields. ``counted`` is as for the states: whether the edges to a node are noticed
        one hop farther than by messages.
        """
        states = len(block.nodes)
        for share in _SHARES:
            count = max(1, int(share * states))
            changed, deaf = (_some(random, states, count) for _ in range(2))
            told = _reached(block.ends, changed, rounds)
            if rounds:
                told |= _reached(block.ends, deaf, rounds - 1 + counted)
            if (~told).mean() >= _LEAST_UNCHANGED:
                break
        if told.all():
            return None
        features = np.where(changed, _others_alike(block.nodes, like, random), block.nodes)
        # one state more, alone and of no coalition: nothing may depend on their number
        order = np.append(random.permutation(states), 0)
        place = np.argsort(order[:-1])
        # of the edges to some states, half are gone and half have the fields of others
        at_deaf = deaf[block.ends[1]]
        kept = np.flatnonzero(~at_deaf | (random.random(len(at_deaf)) < 0.5))
        kept = random.permutation(kept)
        shuffled = block.edges if like.any() else random.permutation(block.edges)
        moved = replace(
            block,
            members=place[block.members].astype(block.members.dtype),
            nodes=block.nodes[order],
            absent=block.absent[order],
            ends=place[block.ends[:, kept]],
            edges=np.where(at_deaf, shuffled, block.edges)[kept],
            asked=place[block.asked],
        )
        return cls(moved, place, ~told, features[order], changed[order])

    def depends_on_count(
        self, before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]]
    ) -> bool:
        """Whether tensors passed to layers have as many columns as there are states, or so.

        That is how a model can write down who is next to whom, by messages of one-hot vectors.
        """
        states = len(self.place)
        for one, two in zip(before, after, strict=False):
            if states in one and states + 1 in two:
                rest, other = list(one), list(two)
                rest.remove(states)
                other.remove(states + 1)
                if rest != other:
                    return True
        return False

    def noise(self, fields: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Fields of nodes with noise where they are real numbers and the state has changed."""
        rows = torch.from_numpy(np.flatnonzero(self.noisy))
        draw = torch.Generator().manual_seed(0)
        changed = dict(fields)
        for name in names:
            value: Tensor = gathered_now(fields[name])
            if value.is_floating_point():
                here, value = rows.to(value.device), value.clone()
                added = torch.randn((len(rows), *value.shape[1:]), generator=draw).to(value)
                value[here] = value[here] + added * (1 + value.abs().mean())
                changed[name] = value
        return changed


def _some(random: np.random.Generator, states: int, count: int) -> NDArray[np.bool_]:
    chosen = np.zeros(states, dtype=np.bool_)
    chosen[random.permutation(states)[:count]] = True
    return chosen


def _reached(ends: NDArray[np.int64], start: NDArray[np.bool_], hops: int) -> NDArray[np.bool_]:
    """States that hear of some within so many hops, those included."""
    reached = start.copy()
    for _ in range(hops):
        heard = ends[1][reached[ends[0]]]
        reached[heard] = True
    return reached


def _others_alike(
    nodes: NDArray[np.int64], like: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """For every node another one of its type, if there is one."""
    order = np.argsort(like, kind="stable")
    first = np.searchsorted(like[order], like[nodes])
    count = np.searchsorted(like[order], like[nodes], side="right") - first
    return np.asarray(order[first + (random.random(len(nodes)) * count).astype(np.int64)])
