"""Resumable runs that explain many graphs, in parallel, and store the results."""

from gstarx._internal.imports import require

for _package in ("pyarrow", "pydantic"):
    require(_package, extra="runs")

from gstarx_bench.runs.resolution import ChangedInput  # noqa: E402
from gstarx_bench.runs.rows import OF_A_RESULT as OF_A_RESULT  # noqa: E402
from gstarx_bench.runs.rows import VOLATILE  # noqa: E402
from gstarx_bench.runs.rows import explanation_of as explanation_of  # noqa: E402
from gstarx_bench.runs.running import RunReport, resume, retry_failed, run  # noqa: E402
from gstarx_bench.runs.specification import (  # noqa: E402
    DatasetSpec,
    ExplainerSpec,
    ModelSpec,
    RunSpec,
    read_spec,
    write_spec,
)
from gstarx_bench.runs.store import Store as Store  # noqa: E402
from gstarx_bench.runs.store import StoreError, StoreInUse, read  # noqa: E402
from gstarx_bench.runs.store import check_format as check_format  # noqa: E402
from gstarx_bench.runs.store import counts as counts  # noqa: E402

__all__ = [
    "VOLATILE",
    "ChangedInput",
    "DatasetSpec",
    "ExplainerSpec",
    "ModelSpec",
    "RunReport",
    "RunSpec",
    "StoreError",
    "StoreInUse",
    "read",
    "read_spec",
    "resume",
    "retry_failed",
    "run",
    "write_spec",
]
