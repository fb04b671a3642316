"""Which nodes mattered: explainers, inside PyG's `Explainer` and as plain functions."""

from gstarx.explainers.gstarx import FailedExplanation, GStarX, explain, explain_many
from gstarx.explainers.settings import ValueSettings

__all__ = ["FailedExplanation", "GStarX", "ValueSettings", "explain", "explain_many"]
