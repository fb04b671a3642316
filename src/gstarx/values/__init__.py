"""Values of cooperative games: Hamiache-Navarro, Myerson, C-Shapley, Shapley and Banzhaf."""

from gstarx.values import axioms
from gstarx.values.allocation import (
    Allocation,
    ConvergenceWarning,
    PrecisionError,
    PrecisionWarning,
)
from gstarx.values.allocation import Imprecise as Imprecise
from gstarx.values.allocation import budget_costs as budget_costs
from gstarx.values.allocation import collect_imprecise as collect_imprecise
from gstarx.values.allocation import summarize_imprecise as summarize_imprecise
from gstarx.values.banzhaf import banzhaf_value, banzhaf_value_sampled
from gstarx.values.hn.closed_form import hn_value
from gstarx.values.hn.growth_sampling import hn_value_growth_sampled
from gstarx.values.hn.iteration import associated_game, hn_value_iterated, limit_game, surplus
from gstarx.values.kinds import HN, Banzhaf, Myerson, Position, Shapley, Value
from gstarx.values.kinds import Seed as Seed
from gstarx.values.kinds import ValueLike as ValueLike
from gstarx.values.kinds import as_value as as_value
from gstarx.values.kinds import pairs_within as pairs_within
from gstarx.values.myerson import coalition_weights, myerson_value
from gstarx.values.permutation_sampling import myerson_value_sampled
from gstarx.values.position import PositionValue, position_value, position_value_sampled
from gstarx.values.position import node_shares as node_shares
from gstarx.values.position import touched_nodes as touched_nodes
from gstarx.values.shapley import c_shapley_value, shapley_value
from gstarx.values.shapley_sampling import shapley_value_sampled
from gstarx.values.subgraph_sampling import SubgraphPlan as SubgraphPlan
from gstarx.values.subgraph_sampling import (
    Subgraphs,
    hn_value_subgraph_sampled,
    subgraph_sampled,
)

__all__ = [
    "HN",
    "Allocation",
    "Banzhaf",
    "ConvergenceWarning",
    "Myerson",
    "Position",
    "PositionValue",
    "PrecisionError",
    "PrecisionWarning",
    "Shapley",
    "Subgraphs",
    "Value",
    "associated_game",
    "axioms",
    "banzhaf_value",
    "banzhaf_value_sampled",
    "c_shapley_value",
    "coalition_weights",
    "hn_value",
    "hn_value_growth_sampled",
    "hn_value_iterated",
    "hn_value_subgraph_sampled",
    "limit_game",
    "myerson_value",
    "myerson_value_sampled",
    "position_value",
    "position_value_sampled",
    "shapley_value",
    "shapley_value_sampled",
    "subgraph_sampled",
    "surplus",
]
