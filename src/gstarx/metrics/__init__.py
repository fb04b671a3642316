"""Metrics of explanations: fidelity, sparsity, ground truth, robustness and comparison."""

from gstarx.metrics.comparison import (
    Difference,
    Stability,
    paired_bootstrap,
    randomization_check,
    rank_correlation,
    relabeling_stability,
    seed_stability,
    share_of_gap,
)
from gstarx.metrics.entropy import entropy_sparsity, poisson_entropy, uniform_entropy
from gstarx.metrics.faithfulness import (
    METRICS,
    Faithfulness,
    FidelityCurve,
    average,
    evaluate,
    sparsity,
)
from gstarx.metrics.ground_truth import (
    attribution_auroc,
    attribution_tau,
    auroc,
    edge_auroc,
    iou,
    precision,
    precision_at_k,
    recall,
)
from gstarx.metrics.judge import Judge
from gstarx.metrics.optimum import BestSelection, RefinedSelection
from gstarx.metrics.probabilities import Reference, reference_of
from gstarx.metrics.probabilities import as_reference as as_reference
from gstarx.metrics.selection import (
    SPARSITIES,
    edge_player_scores,
    largest_gap,
    node_scores_from_edges,
    select_nodes,
)
from gstarx.metrics.selection import above_noise as above_noise
from gstarx.metrics.selection import as_mask as as_mask
from gstarx.metrics.selection import as_scores as as_scores
from gstarx.metrics.selection import select_best as select_best
from gstarx.metrics.selection import selection_size as selection_size
from gstarx.metrics.selection import ties_at_cut as ties_at_cut
from gstarx.metrics.selection import uncertain as uncertain
from gstarx.metrics.variants import (
    LabelFidelity,
    RobustFidelity,
    characterization_score,
)

__all__ = [
    "METRICS",
    "SPARSITIES",
    "BestSelection",
    "Difference",
    "Faithfulness",
    "FidelityCurve",
    "Judge",
    "LabelFidelity",
    "Reference",
    "RefinedSelection",
    "RobustFidelity",
    "Stability",
    "attribution_auroc",
    "attribution_tau",
    "auroc",
    "average",
    "characterization_score",
    "edge_auroc",
    "edge_player_scores",
    "entropy_sparsity",
    "evaluate",
    "iou",
    "largest_gap",
    "node_scores_from_edges",
    "paired_bootstrap",
    "poisson_entropy",
    "precision",
    "precision_at_k",
    "randomization_check",
    "rank_correlation",
    "recall",
    "reference_of",
    "relabeling_stability",
    "seed_stability",
    "select_nodes",
    "share_of_gap",
    "sparsity",
    "uniform_entropy",
]
