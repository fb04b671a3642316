"""Citation and co-author networks: one large graph whose nodes are classified."""

from __future__ import annotations

from pathlib import Path

from torch_geometric.data import Data

from gstarx.datasets import GraphDataset
from gstarx_bench.datasets.graph_files import SPLITS, graph_from_arrays
from gstarx_bench.datasets.raw_files import archive, find, not_found


def load_cora(root: Path) -> GraphDataset:
    """2,708 papers that cite each other, in seven classes; the words of a paper are its features.

    Read from ``citation/cora.npz``, in the layout of :func:`graph_from_arrays`, or downloaded by
    PyG's ``Planetoid``. Every row of features sums to one, as PyG's ``NormalizeFeatures`` makes it.
    """
    return _load(root, "cora", 7, "Planetoid", "Cora", "Yang et al., ICML 2016 (Planetoid)")


def load_citeseer(root: Path) -> GraphDataset:
    """3,327 papers that cite each other, in six classes; see :func:`load_cora`."""
    return _load(root, "citeseer", 6, "Planetoid", "CiteSeer", "Yang et al., ICML 2016 (Planetoid)")


def load_coauthor_cs(root: Path) -> GraphDataset:
    """18,333 authors who wrote papers together, in 15 fields; see :func:`load_cora`.

    Downloaded by PyG's ``Coauthor`` if ``citation/coauthor_cs.npz`` is not there, without splits.
    """
    return _load(root, "coauthor_cs", 15, "Coauthor", "CS", "Shchur et al., 2018")


def load_coauthor_physics(root: Path) -> GraphDataset:
    """34,493 authors who wrote papers together, in five fields; see :func:`load_coauthor_cs`."""
    return _load(root, "coauthor_physics", 5, "Coauthor", "Physics", "Shchur et al., 2018")


def _load(
    root: Path, name: str, classes: int, family: str, title: str, source: str
) -> GraphDataset:
    path = find(root, [f"citation/{name}.npz", f"{name}.npz"])
    if path is not None:
        graph = graph_from_arrays(archive(path), path)
        if "y" not in graph:
            raise ValueError(f"{path}: y is missing, the class of every node")
    else:
        graph = _downloaded(root, name, family, title)
    graph.x = graph.x / graph.x.sum(dim=1, keepdim=True).clamp_(min=1.0)
    highest = int(graph.y.max()) if graph.y.numel() else -1
    if highest >= classes or (graph.y.numel() and int(graph.y.min()) < 0):
        raise ValueError(f"{path or name}: y must lie in 0..{classes - 1} (got {highest})")
    return GraphDataset(
        name,
        (graph,),
        classes,
        {side: [0] for side in SPLITS},
        source=source,
        license="see the source",
        description="One graph; which class is a node?",
    )


def _downloaded(root: Path, name: str, family: str, title: str) -> Data:
    """The graph as PyG downloads it, or an error that says where to put the file."""
    from torch_geometric import datasets as pyg

    place = root / "citation" / f"{name}.npz"
    try:
        (graph,) = getattr(pyg, family)(str(root / family), title)
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise not_found(f"{name}.npz", place, f"PyG's {family}: {reason}") from error
    # PyG sets the counts of words to one
    graph.x = (graph.x > 0).float()
    kept = ("x", "edge_index", "y", *(f"{side}_mask" for side in SPLITS))
    return Data(**{key: graph[key] for key in kept if key in graph})
