"""Sentences with opinions: SST-2 and the tweets, parsed anew or as the paper's authors parsed them.

``load_sst2`` and ``load_tweets`` make graphs of the texts, ``load_graph_sst2`` and
``load_twitter`` read the graphs of the paper, for those who have the files.
"""

from __future__ import annotations

import json
import logging
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset
from gstarx_bench.datasets.cache import cached_graphs
from gstarx_bench.datasets.raw_files import (
    archive,
    array,
    not_found,
    read_arrays,
    warn_if_unlike_the_paper,
)
from gstarx_bench.datasets.sentences import (
    EncoderLike,
    ParserLike,
    encoder_identity,
    load_encoder,
    load_parser,
    parser_identity,
    sentence_graph,
    text_graphs,
)

__all__ = [
    "load_graph_sst2",
    "load_sst2",
    "load_tweets",
    "load_twitter",
    "sentence_graph",
    "text_graphs",
]

_LOG = logging.getLogger(__name__)
#: Version of :func:`text_graphs` for stored graphs.
_VERSION = 1
_SPLIT_SEED = 2
_VALIDATION_SHARE = 0.1
_TARGET = "$T$"
_TWO, _THREE = ("negative", "positive"), ("negative", "neutral", "positive")


class LabeledSentence(NamedTuple):
    """A text, its class, and its split: ``"train"``, ``"val"`` or ``"test"``."""

    text: str
    label: int
    side: str


def _sst2(root: Path) -> dict[Path, list[LabeledSentence]]:
    files = {"train": "train.tsv", "val": "dev.tsv", "test": "test.tsv"}
    paths = {side: root / "SST-2" / name for side, name in files.items()}
    return {path: read_sentences(path, side) for side, path in paths.items()}


def _tweets(root: Path) -> dict[Path, list[LabeledSentence]]:
    """The tweets; a tenth of the training file is for validation."""
    paths = {side: root / "twitter" / f"{side}.raw" for side in ("train", "test")}
    rows = {path: read_tweets(path, side) for side, path in paths.items()}
    train = rows[paths["train"]]
    count = round(_VALIDATION_SHARE * len(train))
    for place in stratified([row.label for row in train], count, seed=_SPLIT_SEED):
        train[place] = train[place]._replace(side="val")
    return rows


def _load(
    about: GraphDataset,
    read: Callable[[Path], dict[Path, list[LabeledSentence]]],
    root: Path,
    *,
    size: int | None = None,
    seed: int = _SPLIT_SEED,
    parser: ParserLike = None,
    encoder: EncoderLike = None,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    progress: bool = True,
) -> GraphDataset:
    """Read sentences, and make their graphs.

    Sentences are those of the paper and are parsed by the same rule, but with a different parser
    and word vectors, so figures differ from the paper's.

    Parameters
    ----------
    root
        Directory that holds the texts.
    size
        Number of training sentences to use, drawn by ``seed`` and stratified by class. All are
        used by default; validation and test sets are always complete.
    seed
        For ``size``. A smaller set is a subset of a larger one with the same seed.
    parser, encoder, dtype, device, progress
        As for :func:`text_graphs`. In half precision (``dtype=torch.float16``) the features of
        SST-2 take 0.55 GB instead of 1.1; networks must then convert them.

    Notes
    -----
    Parsing and embedding all sentences takes several minutes. The graphs are then cached under a
    key of the sentences and models (:func:`gstarx_bench.datasets.cache.cached_graphs`), and read
    without the models.
    """
    files = read(root)
    rows = [row for part in files.values() for row in part]
    positions = _subset(rows, size, seed)
    # loaded once: both identifying a model and using it need it
    parser = None if parser is None else load_parser(parser)
    encoder = None if encoder is None else load_encoder(encoder, device)
    used = [rows[i] for i in positions]
    options: dict[str, Any] = {
        "parser": parser_identity(parser),
        "encoder": encoder_identity(encoder),
        "chosen": None if len(positions) == len(rows) else list(positions),
    }
    graphs = cached_graphs(
        about.name,
        list(files),
        options,
        _VERSION,
        lambda: text_graphs(
            [row.text for row in used],
            [row.label for row in used],
            parser=parser,
            encoder=encoder,
            dtype=torch.float16,
            device=device,
            progress=progress,
        ),
    )
    for graph in graphs:
        graph.x = graph.x.to(dtype)
    sides = {
        side: [i for i, row in enumerate(used) if row.side == side]
        for side in ("train", "val", "test")
    }
    return about.replace(graphs=tuple(graphs), split_indices=sides)


