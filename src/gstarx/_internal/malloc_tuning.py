"""Keep memory that a forward pass has freed for the next one."""

from __future__ import annotations

from functools import cache

import torch

#: The C library adapts to blocks of up to 32 MB, just below which this has to stay.
_LARGEST_BLOCK = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 62 MB of freed memory from now on.

    The C library of Linux returns memory to the system as soon as the free memory exceeds twice
    the largest block that was ever mapped and freed, and the next forward pass has to fetch its
    pages again. How often depends on where blocks happen to lie: the same explanation took up to
    three times as long, with up to 50 page faults per coalition. Freeing one large block, which is
    never touched and so costs nothing, prevents that. On other systems this does nothing.
    """
    torch.empty(_LARGEST_BLOCK, dtype=torch.uint8)
