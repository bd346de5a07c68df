"""Keep freed memory for the next chunk instead of giving it back.

A run makes and drops arrays of a few megabytes all the time. By default the C library returns each to the system and
gets it back page by page, which takes longer than what is done with it: a third of the time of a query.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT = 128 << 20


@cache
def keep_freed_memory() -> bool:
    """Let the C library keep up to 128 MiB of freed memory; False where it cannot be told."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(
        mallopt(ctypes.c_int(what), ctypes.c_int(size)) == 1
        for what, size in ((_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, 16 << 20))
    )