#: 70,042 phrases of film reviews, class 1 positive (``SST-2/{train,dev,test}.tsv``). Each file has
#: a header with its columns, ``label`` and ``sentence`` or ``content``, separated by a tab. The
#: split is the stored one; ``"val"`` is ``dev.tsv``.
load_sst2 = partial(
    _load,
    GraphDataset(
        "sst2",
        (),
        2,
        {},
        source="Socher et al., EMNLP 2013, 1631-1642; phrases and split as in GLUE",
        license="none stated",
        description="Phrases of film reviews; is the opinion positive?",
        class_names=_TWO,
    ),
    _sst2,
)
#: 6,940 tweets on a target, negative, neutral or positive (``twitter/{train,test}.raw``). Each
#: tweet has three lines: a text with ``$T$`` for the target, which is put there, the target, and
#: the label -1, 0 or 1, which becomes class 0, 1 or 2. The test split is the stored one; ``"val"``
#: is a tenth of the training file, drawn with a fixed seed and stratified by class.
load_tweets = partial(
    _load,
    GraphDataset(
        "tweets",
        (),
        3,
        {},
        source="Dong et al., ACL 2014, 49-54",
        license="none stated",
        description="Tweets that name a target; what is the opinion of it?",
        class_names=_THREE,
    ),
    _tweets,
)


def read_sentences(path: Path, side: str) -> list[LabeledSentence]:
    """Labeled sentences of a tab-separated file; an error names the line that is wrong."""
    header, *lines = _lines("SST-2", path)
    columns = header.split("\t")
    text = next((name for name in ("sentence", "content") if name in columns), None)
    if text is None or "label" not in columns:
        raise ValueError(
            f"{path}: line 1: the columns must be named, 'label' and 'sentence' or 'content' "
            f"(got {header[:60]!r})"
        )
    rows = []
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise ValueError(
                f"{path}: line {number}: expected {len(columns)} columns (got {len(cells)})"
            )
        named = dict(zip(columns, cells, strict=True))
        label = _label(path, number, named["label"], ("0", "1"))
        if not named[text].strip():
            raise ValueError(f"{path}: line {number}: the sentence is empty")
        rows.append(LabeledSentence(named[text], label, side))
    if not rows:
        raise ValueError(f"{path} holds no sentences")
    return rows


def read_tweets(path: Path, side: str) -> list[LabeledSentence]:
    """Tweets of three lines each; an error names the line that is wrong."""
    lines = _lines("the tweets", path)
    if len(lines) % 3:
        raise ValueError(
            f"{path} must have three lines for each tweet, text, target and label "
            f"(got {len(lines)} lines: is it whole?)"
        )
    rows = []
    for start in range(0, len(lines), 3):
        text, target, label = (line.strip() for line in lines[start : start + 3])
        if _TARGET not in text or not target:
            raise ValueError(
                f"{path}: line {start + 1}: expected a text with {_TARGET} in it, and a target "
                f"(got {text[:60]!r} and {target[:60]!r})"
            )
        which = _label(path, start + 3, label, ("-1", "0", "1"))
        rows.append(LabeledSentence(text.replace(_TARGET, target), which, side))
    return rows


def _lines(title: str, path: Path) -> list[str]:
    """Lines of a text; its sentences may contain other Unicode line breaks."""
    if not path.is_file():
        raise not_found(title, path)
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}: line {number}: this is not UTF-8 text") from error
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty")
    return [line.removesuffix("\r") for line in lines]


def _label(path: Path, number: int, got: str, valid: tuple[str, ...]) -> int:
    """The class of a label: its position among the valid ones."""
    if got not in valid:
        raise ValueError(
            f"{path}: line {number}: label must be one of {', '.join(valid)} (got {got[:60]!r})"
        )
    return valid.index(got)


