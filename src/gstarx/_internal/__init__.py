"""Helpers without a home of their own; not part of the public interface."""
