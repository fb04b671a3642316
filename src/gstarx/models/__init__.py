"""The paper's graph neural networks, and models saved with what is known about them."""

from gstarx.models.networks import GAT, GCN, GIN, Network
from gstarx.models.sources import LoadedNetwork as LoadedNetwork
from gstarx.models.sources import ModelSourceError as ModelSourceError
from gstarx.models.sources import features_of as features_of
from gstarx.models.sources import load_source as load_source
from gstarx.models.sources import load_weights as load_weights
from gstarx.models.sources import pretrained, pretrained_names
from gstarx.models.sources import shipped_path as shipped_path
from gstarx.models.splits import SplitRecord as SplitRecord
from gstarx.models.weights import ARCHITECTURES as ARCHITECTURES
from gstarx.models.weights import ModelFacts, digest, load_model, save_model

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "ModelFacts",
    "Network",
    "digest",
    "load_model",
    "pretrained",
    "pretrained_names",
    "save_model",
]
