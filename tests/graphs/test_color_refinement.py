"""Color refinement, of one graph and of coalitions: states are those of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.graphs import (
    Block,
    StateRules,
    StateTable,
    color_refinement,
    pack,
    sharing_order,
)
from gstarx.graphs.color_refinement import proper_coloring


def by_definition(
    edges: NDArray[np.int64],
    node_kind: Any,
    edge_kind: Any,
    inside: NDArray[np.bool_],
    rounds: Any,
    *,
    counted: bool,
) -> dict[int, Any]:
    """The states of a coalition's nodes as nested tuples, after as many rounds for each of them."""
    nodes = np.flatnonzero(inside).tolist()
    heard: dict[int, list[tuple[int, int]]] = {v: [] for v in nodes}
    for number, (u, v) in enumerate(edges.T.tolist()):
        if inside[u] and inside[v]:
            # a self-loop is another kind of edge
            heard[v].append((u, 2 * int(edge_kind[number]) + (u == v)))
    state: dict[int, Any] = {v: (int(node_kind[v]),) for v in nodes}
    if counted:
        state = {v: (state[v], tuple(sorted(kind for _, kind in heard[v]))) for v in nodes}
    level = np.broadcast_to(rounds, len(node_kind))
    for done in range(level.max()):
        state = {
            v: (state[v], tuple(sorted(((kind, state[u]) for u, kind in heard[v]), key=repr)))
            if level[v] > done
            else state[v]
            for v in nodes
        }
    return state


@st.composite
def questions(draw: st.DrawFn) -> tuple[Any, ...]:
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=14))
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    kinds = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    bonds = draw(st.lists(st.integers(0, 1), min_size=len(pairs), max_size=len(pairs)))
    masks = draw(st.lists(st.integers(1, 2**n - 1), min_size=1, max_size=30))
    rows = np.array([[mask >> i & 1 for i in range(n)] for mask in masks], dtype=np.bool_)
    return edges, np.array(kinds), np.array(bonds, dtype=np.int64), rows


def blocks(table: StateTable, rows: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], Block]]:
    masks = pack(rows)
    nobody, asked, found, first = np.zeros_like(masks[:1]), np.zeros(0, dtype=np.int64), [], 0
    while first < len(rows):
        block = table.block(masks[first:], nobody, nobody, asked)
        copied = Block(
            block.coalitions, *[array.copy() for array in list(vars(block).values())[1:]]
        )
        found.append((rows[first : first + block.coalitions], copied))
        first += block.coalitions
    return found


@given(
    questions(),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([1, 8, 1000]),
    st.sampled_from([1, 20, 8192]),
)
def test_states_are_those_of_the_definition(
    question: tuple[Any, ...], rounds: int, counted: bool, room: int, patience: int
) -> None:
    edges, kinds, bonds, rows = question
    n = len(kinds)
    colored = kinds * n + proper_coloring(edges, n)
    rules = StateRules.of(edges, kinds, bonds, np.full(n, rounds), counted=counted)
    table = StateTable(rules, room, 10 * room)
    table.patience = patience
    for some, block in blocks(table, rows):
        numbers: dict[int, Any] = {}
        for c, row in enumerate(some):
            states = by_definition(edges, colored, bonds, row, rounds, counted=counted)
            members = block.members[block.begins[c] : block.begins[c + 1]]
            assert len(members) == row.sum()
            for v, number in zip(np.flatnonzero(row).tolist(), members.tolist(), strict=True):
                # one number, one state, and the other way around
                assert numbers.setdefault(number, states[v]) == states[v]
                assert kinds[block.nodes[number]] == kinds[v]
        assert len(numbers) == len(set(map(repr, numbers.values()))) == len(block.nodes)
        # rounds of messages over the block end in the same states
        there = by_definition(
            block.ends,
            colored[block.nodes],
            bonds[block.edges],
            np.ones(len(block.nodes), dtype=np.bool_),
            rounds,
            counted=counted,
        )
        assert {k: repr(v) for k, v in there.items()} == {k: repr(v) for k, v in numbers.items()}
        loops = block.ends[0] == block.ends[1]
        assert (edges[0, block.edges] == edges[1, block.edges])[loops].all()


@given(questions(), st.integers(1, 3), st.booleans(), st.sampled_from([1, 8192]))
def test_nodes_further_from_what_is_asked_need_fewer_rounds(
    question: tuple[Any, ...], rounds: int, counted: bool, patience: int
) -> None:
    edges, kinds, bonds, rows = question
    n = len(kinds)
    level, reached = np.zeros(n, dtype=np.int64), np.arange(n) == 0
    for _ in range(rounds):
        level += reached
        reached[edges[0, reached[edges[1]]]] = True
    rules = StateRules.of(edges, kinds, bonds, level, counted=counted)
    colored = kinds * n + proper_coloring(edges, n)
    table = StateTable(rules, 1000, 1000)
    table.patience = patience
    ((some, block),) = blocks(table, rows)
    numbers: dict[Any, int] = {}
    for c, row in enumerate(some):
        states = by_definition(edges, colored, bonds, row, level, counted=counted)
        members = block.members[block.begins[c] : block.begins[c + 1]]
        for v, number in zip(np.flatnonzero(row).tolist(), members.tolist(), strict=True):
            assert numbers.setdefault((level[v], repr(states[v])), number) == number
    assert len(numbers) == len(set(numbers.values())) == len(block.nodes)


