"""Run the benchmarks: `python -m benchmarks [name ...]`, or `--list`."""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
import time

NAMES = (
    "exactness",
    "hn_speed",
    "myerson_speed",
    "chemprop_myerson",
    "shapiq_interactions",
    "enumeration",
    "growth_accuracy",
    "growth_unlistable",
    "growth_on_mutag",
    "estimator_cost",
    "coverage",
    "banzhaf_error",
    "metrics_on_mutag",
    "evaluation_speed",
    "compared_on_mutag",
    "ground_truth",
    "players",
    "fragments",
    "explain_overhead",
    "self_check_cost",
    "sharing",
    "citation",
    "heterogeneous",
    "published_speed",
    "cost_growth",
    "ego_graphs",
    "compilation",
    "run_overhead",
    "run_faults",
    "run_scaling",
)


def main(arguments: list[str]) -> int:
    if "--list" in arguments:
        print("\n".join(NAMES))
        return 0
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        print(f"no benchmark called {unknown[0]!r}; there are: {', '.join(NAMES)}")
        return 2
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    if len(arguments) != 1:
        # each in a process of its own: what one leaves in memory is not another's
        for name in arguments or NAMES:
            subprocess.run([sys.executable, "-m", "benchmarks", name], check=True)
        return 0
    for name in arguments:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n## {name}\n{(module.__doc__ or '').strip()}\n", flush=True)
        start = time.perf_counter()
        module.main()
        print(f"\n({time.perf_counter() - start:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
