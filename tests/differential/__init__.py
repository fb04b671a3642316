"""Explanations of random models on random graphs, held against brute force.

Combination number ``i`` is drawn from ``random.Random(i)`` alone, so that a mismatch is named by
its number: ``python -m tests.differential 1234`` draws it again and shows all of it.
"""
