"""Drawings of explanations: molecules, sentences, graphs, curves, and an HTML report."""

from gstarx.drawing.comparison import compare
from gstarx.drawing.dispatch import draw
from gstarx.drawing.geometry import Geometry, geometry
from gstarx.drawing.graph import draw_graph
from gstarx.drawing.groups import GroupScore, aggregate
from gstarx.drawing.molecule import draw_molecule
from gstarx.drawing.picture import Picture
from gstarx.drawing.plots import plot_curves, plot_intervals
from gstarx.drawing.report_building import gather
from gstarx.drawing.report_data import Explained, ExplainerRow, ReportData
from gstarx.drawing.report_writing import report, report_page
from gstarx.drawing.sentence import draw_sentence

__all__ = [
    "Explained",
    "ExplainerRow",
    "Geometry",
    "GroupScore",
    "Picture",
    "ReportData",
    "aggregate",
    "compare",
    "draw",
    "draw_graph",
    "draw_molecule",
    "draw_sentence",
    "gather",
    "geometry",
    "plot_curves",
    "plot_intervals",
    "report",
    "report_page",
]
