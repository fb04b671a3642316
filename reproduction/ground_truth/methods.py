"""The methods of the ground-truth benchmark, with all their settings."""

from __future__ import annotations

from typing import Any

from gstarx import explainers
from reproduction.methods import BUDGET, Method

#: The name of a technique in the published table, by the name of ours.
PUBLISHED = {
    "gradient × input": "GradInput",
    "SmoothGrad": "SmoothGrad(GradInput)",
    "GradCAM, last layer": "GradCAM-last",
    "GradCAM, all layers": "GradCAM-all",
    "integrated gradients": "IG",
    "CAM": "CAM",
    "attention": "AttWeights",
}


def _value(name: str, value: str, baseline: str = "train", **options: Any) -> Method:
    return Method(name, "gstarx", {"value": value, "budget": BUDGET, **options}, "ours", baseline)


_GRADIENTS = (
    Method("random nodes", "random", role="control", baseline=None),
    Method("gradient × input", "gradient_x_input", role="compared", baseline=None),
    Method("integrated gradients", "integrated_gradients", role="compared", baseline=None),
    Method("CAM", "cam", role="compared", baseline=None),
    Method("GradCAM, last layer", "gradcam", role="compared", baseline=None),
    Method("GradCAM, all layers", "gradcam", {"layers": "all"}, role="compared", baseline=None),
    Method("attention", "attention", role="compared", baseline=None),
    Method("leave one out", "leave_one_out", role="control"),
    Method("occlusion, 1 hop", "occlusion", role="compared"),
)
_SAMPLED = (
    Method("SmoothGrad", "smoothgrad", role="compared", baseline=None),
    _value("HN", "hn"),
    _value("Myerson", "myerson"),
    _value("Shapley", "shapley"),
    _value("Banzhaf", "banzhaf"),
    Method("GraphSVX", "graphsvx", {"num_samples": BUDGET}, role="compared"),
)
#: Values of games whose constant is what single nodes are worth, and of both sides of a coalition.
_IMPROVED = (
    _value("HN, singletons", "hn", "singletons"),
    _value("HN, two-sided, singletons", "hn", "singletons", two_sided=True),
    _value("Myerson, singletons", "myerson", "singletons"),
    _value("Myerson, two-sided, singletons", "myerson", "singletons", two_sided=True),
)
_SLOW = (
    Method("GNNExplainer", "gnnexplainer", {"epochs": 200}, "compared", None, slow=True),
    Method("PGExplainer", "pgexplainer", {"epochs": 5}, "compared", None, slow=True),
    Method(
        "SubgraphX", "subgraphx", {"rollouts": 10, "sample_num": 20}, "compared", None, slow=True
    ),
)

#: Stages in the order in which they run.
STAGES = {"gradients": _GRADIENTS, "values": _SAMPLED, "improved": _IMPROVED, "slow": _SLOW}
METHODS = {method.name: method for stage in STAGES.values() for method in stage}


def available(method: Method) -> bool:
    """Whether this version of the package has the options of the method."""
    return set(method.options) <= set(explainers.options_of(method.explainer))
