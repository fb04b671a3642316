"""Experiments with GStarX: datasets, training, compared methods, runs, reports and summaries."""
