"""The commands of this package; ``gstarx`` finds them by :mod:`gstarx_bench.plugin`."""
