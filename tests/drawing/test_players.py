"""Pictures of explanations whose players are edges, groups or features."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch_geometric.data import Data

from gstarx import explain
from gstarx.datasets import smiles_graph
from gstarx.drawing import draw, score_color
from gstarx.models import GCN
from gstarx.players import Edges, Features

SMILES = "CCOC(=O)c1ccccc1"
SVG = "{http://www.w3.org/2000/svg}"


def subject(kind: str) -> tuple[Any, Data]:
    torch.manual_seed(0)
    if kind == "molecule":
        data = smiles_graph(SMILES)
    else:
        ends = torch.tensor([[0, 1, 2, 2], [1, 2, 3, 0]])
        data = Data(x=torch.rand(4, 5), edge_index=torch.cat([ends, ends.flip(0)], 1))
        if kind == "sentence":
            data.words = ["not", "a", "bad", "film"]
    return GCN(data.num_features, 8, 2), data


def parsed(picture: Any) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg)


def test_edges_have_the_color_of_their_score_and_say_it() -> None:
    for kind in (
        "molecule",
        "graph",
        "sentence",
    ):
        model, data = subject(kind)
        explanation = explain(model, data, players="edges")
        limit = float(explanation.scores.abs().max())
        picture = draw(data, explanation, limit=limit)
        tag = "path" if kind == "sentence" else "line"
        strokes = [line.get("stroke") for line in parsed(picture).iter(f"{SVG}{tag}")]
        for score in explanation.scores.tolist():
            assert score_color(score, limit) in strokes
        assert " edge" in picture.svg
        tips = " ".join(t.text or "" for t in parsed(picture).iter(f"{SVG}title"))
        assert "-" in tips


def test_directions_of_an_edge_are_beside_each_other() -> None:
    model, data = subject("graph")
    explanation = explain(model, data, players=Edges(directed=True))
    lines = list(parsed(explanation.draw()).iter(f"{SVG}line"))
    drawn = {tuple(line.get(side) for side in ("x1", "y1", "x2", "y2")) for line in lines}
    assert len(drawn) >= 8


def test_every_group_has_an_outline_and_a_row() -> None:
    for players in (
        "brics",
        "rings",
    ):
        model, data = subject("molecule")
        explanation = explain(model, data, players=players)
        picture = draw(data, explanation)
        texts = [t.text for t in parsed(picture).iter(f"{SVG}text")]
        for name, nodes in zip(explanation.player_names, explanation.groups, strict=True):
            shown = (
                name if [name] != list(map(str, nodes)) else f"{_symbol(data, nodes[0])}{nodes[0]}"
            )
            assert any(shown[:8] in (text or "") for text in texts)


def _symbol(data: Data, node: int) -> str:
    from rdkit import Chem

    return str(Chem.MolFromSmiles(data.smiles).GetAtomWithIdx(node).GetSymbol())


def test_features_are_bars_as_long_as_their_scores() -> None:
    model, data = subject("graph")
    explanation = explain(model, data, players=Features(groups={"first two": [0, 1]}))
    picture = explanation.draw()
    texts = [t.text for t in parsed(picture).iter(f"{SVG}text")]
    assert "first two" in texts
    groups = (part for part in parsed(picture).iter(f"{SVG}g"))
    bars = [part.find(f"{SVG}path") for part in groups if part.find(f"{SVG}title") is not None]
    widths = []
    for bar in bars:
        places = re.findall(r"[\d.]+", bar.attrib["d"])
        widths.append(max(map(float, places[::2])) - min(map(float, places[::2])))
    ordered = explanation.scores.abs().sort(descending=True).values
    expected = max(widths) * ordered / ordered[0]
    assert widths == pytest.approx(expected.tolist(), abs=0.2)
