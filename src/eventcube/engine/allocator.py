"""Settings of the C allocator: keep freed memory for the next chunk.

A run allocates and frees arrays of a few megabytes all the time. By default the C library returns each to the system
and gets it back page by page, which took a third of the time of a query.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MAX_KEPT = 128 << 20


@cache
def keep_freed_memory() -> bool:
    """Let the C library keep up to 128 MiB of freed memory; False if it has no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(
        mallopt(ctypes.c_int(parameter), ctypes.c_int(size)) == 1
        for parameter, size in ((_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, _MAX_KEPT), (_TOP_PAD, 16 << 20))
    )
