"""The demo computes the paper's worked examples and says so."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx import demo
from gstarx.games import random_game, restricted_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import hn_value, myerson_value


def test_the_demo_agrees_with_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert "All as printed in the paper" in out
    assert "20,100" in out


def test_a_disagreement_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(demo.PAPER, "HN", ("1/2", "1/4", "1/4", "0"))
    assert demo.main() == 1
    assert "NOT AS printed" in capsys.readouterr().out


@pytest.mark.parametrize("node", range(3))
@pytest.mark.parametrize(("value", "allocate"), [("hn", hn_value), ("myerson", myerson_value)])
def test_marginal_contributions_add_up_to_the_value(node: int, value: str, allocate) -> None:
    path = CommunicationGraph(3, [(0, 1), (1, 2)])
    game = random_game(3, seed=7)
    worth = restricted_game(game, path)
    total = 0.0
    for S, weight in demo.marginal_weights(path, node, value=value).items():
        without = np.isin(np.arange(3), S)
        both = np.stack([without | (np.arange(3) == node), without])
        joined, left = worth(both)
        total += weight * (joined - left)
    assert total == pytest.approx(allocate(game, path).values[node], abs=1e-12)
