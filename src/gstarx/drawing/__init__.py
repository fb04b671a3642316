"""Drawings of explanations: molecules, sentences, graphs, curves and intervals."""

from gstarx.drawing.colors import score_color as score_color
from gstarx.drawing.comparison import compare
from gstarx.drawing.comparison import scored as scored
from gstarx.drawing.dispatch import Subject as Subject
from gstarx.drawing.dispatch import draw
from gstarx.drawing.frame import card as card
from gstarx.drawing.frame import color_bar as color_bar
from gstarx.drawing.geometry import Geometry, geometry
from gstarx.drawing.graph import draw_graph
from gstarx.drawing.matplotlib_plots import curves_ax, intervals_ax, scores_ax
from gstarx.drawing.molecule import GroupScore, aggregate, draw_molecule
from gstarx.drawing.painted import Painted as Painted
from gstarx.drawing.picture import Picture
from gstarx.drawing.picture import write_file as write_file
from gstarx.drawing.plots import NAMES as NAMES
from gstarx.drawing.plots import plot_curves, plot_intervals
from gstarx.drawing.sentence import draw_sentence
from gstarx.drawing.svg import decimal as decimal
from gstarx.drawing.svg import signed as signed

__all__ = [
    "Geometry",
    "GroupScore",
    "Picture",
    "aggregate",
    "compare",
    "curves_ax",
    "draw",
    "draw_graph",
    "draw_molecule",
    "draw_sentence",
    "geometry",
    "intervals_ax",
    "plot_curves",
    "plot_intervals",
    "scores_ax",
]
