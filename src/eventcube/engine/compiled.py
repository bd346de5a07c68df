"""Compiles loops and caches them: beside their source or, if that is read-only, in a folder of the user.

Numba compiles a loop at its first use and caches the machine code in files, which later processes load.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from eventcube.errors import EventCubeWarning
from eventcube.folders import private_folders

_F = TypeVar("_F", bound=Callable[..., Any])

# Numba's settings; it sets their attributes dynamically.
CONFIG: Any = numba.config

_SOURCE_CACHE = Path(__file__).parent / "__pycache__"
# The loops that are called from Python, by name.
LOOPS: dict[str, Any] = {}


def compiled(function: _F) -> _F:
    """The function, compiled at its first use and cached if there is a folder for it."""
    configured = CONFIG.CACHE_DIR
    CONFIG.CACHE_DIR = _FALLBACK or configured
    try:
        loop = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # No folder for the cache: every process compiles what it uses.
        loop = numba.njit(nogil=True)(function)
    finally:
        CONFIG.CACHE_DIR = configured
    if not function.__name__.startswith("_"):
        LOOPS[function.__name__] = loop
    return cast("_F", loop)


def inlined(function: _F) -> _F:
    """The function, compiled as a part of the loops that call it: a call with arrays costs more than some additions."""
    return cast("_F", numba.njit(inline="always")(function))


def cache_folder() -> Path | None:
    """The folder with the compiled loops; None if there is none."""
    path = next(iter(LOOPS.values())).stats.cache_path
    return None if path is None else Path(path)


def copy_compiled_loops() -> None:
    """If the cache is not beside the source, fill it once from there, and warn where it is."""
    if CONFIG.DISABLE_JIT:
        return
    folder = cache_folder()
    if folder is None:
        warnings.warn(
            "the engine's compiled loops can be kept nowhere, so every process compiles them, for several seconds\n"
            "hint: set NUMBA_CACHE_DIR to a folder that only you can write",
            EventCubeWarning,
            stacklevel=2,
        )
    elif _FALLBACK and not any(folder.iterdir()):
        for file in _SOURCE_CACHE.glob("*.nb[ic]"):
            # Another process may be reading, or doing the same.
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
                copy.write(file.read_bytes())
            Path(copy.name).replace(folder / file.name)
        warnings.warn(
            f"nothing can be written to {_SOURCE_CACHE}, so the engine's compiled loops are kept in {folder}",
            EventCubeWarning,
            stacklevel=2,
        )


def _fallback() -> str:
    """The user's cache folder if the source folder is read-only; "" if there is none, or no need of one."""
    if CONFIG.CACHE_DIR or CONFIG.DISABLE_JIT or _can_write(_SOURCE_CACHE):
        return ""
    return next((str(folder / "compiled") for folder in private_folders()), "")


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


_FALLBACK = _fallback()
