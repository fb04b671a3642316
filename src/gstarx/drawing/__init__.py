"""Drawings of explanations: molecules, sentences, graphs, curves and intervals."""

from gstarx.drawing.comparison import compare
from gstarx.drawing.dispatch import draw
from gstarx.drawing.geometry import Geometry, geometry
from gstarx.drawing.graph import draw_graph
from gstarx.drawing.groups import GroupScore, aggregate
from gstarx.drawing.molecule import draw_molecule
from gstarx.drawing.picture import Picture
from gstarx.drawing.plots import plot_curves, plot_intervals
from gstarx.drawing.sentence import draw_sentence

__all__ = [
    "Geometry",
    "GroupScore",
    "Picture",
    "aggregate",
    "compare",
    "draw",
    "draw_graph",
    "draw_molecule",
    "draw_sentence",
    "geometry",
    "plot_curves",
    "plot_intervals",
]
