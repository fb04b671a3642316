"""Drawings of explanations: molecules, sentences, graphs, curves and intervals."""

from gstarx.drawing.comparison import NO_VERDICT as NO_VERDICT
from gstarx.drawing.comparison import WORSE as WORSE
from gstarx.drawing.comparison import compare
from gstarx.drawing.dispatch import Scored as Scored
from gstarx.drawing.dispatch import Subject as Subject
from gstarx.drawing.dispatch import class_name as class_name
from gstarx.drawing.dispatch import draw, prediction_caption
from gstarx.drawing.dispatch import output_name as output_name
from gstarx.drawing.dispatch import scored as scored
from gstarx.drawing.geometry import Geometry, geometry
from gstarx.drawing.graph import draw_graph
from gstarx.drawing.groups import GroupScore, aggregate, group_scores
from gstarx.drawing.interactions import draw_interactions
from gstarx.drawing.matplotlib_plots import curves_ax, intervals_ax, scores_ax
from gstarx.drawing.molecule import draw_molecule
from gstarx.drawing.painted import at_stake_in as at_stake_in
from gstarx.drawing.painted import color_limit as color_limit
from gstarx.drawing.painted import faint_words as faint_words
from gstarx.drawing.painted import is_faint as is_faint
from gstarx.drawing.picture import MARKS as MARKS
from gstarx.drawing.picture import Picture
from gstarx.drawing.picture import card as card
from gstarx.drawing.picture import color_bar as color_bar
from gstarx.drawing.picture import write_file as write_file
from gstarx.drawing.plots import NAMES as NAMES
from gstarx.drawing.plots import plot_curves, plot_intervals
from gstarx.drawing.sentence import draw_sentence
from gstarx.drawing.summary import summary_chart
from gstarx.drawing.svg import score_color as score_color
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
    "draw_interactions",
    "draw_molecule",
    "draw_sentence",
    "geometry",
    "group_scores",
    "intervals_ax",
    "plot_curves",
    "plot_intervals",
    "prediction_caption",
    "scores_ax",
    "summary_chart",
]
