"""SST-2 and the tweets, parsed from their sentences."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from gstarx.datasets import GraphDataset
from gstarx_bench.datasets.cache import cached_graphs
from gstarx_bench.datasets.raw_files import not_found
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

__all__ = ["load_sst2", "load_tweets", "sentence_graph", "text_graphs"]

#: Version of :func:`text_graphs` for stored graphs.
_VERSION = 1
_SPLIT_SEED = 2
_VALIDATION_SHARE = 0.1
_TARGET = "$T$"


@dataclass(frozen=True)
class LabeledSentence:
    """A text, its class, and its split: ``"train"``, ``"val"`` or ``"test"``."""

    text: str
    label: int
    side: str


def load_sst2(
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
    """70,042 phrases of film reviews, class 1 positive (``SST-2/{train,dev,test}.tsv``).

    The sentences are those of the paper's GraphSST2 and are parsed by the same rule, but with a
    different parser and word vectors, so figures differ from the paper's. The split is the stored
    one; ``"val"`` is ``dev.tsv``.

    Parameters
    ----------
    root
        Directory that holds ``SST-2``. Each file has a header with its columns, ``label`` and
        ``sentence`` or ``content``, separated by a tab.
    size
        Number of training sentences to use, drawn by ``seed`` and stratified by class. All are
        used by default; validation and test sets are always complete.
    seed
        For ``size``. A smaller set is a subset of a larger one with the same seed.
    parser, encoder, dtype, device, progress
        As for :func:`text_graphs`. In half precision (``dtype=torch.float16``) the features take
        0.55 GB instead of 1.1; networks must then convert them.

    Notes
    -----
    Parsing and embedding all sentences takes several minutes. The graphs are then cached under a
    key of the sentences and models (:func:`gstarx_bench.datasets.cache.cached_graphs`), and read
    without the models.
    """
    folder = root / "SST-2"
    files = {"train": "train.tsv", "val": "dev.tsv", "test": "test.tsv"}
    paths = [folder / name for name in files.values()]
    rows = [
        row
        for side, path in zip(files, paths, strict=True)
        for row in read_sentences(_existing("SST-2", path), side)
    ]
    about = GraphDataset(
        "sst2",
        (),
        2,
        {},
        source="Socher et al., EMNLP 2013, 1631-1642; phrases and split as in GLUE",
        license="none stated",
        description="Phrases of film reviews; is the opinion positive?",
        class_names=("negative", "positive"),
    )
    positions = _subset(rows, size, seed)
    return _load(
        about,
        paths,
        rows,
        positions,
        parser=parser,
        encoder=encoder,
        dtype=dtype,
        device=device,
        progress=progress,
    )


def load_tweets(
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
    """6,940 tweets on a target, negative, neutral or positive (``twitter/{train,test}.raw``).

    The target is inserted into the text. The test split is the stored one; ``"val"`` is a tenth of
    the training file, drawn with a fixed seed and stratified by class.

    Parameters
    ----------
    root
        Directory that holds ``twitter``. Each tweet has three lines: a text with ``$T$`` for the
        target, the target, and the label -1, 0 or 1, which becomes class 0, 1 or 2.
    size, seed, parser, encoder, dtype, device, progress
        As for :func:`load_sst2`; ``size`` counts the tweets that remain for training.
    """
    paths = [root / "twitter" / f"{side}.raw" for side in ("train", "test")]
    train, test = (
        read_tweets(_existing("the tweets", path), side)
        for path, side in zip(paths, ("train", "test"), strict=True)
    )
    held_out = set(
        stratified(
            [row.label for row in train], round(_VALIDATION_SHARE * len(train)), seed=_SPLIT_SEED
        )
    )
    train = [replace(row, side="val") if i in held_out else row for i, row in enumerate(train)]
    about = GraphDataset(
        "tweets",
        (),
        3,
        {},
        source="Dong et al., ACL 2014, 49-54",
        license="none stated",
        description="Tweets that name a target; what is the opinion of it?",
        class_names=("negative", "neutral", "positive"),
    )
    rows = [*train, *test]
    positions = _subset(rows, size, seed)
    return _load(
        about,
        paths,
        rows,
        positions,
        parser=parser,
        encoder=encoder,
        dtype=dtype,
        device=device,
        progress=progress,
    )


def read_sentences(path: Path, side: str) -> list[LabeledSentence]:
    """Labeled sentences of a tab-separated file; an error names the line that is wrong."""
    header, *lines = _lines(path)
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
        rows.append(_row(path, number, named[text], label, side))
    if not rows:
        raise ValueError(f"{path} holds no sentences")
    return rows


def read_tweets(path: Path, side: str) -> list[LabeledSentence]:
    """Tweets of three lines each; an error names the line that is wrong."""
    lines = _lines(path)
    if len(lines) % 3:
        raise ValueError(
            f"{path} must have three lines for each tweet, text, target and label "
            f"(got {len(lines)} lines: is it whole?)"
        )
    rows = []
    for start in range(0, len(lines), 3):
        text, target, label = (line.strip() for line in lines[start : start + 3])
        if _TARGET not in text:
            raise ValueError(
                f"{path}: line {start + 1}: expected a text with {_TARGET} in it "
                f"(got {text[:60]!r})"
            )
        if not target:
            raise ValueError(f"{path}: line {start + 2}: expected the target (got a blank line)")
        which = _label(path, start + 3, label, ("-1", "0", "1"))
        rows.append(_row(path, start + 1, text.replace(_TARGET, target), which, side))
    return rows


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
    try:
        count = operator.index(size)
    except TypeError:
        raise TypeError(f"size must be a whole number or None (got {size!r})") from None
    if not 1 <= count <= len(train):
        raise ValueError(f"size must be in 1..{len(train)}, the training sentences (got {size})")
    drawn = stratified([rows[i].label for i in train], count, seed=seed)
    chosen = {train[i] for i in drawn}
    return [i for i, row in enumerate(rows) if row.side != "train" or i in chosen]


def _load(
    about: GraphDataset,
    paths: Sequence[Path],
    rows: Sequence[LabeledSentence],
    positions: Sequence[int],
    *,
    parser: ParserLike,
    encoder: EncoderLike,
    dtype: torch.dtype,
    device: str | torch.device,
    progress: bool,
) -> GraphDataset:
    """The graphs of the selected rows, from the cache if they are there."""
    # Loaded once: both identifying a model and using it need it.
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
        paths,
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


def _existing(title: str, path: Path) -> Path:
    if not path.is_file():
        raise not_found(title, path)
    return path


def _lines(path: Path) -> list[str]:
    """Lines of a text; its sentences may contain other Unicode line breaks."""
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {number}: this is not UTF-8 text ({error.reason})"
        ) from error
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


def _row(path: Path, number: int, text: str, label: int, side: str) -> LabeledSentence:
    if not text.strip():
        raise ValueError(f"{path}: line {number}: the sentence is empty")
    return LabeledSentence(text, label, side)
