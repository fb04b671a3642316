"""Small helpers that are shared by several packages; not part of the public API."""