def stratified(labels: Sequence[int], count: int, *, seed: int) -> list[int]:
    """Draw positions at random, stratified by class.

    Counts are off by fewer positions than there are classes. With the same seed, a smaller draw is
    a subset of a larger one.

    >>> labels = [0, 0, 0, 0, 0, 0, 1, 1, 1]
    >>> [labels[i] for i in stratified(labels, 6, seed=0)]
    [0, 0, 0, 0, 1, 1]
    """
    generator = torch.Generator().manual_seed(seed)
    ranked = []
    for label in sorted(set(labels)):
        members = [i for i, other in enumerate(labels) if other == label]
        order = torch.randperm(len(members), generator=generator).tolist()
        # Members of each class are spread evenly over [0, 1], so any prefix is proportional.
        ranked += [((rank + 0.5) / len(members), label, members[i]) for rank, i in enumerate(order)]
    return sorted(position for _, _, position in sorted(ranked)[:count])


def _subset(rows: Sequence[LabeledSentence], size: int | None, seed: int) -> list[int]:
    """Positions to use: ``size`` of the training sentences, and all others."""
    train = [i for i, row in enumerate(rows) if row.side == "train"]
    if size is None:
        return list(range(len(rows)))
    if not 1 <= operator.index(size) <= len(train):
        raise ValueError(f"size must be in 1..{len(train)}, the training sentences (got {size})")
    drawn = stratified([rows[i].label for i in train], size, seed=seed)
    chosen = {train[i] for i in drawn}
    return [i for i, row in enumerate(rows) if row.side != "train" or i in chosen]


#: Text files of the paper's graphs, and how many integers a line has.
_TABLES = {"node_indicator": 1, "edge_index": 2, "graph_labels": 1, "split_indices": 1}


def load_graph_sst2(root: Path) -> GraphDataset:
    """70,042 sentences of film reviews, class 1 positive (``graph_sst2/raw``).

    Nodes are words with 768 features of BERT, edges the arcs of the parser, both ways. Splits are
    the stored ones. ``words`` are the words of a graph, if the files have them.
    """
    return _stored(root, "graph_sst2", "Graph-SST2", _TWO, "Sentences of film reviews; opinion?")


def load_twitter(root: Path) -> GraphDataset:
    """6,940 tweets, classes negative, neutral, positive (``twitter/raw``).

    Nodes, edges and splits as for :func:`load_graph_sst2`.
    """
    return _stored(root, "twitter", "Graph-Twitter", _THREE, "Tweets on a topic; opinion?")


def _stored(
    root: Path, name: str, original: str, class_names: tuple[str, ...], description: str
) -> GraphDataset:
    place = _place(root, name, original)
    owner, ends, labels, sides = (
        _integers(place.with_name(f"{place.name}_{table}.txt"), columns)
        for table, columns in _TABLES.items()
    )
    owner, labels, sides = owner[:, 0] - 1, labels[:, 0], sides[:, 0]
    features = _features(place)
    wrong = _misfit(owner, ends, labels, sides, len(features), len(class_names))
    if wrong:
        path = place.with_name(f"{place.name}_{wrong}.txt")
        raise ValueError(f"{path} does not fit together with the files beside it")
    sizes = np.bincount(owner, minlength=len(labels))
    starts = np.cumsum(sizes) - sizes
    of_edge = owner[ends[:, 0]]
    order = np.argsort(of_edge, kind="stable")
    local = torch.from_numpy((ends - starts[of_edge][:, None])[order].T.copy())
    # Reversed arcs go first, as in the published graphs.
    arcs = torch.split(local, np.bincount(of_edge, minlength=len(labels)).tolist(), dim=1)
    parts = torch.split(torch.from_numpy(features), sizes.tolist())
    graphs = [
        # A view would carry the features of all graphs along when one graph is pickled.
        Data(x=x.clone(), edge_index=torch.cat([e.flip(0), e], dim=1), y=torch.tensor([label]))
        for x, e, label in zip(parts, arcs, labels.tolist(), strict=True)
    ]
    _add_words(place.with_name(f"{place.name}_sentence_tokens.json"), graphs)
    dataset = GraphDataset(
        name,
        tuple(graphs),
        len(class_names),
        {
            side: np.flatnonzero(sides == i).tolist()
            for i, side in enumerate(("train", "val", "test"))
        },
        source="Yuan et al., Explainability in Graph Neural Networks: A Taxonomic Survey",
        license="none stated",
        description=description,
        class_names=class_names,
    )
    return warn_if_unlike_the_paper(dataset)


