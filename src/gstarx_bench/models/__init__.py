"""Training networks, how well they predict, and the weights that the paper published."""

from gstarx_bench.models.checkpoints import load_published_checkpoint
from gstarx_bench.models.evaluation import accuracy
from gstarx_bench.models.recipes import Recipe, TrainingSettings, recipe
from gstarx_bench.models.training import TrainingResult, train

__all__ = [
    "Recipe",
    "TrainingResult",
    "TrainingSettings",
    "accuracy",
    "load_published_checkpoint",
    "recipe",
    "train",
]
