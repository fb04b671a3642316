"""Graphs of authors, papers and venues: the planted reasons are the only ones."""

from __future__ import annotations

import pytest
import torch

from gstarx_bench.datasets import bibliographies, bibliography, planted_reasons


def test_a_paper_is_about_theory_for_exactly_one_reason() -> None:
    data = bibliography(papers=120, seed=3)
    assert data.validate()
    kinds = set()
    for paper, label in enumerate(data["paper"].y.tolist()):
        reasons = planted_reasons(data, paper)
        assert len(reasons) == label
        kinds |= {kind for kind, _ in reasons}
    assert kinds == {"author", "venue"}
    split = sum(data["paper"][f"{name}_mask"].long() for name in ("train", "val", "test"))
    assert bool((split == 1).all())
    # the reason shows in the first feature, and in nothing of the papers
    for name in ("author", "venue"):
        first = data[name].x[:, 0]
        assert float(first[data[name].theory].mean() - first[~data[name].theory].mean()) > 0.5


def test_half_of_the_small_graphs_have_a_reason() -> None:
    graphs = bibliographies(count=20, seed=1)
    for graph in graphs:
        marked = sum(int(graph[name].truth.sum()) for name in graph.node_types)
        assert marked == int(graph.y)
        writes = graph["author", "writes", "paper"].edge_index
        assert set(writes[0].tolist()) == set(range(graph["author"].num_nodes))
    assert sum(int(graph.y) for graph in graphs) == 10


def test_the_same_seed_gives_the_same_graphs() -> None:
    first, again, other = (bibliography(papers=30, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first["author"].x, again["author"].x)
    assert not torch.equal(first["author"].x, other["author"].x)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="at least 10"):
        bibliography(papers=3)
    with pytest.raises(ValueError, match="at least 1"):
        bibliographies(count=0)
    with pytest.raises(ValueError, match=r"0\.\.29 \(got 30\)"):
        planted_reasons(bibliography(papers=30), 30)
