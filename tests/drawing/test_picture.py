"""Pictures as files and bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gstarx.drawing import Picture, draw
from tests.drawing.parsed import SVG, parsed, sentence

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def picture() -> Picture:
    return draw(sentence(["not", "bad"], [(0, 1)]), [0.6, -0.3], [0], title="Two words")


def png_size(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def test_it_says_what_it_shows(picture: Picture) -> None:
    root = parsed(picture)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Two words"
    said = root.findtext(f"{SVG}desc")
    assert said == "2 words. Highest scores: not +0.6. Lowest scores: bad −0.3. Selected: not."
    assert root.attrib["aria-label"] == f"Two words. {said}"


def test_a_png_has_the_requested_size(picture: Picture) -> None:
    width, height = picture.size
    for scale in (1, 2.5):
        content = picture.png(scale)
        assert content.startswith(PNG)
        assert png_size(content) == pytest.approx((width * scale, height * scale), abs=1)


def test_letters_are_drawn(picture: Picture) -> None:
    blank = Picture(picture.svg.replace(">not<", "><").replace(">bad<", "><"))
    assert len(picture.png()) > len(blank.png()) + 200


def test_the_suffix_says_what_is_written(picture: Picture, tmp_path: Path) -> None:
    svg = picture.save(tmp_path / "new" / "a.svg")
    assert svg.read_text(encoding="utf-8") == picture.svg
    png = picture.save(tmp_path / "b.PNG", scale=1)
    assert png.read_bytes() == picture.png(1)
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["a.svg", "b.PNG"]


def test_scales_and_suffixes_that_make_no_sense_are_refused(
    picture: Picture, tmp_path: Path
) -> None:
    for name in (
        "a.jpg",
        "a",
        "svg",
        "a.svg.txt",
    ):
        with pytest.raises(
            ValueError, match=rf"must end in '.svg', '.png' or '.pdf' \(got '{name}'\)"
        ):
            picture.save(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    for scale in (
        0,
        -1,
        float("nan"),
    ):
        with pytest.raises(ValueError, match="scale must be a number above 0"):
            picture.png(scale)

    with pytest.raises(ValueError, match=r"scale must be at most [\d.]+ for this picture"):
        picture.png(1000)


def test_a_directory_that_cannot_be_written_is_named(picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot write .*file/a\.svg: "):
        picture.save(tmp_path / "file" / "a.svg")


def test_notebooks_show_it(picture: Picture) -> None:
    assert picture._repr_svg_() == picture._repr_html_() == picture.svg


def test_a_title_makes_room_for_itself_up_to_a_limit() -> None:
    plain = draw("CO", [0.5, 0.0])
    smiles = "gstarx: CC(=O)Nc1ccc([N+](=O)[O-])cc1"
    titled = draw("CO", [0.5, 0.0], title=smiles)
    assert f">{smiles}<" in titled.svg
    # the width of these letters in DejaVu Sans Bold, one of the widest fonts that browsers use
    assert titled.size[0] - 32 >= 337.6
    assert plain.size[0] < titled.size[0]
    long = draw("CO", [0.5, 0.0], title=20 * smiles)
    assert long.size[0] < 600
    assert "…<" in long.svg
