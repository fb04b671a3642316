"""Drawings of explanations: molecules, sentences, graphs, curves and intervals."""

from gstarx.drawing.charts import NAMES as NAMES
from gstarx.drawing.charts import (
    plot_curves,
    plot_intervals,
    scores_ax,
    summary_chart,
)
from gstarx.drawing.comparison import NO_VERDICT as NO_VERDICT
from gstarx.drawing.comparison import WORSE as WORSE
from gstarx.drawing.comparison import compare
from gstarx.drawing.draw import Subject as Subject
from gstarx.drawing.draw import class_name as class_name
from gstarx.drawing.draw import (
    draw,
    draw_interactions,
    geometry,
    prediction_caption,
)
from gstarx.drawing.draw import output_name as output_name
from gstarx.drawing.draw import scored as scored
from gstarx.drawing.geometry import Geometry
from gstarx.drawing.painted import GroupScore, group_scores
from gstarx.drawing.painted import Scored as Scored
from gstarx.drawing.painted import at_stake_in as at_stake_in
from gstarx.drawing.painted import color_limit as color_limit
from gstarx.drawing.painted import faint_words as faint_words
from gstarx.drawing.painted import is_faint as is_faint
from gstarx.drawing.picture import MARKS as MARKS
from gstarx.drawing.picture import Picture
from gstarx.drawing.picture import card as card
from gstarx.drawing.picture import color_bar as color_bar
from gstarx.drawing.picture import write_file as write_file
from gstarx.drawing.svg import score_color as score_color
from gstarx.drawing.svg import signed as signed

__all__ = [
    "Geometry",
    "GroupScore",
    "Picture",
    "compare",
    "draw",
    "draw_interactions",
    "geometry",
    "group_scores",
    "plot_curves",
    "plot_intervals",
    "prediction_caption",
    "scores_ax",
    "summary_chart",
]
