"""Error of the sampled Banzhaf value as the budget grows, beside plain least squares.

100 players with random worths of their own, of pairs and of triples. Error: RMSE over the standard
deviation of the true values, over 20 seeds. Draws docs/figures/banzhaf-error.svg.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.interactions import interaction_game
from gstarx.drawing.picture import Picture, Scene, card
from gstarx.drawing.plots import Axis, horizontal, vertical
from gstarx.drawing.svg import LINES, MUTED, element, group, label, number
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


def drawing(curves: dict[str, list[float]]) -> Picture:
    width, height, left, top, bottom = 640.0, 360.0, 48.0, 28.0, 316.0
    right = width - 16
    across, up = Axis(80, 820, left, right), Axis(0, 2.8, bottom, top)
    parts = [
        *vertical(up, left, right, "error over the spread of the values"),
        *horizontal(across, top, bottom, "evaluations, of 100 players", grid=False),
    ]
    colors = {"least squares": MUTED, "banzhaf_value_sampled": LINES[1]}
    for (name, errors), level in zip(curves.items(), (40.0, 64.0), strict=True):
        points = [(across(b), up(e)) for b, e in zip(BUDGETS, errors, strict=True)]
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        look = {"stroke": colors[name], "stroke_width": 2.0, "fill": "none"}
        dashes = "7 3" if name == "least squares" else None
        parts.append(element("path", d=path, stroke_dasharray=dashes, **look))
        sample = f"M{number(right - 210)} {number(level)}h28"
        parts.append(element("path", d=sample, stroke_dasharray=dashes, **look))
        parts.append(label(right - 174, level + 4, name, size=12))
    described = "; ".join(
        f"{name} {errors[0]:.2f} at 100, {errors[BUDGETS.index(200)]:.2f} at 200, "
        f"{errors[-1]:.2f} at 800"
        for name, errors in curves.items()
    )
    return card(
        Scene(width, height, group(*parts)),
        title=None,
        alternative="Error of the sampled Banzhaf value against the budget",
        description=f"Error over the spread of the values: {described}.",
    )


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
    drawing(curves).save(PICTURE)
    print(f"drawn to {PICTURE.name}")
