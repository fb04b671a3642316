"""Memory that was freed stays with the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_BLOCKS = """
import ctypes, sys, torch
from gstarx.gnn.model_state import keep_freed_memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

library = ctypes.CDLL("libc.so.6")
library.mallinfo2.restype = Info
if sys.argv[1] == "kept":
    keep_freed_memory()
before = library.mallinfo2().hblks
block = torch.empty(30 << 20, dtype=torch.uint8)
print(library.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do otherwise")
def test_large_blocks_come_from_what_the_process_has() -> None:
    def straight_from_the_system(how: str) -> int:
        command = [sys.executable, "-c", _BLOCKS, how]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert straight_from_the_system("as it is") == 1
    assert straight_from_the_system("kept") == 0
