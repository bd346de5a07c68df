"""eventcube: nested event patterns over tables and streams, on Spark and in process."""

from eventcube.concepts.concepts import Concepts
from eventcube.errors import (
    BindError,
    EventCubeError,
    EventCubeWarning,
    InputError,
    OptionError,
    QueryError,
    QuerySyntaxError,
)
from eventcube.explain import explain
from eventcube.language.parse import parse
from eventcube.match import match, set_aside
from eventcube.runtime.runtime import Runtime
from eventcube.wide import wide

__all__ = [
    "BindError",
    "Concepts",
    "EventCubeError",
    "EventCubeWarning",
    "InputError",
    "OptionError",
    "QueryError",
    "QuerySyntaxError",
    "Runtime",
    "explain",
    "match",
    "parse",
    "set_aside",
    "wide",
]

__version__ = "0.1.0"
