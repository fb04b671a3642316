"""How numbers are rounded wherever they are printed: one place for pictures, pages and commands."""

from __future__ import annotations

import math


def decimal(value: float, digits: int) -> str:
    """A number with a fixed number of decimals, no sign if it rounds to 0, a dash if undefined.

    >>> decimal(-0.25, 2), decimal(-0.0001, 3), decimal(float("nan"), 3)
    ('−0.25', '0.000', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def metric(value: float) -> str:
    """A metric, such as fidelity: four decimals.

    >>> metric(0.66666)
    '0.6667'
    """
    return decimal(value, 4)


def probability(value: float) -> str:
    """A probability: three decimals.

    >>> probability(0.98765)
    '0.988'
    """
    return decimal(value, 3)


def yes_or_no(value: float, *, explained: bool = False) -> str:
    """What the probability of a label says, and how probable that is.

    Scores of a label are for yes, whatever is predicted: ``explained`` says so if that is no.

    >>> yes_or_no(0.299), yes_or_no(0.98765, explained=True)
    ('no, probability 0.701', 'yes, probability 0.988')
    >>> yes_or_no(0.299, explained=True)
    'no, probability 0.701; explained: yes'
    """
    if value > 0.5:
        return f"yes, probability {probability(value)}"
    return f"no, probability {probability(1 - value)}" + "; explained: yes" * explained


def output(value: float) -> str:
    """What a regression model predicts, in a unit of its own: four digits.

    >>> output(-2.34567), output(1234.5)
    ('−2.346', '1234')
    """
    return f"{value:.4g}".replace("-", "−")


def scale(limit: float) -> str:
    """The score at which a color scale ends, on both sides.

    >>> scale(0.41234)
    '±0.412'
    """
    return f"±{limit:.3g}"
