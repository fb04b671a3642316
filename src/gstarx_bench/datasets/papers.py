"""Heterogeneous graphs with planted reasons: authors, papers and venues.

A paper is about theory because one of its authors is a theorist, or because it appears in a venue
for theory; nothing else decides. What tells theorists and theory venues apart is one of their
features, so that a network has to look at them: papers have no feature that says anything.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import HeteroData

#: Numbers of features; the first one of authors and venues says whether they are about theory.
_WIDTHS = {"author": 8, "paper": 6, "venue": 4}
_NOISE = 0.3


def bibliography(*, papers: int = 400, seed: int = 0) -> HeteroData:
    """One graph of authors, papers and venues, in which some papers are about theory.

    For node tasks: the class of a paper is 1 if it has a theorist among its authors or appears in a
    venue for theory, never both, and 0 otherwise.

    Parameters
    ----------
    papers
        How many papers; there are three authors for every four of them, and a venue for ten.
    seed
        The same seed gives the same graph.

    Returns
    -------
    HeteroData
        With ``x`` of every type, both directions of ``("author", "writes", "paper")`` and
        ``("paper", "appears_in", "venue")``, classes ``data["paper"].y``, masks of a split, and
        ``theory`` of authors and venues, the planted reasons; :func:`planted_reasons` lists them.

    Examples
    --------
    >>> data = bibliography(papers=40)
    >>> data["paper"].num_nodes, data["author"].num_nodes, data["venue"].num_nodes
    (40, 30, 4)
    >>> paper = int(data["paper"].y.nonzero()[0])
    >>> len(planted_reasons(data, paper))
    1
    """
    if papers < 10:
        raise ValueError(f"papers must be at least 10, to be split (got {papers})")
    generator = np.random.default_rng(seed)
    authors, venues = papers * 3 // 4, max(2, papers // 10)
    theorist = _some(generator, authors, 0.15)
    theory_venue = _some(generator, venues, 0.25)
    writes: list[tuple[int, int]] = []
    appears: list[tuple[int, int]] = []
    labels = np.zeros(papers, dtype=np.int64)
    for paper in range(papers):
        reason = generator.choice(["author", "venue", ""], p=[0.25, 0.25, 0.5])
        labels[paper] = reason != ""
        chosen = _drawn(generator, ~theorist, int(generator.integers(2, 5)))
        if reason == "author":
            chosen = np.append(chosen[1:], _drawn(generator, theorist, 1))
        venue = _drawn(generator, theory_venue if reason == "venue" else ~theory_venue, 1)
        writes += [(int(author), paper) for author in chosen]
        appears.append((paper, int(venue[0])))
    data = _graph(generator, {"author": theorist, "venue": theory_venue}, papers, writes, appears)
    data["paper"].y = torch.from_numpy(labels)
    part = generator.permutation(papers) / papers
    for name, (low, high) in {"train": (0, 0.6), "val": (0.6, 0.7), "test": (0.7, 1)}.items():
        data["paper"][f"{name}_mask"] = torch.from_numpy((part >= low) & (part < high))
    return data


def bibliographies(*, count: int = 200, seed: int = 0) -> list[HeteroData]:
    """Many small graphs of authors, papers and venues, half of them with a reason for theory.

    For graph tasks: the class of a graph, ``data.y``, is 1 if one of its authors is a theorist or
    one of its venues is for theory, never both. ``truth`` of every type marks the reason.

    Parameters
    ----------
    count
        How many graphs.
    seed
        The same seed gives the same graphs.

    Examples
    --------
    >>> graph = bibliographies(count=1)[0]
    >>> int(graph.y), sum(int(graph[name].truth.sum()) for name in graph.node_types)
    (1, 1)
    """
    if count < 1:
        raise ValueError(f"count must be at least 1 (got {count})")
    generator = np.random.default_rng(seed)
    return [_small(generator, at % 2 == 0) for at in range(count)]


def _small(generator: np.random.Generator, positive: bool) -> HeteroData:
    papers, authors = int(generator.integers(3, 6)), int(generator.integers(3, 6))
    venues = 2
    theory = {"author": np.zeros(authors, bool), "venue": np.zeros(venues, bool)}
    writes = {
        (int(author), paper)
        for paper in range(papers)
        for author in generator.permutation(authors)[: int(generator.integers(1, 4))]
    }
    # everybody has written something
    written = {author for author, _ in writes}
    writes |= {(a, int(generator.integers(papers))) for a in range(authors) if a not in written}
    appears = [(paper, paper % venues) for paper in range(papers)]
    if positive:
        kind = ("author", "venue")[int(generator.integers(2))]
        theory[kind][int(generator.integers(len(theory[kind])))] = True
    data = _graph(generator, theory, papers, sorted(writes), appears)
    for name in data.node_types:
        planted = theory.get(name, np.zeros(papers, bool))
        data[name].truth = torch.from_numpy(planted.copy())
    data.y = torch.tensor([int(positive)])
    return data


def planted_reasons(data: HeteroData, paper: int) -> list[tuple[str, int]]:
    """The nodes because of which a paper of :func:`bibliography` is about theory; none if it isn't.

    Parameters
    ----------
    data
        The graph.
    paper
        The paper.
    """
    count = data["paper"].num_nodes
    if not 0 <= paper < count:
        raise ValueError(f"paper must lie in 0..{count - 1} (got {paper})")
    authors = data["author", "writes", "paper"].edge_index
    venues = data["paper", "appears_in", "venue"].edge_index
    near = {"author": authors[0, authors[1] == paper], "venue": venues[1, venues[0] == paper]}
    return [
        (name, node)
        for name, nodes in near.items()
        for node in sorted(set(nodes.tolist()))
        if bool(data[name].theory[node])
    ]


def _some(generator: np.random.Generator, count: int, share: float) -> NDArray[np.bool_]:
    chosen = np.zeros(count, dtype=np.bool_)
    chosen[generator.permutation(count)[: max(1, round(share * count))]] = True
    return chosen


def _drawn(
    generator: np.random.Generator, among: NDArray[np.bool_], count: int
) -> NDArray[np.int64]:
    return np.asarray(generator.permutation(np.flatnonzero(among))[:count])


def _graph(
    generator: np.random.Generator,
    theory: dict[str, NDArray[np.bool_]],
    papers: int,
    writes: list[tuple[int, int]],
    appears: list[tuple[int, int]],
) -> HeteroData:
    data = HeteroData()
    for name, width in _WIDTHS.items():
        count = papers if name == "paper" else len(theory[name])
        x = generator.normal(0, _NOISE, (count, width))
        if name in theory:
            x[:, 0] += theory[name]
            data[name].theory = torch.from_numpy(theory[name].copy())
        data[name].x = torch.from_numpy(x.astype(np.float32))
    for (source, name, target), pairs in (
        (("author", "writes", "paper"), writes),
        (("paper", "appears_in", "venue"), appears),
    ):
        ends = _ends(pairs)
        data[source, name, target].edge_index = ends
        data[target, f"rev_{name}", source].edge_index = ends.flip(0)
    return data


def _ends(pairs: list[tuple[int, int]]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()
