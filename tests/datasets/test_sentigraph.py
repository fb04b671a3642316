"""Sentence graphs in the format of their authors."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gstarx.datasets import load
from gstarx_bench.datasets.raw_files import UnlikeThePaperWarning, UnsafePickleError

WORDS = [["a", "fine", "film"], ["dull"], ["not", "bad"], ["yes"]]
FEATURES = np.arange(7 * 4, dtype=np.float32).reshape(7, 4)


@pytest.fixture(params=[("twitter", "Graph-Twitter")])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, Path, str]:
    """Four small sentences; the name of the dataset, the folder, the beginning of file names."""
    name, prefix = request.param
    folder = tmp_path / prefix / "raw"
    folder.mkdir(parents=True)
    owner = [number + 1 for number, words in enumerate(WORDS) for _ in words]
    texts = {
        "node_indicator": "\n".join(map(str, owner)),
        "edge_index": "2 0\n2 1\n5 4\n",
        "graph_labels": "1\n0\n1\n1\n",
        "split_indices": "0\n0\n1\n2\n",
    }
    for table, text in texts.items():
        (folder / f"{prefix}_{table}.txt").write_text(text)
    np.save(folder / f"{prefix}_node_features.npy", FEATURES)
    tokens = {str(number): words for number, words in enumerate(WORDS)}
    (folder / f"{prefix}_sentence_tokens.json").write_text(json.dumps(tokens))
    return name, folder, prefix


def loaded(name: str, folder: Path) -> Any:
    with pytest.warns(UnlikeThePaperWarning, match=f"this {name} is not the paper's: 4 graphs"):
        return load(name, folder.parent.parent)


@pytest.mark.parametrize(
    "files", [("graph_sst2", "graph_sst2"), ("twitter", "Graph-Twitter")], indirect=True
)
def test_graphs_of_sentences(files: tuple[str, Path, str]) -> None:
    name, folder, _ = files
    dataset = loaded(name, folder)
    assert dataset.num_classes == {"graph_sst2": 2, "twitter": 3}[name]
    # reversed arcs, then the arcs; the last sentence has one word and none
    assert dataset[0].edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]
    assert dataset[1].edge_index.shape == (2, 0)
    assert dataset[2].edge_index.tolist() == [[0, 1], [1, 0]]
    assert dataset[3].edge_index.shape == (2, 0)
    assert [graph.words for graph in dataset] == WORDS
    assert [int(graph.y) for graph in dataset] == [1, 0, 1, 1]
    assert torch.equal(torch.cat([graph.x for graph in dataset]), torch.from_numpy(FEATURES))
    assert dataset.split_indices == {"train": [0, 1], "val": [2], "test": [3]}
    assert len(pickle.dumps(dataset[1].x)) < len(pickle.dumps(dataset[0].x)) + 1


def test_features_in_every_form(files: tuple[str, Path, str]) -> None:
    name, folder, prefix = files
    digest = loaded(name, folder).digest
    path = folder / f"{prefix}_node_features.npy"
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"lacks {prefix}_node_features\.npy \(or \.npz"):
        load(name, folder.parent.parent)
    path.with_suffix(".pkl").write_bytes(pickle.dumps(FEATURES.astype(np.float64)))
    assert loaded(name, folder).digest == digest
    np.savez(path.with_suffix(".npz"), features=FEATURES)
    assert loaded(name, folder).digest == digest
    path.with_suffix(".npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"node_features\.npz is not a readable archive"):
        load(name, folder.parent.parent)
    np.save(path, FEATURES.astype(np.float16))
    assert loaded(name, folder)[0].x.dtype == torch.float16


def test_features_that_run_something_are_refused(files: tuple[str, Path, str]) -> None:
    name, folder, prefix = files
    path = folder / f"{prefix}_node_features.npy"
    path.unlink()
    path.with_suffix(".pkl").write_bytes(pickle.dumps([print]))
    with pytest.raises(UnsafePickleError, match=r"refers to builtins\.print"):
        load(name, folder.parent.parent)


def test_features_that_are_none(files: tuple[str, Path, str]) -> None:
    name, folder, prefix = files
    path = folder / f"{prefix}_node_features.npy"
    content = path.read_bytes()
    for damaged in (b"text", content[:-9]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"node_features\.npy is not a readable array"):
            load(name, folder.parent.parent)
    for wrong in (FEATURES.astype(int), FEATURES[0]):
        np.save(path, wrong)
        with pytest.raises(ValueError, match=r"features\.npy must hold one matrix of floating"):
            load(name, folder.parent.parent)
    np.save(path, np.array([print]))
    with pytest.raises(ValueError, match=r"is not a readable array.*allow_pickle"):
        load(name, folder.parent.parent)


def test_one_edge_file_in_any_order(files: tuple[str, Path, str]) -> None:
    name, folder, prefix = files
    wanted = [graph.edge_index.tolist() for graph in loaded(name, folder)]
    (folder / f"{prefix}_edge_index.txt").write_text("5\t4\n\n2   0\n 2 1\n")
    assert [graph.edge_index.tolist() for graph in loaded(name, folder)] == wanted


def test_words_counted_from_one_or_missing(
    files: tuple[str, Path, str], caplog: pytest.LogCaptureFixture
) -> None:
    name, folder, prefix = files
    path = folder / f"{prefix}_sentence_tokens.json"
    path.write_text(json.dumps({str(i + 1): words for i, words in enumerate(WORDS)}))
    assert [graph.words for graph in loaded(name, folder)] == WORDS
    assert caplog.text == ""
    path.write_text(json.dumps({str(i): words[:1] for i, words in enumerate(WORDS)}))
    assert "words" not in loaded(name, folder)[0]
    assert "does not fit graph 0: graphs have no words" in caplog.text
    path.write_text("{")
    with pytest.raises(ValueError, match=r"sentence_tokens\.json is not readable JSON"):
        load(name, folder.parent.parent)
    path.unlink()
    assert "words" not in loaded(name, folder)[0]
    assert "there is no" in caplog.text


def test_tables_that_do_not_fit(files: tuple[str, Path, str]) -> None:
    name, folder, prefix = files
    misfits = {
        "edge_index": ["2 0\n2 7\n", "2 0\n-1 0\n", "2 0\n2 3\n"],
        "node_indicator": ["1\n1\n", "1\n1\n1\n2\n3\n2\n4\n", "0\n1\n1\n2\n3\n3\n4\n"],
        "graph_labels": ["1\n0\n3\n1\n", "1\n0\n-1\n1\n"],
        "split_indices": ["0\n0\n1\n3\n", "0\n0\n1\n"],
    }
    garbled = {"edge_index": ["2 0\n2\n", "2 0\n2 x\n", "2\n0\n"], "split_indices": [""]}
    for message, tables in (("does not fit together", misfits), ("is not a readable", garbled)):
        for table, texts in tables.items():
            path = folder / f"{prefix}_{table}.txt"
            whole = path.read_text()
            for text in texts:
                path.write_text(text)
                with pytest.raises(ValueError, match=rf"{prefix}_{table}\.txt {message}"):
                    load(name, folder.parent.parent)
            path.write_text(whole)


def test_files_that_are_missing(files: tuple[str, Path, str], tmp_path: Path) -> None:
    name, folder, prefix = files
    (folder / f"{prefix}_edge_index.txt").unlink()
    with pytest.raises(FileNotFoundError, match=rf"lacks {prefix}_edge_index\.txt"):
        load(name, folder.parent.parent)
    with pytest.raises(FileNotFoundError, match=f"{name} is not in .*nowhere to download") as error:
        load(name, tmp_path / "nowhere")
    for part in ("node_indicator.txt", "node_features.npy", "sentence_tokens.json", "GSTARX_DATA"):
        assert part in str(error.value)
