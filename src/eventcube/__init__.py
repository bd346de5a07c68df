"""eventcube: nested event patterns over tables and streams, on Spark and in process."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventcube.check import Check, Checks, check
    from eventcube.concepts.concepts import Concepts
    from eventcube.engine.counts import Counts
    from eventcube.errors import (
        BindError,
        EventCubeError,
        EventCubeWarning,
        InputError,
        OptionError,
        QueryError,
        QuerySyntaxError,
    )
    from eventcube.event_cube import Cube
    from eventcube.explain import explain
    from eventcube.language.parse import parse
    from eventcube.match import late_rows, match, match_all, set_aside
    from eventcube.runtime.runtime import Runtime
    from eventcube.wide import wide

__all__ = [
    "BindError",
    "Check",
    "Checks",
    "Concepts",
    "Counts",
    "Cube",
    "EventCubeError",
    "EventCubeWarning",
    "InputError",
    "OptionError",
    "QueryError",
    "QuerySyntaxError",
    "Runtime",
    "check",
    "explain",
    "late_rows",
    "match",
    "match_all",
    "parse",
    "set_aside",
    "wide",
]

__version__ = "0.1.0"

_MODULES = {
    "Check": "check",
    "Checks": "check",
    "Concepts": "concepts.concepts",
    "Counts": "engine.counts",
    "Cube": "event_cube",
    "Runtime": "runtime.runtime",
    "check": "check",
    "explain": "explain",
    "late_rows": "match",
    "match": "match",
    "match_all": "match",
    "parse": "language.parse",
    "set_aside": "match",
    "wide": "wide",
}


class _Package(ModuleType):
    """Loads what is asked for when it is asked for: the engine takes a second, and `eventcube --help` needs none."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Not `__name__`: where the package is shipped to, this file has another one.
        found = getattr(import_module(f"{__package__}.{_MODULES.get(name, 'errors')}"), name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # `match`, `check` and the like are the functions, never the modules of that name, which an import would set.
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*__all__, *(name for name in super().__dir__() if name.startswith("__"))})


sys.modules[__name__].__class__ = _Package
