"""SST-2 and the tweets: how their files are read, split and stored, whatever makes the graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx_bench.datasets import text
from gstarx_bench.datasets.text import (
    load_sst2,
    load_tweets,
    read_sentences,
    read_tweets,
    stratified,
)
from tests.shared import DATA

TRAIN = [(i % 3 == 0, f"train {i} ...") for i in range(30)]
DEV = [(True, "a dev"), (False, "another dev")]
TEST = [(False, "crème brûlée"), (True, "t"), (True, "u v w")]
POLARITIES = [-1, 0, 0, 1] * 10


def table(rows: Sequence[tuple[bool, str]], column: str = "sentence") -> str:
    return f"label\t{column}\n" + "".join(f"{int(label)}\t{words}\n" for label, words in rows)


def tweets(count: int, labels: Sequence[int] = POLARITIES) -> str:
    return "".join(f"no. {i} $T$ and $T$ .\nthe thing\n{labels[i]}\n" for i in range(count))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both datasets in small, and a place to store graphs."""
    monkeypatch.setenv("GSTARX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "twitter").mkdir()
    for name, rows, column in (
        ("train", TRAIN, "sentence"),
        ("dev", DEV, "content"),
        ("test", TEST, "content"),
    ):
        path = tmp_path / "SST-2" / f"{name}.tsv"
        path.write_text(table(rows, column), encoding="utf-8")
    (tmp_path / "twitter" / "train.raw").write_text(tweets(40), encoding="utf-8")
    (tmp_path / "twitter" / "test.raw").write_text(tweets(4), encoding="utf-8")
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Graphs of the right words and wrong numbers, and how they were asked for."""
    asked: list[dict[str, Any]] = []

    def graphs(sentences: list[str], labels: list[int], **options: Any) -> list[Data]:
        asked.append(options)
        return [
            Data(
                x=torch.full((len(words.split()), 4), 0.1, dtype=options["dtype"]),
                edge_index=torch.zeros(2, 0, dtype=torch.long),
                words=words.split(),
                y=torch.tensor([label]),
            )
            for words, label in zip(sentences, labels, strict=True)
        ]

    monkeypatch.setattr(text, "text_graphs", graphs)
    return asked


def test_sst2_as_stored(root: Path, made: list[dict[str, Any]]) -> None:
    data = load("sst2", root)
    assert repr(data) == "GraphDataset('sst2', 35 graphs, 2 classes)"
    assert [" ".join(graph.words) for graph in data] == [words for _, words in TRAIN + DEV + TEST]
    assert [int(graph.y) for graph in data] == [int(label) for label, _ in TRAIN + DEV + TEST]
    assert data.split_indices == {
        "train": list(range(30)),
        "val": [30, 31],
        "test": [32, 33, 34],
    }
    assert data.class_names == ("negative", "positive")


def test_tweets_with_their_targets(root: Path, made: list[dict[str, Any]]) -> None:
    data = load("tweets", root)
    assert repr(data) == "GraphDataset('tweets', 44 graphs, 3 classes)"
    assert " ".join(data[7].words) == "no. 7 the thing and the thing ."
    assert [int(graph.y) for graph in data[:5]] == [0, 1, 1, 2, 0]
    split = data.split_indices
    assert split["test"] == [40, 41, 42, 43]
    assert {side: len(part) for side, part in split.items()} == {"train": 36, "val": 4, "test": 4}
    assert sorted(split["train"] + split["val"]) == list(range(40))
    assert Counter(int(data[i].y) for i in split["val"]) == {0: 1, 1: 2, 2: 1}
    assert data.class_names == ("negative", "neutral", "positive")


def test_graphs_are_made_once(root: Path, made: list[dict[str, Any]]) -> None:
    first, again = load("sst2", root), load("sst2", root, progress=False)
    assert len(made) == 1
    assert first.digest == again.digest
    assert [graph.words for graph in first] == [graph.words for graph in again]
    (root / "SST-2" / "dev.tsv").write_text(table(DEV[:1]))
    assert len(load("sst2", root)) == 34
    assert len(made) == 2


def test_features_are_stored_in_half_and_given_in_full(
    root: Path, made: list[dict[str, Any]]
) -> None:
    half = torch.tensor(0.1, dtype=torch.float16)
    for dtype in (torch.float32, torch.float16, torch.float64):
        data = load_sst2(root, dtype=dtype)
        assert {graph.x.dtype for graph in data} == {dtype}
        assert float(data[0].x[0, 0]) == float(half)
    assert load_sst2(root)[0].x.dtype == torch.float32
    assert [options["dtype"] for options in made] == [torch.float16]


def test_options_reach_the_graphs(root: Path, made: list[dict[str, Any]]) -> None:
    load_tweets(root, device="meta", progress=False)
    assert made == [
        {
            "parser": None,
            "encoder": None,
            "dtype": torch.float16,
            "device": "meta",
            "progress": False,
        }
    ]


def test_other_models_make_other_graphs(
    root: Path, made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "load_parser", lambda parser: f"loaded {parser}")
    monkeypatch.setattr(text, "load_encoder", lambda encoder, device: f"loaded {encoder}")
    monkeypatch.setattr(text, "parser_identity", str)
    monkeypatch.setattr(text, "encoder_identity", str)
    for options in ({}, {"parser": "p"}, {"encoder": "e"}, {"parser": "e"}, {"encoder": "e"}):
        load_sst2(root, **options)
    assert [(options["parser"], options["encoder"]) for options in made] == [
        (None, None),
        ("loaded p", None),
        (None, "loaded e"),
        ("loaded e", None),
    ]


def test_a_part_of_the_training_sentences(root: Path, made: list[dict[str, Any]]) -> None:
    data = load("sst2", root, size=12)
    assert {side: len(part) for side, part in data.split_indices.items()} == {
        "train": 12,
        "val": 2,
        "test": 3,
    }
    assert sum(int(graph.y) for graph in data.split("train")) == 4  # a third, as in the file
    whole = load("sst2", root)
    assert data.split("test")[0].words == whole.split("test")[0].words
    words = {" ".join(graph.words) for graph in data.split("train")}
    assert words < {" ".join(graph.words) for graph in whole.split("train")}
    larger = load("sst2", root, size=20)
    assert words < {" ".join(graph.words) for graph in larger.split("train")}
    other = load("sst2", root, size=12, seed=3)
    assert words != {" ".join(graph.words) for graph in other.split("train")}
    assert len(made) == 4
    assert load("sst2", root, size=12).digest == data.digest
    assert load("sst2", root, size=30).digest == whole.digest
    assert len(made) == 4


def test_validation_tweets_stay_whatever_the_size(root: Path, made: list[dict[str, Any]]) -> None:
    whole = {tuple(graph.words) for graph in load("tweets", root).split("val")}
    for options in ({"size": 5}, {"size": 36}, {"size": 9, "seed": 7}):
        part = load("tweets", root, **options)
        assert {tuple(graph.words) for graph in part.split("val")} == whole
        assert len(part.split("train")) == options["size"]


@pytest.mark.parametrize(("name", "most"), [("sst2", 30), ("tweets", 36)])
def test_sizes_that_cannot_be(name: str, most: int, root: Path, made: list[dict[str, Any]]) -> None:
    for size in (0, -1, most + 1):
        with pytest.raises(ValueError, match=rf"size must be in 1..{most}, .*\(got {size}\)"):
            load(name, root, size=size)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        load(name, root, size=0.5)
    assert len(load(name, root, size=1).split("train")) == 1


@pytest.mark.parametrize("file", ["SST-2/dev.tsv", "twitter/train.raw"])
def test_a_file_that_is_missing(file: str, root: Path, made: list[dict[str, Any]]) -> None:
    (root / file).unlink()
    with pytest.raises(FileNotFoundError, match=r"is not at .*GSTARX_DATA") as caught:
        load("sst2" if file.startswith("SST") else "tweets", root)
    assert str(root / file) in str(caught.value)
    assert made == []


def test_columns_go_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    # breaks that only some call line breaks, as sentences have them
    path.write_bytes("sentence\tlabel\r\na \x85b\u2028 c \t1\r\n d\t0".encode())
    rows = read_sentences(path, "val")
    assert [(row.text, row.label, row.side) for row in rows] == [
        ("a \x85b\u2028 c ", 1, "val"),
        (" d", 0, "val"),
    ]


def test_a_table_that_is_garbled(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    for content, message in (
        ("", "is empty"),
        ("label\tsentence\n", "holds no sentences"),
        ("index\tsentence\n0\tgood\n", r"line 1: the columns must be named.*\(got 'index\\tsent"),
        ("label\ttext\n0\tgood\n", r"line 1: the columns must be named"),
        ("0\tgood\n", "line 1: the columns must be named"),
        ("label\tsentence\n1\tgood\n0\n", r"line 3: expected 2 columns \(got 1\)"),
        ("label\tsentence\n1\tgood\tbad\n", r"line 2: expected 2 columns \(got 3\)"),
        ("label\tsentence\n1\tgood\n\n0\tbad\n", r"line 3: expected 2 columns \(got 1\)"),
        ("label\tsentence\n2\tgood\n", r"line 2: label must be one of 0, 1 \(got '2'\)"),
        ("label\tsentence\n\tgood\n", r"line 2: label must be one of 0, 1 \(got ''\)"),
        ("label\tsentence\n1\tgood\n1\t \n", "line 3: the sentence is empty"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=message) as caught:
            read_sentences(path, "train")
        assert str(path) in str(caught.value)


def test_tweets_that_are_garbled(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    for content, message in (
        ("", "is empty"),
        ("a $T$\nb\n1\na $T$\nb\n", r"three lines for each tweet.*\(got 5 lines: is it whole\?\)"),
        (
            "a $T$\nb\n1\na b\nb\n1\n",
            r"line 4: expected a text with \$T\$ in it, .*\(got 'a b' and",
        ),
        ("a $T$\n \n1\n", r"line 1: expected a text with .*, and a target \(got 'a \$T\$' and ''"),
        ("a $T$\nb\n2\n", r"line 3: label must be one of -1, 0, 1 \(got '2'\)"),
        ("a $T$\nb\n0\na $T$\nb\npositive\n", r"line 6: label must be .* \(got 'positive'\)"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=message) as caught:
            read_tweets(path, "train")
        assert str(path) in str(caught.value)


def test_text_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv"
    path.write_bytes(table(DEV).encode() + b"1\tcr\xe8me\n")
    with pytest.raises(ValueError, match="line 4: this is not UTF-8 text"):
        read_sentences(path, "train")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.data(), st.integers(0, 9))
def test_drawing_keeps_the_shares_of_the_classes(
    labels: list[int], data: st.DataObject, seed: int
) -> None:
    count = data.draw(st.integers(0, len(labels)))
    drawn = stratified(labels, count, seed=seed)
    assert drawn == sorted(set(drawn))
    assert len(drawn) == count
    assert drawn == stratified(labels, count, seed=seed)
    found, classes = Counter(labels[i] for i in drawn), Counter(labels)
    for label, size in classes.items():
        assert abs(found[label] - count * size / len(labels)) < len(classes)
        if len(classes) == 2:
            assert abs(found[label] - count * size / len(labels)) <= 1
    fewer = data.draw(st.integers(0, count))
    assert set(stratified(labels, fewer, seed=seed)) <= set(drawn)


def test_drawing_is_random_and_leaves_torchs_generator_alone() -> None:
    before = torch.get_rng_state()
    drawn = {tuple(stratified([0, 1] * 20, 10, seed=seed)) for seed in range(5)}
    assert len(drawn) == 5
    assert torch.equal(torch.get_rng_state(), before)


def test_the_real_files() -> None:
    if not (DATA / "SST-2" / "train.tsv").is_file() or not (DATA / "twitter").is_dir():
        pytest.skip(f"SST-2 and the tweets are not in {DATA}")
    for name, count, positive in (
        ("train", 67_349, 37_569),
        ("dev", 872, 444),
        ("test", 1821, 909),
    ):
        rows = read_sentences(DATA / "SST-2" / f"{name}.tsv", name)
        assert (len(rows), sum(row.label for row in rows)) == (count, positive)
    for name, classes in (("train", (1560, 3127, 1561)), ("test", (173, 346, 173))):
        rows = read_tweets(DATA / "twitter" / f"{name}.raw", name)
        found = Counter(row.label for row in rows)
        assert tuple(found[label] for label in range(3)) == classes
        assert not any("$T$" in row.text for row in rows)
