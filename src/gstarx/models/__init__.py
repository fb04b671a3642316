"""The networks of the paper, and its published weights."""

from gstarx.models.checkpoints import load_published_checkpoint
from gstarx.models.gcn import GCN

__all__ = ["GCN", "load_published_checkpoint"]
