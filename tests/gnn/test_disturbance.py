"""A disturbed graph of states changes what messages can reach, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from gstarx.gnn.disturbance import Disturbance, is_due, suspect
from gstarx.graphs import Block
from tests.pairs import for_each


def block(rng: np.random.Generator, states: int, edges: int) -> Block:
    """A graph of states of one coalition, every node a state of its own."""
    ends = rng.integers(states, size=(2, edges))
    return Block(
        1,
        np.arange(states, dtype=np.int32),
        np.array([0, states]),
        np.arange(states),
        np.zeros(states, dtype=np.bool_),
        ends,
        np.arange(edges),
        np.zeros((1, 0), dtype=np.int64),
    )


def colors(made: Block, features: NDArray[np.int64], rounds: int, *, counted: bool) -> list[str]:
    """What every state knows after some rounds, written out."""
    heard: list[list[tuple[int, int]]] = [[] for _ in features]
    for edge, (source, target) in zip(made.edges.tolist(), made.ends.T.tolist(), strict=True):
        heard[target].append((edge, source))
    known = [f"{feature}" for feature in features.tolist()]
    if counted and rounds:  # no layer looks at degrees without passing messages
        known = [f"{k} {sorted(e for e, _ in h)}" for k, h in zip(known, heard, strict=True)]
    for _ in range(rounds):
        known = [
            f"({k} {sorted((e, known[s]) for e, s in h)})"
            for k, h in zip(known, heard, strict=True)
        ]
    return known


@given(
    st.integers(1, 14), st.integers(0, 20), st.integers(0, 3), st.booleans(), st.integers(0, 999)
)
def test_what_no_message_tells_of_stays_the_same(
    states: int, edges: int, rounds: int, counted: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    own = block(rng, states, edges)
    like = np.zeros(states, dtype=np.int64)
    plan = Disturbance.of(own, rounds, like, rng, counted=counted)
    if plan is None:
        return
    before = colors(own, own.nodes, rounds, counted=counted)
    after = colors(plan.block, plan.features, rounds, counted=counted)
    assert sorted(plan.place.tolist()) == list(range(states))
    assert len(plan.block.nodes) == len(plan.features) == states + 1
    for state in np.flatnonzero(plan.unchanged).tolist():
        assert before[state] == after[plan.place[state]]
        assert not plan.noisy[plan.place[state]]


@for_each("seed", range(5))
def test_something_changes_and_something_does_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = block(rng, 300, 450)
    plan = Disturbance.of(own, 2, np.zeros(300, dtype=np.int64), rng, counted=True)
    assert plan is not None
    assert 0.25 <= plan.unchanged.mean() < 0.95
    assert plan.noisy.sum() >= 9
    assert plan.block.ends.shape[1] < 450


def test_nodes_are_replaced_by_those_of_their_type() -> None:
    rng = np.random.default_rng(0)
    own, like = block(rng, 40, 30), np.arange(40) % 3
    plan = Disturbance.of(own, 1, like, rng, counted=False)
    assert plan is not None
    np.testing.assert_array_equal(like[plan.features], like[plan.block.nodes])
    assert plan.depends_on_count([(40, 8), (40, 40)], [(41, 8), (41, 41)])
    assert plan.depends_on_count([(40, 48)], [(41, 49)])
    assert not plan.depends_on_count([(40, 8), (2, 40, 40)], [(41, 8), (2, 41, 40)])
    # edges keep their fields where there are several types
    kept = {edge: tuple(ends) for edge, ends in zip(own.edges, own.ends.T.tolist(), strict=True)}
    back = np.argsort(plan.place)
    for edge, (source, target) in zip(plan.block.edges, plan.block.ends.T, strict=True):
        assert kept[edge] == (back[source], back[target])


def test_models_are_disturbed_again_and_again() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    assert [is_due(model) for _ in range(9)] == [True, True, False, True, *[False] * 3, True, False]
    model[0] = nn.Linear(2, 2)  # another model, as far as is known
    assert is_due(model)
    suspect(model)
    assert all(is_due(model) for _ in range(9))
