"""Folders whose files register themselves when they are imported: strategies and sinks."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def import_all(package: str) -> None:
    """Import every module of a package, once."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
