"""The one result type: scores of players, selections of them, dictionaries, files and tables."""

from gstarx.explanation.attribution import Attribution
from gstarx.explanation.explanation import Explanation
from gstarx.explanation.hetero_explanation import HeteroExplanation
from gstarx.explanation.hetero_explanation import as_explained as as_explained
from gstarx.explanation.hetero_explanation import hetero_data as hetero_data
from gstarx.explanation.stored import schema

__all__ = ["Attribution", "Explanation", "HeteroExplanation", "schema"]
