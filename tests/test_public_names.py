"""The public names are a promise: adding or dropping one is a decision, made here too."""

from __future__ import annotations

from importlib import import_module

import pytest

import gstarx
from gstarx.registry import group_makers
from tests.pairs import for_each

PUBLIC = {
    "gstarx": {
        "Allocation",
        "CommunicationGraph",
        "Contrast",
        "Explanation",
        "GNNGame",
        "GStarX",
        "HeteroExplanation",
        "TableGame",
        "__version__",
        "expected_output",
        "explain",
        "explain_many",
        "explain_nodes",
        "hn_value",
        "myerson_value",
        "schema",
        "shapley_value",
    },
    "gstarx.graphs": {
        "CoalitionLattice",
        "CommunicationGraph",
        "TooManyCoalitions",
    },
    "gstarx.games": {
        "Game",
        "TableGame",
        "Worths",
        "additive_game",
        "airport_game",
        "dual",
        "evaluate",
        "glove_game",
        "random_game",
        "restricted_game",
        "self_dual",
        "superadditive_cover",
        "unanimity_game",
        "voting_game",
    },
    "gstarx.values": {
        "Allocation",
        "ConvergenceWarning",
        "PositionValue",
        "PrecisionError",
        "PrecisionWarning",
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
    },
    "gstarx.players": {
        "Edges",
        "Features",
        "Groups",
        "Nodes",
        *group_makers(),
    },
    "gstarx.gnn": {"Contrast", "GNNGame", "ModelTask", "Sharing", "expected_output", "restored"},
    "gstarx.metrics": {
        "BestSelection",
        "Difference",
        "Faithfulness",
        "FidelityCurve",
        "LabelFidelity",
        "METRICS",
        "Reference",
        "RefinedSelection",
        "RobustFidelity",
        "SPARSITIES",
        "Stability",
        "attribution_auroc",
        "attribution_tau",
        "auroc",
        "average",
        "best_selection",
        "best_selections",
        "characterization_score",
        "edge_auroc",
        "edge_player_scores",
        "entropy_sparsity",
        "evaluate",
        "evaluate_many",
        "fidelity_curve",
        "harmonic_fidelity",
        "iou",
        "label_fidelity",
        "largest_gap",
        "node_scores_from_edges",
        "paired_bootstrap",
        "poisson_entropy",
        "precision",
        "precision_at_k",
        "random_selections",
        "randomization_check",
        "rank_correlation",
        "recall",
        "reference_of",
        "refine",
        "relabeling_stability",
        "robust_fidelity",
        "seed_stability",
        "select_nodes",
        "share_of_gap",
        "sparsity",
        "uniform_entropy",
    },
    "gstarx.drawing": {
        "Geometry",
        "GroupScore",
        "Picture",
        "compare",
        "draw",
        "draw_interactions",
        "geometry",
        "group_scores",
        "plot_curves",
        "plot_intervals",
        "prediction_caption",
        "scores_ax",
        "summary_chart",
    },
    "gstarx.explanation": {"Attribution", "Explanation", "HeteroExplanation", "schema"},
    "gstarx.explainers": {
        "FailedExplanation",
        "GStarX",
        "LeaveOneOut",
        "NodeExplainer",
        "RandomNodes",
        "SingleNode",
        "ValueSettings",
        "create",
        "explain",
        "explain_many",
        "explain_nodes",
        "graph_generator",
        "iter_explanations",
        "names",
        "options_of",
    },
    "gstarx.integrations": {"chemprop", "shapiq"},
    "gstarx.evaluation": {
        "Evaluated",
        "Pipeline",
        "class_probabilities",
        "recorded",
    },
    "gstarx_bench.report": {
        "Explained",
        "ExplainerRow",
        "ReportData",
        "build_report",
        "report_page",
        "summary_page",
        "write_report",
    },
    "gstarx.models": {
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
    },
    "gstarx.datasets": {
        "GraphDataset",
        "Statistics",
        "from_graphs",
        "load",
        "load_source",
        "names",
        "smiles_graph",
    },
    "gstarx_bench.runs": {
        "ChangedInput",
        "DatasetSpec",
        "ExplainerSpec",
        "ModelSpec",
        "RunReport",
        "RunSpec",
        "StoreError",
        "StoreInUse",
        "VOLATILE",
        "read",
        "read_spec",
        "resume",
        "retry_failed",
        "run",
        "write_spec",
    },
    "gstarx_bench.datasets": {
        "CounterfactualCheck",
        "GraphDataset",
        "TruthData",
        "attribution_task",
        "bibliographies",
        "bibliography",
        "check_counterfactuals",
        "contribution_task",
        "from_graphs",
        "from_table",
        "load",
        "load_attribution",
        "load_source",
        "names",
        "planted",
        "planted_reasons",
        "save_attribution",
    },
    "gstarx_bench.explainers": {"GraphSVX", "LocalShapley", "SubgraphX"},
    "gstarx_bench.models": {
        "Recipe",
        "TrainingResult",
        "TrainingSettings",
        "accuracy",
        "load_published_checkpoint",
        "recipe",
        "train",
    },
    "gstarx_bench.summary": {"SummaryRow", "summarize"},
    "gstarx_explorer": {"Limits", "ServedModel", "ServedRun", "Settings"},
}


@for_each("module", PUBLIC)
def test_public_names_are_exactly_these(module: str) -> None:
    found = import_module(module)
    names = found.__all__
    assert len(names) == len(set(names))
    assert set(names) == PUBLIC[module] <= set(dir(found))
    assert all(getattr(found, name) is not None for name in names)


def test_a_name_at_the_top_is_the_one_of_its_package() -> None:
    for name in PUBLIC["gstarx"] - {"__version__"}:
        homes = [package for package in PUBLIC if "." in package and name in PUBLIC[package]]
        assert homes, name
        for package in homes:
            assert getattr(gstarx, name) is getattr(import_module(package), name)


def test_the_subpackages_are_attributes_of_the_package() -> None:
    for package in sorted(name[7:] for name in PUBLIC if name.startswith("gstarx.")):
        assert package in dir(gstarx)
        assert getattr(gstarx, package) is import_module(f"gstarx.{package}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gstarx' has no attribute 'hn_valeu'"):
        gstarx.hn_valeu  # noqa: B018
