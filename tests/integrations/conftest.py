"""What is left out where an optional package is not installed."""

from __future__ import annotations

try:
    import chemprop  # noqa: F401
except ImportError:
    collect_ignore = ["networks.py"]  # looked through for doctests
