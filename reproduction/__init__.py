"""Reproducing the paper: its tables, figures and claims, from stored results.

Not part of the package: run ``python -m reproduction --help`` from a checkout.
"""

from pathlib import Path

#: Rows, tables and trainings that are kept with the code.
RESULTS = Path(__file__).with_name("results")
