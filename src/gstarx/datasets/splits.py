"""How the paper's graphs are split for training, validation and test."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import random_split

_SEED = 2


def random_split_indices(count: int) -> dict[str, list[int]]:
    """The paper's random split: 80 % train, 10 % val, the rest test, by a generator seeded 2.

    >>> [len(part) for part in random_split_indices(188).values()]
    [150, 18, 20]
    """
    train, val = int(0.8 * count), int(0.1 * count)
    lengths = [train, val, count - train - val]
    generator = torch.Generator().manual_seed(_SEED)
    parts: list[Any] = random_split(range(count), lengths, generator=generator)  # type: ignore[arg-type]
    return {name: list(p.indices) for name, p in zip(("train", "val", "test"), parts, strict=True)}