def _place(root: Path, name: str, original: str) -> Path:
    """What the paths of the files begin with."""
    for prefix in (name, original):
        folder = root / prefix / "raw"
        if (folder / f"{prefix}_graph_labels.txt").is_file():
            needed = [f"{prefix}_{table}.txt" for table in _TABLES]
            missing = [file for file in needed if not (folder / file).is_file()]
            if missing:
                raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}")
            return folder / prefix
    files = [f"{name}_{table}.txt" for table in _TABLES]
    files += [f"{name}_node_features.npy (or .npz, .pkl)", f"{name}_sentence_tokens.json"]
    raise FileNotFoundError(
        f"{name} is not in {root / name / 'raw'}, and there is nowhere to download it from; put "
        f"{', '.join(files)} there, or pass root=... or set GSTARX_DATA to where they are. "
        "Graphs of the same sentences are made from the texts by 'sst2' and 'tweets'"
    )


def _integers(path: Path, columns: int) -> NDArray[np.int64]:
    """A text file of integers, ``columns`` to a line; blank lines are skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy only warns of an empty file
            table = np.loadtxt(path, dtype=np.int64, ndmin=2)
        if table.shape[1] != columns:
            raise ValueError(f"it must have {columns} columns (got {table.shape[1]})")
    except (ValueError, OverflowError, UserWarning) as error:
        raise ValueError(f"{path} is not a readable table of integers: {error}") from error
    return table


def _features(place: Path) -> NDArray[Any]:
    """The features of all nodes, as float32; float16 stays."""
    paths = [place.with_name(f"{place.name}_node_features.{k}") for k in ("npy", "npz", "pkl")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{place.parent} lacks {paths[0].name} (or .npz, .pkl)")
    if path.suffix == ".pkl":
        arrays = list(read_arrays(path))
    elif path.suffix == ".npz":
        arrays = list(archive(path).values())
    else:
        arrays = [array(path)]
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].dtype.kind != "f":
        got = ", ".join(f"{each.dtype} {each.shape}" for each in arrays)
        raise ValueError(f"{path} must hold one matrix of floating-point numbers (got {got})")
    is_float = arrays[0].dtype in (np.float16, np.float32)
    return arrays[0] if is_float else arrays[0].astype(np.float32)


def _misfit(
    owner: NDArray[np.int64],
    ends: NDArray[np.int64],
    labels: NDArray[np.int64],
    sides: NDArray[np.int64],
    nodes: int,
    classes: int,
) -> str:
    """The table that contradicts the others, if one does."""

    def outside(values: NDArray[np.int64], high: int) -> bool:
        return bool(((values < 0) | (values >= high)).any())

    if len(owner) != nodes or outside(owner, len(labels)) or (np.diff(owner, prepend=0) < 0).any():
        return "node_indicator"
    if outside(labels, classes):
        return "graph_labels"
    if len(sides) != len(labels) or outside(sides, 3):
        return "split_indices"
    if outside(ends, nodes) or (owner[ends[:, 0]] != owner[ends[:, 1]]).any():
        return "edge_index"
    return ""


def _add_words(path: Path, graphs: list[Data]) -> None:
    """Set ``words`` on every graph, or on none if they do not fit."""
    if not path.is_file():
        _LOG.warning("there is no %s: graphs have no words", path)
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error
    first = 0 if "0" in stored else 1
    words = [stored.get(str(number + first)) for number in range(len(graphs))]
    for number, (tokens, graph) in enumerate(zip(words, graphs, strict=True)):
        if not isinstance(tokens, list) or len(tokens) != graph.num_nodes:
            _LOG.warning("%s does not fit graph %d: graphs have no words", path, number)
            return
    for tokens, graph in zip(words, graphs, strict=True):
        graph.words = [str(word) for word in tokens]
