"""Memory that a forward pass has freed is there for the next one."""

from __future__ import annotations

from functools import cache

import torch

#: The C library adapts to blocks of up to 32 MB, just below which this has to stay.
_LARGEST_BLOCK = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 62 MB that it has freed, once and for all.

    Linux' C library gives memory back to the system as soon as what is free exceeds twice the
    largest block that it ever got there and freed, and every forward pass then fetches its pages
    anew. Where blocks happen to lie decides how often: the same explanation took between one and
    three times as long, with up to 50 page faults per coalition. Freeing one large block, which is
    never touched and so costs nothing, ends that. Elsewhere it does nothing.
    """
    torch.empty(_LARGEST_BLOCK, dtype=torch.uint8)
