"""The budget is the largest number of distinct coalitions that go through the model."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from gstarx import HN, Banzhaf, Myerson, Passes, Shapley, explain
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.models import GCN
from gstarx.values import PrecisionWarning, Value
from tests.pairs import for_each, in_turn

VALUES: list[Value] = [HN(), Myerson(), Shapley(), Banzhaf()]
VALUES += [HN(two_sided=True), Myerson(two_sided=True)]


class Counter:
    """A model that remembers the sets of nodes of every graph that it has seen."""

    def __init__(self) -> None:
        self.seen: set[frozenset[int]] = set()

    def __call__(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        graphs = int(batch.max()) + 1
        for at in range(graphs):
            self.seen.add(frozenset(x[batch == at, 0].long().tolist()))
        inside = torch.zeros(graphs).index_add_(0, batch, x[:, 1])
        edges = torch.bincount(batch[edge_index[0]], minlength=graphs)
        score = torch.sin(inside) + 0.1 * edges
        return torch.stack([score, -score], dim=1)


def components(*sizes: int) -> Data:
    """Paths of these sizes beside each other; each node has its number and a weight."""
    n = sum(sizes)
    starts = torch.cumsum(torch.tensor(sizes), 0).tolist()
    left = torch.tensor([i for i in range(n - 1) if i + 1 not in starts], dtype=torch.long)
    ends = torch.stack([left, left + 1])
    weights = torch.randn(n, generator=torch.Generator().manual_seed(0))
    x = torch.stack([torch.arange(n).float(), weights], dim=1)
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def evaluated(data: Data, **options: Any) -> tuple[int, Any]:
    """How many distinct coalitions went through the model, and the explanation."""
    model = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        # the check looks at a single player as well, whether or not it is asked for
        made = explain(model, data, seed=0, passes=Passes(check=False), **options)
    return len(model.seen), made


@for_each(("value", "baseline", "budget"), in_turn(VALUES, [None, "singletons"], [90, 200]))
def test_several_components(value: Value, baseline: str | None, budget: int) -> None:
    data = components(14, 10, 3, 1, 1)
    count, made = evaluated(data, budget=budget, value=value, baseline=baseline)
    assert made.evaluations == count
    assert count <= budget


@settings(max_examples=60, deadline=None)
@example([1, 1], Shapley(), None, 0)
@example([1, 1, 1], Myerson(), "singletons", 0)
@example([2, 1, 1], HN(two_sided=True), "singletons", 0)
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6).filter(lambda sizes: sum(sizes) > 1),
    st.sampled_from(VALUES),
    st.sampled_from([None, 0.25, "singletons"]),
    st.integers(0, 40) | st.integers(0, 150),
)
def test_never_more_than_the_budget(
    sizes: list[int], value: Value, baseline: float | str | None, more: int
) -> None:
    data = components(*sizes)
    options: dict[str, Any] = {"value": value, "baseline": baseline}
    budget = len(data.x) + more
    try:
        count, made = evaluated(data, budget=budget, **options)
    except ValueError as error:
        found = re.search(r"budget must be at least (\d+) .*got (\d+)", str(error))
        assert found is not None
        assert int(found[2]) == budget < int(found[1])
        # the smallest one that is valid
        budget = int(found[1])
        with pytest.raises(ValueError, match=f"at least {budget} .*got {budget - 1}"):
            explain(Counter(), data, budget=budget - 1, **options)
        count, made = evaluated(data, budget=budget, **options)
    assert made.evaluations == count
    assert count <= budget


@pytest.mark.parametrize(
    ("value", "baseline", "smallest"), [("shapley", None, 3), ("myerson", "singletons", 3)]
)
def test_the_smallest_budget_may_be_that_of_the_exact_value(
    value: str, baseline: str | None, smallest: int
) -> None:
    data = components(1, 1)
    options: dict[str, Any] = {"value": value, "baseline": baseline}
    for budget in range(smallest):
        with pytest.raises(ValueError, match=f"at least {smallest} for 2 nodes .*got {budget}"):
            explain(Counter(), data, budget=budget, **options)
    assert evaluated(data, budget=smallest, **options)[0] == smallest


@pytest.mark.parametrize("kind", [HN, Myerson])
def test_all_components_together_are_one_more_coalition_of_exact_values(
    kind: type[Myerson],
) -> None:
    data = components(4, 3)
    nodes = CommunicationGraph.from_edge_index(data.edge_index, 7)
    needed = len(nodes.connected_coalitions()) + 1
    count, made = evaluated(data, value=kind(), budget=needed)
    assert made.exact
    assert count == needed
    assert not evaluated(data, value=kind(), budget=needed - 1)[1].exact
    with pytest.raises(TooManyCoalitions, match=rf"least {needed} coalitions and the limit is 16:"):
        evaluated(data, value=kind(estimator="exact"), budget=needed - 1)


def test_a_model_of_nodes_is_refused_before_a_larger_budget_is_asked_for() -> None:
    ends = torch.stack([torch.arange(39), torch.arange(1, 40)])
    data = Data(x=torch.randn(40, 3), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    nodes = GCN(3, 8, 2, readout=None)
    with pytest.raises(ValueError, match=r"pass task='node' and index="):
        explain(lambda x, edge_index: nodes(x, edge_index), data, budget=40)


@pytest.mark.parametrize(
    ("value", "baseline"), in_turn([*VALUES[:3], *VALUES[4:]], [0.25, "singletons"])
)
def test_the_budget_that_a_warning_names_is_enough(value: Value, baseline: float | str) -> None:
    def named(budget: int) -> int | None:
        """What a warning says of unknown standard errors."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            explain(
                Counter(),
                components(16, 14),
                seed=0,
                budget=budget,
                value=value,
                baseline=baseline,
            )
        said = " ".join(str(one.message) for one in caught)
        found = re.search(r"nan; from budget=(\d+) on they are known", said)
        return None if found is None else int(found[1])

    with pytest.raises(ValueError, match="budget") as caught:
        named(20)
    found = re.search(r"at least (?:the number of \w+, )?(\d+)", str(caught.value))
    assert found is not None
    smallest = int(found[1])
    enough = named(smallest)
    assert enough is not None
    assert smallest < enough < 4 * smallest
    assert named(enough) is None
