"""Methods that GStarX is compared with."""

from gstarx_bench.explainers.graphsvx import GraphSVX
from gstarx_bench.explainers.subgraphx import LocalShapley, SubgraphX

__all__ = ["GraphSVX", "LocalShapley", "SubgraphX"]
