"""The pipeline of the command, runs, reports and the explorer: explain, select, evaluate."""

from gstarx.evaluation.pipeline import Evaluated, Pipeline, class_probabilities, recorded
from gstarx.evaluation.summary import SummaryRow, summarize

__all__ = [
    "Evaluated",
    "Pipeline",
    "SummaryRow",
    "class_probabilities",
    "recorded",
    "summarize",
]
