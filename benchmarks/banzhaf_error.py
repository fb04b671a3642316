"""Error of the sampled Banzhaf value as the budget grows, beside plain least squares.

100 players with random worths of their own, of pairs and of triples. Error: RMSE over the standard
deviation of the true values, over 20 seeds. Draws docs/figures/banzhaf-error.svg.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.interactions import interaction_game
from gstarx.drawing.svg import LINES, MUTED
from gstarx.games import Game
from gstarx.values import PrecisionWarning, banzhaf_value_sampled

BUDGETS = (100, 120, 140, 160, 180, 190, 200, 210, 220, 240, 260, 300, 350, 400, 500, 600, 800)
SEEDS = range(20)
PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "banzhaf-error.svg"


def least_squares(game: Game, n: int, budget: int, seed: int) -> NDArray[np.float64]:
    """The coefficients of an ordinary regression on the same kind of pairs."""
    drawn = np.random.default_rng(seed).random(((budget - 1) // 2, n)) < 0.5
    answers = game(drawn) - game(~drawn)
    return np.linalg.lstsq(2.0 * drawn - 1.0, answers, rcond=None)[0]


def drawing(curves: dict[str, list[float]]) -> Figure:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for (name, errors), color, style in zip(
        curves.items(), (MUTED, LINES[1]), ("--", "-"), strict=True
    ):
        ax.plot(BUDGETS, errors, color=color, linestyle=style, label=name)
    ax.set_xlabel("evaluations, of 100 players")
    ax.set_ylabel("error over the spread of the values")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y")
    ax.legend()
    return figure


def main() -> None:
    warnings.simplefilter("ignore", PrecisionWarning)
    game, known = interaction_game(100, seed=1)

    def error(values: list[NDArray[np.float64]]) -> float:
        return float(
            np.sqrt(np.mean((np.array(values) - known.banzhaf) ** 2)) / known.banzhaf.std()
        )

    curves: dict[str, list[float]] = {"least squares": [], "banzhaf_value_sampled": []}
    for budget in BUDGETS:
        plain = error([least_squares(game, 100, budget, seed) for seed in SEEDS])
        ours = error(
            [banzhaf_value_sampled(game, 100, budget=budget, seed=seed).values for seed in SEEDS]
        )
        for curve, found in zip(curves.values(), (plain, ours), strict=True):
            curve.append(found)
        print(f"{budget:4d} evaluations: least squares {plain:.3f}, ours {ours:.3f}", flush=True)
    with rc_context({"svg.hashsalt": "gstarx", "svg.fonttype": "none"}):
        drawing(curves).savefig(PICTURE, metadata={"Date": None})
    print(f"drawn to {PICTURE.name}")
