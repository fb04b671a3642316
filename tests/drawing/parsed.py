"""Pictures taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import torch
from torch_geometric.data import Data

from gstarx.drawing import Picture

SVG = "{http://www.w3.org/2000/svg}"


def sentence(words: Sequence[str], edges: Any) -> Data:
    """Words, and which of them are joined: pairs of positions, or an ``edge_index``."""
    joined = torch.as_tensor(edges)
    joined = joined if joined.numel() else torch.zeros(2, 0, dtype=torch.long)
    return Data(words=words, edge_index=joined, num_nodes=len(words))


def parsed(picture: Picture) -> Element:
    """The root of a picture, which must be well-formed XML."""
    return ElementTree.fromstring(picture.svg)


def elements(picture: Picture, tag: str) -> list[Element]:
    return list(parsed(picture).iter(SVG + tag))


def texts(picture: Picture) -> list[str]:
    """Everything that is written in a picture, in order."""
    return [part.text or "" for part in elements(picture, "text")]


def tips(picture: Picture) -> dict[str, Element]:
    """By what is said when the pointer rests on it, the element that has something said of it."""
    return {
        (part.text or ""): parent
        for parent in parsed(picture).iter()
        for part in parent
        if part.tag == SVG + "title" and parent.tag != SVG + "svg"
    }


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colors (WCAG 2): 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    encoded = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in encoded]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
