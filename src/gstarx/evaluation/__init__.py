"""The pipeline of the command, runs, reports and the explorer: explain, select, evaluate."""

from gstarx.evaluation.pipeline import Evaluated, Pipeline, class_probabilities, recorded

__all__ = ["Evaluated", "Pipeline", "class_probabilities", "recorded"]
