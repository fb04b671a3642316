"""The paper's graph neural networks, their published weights, training and saved models."""

from gstarx.models.checkpoints import load_published_checkpoint
from gstarx.models.evaluation import accuracy
from gstarx.models.networks import GAT, GCN, GIN, Network
from gstarx.models.recipes import Recipe, TrainingSettings, recipe
from gstarx.models.sources import LoadedNetwork as LoadedNetwork
from gstarx.models.sources import ModelSourceError as ModelSourceError
from gstarx.models.sources import features_of as features_of
from gstarx.models.sources import load_source as load_source
from gstarx.models.sources import load_weights as load_weights
from gstarx.models.sources import pretrained, pretrained_names
from gstarx.models.sources import shipped_path as shipped_path
from gstarx.models.splits import SplitRecord as SplitRecord
from gstarx.models.training import TrainingResult, train
from gstarx.models.weights import ModelFacts, digest, load_model, save_model

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "ModelFacts",
    "Network",
    "Recipe",
    "TrainingResult",
    "TrainingSettings",
    "accuracy",
    "digest",
    "load_model",
    "load_published_checkpoint",
    "pretrained",
    "pretrained_names",
    "recipe",
    "save_model",
    "train",
]
