"""A graph neural network as a cooperative game on nodes, evaluated in batches."""

from gstarx.gnn.baseline import ONLY_PLAYER as ONLY_PLAYER
from gstarx.gnn.baseline import RULES as RULES
from gstarx.gnn.baseline import SINGLETONS as SINGLETONS
from gstarx.gnn.baseline import BaselineLike as BaselineLike
from gstarx.gnn.baseline import check_baseline as check_baseline
from gstarx.gnn.baseline import expected_output
from gstarx.gnn.baseline import graph_outputs as graph_outputs
from gstarx.gnn.batching import UnionBatch as UnionBatch
from gstarx.gnn.evaluator import default_batch_nodes as default_batch_nodes
from gstarx.gnn.fields import EdgeNamingData as EdgeNamingData
from gstarx.gnn.fields import GraphTensors as GraphTensors
from gstarx.gnn.fields import batched as batched
from gstarx.gnn.fields import check_data as check_data
from gstarx.gnn.fields import cut as cut
from gstarx.gnn.fields import graphs_in as graphs_in
from gstarx.gnn.fields import roles_of as roles_of
from gstarx.gnn.game import GNNGame
from gstarx.gnn.hetero import HeteroGraph as HeteroGraph
from gstarx.gnn.hetero import hetero_of as hetero_of
from gstarx.gnn.hetero import view_of as view_of
from gstarx.gnn.local_part import WholeGraph as WholeGraph
from gstarx.gnn.model_state import restored
from gstarx.gnn.model_state import untouched as untouched
from gstarx.gnn.model_task import ModelTask, Task
from gstarx.gnn.model_task import TaskLike as TaskLike
from gstarx.gnn.model_task import as_task as as_task
from gstarx.gnn.model_task import model_arguments as model_arguments
from gstarx.gnn.model_task import model_inputs as model_inputs
from gstarx.gnn.model_task import with_view as with_view
from gstarx.gnn.multi_graph import ManyGraphs as ManyGraphs
from gstarx.gnn.multi_graph import outputs_and_sharing as outputs_and_sharing
from gstarx.gnn.options import GameOptions, Passes
from gstarx.gnn.options import as_options as as_options
from gstarx.gnn.options import options_in as options_in
from gstarx.gnn.options import refuse_unknown as refuse_unknown
from gstarx.gnn.payoff import Contrast
from gstarx.gnn.payoff import PayoffLike as PayoffLike
from gstarx.gnn.payoff import TargetLike as TargetLike
from gstarx.gnn.payoff import check_task as check_task
from gstarx.gnn.payoff import choose_columns as choose_columns
from gstarx.gnn.payoff import class_scores as class_scores
from gstarx.gnn.payoff import looks_like_probabilities as looks_like_probabilities
from gstarx.gnn.payoff import outputs_matrix as outputs_matrix
from gstarx.gnn.payoff import require_classes as require_classes
from gstarx.gnn.removal import RemovalLike as RemovalLike
from gstarx.gnn.self_check import BatchMixing as BatchMixing
from gstarx.gnn.self_check import same_outputs as same_outputs
from gstarx.gnn.sharing import Sharing
from gstarx.gnn.signature import Model as Model
from gstarx.gnn.signature import Signature as Signature
from gstarx.gnn.signature import call_model as call_model
from gstarx.gnn.signature import model_device as model_device
from gstarx.gnn.signature import networks_of as networks_of
from gstarx.gnn.signature import require_initialized as require_initialized

__all__ = [
    "Contrast",
    "GNNGame",
    "GameOptions",
    "ModelTask",
    "Passes",
    "Sharing",
    "Task",
    "expected_output",
    "restored",
]
