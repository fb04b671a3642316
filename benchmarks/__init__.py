"""Side-by-side measurements: `python -m benchmarks` runs all of them, or those named."""
