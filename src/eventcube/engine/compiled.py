"""Compiles loops and keeps them: beside their source or, where nothing can be written there, in a folder of the user.

Numba compiles a loop at its first use and keeps the machine code in files, from which later processes load it.
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

# Numba's settings, which it fills in itself.
CONFIG: Any = numba.config

_BESIDE = Path(__file__).parent / "__pycache__"
# Every loop that is called from Python, by its name.
LOOPS: dict[str, Any] = {}


def compiled(function: _F) -> _F:
    """The function compiled at its first use, and kept where there is a place for it."""
    chosen = CONFIG.CACHE_DIR
    CONFIG.CACHE_DIR = _FALLBACK or chosen
    try:
        loop = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # Nowhere to keep compiled code: every process compiles what it uses.
        loop = numba.njit(nogil=True)(function)
    finally:
        CONFIG.CACHE_DIR = chosen
    if not function.__name__.startswith("_"):
        LOOPS[function.__name__] = loop
    return cast("_F", loop)


def kept_in() -> Path | None:
    """The folder that compiled loops are kept in; None if there is none."""
    path = next(iter(LOOPS.values())).stats.cache_path
    return None if path is None else Path(path)


def take_over() -> None:
    """Begin with the loops compiled beside the source, if they are kept elsewhere, and say where; done once."""
    if CONFIG.DISABLE_JIT:
        return
    folder = kept_in()
    if folder is None:
        warnings.warn(
            "the engine's compiled loops can be kept nowhere, so every process compiles them, for several seconds\n"
            "hint: set NUMBA_CACHE_DIR to a folder that only you can write",
            EventCubeWarning,
            stacklevel=2,
        )
    elif _FALLBACK and not any(folder.iterdir()):
        for file in _BESIDE.glob("*.nb[ic]"):
            # Another process may be reading, or doing the same.
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
                copy.write(file.read_bytes())
            Path(copy.name).replace(folder / file.name)
        warnings.warn(
            f"nothing can be written to {_BESIDE}, so the engine's compiled loops are kept in {folder}",
            EventCubeWarning,
            stacklevel=2,
        )


def _fallback() -> str:
    """A folder of the user where nothing can be written beside the source; "" if there is none, or no need of one."""
    if CONFIG.CACHE_DIR or CONFIG.DISABLE_JIT or _can_write(_BESIDE):
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
