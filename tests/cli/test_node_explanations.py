"""`gstarx explain --nodes`: nodes of one graph."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import Explanation, explain_nodes
from tests.cli.commands import found, gstarx, refused, scores

MODULE = """
import torch
from torch_geometric.nn import GCNConv


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def network():
    return Network().eval()
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    """A ring of twelve nodes and one without edges, in a file beside a network of one's own."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_node_network.py").write_text(MODULE)
    ring = torch.arange(12)
    ends = torch.stack([ring, (ring + 1) % 12])
    made = Data(x=torch.randn(13, 4, generator=torch.Generator().manual_seed(1)))
    made.edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    np.savez(tmp_path / "ring.npz", x=made.x.numpy(), edge_index=made.edge_index.numpy())
    return made


OWN = ("explain", "--file", "ring.npz", "--model", "own_node_network:network")


def test_nodes_have_the_scores_of_the_function(graph: Data, tmp_path: Path) -> None:
    options = ("--option", "value=shapley", "--option", "players=edges", "--seed", 3)
    records = found(*OWN, "--nodes", "4,7-8", *options)
    model = importlib.import_module("own_node_network").network()
    expected = explain_nodes(
        model, graph, [4, 7, 8], value="shapley", players="edges", seed=3, progress=False
    )
    assert [record["node"] for record in records] == [4, 7, 8]
    for record, explanation in zip(records, expected, strict=True):
        assert scores(record) == pytest.approx(explanation.scores.tolist(), abs=1e-6)
        again = Explanation.from_dict(record["explanation"])
        assert torch.equal(again.player_edges, explanation.player_edges)
        assert torch.equal(again.prediction[again.index], explanation.prediction[again.index])
    (tmp_path / "nodes.txt").write_text("4\n7\n8\n")
    done = gstarx(*OWN, "--nodes", "@nodes.txt", *options, "--output", "out.json")
    assert "node 4: class" in done.stdout
    assert not re.search(r"\d{10}", done.stdout)
    written = json.loads((tmp_path / "out.json").read_text())
    assert list(map(scores, written)) == list(map(scores, records))


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_there_is_a_bar_on_a_terminal(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for terminal in (False, True):
        monkeypatch.setattr("gstarx.cli.explain_command.show_progress", lambda: terminal)  # noqa: B023
        assert ("explaining: " in gstarx(*OWN, "--nodes", "4-5", *arguments).stderr) == terminal


def test_one_bad_node_does_not_cost_the_others(graph: Data) -> None:
    records = found(*OWN, "--nodes", "12,4", "--option", "players=edges", code=1)
    assert "no edge brings a message to node 12" in records[0]["error"]
    assert len(scores(records[1])) > 3


def test_what_is_wrong_is_reported(graph: Data) -> None:
    assert "positions must lie in 0..12" in refused(*OWN, "--nodes", "13")
    assert "cannot be read" in refused(*OWN, "--nodes", "@missing.txt")
    assert "--explainer gstarx" in refused(*OWN, "--nodes", "1", "--explainer", "random", code=2)
    assert "file.json" in refused(*OWN, "--nodes", "1", "--output", "a.csv", code=2)
    assert "numbers such as" in refused(*OWN, "--nodes", "", code=2)
    several = ("explain", "nitro", "1", "2", "--nodes", "1")
    assert "classifies graphs: leave --nodes out" in refused(*several)


@pytest.mark.usefixtures("graph")
def test_options_of_nodes_that_are_not_valid_are_refused() -> None:
    said = refused(*OWN, "--nodes", "4", "--baseline", "train", code=2)
    assert "with --nodes, write --option baseline=singletons, or a number" in said
    assert "got --baseline train" in said
    said = refused(*OWN, "--nodes", "4", "-o", "two_sided=maybe")
    assert "two_sided must be True or False (got 'maybe')" in said


def test_a_node_that_fails_in_a_run_is_called_a_node(graph: Data) -> None:
    options = ("--option", "players=edges", "--store", "s", "--workers", "1")
    gstarx("evaluate", *OWN[1:], "--nodes", "4,12", *options, code=1)
    (line,) = gstarx("runs", "show", "s").stdout.splitlines()
    assert line.startswith("node 12: ")