@given(questions(), st.integers(0, 3), st.booleans(), st.sampled_from([1, 8192]))
def test_nodes_too_far_away_are_one_state(
    question: tuple[Any, ...], rounds: int, counted: bool, patience: int
) -> None:
    edges, kinds, bonds, rows = question
    n = len(kinds)
    level, reached = np.full(n, -1, dtype=np.int64), np.arange(n) == 0
    for _ in range(rounds + 1):
        level += reached
        reached[edges[0, reached[edges[1]]]] = True
    rules = StateRules.of(edges, kinds, bonds, level, counted=counted)
    colored = kinds * n + proper_coloring(edges, n)
    table = StateTable(rules, 1000, 1000)
    table.patience = patience
    ((some, block),) = blocks(table, rows)
    assert (level[block.nodes] < 0).sum() == rows[:, level < 0].any()
    everything = np.ones(len(block.nodes), dtype=np.bool_)
    there = by_definition(
        block.ends,
        colored[block.nodes],
        bonds[block.edges],
        everything,
        level[block.nodes],
        counted=counted,
    )
    for c, row in enumerate(some):
        states = by_definition(edges, colored, bonds, row, level, counted=counted)
        members = block.members[block.begins[c] : block.begins[c + 1]]
        for v, number in zip(np.flatnonzero(row).tolist(), members.tolist(), strict=True):
            assert level[block.nodes[number]] == level[v]
            if level[v] >= 0:
                # rounds of messages over the block end in the same states
                assert repr(there[number]) == repr(states[v])


@given(questions())
def test_neighbors_have_different_colors(question: tuple[Any, ...]) -> None:
    edges, kinds, _, _ = question
    color = proper_coloring(edges, len(kinds))
    apart = edges[0] != edges[1]
    assert (color[edges[0]] != color[edges[1]])[apart].all()


@pytest.mark.parametrize("n", [5, 70])
def test_the_order_holds_everybody_first_and_nobody_twice(n: int) -> None:
    path = np.array([(i, i + 1) for i in range(n - 1)]).T
    rows = np.random.default_rng(0).random((200, n)) < 0.5
    rows[17] = True
    order = sharing_order(pack(rows), path, n)
    assert sorted(order.tolist()) == list(range(200))
    assert rows[order[0]].all()
    # the node in the middle decides most
    held = rows[order][:, (n - 1) // 2]
    assert (held[:-1] >= held[1:]).all()


def test_colors_of_a_star_and_a_path() -> None:
    star = np.array([[0, 0, 0], [1, 2, 3]])
    assert color_refinement(star, 4).tolist() == [2, 1, 1, 1]
    path = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    assert color_refinement(path, 5).tolist() == [1, 2, 3, 2, 1]
    assert color_refinement(np.zeros((2, 0), dtype=np.int64), 3).tolist() == [1, 1, 1]
    messy = np.array([[0, 1, 1, 2, 2], [1, 0, 1, 1, 3]])
    assert color_refinement(messy, 4).tolist() == color_refinement(path[:, :3], 4).tolist()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12), st.randoms())
def test_colors_follow_a_renumbering(edges: list[tuple[int, int]], draw: Any) -> None:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    places = np.array(draw.sample(range(7), 7))
    moved = color_refinement(places[ends], 7)
    assert np.array_equal(moved[places], color_refinement(ends, 7))


@given(questions(), st.integers(0, 4))
def test_states_of_the_grand_coalition_are_the_colors_of_the_graph(
    question: tuple[Any, ...], rounds: int
) -> None:
    edges, kinds, _, _ = question
    n = len(kinds)
    joining = edges[:, edges[0] != edges[1]]
    both = np.unique(np.concatenate([joining, joining[::-1]], axis=1), axis=1)
    rules = StateRules.of(
        both, kinds, np.zeros(both.shape[1], int), np.full(n, rounds), counted=False
    )
    ((_, block),) = blocks(StateTable(rules, 8, 80), np.ones((1, n), dtype=np.bool_))
    start = kinds * n + proper_coloring(both, n)
    colors = color_refinement(both, n, start=start, max_rounds=rounds)
    assert np.array_equal(block.members[:, None] == block.members, colors[:, None] == colors)
